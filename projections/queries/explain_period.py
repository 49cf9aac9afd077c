"""Explain a rating period: the change of each of its players, with the games that caused it."""

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
    """A closed rating period: its first and last instants, its minted and burned units, and its effect by player."""

    begin: int
    last: int
    minted: int
    burned: int
    players: Mapping[str, PlayerEffect]


def explain_period_of_game(trace: Trace, periods: Periods, row: int) -> ExplainedPeriod | None:
    """Explain the rating period of a game, given the game's row in the facts; return None if it is not closed.

    Raises `RuleFailure`.
    """
    stream = trace.stream
    indexes = np.flatnonzero(arrays.as_numpy(stream.rows) == row)
    if not len(indexes):
        return None
    game = int(indexes[0])
    period, version = int(periods.of_game[game]), stream.versions[stream.version_indices[game]]
    slots = PeriodSlots(stream, trace.gaps)
    persons, offsets, rows = slots.results.select_period(period)
    first_entry = int(slots.results.people_from[period])
    entries = range(first_entry, first_entry + len(persons))
    earlier_states = [_find_state_before(trace, slots, entry) for entry in entries]
    gaps = slots.gaps[:, entries.start : entries.stop].T.tolist()
    states = [
        bring_to_game(version, stream.ladder, row, state, *gap) for state, gap in zip(earlier_states, gaps, strict=True)
    ]
    results = PeriodResults([[*column] for column in zip(*states, strict=True)], offsets.tolist(), rows.tolist())
    minted, after = score_period_states(version, stream.ladder, row, results)
    names = [stream.names[number] for number in persons.tolist()]
    first, own_index = int(periods.offsets[period]), game - int(periods.offsets[period])
    players = {}
    for index, name in enumerate(names):
        terms = explain_period(version, stream.ladder, row, index, names, results, after)
        state = tuple(column[index] for column in after)
        players[name] = PlayerEffect(
            states[index], state, _sort_terms(terms, results.rows[1], first, own_index, stream.rows)
        )
    change_sum = sum(after[0]) - sum(state[0] for state in states)
    return ExplainedPeriod(
        begin=int(periods.begin[period]),
        last=int(periods.end[period]) - 1,
        minted=minted,
        burned=minted - change_sum,
        players=players,
    )


def _find_state_before(trace: Trace, slots: PeriodSlots, entry: int) -> State:
    """Return a player's state after the player's last earlier period, given the entry of the player in this period."""
    slot = int(np.flatnonzero(slots.entry == entry)[0])
    return tuple(int(column[slot]) for column in trace.states_before)


def _sort_terms(
    terms: Sequence[tuple[int, Term]], games: Sequence[int], first: int, own_index: int, rows: Sequence[int]
) -> list[tuple[int | None, Term]]:
    """Return the terms with the rows of their games in the facts: first the terms of one game, then the other terms.

    Args:
        terms: each term with the index of its entry in `games`, below 0 for a term without a game.
        games: the numbers of games in the period.
        first: the number on the ladder of the period's first game.
        own_index: the number in the period of the game whose terms come first.
        rows: the rows in the facts of all games of the ladder.
    """
    game_terms = [(None if index < 0 else games[index], term) for index, term in terms]
    game_terms.sort(key=lambda pair: (pair[0] != own_index, pair[0] is None, pair[0] or 0))
    return [(None if game is None else int(rows[first + game]), term) for game, term in game_terms]
