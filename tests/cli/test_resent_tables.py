"""A table that is imported again: what was put right in it after a correction or a rename is there already."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from correction_helpers import Ratings, position

HEADER = "game_id,occurred_at,game,1st,2nd,3rd,city\n"
ROWS = {
    "g-1": "g-1,2024-03-01T12:00:00Z,chess,anna,ben,calra,Ulm\n",
    "g-2": "g-2,2024-03-02T12:00:00Z,chess,ben,clara,anna,Ulm\n",
}
SHEET = HEADER + "".join(ROWS.values())


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess with two games, of which one has a slip of the pen."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input=SHEET).exit_code == 0


@pytest.fixture
def db(copied: Callable[..., str]) -> str:
    """The ledger of `a_club`, in each kind of store."""
    return copied(a_club)


def imported(ratings: Ratings, db: str, content: str) -> dict[str, Any]:
    """What an import of a table tells."""
    return dict(json.loads(ratings("import", "-", "--format", "json", db=db, input=content).stdout))


def refused(ratings: Ratings, db: str, content: str) -> list[str]:
    """The messages of refusals, all of which are id-conflicts."""
    told = imported(ratings, db, content)
    assert {one["code"] for one in told["rejected"]} == {"id-conflict"}
    return [one["message"] for one in told["rejected"]]


def test_given_a_corrected_game_when_the_sheet_says_the_same_then_it_is_there_already(
    db: str, ratings: Ratings
) -> None:
    mended = SHEET.replace("calra", "clara")
    conflicts = refused(ratings, db, mended)
    ratings("correct", "g-1", "anna", "ben", "clara", "--reason", "a slip", db=db)
    before = position(ratings, db)
    late = mended + "g-3,2024-03-03T12:00:00Z,chess,anna,clara,ben,Ulm\n"

    assert conflicts == [
        "the game 'g-1' is recorded already with another content: there 1 anna, 2 ben, 3 calra; here 1 anna, 2 ben, "
        "3 clara; ratings correct puts it right; another game needs another game_id"
    ]
    told = imported(ratings, db, late)
    assert (told["existing"], told["appended"], told["rejected"], told["head"]) == (2, 1, [], before + 1)
    # the sheet as it was is no conflict either
    assert imported(ratings, db, SHEET)["existing"] == 2


def test_given_a_rename_when_the_sheet_has_the_new_name_then_its_games_are_there_already(
    db: str, ratings: Ratings
) -> None:
    ratings("player", "rename", "ben", "benjamin", db=db)

    assert imported(ratings, db, SHEET.replace("ben", "benjamin"))["existing"] == 2
    assert imported(ratings, db, SHEET)["existing"] == 2


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("anna,ben", "ben,anna", "there 1 anna, 2 ben, 3 calra; here 1 ben, 2 anna, 3 calra"),
        ("2024-03-01T12", "2024-03-01T13",
         "there played 2024-03-01T12:00:00.000000Z, here 2024-03-01T13:00:00.000000Z"),
        ("calra,Ulm", "calra,Bonn", "the city differs"),
    ],
)  # fmt: skip
def test_a_sheet_that_says_something_else_is_refused_with_the_difference(
    old: str, new: str, why: str, db: str, ratings: Ratings
) -> None:
    (told,) = refused(ratings, db, SHEET.replace(old, new))
    assert f"with another content: {why}; ratings correct" in told


def test_a_voided_game_is_no_game_of_the_sheet(db: str, ratings: Ratings) -> None:
    ratings("void", "g-1", "--reason", "never played", db=db)

    assert refused(ratings, db, SHEET.replace("calra", "clara")) == [
        "the game 'g-1' is recorded, and voided; another game needs another game_id"
    ]
    assert imported(ratings, db, SHEET)["existing"] == 2


def test_given_json_lines_when_resent_then_only_the_first_record_counts(db: str, ratings: Ratings) -> None:
    ratings("correct", "g-1", "anna", "ben", "clara", "--reason", "a slip", db=db)
    game = json.loads(ratings("games", "g-1", "--format", "json", db=db).stdout)["rows"][0]
    del game["position"]
    line = {"type": "game.recorded", "occurred_at": game.pop("occurred_at"), "data": game}

    assert len(refused(ratings, db, json.dumps(line))) == 1
