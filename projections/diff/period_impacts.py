"""Compute the impact of events on rating periods: the recomputed and closed periods, and the waiting games."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.events.canonical import INSTANT_MAX
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.replay.streams import Stream, describe_periods


@dataclass(frozen=True, slots=True)
class PeriodImpact(Result):
    """The impact of events on a ladder that is scored by rating periods.

    recomputed: the number of closed periods that change, because a game, an adjustment or a rule in or before the
                period changes
    closed:     the number of periods that close because time has passed
    waiting:    the number of additional games in open periods
    closes_at:  the end of the first open period, None without one
    """

    ladder: str
    recomputed: int
    closed: int
    waiting: int
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


def compare_periods(before: Facts, after: Facts, old: Stream | None, new: Stream | None) -> PeriodImpact | None:
    """Compare the rating periods of two states of a ladder.

    Return None if no period changes, or if the ladder has no periods.
    """
    # a trace is continued only if every game is scored separately, so the trace of this ladder covers all of it
    old, new = (stream.trace.stream if stream and stream.trace else stream for stream in (old, new))
    if new is None or new.periods is None or (old is not None and old.periods is None):
        return None
    old_periods = None if old is None else describe_periods(before, old, as_of=None)
    new_periods = describe_periods(after, new, as_of=None)
    closed_before = new.periods.count_closed(before.recorded_until) if before.position else 0
    recomputed = max(closed_before - _find_first_differing_period(old, new), 0)
    closed = len(new.periods.begin) - closed_before
    old_open_games = old_periods.open_games if old_periods else 0
    waiting = max((new_periods.open_games if new_periods else 0) - old_open_games, 0)
    if not (recomputed or closed or waiting):
        return None
    closes_at = None if new_periods is None or new_periods.closes_at is None else to_datetime(new_periods.closes_at)
    return PeriodImpact(new.ladder, recomputed, closed, waiting, closes_at=closes_at)


def _find_first_differing_period(old: Stream | None, new: Stream) -> int:
    """Return the index of the first period that is scored differently than before."""
    assert new.periods is not None
    if old is None or old.periods is None:
        return 0
    first_game = min(
        _find_first_difference(_describe_games(old), _describe_games(new)),
        _find_game_of_slot(new, _find_first_difference(_describe_slots(old), _describe_slots(new))),
    )
    ends = []
    for stream, counterpart in ((old, new), (new, old)):
        seeded_players = [name for name, seed in stream.seeds.items() if counterpart.seeds.get(name) != seed]
        # an adjustment takes effect when its period closes, so only the later periods differ
        adjustments = _describe_adjustments(stream) - _describe_adjustments(counterpart)
        games = [first_game, *(game for game, *_ in adjustments)]
        games += [_find_first_game(stream, name) for name in seeded_players]
        ends += [_find_period_end(stream, game) for game in games]
    return int(np.searchsorted(new.periods.end, min(ends), "left"))


def _describe_adjustments(stream: Stream) -> set[tuple[int, int, int, int]]:
    """Return the values that identify each adjustment: (next game, person, units, position)."""
    return {
        (adjustment.game, stream.persons[adjustment.player], adjustment.units, adjustment.position)
        for adjustment in stream.adjustments
    }


def _find_period_end(stream: Stream, game: int) -> int:
    """Return the end of a game's period, or an instant after all periods for the number after the last game."""
    periods = stream.periods
    assert periods is not None
    return int(periods.end[periods.of_game[game]]) if game < len(periods.of_game) else INSTANT_MAX + 2


def _describe_games(stream: Stream) -> list[Any]:
    """Return columns with the values that identify each game."""
    positions = np.array([version.position for version in stream.versions], dtype=np.int64)
    version, row = arrays.as_numpy(stream.version_indices), arrays.as_numpy(stream.rows)
    periods = stream.periods
    assert periods is not None
    return [row, positions[version], np.diff(arrays.as_numpy(stream.offsets)), periods.end[periods.of_game]]


def _describe_slots(stream: Stream) -> list[Any]:
    """Return columns with the values that a rule reads about each slot (a player in a game)."""
    persons = np.array(stream.persons, dtype=np.int64)
    return [persons[arrays.as_numpy(stream.players)], *map(arrays.as_numpy, stream.columns)]


def _find_first_difference(left: list[Any], right: list[Any]) -> int:
    """Return the first index at which the columns differ; without a difference, the length of the shorter columns."""
    count = min(len(left[0]), len(right[0]))
    differs = np.zeros(count, dtype=bool)
    for left_column, right_column in zip(left, right, strict=False):
        differs |= left_column[:count] != right_column[:count]
    indexes = np.flatnonzero(differs)
    return int(indexes[0]) if len(indexes) else count


def _find_game_of_slot(stream: Stream, slot: int) -> int:
    return int(np.searchsorted(arrays.as_numpy(stream.offsets), slot, "right")) - 1


def _find_first_game(stream: Stream, name: str) -> int:
    """Return the number of a player's first game; without one, the number of games."""
    if name not in stream.names:
        return len(stream.rows)
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(name))
    return _find_game_of_slot(stream, int(slots[0])) if len(slots) else len(stream.rows)
