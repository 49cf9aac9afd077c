"""What the rating periods of a ladder consist of, as the loop over periods reads it."""

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
    """What the periods of a stream consist of: who played in each, with which results, and after which gaps.

    periods: those of the stream
    entry: for every slot of the stream which of `results.people` it is
    gaps:  as `loops.bring_states_forward` has them, of each of `results.people`
    """

    def __init__(self, stream: Stream, gaps: Gaps) -> None:
        assert stream.periods is not None
        self.periods, players = stream.periods, arrays.as_numpy(stream.players).astype(np.int64)
        sizes = np.diff(arrays.as_numpy(stream.offsets))
        of_slot = np.repeat(arrays.as_numpy(self.periods.of_game), sizes)
        most = max(len(stream.names), 1)
        people, first, self.entry = np.unique(of_slot * most + players, return_index=True, return_inverse=True)
        self._width = max(len(version.rule.columns) for version in stream.versions)
        columns, team = np.zeros((self._width, len(players)), dtype=np.int64), np.full(len(players), MISSING)
        for row, column in zip(columns, stream.columns, strict=False):  # an empty stream has none
            row[:] = arrays.as_numpy(column)
        scored_by = np.repeat(arrays.as_numpy(stream.version), sizes)
        for index, version in enumerate(stream.versions):
            mine, names = np.flatnonzero(scored_by == index), version.rule.columns
            fill_in_history(columns, names, gaps, mine)
            for column, name in zip(columns, names, strict=False):
                if name in HISTORY_COLUMNS:
                    # what a rule reads of earlier games is as of the start of the period
                    column[mine] = column[first[self.entry[mine]]]
                if name == "team":
                    team[mine] = column[mine]
        slots = LadderSlots(arrays.as_numpy(stream.offsets), players, columns, team)
        self.results: ResultRows = build_results(self.periods, slots)
        seasons = np.zeros(len(people), dtype=np.int64)
        np.maximum.at(seasons, self.entry, arrays.as_numpy(gaps.column("changes_season")))
        self.gaps = np.stack([seasons, _elapsed(self.periods, people // most, people % most)])

    def rows_of(self, version: Version) -> Any:
        """Return the results as the rule of a version reads them."""
        reads = len(version.rule.columns)
        if reads == self._width:
            return self.results.rows
        of_opponents = 2 + self._width
        return self.results.rows[[*range(2 + reads), *range(of_opponents, of_opponents + reads)]]


def _elapsed(periods: Periods, period: Any, player: Any) -> Any:
    """Return for everybody in a period how much time passed since the last one they played in; 0 before the first."""
    order = np.argsort(player, kind="stable")
    mine, follows = period[order], np.zeros(len(order), dtype=bool)
    follows[1:] = player[order][1:] == player[order][:-1]
    elapsed = np.zeros(len(order), dtype=np.int64)
    elapsed[1:] = np.maximum(periods.first[mine[1:]] - periods.last[mine[:-1]], 0)
    elapsed[~follows] = 0
    result = np.empty_like(elapsed)
    result[order] = elapsed
    return result
