"""`ratings segments`: what is sealed, what is not, and what no longer says what the log says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from time_histories import history
from time_ledgers import enter

from ratings_ledger.ledger.processes.identity import name_this_process
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster import coordinating, segments, simulating
from ratings_ledger.projections.cluster.columnar import OpenedObject
from ratings_ledger.projections.cluster.object_store import open_object_store
from ratings_ledger.projections.cluster.segments import read_player_names, to_numbers_name

Ratings = Callable[..., Any]
# a computation that goes on until it is killed
KILLED = """
import sys, time
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster.coordinating import open_cluster
with open_cluster(open_ledger(sys.argv[1]), "processes:1", sys.argv[2]):
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def ledger(store: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger of four segments and a rest."""
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", 20)
    monkeypatch.setattr(segments, "PART_GAMES", 5)
    assert ratings("init", db=store).exit_code == 0
    enter(open_ledger(store), history(3, 75))
    return store


@pytest.fixture
def listed(ledger: str, ratings: Ratings, tmp_path: Path) -> Callable[[str], Any]:
    """A function that runs a command of the group on the ledger, and gives its answer."""
    place = str(tmp_path / "sealed")

    def run(command: str) -> Any:
        engine = ("--on", "processes:1") if command == "seal" else ()
        told = ratings("segments", command, "--segments", place, *engine, "--format", "json", db=ledger)
        found = json.loads(told.stdout)
        return told.exit_code, [row["state"] for row in found["rows"]], found["sealed"], told.stderr

    return run


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "sealed").glob("*/segment-*"), key=lambda path: int(path.name.split("-")[1]))


@pytest.mark.slow_cases
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
    assert told.count("differs from the log") + told.count("under another name") == 2
    assert listed("list") == (0, ["sealed", "not sealed", "not sealed", "sealed"], 20, "")
    assert listed("seal")[:3] == (0, ["sealed"] * 4, 80)
    assert [path.read_bytes() for path in files(tmp_path)] == contents


@pytest.mark.slow
def test_rebuild_elsewhere_refuses_before_it_seals(ledger: str, ratings: Ratings, tmp_path: Path) -> None:
    """A name that nothing has, and a history that cannot be kept, are refused as a rebuild here does, before anything
    is written for workers."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for asked in (["nobody"], ["galactic-points", "catan-elo/basic/3"], ["catan-elo", "--history"]):
        here = ratings("rebuild", *asked, db=ledger)
        assert (here.exit_code, ratings("rebuild", *asked, *elsewhere, db=ledger)) == (2, here), asked
    assert not (tmp_path / "sealed").exists()


@pytest.mark.slow_cases
def test_whatif_elsewhere_names_the_ladders_that_there_are(ledger: str, ratings: Ratings, tmp_path: Path) -> None:
    """A ladder without games is refused with those that have some, as a simulation here does, also where months are
    ladders of their own."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for ladder in ("catan-elo/cities", "catan-monthly/9/basic/2010-03"):
        ruleset = ladder.partition("/")[0]
        here = ratings("whatif", ruleset, "--ladder", ladder, db=ledger)
        assert ratings("whatif", ruleset, "--ladder", ladder, *elsewhere, db=ledger) == here
        assert here.stderr.startswith(f"Error: {ladder} has no games under {ruleset}@")
        assert here.stderr.partition("; the ladders with games are ")[2].count(f"{ruleset}/") > 1


@pytest.mark.slow_cases
def test_whatif_elsewhere_refuses_before_it_seals(
    ledger: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ladder of no ruleset or of another form, a time that is none, and a ruleset that cannot follow the published
    ones are refused as a simulation here does, before anything is written for workers; so is a rule of a package, which
    they do not have."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for asked in (
        ["--ladder", "nobody/all"], ["--ladder", "catan-elo"], ["--ladder", "catan-elo/basic/3"],
        ["--as-of", "yesterday"], ["--known-at", "9999"], ["--set", "time_zone=Asia/Tokyo"],
    ):  # fmt: skip
        here = ratings("whatif", "catan-elo", *asked, db=ledger)
        assert here.exit_code, asked
        assert ratings("whatif", "catan-elo", *asked, *elsewhere, db=ledger) == here, asked
    monkeypatch.setattr(simulating, "is_built_in", lambda rule: False)
    told = ratings("whatif", "catan-elo", *elsewhere, db=ledger)
    assert "catan-elo uses a rule from a package" in told.stderr
    assert not (tmp_path / "sealed").exists()


@pytest.fixture
def disused(listed: Callable[[str], Any], tmp_path: Path) -> list[str]:
    """All segments are sealed and two days old. Beside them are objects of other histories, another format and a
    computation that was killed; the names of those that are of the same age. One segment more is younger."""
    assert listed("seal")[:2] == (0, ["sealed"] * 4)
    (place,) = (tmp_path / "sealed").iterdir()
    _, _, _, chain_hash, own_format = files(tmp_path)[0].name.split("-")
    other = "00" * 32  # before the own one, in the order of names
    old = [
        f"numbers-0-20-{other}-{own_format}", f"numbers-0-20-{chain_hash}-00000000", "out-1", "out-2",
        f"segment-0-20-{other}-{own_format}", f"segment-0-20-{chain_hash}-00000000",
        f"segment-900-920-{other}-{own_format}",
    ]  # fmt: skip
    young = f"segment-20-40-{other}-{own_format}"
    for name in (*old, young):
        (place / name).write_bytes(b"12345")
    for path in place.iterdir():
        if path.name != young:
            os.utime(path, (path.stat().st_mtime - 2 * 86_400,) * 2)
    return old


@pytest.mark.slow
def test_pruning_deletes_what_no_computation_can_use(
    disused: list[str], listed: Callable[[str], Any], ledger: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Segments of another history or format, and what killed computations left, are deleted and named once they are
    a day old; those of this history stay, however old they are."""
    (place,) = (tmp_path / "sealed").iterdir()
    before = {path.name for path in place.iterdir()}
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    would = json.loads(ratings(*prune, "--dry-run", "--format", "json", db=ledger).stdout)
    assert {path.name for path in place.iterdir()} == before
    assert ratings(*prune, "--dry-run", db=ledger).stdout.splitlines() == [
        "what     from   to  why                 objects   MB",
        "numbers     1   20  of another history        1  0.0",
        "numbers     1   20  of another format         1  0.0",
        "out                 left behind               2  0.0",
        "segment     1   20  of another history        1  0.0",
        "segment     1   20  of another format         1  0.0",
        "segment   901  920  of another history        1  0.0",
        f"7 objects would be deleted in {place}; kept because younger than a day: 1",
    ]
    done = ratings(*prune, "--format", "json", db=ledger)
    assert json.loads(done.stdout) == {**would, "dry_run": False}
    assert [row["name"] for row in would["rows"]] == disused
    assert would["rows"][0] == {"name": disused[0], "why": "of another history", "bytes": 5}
    assert (would["segments"], would["dry_run"], would["young"]) == (str(place), True, 1)
    assert {path.name for path in place.iterdir()} == before - {*disused}
    assert listed("list")[1] == ["sealed", "of another history", "sealed", "sealed", "sealed"]
    told = ratings("segments", "list", "--segments", tmp_path / "sealed", db=ledger).stdout
    assert told.endswith("\nto delete segments of another history once they are a day old: ratings segments prune\n")
    left = f"nothing to delete in {place}; kept because younger than a day: 1\n"
    assert ratings(*prune, db=ledger).stdout == left


@pytest.mark.slow_cases
def test_pruning_waits_for_computations(disused: list[str], ledger: str, ratings: Ratings, tmp_path: Path) -> None:
    """While a computation goes on, here or elsewhere, or perhaps one of another version, which does not say where,
    nothing is deleted. What was killed more than a day ago does not count as one."""
    (place,) = (tmp_path / "sealed").iterdir()
    running = place / "nonce-1"
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    for written in (f"nonce-1 {name_this_process()}", "nonce-1 elsewhere 1 1", "nonce-1"):
        running.write_text(written)
        before = {path.name for path in place.iterdir()}
        told = ratings(*prune, db=ledger)
        assert (told.exit_code, told.stdout) == (4, "")
        assert f"a computation uses {place}, or was killed on another machine less than a day ago;" in told.stderr
        assert {path.name for path in place.iterdir()} == before
    assert ratings(*prune, "--dry-run", db=ledger).exit_code == 0
    os.utime(running, (running.stat().st_mtime - 2 * 86_400,) * 2)
    assert ratings(*prune, db=ledger).exit_code == 0
    assert {path.name for path in place.iterdir()} == before - {*disused, "nonce-1"}


@pytest.mark.slow
def test_pruning_does_not_wait_for_what_was_killed(
    disused: list[str], ledger: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A computation whose process is gone from this machine holds nothing up, however young it is."""
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, ledger, str(tmp_path / "sealed")], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    with killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "begun\n"
        assert ratings(*prune, db=ledger).exit_code == 4
        killed.kill()
    told = ratings(*prune, db=ledger)
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.endswith("kept because younger than a day: 2\n")  # a segment, and what says who was killed
    (place,) = (tmp_path / "sealed").iterdir()
    assert not {path.name for path in place.iterdir()} & {*disused}


@pytest.mark.slow
def test_another_format_is_made_again(
    listed: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments and numbers of an earlier format are not read, but made again beside it. Numbers say how many players
    are before theirs, and nothing that nobody reads."""
    with monkeypatch.context() as patch:
        # that of numbers which also counted the cells before theirs
        patch.setattr(coordinating, "FORMAT", "d2061d05")
        assert listed("seal")[1:3] == (["sealed"] * 4, 80)
    code, states, sealed, _ = listed("list")
    assert (code, sorted(states), sealed) == (0, ["not sealed"] * 4 + ["of another history"] * 4, 0)
    assert sorted(listed("seal")[1]) == ["of another history"] * 4 + ["sealed"] * 4
    before = 0
    for path in files(tmp_path):
        if not path.name.endswith("d2061d05"):
            numbers = OpenedObject(open_object_store(str(path.parent)), to_numbers_name(path.name))
            assert numbers.about == {"name": numbers.name, "players_before": before}
            before += len(read_player_names(numbers))
    assert before > 0


@pytest.mark.slow
def test_short_log_is_rebuilt_here(ledger: str, ratings: Ratings, tmp_path: Path, monkeypatch: Any) -> None:
    """A log without a whole segment is rebuilt here despite `--on`, which is said; a wrong engine is still refused."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", 1_000_000)
    told = ratings("rebuild", *elsewhere, db=ledger)
    assert (told.exit_code, files(tmp_path)) == (0, [])
    assert ", fewer than a segment of 1,000,000; nothing is sealed, and this process does the work instead of --on" in (
        told.stderr
    )
    assert ratings("rebuild", "--on", "nonsense", db=ledger).exit_code == 2
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", 20)
    assert "done here" not in ratings("rebuild", *elsewhere, db=ledger).stderr
    assert files(tmp_path) != []
