"""What events do to the rating periods of a ladder: how many are recomputed or close, and how many games wait."""

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
    """What events do to a ladder that is scored by rating periods: how many closed periods are recomputed since a game,
    an adjustment or a rule in or before them differs; how many periods close, since time has passed; and how many more
    games wait in open periods, the first of which ends at `closes_at`.
    """

    ladder: str
    recomputed: int
    closed: int
    waiting: int
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


def compare_periods(before: Facts, after: Facts, old: Stream | None, new: Stream | None) -> PeriodImpact | None:
    """Return what lies between two states of a ladder at the ends of their logs; None if no period is concerned, or if
    every game is scored by itself.
    """
    # Only ladders that score games one by one are continued, so the last part of a trace tells.
    old, new = (stream.known.stream if stream and stream.known else stream for stream in (old, new))
    if new is None or new.periods is None or (old is not None and old.periods is None):
        return None
    was_open = None if old is None else describe_periods(before, old, None)
    is_open = describe_periods(after, new, None)
    were_closed = new.periods.count_closed(before.recorded_until) if before.position else 0
    recomputed = max(were_closed - _find_first(old, new), 0)
    closed = len(new.periods.begin) - were_closed
    waiting = max((is_open.open_games if is_open else 0) - (was_open.open_games if was_open else 0), 0)
    if not (recomputed or closed or waiting):
        return None
    closes_at = None if is_open is None or is_open.closes_at is None else moment(is_open.closes_at)
    return PeriodImpact(new.ladder, recomputed, closed, waiting, closes_at=closes_at)


def _find_first(old: Stream | None, new: Stream) -> int:
    """Return the index of the first period that differs from what was scored before."""
    assert new.periods is not None
    if old is None or old.periods is None:
        return 0
    first_game = min(
        _first_difference(_describe_games(old), _describe_games(new)),
        _game_of_slot(new, _first_difference(_describe_slots(old), _describe_slots(new))),
    )
    ends = []
    for stream, counterpart in ((old, new), (new, old)):
        seeded = [name for name, seed in stream.seeds.items() if counterpart.seeds.get(name) != seed]
        # an adjustment is counted when its period closes: the periods after that differ
        adjusted = _describe_adjustments(stream) - _describe_adjustments(counterpart)
        games = [first_game, *(game for game, *_ in adjusted), *(_first_game_of(stream, name) for name in seeded)]
        ends += [_end_of(stream, game) for game in games]
    return int(np.searchsorted(new.periods.end, min(ends), "left"))


def _describe_adjustments(stream: Stream) -> set[tuple[int, int, int, int]]:
    """Return what tells adjustments apart; each with the game that it comes before."""
    return {
        (adjustment.game, stream.persons[adjustment.player], adjustment.units, adjustment.position)
        for adjustment in stream.adjustments
    }


def _end_of(stream: Stream, game: int) -> int:
    """Return the end of a game's period; behind every period where there is no such game."""
    periods = stream.periods
    assert periods is not None
    return int(periods.end[periods.of_game[game]]) if game < len(periods.of_game) else INSTANT_MAX + 2


def _describe_games(stream: Stream) -> list[Any]:
    """Return columns of what tells games apart, by game."""
    positions = np.array([version.position for version in stream.versions], dtype=np.int64)
    version, row = arrays.as_numpy(stream.version), arrays.as_numpy(stream.row)
    periods = stream.periods
    assert periods is not None
    return [row, positions[version], np.diff(arrays.as_numpy(stream.offsets)), periods.end[periods.of_game]]


def _describe_slots(stream: Stream) -> list[Any]:
    """Return columns of what a rule reads, by slot."""
    persons = np.array(stream.persons, dtype=np.int64)
    return [persons[arrays.as_numpy(stream.players)], *map(arrays.as_numpy, stream.columns)]


def _first_difference(left: list[Any], right: list[Any]) -> int:
    """Return the first index at which some columns differ; where one ends, if they are the same until there."""
    count = min(len(left[0]), len(right[0]))
    differs = np.zeros(count, dtype=bool)
    for left_item, right_item in zip(left, right, strict=False):
        differs |= left_item[:count] != right_item[:count]
    places = np.flatnonzero(differs)
    return int(places[0]) if len(places) else count


def _game_of_slot(stream: Stream, slot: int) -> int:
    return int(np.searchsorted(arrays.as_numpy(stream.offsets), slot, "right")) - 1


def _first_game_of(stream: Stream, name: str) -> int:
    """Return the first game of a player, by id; one behind the last if there is none."""
    if name not in stream.names:
        return len(stream.row)
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(name))
    return _game_of_slot(stream, int(slots[0])) if len(slots) else len(stream.row)
