"""The same game recorded twice without a time is already there the second time, although the clock has moved on."""

import json

import pytest
from correction_helpers import Ratings, build_event_line, build_game_data, create_small_ledger, read_head, read_json

WITHOUT_TIME = ("record", "--game", "galactic-magnate", "--game-id", "g-9", "cleo", "anna")


pytestmark = pytest.mark.ledger(make=create_small_ledger)


def test_same_game_is_already_there(db: str, ratings: Ratings) -> None:
    """A game recorded again without a time is already there, and nothing is appended."""
    assert ratings(*WITHOUT_TIME, db=db).exit_code == 0
    before = read_head(ratings, db)
    result = ratings(*WITHOUT_TIME, db=db)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "0 appended, 1 already there; the head is 6.\n", "")
    output = json.loads(ratings(*WITHOUT_TIME, "--format", "json", db=db).stdout)
    assert (output["appended"], output["existing"], output["rejected"]) == (0, 1, [])
    assert json.loads(ratings(*WITHOUT_TIME, "--dry-run", "--format", "json", db=db).stdout)["existing"] == 1
    assert read_head(ratings, db) == before


def test_same_json_is_already_there(db: str, ratings: Ratings) -> None:
    """JSON without a time that is recorded twice is already there the second time.

    The JSON is the data of a game, or a whole event with its own id.
    """
    event_with_id = json.loads(
        build_event_line("game.recorded", event_id="mine", **build_game_data("g-11", "anna", "ben"))
    )
    del event_with_id["occurred_at"]
    for line in (json.dumps(build_game_data("g-10", "anna", "ben")), json.dumps(event_with_id)):
        assert ratings("record", db=db, input=line).stdout.startswith("1 appended")
        assert ratings("record", db=db, input=line).stdout.startswith("0 appended, 1 already there")


def test_other_result_is_refused(db: str, ratings: Ratings) -> None:
    """Recording a game again without a time but with another result is refused as a conflict."""
    ratings(*WITHOUT_TIME, db=db)
    before = read_head(ratings, db)
    result = ratings(*WITHOUT_TIME[:-2], "anna", "cleo", db=db)
    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "id-conflict")
    assert "ratings correct" in result.stderr
    assert read_head(ratings, db) == before


def test_other_time_is_refused(db: str, ratings: Ratings) -> None:
    """Recording a game again with another time is refused, since a given time is part of the record."""
    ratings(*WITHOUT_TIME, db=db)
    result = ratings(*WITHOUT_TIME, "--at", "2010-03-05T10:00Z", db=db)
    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "id-conflict")


def test_concurrent_record_is_already_there(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """When two people record the same game at once, the second to append finds it already there."""

    def record_first(*arguments: object, **options: object) -> object:
        monkeypatch.undo()
        assert ratings(*WITHOUT_TIME, db=db).stdout.startswith("1 appended")
        return {}

    monkeypatch.setattr("ratings_ledger.ledger.intake.intake.find_existing", record_first)
    assert ratings(*WITHOUT_TIME, db=db).stdout == "0 appended, 1 already there; the head is 6.\n"


def test_voided_game_gets_a_note(db: str, ratings: Ratings) -> None:
    """Recording a voided game again prints a note that it does not count."""
    ratings(*WITHOUT_TIME, db=db)
    ratings("void", "g-9", "--reason", "a friendly", db=db)
    result = ratings(*WITHOUT_TIME, db=db)
    assert result.stdout.startswith("0 appended, 1 already there")
    assert (
        result.stderr
        == "note: g-9 is voided, so it does not count; to make it count again: ratings reinstate g-9 --reason TEXT\n"
    )
    (game,) = read_json(ratings, db, "games", "g-9")["rows"]
    assert game["voided"] is True
