"""Try a rule for rating periods: call it on small periods of random games, each with the states after the previous."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import StateValues
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.loops import score_period
from ratings_ledger.projections.replay.periods import (
    LadderSlots,
    Periods,
    ResultRows,
    build_results,
    divide_into_periods,
)
from ratings_ledger.projections.replay.replay import build_rule_arrays
from ratings_ledger.projections.replay.rule_calls import PeriodResults
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.rule_errors import ContractError, is_built_in
from ratings_ledger.projections.rulesets.versions import Version

Numbers = Any
PERIOD_GAMES = 20  # the number of games in each period of a trial
IDLE_PERIODS = 3  # before period i, players were inactive for i % IDLE_PERIODS periods


def try_periods(stream: Stream, call_twice: Callable[..., Any]) -> bool:
    """Call `score_period`, `explain_period` and `age` of a rule on periods of a stream's games.

    Return whether compiled code was tried, too.

    `call_twice(row, function_name, arguments, call)` calls a function twice, and raises `RuleFailure` if the results
    differ or the arguments were changed. Raises `RuleFailure`.
    """
    version, ladder = stream.versions[0], stream.ladder
    states: dict[int, StateValues] = {}
    is_compiled = False
    periods, rows = _draw_periods(stream)
    for index in range(len(periods.begin)):
        row = stream.rows[int(periods.games[periods.offsets[index]])]
        players, offsets, results_rows = (column.tolist() for column in rows.select_period(index))
        before = [_find_state(stream, row, states.get(player), index % IDLE_PERIODS) for player in players]
        results = PeriodResults([list(column) for column in zip(*before, strict=True)], offsets, results_rows)
        score = partial(rule_calls.score_period_states, version, ladder, row, results)
        minted, after = call_twice(row, "score_period", results, score)
        names = [stream.names[player] for player in players]
        for player in range(len(players)):
            explain = partial(rule_calls.explain_period, version, ladder, row, player, names, results, after)
            call_twice(row, "explain_period", (results, after), explain)
        is_compiled = _compare_compiled(version, ladder, row, results, (minted, after)) or is_compiled
        states |= dict(zip(players, zip(*after, strict=True), strict=True))
    return is_compiled


def _draw_periods(stream: Stream) -> tuple[Periods, ResultRows]:
    """Return periods of `PERIOD_GAMES` games each, and the results that the rule reads in them."""
    names = stream.versions[0].rule.columns
    offsets, players = np.array(stream.offsets, dtype=np.int64), np.array(stream.players, dtype=np.int64)
    columns = np.array([list(column) for column in stream.columns], dtype=np.int64).reshape(len(names), len(players))
    numbers = np.arange(len(stream.rows))
    periods = divide_into_periods(numbers, "event", "UTC", numbers // PERIOD_GAMES)
    team = columns[names.index("team")] if "team" in names else None
    return periods, build_results(periods, LadderSlots(offsets, players, columns, team))


def _find_state(stream: Stream, row: int, state: StateValues | None, elapsed: int) -> StateValues:
    """Return a player's state at the start of a period, after `elapsed` periods without games."""
    version = stream.versions[0]
    if state is None:
        return version.start_state
    return rule_calls.age_state(version, stream.ladder, row, state, elapsed) if elapsed else state


def run_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Score one period, fill in the states after it, and return the minted units."""
    return score_period(players, before, offsets, rows, constants, table, after)


def _compare_compiled(
    version: Version, ladder: str, row: int, results: PeriodResults, interpreted: tuple[int, list[list[int]]]
) -> bool:
    """Tell whether compiled code scored a period. Raises `RuleFailure` if the results differ."""
    rule = version.rule
    if is_built_in(rule) or not compiling.is_allowed() or rule.score_period is None:
        return False
    before, offsets, rows = (np.array(numbers, dtype=np.int64) for numbers in results)
    after = before.copy()
    run = compiling.compile_with_rule(run_period, rule, (("score_period", rule.score_period),))
    minted = run(before.shape[1], before, offsets, rows, *build_rule_arrays(version), after)
    if minted is None:
        return False
    if (minted, after.tolist()) != interpreted:
        problem = "compiled and interpreted code computed different results; keep all numbers within 64 bits"
        raise rule_calls.make_failure(ladder, rule, ContractError(problem), row, "score_period")
    return True
