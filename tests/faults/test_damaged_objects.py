"""Damaged, missing or foreign objects of a cluster are made again, and the rows stay the same.

Except for missing objects, standard error names them.
"""

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
    """Change a bit of a file in place, at this fraction of its length."""
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
def test_damaged_object_is_made_again(
    damage: tuple[str, Callable[[Path, float], None], float],
    cluster: LocalCluster,
    rebuilding: Rebuilding,
    ratings: Callable[..., Any],
) -> None:
    """An object that is damaged between two rebuilds is named, unless it is only missing, and is made again."""
    kind, how, at = damage
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    kind = kind.replace("500", str(rebuilding.expected.games // 4))
    path = sorted(find_objects_folder(rebuilding.objects).glob(f"{kind}*"))[0]
    how(path, at)
    if kind != "out-":  # with all outputs there, the rebuild would not read other objects
        for output in find_objects_folder(rebuilding.objects).glob("out-*"):
            output.unlink()
    result = rebuilding.run(cluster.address)
    assert result.exit_code == 0
    assert read_stored_rows(rebuilding.url) == rebuilding.expected.rows
    warnings = [line for line in result.stderr.splitlines() if path.name in line]
    assert warnings == result.stderr.splitlines()
    if digest_objects(rebuilding.objects) != rebuilding.expected.objects:
        # the damage can go unnoticed only if the rebuild did not read it; `segments check` reads everything
        assert warnings == []
        assert kind.startswith("segment-")
        with use_small_pieces(rebuilding.expected.games):
            checked = ratings("segments", "check", "--segments", rebuilding.objects, db=rebuilding.url)
        assert checked.exit_code == 1
        assert path.name in checked.stderr + checked.stdout
    elif kind != "plans-":  # the second rebuild reads only the plans of its own tasks
        assert bool(warnings) == (how is not take_away)


@pytest.mark.at_length
def test_object_of_another_ledger_or_range_is_made_again(
    cluster: LocalCluster, rebuilding: Rebuilding, ratings: Callable[..., Any], tmp_path: Path
) -> None:
    """An intact object of another ledger or another range under the expected name is named and made again."""
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    create_many_ladders(ratings, other_url, rebuilding.expected.games)
    with use_small_pieces(rebuilding.expected.games):
        sealing = ratings("segments", "seal", "--on", "processes:1", "--segments", tmp_path / "others", db=other_url)
    assert sealing.exit_code == 0
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    own_folder, other_folder = find_objects_folder(rebuilding.objects), find_objects_folder(tmp_path / "others")
    for kind in ("segment-0-", "numbers-0-"):
        (from_other_ledger,), (own,) = other_folder.glob(f"{kind}*"), own_folder.glob(f"{kind}*")
        of_other_range = next(own_folder.glob(kind.replace("0", str(rebuilding.expected.games // 4)) + "*"))
        for foreign in (from_other_ledger, of_other_range):
            own.write_bytes(foreign.read_bytes())
            for out in own_folder.glob("out-*"):
                out.unlink()
            result = rebuilding.run(cluster.address)
            assert result.stderr == (
                f"ratings: {own.name} cannot be read: it is {foreign.name} under another name in {own_folder}; "
                "it is created again\n"
            )
            assert rebuilding.is_right(result._replace(stderr=""))


@pytest.mark.at_length
def test_many_damaged_objects_are_made_again(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """However many objects are damaged, all that are read are named and made again in one rebuild."""
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    chance, folder = Random(1), find_objects_folder(rebuilding.objects)
    damaged = [path for path in folder.iterdir() if path.name.startswith(("segment-", "numbers-", "out-"))]
    for path in damaged:
        flip(path, chance.choice((0.2, 0.99)))
    result = rebuilding.run(cluster.address)
    assert result.exit_code == 0
    assert read_stored_rows(rebuilding.url) == rebuilding.expected.rows
    for line in result.stderr.splitlines():
        assert line.endswith("it is created again")
    # a rebuild may read only parts of a segment
    unnoticed = {path.name for path in damaged if path.name not in result.stderr}
    assert {name for name in unnoticed if not name.startswith("segment-")} == set()
    assert {name for name, _ in digest_objects(rebuilding.objects).items() ^ rebuilding.expected.objects.items()} == (
        unnoticed
    )
