"""`ratings segments`: sealed, unsealed and damaged segments, and computations elsewhere that use them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import read_numbers_object, start_endless_computation, use_segment_format
from histories import enter
from own_rules import load_built_in_rule, substitute_rule
from thresholds import set_thresholds
from time_histories import draw_history

from ratings_ledger.ledger.processes.identity import name_this_process

Ratings = Callable[..., Any]


@pytest.fixture
def ledger(store: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a ledger of four segments and a rest."""
    set_thresholds(monkeypatch, segment_events=20, part_games=5)
    assert ratings("init", db=store).exit_code == 0
    enter(store, draw_history(3, 75))
    return store


@pytest.fixture
def run_segments(ledger: str, ratings: Ratings, tmp_path: Path) -> Callable[[str], Any]:
    """Return a function that runs a command of the group on the ledger, and returns (exit code, states, sealed events,
    stderr).
    """
    folder = str(tmp_path / "sealed")

    def run(command: str) -> Any:
        engine = ("--on", "processes:1") if command == "seal" else ()
        result = ratings("segments", command, "--segments", folder, *engine, "--format", "json", db=ledger)
        answer = json.loads(result.stdout)
        return result.exit_code, [row["state"] for row in answer["rows"]], answer["sealed"], result.stderr

    return run


def list_segment_files(tmp_path: Path) -> list[Path]:
    """Return the files of segments, in order of positions."""
    return sorted((tmp_path / "sealed").glob("*/segment-*"), key=lambda path: int(path.name.split("-")[1]))


@pytest.mark.slow_cases
def test_damaged_segments_are_deleted_and_sealed_again(tmp_path: Path, run_segments: Callable[[str], Any]) -> None:
    """`seal` makes missing segments; `check` deletes segments that differ from the log, and `seal` makes them again
    unchanged.
    """
    assert run_segments("list") == (0, ["not sealed"] * 4, 0, "")
    assert run_segments("seal")[:3] == (0, ["sealed"] * 4, 80)
    assert run_segments("check") == (0, ["sealed"] * 4, 80, "")
    contents = [path.read_bytes() for path in list_segment_files(tmp_path)]
    assert len(contents) == 4

    flipped = bytearray(contents[1])
    flipped[8] ^= 1
    list_segment_files(tmp_path)[1].write_bytes(flipped)
    # a valid segment of other events
    list_segment_files(tmp_path)[2].write_bytes(contents[3])
    code, states, sealed, stderr = run_segments("check")
    assert (code, states, sealed) == (1, ["sealed", "damaged", "damaged", "sealed"], 20)
    assert stderr.count("differs from the log") + stderr.count("under another name") == 2
    assert run_segments("list") == (0, ["sealed", "not sealed", "not sealed", "sealed"], 20, "")
    assert run_segments("seal")[:3] == (0, ["sealed"] * 4, 80)
    assert [path.read_bytes() for path in list_segment_files(tmp_path)] == contents


@pytest.mark.slow
def test_rebuild_elsewhere_rejects_before_it_seals(ledger: str, ratings: Ratings, tmp_path: Path) -> None:
    """Unknown names, and `--history` for only some ladders, are rejected like in a local rebuild, before anything is
    written for workers.
    """
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for arguments in (["no-such"], ["galactic-points", "catan-elo/basic/3"], ["catan-elo", "--history"]):
        local_result = ratings("rebuild", *arguments, db=ledger)
        assert (local_result.exit_code, ratings("rebuild", *arguments, *elsewhere, db=ledger)) == (2, local_result), (
            arguments
        )
    assert not (tmp_path / "sealed").exists()


@pytest.mark.slow_cases
def test_whatif_elsewhere_names_existing_ladders(ledger: str, ratings: Ratings, tmp_path: Path) -> None:
    """A ladder without games is rejected like in a local simulation, with the names of existing ladders."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for ladder in ("catan-elo/cities", "catan-monthly/9/basic/2010-03"):
        ruleset = ladder.partition("/")[0]
        local_result = ratings("whatif", ruleset, "--ladder", ladder, db=ledger)
        assert ratings("whatif", ruleset, "--ladder", ladder, *elsewhere, db=ledger) == local_result
        assert local_result.stderr.startswith(f"Error: {ladder} has no games under {ruleset}@")
        assert local_result.stderr.partition("; the ladders with games are ")[2].count(f"{ruleset}/") > 1


@pytest.mark.slow_cases
def test_whatif_elsewhere_rejects_before_it_seals(
    ledger: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad ladders, times and rulesets, and a rule of a package, are rejected before anything is written for workers."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    for arguments in (
        ["--ladder", "nobody/all"], ["--ladder", "catan-elo"], ["--ladder", "catan-elo/basic/3"],
        ["--as-of", "yesterday"], ["--known-at", "9999"], ["--set", "time_zone=Asia/Tokyo"],
    ):  # fmt: skip
        local_result = ratings("whatif", "catan-elo", *arguments, db=ledger)
        assert local_result.exit_code, arguments
        assert ratings("whatif", "catan-elo", *arguments, *elsewhere, db=ledger) == local_result, arguments
    elo = load_built_in_rule("pairwise-elo/1")
    substitute_rule(monkeypatch, elo._replace(score=lambda *arguments: elo.score(*arguments)))
    result = ratings("whatif", "catan-elo", *elsewhere, db=ledger)
    assert "catan-elo uses a rule from a package" in result.stderr
    assert not (tmp_path / "sealed").exists()


@pytest.fixture
def unused_objects(run_segments: Callable[[str], Any], tmp_path: Path) -> list[str]:
    """Return the names of unused old objects; all segments are sealed and two days old.

    Beside them are objects of other histories, of another format and of a killed computation; one more segment is
    younger.
    """
    assert run_segments("seal")[:2] == (0, ["sealed"] * 4)
    (folder,) = (tmp_path / "sealed").iterdir()
    _, _, _, chain_hash, own_format = list_segment_files(tmp_path)[0].name.split("-")
    foreign_hash = "00" * 32  # sorts before the ledger's own hash
    old = [
        f"numbers-0-20-{foreign_hash}-{own_format}", f"numbers-0-20-{chain_hash}-00000000", "out-1", "out-2",
        f"segment-0-20-{foreign_hash}-{own_format}", f"segment-0-20-{chain_hash}-00000000",
        f"segment-900-920-{foreign_hash}-{own_format}",
    ]  # fmt: skip
    young = f"segment-20-40-{foreign_hash}-{own_format}"
    for name in (*old, young):
        (folder / name).write_bytes(b"12345")
    for path in folder.iterdir():
        if path.name != young:
            os.utime(path, (path.stat().st_mtime - 2 * 86_400,) * 2)
    return old


@pytest.mark.slow
def test_prune_deletes_old_unused_objects(
    unused_objects: list[str], run_segments: Callable[[str], Any], ledger: str, ratings: Ratings, tmp_path: Path
) -> None:
    """`prune` deletes day-old segments of other histories and formats, and leftovers of killed computations; own
    segments stay.
    """
    (folder,) = (tmp_path / "sealed").iterdir()
    before = {path.name for path in folder.iterdir()}
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    preview = json.loads(ratings(*prune, "--dry-run", "--format", "json", db=ledger).stdout)
    assert {path.name for path in folder.iterdir()} == before
    assert ratings(*prune, "--dry-run", db=ledger).stdout.splitlines() == [
        "what     from   to  why                 objects   MB",
        "numbers     1   20  of another history        1  0.0",
        "numbers     1   20  of another format         1  0.0",
        "out                 left behind               2  0.0",
        "segment     1   20  of another history        1  0.0",
        "segment     1   20  of another format         1  0.0",
        "segment   901  920  of another history        1  0.0",
        f"7 objects would be deleted in {folder}; kept because younger than a day: 1",
    ]
    result = ratings(*prune, "--format", "json", db=ledger)
    assert json.loads(result.stdout) == {**preview, "dry_run": False}
    assert [row["name"] for row in preview["rows"]] == unused_objects
    assert preview["rows"][0] == {"name": unused_objects[0], "why": "of another history", "bytes": 5}
    assert (preview["segments"], preview["dry_run"], preview["young"]) == (str(folder), True, 1)
    assert {path.name for path in folder.iterdir()} == before - {*unused_objects}
    assert run_segments("list")[1] == ["sealed", "of another history", "sealed", "sealed", "sealed"]
    listing = ratings("segments", "list", "--segments", tmp_path / "sealed", db=ledger).stdout
    assert listing.endswith("\nto delete segments of another history once they are a day old: ratings segments prune\n")
    nothing_to_delete = f"nothing to delete in {folder}; kept because younger than a day: 1\n"
    assert ratings(*prune, db=ledger).stdout == nothing_to_delete


@pytest.mark.slow_cases
def test_prune_refuses_during_computations(
    unused_objects: list[str], ledger: str, ratings: Ratings, tmp_path: Path
) -> None:
    """`prune` deletes nothing during a computation, here, elsewhere or unknown, until its mark is a day old."""
    (folder,) = (tmp_path / "sealed").iterdir()
    running = folder / "nonce-1"
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    for written in (f"nonce-1 {name_this_process()}", "nonce-1 elsewhere 1 1", "nonce-1"):
        running.write_text(written)
        before = {path.name for path in folder.iterdir()}
        result = ratings(*prune, db=ledger)
        assert (result.exit_code, result.stdout) == (4, "")
        assert f"a computation uses {folder}, or was killed on another machine less than a day ago;" in result.stderr
        assert {path.name for path in folder.iterdir()} == before
    assert ratings(*prune, "--dry-run", db=ledger).exit_code == 0
    os.utime(running, (running.stat().st_mtime - 2 * 86_400,) * 2)
    assert ratings(*prune, db=ledger).exit_code == 0
    assert {path.name for path in folder.iterdir()} == before - {*unused_objects, "nonce-1"}


@pytest.mark.slow
def test_prune_ignores_killed_local_computation(
    unused_objects: list[str], ledger: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A computation whose process is gone from this machine does not stop `prune`, however recent it is."""
    prune = ("segments", "prune", "--segments", tmp_path / "sealed")
    with start_endless_computation(ledger, tmp_path / "sealed") as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "begun\n"
        assert ratings(*prune, db=ledger).exit_code == 4
        killed.kill()
    result = ratings(*prune, db=ledger)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(
        "kept because younger than a day: 2\n"
    )  # a segment, and the mark of the killed computation
    (folder,) = (tmp_path / "sealed").iterdir()
    assert not {path.name for path in folder.iterdir()} & {*unused_objects}


@pytest.mark.slow
def test_segments_of_another_format_are_sealed_again(
    run_segments: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments of an earlier format are not read but sealed again; their numbers only count earlier players."""
    with monkeypatch.context() as patch:
        # an earlier format, whose numbers also counted cells
        use_segment_format(patch, "d2061d05")
        assert run_segments("seal")[1:3] == (["sealed"] * 4, 80)
    code, states, sealed, _ = run_segments("list")
    assert (code, sorted(states), sealed) == (0, ["not sealed"] * 4 + ["of another history"] * 4, 0)
    assert sorted(run_segments("seal")[1]) == ["of another history"] * 4 + ["sealed"] * 4
    before = 0
    for path in list_segment_files(tmp_path):
        if not path.name.endswith("d2061d05"):
            about, players = read_numbers_object(path)
            assert about == {"players_before": before}
            before += len(players)
    assert before > 0


@pytest.mark.slow
def test_short_log_is_rebuilt_locally(
    ledger: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log without a whole segment is rebuilt locally despite `--on`, with a message; a bad engine is rejected."""
    elsewhere = ("--on", "processes:1", "--segments", tmp_path / "sealed")
    set_thresholds(monkeypatch, segment_events=1_000_000)
    result = ratings("rebuild", *elsewhere, db=ledger)
    assert (result.exit_code, list_segment_files(tmp_path)) == (0, [])
    assert ", fewer than a segment of 1,000,000; nothing is sealed, and this process does the work instead of --on" in (
        result.stderr
    )
    assert ratings("rebuild", "--on", "nonsense", db=ledger).exit_code == 2
    set_thresholds(monkeypatch, segment_events=20)
    assert "instead of --on" not in ratings("rebuild", *elsewhere, db=ledger).stderr
    assert list_segment_files(tmp_path) != []
