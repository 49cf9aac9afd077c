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


def sides(ratings: Ratings, url: str, game: str) -> list[tuple[str, int, int | None]]:
    """The participants of a game with their places and teams."""
    participants = recorded(ratings, url, game)["participants"]
    return [(one["player"], one["place"], one.get("team")) for one in participants]


def record(ratings: Ratings, url: str, *players: str, joint: str = "+") -> Any:
    """What recording a game between sides prints."""
    named = ("--game", "tennis", "--game-id", "g-1", "--new-names", "accept", "--at", "2020-01-01T12:00Z")
    return ratings("record", *named, "--partners", joint, *players, "--format", "json", db=url)


def test_partners_are_one_side(ratings: Ratings, ledger_url: str) -> None:
    """Partners share a place and a team, and ties between sides stay as they are."""
    assert record(ratings, ledger_url, "anna + ben", "cleo+dora=emil", "fay").exit_code == 0
    wanted = [("anna", 1, 1), ("ben", 1, 1), ("cleo", 3, 2), ("dora", 3, 2), ("emil", 3, 3), ("fay", 6, 4)]
    assert sides(ratings, ledger_url, "g-1") == wanted


def test_players_alone_are_no_teams(ratings: Ratings, ledger_url: str) -> None:
    """Without partners in any cell nobody has a team."""
    assert record(ratings, ledger_url, "anna", "ben").exit_code == 0
    assert sides(ratings, ledger_url, "g-1") == [("anna", 1, None), ("ben", 2, None)]


def test_known_id_stays_whole(ratings: Ratings, ledger_url: str) -> None:
    """An id that the ledger knows is not taken apart, alone or as a partner, typed or in a table."""
    known = {"type": "player.registered", "occurred_at": "2019-01-01T12:00:00Z", "data": {"player": "C++"}}
    assert enter(ratings, ledger_url, json.dumps(known) + "\n")["appended"] == 1
    assert record(ratings, ledger_url, "C++ + ben", "anna+dora").exit_code == 0
    assert [name for name, _, _ in sides(ratings, ledger_url, "g-1")] == ["C++", "ben", "anna", "dora"]
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,C++,anna + ben=dora\n"
    told = enter(ratings, ledger_url, text, "--partners", "+", "--new-names", "accept")
    assert told["appended"] == 1
    assert sides(ratings, ledger_url, "g-2") == [("C++", 1, 1), ("anna", 2, 2), ("ben", 2, 2), ("dora", 2, 3)]


def test_missing_partner_is_refused(ratings: Ratings, ledger_url: str) -> None:
    """A joint with nobody beside it is refused, typed or in a table."""
    told = record(ratings, ledger_url, "anna +", "ben")
    assert (told.exit_code, json.loads(told.stdout)["rejected"][0]["code"]) == (1, "bad-identifier")
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,anna + ,ben\n"
    assert enter(ratings, ledger_url, text, "--partners", "+")["rejected"][0]["code"] == "bad-identifier"


@pytest.mark.parametrize(("joint", "tie"), [("=", ""), (" ", ""), ("/", "/"), ("/", " / ")])
def test_joints_of_ties_and_partners_differ(joint: str, tie: str, ratings: Ratings, ledger_url: str) -> None:
    """The same text for ties and partners is refused, as is one that is empty."""
    text = "game_id,occurred_at,game,1st,2nd\ng-2,2020-01-01T12:00:00Z,tennis,anna,ben\n"
    ties = ("--ties", tie) if tie else ()
    refused = ratings("import", "-", "--partners", joint, *ties, db=ledger_url, input=text.encode())
    assert (refused.exit_code, "--partners" in refused.stderr) == (2, True)
    if not tie:
        assert record(ratings, ledger_url, "anna", "ben", joint=joint).exit_code == 2
