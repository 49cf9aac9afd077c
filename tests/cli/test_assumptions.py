"""An explanation names the assumptions of a ruleset that decided a number, and `rules show` marks all of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import make_ruled_ledger

EXAMPLES = Path(__file__).parents[2] / "examples"
Ratings = Callable[..., Any]
DUST = "the page says that losses equal gains; under its own rounding they do not, so the rest is burned"


@pytest.fixture
def db(copy_ledger: Callable[..., str], ratings: Ratings) -> str:
    """Return a ledger with all shipped rulesets and an evening of Galactic Magnate."""
    url = copy_ledger(make_ruled_ledger)
    assert ratings("import", str(EXAMPLES / "magnate-night.jsonl"), "--by", "mira", db=url).exit_code == 0
    return url


def explain(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    explanation: dict[str, Any] = json.loads(ratings("explain", *arguments, "--format", "json", db=db).stdout)
    return explanation


@pytest.mark.slow_cases
def test_assumption_is_shown_where_it_decided_a_number(db: str, ratings: Ratings) -> None:
    """Points left over by rounding are burned by assumption, which is named for a game only if any were left."""
    burned = {}
    for game in ("gm-1", "gm-2", "gm-3", "gm-4", "gm-5"):
        result = explain(ratings, db, game, "galactic-points")
        winners = [player for player in result["players"] if player["terms"][0]["term"].startswith("from")]
        burned[game] = bool(winners) and result["accounts"][1]["amount"] != "0"
        assert result.get("assumed", {}) == ({"dust": DUST} if burned[game] else {}), game
    assert {*burned.values()} == {True, False}
    text = ratings("explain", "gm-2", "galactic-points", db=db).stdout
    assert " ".join(text.split("\n\n")[-1].split()) == f"Assumed: dust: {DUST}"


def test_start_of_a_season_is_assumed(db: str, ratings: Ratings) -> None:
    """What players start a season with is an assumption of their first game in it, and not of a later one."""
    assert ratings("import", str(EXAMPLES / "b5-season.jsonl"), "--by", "mira", db=db).exit_code == 0
    first = explain(ratings, db, "b5-1", "b5-league/2025-1")
    assert [*first["assumed"]] == ["carry_over", "season_months"]
    assert "assumed" not in explain(ratings, db, "b5-5", "b5-league/2025-1")


def test_assumption_recognised_later_is_marked(db: str, ratings: Ratings) -> None:
    """`rules show` marks an assumption even if the text of the shipped version does not mark it; the text stays."""
    stdout = ratings("rules", "show", "b5-league@1", db=db).stdout
    assert "the page says that a season lasts 4 months, not when it begins" in stdout
    as_file = ratings("rules", "show", "b5-league@1", "--format", "toml", db=db).stdout
    assert "not when it begins" not in as_file
    stdout = ratings("rules", "show", "catan-open@2008-03", db=db).stdout
    assert "the page says seven for the list of a month; it is assumed to apply to the open list, too" in stdout


def test_point_within_time_without_a_victory_is_assumed(db: str, ratings: Ratings) -> None:
    """The point for a win within time is given by assumption if no player met a victory condition, and only then."""
    four = [{"player": name, "power": 20 - n, "influence": 9} for n, name in enumerate(("ada", "bo", "cy", "di"))]
    events = []
    for number, victory in enumerate((None, "standard"), 1):
        participants = [{**four[0], "vp": 1, "victory": victory}, *({**loser, "vp": 1} for loser in four[1:3]), four[3]]
        game = {"game_id": f"t-{number}", "game": "babylon5", "kind": "b5", "season": "2025-1", "within_time": True}
        events.append(
            {
                "type": "game.recorded",
                "occurred_at": f"2025-01-0{number}T20:00Z",
                "data": {**game, "participants": participants},
            }
        )
    lines = "".join(json.dumps(event) + "\n" for event in events)
    result = ratings("import", "-", "--by", "mira", db=db, input=lines)
    assert result.exit_code == 0, result.stderr
    ladder = "b5-league/2025-1"
    assert "within_time" in explain(ratings, db, "t-1", ladder)["assumed"]
    assert "within_time" not in explain(ratings, db, "t-2", ladder).get("assumed", {})
    assert "Assumed: within_time: the page gives a point for a win within time" in ratings(
        "explain", "t-1", ladder, db=db
    ).stdout.replace("\n  ", " ")


@pytest.mark.slow_cases
def test_rank_of_a_free_account_is_assumed(db: str, ratings: Ratings) -> None:
    """A ranked player whose account becomes free stays ranked by assumption, which their explanation names."""
    game = ("--game", "catan", "--group", "basic", "--city", "Bonn", "--game-id", "c-1", "--at", "2010-01-03T20:00Z")
    assert ratings("record", "-q", *game, "wanda", "xaver", "yolanda", db=db).exit_code == 0
    ladder = "catan-elo/basic"
    assert "account" not in explain(ratings, db, "--player", "wanda", ladder).get("assumed", {})
    assert ratings("player", "account", "wanda", "free", "--at", "2010-02-01T00:00Z", db=db).exit_code == 0
    result = explain(ratings, db, "--player", "wanda", ladder)
    assert result["rank"] == 1
    assert result["assumed"]["account"].startswith("the page gives free accounts no ranking value")
    before = explain(ratings, db, "--player", "wanda", ladder, "--as-of", "2010-01-31")
    assert "account" not in before.get("assumed", {})
