"""Columns of tables for teams, clubs, the home side and numbers; and partners in one cell."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Ratings = Callable[..., Any]
LONG_TABLE = """game_id,occurred_at,game,player,place,team,club,home,numbers.round,numbers.aces
g-1,2020-01-01T12:00:00Z,tennis,anna,1,1,TC Rot,yes,3,7
g-1,2020-01-01T12:00:00Z,tennis,ben,1,1,,,3,
g-1,2020-01-01T12:00:00Z,tennis,cleo,2,reds,TC Blau,no,3,0
g-1,2020-01-01T12:00:00Z,tennis,dora,2,reds,,,3,
"""


def import_table(ratings: Ratings, url: str, text: str, *arguments: str) -> Any:
    """Import a table and return the printed JSON."""
    result = ratings("import", "-", *arguments, "--format", "json", db=url, input=text.encode())
    return json.loads(result.stdout)


def load_game(ratings: Ratings, url: str, game: str) -> Any:
    """Return the numbers and the participants of a recorded game."""
    rows = json.loads(ratings("games", game, "--format", "json", db=url).stdout)["rows"]
    return {name: value for name, value in rows[0].items() if name in ("numbers", "participants")}


def test_long_table_has_sides_and_numbers(ratings: Ratings, ledger_url: str) -> None:
    """A row has its player's team, club and home; a number that all rows share is the game's."""
    assert import_table(ratings, ledger_url, LONG_TABLE)["appended"] == 1
    game = load_game(ratings, ledger_url, "g-1")
    assert game["numbers"] == {"round": 3}
    members = ("team", "club", "home", "numbers")
    assert [[participant.get(name) for name in members] for participant in game["participants"]] == [
        [1, "TC Rot", True, {"aces": 7}],
        [1, None, None, None],
        ["reds", "TC Blau", False, {"aces": 0}],
        ["reds", None, None, None],
    ]
    assert import_table(ratings, ledger_url, LONG_TABLE)["existing"] == 1


def test_wide_table_has_numbers_of_the_game(ratings: Ratings, ledger_url: str) -> None:
    """A number in a row per game, and a number set for all rows, are numbers of the game."""
    text = "game_id,occurred_at,game,1st,2nd,numbers.length\ng-2,2020-01-01T12:00:00Z,tennis,anna,ben,11\n"
    assert import_table(ratings, ledger_url, text, "--set", "numbers.round=2")["appended"] == 1
    assert load_game(ratings, ledger_url, "g-2")["numbers"] == {"length": 11, "round": 2}


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
    """An invalid side or number in a cell is refused with its code."""
    assert [
        rejection["code"] for rejection in import_table(ratings, ledger_url, LONG_TABLE.replace(old, new))["rejected"]
    ][:1] == [code]


def test_home_and_away_columns_have_players(ratings: Ratings, ledger_url: str) -> None:
    """In a table with a row per game and a result, the columns Home and Away have the two players."""
    text = "Date,Home,Away,Result\n2020-01-01,anna,ben,2-1\n"
    assert import_table(ratings, ledger_url, text, "--set", "game=tennis", "--zone", "UTC")["appended"] == 1
    participants = load_game(ratings, ledger_url, "2020-01-01-1")["participants"]
    assert [participant["player"] for participant in participants] == ["anna", "ben"]


def test_correction_by_table_changes_numbers_alone(ratings: Ratings, ledger_url: str, tmp_path: Any) -> None:
    """A table with one number corrects that number and keeps the other numbers and the teams."""
    assert import_table(ratings, ledger_url, LONG_TABLE)["appended"] == 1
    game_before = load_game(ratings, ledger_url, "g-1")
    (tmp_path / "round.csv").write_text("game_id,numbers.round\ng-1,4\n", encoding="utf-8")
    result = ratings("correct", "--file", tmp_path / "round.csv", "--reason", "wrong", db=ledger_url)
    assert result.exit_code == 0, result.stderr
    assert load_game(ratings, ledger_url, "g-1") == game_before | {"numbers": {"round": 4}}


def list_sides(ratings: Ratings, url: str, game: str) -> list[tuple[str, int, int | None]]:
    """Return the participants of a game with their places and teams."""
    participants = load_game(ratings, url, game)["participants"]
    return [(participant["player"], participant["place"], participant.get("team")) for participant in participants]


def record_game(ratings: Ratings, url: str, *players: str, joint: str = "+") -> Any:
    """Record a game between sides and return the result of the command."""
    options = ("--game", "tennis", "--game-id", "g-1", "--new-names", "accept", "--at", "2020-01-01T12:00Z")
    return ratings("record", *options, "--partners", joint, *players, "--format", "json", db=url)


def test_partners_are_one_side(ratings: Ratings, ledger_url: str) -> None:
    """Partners share a place and a team, and ties between sides stay ties."""
    assert record_game(ratings, ledger_url, "anna + ben", "cleo+dora=emil", "fay").exit_code == 0
    expected = [("anna", 1, 1), ("ben", 1, 1), ("cleo", 3, 2), ("dora", 3, 2), ("emil", 3, 3), ("fay", 6, 4)]
    assert list_sides(ratings, ledger_url, "g-1") == expected


def test_players_alone_are_no_teams(ratings: Ratings, ledger_url: str) -> None:
    """Without partners in any cell, no player has a team."""
    assert record_game(ratings, ledger_url, "anna", "ben").exit_code == 0
    assert list_sides(ratings, ledger_url, "g-1") == [("anna", 1, None), ("ben", 2, None)]


def test_known_id_stays_whole(ratings: Ratings, ledger_url: str) -> None:
    """A known id that contains the joint of partners is not split, on the command line and in a table."""
    registration = {"type": "player.registered", "occurred_at": "2019-01-01T12:00:00Z", "data": {"player": "C++"}}
    assert import_table(ratings, ledger_url, json.dumps(registration) + "\n")["appended"] == 1
    assert record_game(ratings, ledger_url, "C++ + ben", "anna+dora").exit_code == 0
    assert [name for name, _, _ in list_sides(ratings, ledger_url, "g-1")] == ["C++", "ben", "anna", "dora"]
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,C++,anna + ben=dora\n"
    summary = import_table(ratings, ledger_url, text, "--partners", "+", "--new-names", "accept")
    assert summary["appended"] == 1
    assert list_sides(ratings, ledger_url, "g-2") == [("C++", 1, 1), ("anna", 2, 2), ("ben", 2, 2), ("dora", 2, 3)]


def test_missing_partner_is_refused(ratings: Ratings, ledger_url: str) -> None:
    """A joint without a partner beside it is refused, on the command line and in a table."""
    result = record_game(ratings, ledger_url, "anna +", "ben")
    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "bad-identifier")
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,anna + ,ben\n"
    assert import_table(ratings, ledger_url, text, "--partners", "+")["rejected"][0]["code"] == "bad-identifier"


@pytest.mark.parametrize(("joint", "tie"), [("=", ""), (" ", ""), ("/", "/"), ("/", " / ")])
def test_joints_of_ties_and_partners_differ(joint: str, tie: str, ratings: Ratings, ledger_url: str) -> None:
    """The same text as the joint of ties and of partners is refused, and so is a blank joint."""
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,anna,ben\n"
    ties = ("--ties", tie) if tie else ()
    result = ratings("import", "-", "--partners", joint, *ties, db=ledger_url, input=text.encode())
    assert (result.exit_code, "--partners" in result.stderr) == (2, True)
    if not tie:
        assert record_game(ratings, ledger_url, "anna", "ben", joint=joint).exit_code == 2
