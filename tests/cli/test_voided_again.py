"""Recording voided games again prints notes that they do not count; the commands that the notes name work."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_json
from stores import make_empty_ledger

import ratings_ledger as rl

LADDER = "elo-chess/all"
SHEET = """game_id,occurred_at,1st,2nd
g1,2026-01-13 10:00,anna,ben
g2,2026-01-14 10:00,anna,ben
"""
MORE = SHEET.replace("g1", "g3").replace("g2", "g4")
NEW_YORK, BERLIN = (["--set", "game=chess", "--zone", zone] for zone in ("America/New_York", "Europe/Berlin"))
RECORD = ["record", "--game", "chess", "--game-id", "g9", "--at", "2026-01-20T20:00Z", "anna", "ben"]


def make_chess_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger as `init --for chess` does."""
    make_empty_ledger(ratings, url)
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0


@pytest.fixture
def db(copy_ledger: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the ledger of `make_chess_ledger`, in each kind of store, beside a sheet of two games."""
    (tmp_path / "c.csv").write_text(SHEET)
    monkeypatch.chdir(tmp_path)
    return copy_ledger(make_chess_ledger)


def run_command(ratings: Ratings, db: str, *command: object) -> Any:
    """Return the result of a command, which must succeed."""
    result = ratings(*command, db=db)
    assert result.exit_code == 0, result
    return result


def follow(ratings: Ratings, db: str, command: str, *options: str) -> None:
    """Run a command as a note gives it, with a reason in place of TEXT."""
    words = ["why" if word == "TEXT" else word for word in shlex.split(command)]
    assert words[0] == "ratings"
    run_command(ratings, db, *words[1:], *options, *(["--yes"] if words[1] == "undo" else []))


def list_notes(ratings: Ratings, db: str, *command: object) -> list[str]:
    """Return the notes of a command about voided games; it must append nothing."""
    output = run_command(ratings, db, *command)
    assert "0 appended" in output.stdout or "0 would be appended" in output.stdout
    return [line for line in output.stderr.splitlines() if "voided" in line]


def list_times(ratings: Ratings, db: str) -> dict[str, str]:
    """Return when counted games were played, by game_id."""
    rows = read_json(ratings, db, "games")["rows"]
    return {row["game_id"]: row["occurred_at"][:19] for row in rows if "voided" not in row}


@pytest.mark.slow_cases
def test_import_again_after_an_undo_names_the_voided_games(db: str, ratings: Ratings) -> None:
    """Importing a file again after its import was undone says that its games are voided, also in a preview, with
    `--sync` and in JSON; the command that the note names makes the games count again.
    """
    again = ["import", "c.csv", *NEW_YORK]
    run_command(ratings, db, *again)
    before = read_json(ratings, db, "standings", LADDER)["rows"]
    run_command(ratings, db, "undo", "--yes")
    assert json.loads(run_command(ratings, db, *again, "--format", "json").stdout)["voided"] == ["g1", "g2"]
    expected = ["note: 2 games are voided, so they do not count: g1, g2; to make them count again: ratings undo 8"]
    for options in ([], ["--preview"], ["--dry-run"], ["--sync"]):
        assert list_notes(ratings, db, *again, *options) == expected
    follow(ratings, db, "ratings undo 8")
    assert read_json(ratings, db, "standings", LADDER)["rows"] == before
    assert list_notes(ratings, db, *again) == []
    assert "voided" not in json.loads(run_command(ratings, db, *again, "--format", "json").stdout)


@pytest.mark.slow_cases
def test_game_recorded_again_after_an_undo(db: str, ratings: Ratings) -> None:
    """After an undo, recording the game again names a second undo; after a void, it names a reinstatement."""
    run_command(ratings, db, *RECORD)
    run_command(ratings, db, "undo", "--yes")
    assert list_notes(ratings, db, *RECORD) == [
        "note: g9 is voided, so it does not count; to make it count again: ratings undo 4"
    ]
    follow(ratings, db, "ratings undo 4")
    run_command(ratings, db, "void", "g9", "--reason", "a friendly")
    reinstatement = "ratings reinstate g9 --reason TEXT"
    assert list_notes(ratings, db, *RECORD) == [
        f"note: g9 is voided, so it does not count; to make it count again: {reinstatement}"
    ]
    follow(ratings, db, reinstatement)
    assert {*list_times(ratings, db)} == {"g9"}


@pytest.mark.slow_cases
def test_each_of_several_voids_has_a_note(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """Games that were voided by different commands have separate notes, three at most; a note also says what else its
    undo reverts.
    """
    (tmp_path / "d.csv").write_text(MORE)
    run_command(ratings, db, "import", "c.csv", "d.csv", *NEW_YORK)
    run_command(ratings, db, "void", "--batch", "d.csv", "--reason", "another club's")
    for name in ("g1", "g2"):
        run_command(ratings, db, "void", name, "--reason", "a friendly")
    assert list_notes(ratings, db, "import", "c.csv", "d.csv", *NEW_YORK) == [
        "note: g1 is voided, so it does not count; to make it count again: ratings reinstate g1 --reason TEXT",
        "note: g2 is voided, so it does not count; to make it count again: ratings reinstate g2 --reason TEXT",
        "note: 2 games are voided, so they do not count: g3, g4; to make them count again: ratings undo 10",
    ]
    (tmp_path / "d.csv").write_text(MORE.rpartition("g4")[0])
    assert list_notes(ratings, db, "import", "d.csv", *NEW_YORK) == [
        "note: g3 is voided, so it does not count; to make it count again: ratings undo 10 (this also reverts 1 other "
        "void)"
    ]
    for name in ("g3", "g4"):
        run_command(ratings, db, "reinstate", name, "--reason", "r")
        run_command(ratings, db, "void", name, "--reason", "r")
    (tmp_path / "d.csv").write_text(MORE)
    notes = list_notes(ratings, db, "import", "c.csv", "d.csv", *NEW_YORK)
    assert len(notes) == 4
    assert notes[-1] == "note: 1 more game is voided; to see who voided a game, and why: ratings log GAME"


def test_export_with_a_void_is_imported_without_a_note(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export is imported again without a note about its voided game, because it contains the void itself."""
    run_command(ratings, db, *RECORD)
    run_command(ratings, db, "void", "g9", "--reason", "r")
    (tmp_path / "e.jsonl").write_text(run_command(ratings, db, "export", "events").stdout)
    assert list_notes(ratings, db, "import", "e.jsonl") == []


@pytest.mark.parametrize("options", [[], ["--sync", "--yes"]], ids=["import", "sync"])
def test_changed_content_after_an_undo_is_imported_by_named_commands(
    options: list[str],
    copy_ledger_file: Callable[..., str],
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an import in the wrong zone was undone, an import in the right zone is refused and names two commands; both
    together give the games their right times.
    """
    db = copy_ledger_file(make_chess_ledger)
    (tmp_path / "c.csv").write_text(SHEET)
    monkeypatch.chdir(tmp_path)
    run_command(ratings, db, "import", "c.csv", *NEW_YORK)
    run_command(ratings, db, "undo", "--yes")
    refused = ratings("import", "c.csv", *BERLIN, *options, db=db)
    assert refused.exit_code == 1
    first, second = [line for line in refused.stderr.splitlines() if "id-conflict" in line]
    named_commands = re.search(
        r"; take that back with (ratings .*) \(for this game only: .*\); then run (ratings .*) with the same options",
        first,
    )
    assert named_commands is not None, first
    assert second == "c.csv:3: id-conflict: the game 'g2' was recorded, and voided at position 7"
    follow(ratings, db, named_commands[1])
    follow(ratings, db, named_commands[2], *BERLIN)
    assert list_times(ratings, db) == {"g1": "2026-01-13T09:00:00", "g2": "2026-01-14T09:00:00"}
    assert list_notes(ratings, db, "import", "c.csv", *BERLIN) == []


@pytest.mark.slow_cases
def test_edited_row_of_a_voided_game_is_imported_by_named_commands(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """After a game of a sheet was voided and its row edited, an import names commands that record the edited row."""
    run_command(ratings, db, "import", "c.csv", *NEW_YORK)
    run_command(ratings, db, "void", "g2", "--reason", "r")
    (tmp_path / "c.csv").write_text(SHEET.replace("01-14", "01-15"))
    refused = ratings("import", "c.csv", *NEW_YORK, db=db)
    assert (
        "take that back with ratings undo 6 (for this game only: ratings reinstate g2 --reason TEXT); then run ratings "
        "import c.csv --sync with the same options"
    ) in refused.stderr
    follow(ratings, db, "ratings reinstate g2 --reason TEXT")
    follow(ratings, db, "ratings import c.csv --sync", *NEW_YORK, "--yes")
    assert list_times(ratings, db) == {"g1": "2026-01-13T15:00:00", "g2": "2026-01-15T15:00:00"}


@pytest.mark.slow_cases
def test_another_result_of_a_voided_game_is_recorded_by_named_commands(db: str, ratings: Ratings) -> None:
    """A different result of a game whose recording was undone is refused; the message names the undo and `correct`."""
    run_command(ratings, db, *RECORD)
    run_command(ratings, db, "undo", "--yes")
    refused = ratings(*RECORD[:-2], "ben", "anna", db=db)
    assert refused.stderr == (
        "id-conflict: the game 'g9' was recorded, and voided at position 4; take that back with ratings undo 4 (for "
        "this game only: ratings reinstate g9 --reason TEXT); then run ratings correct\n"
    )
    follow(ratings, db, "ratings undo 4")
    follow(ratings, db, "ratings correct g9 ben anna --reason TEXT")
    (row,) = read_json(ratings, db, "games")["rows"]
    assert [participant["player"] for participant in row["participants"]] == ["ben", "anna"]


def test_proposal_says_that_a_game_is_voided(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A proposal of a game that is voided appends nothing and says so, without any note about leagues."""
    db = copy_ledger_file(make_chess_ledger)
    run_command(ratings, db, *RECORD)
    run_command(ratings, db, "void", "g9", "--reason", "never played")
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    data = {"game_id": "g9", "game": "chess", "participants": participants}
    with rl.open(db) as ledger:
        plan = ledger.propose({"type": "game.recorded", "occurred_at": "2026-01-20T20:00:00Z", "data": data}, "mira")
        assert (plan.result.would_append, [*plan.result.voided], plan.result.leagues) == (0, ["g9"], [])
        assert "g9" in " ".join(plan.result.voided_notes)
