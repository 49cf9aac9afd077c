"""Tries a rule that scores periods: drawn games, some at a time, each period from the states that the last one left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import StateValues
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.loops import score_period
from ratings_ledger.projections.replay.periods import LadderSlots, Periods, ResultRows, build_results, number_periods
from ratings_ledger.projections.replay.replay import rule_constants
from ratings_ledger.projections.replay.rule_calls import PeriodResults
from ratings_ledger.projections.rulesets.rule_errors import ContractError, is_built_in
from ratings_ledger.projections.rulesets.versions import Version

Numbers = Any
# games of a trial's period; between periods, players are away for less than so many others
PERIOD_GAMES, AWAY = 20, 3


def try_periods(stream: Stream, ask_twice: Callable[..., Any]) -> bool:
    """Ask all functions of a rule about periods of the games of a stream; return whether compiled code was tried, too.

    `ask_twice(row, what, arguments, ask)` asks the same twice, and raises if the answers differ or if the arguments are
    not what they were. Raises `RuleFailure`.
    """
    version, ladder = stream.versions[0], stream.ladder
    states: dict[int, StateValues] = {}
    is_compiled = False
    periods, rows = _draw_periods(stream)
    for index in range(len(periods.begin)):
        row = stream.row[int(periods.games[periods.offsets[index]])]
        people, offsets, results_rows = (part.tolist() for part in rows.one(index))
        before = [_find_state(stream, row, states.get(player), index % AWAY) for player in people]
        results = PeriodResults([list(column) for column in zip(*before, strict=True)], offsets, results_rows)
        score = partial(rule_calls.score_period_states, version, ladder, row, results)
        minted, after = ask_twice(row, "score_period", results, score)
        names = [stream.names[player] for player in people]
        for player in range(len(people)):
            explain = partial(rule_calls.explain_period, version, ladder, row, player, names, results, after)
            ask_twice(row, "explain_period", (results, after), explain)
        is_compiled = _compare_compiled(version, ladder, row, results, (minted, after)) or is_compiled
        states |= dict(zip(people, zip(*after, strict=True), strict=True))
    return is_compiled


def _draw_periods(stream: Stream) -> tuple[Periods, ResultRows]:
    """Return periods of as many games each, and what the rule reads of them."""
    names = stream.versions[0].rule.columns
    offsets, players = np.array(stream.offsets, dtype=np.int64), np.array(stream.players, dtype=np.int64)
    columns = np.array([list(column) for column in stream.columns], dtype=np.int64).reshape(len(names), len(players))
    numbers = np.arange(len(stream.row))
    periods = number_periods(numbers, "event", "UTC", numbers // PERIOD_GAMES)
    team = columns[names.index("team")] if "team" in names else None
    return periods, build_results(periods, LadderSlots(offsets, players, columns, team))


def _find_state(stream: Stream, row: int, state: StateValues | None, elapsed: int) -> StateValues:
    """Return the state with which a player begins a period, who was away for so many others."""
    version = stream.versions[0]
    if state is None:
        return version.start_state
    return rule_calls.age_state(version, stream.ladder, row, state, elapsed) if elapsed else state


def run_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Return what a rule mints in one period, whose states it fills in."""
    return score_period(players, before, offsets, rows, constants, table, after)


def _compare_compiled(
    version: Version, ladder: str, row: int, results: PeriodResults, interpreted: tuple[int, list[list[int]]]
) -> bool:
    """Tell whether compiled code scored a period. Raises `RuleFailure` if it gave anything else."""
    rule = version.rule
    if is_built_in(rule) or not compiling.is_allowed() or rule.score_period is None:
        return False
    before, offsets, rows = (np.array(numbers, dtype=np.int64) for numbers in results)
    after = before.copy()
    run = compiling.around(run_period, rule, (("score_period", rule.score_period),))
    minted = run(before.shape[1], before, offsets, rows, *rule_constants(version), after)
    if minted is None:
        return False
    if (minted, after.tolist()) != interpreted:
        told = "compiled code gave other states than the interpreted rule: does a number exceed 64 bits?"
        raise rule_calls.make_failure(ladder, rule, ContractError(told), row, "score_period")
    return True
