"""Messages about lists that would differ, unknown or close names, unlikely dates, and mistyped ladders."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"
DIFFERENCE_HEADING = "Published, and would come out differently today:"


@pytest.fixture
def db(tmp_path: Path, ratings: Ratings) -> str:
    """Return a ledger with one game and a published list."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0
    record_game(ratings, url, "g-1", "2024-11-01", "Anna", "Ben")
    assert ratings("publish", LADDER, "--as-of", "2024-11-05", db=url).exit_code == 0
    return url


def record_game(ratings: Ratings, db: str, game_id: str, at: str, *players: str) -> Any:
    result = ratings("record", "--game", "chess", "--game-id", game_id, "--at", at, *players, db=db)
    assert result.exit_code == 0, result
    return result


def test_game_moved_past_list_is_reported(ratings: Ratings, db: str) -> None:
    """Moving a game past a published list's date is reported even if nobody's points change."""
    moved = ratings("correct", "g-1", "--at", "2024-11-10", "--reason", "the wrong week", db=db)
    assert moved.stdout.splitlines()[1] == "No points change."
    assert DIFFERENCE_HEADING in moved.stdout
    assert "2 removed" in ratings("diff", "published", "now", db=db).stdout


def test_voided_cause_ends_the_difference(ratings: Ratings, db: str) -> None:
    """Once the game that made a published list differ is voided, the list no longer differs."""
    late = record_game(ratings, db, "g-2", "2024-11-02", "Anna", "Ben")
    assert DIFFERENCE_HEADING in late.stdout
    voided = ratings("void", "g-2", "--reason", "a slip", db=db)
    assert voided.exit_code == 0
    assert DIFFERENCE_HEADING not in voided.stdout
    assert "No row differs." in ratings("diff", "published", "now", db=db).stdout


@pytest.mark.parametrize("form", ["table", "json"])
def test_unknown_player_gets_a_suggestion(form: str, ratings: Ratings, db: str) -> None:
    """Asking for the changes of an unknown player fails and suggests the name that was meant."""
    result = ratings("explain", "--change", "Anaa", LADDER, "--from", "1", "--format", form, db=db)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: player-unknown: nothing is recorded about 'Anaa'; did you mean Anna?\n"


def test_known_player_off_ladder_is_fine(ratings: Ratings, db: str) -> None:
    """`explain` and `history` of a known player who is not on a ladder give no rows and no error."""
    for command in (("explain", "--from", "1", "--change"), ("explain",), ("history",)):
        result = ratings(*command, "Anna", "elo-chess/3-4", db=db)
        assert (result.exit_code, result.stdout) == (0, ""), result
    empty = json.loads(ratings("explain", "Anna", "elo-chess/3-4", "--format", "json", db=db).stdout)
    assert (empty["rank"], empty["games"], empty["terms"]) == (None, [], [])


def test_game_before_any_version_is_noted(ratings: Ratings, db: str) -> None:
    """Recording a game from before any ruleset version notes that it is on no ladder, and why."""
    result = ratings(
        "record", "--game", "chess", "--game-id", "old", "--at", "1850-01-01", "--any-date", "Ben", "Anna", db=db
    )
    assert result.stderr == (
        "note: old is on no ladder: elo-chess was not in force yet; its first version applies from 1900-01-01\n"
    )


def test_json_lists_every_refused_line(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """When close and tied names are refused, the JSON output lists every offending line."""
    file = tmp_path / "t.csv"
    file.write_text(
        "game_id,occurred_at,1st,2nd,3rd\n"
        "a1,2024-01-01 20:00,Annaa Berta,Ben,\n"
        "a2,2024-01-02 20:00,Annaa Berta,Ben,\n"
        "a3,2024-01-03 20:00,Anna Berta=Cleo & Dora,Ben,\n"
        "a4,2024-01-03 20:00,Cleo & Dora,Anna Berta,\n",
        encoding="utf-8",
    )
    for options in ((), ("--keep-going",)):
        result = ratings("import", file, "--set", "game=chess", "--format", "json", "--dry-run", *options, db=db)
        lines = sorted({rejection["line"] for rejection in json.loads(result.stdout)["rejected"]})
        assert lines == [4, 5], result.stdout
    assert ratings("import", file, "--set", "game=chess", db=db).stdout.startswith("0 appended, 4 refused")


def test_every_kind_of_wrong_time_reported(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """An import with several kinds of wrong times reports one line of each kind."""
    file = tmp_path / "t.csv"
    times = ["2024-12-31 24:00", "2024-12-30 25:00", "2024-02-30", "2024-02-31", "2024-W01-1"]
    rows = "".join(f"b{number},{time},Anna,Ben\n" for number, time in enumerate(times))
    file.write_text(f"game_id,occurred_at,1st,2nd\n{rows}", encoding="utf-8")
    messages = ratings("import", file, "--set", "game=chess", db=db).stderr.splitlines()
    assert [line.split(" ")[0] for line in messages] == [f"{file}:2:", f"{file}:4:", f"{file}:6:"]


def test_correction_in_the_future_is_refused(ratings: Ratings, db: str) -> None:
    """Importing a correction dated in the future is refused unless `--any-date` is given."""
    event = {"type": "game.corrected", "occurred_at": "2040-03-13T10:00:00Z", "data": {
        "game_id": "g-1", "reason": "r", "game": {"game_id": "g-1", "game": "chess", "participants": [
            {"player": "Ben", "place": 1}, {"player": "Anna", "place": 2}]}}}  # fmt: skip
    result = ratings("import", "-", db=db, input=json.dumps(event))
    assert (result.exit_code, "unlikely-date" in result.stderr) == (1, True)
    assert ratings("import", "-", "--any-date", db=db, input=json.dumps(event)).exit_code == 0


def test_mistyped_ladder_gets_a_suggestion(ratings: Ratings, db: str) -> None:
    """A mistyped ladder or ruleset version gets the right one as a suggestion."""
    adjusted = ratings("adjust", "elo-ches/all", "Anna", "3", "--reason", "r", db=db)
    assert "did you mean elo-chess?" in adjusted.stderr
    standings = ratings("standings", LADDER, "--rules", "elo-ches@1", db=db)
    assert "did you mean elo-chess@1?" in standings.stderr


@pytest.mark.parametrize("name", ["An\u200bna", "An\u00adna", "Anna\ufeff"])
def test_invisible_character_in_name_is_refused(name: str, ratings: Ratings, db: str) -> None:
    """A new player name that contains an invisible character is refused, and the message says so."""
    result = ratings("record", "--game", "chess", "--game-id", "g-9", "--at", "2024-11-20", name, "Ben", db=db)
    assert (result.exit_code, "bad-identifier" in result.stderr) == (1, True), result
    assert "; leave it out" in result.stderr


@pytest.mark.parametrize(("known", "new"), [("محمد", "مُحمد"), ("שלום", "שָׁלוֹם")])
def test_vowel_marks_make_names_close(known: str, new: str, ratings: Ratings, db: str) -> None:
    """A new name that differs from a known one only in vowel marks is refused as a close name."""
    record_game(ratings, db, "g-2", "2024-11-02", known, "Ben")
    result = ratings("record", "--game", "chess", "--game-id", "g-9", "--at", "2024-11-20", new, "Ben", db=db)
    assert (result.exit_code, "close-name" in result.stderr) == (1, True), result


def test_close_name_refusal_names_other_file(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """If a new name is close to one in another imported file, the refusal names that file and line."""
    table, events = tmp_path / "m.csv", tmp_path / "m.jsonl"
    table.write_text("game_id,occurred_at,1st,2nd\nm2,2024-11-03 20:00,Karolina,Ben\n", encoding="utf-8")
    game = {
        "game_id": "m1",
        "game": "chess",
        "participants": [{"player": "Karoline", "place": 1}, {"player": "Ben", "place": 2}],
    }
    events.write_text(
        json.dumps({"type": "game.recorded", "occurred_at": "2024-11-02T10:00:00Z", "data": game}), encoding="utf-8"
    )
    result = ratings("import", events, table, "--set", "game=chess", db=db)
    assert f"new: 'Karolina': did you mean 'Karoline', new in line 1 of {events}?" in result.stderr
