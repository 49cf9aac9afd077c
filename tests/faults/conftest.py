"""Fixtures for the tests of clusters: one cluster, and one ledger with the expected result of its rebuild."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_ledgers import (
    ExpectedRebuild,
    Rebuilding,
    create_many_ladders,
    digest_objects,
    use_small_pieces,
)
from dask_clusters import LocalCluster, run_cluster
from fault_helpers import read_stored_rows


@pytest.fixture(scope="session")
def expected(
    ratings: Callable[..., Any],
    original_files: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
    at_length: bool,
) -> ExpectedRebuild:
    """Return the ledger, the rows that one machine stores, and the objects that one undisturbed process makes."""
    games = 200_000 if at_length else 2_000
    folder = tmp_path_factory.mktemp("undisturbed")
    original = Path(original_files(create_many_ladders, games).removeprefix("sqlite:///"))
    expected = ExpectedRebuild(original, games, [], {})
    local_url, cluster_url = expected.copy(folder / "here"), expected.copy(folder / "there")
    assert ratings("rebuild", db=local_url).exit_code == 0
    with use_small_pieces(games):
        assert (
            ratings("rebuild", "--on", "processes:1", "--segments", folder / "objects", db=cluster_url).exit_code == 0
        )
    assert read_stored_rows(cluster_url) == read_stored_rows(local_url)
    assert len({row[0] for row in read_stored_rows(local_url)}) > 200
    return ExpectedRebuild(original, games, read_stored_rows(local_url), digest_objects(folder / "objects"))


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with run_cluster(tmp_path_factory.mktemp("clusters") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    """Return a cluster of two undisturbed workers."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture
def rebuilding(ratings: Callable[..., Any], expected: ExpectedRebuild, tmp_path: Path) -> Rebuilding:
    return Rebuilding(ratings, expected, tmp_path / "ledger")
