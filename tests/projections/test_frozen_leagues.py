"""A league keeps the version in force at its start: which event starts it, and the effects on later events."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import build_ruleset_event, fill, load_ranking
from kind_games import build_battle
from own_rules import find_shipped_text, find_shipped_texts
from stores import make_empty_ledger

Ratings = Callable[..., Any]
LATE, EARLY = "2010-05-01T20:00:00Z", "2009-05-01T20:00:00Z"
UNCOUNTED_GAMES = {
    "ended by agreement": {"aborted": True},
    "not rated": {"rated": False},
    "of another kind": {"kind": "placing", "participants": [{"player": "A", "place": 1}, {"player": "B", "place": 2}]},
    "of another game": {"game": "blue-max"},
    "of another league": {"league": "L2"},
}


def build_battle_event(game_id: str, at: str, **members: Any) -> dict[str, Any]:
    """Return a game of the league L1."""
    event = build_battle("A 1 0 0 20", "B 1 1 0 10", league="L1", game="wooden-ships")
    return event | {"occurred_at": at, "data": event["data"] | {"game_id": game_id, **members}}


def build_house_version(version: str, since: str, sizes: str, **params: int) -> dict[str, Any]:
    """Return a version of a ruleset that is frozen per league, for games of these numbers of players."""
    points = {size: list(range(int(size), 0, -1)) for size in sizes.split()}
    data = {
        "id": "house",
        "version": version,
        "effective_from": since,
        "freeze": "league-start",
        "rule": "catan-points/1" if not params else "placement-points/1",
        "scope": {"game": ["house"]},
        "partition": {"by": ["league"]},
        "params": params or {"points": points},
    }
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def build_house_game(game_id: str, at: str, players: str) -> dict[str, Any]:
    """Return a game of the house ruleset."""
    participants = [{"player": name, "place": place} for place, name in enumerate(players.split(), 1)]
    data = {"game_id": game_id, "game": "house", "league": "L", "participants": participants}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


@pytest.fixture
def fill_ledger(copy_ledger_file: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that fills a ledger with events."""
    path = copy_ledger_file(make_empty_ledger)
    return lambda *events: fill(path, events)


@pytest.mark.parametrize("members", UNCOUNTED_GAMES.values(), ids=UNCOUNTED_GAMES)
def test_uncounted_game_begins_no_league(members: dict[str, Any], fill_ledger: Callable[..., Any]) -> None:
    """A game that does not count does not start a league, even if it is the first."""
    rules = [build_ruleset_event(text) for text in find_shipped_texts('id = "youplay-wsim"')]
    ledger = fill_ledger(*rules, build_battle_event("g1", LATE), build_battle_event("early", EARLY, **members))

    ranking = load_ranking(ledger, "youplay-wsim/L1")
    assert (ranking.ruleset, ranking.games) == ("youplay-wsim@v2", 1)


def test_league_version_sets_start_points(
    fill_ledger: Callable[..., Any],
) -> None:
    """The version of a league sets the start points of a player who is adjusted later."""
    rules = [
        build_house_version("1", "2009-01-01", "2", start=0),
        build_house_version("2", "2010-01-01", "2", start=100),
    ]
    data = {"ladder": "house/L", "player": "zoe", "points": "5", "reason": "late"}
    adjustment = {"type": "points.adjusted", "occurred_at": "2011-06-01T00:00:00Z", "data": data}
    ledger = fill_ledger(*rules, build_house_game("g1", EARLY, "anna ben"), adjustment)

    rows = load_ranking(ledger, "house/L").rows
    assert {row.player: row.points // 840 for row in rows} == {"zoe": 5, "anna": 2, "ben": 0}


def test_league_with_rating_periods_keeps_its_version(fill_ledger: Callable[..., Any]) -> None:
    """A league keeps its version on a ladder with rating periods, too."""
    rules = [
        build_house_version("1", "2009-01-01", "2", start=1500),
        build_house_version("2", "2010-01-01", "2", start=9),
    ]
    for event in rules:
        event["data"] |= {"rule": "glicko-1/1", "period": "month"}
    ledger = fill_ledger(*rules, build_house_game("g1", EARLY, "anna ben"), build_house_game("g2", LATE, "cleo dora"))

    ranking = load_ranking(ledger, "house/L")
    assert (ranking.ruleset, ranking.games) == ("house@1", 2)


def test_uncountable_league_game_is_rejected(ratings: Ratings, fill_ledger: Callable[..., Any]) -> None:
    """A game of a league is rejected if the league's version cannot count it.

    A league of the older version accepts a game of three, which the newer version cannot count.
    """
    rules = [build_house_version("1", "2009-01-01", "2 3"), build_house_version("2", "2010-01-01", "2 4")]
    db = str(fill_ledger(*rules, build_house_game("g1", EARLY, "anna ben")).url.database)

    assert ratings("record", db=db, input=json.dumps(build_house_game("g2", LATE, "anna ben cleo"))).exit_code == 0
    assert json.loads(ratings("standings", "house/L", "--format", "json", db=db).stdout)["games"] == 2
    rejection = ratings("record", db=db, input=json.dumps(build_house_game("g3", LATE, "anna ben cleo dora emil")))
    assert (rejection.exit_code, rejection.stderr.partition(":")[0]) == (1, "uncounted")


def test_monthly_versions_cannot_be_voided_under_annual_list(ratings: Ratings, tmp_path: Path) -> None:
    """The last version of a monthly list cannot be voided while an annual list sums its lists."""
    db = str(tmp_path / "ratings.db")
    assert ratings("init", db=db).exit_code == 0

    def void(name: str) -> Any:
        return ratings("void", "--event", f"ruleset:{name}", "--reason", "a mistake", db=db)

    assert void("catan-monthly@pre-2008-03").exit_code == 0
    rejection = void("catan-monthly@2008-03")
    assert (rejection.exit_code, rejection.stderr.partition(":")[0]) == (1, "still-needed")
    assert "the lists of catan-annual sum" in rejection.stderr
    assert [void(f"catan-annual@{version}").exit_code for version in ("pre-2008-03", "2008-03")] == [0, 0]
    assert void("catan-monthly@2008-03").exit_code == 0


@pytest.mark.parametrize("line", ["start = 5", "min_games = 3", 'substitution = "both"', "carry_over = true"])
def test_annual_list_rejects_params_of_monthly_lists(line: str, ratings: Ratings, tmp_path: Path) -> None:
    """An annual list rejects a parameter that its monthly lists decide."""
    text = find_shipped_text("catan-annual").replace("months = 4", f"{line}\nmonths = 4")
    (tmp_path / "annual.toml").write_text(text, encoding="utf-8")

    result = ratings("rules", "check", tmp_path / "annual.toml")
    assert result.exit_code == 1
    assert f"params.{line.partition(' ')[0]}: an annual list has no games of its own" in result.stdout


def test_monthly_list_rejects_start_points(ratings: Ratings, tmp_path: Path) -> None:
    """A monthly list rejects the parameter `start`."""
    text = find_shipped_text("catan-monthly").replace("min_games = 7", "start = 1000\nmin_games = 7")
    (tmp_path / "monthly.toml").write_text(text, encoding="utf-8")

    result = ratings("rules", "check", tmp_path / "monthly.toml")
    assert (result.exit_code, "params.start" in result.stdout) == (1, True)
