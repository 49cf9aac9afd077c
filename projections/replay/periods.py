"""Divide the games of a ladder into rating periods, and list the results of each period for the ladder's rule.

A period is a day, a week from Monday on or a month, in the zone of the ruleset; or a tournament (`period = "event"`):
all games with the same league, season or custom number. Periods are derived from a ladder's games and never stored.

Periods are scored in the order in which they end. Each starts from the states after the previous one. Tournaments may
overlap: a longer tournament is then scored from the states after a shorter one within it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN
from ratings_ledger.ledger.events.zones import day_start
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import DAY, local_days, np
from ratings_ledger.projections.contract import MISSING

UNIX_DAY = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (date.min - UNIX_DAY).days, (date.max - UNIX_DAY).days


class Periods(NamedTuple):
    """The periods of a ladder that have games, in the order in which they end.

    begin, end:  by period, its first instant and the first instant after it; a tournament lasts from its first game to
                 its last
    first_number, last_number: by period, its number in days, weeks or months since 1970, equal in both. For a
                 tournament, the days of its first and its last game
    games:       the indices of the games, sorted by period and then in the order of replay
    offsets:     the games of period p are games[offsets[p]:offsets[p + 1]]
    of_game:     by game, the index of its period
    """

    begin: Any
    end: Any
    first_number: Any
    last_number: Any
    games: Any
    offsets: Any
    of_game: Any

    def take_first(self, games: int) -> Periods:
        """Return the periods of the first `games` games. The games must be sorted by period."""
        count = self.count_complete(games)
        columns = (column[:count] for column in self[:4])
        return Periods._make((*columns, self.games[:games], self.offsets[: count + 1], self.of_game[:games]))

    def count_complete(self, games: int) -> int:
        """Count the periods that have all their games among the first `games`. The games must be sorted by period."""
        return int(np.searchsorted(self.offsets, games, "right")) - 1

    def order_games(self, count: int) -> tuple[Any, Periods]:
        """Return the games of the first `count` periods, sorted by period, and these periods with renumbered games."""
        columns = (column[:count] for column in self[:4])
        games, offsets = self.games[: self.offsets[count]], self.offsets[: count + 1]
        of_game = np.repeat(np.arange(count), np.diff(offsets))
        return games, Periods._make((*columns, np.arange(len(games)), offsets, of_game))

    def append(self, later: Periods) -> Periods:
        """Return these periods followed by later ones. The games of both must be sorted by period."""
        begin, end, first_number, last_number = (np.concatenate(pair) for pair in zip(self[:4], later[:4], strict=True))
        offsets = np.concatenate([self.offsets, later.offsets[1:] + self.offsets[-1]])
        of_game = np.concatenate([self.of_game, later.of_game + len(self.begin)])
        # `count_closed` needs ascending ends, but a tournament that is closed early may end before an earlier period
        end = np.maximum.accumulate(end)
        return Periods(begin, end, first_number, last_number, np.arange(len(of_game)), offsets, of_game)

    def count_closed(self, instant: int) -> int:
        """Count the periods that end at an instant or earlier."""
        return int(np.searchsorted(self.end, instant + 1, "right"))

    def find_end(self, game: int) -> int:
        """Return the end of a game's period; if there is no game with this number, an instant after all periods."""
        return int(self.end[self.of_game[game]]) if game < len(self.of_game) else INSTANT_MAX + 2

    def find_first_instant(self, closed: int, default: int | None = None) -> int | None:
        """Return the first instant of all periods after the first `closed`; `default` without such periods."""
        return int(self.begin[closed:].min()) if closed < len(self.begin) else default

    def find_last_instant(self, closed: int) -> int | None:
        """Return the last instant of the first `closed` periods; None if `closed` is 0."""
        return int(self.end[closed - 1]) - 1 if closed else None


def divide_into_periods(instants: Any, period: str, zone: str, tournaments: Any = None) -> Periods:
    """Return the periods of some games.

    Args:
        instants: by game, when it was played, in ascending order, in microseconds since 1970
        period: "day", "week", "month" or "event"
        zone: the zone in which days begin
        tournaments: for `period` "event", by game, the number of its tournament; see `number_tournaments`
    """
    if period == "event":
        return _build_tournament_periods(instants, zone, tournaments)
    if not len(instants):
        empty = np.zeros(0, dtype=np.int64)
        return _build_periods(empty, empty, empty, empty, empty)
    period_numbers = _list_numbers_around(instants, _CALENDAR_PERIODS[period])
    # a day begins at its first midnight, even if the clock is set back across it and repeats part of the previous day
    first_days = map(_CALENDAR_PERIODS[period].to_first_day, period_numbers.tolist())
    starts = np.array([_find_day_start(day, zone) for day in first_days], dtype=np.int64)
    period_of_game = np.searchsorted(starts, instants, "right") - 1
    is_first_game = np.concatenate([[True], period_of_game[1:] != period_of_game[:-1]])
    used = period_of_game[is_first_game]
    numbers = period_numbers[used]
    return _build_periods(starts[used], starts[used + 1], numbers, numbers, np.cumsum(is_first_game) - 1)


def find_period_end(instant: int, period: str, zone: str) -> int:
    """Return the first instant, not before the given one, at which a day, week or month (`period`) of the zone begins.

    Return the instant unchanged for other periods, and for INSTANT_MIN.
    """
    if period not in _CALENDAR_PERIODS or instant <= INSTANT_MIN:
        return instant
    calendar_period = _CALENDAR_PERIODS[period]
    own_number = int(calendar_period.to_numbers(local_days(np.array([instant]), zone))[0])
    starts = (
        _find_day_start(calendar_period.to_first_day(period_number), zone)
        for period_number in (own_number, own_number + 1)
    )
    return next(start for start in starts if start >= instant)


def _list_numbers_around(instants: Any, calendar_period: _CalendarPeriod) -> Any:
    """Return the sorted numbers of all periods that the games may be in, in any zone, and of the periods after them."""
    days = instants // DAY
    days = days[np.concatenate([[True], days[1:] != days[:-1]])]
    numbers = calendar_period.to_numbers(np.concatenate([days - 1, days, days + 1]))
    return np.unique(np.concatenate([numbers, numbers + 1]))


class _CalendarPeriod(NamedTuple):
    """The numbering of days, weeks or months since 1970.

    to_numbers:   (array of days since 1970) -> the numbers of their periods
    to_first_day: (number of a period) -> its first day
    """

    to_numbers: Callable[[Any], Any]
    to_first_day: Callable[[int], int]


def _count_months(days: Any) -> Any:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _find_first_of_month(month_number: int) -> int:
    year, month = month_number // 12 + UNIX_DAY.year, month_number % 12 + 1
    if not date.min.year <= year <= date.max.year:
        return FIRST_DAY if year < date.min.year else LAST_DAY + 1
    return (date(year, month, 1) - UNIX_DAY).days


# 1970 began on a Thursday, three days into a week
_CALENDAR_PERIODS = {
    "day": _CalendarPeriod(lambda days: days, lambda number: number),
    "week": _CalendarPeriod(lambda days: (days + 3) // 7, lambda number: 7 * number - 3),
    "month": _CalendarPeriod(_count_months, _find_first_of_month),
}


def find_period_number(day: int, period: str) -> int:
    """Return the number of the period that contains a day (in days since 1970); for tournaments, return the day."""
    return int(_CALENDAR_PERIODS[period].to_numbers(np.array([day]))[0]) if period in _CALENDAR_PERIODS else day


def _find_day_start(day: int, zone: str) -> int:
    """Return the first instant of a day (in days since 1970); after the last valid day, return INSTANT_MAX + 1."""
    if day <= FIRST_DAY:
        return INSTANT_MIN
    return INSTANT_MAX + 1 if day > LAST_DAY else day_start(UNIX_DAY + timedelta(days=day), zone)


def _build_tournament_periods(instants: Any, zone: str, number_of_game: Any) -> Periods:
    """Return one period for each tournament, in the order of their last games."""
    tournaments, first_games, tournament_of_game = np.unique(number_of_game, return_index=True, return_inverse=True)
    last_games = np.zeros(len(tournaments), dtype=np.int64)
    last_games[tournament_of_game] = np.arange(len(tournament_of_game))  # the last of several assignments wins
    tournament_order = np.argsort(last_games)
    period_of_tournament = np.empty_like(tournament_order)
    period_of_tournament[tournament_order] = np.arange(len(tournament_order))
    begin, end = instants[first_games[tournament_order]], instants[last_games[tournament_order]]
    return _build_periods(
        begin, end + 1, local_days(begin, zone), local_days(end, zone), period_of_tournament[tournament_of_game]
    )


def _build_periods(begin: Any, end: Any, first_number: Any, last_number: Any, of_game: Any) -> Periods:
    offsets = np.zeros(len(begin) + 1, dtype=np.int64)
    np.cumsum(np.bincount(of_game, minlength=len(begin)), out=offsets[1:])
    return Periods(begin, end, first_number, last_number, np.argsort(of_game, kind="stable"), offsets, of_game)


def number_tournaments(labels: Any, absent: int = MISSING) -> Any:
    """Return the tournament number of each game: equal for games with equal labels.

    A game with the label `absent` is a tournament of its own.
    """
    unlabelled = np.flatnonzero(labels == absent)
    _, numbers = np.unique(labels, return_inverse=True)
    numbers = numbers.astype(np.int64)
    numbers[unlabelled] = len(labels) + np.arange(len(unlabelled))
    return numbers


class ResultRows(NamedTuple):
    """The input of rules that score periods: a result for each player, game and opponent of each period.

    people:      the numbers of the players on the ladder, sorted by period; a player occurs once in a period
    people_from: the players of period p are people[people_from[p]:people_from[p + 1]]
    rows_from:   the results of people[i] are rows[:, rows_from[i]:rows_from[i + 1]]
    rows:        an array with a column for each result. Its rows: the opponent's index among the players of the period;
                 the number of the game within the period; the rule's columns for the player, then for the opponent
    """

    people: Any
    people_from: Any
    rows_from: Any
    rows: Any

    def select_period(self, index: int) -> tuple[Any, Any, Any]:
        """Return a period's players, and its offsets and rows in the form in which `Rule.score_period` gets them."""
        low, high = int(self.people_from[index]), int(self.people_from[index + 1])
        offsets = self.rows_from[low : high + 1]
        return self.people[low:high], offsets - offsets[0], self.rows[:, offsets[0] : offsets[-1]]


class LadderSlots(NamedTuple):
    """The slots of a ladder: one for each counted participant of each game.

    offsets: the slots of game g are offsets[g] to offsets[g + 1] - 1
    players: by slot, the player's number on the ladder
    columns: the columns that the rule reads: a row for each, by slot
    team:    by slot, the player's side in the game, MISSING without sides; None if no game has sides
    """

    offsets: Any
    players: Any
    columns: Any
    team: Any = None


def build_results(periods: Periods, slots: LadderSlots) -> ResultRows:
    """Return the results of all periods.

    A player's results are sorted by game, then by opponent. Players on the same side are not opponents.
    """
    period_of_game = periods.of_game[periods.games]
    game_numbers = np.arange(len(periods.games)) - periods.offsets[period_of_game]
    starts = slots.offsets[periods.games]
    sizes = slots.offsets[periods.games + 1] - starts
    stream_slots = _concatenate_ranges(starts, sizes)
    period_of_slot, game_number_of_slot, game_size_of_slot = (
        np.repeat(values, sizes) for values in (period_of_game, game_numbers, sizes)
    )

    # one number for each pair of a period and a player, so that sorting puts periods first
    player_count = int(slots.players.max()) + 1 if len(slots.players) else 1
    people, player_entries = np.unique(period_of_slot * player_count + slots.players[stream_slots], return_inverse=True)
    people_from = np.searchsorted(people, np.arange(len(periods.begin) + 1) * player_count)

    own_slots, opponent_slots = _list_pairs(sizes, game_size_of_slot)
    is_pair = own_slots != opponent_slots
    if slots.team is not None:
        team = slots.team[stream_slots]
        is_pair &= (team[own_slots] == MISSING) | (team[own_slots] != team[opponent_slots])
    own_slots, opponent_slots = own_slots[is_pair], opponent_slots[is_pair]
    order = np.argsort(player_entries[own_slots], kind="stable")
    own_slots, opponent_slots = own_slots[order], opponent_slots[order]
    rows_from = np.zeros(len(people) + 1, dtype=np.int64)
    np.cumsum(np.bincount(player_entries[own_slots], minlength=len(people)), out=rows_from[1:])

    width = len(slots.columns)
    rows = np.empty((2 + 2 * width, len(own_slots)), dtype=np.int64)
    rows[0] = player_entries[opponent_slots] - people_from[period_of_slot[own_slots]]
    rows[1] = game_number_of_slot[own_slots]
    for index in range(width):
        rows[2 + index] = slots.columns[index][stream_slots[own_slots]]
        rows[2 + width + index] = slots.columns[index][stream_slots[opponent_slots]]
    return ResultRows(people % player_count, people_from, rows_from, rows)


def _concatenate_ranges(starts: Any, sizes: Any) -> Any:
    """Return the integers of several ranges, one range after the other, given their starts and sizes."""
    return arrays.as_numpy(arrays.span_indices(arrays.as_column(starts), arrays.as_column(sizes)))


def _list_pairs(sizes: Any, size_by_slot: Any) -> tuple[Any, Any]:
    """Return all ordered pairs of slots in the same game, also of a slot with itself, as two arrays of indices.

    `sizes` has the number of slots by game; `size_by_slot` has that of each slot's game.
    """
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(np.arange(len(size_by_slot)), size_by_slot), _concatenate_ranges(starts, size_by_slot)
