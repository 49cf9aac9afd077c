"""Prepare the players and results of a ladder's rating periods for the loop over periods."""

from __future__ import annotations

from typing import Any

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING
from ratings_ledger.projections.replay.gaps import Gaps, fill_in_history
from ratings_ledger.projections.replay.periods import LadderSlots, Periods, ResultRows, build_results
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.versions import Version


class PeriodSlots:
    """The players of each rating period of a stream, with the results of each player and the gap before the period.

    periods: the periods of the stream
    results: the results of all periods
    entry:   by slot of the stream, the index of its player and period in `results.people`
    gaps:    the two rows that `loops.bring_states_forward` reads, by index of `results.people` instead of by slot
    """

    def __init__(self, stream: Stream, gaps: Gaps) -> None:
        assert stream.periods is not None
        self.periods, players = stream.periods, arrays.as_numpy(stream.players).astype(np.int64)
        sizes = np.diff(arrays.as_numpy(stream.offsets))
        period_of_slot = np.repeat(arrays.as_numpy(self.periods.of_game), sizes)
        player_count = max(len(stream.names), 1)
        entries, first_slots, self.entry = np.unique(
            period_of_slot * player_count + players, return_index=True, return_inverse=True
        )
        self._width = max(len(version.rule.columns) for version in stream.versions)
        columns, team = np.zeros((self._width, len(players)), dtype=np.int64), np.full(len(players), MISSING)
        for row, column in zip(columns, stream.columns, strict=False):  # an empty stream has no columns
            row[:] = arrays.as_numpy(column)
        scored_by = np.repeat(arrays.as_numpy(stream.version_indices), sizes)
        for index, version in enumerate(stream.versions):
            own_slots, column_names = np.flatnonzero(scored_by == index), version.rule.columns
            fill_in_history(columns, column_names, gaps, own_slots)
            for column, name in zip(columns, column_names, strict=False):
                if name in HISTORY_COLUMNS:
                    # in all games of a period, the rule reads the values at the player's first game of the period
                    column[own_slots] = column[first_slots[self.entry[own_slots]]]
                if name == "team":
                    team[own_slots] = column[own_slots]
        slots = LadderSlots(arrays.as_numpy(stream.offsets), players, columns, team)
        self.results: ResultRows = build_results(self.periods, slots)
        seasons = np.zeros(len(entries), dtype=np.int64)
        np.maximum.at(seasons, self.entry, arrays.as_numpy(gaps.column("changes_season")))
        self.gaps = np.stack([seasons, _measure_elapsed(self.periods, entries // player_count, entries % player_count)])

    def select_rows(self, version: Version) -> Any:
        """Return the rows of `results` that the rule of a version reads."""
        width = len(version.rule.columns)
        if width == self._width:
            return self.results.rows
        opponents_from = 2 + self._width
        return self.results.rows[[*range(2 + width), *range(opponents_from, opponents_from + width)]]


def _measure_elapsed(ladder_periods: Periods, periods_of_entries: Any, players_of_entries: Any) -> Any:
    """Return, for each player of each period, the number of periods since their previous one; 0 without one.

    Tournaments count the days from the last game of the previous one to the first game. Overlapping ones give 0.
    `periods_of_entries` and `players_of_entries` have the period and the player of each entry of the result.
    """
    by_player = np.argsort(players_of_entries, kind="stable")
    sorted_periods, has_earlier = periods_of_entries[by_player], np.zeros(len(by_player), dtype=bool)
    has_earlier[1:] = players_of_entries[by_player][1:] == players_of_entries[by_player][:-1]
    elapsed = np.zeros(len(by_player), dtype=np.int64)
    first, last = ladder_periods.first_number[sorted_periods[1:]], ladder_periods.last_number[sorted_periods[:-1]]
    elapsed[1:] = np.maximum(first - last, 0)
    elapsed[~has_earlier] = 0
    result = np.empty_like(elapsed)
    result[by_player] = elapsed
    return result
