"""Objects of a cluster that are damaged, missing or another's: named on standard error, made again, the same rows."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cluster_ledgers import (
    Rebuilding,
    create_many_ladders,
    digest_objects,
    find_objects_folder,
    use_small_pieces,
)
from dask_clusters import LocalCluster
from fault_helpers import read_stored_rows
from lengths import mark_long_values

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra cluster is not installed"),
    pytest.mark.slow,
]


def flip(path: Path, at: float) -> None:
    """Change a bit of a file in its place, so far into it."""
    with open(path, "r+b") as file:
        file.seek(int(path.stat().st_size * at))
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 4]))


def truncate(path: Path, at: float) -> None:
    with open(path, "r+b") as file:
        file.truncate(int(path.stat().st_size * at))


def take_away(path: Path, at: float) -> None:
    path.unlink()


DAMAGES = [
    (kind, how, at)
    for kind in ("segment-500-", "numbers-0-", "out-", "base-", "plans-", "segment-head-", "numbers-head-")
    for how, at in ((flip, 0.0), (flip, 0.3), (flip, 0.98), (truncate, 0.5), (truncate, 0.0), (take_away, 0.0))
]


@pytest.mark.parametrize(
    "damage",
    mark_long_values([("numbers-0-", flip, 0.3)], DAMAGES),
    ids=lambda damage: f"{damage[0]} {damage[1].__name__} {damage[2]}",
)
def test_damaged_object(
    damage: tuple[str, Callable[[Path, float], None], float],
    cluster: LocalCluster,
    rebuilding: Rebuilding,
    ratings: Callable[..., Any],
) -> None:
    """What is damaged between two rebuilds is named, unless it is merely missing, and is made again as it was."""
    kind, how, at = damage
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    kind = kind.replace("500", str(rebuilding.expected.games // 4))
    path = sorted(find_objects_folder(rebuilding.objects).glob(f"{kind}*"))[0]
    how(path, at)
    if kind != "out-":  # or nobody would read it
        for output in find_objects_folder(rebuilding.objects).glob("out-*"):
            output.unlink()
    result = rebuilding.run(cluster.address)
    assert result.exit_code == 0
    assert read_stored_rows(rebuilding.url) == rebuilding.expected.rows
    warnings = [line for line in result.stderr.splitlines() if path.name in line]
    assert warnings == result.stderr.splitlines()
    if digest_objects(rebuilding.objects) != rebuilding.expected.objects:
        # only what was not read can have gone unnoticed, until all is read
        assert warnings == []
        assert kind.startswith("segment-")
        with use_small_pieces(rebuilding.expected.games):
            checked = ratings("segments", "check", "--segments", rebuilding.objects, db=rebuilding.url)
        assert checked.exit_code == 1
        assert path.name in checked.stderr + checked.stdout


@pytest.mark.at_length
def test_object_of_another_ledger(
    cluster: LocalCluster, rebuilding: Rebuilding, ratings: Callable[..., Any], tmp_path: Path
) -> None:
    """What is whole, but another ledger's or another range's under the name, is named and made again."""
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    create_many_ladders(ratings, other_url, rebuilding.expected.games)
    with use_small_pieces(rebuilding.expected.games):
        sealing = ratings("segments", "seal", "--on", "processes:1", "--segments", tmp_path / "others", db=other_url)
    assert sealing.exit_code == 0
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    mine, other_objects = find_objects_folder(rebuilding.objects), find_objects_folder(tmp_path / "others")
    for kind in ("segment-0-", "numbers-0-"):
        (wrong,), (right,) = other_objects.glob(f"{kind}*"), mine.glob(f"{kind}*")
        for foreign in (wrong, next(iter(mine.glob(kind.replace("0", str(rebuilding.expected.games // 4)) + "*")))):
            right.write_bytes(foreign.read_bytes())
            for out in mine.glob("out-*"):
                out.unlink()
            result = rebuilding.run(cluster.address)
            assert result.stderr == (
                f"ratings: {right.name} is {foreign.name} under another name in {mine}; it is created again\n"
            )
            assert rebuilding.is_right(result._replace(stderr=""))


@pytest.mark.at_length
def test_many_damaged_objects(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """However many objects are damaged, all are named and made again in one rebuild."""
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    chance, damaged = (
        Random(1),
        [
            path
            for path in find_objects_folder(rebuilding.objects).iterdir()
            if path.name.startswith(("segment-", "numbers-", "out-"))
        ],
    )
    for path in damaged:
        flip(path, chance.choice((0.2, 0.99)))
    result = rebuilding.run(cluster.address)
    assert result.exit_code == 0
    assert read_stored_rows(rebuilding.url) == rebuilding.expected.rows
    for line in result.stderr.splitlines():
        assert line.endswith("it is created again")
