"""A rule that fails stops its own ladders, and every command says which and where."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from ledgers import open_for_reading
from list_games import build_list_game
from own_rules import load_built_in_rule, substitute_rule
from sqlalchemy import text

Ratings = Callable[..., Any]
ADVICE = "no game is lost; once the rule works again"


@pytest.mark.slow_cases
def test_failing_rule_stops_only_its_ladders(ratings: Ratings, ruled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a rule breaks at every game, commands report where it failed and never call it a bug."""
    line = json.dumps(build_list_game("g-1", "2010-03-05T20:00:00Z", "anna ben"))
    assert ratings("import", "-", db=ruled_url, input=line).exit_code == 0
    league = ("league", "create", "L", "--game", "cartagena", "--players-per-game", 2)
    assert ratings(*league, db=ruled_url).exit_code == 0

    def fail(*arguments: object) -> str | None:
        raise ZeroDivisionError("of the rule")

    rule = load_built_in_rule("catan-points/1")._replace(check=fail)
    substitute_rule(monkeypatch, rule)
    for command, code in ((("lists",), 0), (("ladders",), 0), (("statistics", "anna"), 1)):
        result = ratings(*command, db=ruled_url)
        assert (result.exit_code, "the rule failed at position 19" in result.stderr) == (code, True), result
        assert "bug" not in result.stderr
    assert ratings("league", "show", "L", db=ruled_url).exit_code == 0


def break_at_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the rule of the Elo ladders at games of four."""

    def score(n: int, *arguments: Any) -> int:
        if n == 4:
            raise ZeroDivisionError("of the rule")
        return load_built_in_rule("pairwise-elo/1").score(n, *arguments)

    rule = load_built_in_rule("pairwise-elo/1")._replace(score=score)
    substitute_rule(monkeypatch, rule)


def make_ledger_of_four(ratings: Ratings, url: str) -> None:
    """Make a ledger with a game of four at position 3, on the ladders elo-catan/all and elo-catan/3-4."""
    assert ratings("init", "--for", "catan", "--zone", "UTC", db=url).exit_code == 0
    record = ("record", "-q", "--game", "catan", "--game-id", "g-4", "--at", "2025-01-02", "--new-names", "accept")
    assert ratings(*record, "anna", "ben", "cleo", "dora", db=url).exit_code == 0


@pytest.mark.slow_cases
@pytest.mark.parametrize("stored", [False, True], ids=["never stored", "stored before"])
@pytest.mark.parametrize("command", ["rebuild", "nightly"])
def test_failure_tells_what_stays_and_what_to_do(
    stored: bool, command: str, copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild whose rule fails says what stays, that nothing is lost and what to do; so does `doctor`."""
    db = copy_ledger_file(make_ledger_of_four)
    assert not stored or ratings("rebuild", db=db).exit_code == 0
    break_at_four(monkeypatch)

    result = ratings(command, db=db)
    stays = "the ladder's previous standings stay live" if stored else "no standings of the ladder are stored yet"
    source = f"test_failing_rules.py, line {break_at_four.__code__.co_firstlineno + 5}"
    failure = f"the rule failed at position 3 (game g-4): ZeroDivisionError: of the rule ({source})"
    lines = [line for line in result.stderr.splitlines() if "verify" not in line]
    assert (result.exit_code, lines) == (
        1,
        [
            f"ratings: elo-catan/3-4: {failure}; {stays}",
            f"ratings: elo-catan/all: {failure}; {stays}",
            f"ratings: {ADVICE}, run: ratings rebuild",
        ],
    )
    assert (
        ratings("standings", "elo-catan/all", db=db).stderr
        == f"Error: elo-catan/all: {failure}; no game is lost, and the ladder works again once the rule does\n"
    )
    doctor = ratings("doctor", db=db).stdout
    assert "the rule failed for elo-catan/3-4, elo-catan/all; any earlier standings stay; ratings status" in doctor


def test_ladders_of_an_unusable_ruleset_stay(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a whole ruleset cannot be used, its stored ladders stay."""
    db = copy_ledger_file(make_ledger_of_four)
    assert ratings("rebuild", db=db).exit_code == 0
    stored_standings = read_stored_standings(db)
    monkeypatch.setattr("ratings_ledger.projections.rulesets.versions.find_rule", lambda name: None)
    result = ratings("rebuild", db=db)
    assert (result.exit_code, "elo-catan: the rule failed" in result.stderr) == (1, True)
    assert result.stderr.count("the ladder's previous standings stay live") == 1
    assert len(stored_standings) == 8
    assert read_stored_standings(db) == stored_standings


def read_stored_standings(db: str) -> list[tuple[Any, ...]]:
    """Return the live rows of all ladders in the store."""
    with open_for_reading(db) as connection:
        rows = connection.execute(text("SELECT ladder, rank, player, games FROM live_standings")).all()
    return sorted(map(tuple, rows))


def test_rollback_blames_no_standings_for_a_rule(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback that cannot compare the previous generation, since a rule fails, does not call it wrong."""
    db = copy_ledger_file(make_ledger_of_four)
    for _ in range(2):
        assert ratings("rebuild", db=db).exit_code == 0
    break_at_four(monkeypatch)
    result = ratings("rebuild", "--rollback", db=db)
    problem = "ratings: the previous generation cannot be compared with a replay"
    last = f"{problem}; nothing was rolled back; once the rules work, run the same command again"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, last)
