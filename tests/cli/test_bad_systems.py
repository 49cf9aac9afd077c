"""Impossible games, list names, times and rulesets are refused with a code; odd but valid ones are accepted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import build_event, format_line
from stores import make_ruled_ledger

Ratings = Callable[..., Any]

SHIPPED = Path(__file__).parents[2] / "projections" / "shipped"
POWERS = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
MARCH = "catan-monthly/7/basic/2010-03"


pytestmark = pytest.mark.ledger(make=make_ruled_ledger, store="sqlite")


def format_game(game: str, participants: list[dict[str, Any]], at: str = "2010-03-05T20:00:00Z", **members: Any) -> str:
    """Return the game g as a line of JSON."""
    data = {"game_id": "g", "game": game, "participants": participants, **members}
    return format_line(build_event("game.recorded", at, **data))


def format_catan(at: str = "2010-03-05T20:00:00Z", **members: Any) -> str:
    """Return a game of Catan, by default in city 7 and group basic, as a line of JSON."""
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    return format_game("catan", participants, at, **{"city": "7", "group": "basic", **members})


def format_battle(*fighters: dict[str, Any]) -> str:
    """Return a game of Blue Max with these fighters, whose players are p0, p1 and so on, as a line of JSON."""
    participants = [{"player": f"p{number}", **fighter} for number, fighter in enumerate(fighters)]
    return format_game("blue-max", participants, kind="battle", league="L")


def format_diplomacy(*years: dict[str, int], powers: tuple[str, ...] = POWERS, first: int = 1901) -> str:
    """Return a game of Diplomacy with the centres of each year as a line of JSON."""
    participants = [{"player": f"p{number}", "power": power} for number, power in enumerate(powers)]
    centres = {str(first + number): centres_of_year for number, centres_of_year in enumerate(years)}
    return format_game("diplomacy", participants, kind="diplomacy", league="L", centres=centres)


def run_import(ratings: Ratings, db: str, text: str, *options: str) -> tuple[int, list[str], int]:
    """Run an import and return its exit code, the codes of the rejections, and the number of appended events."""
    result = ratings("import", "-", "--format", "json", *options, db=db, input=text)
    assert "this is a bug" not in result.stderr
    output = json.loads(result.stdout)
    return result.exit_code, [problem["code"] for problem in output["rejected"]], output["appended"]


RED, BLUE = {"side": "red"}, {"side": "blue"}
IMPOSSIBLE_GAMES = {
    "a battle of one side": (format_battle(RED, RED), "battle-sides"),
    "a battle of three sides": (format_battle(RED, BLUE, {"side": "green"}), "battle-sides"),
    "a battle without sides": (format_battle({}, BLUE), "missing-member"),
    "a side without units": (format_battle({**RED, "units": 0}, BLUE), "battle-sides"),
    "more lost than owned": (format_battle({**RED, "units": 2, "units_lost": 3}, BLUE), "units-lost-exceed"),
    "more lost than the default of one": (format_battle({**RED, "units_lost": 2}, BLUE), "units-lost-exceed"),
    "kills though nothing was lost": (format_battle({**RED, "kills": 1}, BLUE), "kills-without-losses"),
    "kills though only friends lost": (
        format_battle({**RED, "kills": 1, "units_lost": 1}, BLUE),
        "kills-without-losses",
    ),
    "a negative number of units": (format_battle({**RED, "units": -1}, BLUE), "out-of-range"),
    "35 centres in a year": (
        format_diplomacy({"Austria": 30, "Italy": 4}, {"Austria": 30, "Italy": 5}),
        "too-many-centres",
    ),
    "35 centres of one power": (format_diplomacy({"Austria": 35}), "out-of-range"),
    "centres of an unknown power": (format_diplomacy({"Spain": 3}), "bad-value"),
    "a player of an unknown power": (format_diplomacy({}, powers=("Spain", *POWERS[1:])), "bad-value"),
    "two players of one power": (format_diplomacy({}, powers=("Italy", *POWERS[1:])), "power-twice"),
    "six powers": (format_diplomacy({}, powers=POWERS[1:]), "power-missing"),
    "eight powers": (format_diplomacy({}, powers=(*POWERS, "France")), "power-twice"),
    "a year before the war": (format_diplomacy({}, {}, first=1900), "years-not-gapless"),
    "no year": (format_diplomacy(), "years-not-gapless"),
    "a city with a slash": (format_catan(city="7/8"), "bad-identifier"),
    "a group with a slash": (format_catan(group="basic/new"), "bad-identifier"),
    "29 February of another year": (format_catan("2010-02-29T20:00:00Z"), "bad-time"),
    "29 February of 1900": (format_catan("1900-02-29T20:00:00Z"), "bad-time"),
    "30 February": (format_catan("2008-02-30T20:00:00Z"), "bad-time"),
}


@pytest.mark.parametrize(("line", "code"), IMPOSSIBLE_GAMES.values(), ids=IMPOSSIBLE_GAMES)
def test_impossible_game_is_refused(line: str, code: str, db: str, ratings: Ratings) -> None:
    """Importing an impossible game is refused with its code, and nothing is appended."""
    assert run_import(ratings, db, line) == (1, [code], 0)


ODD_GAMES = {
    "a loss without a kill": format_battle({**RED, "kills": 0}, {**BLUE, "units_lost": 1}),
    "more kills than losses": format_battle({**RED, "kills": 1}, {**RED, "kills": 1}, {**BLUE, "units_lost": 1}),
    "all lost": format_battle({**RED, "units": 2, "units_lost": 2}, {**BLUE, "units": 0}, BLUE),
    "34 centres in a year": format_diplomacy({"Austria": 30, "Italy": 4}),
    "34 centres of one power": format_diplomacy({"Austria": 34}),
    "no centres": format_diplomacy({}),
    "a city that looks like a number": format_catan(city="007"),
    "29 February of a leap year": format_catan("2008-02-29T20:00:00Z"),
    "29 February of 2000": format_catan("2000-02-29T20:00:00Z"),
}


@pytest.mark.parametrize("line", ODD_GAMES.values(), ids=ODD_GAMES)
def test_odd_but_valid_game_is_appended(line: str, db: str, ratings: Ratings) -> None:
    """A game that looks odd but is valid is imported."""
    assert run_import(ratings, db, line) == (0, [], 1)


FIVE_KILLS_OF_ONE = format_battle({**RED, "kills": 5}, {**BLUE, "units_lost": 1})
BLUE_MAX = "youplay-bluemax/L"


def test_more_kills_than_the_enemy_lost_are_refused(db: str, ratings: Ratings) -> None:
    """Five kills of one lost unit are refused; with --allow-uncounted the game is recorded and does not count."""
    game = json.dumps(json.loads(FIVE_KILLS_OF_ONE)["data"])
    result = ratings("record", "--at", "2010-03-05T20:00:00Z", db=db, input=game)
    assert result.exit_code == 1
    reason = "a player destroyed 5 enemy units, but the other side lost 1"
    message = f"uncounted: {BLUE_MAX} cannot count this game: {reason} (--allow-uncounted records it)"
    assert message in result.stdout + result.stderr
    assert run_import(ratings, db, FIVE_KILLS_OF_ONE) == (1, ["uncounted"], 0)

    assert run_import(ratings, db, FIVE_KILLS_OF_ONE, "--allow-uncounted") == (0, [], 1)
    explanation = json.loads(ratings("explain", "g", BLUE_MAX, "--format", "json", db=db).stdout)
    assert (explanation["ruleset"], explanation["counted"], explanation["why_not"]) == (
        "youplay-bluemax@2",
        False,
        reason,
    )
    assert json.loads(ratings("standings", BLUE_MAX, "--format", "json", db=db).stdout)["rows"] == []
    # version 1 counts the game, so that published points do not change
    explain_by_version_1 = ("explain", "g", BLUE_MAX, "--rules", "youplay-bluemax@1", "--format", "json")
    players = json.loads(ratings(*explain_by_version_1, db=db).stdout)["players"]
    assert {player["player"]: player["change"] for player in players} == {"p0": "9", "p1": "-1"}


def test_correction_to_impossible_kills_is_refused(db: str, ratings: Ratings) -> None:
    """A correction that leaves a player more kills than the other side lost units is refused."""
    assert run_import(ratings, db, format_battle({**RED, "kills": 1}, {**BLUE, "units_lost": 1})) == (0, [], 1)
    game = json.dumps(json.loads(FIVE_KILLS_OF_ONE)["data"])
    result = ratings("correct", "g", "--reason", "a test", "--format", "json", db=db, input=game)
    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "uncounted")


@pytest.mark.parametrize(
    ("valid_game", "impossible_game", "code"),
    [
        (format_battle(RED, BLUE), format_battle(RED, BLUE, {"side": "green"}), "battle-sides"),
        (format_diplomacy({}), format_diplomacy({"Austria": 30, "Italy": 5}), "too-many-centres"),
        (format_catan(), format_catan(city="7/8"), "bad-identifier"),
    ],
    ids=["battle", "diplomacy", "catan"],
)
def test_impossible_correction_is_refused(
    valid_game: str, impossible_game: str, code: str, db: str, ratings: Ratings
) -> None:
    """A correction of a valid game to an impossible one is refused, and the game stays as it was."""
    assert run_import(ratings, db, valid_game) == (0, [], 1)
    games = ratings("games", "--format", "json", db=db).stdout
    options = ("--reason", "a test", "--format", "json")
    result = ratings("correct", "g", *options, db=db, input=json.dumps(json.loads(impossible_game)["data"]))

    rejected = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, [problem["code"] for problem in rejected]) == (1, [code])
    assert ratings("games", "--format", "json", db=db).stdout == games


@pytest.mark.parametrize(
    "ladder",
    [
        "catan-monthly/7/8/basic/2010-03", "catan-monthly/7/basic", "catan-monthly/7/basic/2010-13",
        "catan-monthly/7/basic/2010-00", "catan-monthly/7/basic/2010-3", "catan-monthly/7/basic/2010",
        "catan-monthly/7/basic/२०१०-03", "catan-monthly//basic/2010-03", "catan-annual/7/basic/2010-03",
        "catan-annual/7/basic/10", "catan-open/7/basic/2010-03", "catan-weekly/7/basic/2010-03", "youplay-wsim",
    ],
)  # fmt: skip
def test_unknown_list_name_is_usage_error(ladder: str, db: str, ratings: Ratings) -> None:
    """A name that no list can have is a usage error in every reading command."""
    for command in (["standings", ladder], ["books", ladder], ["explain", "anna", ladder], ["history", "anna", ladder]):
        result = ratings(*command, db=db)
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert "this is a bug" not in result.stderr


@pytest.mark.parametrize(
    "ladder", ["catan-monthly/7/basic/2999-03", "catan-open/basic/9999-12", "catan-annual/7/basic/9999"]
)
def test_future_period_is_empty(ladder: str, db: str, ratings: Ratings) -> None:
    """`standings` says that a list's future period has not begun, and no reading command fails."""
    standings = ratings("standings", ladder, db=db)

    assert (standings.exit_code, "The period of this list has not begun." in standings.stdout) == (0, True)
    assert ratings("books", ladder, db=db).exit_code == 0
    assert run_import(ratings, db, format_catan("2010-03-05T20:00:00Z")) == (0, [], 1)
    assert ratings("history", "anna", ladder, db=db).exit_code == 0
    assert ratings("explain", "anna", ladder, db=db).exit_code == 0


@pytest.mark.parametrize(
    "ladder", ["catan-monthly/7/basic/0001-01", "catan-annual/7/basic/0001", "catan-open/basic/0000-12"]
)
def test_earliest_periods_are_empty_and_over(ladder: str, db: str, ratings: Ratings) -> None:
    """A list of a period in the first years is empty and no longer open."""
    standings = ratings("standings", ladder, "--format", "json", db=db)

    assert (standings.exit_code, json.loads(standings.stdout)["rows"]) == (0, [])
    assert "open" not in json.loads(standings.stdout)


def test_month_of_future_game_is_open(db: str, ratings: Ratings) -> None:
    """The month of a game with a future date is open, and its list pays no gold yet."""
    assert run_import(ratings, db, format_catan("2999-03-05T20:00:00Z"), "--any-date") == (0, [], 1)

    standings = json.loads(ratings("standings", "catan-monthly/7/basic/2999-03", "--format", "json", db=db).stdout)
    assert (standings["open"], standings["games"]) == (True, 1)
    assert "open" in ratings("lists", "--period", "2999-03", db=db).stdout
    assert json.loads(ratings("statistics", "anna", "--format", "json", db=db).stdout)["gold"] == 0


def format_table(*times: str) -> str:
    """Return a CSV file with a game of anna and ben at each time."""
    lines = [
        f"g-{n},{at},catan,7,basic,{player},{place}"
        for n, at in enumerate(times)
        for place, player in enumerate(("anna", "ben"), 1)
    ]
    return "game_id,occurred_at,game,city,group,player,place\n" + "\n".join(lines) + "\n"


BAD_TIMES = {
    "the hour that occurs twice": ("2010-10-31 02:30", "ambiguous-time"),
    "the first minute that occurs twice": ("2010-10-31 02:00", "ambiguous-time"),
    "the hour that is skipped": ("2010-03-28 02:30", "nonexistent-time"),
    "29 February of another year": ("2010-02-29 20:00", "bad-time"),
    "29 February of another year, the day alone": ("2010-02-29", "bad-time"),
    "an hour too many": ("2010-03-05 24:30", "bad-time"),
}


@pytest.mark.parametrize(("at", "code"), BAD_TIMES.values(), ids=BAD_TIMES)
def test_bad_local_time_is_refused(at: str, code: str, db: str, ratings: Ratings) -> None:
    """A local time that does not exist or is ambiguous is refused with its code on import and on record."""
    zone = ("--zone", "Europe/Berlin")
    assert run_import(ratings, db, format_table("2010-03-05 20:00", at), *zone) == (1, [code], 0)
    result = ratings("record", "--game", "catan", "--game-id", "g", "--at", at, *zone, "anna", "ben", db=db)

    assert (result.exit_code, result.stdout, code in result.stderr) == (2, "", True)


def test_offsets_resolve_the_repeated_hour(db: str, ratings: Ratings) -> None:
    """Times in the repeated hour are accepted with offsets, and are an hour apart."""
    text = format_table("2010-10-31T02:30+02:00", "2010-10-31T02:30+01:00", "2010-10-31 01:59", "2010-10-31 03:00")
    assert run_import(ratings, db, text, "--zone", "Europe/Berlin") == (0, [], 4)

    game_rows = json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]
    assert [row["occurred_at"][11:16] for row in game_rows] == ["23:59", "00:30", "01:30", "02:00"]


def test_leap_day_splits_at_rule_change(db: str, ratings: Ratings) -> None:
    """Games on 29 February 2008 count in the month, and under the version, of their time in Berlin.

    Two games end before midnight in Berlin, under the old version, and one ends half an hour after it.
    """
    text = format_table("2008-02-29", "2008-02-29 23:59", "2008-02-29T23:30:00Z")
    assert run_import(ratings, db, text, "--zone", "Europe/Berlin") == (0, [], 3)

    for month, games, version in (("2008-02", 2, "pre-2008-03"), ("2008-03", 1, "2008-03")):
        result = ratings("standings", f"catan-monthly/7/basic/{month}", "--format", "json", db=db)
        output = json.loads(result.stdout)
        assert (output["games"], output["ruleset"]) == (games, f"catan-monthly@{version}")
    result = ratings("standings", "catan-monthly/7/basic/2008-02", "--as-of", "2008-02-29", "--format", "json", db=db)
    assert json.loads(result.stdout)["as_of"] == "2008-02-29T22:59:59.999999Z"


@pytest.mark.parametrize("option", ["--as-of", "--known-at"])
@pytest.mark.parametrize("value", ["2010-02-29", "2010-02-29T12:00Z", "2010-10-31 02:30", "2010-03-28 02:30", "soon"])
def test_bad_coordinate_time_is_usage_error(option: str, value: str, db: str, ratings: Ratings) -> None:
    """A day or time that does not exist, or is ambiguous, is a usage error of --as-of and --known-at."""
    result = ratings("standings", MARCH, option, value, db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "this is a bug" not in result.stderr


@pytest.mark.parametrize("zone", ["Mars/Base", "europe/berlin", "Europe", "", "UTC+1", "../zoneinfo/UTC"])
def test_unknown_time_zone_is_usage_error(zone: str, db: str, ratings: Ratings) -> None:
    """Naming a time zone that does not exist is a usage error in every command that takes one."""
    commands = [
        ["import", "-"],
        ["record", "--game", "catan", "--game-id", "g", "anna", "ben"],
        ["correct", "g", "--at", "2010-03-05 20:00", "--reason", "x"],
    ]
    for command in commands:
        result = ratings(*command, "--zone", zone, db=db, input=format_table("2010-03-05 20:00"))
        assert (result.exit_code, result.stdout, "is not a time zone" in result.stderr) == (2, "", True), command


BAD_RULESETS = {
    "a time zone that does not exist": ("Europe/Berlin", "Mars/Base", "time_zone: 'Mars/Base' is not a time zone"),
    "29 February of another year": ("2008-03-01", "2010-02-29", "line 6"),
    "29 February of another year as text": ("2008-03-01", '"2010-02-29"', "effective_from: '2010-02-29' is not a date"),
    "an unknown game type": ('"placing"', '"battles"', "scope.kind: 'battles' is not a game type"),
}


@pytest.mark.parametrize(("old", "new", "message"), BAD_RULESETS.values(), ids=BAD_RULESETS)
def test_bad_ruleset_names_the_fault(
    old: str, new: str, message: str, db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Checking or publishing an invalid ruleset fails, names the fault and publishes nothing."""
    text = (SHIPPED / "catan-monthly-2008-03.toml").read_text(encoding="utf-8").replace('"2008-03"', '"mine"')
    (tmp_path / "mine.toml").write_text(text.replace(old, new), encoding="utf-8")
    checked = ratings("rules", "check", tmp_path / "mine.toml", db=db)
    published = ratings("rules", "publish", tmp_path / "mine.toml", db=db)

    assert (checked.exit_code, published.exit_code) == (1, 1)
    assert message in checked.stdout
    assert message in published.stderr
    assert "mine" not in ratings("rules", "list", db=db).stdout
