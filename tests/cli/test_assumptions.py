"""An explanation names what a ruleset assumes where that decided a number, and `rules show` marks it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import with_shipped_rulesets

EXAMPLES = Path(__file__).parents[2] / "examples"
Ratings = Callable[..., Any]
DUST = "the page says that losses equal gains; under its own rounding they do not, so the rest is burned"


@pytest.fixture
def db(copied: Callable[..., str], ratings: Ratings) -> str:
    """A ledger with all shipped rulesets and an evening of Galactic Magnate."""
    url = copied(with_shipped_rulesets)
    assert ratings("import", str(EXAMPLES / "magnate-night.jsonl"), "--by", "mira", db=url).exit_code == 0
    return url


def explain(ratings: Ratings, db: str, *named: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ratings("explain", *named, "--format", "json", db=db).stdout)
    return found


def test_assumption_is_shown_where_it_decided_a_number(db: str, ratings: Ratings) -> None:
    """Points that rounding left are burned by assumption, which is named where any were left, and only there."""
    burned = {}
    for game in ("gm-1", "gm-2", "gm-3", "gm-4", "gm-5"):
        found = explain(ratings, db, game, "galactic-points")
        winners = [player for player in found["players"] if player["terms"][0]["term"].startswith("from")]
        burned[game] = bool(winners) and found["accounts"][1]["amount"] != "0"
        assert found.get("assumed", {}) == ({"dust": DUST} if burned[game] else {}), game
    assert {*burned.values()} == {True, False}
    text = ratings("explain", "gm-2", "galactic-points", db=db).stdout
    assert " ".join(text.split("\n\n")[-1].split()) == f"Assumed: dust: {DUST}"


def test_start_of_a_season_is_assumed(db: str, ratings: Ratings) -> None:
    """What somebody begins a season with is assumed in a game that is their first of it, and not in a later one."""
    assert ratings("import", str(EXAMPLES / "b5-season.jsonl"), "--by", "mira", db=db).exit_code == 0
    first = explain(ratings, db, "b5-1", "b5-league/2025-1")
    assert [*first["assumed"]] == ["carry_over", "season_months"]
    assert "assumed" not in explain(ratings, db, "b5-5", "b5-league/2025-1")


def test_assumption_recognised_later_is_marked(db: str, ratings: Ratings) -> None:
    """What a shipped version did not mark is marked all the same, though its text stays."""
    shown = ratings("rules", "show", "b5-league@1", db=db).stdout
    assert "the page says that a season lasts 4 months, not when it begins" in shown
    as_file = ratings("rules", "show", "b5-league@1", "--format", "toml", db=db).stdout
    assert "not when it begins" not in as_file
    shown = ratings("rules", "show", "catan-open@2008-03", db=db).stdout
    assert "the page says seven for the list of a month; that is taken for the open list, too" in shown
