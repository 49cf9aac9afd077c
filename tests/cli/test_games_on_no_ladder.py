"""A game that is on no ladder is recorded, with a note that says why."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from list_games import build_list_game
from output_filters import remove_newcomer_notes
from stores import make_ruled_ledger

Ratings = Callable[..., Any]
AT = "2010-05-01T20:00:00Z"
SIDES = [{"player": "anna", "side": "red"}, {"player": "ben", "side": "blue"}]
CASES = {
    "a misspelled game": (
        build_list_game("g", AT, "anna ben", game="blue-maxx"),
        "no ruleset scores games of blue-maxx; did you mean blue-max?",
    ),
    "without its league": (
        build_list_game("g", AT, "anna ben", game="blue-max", kind="battle", participants=SIDES),
        "youplay-bluemax needs the game's league; each league has its own ladders; "
        "for a whole table: --set league=LEAGUE",
    ),
    "of another kind": (
        build_list_game("g", AT, "anna ben", game="blue-max", league="L"),
        "youplay-bluemax@2 scores only games of kind battle; this one is of kind placing",
    ),
    "without any label": (
        build_list_game("g", AT, "anna ben", city=None, group=None),
        "catan-elo needs the game's group; catan-monthly needs the game's city and group; "
        "catan-open needs the game's group; catan-annual needs the game's city and group; "
        "each group and city has its own ladders; "
        "for a whole table: --set group=GROUP --set city=CITY",
    ),
}
GAMES_WITHOUT_NOTE = {
    "on all its ladders": build_list_game("g", AT, "anna ben"),
    "on some of them": build_list_game("g", AT, "anna ben", city=None),
    "not rated": build_list_game("g", AT, "anna ben", rated=False),
}


pytestmark = pytest.mark.ledger(make=make_ruled_ledger, store="sqlite")


@pytest.mark.parametrize("command", [("import", "-"), ("record",), ("import", "-", "--format", "json")])
@pytest.mark.parametrize(("event", "reason"), CASES.values(), ids=CASES)
def test_game_on_no_ladder_is_explained(
    event: dict[str, Any], reason: str, command: tuple[str, ...], db: str, ratings: Ratings
) -> None:
    """Recording a game that belongs on no ladder succeeds and notes the reason."""
    result = ratings(*command, db=db, input=json.dumps(event))

    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, f"note: g is on no ladder: {reason}\n")
    assert "1 appended" in result.stdout or json.loads(result.stdout)["appended"] == 1


@pytest.mark.parametrize("event", GAMES_WITHOUT_NOTE.values(), ids=GAMES_WITHOUT_NOTE)
def test_unrated_game_or_game_on_a_ladder_gets_no_note(event: dict[str, Any], db: str, ratings: Ratings) -> None:
    """Recording a game that is on at least one ladder, or that is not rated, prints no note."""
    result = ratings("import", "-", db=db, input=json.dumps(event))

    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")


def test_import_gives_each_reason_once(db: str, ratings: Ratings) -> None:
    """An import gives each no-ladder reason once with the number of games, and none at all if a line is refused."""
    lines = [json.dumps(build_list_game(f"g{number}", AT, "anna ben", game="go")) for number in range(3)]
    bad = json.dumps(build_list_game("bad", AT, "anna anna"))

    assert "on no ladder" not in ratings("import", "-", db=db, input="\n".join([*lines, bad])).stderr
    assert remove_newcomer_notes(ratings("import", "-", db=db, input="\n".join(lines)).stderr) == (
        "note: 3 games, such as g0, are on no ladder: no ruleset scores games of go; "
        "to publish one: ratings rules publish --shipped elo --game go\n"
    )
    assert ratings("import", "-", db=db, input="\n".join(lines)).stderr == ""


def test_single_game_shows_all_recorded_details(db: str, ratings: Ratings) -> None:
    """`games` with one game ID shows everything that was recorded about that game."""
    sides = [{**SIDES[0], "units": 3, "units_lost": 1, "score": 40, "kills": 1}, {**SIDES[1], "units_lost": 1}]
    event = build_list_game("b-1", AT, "anna ben", game="blue-max", kind="battle", league="L", participants=sides)
    ratings("record", db=db, input=json.dumps(event))

    lines = [line.split() for line in ratings("games", "b-1", db=db).stdout.splitlines()]
    assert ["league", "L"] in lines
    assert lines[-3:] == [
        ["player", "kills", "score", "side", "units", "units_lost"],
        ["anna", "1", "40", "red", "3", "1"],
        ["ben", "blue", "1"],
    ]
    stdout = ratings("games", db=db).stdout
    assert "ben (blue), anna (red, 40)" in stdout
    assert "anna (red), ben (blue)" not in stdout
