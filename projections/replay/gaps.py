"""The gaps between a player's games: days, seasons, and the number of earlier games.

They are derived from the counted games of the ladder, in the order of replay, and not stored. So a late game or a
correction changes the gaps after it as if it had been recorded in time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, Rule
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.facts.local_days import local_days
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.rulesets.versions import Version

# A player's state: a number for each of the rule's columns, the points first.
State: TypeAlias = tuple[int, ...]


class EntryState(NamedTuple):
    """The state with which a player enters a ladder after an earlier season, or by a seed.

    games:       the number of the player's earlier games
    last_day, last_season: the day and the season of the last of these
    entered:     versions that took effect up to this instant have already changed the state
    seeded:      for a seed, the state for each version under which the player may enter, by name; `state` is then empty
    """

    state: State
    games: int = 0
    last_day: int = MISSING
    last_season: int = MISSING
    entered: int = MISSING
    seeded: Mapping[str, State] | None = None

    def begin(self, version: Version) -> State | None:
        """Return the state with which the player enters under a version; None if they enter as a new player."""
        if self.seeded is not None:
            return self.seeded[version.ruleset.name]
        return self.state if version.params.carry_over else None


class Calendar(NamedTuple):
    """The day of every game of a ladder, in the zone of the ruleset, and the number of its season."""

    day: Column
    season: Column

    def first(self, games: int) -> Calendar:
        """Return the calendar of the first `games` games."""
        return Calendar(self.day[:games], self.season[:games])


# the columns that `loops.find_gaps` fills in for every slot; the loop over games reads the last two
SLOT_COLUMNS = ("games_before", "first_of_season", "changes_season", "days_since")


class Gaps:
    """The gaps before every slot of a ladder, as in `loops.find_gaps`, and the values of each player at the end.

    The `needed` columns are measured immediately, all others on first use.
    """

    def __init__(
        self, calendar: Calendar, offsets: Column, players: Column, begin: Sequence[Any], needed: Collection[str]
    ) -> None:
        self._slots, self._begin = (offsets, players, *calendar), begin
        # pages are allocated when they are first touched, so a column that is never read takes no memory
        self._rows = np.zeros((len(SLOT_COLUMNS), len(players)), dtype=np.int64)
        self._measured: set[str] = set()
        self._end = [arrays.as_column(column.copy()) for column in begin]
        self._measure(needed)

    def column(self, name: str) -> Column:
        """Return one of `SLOT_COLUMNS`."""
        self._measure([name])
        return arrays.as_column(self._rows[SLOT_COLUMNS.index(name)])

    @property
    def people(self) -> int:
        """Return the number of players."""
        return len(self._begin[0])

    @property
    def last_day(self) -> Column:
        """Return the day of every player's last game."""
        self._measure(["days_since"])
        return self._end[0]

    @property
    def last_season(self) -> Column:
        """Return the season of every player's last game."""
        self._measure(["changes_season"])
        return self._end[1]

    @property
    def played(self) -> Column:
        """Return the number of games of every player."""
        self._measure(["games_before"])
        return self._end[2]

    @property
    def end(self) -> tuple[Column, Column, Column]:
        """Return the day and season of every player's last game, and their number of games."""
        self._measure(["days_since", "changes_season", "games_before"])
        return self.last_day, self.last_season, self.played

    @property
    def steps(self) -> Any:
        """Return the rows that `loops.bring_states_forward` reads; a row that no rule needs is zero."""
        return self._rows[-2:]

    def _measure(self, names: Collection[str]) -> None:
        """Fill in the columns that have not been measured yet, and the values at the end that depend on them."""
        new = {*names} - self._measured
        if not new:
            return
        self._measured |= new
        end = [arrays.as_column(column.copy()) for column in self._begin]
        rows = [row if name in new else row[:0] for name, row in zip(SLOT_COLUMNS, self._rows, strict=True)]
        compiling.run_loop(
            loops.find_gaps,
            *self._slots,
            *end,
            *map(arrays.as_column, rows),
            as_compiled=compiling.is_worthwhile(len(self._slots[0])),
        )
        sources = ({"days_since"}, {"first_of_season", "changes_season"}, {"games_before"})
        self._end = [
            measured if new & source else old for measured, old, source in zip(end, self._end, sources, strict=True)
        ]


def read_calendar(facts: Facts, rows: Column, ruleset: Ruleset) -> Calendar:
    """Return the days and seasons of some games, given by their rows in the facts."""
    indices = arrays.as_numpy(rows)
    days = local_days(arrays.as_numpy(arrays.take(facts.occurred_at, rows)), ruleset.time_zone)
    return Calendar(arrays.as_column(days), arrays.as_column(_number_seasons(facts, indices, days, ruleset)))


def read_moment(facts: Facts, row: int | None, instant: int, ruleset: Ruleset) -> tuple[int, int]:
    """Return the day and the season of an instant; the season by its month, or by the label of the game at `row`."""
    days = local_days(np.array([instant]), ruleset.time_zone)
    rows = np.array([] if row is None else [row], dtype=np.int64)
    seasons = _number_seasons(facts, rows, days[: len(rows)], ruleset)
    return int(days[0]), int(seasons[0]) if len(seasons) else 0


def _number_seasons(facts: Facts, rows: Any, days: Any, ruleset: Ruleset) -> Any:
    """Return the number of each game's season, by its label or its month; 0 without seasons."""
    by: Any = getattr(ruleset, "season_by", None)
    if not by or not len(rows):
        return np.zeros(len(rows), dtype=np.int64)
    if by == "season":
        labels = np.array([cell.season for cell in facts.cells], dtype=np.int64)
        return labels[arrays.as_numpy(facts.cell)[rows]]
    dates = days.astype("datetime64[D]")
    years, months = dates.astype("datetime64[Y]").astype(np.int64), dates.astype("datetime64[M]").astype(np.int64) % 12
    seasons_begun = np.searchsorted(np.array(sorted(by)) - 1, months, "right")
    return years * len(by) + seasons_begun - 1


def measure_gaps(
    calendar: Calendar,
    offsets: Column,
    players: Column,
    names: Sequence[str],
    joining: Mapping[str, EntryState],
    earlier: Gaps | None = None,
    needed: Collection[str] = (),
) -> Gaps:
    """Measure the gaps before every slot of a stream.

    Args:
        names: the ids of the players, by their number.
        joining: by player id, the states with which players enter who are not new.
        earlier: the gaps of the ladder's earlier part, whose players are the stream's first ones.
        needed: the columns to measure immediately.
    """
    people, known = len(names), 0 if earlier is None else earlier.people
    begin = [np.full(people, MISSING, dtype=np.int64) for _ in range(2)] + [np.zeros(people, dtype=np.int64)]
    if joining:
        for number, name in enumerate(names[known:], known):
            if entry := joining.get(name):
                for column, value in zip(begin, (entry.last_day, entry.last_season, entry.games), strict=True):
                    column[number] = value
    if earlier is not None:
        for column, end in zip(begin, earlier.end, strict=True):
            column[:known] = arrays.as_numpy(end)
    return Gaps(calendar, offsets, players, begin, needed)


def list_needed(rules: Sequence[Rule]) -> set[str]:
    """Return the `SLOT_COLUMNS` that a replay with these rules needs."""
    needed = {name for rule in rules for name in rule.columns if name in HISTORY_COLUMNS}
    if any(rule.age for rule in rules):
        needed.add("days_since")
    if any(rule.new_season for rule in rules):
        needed.add("changes_season")
    return needed


def fill_in_history(columns: Any, names: Sequence[str], gaps: Gaps, slots: Any = slice(None)) -> None:
    """Fill in the columns about earlier games, for some slots; `columns` are the rows of an array, in this order."""
    for column, name in zip(columns, names, strict=False):
        if name in HISTORY_COLUMNS:
            column[slots] = arrays.as_numpy(gaps.column(name))[slots]


def reads_history(names: Sequence[str]) -> bool:
    """Tell whether a rule with these columns reads any column about earlier games."""
    return not {*HISTORY_COLUMNS}.isdisjoint(names)
