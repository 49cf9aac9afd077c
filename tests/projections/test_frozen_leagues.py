"""A league keeps the version that it began under: what begins it, and what that is for what happens in it later."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import fill, ranking_of, ruleset
from kind_games import battle
from own_rules import find_shipped_text, find_shipped_texts
from stores import make_empty_ledger

Ratings = Callable[..., Any]
LATE, EARLY = "2010-05-01T20:00:00Z", "2009-05-01T20:00:00Z"
NOTHING = {
    "ended by agreement": {"aborted": True},
    "not rated": {"rated": False},
    "of another kind": {"kind": "placing", "participants": [{"player": "A", "place": 1}, {"player": "B", "place": 2}]},
    "of another game": {"game": "blue-max"},
    "of another league": {"league": "L2"},
}


def ships(game_id: str, at: str, **members: Any) -> dict[str, Any]:
    """A game of the league L1."""
    event = battle("A 1 0 0 20", "B 1 1 0 10", league="L1", game="wooden-ships")
    return event | {"occurred_at": at, "data": event["data"] | {"game_id": game_id, **members}}


def house(version: str, since: str, sizes: str, **params: int) -> dict[str, Any]:
    """A version of a ruleset with leagues that keep theirs, for games of so many players."""
    points = {size: list(range(int(size), 0, -1)) for size in sizes.split()}
    data = {
        "id": "house", "version": version, "effective_from": since, "freeze": "league-start",
        "rule": "catan-points/1" if not params else "placement-points/1", "scope": {"game": ["house"]},
        "partition": {"by": ["league"]}, "params": params or {"points": points},
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def played(game_id: str, at: str, players: str) -> dict[str, Any]:
    """A game of the house."""
    participants = [{"player": name, "place": place} for place, name in enumerate(players.split(), 1)]
    data = {"game_id": game_id, "game": "house", "league": "L", "participants": participants}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


@pytest.fixture
def filled(copied_file: Callable[..., str]) -> Callable[..., Any]:
    """A function that makes a ledger of these events."""
    path = copied_file(make_empty_ledger)
    return lambda *events: fill(path, events)


@pytest.mark.parametrize("members", NOTHING.values(), ids=NOTHING)
def test_uncounted_game_begins_no_league(members: dict[str, Any], filled: Callable[..., Any]) -> None:
    """A game that counts for nothing does not begin a league, even if it comes first."""
    rules = [ruleset(text) for text in find_shipped_texts('id = "youplay-wsim"')]
    ledger = filled(*rules, ships("g1", LATE), ships("early", EARLY, **members))

    found = ranking_of(ledger, "youplay-wsim/L1")
    assert (found.ruleset, found.games) == ("youplay-wsim@v2", 1)


def test_league_version_sets_start_points(
    filled: Callable[..., Any],
) -> None:
    """The version under which a league began sets where a player adjusted later starts."""
    rules = [house("1", "2009-01-01", "2", start=0), house("2", "2010-01-01", "2", start=100)]
    data = {"ladder": "house/L", "player": "zoe", "points": "5", "reason": "late"}
    fine = {"type": "points.adjusted", "occurred_at": "2011-06-01T00:00:00Z", "data": data}
    ledger = filled(*rules, played("g1", EARLY, "anna ben"), fine)

    rows = ranking_of(ledger, "house/L").rows
    assert {row.player: row.points // 840 for row in rows} == {"zoe": 5, "anna": 2, "ben": 0}


def test_uncountable_league_game_is_refused(ratings: Ratings, filled: Callable[..., Any]) -> None:
    """A game of a league is refused if the league's version cannot count it.

    In a league of the older version, a game of three, which the newer cannot count, is accepted.
    """
    rules = [house("1", "2009-01-01", "2 3"), house("2", "2010-01-01", "2 4")]
    db = str(filled(*rules, played("g1", EARLY, "anna ben")).url.database)

    assert ratings("record", db=db, input=json.dumps(played("g2", LATE, "anna ben cleo"))).exit_code == 0
    assert json.loads(ratings("standings", "house/L", "--format", "json", db=db).stdout)["games"] == 2
    five = ratings("record", db=db, input=json.dumps(played("g3", LATE, "anna ben cleo dora emil")))
    assert (five.exit_code, five.stderr.partition(":")[0]) == (1, "uncounted")


def test_months_of_annual_list_are_needed(ratings: Ratings, tmp_path: Path) -> None:
    """The versions of monthly lists cannot be voided while an annual list sums them."""
    db = str(tmp_path / "ratings.db")
    assert ratings("init", db=db).exit_code == 0

    def void(name: str) -> Any:
        return ratings("void", "--event", f"ruleset:{name}", "--reason", "a mistake", db=db)

    assert void("catan-monthly@pre-2008-03").exit_code == 0
    last = void("catan-monthly@2008-03")
    assert (last.exit_code, last.stderr.partition(":")[0]) == (1, "still-needed")
    assert "the lists of catan-annual sum" in last.stderr
    assert [void(f"catan-annual@{version}").exit_code for version in ("pre-2008-03", "2008-03")] == [0, 0]
    assert void("catan-monthly@2008-03").exit_code == 0


@pytest.mark.parametrize("line", ["start = 5", "min_games = 3", 'substitution = "both"', "carry_over = true"])
def test_annual_list_refuses_game_params(line: str, ratings: Ratings, tmp_path: Path) -> None:
    """An annual list with a parameter that the lists of its months decide is refused."""
    text = find_shipped_text("catan-annual").replace("months = 4", f"{line}\nmonths = 4")
    (tmp_path / "annual.toml").write_text(text, encoding="utf-8")

    told = ratings("rules", "check", tmp_path / "annual.toml")
    assert told.exit_code == 1
    assert f"params.{line.partition(' ')[0]}: an annual list has no games of its own" in told.stdout


def test_monthly_list_refuses_a_start(ratings: Ratings, tmp_path: Path) -> None:
    """A monthly list with a `start` parameter is refused."""
    text = find_shipped_text("catan-monthly").replace("min_games = 7", "start = 1000\nmin_games = 7")
    (tmp_path / "monthly.toml").write_text(text, encoding="utf-8")

    told = ratings("rules", "check", tmp_path / "monthly.toml")
    assert (told.exit_code, "params.start" in told.stdout) == (1, True)
