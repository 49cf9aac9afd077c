"""What rules read from games, in bulk: the columns that their checks and scoring functions get."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.rulesets.versions import Version

SMALL = {"place", "status", "seats", "tied"}
AT_ONCE = 1_000_000  # values converted from one type to another at a time


class GameSlots:
    """Consecutive games: their rows, how many participants each has, and all of those (`slot`)."""

    def __init__(self, row: Column, size: Column, slot: Column) -> None:
        self.row, self.size, self.slot = row, size, slot


def rule_columns(
    facts: Facts, versions: Sequence[Version], games: GameSlots, version: Column, compiled: bool
) -> Sequence[Column]:
    """What the rules read about the participants: one column each, in the order of the rule that reads the most.

    `version` indexes the versions that score the games.
    """
    every = {one.rule.columns for one in versions}
    widest = max(every, key=len)
    if compiled and len(every) == 1:
        return bulk_columns(facts, widest, games)  # type: ignore[no-any-return]
    found = [array("q") for _ in widest]
    at = 0
    for game, size in enumerate(games.size):
        participants = games.slot[at : at + size]
        names = versions[version[game]].rule.columns
        for name, column in zip(names, found, strict=False):
            column.extend(facts.column(name, games.row[game], participants))
        for column in found[len(names) :]:
            column.extend([NONE] * size)
        at += size
    return [memoryview(column) for column in found]


def bulk_columns(facts: Facts, names: Sequence[str], games: GameSlots) -> Any:
    """These columns as the rows of one numpy array, as narrow as possible."""
    import numpy as np

    row, size, slot = (compiling.as_numpy(column) for column in (games.row, games.size, games.slot))
    wide = any(name in facts.of_kind for name in names)
    kind: Any = np.int64 if wide else np.int16 if set(names) <= SMALL else np.int32
    found = np.empty((len(names), len(slot)), dtype=kind)
    for column, name in zip(found, names, strict=True):
        if name == "seats":
            seats = np.array([cell.seats for cell in facts.cells], dtype=kind)
            cell, end = compiling.as_numpy(facts.cell), 0
            for first in range(0, len(row), AT_ONCE):
                part = np.repeat(seats[cell[row[first : first + AT_ONCE]]], size[first : first + AT_ONCE])
                column[end : end + len(part)] = part
                end += len(part)
        elif name == "tied":
            counted = np.empty(len(slot), dtype=np.int64)
            arrays = (facts.start, facts.count, facts.place, facts.replaced)
            compiling.compiled(loops.count_tied)(slot, row, size, *map(compiling.as_numpy, arrays), counted)
            column[:] = counted
        elif name in facts.of_kind:
            shift = compiling.as_numpy(facts.kind_start)[row] - compiling.as_numpy(facts.start)[row]
            column[:] = compiling.as_numpy(facts.of_kind[name])[slot + np.repeat(shift, size)]
        else:
            if name in facts.optional:
                column[:] = _padded(compiling.as_numpy(facts.optional[name]), slot)
            else:
                source = compiling.as_numpy(getattr(facts, name))
                for first in range(0, len(slot), AT_ONCE):
                    column[first : first + AT_ONCE] = source[slot[first : first + AT_ONCE]]
                    facts.let_go()
            if name == "seconds_played":
                for at in np.flatnonzero(column == NONE).tolist() if facts.clock_seconds else ():
                    column[at] = facts.clock_seconds.get(int(slot[at]), NONE)
    return found


def _padded(source: Any, slot: Any) -> Any:
    """The values at some slots of a column that may end early."""
    import numpy as np

    if len(source) == 0:
        return np.full(len(slot), NONE, dtype=np.int64)
    inside = slot < len(source)
    return source[slot] if inside.all() else np.where(inside, source[np.where(inside, slot, 0)], NONE)
