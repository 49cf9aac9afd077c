"""A rule that fails stops its own ladders, and every command says which and where."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from list_games import game

from projections.rules import catan_points
from projections.rulesets import registry

Ratings = Callable[..., Any]


def test_failing_rule_stops_only_its_ladders(ratings: Ratings, ruled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a rule breaks at every game, commands report its ladders and never call it a bug."""
    played = json.dumps(game("g-1", "2010-03-05T20:00:00Z", "anna ben"))
    assert ratings("import", "-", db=ruled_url, input=played).exit_code == 0
    league = ("league", "create", "L", "--game", "cartagena", "--players-per-game", 2)
    assert ratings(*league, db=ruled_url).exit_code == 0

    def broken(*arguments: object) -> str | None:
        raise ZeroDivisionError("of the rule")

    rule = catan_points.RULE._replace(check=broken)
    monkeypatch.setattr(
        "projections.rulesets.versions.rule", lambda name: rule if name == rule.id else registry.rule(name)
    )
    for command, code in ((("lists",), 0), (("ladders",), 0), (("statistics", "anna"), 1)):
        told = ratings(*command, db=ruled_url)
        assert (told.exit_code, "the rule failed at position 17" in told.stderr) == (code, True), told
        assert "bug" not in told.stderr
    assert ratings("league", "show", "L", db=ruled_url).exit_code == 0
