"""Tries a rule that scores periods: drawn games, some at a time, each period from the states that the last one left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import StateValues
from ratings_ledger.projections.replay import containment
from ratings_ledger.projections.replay.containment import PeriodResults
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.replay import rule_constants
from ratings_ledger.projections.rulesets.faults import Broken, is_ours
from ratings_ledger.projections.rulesets.versions import Version

Numbers = Any
# games of a trial's period; between periods, players are away for less than so many others
PERIOD_GAMES, AWAY = 20, 3


def collect_results(games: Sequence[Sequence[int]], columns: Sequence[Sequence[Sequence[int]]]) -> PeriodResults:
    """Return the results of a period, without the states before it.

    Args:
        games: for every game its participants, as players of the period numbered from 0 on
        columns: for every game what the rule reads about them, by column
    """
    players = 1 + max((player for game in games for player in game), default=-1)
    own: list[list[list[int]]] = [[] for _ in range(players)]
    for number, (game, numbers) in enumerate(zip(games, columns, strict=True)):
        for i, player in enumerate(game):
            mine = [column[i] for column in numbers]
            for j, opponent in enumerate(game):
                if i != j:
                    own[player].append([opponent, number, *mine, *(column[j] for column in numbers)])
    offsets = [0]
    for results in own:
        offsets.append(offsets[-1] + len(results))
    rows = [list(row) for row in zip(*(result for results in own for result in results), strict=True)]
    return PeriodResults((), offsets, rows)


def try_periods(stream: Stream, ask_twice: Callable[..., Any]) -> bool:
    """Ask all functions of a rule about periods of the games of a stream; return whether compiled code was tried, too.

    `ask_twice(row, what, arguments, ask)` asks the same twice, and raises if the answers differ or if the arguments are
    not what they were. Raises `RuleFailure`.
    """
    version, ladder = stream.versions[0], stream.ladder
    states: dict[int, StateValues] = {}
    is_compiled = False
    for first in range(0, len(stream.row), PERIOD_GAMES):
        row, people, results = stream.row[first], *_read_period(stream, first, states)
        score = partial(containment.score_period_states, version, ladder, row, results)
        minted, after = ask_twice(row, "score_period", results, score)
        names = [stream.names[player] for player in people]
        for player in range(len(people)):
            explain = partial(containment.explain_period, version, ladder, row, player, names, results, after)
            ask_twice(row, "explain_period", (results, after), explain)
        is_compiled = _compare_compiled(version, ladder, row, results, (minted, after)) or is_compiled
        states |= dict(zip(people, zip(*after, strict=True), strict=True))
    return is_compiled


def _read_period(
    stream: Stream, first: int, states: Mapping[int, StateValues]
) -> tuple[list[int], PeriodResults]:  # fmt: skip
    """Return the players of the period whose first game this is, and its results from the states that they have."""
    version, ladder, row = stream.versions[0], stream.ladder, stream.row[first]
    slots = list(pairwise(stream.offsets[first : first + PERIOD_GAMES + 1]))
    games = [list(stream.players[low:high]) for low, high in slots]
    people = list(dict.fromkeys(player for game in games for player in game))
    numbers = {player: number for number, player in enumerate(people)}
    columns = [[column[low:high].tolist() for column in stream.columns] for low, high in slots]
    results = collect_results([[numbers[player] for player in game] for game in games], columns)
    elapsed = first // PERIOD_GAMES % AWAY
    before = [
        containment.age_state(version, ladder, row, states[player], elapsed)
        if player in states and elapsed
        else states.get(player, version.start_state)
        for player in people
    ]
    return people, results._replace(before=[list(column) for column in zip(*before, strict=True)])


def score_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Return a stand-in for a rule's function of this name: `compiling.around` puts that in its place."""
    raise NotImplementedError


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
    if is_ours(rule) or not compiling.allowed() or rule.score_period is None:
        return False
    before, offsets, rows = (np.array(numbers, dtype=np.int64) for numbers in results)
    after = before.copy()
    run = compiling.around(run_period, rule, (("score_period", rule.score_period),))
    minted = run(before.shape[1], before, offsets, rows, *rule_constants(version), after)
    if minted is None:
        return False
    if (minted, after.tolist()) != interpreted:
        told = "compiled code gave other states than the interpreted rule: does a number exceed 64 bits?"
        raise containment.failed(ladder, rule, Broken(told), row, "score_period")
    return True
