"""Compute the impact of events on rating periods: the recomputed and closed periods, and the waiting games."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.events.canonical import INSTANT_MAX
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.replay.ladders import Stream, describe_periods


@dataclass(frozen=True, slots=True)
class PeriodImpact(Result):
    """The impact of events on a ladder that is scored by rating periods.

    `recomputed` counts the closed periods that change because a game, an adjustment or a rule differs in or before
    them. `closed` counts the periods that close because time has passed. `waiting` counts the additional games in open
    periods, the first of which ends at `closes_at`.
    """

    ladder: str
    recomputed: int
    closed: int
    waiting: int
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


def compare_periods(before: Facts, after: Facts, old: Stream | None, new: Stream | None) -> PeriodImpact | None:
    """Compare the rating periods of two states of a ladder; None if no period changes or the ladder has no periods."""
    # only ladders that score game by game are continued, so a known trace covers the whole ladder
    old, new = (stream.trace.stream if stream and stream.trace else stream for stream in (old, new))
    if new is None or new.periods is None or (old is not None and old.periods is None):
        return None
    was_open = None if old is None else describe_periods(before, old, None)
    is_open = describe_periods(after, new, None)
    were_closed = new.periods.count_closed(before.recorded_until) if before.position else 0
    recomputed = max(were_closed - _find_first_differing_period(old, new), 0)
    closed = len(new.periods.begin) - were_closed
    waiting = max((is_open.open_games if is_open else 0) - (was_open.open_games if was_open else 0), 0)
    if not (recomputed or closed or waiting):
        return None
    closes_at = None if is_open is None or is_open.closes_at is None else moment(is_open.closes_at)
    return PeriodImpact(new.ladder, recomputed, closed, waiting, closes_at=closes_at)


def _find_first_differing_period(old: Stream | None, new: Stream) -> int:
    """Return the index of the first period that differs from its previous scoring."""
    assert new.periods is not None
    if old is None or old.periods is None:
        return 0
    first_game = min(
        _find_first_difference(_describe_games(old), _describe_games(new)),
        _find_game_of_slot(new, _find_first_difference(_describe_slots(old), _describe_slots(new))),
    )
    ends = []
    for stream, counterpart in ((old, new), (new, old)):
        seeded = [name for name, seed in stream.seeds.items() if counterpart.seeds.get(name) != seed]
        # an adjustment takes effect when its period closes, so the periods after that differ
        adjusted = _describe_adjustments(stream) - _describe_adjustments(counterpart)
        games = [first_game, *(game for game, *_ in adjusted), *(_find_first_game(stream, name) for name in seeded)]
        ends += [_find_period_end(stream, game) for game in games]
    return int(np.searchsorted(new.periods.end, min(ends), "left"))


def _describe_adjustments(stream: Stream) -> set[tuple[int, int, int, int]]:
    """Return the identifying values of each adjustment, first the game that it precedes."""
    return {
        (adjustment.game, stream.persons[adjustment.player], adjustment.units, adjustment.position)
        for adjustment in stream.adjustments
    }


def _find_period_end(stream: Stream, game: int) -> int:
    """Return the end of a game's period; an instant after all periods if there is no such game."""
    periods = stream.periods
    assert periods is not None
    return int(periods.end[periods.of_game[game]]) if game < len(periods.of_game) else INSTANT_MAX + 2


def _describe_games(stream: Stream) -> list[Any]:
    """Return columns, by game, of the values that identify it."""
    positions = np.array([version.position for version in stream.versions], dtype=np.int64)
    version, row = arrays.as_numpy(stream.version), arrays.as_numpy(stream.row)
    periods = stream.periods
    assert periods is not None
    return [row, positions[version], np.diff(arrays.as_numpy(stream.offsets)), periods.end[periods.of_game]]


def _describe_slots(stream: Stream) -> list[Any]:
    """Return columns, by slot, of the values that a rule reads."""
    persons = np.array(stream.persons, dtype=np.int64)
    return [persons[arrays.as_numpy(stream.players)], *map(arrays.as_numpy, stream.columns)]


def _find_first_difference(left: list[Any], right: list[Any]) -> int:
    """Return the first index at which the columns differ; the length of the shorter ones if they do not."""
    count = min(len(left[0]), len(right[0]))
    differs = np.zeros(count, dtype=bool)
    for left_item, right_item in zip(left, right, strict=False):
        differs |= left_item[:count] != right_item[:count]
    indexes = np.flatnonzero(differs)
    return int(indexes[0]) if len(indexes) else count


def _find_game_of_slot(stream: Stream, slot: int) -> int:
    return int(np.searchsorted(arrays.as_numpy(stream.offsets), slot, "right")) - 1


def _find_first_game(stream: Stream, name: str) -> int:
    """Return the index of a player's first game; the number of games if there is none."""
    if name not in stream.names:
        return len(stream.row)
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(name))
    return _find_game_of_slot(stream, int(slots[0])) if len(slots) else len(stream.row)
