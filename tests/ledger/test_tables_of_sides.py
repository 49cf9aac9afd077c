"""Columns of tables for teams, clubs, who is at home, and numbers; and partners in one cell."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Ratings = Callable[..., Any]
LONG = """game_id,occurred_at,game,player,place,team,club,home,numbers.round,numbers.aces
g-1,2020-01-01T12:00:00Z,tennis,anna,1,1,TC Rot,yes,3,7
g-1,2020-01-01T12:00:00Z,tennis,ben,1,1,,,3,
g-1,2020-01-01T12:00:00Z,tennis,cleo,2,reds,TC Blau,no,3,0
g-1,2020-01-01T12:00:00Z,tennis,dora,2,reds,,,3,
"""


def enter(ratings: Ratings, url: str, text: str, *arguments: str) -> Any:
    """What an import of a table prints."""
    found = ratings("import", "-", *arguments, "--format", "json", db=url, input=text.encode())
    return json.loads(found.stdout)


def recorded(ratings: Ratings, url: str, game: str) -> Any:
    """A game as it is recorded."""
    rows = json.loads(ratings("games", game, "--format", "json", db=url).stdout)["rows"]
    return {name: value for name, value in rows[0].items() if name in ("numbers", "participants")}


def test_long_table_has_sides_and_numbers(ratings: Ratings, ledger_url: str) -> None:
    """Every row says its player's team, club and home; a number that all rows share is the game's."""
    assert enter(ratings, ledger_url, LONG)["appended"] == 1
    told = recorded(ratings, ledger_url, "g-1")
    assert told["numbers"] == {"round": 3}
    members = ("team", "club", "home", "numbers")
    assert [[one.get(name) for name in members] for one in told["participants"]] == [
        [1, "TC Rot", True, {"aces": 7}],
        [1, None, None, None],
        ["reds", "TC Blau", False, {"aces": 0}],
        ["reds", None, None, None],
    ]
    assert enter(ratings, ledger_url, LONG)["existing"] == 1


def test_wide_table_has_numbers_of_the_game(ratings: Ratings, ledger_url: str) -> None:
    """A row per game has the game's numbers, and so has a value for all rows."""
    text = "game_id,occurred_at,game,1st,2nd,numbers.length\ng-2,2020-01-01T12:00:00Z,tennis,anna,ben,11\n"
    assert enter(ratings, ledger_url, text, "--set", "numbers.round=2")["appended"] == 1
    assert recorded(ratings, ledger_url, "g-2")["numbers"] == {"length": 11, "round": 2}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("numbers.aces", "numbers.Äces", "unknown-column"),
        (",yes,", ",maybe,", "bad-value"),
        (",3,7", ",3,7.5", "not-an-integer"),
        ("dora,2,reds", "dora,3,reds", "side-disagrees"),
        ("dora,2,reds", "dora,2,", "team-missing"),
    ],
)
def test_wrong_cell_is_refused(old: str, new: str, code: str, ratings: Ratings, ledger_url: str) -> None:
    """What no side or number can be is refused with its code."""
    assert [one["code"] for one in enter(ratings, ledger_url, LONG.replace(old, new))["rejected"]][:1] == [code]


def test_home_and_away_are_still_two_players(ratings: Ratings, ledger_url: str) -> None:
    """In a row per game with a result, the column Home has the first player."""
    text = "Date,Home,Away,Result\n2020-01-01,anna,ben,2-1\n"
    assert enter(ratings, ledger_url, text, "--set", "game=tennis", "--zone", "UTC")["appended"] == 1
    assert [one["player"] for one in recorded(ratings, ledger_url, "2020-01-01-1")["participants"]] == ["anna", "ben"]


def test_correction_by_table_changes_numbers_alone(ratings: Ratings, ledger_url: str, tmp_path: Any) -> None:
    """A table with a number corrects that, and keeps the other numbers and who was in which team."""
    assert enter(ratings, ledger_url, LONG)["appended"] == 1
    before = recorded(ratings, ledger_url, "g-1")
    (tmp_path / "round.csv").write_text("game_id,numbers.round\ng-1,4\n", encoding="utf-8")
    told = ratings("correct", "--file", tmp_path / "round.csv", "--reason", "wrong", db=ledger_url)
    assert told.exit_code == 0, told.stderr
    assert recorded(ratings, ledger_url, "g-1") == before | {"numbers": {"round": 4}}
