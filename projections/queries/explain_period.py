"""Explain a rating period: the changes of all its players, with the games that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import Term
from ratings_ledger.projections.replay.gaps import State
from ratings_ledger.projections.replay.period_slots import PeriodSlots
from ratings_ledger.projections.replay.periods import Periods
from ratings_ledger.projections.replay.rule_calls import (
    PeriodResults,
    bring_to_game,
    explain_period,
    score_period_states,
)
from ratings_ledger.projections.replay.trace import Trace


class PlayerEffect(NamedTuple):
    """The effect of a game or rating period on a player: the states before and after, and the terms of the change.

    Each term has the row of its game in the facts, or None if no single game caused it.
    """

    before: State
    after: State
    terms: list[tuple[int | None, Term]]


class ExplainedPeriod(NamedTuple):
    """A closed period of a ladder: its first and last instants, its minted and burned units, and its players by id."""

    begin: int
    last: int
    minted: int
    burned: int
    players: Mapping[str, PlayerEffect]


def explain_period_of_game(trace: Trace, periods: Periods, row: int) -> ExplainedPeriod | None:
    """Explain the period of a game, given the game's row in the facts; return None if it is in no closed period.

    Raises `RuleFailure`.
    """
    stream = trace.stream
    indexes = np.flatnonzero(arrays.as_numpy(stream.row) == row)
    if not len(indexes):
        return None
    game = int(indexes[0])
    period, version = int(periods.of_game[game]), stream.versions[stream.version[game]]
    slots = PeriodSlots(stream, trace.gaps)
    persons, offsets, rows = slots.results.select_period(period)
    low = int(slots.results.people_from[period])
    stored = [_find_state_before(trace, slots, low + index) for index in range(len(persons))]
    gaps = slots.gaps[:, low : low + len(persons)].T.tolist()
    states = [bring_to_game(version, stream.ladder, row, state, *gap) for state, gap in zip(stored, gaps, strict=True)]
    results = PeriodResults([[*column] for column in zip(*states, strict=True)], offsets.tolist(), rows.tolist())
    minted, after = score_period_states(version, stream.ladder, row, results)
    names = [stream.names[number] for number in persons.tolist()]
    first, own_index = int(periods.offsets[period]), game - int(periods.offsets[period])
    players = {}
    for index, name in enumerate(names):
        terms = explain_period(version, stream.ladder, row, index, names, results, after)
        state = tuple(column[index] for column in after)
        players[name] = PlayerEffect(
            states[index], state, _sort_terms(terms, results.rows[1], first, own_index, stream.row)
        )
    changed = sum(after[0]) - sum(state[0] for state in states)
    return ExplainedPeriod(
        begin=int(periods.begin[period]),
        last=int(periods.end[period]) - 1,
        minted=minted,
        burned=minted - changed,
        players=players,
    )


def _find_state_before(trace: Trace, slots: PeriodSlots, entry: int) -> State:
    """Return the player's state after their last earlier period."""
    slot = int(np.flatnonzero(slots.entry == entry)[0])
    return tuple(int(column[slot]) for column in trace.states_before)


def _sort_terms(
    terms: Sequence[tuple[int, Term]], games: Sequence[int], first: int, own_index: int, rows: Sequence[int]
) -> list[tuple[int | None, Term]]:
    """Return terms with the rows of their games in the facts: those of the game `own_index` first, then in order."""
    game_terms = [(None if index < 0 else games[index], term) for index, term in terms]
    game_terms.sort(key=lambda pair: (pair[0] != own_index, pair[0] is None, pair[0] or 0))
    return [(None if game is None else int(rows[first + game]), term) for game, term in game_terms]
