"""Rating periods: the games that are scored together, the begin and end of a period, and the input of its rule.

A period is a day, a week from Monday on or a month, in the zone of the ruleset; or an event: all games with the same
league, season or number. Periods follow from the games of a ladder, in the order of replay; they are not stored.

Periods are scored in the order in which they end, each from the states after the ones before.
Events may overlap: a player's results of a longer event are then scored from the state after the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN
from ratings_ledger.ledger.events.zones import day_start
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING
from ratings_ledger.projections.facts.local_days import DAY, local_days

UNIX_DAY = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (date.min - UNIX_DAY).days, (date.max - UNIX_DAY).days


class Periods(NamedTuple):
    """The periods of a ladder that have games, in the order in which they end.

    begin, end: by period, its first instant and the first one after it; an event spans its games
    first, last: by period, its number, twice: a count of days, weeks or months since 1970; for an event, the days of
                 its first and its last game
    games:      the indices of the games, period by period, each in the order of replay
    offsets:    the games of period p are games[offsets[p]:offsets[p + 1]]
    of_game:    by game, the index of its period
    """

    begin: Any
    end: Any
    first: Any
    last: Any
    games: Any
    offsets: Any
    of_game: Any

    def first_with(self, games: int) -> Periods:
        """Return the first periods, which have the first `games` together; games are in the order of periods."""
        count = self.count_with(games)
        begin, end, first, last = (column[:count] for column in self[:4])
        return Periods(begin, end, first, last, self.games[:games], self.offsets[: count + 1], self.of_game[:games])

    def count_with(self, games: int) -> int:
        """Return how many periods have all their games among the first `games`, in the order of periods."""
        return int(np.searchsorted(self.offsets, games, "right")) - 1

    def in_order(self, count: int) -> tuple[Any, Periods]:
        """Return the games of the first `count` periods, period by period, and the periods with games numbered so."""
        begin, end, first, last = (column[:count] for column in self[:4])
        games, offsets = self.games[: self.offsets[count]], self.offsets[: count + 1]
        of_game = np.repeat(np.arange(count), np.diff(offsets))
        return games, Periods(begin, end, first, last, np.arange(len(games)), offsets, of_game)

    def followed_by(self, others: Periods) -> Periods:
        """Return these periods and later ones, both with their games in order."""
        begin, end, first, last = (np.concatenate(pair) for pair in zip(self[:4], others[:4], strict=True))
        offsets = np.concatenate([self.offsets, others.offsets[1:] + self.offsets[-1]])
        of_game = np.concatenate([self.of_game, others.of_game + len(self.begin)])
        # An event that is closed early may have its last game before the end of an earlier one.
        end = np.maximum.accumulate(end)
        return Periods(begin, end, first, last, np.arange(len(of_game)), offsets, of_game)

    def count_closed(self, instant: int) -> int:
        """Return how many periods are closed at an instant: those that end with it or earlier."""
        return int(np.searchsorted(self.end, instant + 1, "right"))

    def open_from(self, closed: int, otherwise: int | None = None) -> int | None:
        """Return the first instant of all periods after the `closed` first ones; `otherwise` if there are none."""
        return int(self.begin[closed:].min()) if closed < len(self.begin) else otherwise

    def closed_to(self, closed: int) -> int | None:
        """Return the last instant of the first `closed` periods; None if there are none."""
        return int(self.end[closed - 1]) - 1 if closed else None

    def elapsed(self, earlier: int, later: int) -> int:
        """Return the number of whole periods, or days for events, from one period to a later one; at least 0.

        From a period to the next one it is 1. Between events that overlap it is 0.
        """
        return max(int(self.first[later] - self.last[earlier]), 0)


def number_periods(instants: Any, period: str, zone: str, labels: Any = None) -> Periods:
    """Return the periods of some games.

    Args:
        instants: when each game was played, in microseconds since 1970, in the order of replay: never decreasing
        period: "day", "week", "month" or "event"
        zone: the zone in which days begin
        labels: for an event, the value of `period_by` of every game; see `label_events` for games without one
    """
    if period == "event":
        return _number_events(instants, zone, labels)
    if not len(instants):
        nothing = np.zeros(0, dtype=np.int64)
        return _build_periods(nothing, nothing, nothing, nothing, nothing)
    numbers = _list_numbers_around(instants, _UNITS[period])
    # A day begins at its first midnight, even if clocks go back over it and repeat a part of the previous day.
    starts = np.array(
        [_find_day_start(_UNITS[period].day(number), zone) for number in numbers.tolist()], dtype=np.int64
    )
    index = np.searchsorted(starts, instants, "right") - 1
    changes = np.concatenate([[True], index[1:] != index[:-1]])
    at = index[changes]
    return _build_periods(starts[at], starts[at + 1], numbers[at], numbers[at], np.cumsum(changes) - 1)


def find_period_end(instant: int, period: str, zone: str) -> int:
    """Return the first instant from this one on at which a day, week or month of the zone begins.

    For other periods, and for a version in force from the beginning of time, that is the instant itself.
    """
    if period not in _UNITS or instant <= INSTANT_MIN:
        return instant
    unit = _UNITS[period]
    number = int(unit.count(local_days(np.array([instant]), zone))[0])
    starts = (_find_day_start(unit.day(period_number), zone) for period_number in (number, number + 1))
    return next(start for start in starts if start >= instant)


def _list_numbers_around(instants: Any, unit: _Unit) -> Any:
    """Return the numbers of all periods in which games may be, whatever the zone, and of those after them."""
    days = instants // DAY
    days = days[np.concatenate([[True], days[1:] != days[:-1]])]
    numbers = unit.count(np.concatenate([days - 1, days, days + 1]))
    return np.unique(np.concatenate([numbers, numbers + 1]))


class _Unit(NamedTuple):
    """A kind of period: `count` turns arrays of days since 1970 into numbers, `day` a number into its first day."""

    count: Callable[[Any], Any]
    day: Callable[[int], int]


def _count_months(days: Any) -> Any:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_of_month(number: int) -> int:
    year, month = number // 12 + UNIX_DAY.year, number % 12 + 1
    if not date.min.year <= year <= date.max.year:
        return FIRST_DAY if year < date.min.year else LAST_DAY + 1
    return (date(year, month, 1) - UNIX_DAY).days


# 1970 began on a Thursday, three days into a week.
_UNITS = {
    "day": _Unit(lambda days: days, lambda number: number),
    "week": _Unit(lambda days: (days + 3) // 7, lambda number: 7 * number - 3),
    "month": _Unit(_count_months, _first_of_month),
}


def number_day(day: int, period: str) -> int:
    """Return the number of the period of a day, given as days since 1970; for events, the day itself."""
    return int(_UNITS[period].count(np.array([day]))[0]) if period in _UNITS else day


def _find_day_start(day: int, zone: str) -> int:
    """Return the first instant of a day, given as days since 1970, within the range of instants."""
    if day <= FIRST_DAY:
        return INSTANT_MIN
    return INSTANT_MAX + 1 if day > LAST_DAY else day_start(UNIX_DAY + timedelta(days=day), zone)


def _number_events(instants: Any, zone: str, labels: Any) -> Periods:
    """Return the periods of events. They are scored in the order of their last games, so events may overlap."""
    distinct, first, of_game = np.unique(labels, return_index=True, return_inverse=True)
    last = np.zeros(len(distinct), dtype=np.int64)
    last[of_game] = np.arange(len(of_game))  # the last of several assignments wins
    order = np.argsort(last)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    begin, end = instants[first[order]], instants[last[order]]
    return _build_periods(begin, end + 1, local_days(begin, zone), local_days(end, zone), rank[of_game])


def _build_periods(begin: Any, end: Any, first: Any, last: Any, of_game: Any) -> Periods:
    offsets = np.zeros(len(begin) + 1, dtype=np.int64)
    np.cumsum(np.bincount(of_game, minlength=len(begin)), out=offsets[1:])
    return Periods(begin, end, first, last, np.argsort(of_game, kind="stable"), offsets, of_game)


def label_events(labels: Any, absent: int = MISSING) -> Any:
    """Return labels of events in which every game without one (`absent`) is an event of its own."""
    alone = np.flatnonzero(labels == absent)
    _, numbers = np.unique(labels, return_inverse=True)
    numbers = numbers.astype(np.int64)
    numbers[alone] = len(labels) + np.arange(len(alone))
    return numbers


class ResultRows(NamedTuple):
    """The input of rules that score periods: for every player of every period, a row for each game and opponent.

    people:      the players' numbers on the ladder, period by period, each once a period
    people_from: the players of period p are people[people_from[p]:people_from[p + 1]]
    rows_from:   by index of `people`, where the player's rows begin in `rows`, and where the last ones end
    rows:        an array: the opponent, as an index among the players of the period; the number of the game within the
                 period; the rule's columns of the player; and those of the opponent
    """

    people: Any
    people_from: Any
    rows_from: Any
    rows: Any

    def one(self, index: int) -> tuple[Any, Any, Any]:
        """Return the players, offsets and rows of one period, as `Rule.score_period` gets them."""
        low, high = int(self.people_from[index]), int(self.people_from[index + 1])
        offsets = self.rows_from[low : high + 1]
        return self.people[low:high], offsets - offsets[0], self.rows[:, offsets[0] : offsets[-1]]


class LadderSlots(NamedTuple):
    """The counted participants of a ladder's games: game g has slots `offsets[g]` up to `offsets[g + 1]`.

    players: the number of each on the ladder
    columns: the columns that the rule reads, an array with a row for each
    team:    by slot, the side in the game, MISSING without sides; None if no game has sides
    """

    offsets: Any
    players: Any
    columns: Any
    team: Any = None


def build_results(periods: Periods, slots: LadderSlots, first: int = 0, stop: int | None = None) -> ResultRows:
    """Return the results of the periods from `first` to before `stop`, by default of all.

    A player's rows are in the order of their games, and within a game in the order of its participants. Players of one
    side are no opponents.
    """
    stop = len(periods.begin) if stop is None else stop
    low, high = periods.offsets[first], periods.offsets[stop]
    games = periods.games[low:high]
    period = periods.of_game[games] - first
    number = np.arange(low, high) - periods.offsets[period + first]
    size = slots.offsets[games + 1] - slots.offsets[games]
    slot = _concatenate_ranges(slots.offsets[games], size)
    slot_period, slot_number, slot_size = (np.repeat(values, size) for values in (period, number, size))

    # One number for each player of each period, in this order.
    player_count = int(slots.players.max()) + 1 if len(slots.players) else 1
    people, entry = np.unique(slot_period * player_count + slots.players[slot], return_inverse=True)
    people_from = np.searchsorted(people, np.arange(stop - first + 1) * player_count)

    own, opponents = _list_pairs(size, slot_size)
    is_pair = own != opponents
    if slots.team is not None:
        team = slots.team[slot]
        is_pair &= (team[own] == MISSING) | (team[own] != team[opponents])
    own, opponents = own[is_pair], opponents[is_pair]
    order = np.argsort(entry[own], kind="stable")
    own, opponents = own[order], opponents[order]
    rows_from = np.zeros(len(people) + 1, dtype=np.int64)
    np.cumsum(np.bincount(entry[own], minlength=len(people)), out=rows_from[1:])

    width = len(slots.columns)
    rows = np.empty((2 + 2 * width, len(own)), dtype=np.int64)
    rows[0] = entry[opponents] - people_from[slot_period[own]]
    rows[1] = slot_number[own]
    for index in range(width):
        rows[2 + index] = slots.columns[index][slot[own]]
        rows[2 + width + index] = slots.columns[index][slot[opponents]]
    return ResultRows(people % player_count, people_from, rows_from, rows)


def _concatenate_ranges(starts: Any, sizes: Any) -> Any:
    """Concatenate ranges, given their starts and sizes."""
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes)


def _list_pairs(size: Any, slot_size: Any) -> tuple[Any, Any]:
    """Return all ordered pairs of slots within each game, as indices into the slots of games of these sizes."""
    starts = np.repeat(np.cumsum(size) - size, size)
    return np.repeat(np.arange(len(slot_size)), slot_size), _concatenate_ranges(starts, slot_size)
