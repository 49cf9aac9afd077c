"""What the tests of clusters share: one cluster, and one ledger with what is to come of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_ledgers import Rebuilding, Wanted, digests, many_ladders, rows, small_pieces
from dask_clusters import LocalCluster, local_cluster


@pytest.fixture(scope="session")
def wanted(
    ratings: Callable[..., Any], original_files: Callable[..., str], tmp_path_factory: pytest.TempPathFactory,
    at_length: bool,
) -> Wanted:  # fmt: skip
    """The ledger, with what comes of it here, and what objects come of it in one process that nothing happens to."""
    games = 200_000 if at_length else 2_000
    folder = tmp_path_factory.mktemp("undisturbed")
    original = Path(original_files(many_ladders, games).removeprefix("sqlite:///"))
    unknown = Wanted(original, games, [], {})
    here, there = unknown.copied(folder / "here"), unknown.copied(folder / "there")
    assert ratings("rebuild", db=here).exit_code == 0
    with small_pieces(games):
        assert ratings("rebuild", "--on", "processes:1", "--segments", folder / "objects", db=there).exit_code == 0
    assert rows(there) == rows(here)
    assert len({row[0] for row in rows(here)}) > 200
    return Wanted(original, games, rows(here), digests(folder / "objects"))


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with local_cluster(tmp_path_factory.mktemp("clusters") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    """A cluster of two workers to which nothing has happened yet."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture
def rebuilding(ratings: Callable[..., Any], wanted: Wanted, tmp_path: Path) -> Rebuilding:
    return Rebuilding(ratings, wanted, tmp_path / "ledger")
