"""Measure the gaps between a player's games: days, seasons, and the number of earlier games.

Gaps are derived from the counted games of the ladder, in the order of replay, and never stored. Gaps after a late game
or a correction are therefore the same as if the game had been recorded in time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import local_days, np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, Rule
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.seasons import EntryState


class Calendar(NamedTuple):
    """The day of each game of a ladder, in days since 1970 in the ruleset's zone, and the number of its season."""

    day: Column
    season: Column

    def take_first(self, games: int) -> Calendar:
        """Return the calendar of the first `games` games."""
        return Calendar(self.day[:games], self.season[:games])


# the columns that `loops.find_gaps` fills in, by slot; the loop over games reads only the last two of them
GAP_COLUMNS = ("games_before", "first_of_season", "changes_season", "days_since")


class Gaps:
    """The gaps before every slot of a ladder, and the end values of each player; see `loops.find_gaps`.

    The end values are the day and season of the player's last game, and their number of games. The `needed` columns are
    measured immediately, all others on first use.
    """

    def __init__(
        self, calendar: Calendar, offsets: Column, players: Column, start_values: Sequence[Any], needed: Collection[str]
    ) -> None:
        self._slots, self._start_values = (offsets, players, *calendar), start_values
        # a column that is never measured takes no memory, because its zeroed pages are never touched
        self._rows = np.zeros((len(GAP_COLUMNS), len(players)), dtype=np.int64)
        self._measured: set[str] = set()
        self._end_values = [arrays.as_column(column.copy()) for column in start_values]
        self._measure(needed)

    def column(self, name: str) -> Column:
        """Return one of `GAP_COLUMNS`, measured if necessary."""
        self._measure([name])
        return arrays.as_column(self._rows[GAP_COLUMNS.index(name)])

    @property
    def player_count(self) -> int:
        """Return the number of players."""
        return len(self._start_values[0])

    @property
    def last_day(self) -> Column:
        """Return the day of every player's last game."""
        self._measure(["days_since"])
        return self._end_values[0]

    @property
    def last_season(self) -> Column:
        """Return the season of every player's last game."""
        self._measure(["changes_season"])
        return self._end_values[1]

    @property
    def games_played(self) -> Column:
        """Return the number of games of every player."""
        self._measure(["games_before"])
        return self._end_values[2]

    @property
    def end_values(self) -> tuple[Column, Column, Column]:
        """Return the day and season of every player's last game, and their number of games."""
        self._measure(["days_since", "changes_season", "games_before"])
        return self.last_day, self.last_season, self.games_played

    @property
    def loop_rows(self) -> Any:
        """Return the rows that `loops.bring_states_forward` reads. Rows that have not been measured are 0."""
        return self._rows[-2:]

    def _measure(self, names: Collection[str]) -> None:
        """Measure the columns that have not been measured yet, and the end values that depend on them."""
        missing = {*names} - self._measured
        if not missing:
            return
        self._measured |= missing
        end_values = [arrays.as_column(column.copy()) for column in self._start_values]
        rows = [row if name in missing else row[:0] for name, row in zip(GAP_COLUMNS, self._rows, strict=True)]
        compiling.run_loop(
            loops.find_gaps,
            *self._slots,
            *end_values,
            *map(arrays.as_column, rows),
            as_compiled=compiling.is_worthwhile(len(self._slots[0])),
        )
        sources = ({"days_since"}, {"first_of_season", "changes_season"}, {"games_before"})
        self._end_values = [
            measured if missing & source else old
            for measured, old, source in zip(end_values, self._end_values, sources, strict=True)
        ]


def read_calendar(facts: Facts, rows: Column, ruleset: Ruleset) -> Calendar:
    """Return the days and seasons of games, given their rows in the facts."""
    indices = arrays.as_numpy(rows)
    days = local_days(arrays.as_numpy(arrays.take(facts.occurred_at, rows)), ruleset.time_zone)
    return Calendar(arrays.as_column(days), arrays.as_column(_number_seasons(facts, indices, days, ruleset)))


def read_day_and_season(facts: Facts, row: int | None, instant: int, ruleset: Ruleset) -> tuple[int, int]:
    """Return the day of an instant and the number of its season; the season is 0 if `row` is None.

    If seasons are labels of games, it is the season of the game at `row`.
    """
    days = local_days(np.array([instant]), ruleset.time_zone)
    rows = np.array([] if row is None else [row], dtype=np.int64)
    seasons = _number_seasons(facts, rows, days[: len(rows)], ruleset)
    return int(days[0]), int(seasons[0]) if len(seasons) else 0


def _number_seasons(facts: Facts, rows: Any, days: Any, ruleset: Ruleset) -> Any:
    """Return the number of each game's season, from its label or its month; 0 if the ruleset has no seasons."""
    season_by: Any = ruleset.season_by
    if not season_by or not len(rows):
        return np.zeros(len(rows), dtype=np.int64)
    if season_by == "season":
        labels = np.array([cell.season for cell in facts.cells], dtype=np.int64)
        return labels[arrays.as_numpy(facts.cell)[rows]]
    dates = days.astype("datetime64[D]")
    years, months = dates.astype("datetime64[Y]").astype(np.int64), dates.astype("datetime64[M]").astype(np.int64) % 12
    seasons_begun = np.searchsorted(np.array(sorted(season_by)) - 1, months, "right")
    return years * len(season_by) + seasons_begun - 1


def measure_gaps(
    calendar: Calendar,
    offsets: Column,
    players: Column,
    player_count: int,
    entries: Mapping[int, EntryState],
    earlier: Gaps | None = None,
    needed: Collection[str] = (),
) -> Gaps:
    """Measure the gaps before every slot of a stream.

    Args:
        entries: by player number, the states of players who enter with carried or seeded points
        earlier: the gaps of the ladder's earlier part; the players of that part come first in the stream
        needed: the columns to measure immediately
    """
    start_values = [np.full(player_count, MISSING, dtype=np.int64) for _ in range(2)] + [
        np.zeros(player_count, dtype=np.int64)
    ]
    for number, entry in entries.items():
        for column, value in zip(start_values, (entry.last_day, entry.last_season, entry.games), strict=True):
            column[number] = value
    if earlier is not None:
        for column, end_column in zip(start_values, earlier.end_values, strict=True):
            column[: earlier.player_count] = arrays.as_numpy(end_column)
    return Gaps(calendar, offsets, players, start_values, needed)


def list_needed_columns(rules: Sequence[Rule]) -> set[str]:
    """Return the `GAP_COLUMNS` that a replay with these rules needs."""
    needed = {name for rule in rules for name in rule.columns if name in HISTORY_COLUMNS}
    if any(rule.age for rule in rules):
        needed.add("days_since")
    if any(rule.new_season for rule in rules):
        needed.add("changes_season")
    return needed


def fill_in_history(columns: Any, names: Sequence[str], gaps: Gaps, slots: Any = slice(None)) -> None:
    """Fill in the columns about earlier games at some slots. `names` has the name of each row of `columns`."""
    for column, name in zip(columns, names, strict=False):
        if name in HISTORY_COLUMNS:
            column[slots] = arrays.as_numpy(gaps.column(name))[slots]


def reads_history(names: Sequence[str]) -> bool:
    """Tell whether any of the named columns is about earlier games."""
    return not {*HISTORY_COLUMNS}.isdisjoint(names)
