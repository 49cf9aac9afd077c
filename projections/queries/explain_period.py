"""Why a rating period changed what it did: a game of it is explained with everything else that was scored with it."""

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


class InPeriod(NamedTuple):
    """What a period did to a player: the states at its start and at its close, and the reasons.

    Each reason has the row in the facts of the game that it comes from, None for what no single game gave.
    """

    before: State
    after: State
    terms: list[tuple[int | None, Term]]


class ExplainedPeriod(NamedTuple):
    """A closed period of a ladder: its first and last instants, what it minted and burned, and who was in it, by id."""

    begin: int
    last: int
    minted: int
    burned: int
    players: Mapping[str, InPeriod]


def explain_period_of(trace: Trace, periods: Periods, row: int) -> ExplainedPeriod | None:
    """Return what the period of a game did, given the game's row in the facts; None if the game is in no closed period.

    Raises `RuleFailure`.
    """
    stream = trace.stream
    places = np.flatnonzero(arrays.as_numpy(stream.row) == row)
    if not len(places):
        return None
    game = int(places[0])
    period, version = int(periods.of_game[game]), stream.versions[stream.version[game]]
    slots = PeriodSlots(stream, trace.gaps)
    people, offsets, rows = slots.results.one(period)
    low = int(slots.results.people_from[period])
    stored = [_state_before(trace, slots, low + index) for index in range(len(people))]
    gaps = slots.gaps[:, low : low + len(people)].T.tolist()
    given = [bring_to_game(version, stream.ladder, row, state, *gap) for state, gap in zip(stored, gaps, strict=True)]
    results = PeriodResults([[*column] for column in zip(*given, strict=True)], offsets.tolist(), rows.tolist())
    minted, after = score_period_states(version, stream.ladder, row, results)
    names = [stream.names[number] for number in people.tolist()]
    first, own = int(periods.offsets[period]), game - int(periods.offsets[period])
    players = {}
    for index, name in enumerate(names):
        terms = explain_period(version, stream.ladder, row, index, names, results, after)
        state = tuple(column[index] for column in after)
        players[name] = InPeriod(given[index], state, _in_order(terms, results.rows[1], first, own, stream.row))
    changed = sum(after[0]) - sum(state[0] for state in given)
    return ExplainedPeriod(int(periods.begin[period]), int(periods.end[period]) - 1, minted, minted - changed, players)


def _state_before(trace: Trace, slots: PeriodSlots, entry: int) -> State:
    """Return the state that somebody's last period before this one left."""
    slot = int(np.flatnonzero(slots.entry == entry)[0])
    return tuple(int(column[slot]) for column in trace.states_before)


def _in_order(
    terms: Sequence[tuple[int, Term]], games: Sequence[int], first: int, own: int, rows: Sequence[int]
) -> list[tuple[int | None, Term]]:
    """Return terms with the rows in the facts of their games: those of one game first, then in the order of games."""
    named = [(None if index < 0 else games[index], term) for index, term in terms]
    named.sort(key=lambda one: (one[0] != own, one[0] is None, one[0] or 0))
    return [(None if game is None else int(rows[first + game]), term) for game, term in named]
