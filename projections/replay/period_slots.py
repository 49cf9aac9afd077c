"""The players and results of a ladder's rating periods, as the loop over periods reads them."""

from __future__ import annotations

from typing import Any

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING
from ratings_ledger.projections.replay.gaps import Gaps, fill_in_history
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.periods import LadderSlots, Periods, ResultRows, build_results
from ratings_ledger.projections.rulesets.versions import Version


class PeriodSlots:
    """The players of each rating period of a stream, with their results and the gaps before the period.

    periods: the periods of the stream
    entry: by slot of the stream, an index into `results.people`
    gaps:  as in `loops.bring_states_forward`, by index of `results.people`
    """

    def __init__(self, stream: Stream, gaps: Gaps) -> None:
        assert stream.periods is not None
        self.periods, players = stream.periods, arrays.as_numpy(stream.players).astype(np.int64)
        sizes = np.diff(arrays.as_numpy(stream.offsets))
        of_slot = np.repeat(arrays.as_numpy(self.periods.of_game), sizes)
        player_count = max(len(stream.names), 1)
        people, first, self.entry = np.unique(of_slot * player_count + players, return_index=True, return_inverse=True)
        self._width = max(len(version.rule.columns) for version in stream.versions)
        columns, team = np.zeros((self._width, len(players)), dtype=np.int64), np.full(len(players), MISSING)
        for row, column in zip(columns, stream.columns, strict=False):  # an empty stream has none
            row[:] = arrays.as_numpy(column)
        scored_by = np.repeat(arrays.as_numpy(stream.version), sizes)
        for index, version in enumerate(stream.versions):
            own_slots, names = np.flatnonzero(scored_by == index), version.rule.columns
            fill_in_history(columns, names, gaps, own_slots)
            for column, name in zip(columns, names, strict=False):
                if name in HISTORY_COLUMNS:
                    # Columns about earlier games hold the values at the start of the period.
                    column[own_slots] = column[first[self.entry[own_slots]]]
                if name == "team":
                    team[own_slots] = column[own_slots]
        slots = LadderSlots(arrays.as_numpy(stream.offsets), players, columns, team)
        self.results: ResultRows = build_results(self.periods, slots)
        seasons = np.zeros(len(people), dtype=np.int64)
        np.maximum.at(seasons, self.entry, arrays.as_numpy(gaps.column("changes_season")))
        self.gaps = np.stack([seasons, _measure_elapsed(self.periods, people // player_count, people % player_count)])

    def rows_of(self, version: Version) -> Any:
        """Return the results as the rule of a version reads them."""
        reads = len(version.rule.columns)
        if reads == self._width:
            return self.results.rows
        of_opponents = 2 + self._width
        return self.results.rows[[*range(2 + reads), *range(of_opponents, of_opponents + reads)]]


def _measure_elapsed(periods: Periods, period: Any, player: Any) -> Any:
    """Return for each player of each period the time since their last period with games; 0 before the first."""
    order = np.argsort(player, kind="stable")
    own_periods, follows = period[order], np.zeros(len(order), dtype=bool)
    follows[1:] = player[order][1:] == player[order][:-1]
    elapsed = np.zeros(len(order), dtype=np.int64)
    elapsed[1:] = np.maximum(periods.first[own_periods[1:]] - periods.last[own_periods[:-1]], 0)
    elapsed[~follows] = 0
    result = np.empty_like(elapsed)
    result[order] = elapsed
    return result
