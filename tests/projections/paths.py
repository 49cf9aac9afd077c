"""The ways from the log to standings, and what the tests compare between them."""

from collections.abc import Iterator
from typing import Any

import pytest
from thresholds import set_thresholds

from ratings_ledger.projections.facts.columns import LABELS, NONE, Facts, find_optional_column
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.rule_calls import RuleFailure

NEVER = 10**9


def set_paths(monkeypatch: pytest.MonkeyPatch, *, scanned: bool, compiled: bool) -> None:
    """Let even the shortest history go, or let none go, through the scanner, and through compiled loops."""
    set_thresholds(
        monkeypatch, cached_events=1, scanned_events=1 if scanned else NEVER, compiled_games=1 if compiled else NEVER
    )


def told(facts: Facts) -> dict[str, Any]:
    """All that facts say, without the numbers that they give to names."""
    return {
        "position": (facts.position, facts.chain_hash),
        "games": [_game(facts, row) for row in range(len(facts.first_position))],
        "players": {name: facts.current(name) for name in facts.players},
        "accounts": {facts.players[who]: [a[:2] + a[3:] for a in mine] for who, mine in facts.accounts.items()},
        "adjustments": [(*one[:3], facts.players[one.player], one.points) for one in facts.adjustments],
        "versions": {name: [v.ruleset for v in versions] for name, versions in facts.rulesets.items()},
        "unusable": facts.unusable,
        "leagues": [(one[:2], facts.texts[one.league], facts.texts[one.game]) for one in facts.leagues],
        "seconds": facts.clock_seconds,
        "left out": facts.left_out,
    }


def _game(facts: Facts, row: int) -> tuple[Any, ...]:
    cell, first, size = facts.cell_of(row), facts.start[row], facts.count[row]
    participants = range(first, first + size)
    kind_from = facts.kind_start[row]
    kind = facts.label("kind", row)
    return (
        facts.first_position[row], facts.live_position[row], facts.occurred_at[row], row in facts.voided,
        tuple(facts.label(name, row) for name in LABELS), cell.seats, cell.flags,
        [(facts.players[facts.player[p]], facts.place[p], facts.status[p], facts.replaced[p]) for p in participants],
        _optional(facts, participants),
        [] if kind == "placing" else
        [list(column[kind_from : kind_from + size]) for column in facts.of_kind.values()],
    )  # fmt: skip


def _optional(facts: Facts, participants: range) -> dict[str, list[Any]]:
    """What is in columns that may end early, without those in which there is nothing about these participants."""
    found = {}
    for name, column in sorted(facts.optional.items()):
        usual = find_optional_column(name).default
        numbers: list[Any] = [column[p] if p < len(column) else usual for p in participants]
        if numbers.count(usual) < len(numbers):
            clubs = [None if number == NONE else facts.texts[number] for number in numbers] if name == "club" else []
            found[name] = clubs or numbers
    return found


def digests(facts: Facts, as_of: int | None = None) -> dict[str, str]:
    """The digest of every ladder, or how it fails."""
    return dict(_digests(facts, as_of))


def _digests(facts: Facts, as_of: int | None) -> Iterator[tuple[str, str]]:
    ladders = Ladders(facts, as_of)
    for ruleset_id in sorted(facts.rulesets):
        try:
            every = ladders.streams(ruleset_id)
        except RuleFailure as problem:
            yield ruleset_id, problem.describe(facts)
            continue
        for name, stream in sorted(every.items()):
            try:
                yield name, ladders.rank_stream(stream).digest
            except RuleFailure as problem:
                yield name, problem.describe(facts)
