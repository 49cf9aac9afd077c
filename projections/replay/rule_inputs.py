"""What rules read from games, in bulk: the columns that their checks and scoring functions get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.rulesets.versions import Version

SMALL = {"place", "status", "seats", "tied"}
AT_ONCE = 1_000_000  # values converted from one type to another at a time


class GameSlots:
    """Consecutive games: their rows, how many participants each has, and all of those (`slot`)."""

    def __init__(self, row: Column, size: Column, slot: Column) -> None:
        self.row, self.size, self.slot = row, size, slot


def rule_columns(facts: Facts, versions: Sequence[Version], games: GameSlots, version: Column) -> Sequence[Column]:
    """Return what the rules read about the participants: one column each, in the order of the rule that reads the most.

    `version` indexes the versions that score the games.
    """
    every = sorted({one.rule.columns for one in versions}, key=len)
    if len(every) == 1:
        return bulk_columns(facts, every[0], games)  # type: ignore[no-any-return]
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    read_by = np.array([every.index(one.rule.columns) for one in versions])[arrays.as_numpy(version)]
    columns: Any = np.full((len(every[-1]), len(slot)), NONE, dtype=np.int64)
    for index, names in enumerate(every):
        mine = read_by == index
        slots = np.repeat(mine, size)
        some = GameSlots(*map(arrays.as_column, (row[mine], size[mine], slot[slots])))
        columns[: len(names), slots] = bulk_columns(facts, names, some)
    stacked: Sequence[Column] = columns
    return stacked


def bulk_columns(facts: Facts, names: Sequence[str], games: GameSlots) -> Any:
    """These columns as the rows of one numpy array, as narrow as possible."""
    wide = any(name in facts.of_kind for name in names)
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    kind: Any = np.int64 if wide else np.int16 if set(names) <= SMALL else np.int32
    found = np.empty((len(names), len(slot)), dtype=kind)
    for column, name in zip(found, names, strict=True):
        if name == "seats":
            seats = np.array([cell.seats for cell in facts.cells], dtype=kind)
            cell, end = arrays.as_numpy(facts.cell), 0
            for first in range(0, len(row), AT_ONCE):
                part = np.repeat(seats[cell[row[first : first + AT_ONCE]]], size[first : first + AT_ONCE])
                column[end : end + len(part)] = part
                end += len(part)
        elif name == "tied":
            counted = arrays.zeros("q", len(slot))
            about = (games.slot, games.row, games.size, facts.start, facts.count, facts.place, facts.replaced, counted)
            compiling.run_loop(loops.count_tied, *about, as_compiled=compiling.is_worthwhile(len(row)))
            column[:] = arrays.as_numpy(counted)
        elif name in facts.of_kind:
            shift = arrays.as_numpy(facts.kind_start)[row] - arrays.as_numpy(facts.start)[row]
            column[:] = arrays.as_numpy(facts.of_kind[name])[slot + np.repeat(shift, size)]
        elif name in HISTORY_COLUMNS:
            column[:] = 0  # the replay fills it in
        else:
            if name in facts.optional:
                column[:] = _padded(arrays.as_numpy(facts.optional[name]), slot)
            else:
                source = arrays.as_numpy(getattr(facts, name))
                for first in range(0, len(slot), AT_ONCE):
                    column[first : first + AT_ONCE] = source[slot[first : first + AT_ONCE]]
                    if len(slot) > AT_ONCE:
                        facts.let_go()
            if name == "seconds_played":
                for at in np.flatnonzero(column == NONE).tolist() if facts.clock_seconds else ():
                    column[at] = facts.clock_seconds.get(int(slot[at]), NONE)
    return found


def _padded(source: Any, slot: Any) -> Any:
    """Return the values at some slots of a column that may end early."""
    if len(source) == 0:
        return np.full(len(slot), NONE, dtype=np.int64)
    inside = slot < len(source)
    return source[slot] if inside.all() else np.where(inside, source[np.where(inside, slot, 0)], NONE)
