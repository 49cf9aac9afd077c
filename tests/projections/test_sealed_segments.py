"""`ratings segments`: what is sealed, what is not, and what no longer says what the log says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from time_histories import history
from time_ledgers import enter

from ledger.store.opening import open_ledger
from projections.cluster import coordinating, segments

Ratings = Callable[..., Any]


@pytest.fixture
def listed(store: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A function that runs a command of the group on a ledger of four segments and a rest, and gives its answer."""
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", 20)
    monkeypatch.setattr(segments, "PART_GAMES", 5)
    assert ratings("init", db=store).exit_code == 0
    enter(open_ledger(store), history(3, 75))
    place = str(tmp_path / "sealed")

    def run(command: str) -> Any:
        engine = ("--on", "processes:1") if command == "seal" else ()
        told = ratings("segments", command, "--segments", place, *engine, "--format", "json", db=store)
        found = json.loads(told.stdout)
        return told.exit_code, [row["state"] for row in found["rows"]], found["sealed"], told.stderr

    return run


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "sealed").glob("*/segment-*"), key=lambda path: int(path.name.split("-")[1]))


def test_what_is_sealed_stays_until_it_is_damaged(tmp_path: Path, listed: Callable[[str], Any]) -> None:
    """Sealing makes what is missing. Checking names and deletes what the log does not say, whether it is damaged or
    whole, and sealing makes it again, the same."""
    assert listed("list") == (0, ["not sealed"] * 4, 0, "")
    assert listed("seal")[:3] == (0, ["sealed"] * 4, 80)
    assert listed("check") == (0, ["sealed"] * 4, 80, "")
    contents = [path.read_bytes() for path in files(tmp_path)]
    assert len(contents) == 4

    flipped = bytearray(contents[1])
    flipped[8] ^= 1
    files(tmp_path)[1].write_bytes(flipped)
    # well formed, and of other events
    files(tmp_path)[2].write_bytes(contents[3])
    code, states, sealed, told = listed("check")
    assert (code, states, sealed) == (1, ["sealed", "damaged", "damaged", "sealed"], 20)
    assert told.count("says something else than the log") + told.count("under another name") == 2
    assert listed("list") == (0, ["sealed", "not sealed", "not sealed", "sealed"], 20, "")
    assert listed("seal")[:3] == (0, ["sealed"] * 4, 80)
    assert [path.read_bytes() for path in files(tmp_path)] == contents
