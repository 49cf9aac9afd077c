"""Columns of integers: arrays, memoryviews over numpy's memory, or columns in files that are checked when read.

Indexing a column gives Python integers; the functions here work on all of its numbers at once.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
else:

    class _LoadedOnUse:
        """numpy, loaded on first use: completion and a piped `import` never use it, and start sooner."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            vars(self).update(vars(numpy))  # later uses find its names here
            return getattr(numpy, name)

    np = _LoadedOnUse()

__all__ = [
    "LONG_HISTORY",
    "Column",
    "as_column",
    "as_numpy",
    "change_indices",
    "concatenate",
    "distinct",
    "equal",
    "exclusive_cumsum",
    "in_memory",
    "is_within",
    "largest",
    "np",
    "rewind",
    "shift",
    "should_use_numpy",
    "side_by_side",
    "span_indices",
    "spans_of",
    "take",
    "total",
    "zeros",
]

# Completion and a piped import read a shorter history faster than numpy loads.
LONG_HISTORY = 12_000
# so many numbers are looked up one by one, or read one after another, in less time than importing numpy takes
LOOKED_UP, READ = 30_000, 1_000_000
# Integers: an array, or an object that is indexed and sliced in the same way, such as a column in a file.
Column: TypeAlias = Any


def should_use_numpy(count: int, worth_loading: int = LOOKED_UP) -> bool:
    """Tell whether numpy is worth it for so many numbers: a command that reads fewer ends before numpy is imported."""
    return "numpy" in sys.modules or count >= worth_loading


def zeros(code: str, length: int) -> Column:
    """Return a column of `length` zeros, for the loops to fill."""
    return as_column(np.zeros(length, dtype=code))  # untouched pages take no memory


def in_memory(column: Column) -> Column:
    """Return an array or memoryview of a column, which may be one that is checked as it is read; integers stay."""
    return column if isinstance(column, array | memoryview | int) or not hasattr(column, "whole") else column.whole()


def as_numpy(column: Column) -> Any:
    """Return a column as a numpy array over the same memory; integers stay as they are."""
    if isinstance(column, int | np.ndarray):
        return column
    column = in_memory(column)
    if isinstance(column, np.ndarray):  # of a file, with more than one dimension
        return column
    kind = np.dtype(memoryview(column).format)
    return np.frombuffer(column, dtype=kind) if len(column) else np.empty(0, dtype=kind)


def as_column(numbers: Any) -> Column:
    """Return a numpy array as a column of Python integers over the same memory."""
    return memoryview(numbers)


def largest(column: Column) -> int:
    """Return the largest number of a column; -1 for an empty one."""
    return int(as_numpy(column).max(initial=-1))


def is_within(column: Column, low: int, high: int) -> bool:
    """Tell whether all numbers of a column are at least `low` and below `high`."""
    if not len(column):
        return True
    if should_use_numpy(len(column), READ):
        numbers = as_numpy(column)
        return bool(low <= numbers.min() and numbers.max() < high)
    return bool(low <= min(column) and max(column) < high)


def total(column: Column) -> int:
    """Return the sum of a column."""
    return int(as_numpy(column).sum())


def rewind(
    states: Sequence[Column],
    games: Column,
    start: Column,
    end: Column,
    order: Column,
    before: Sequence[Column],
    slot: int,
) -> Column:
    """Rewind the states and games of all players to those before a slot. Return each player's next slot from there.

    The slots of player p are `order[start[p]:end[p]]`, ascending; they lead to the states `before` them.
    """
    slots, low, high = as_numpy(order), as_numpy(start).copy(), as_numpy(end).copy()
    wide = np.flatnonzero(low < high)
    while len(wide):
        middle = (low[wide] + high[wide]) // 2
        below = slots[middle] < slot
        low[wide[below]], high[wide[~below]] = middle[below] + 1, middle[~below]
        wide = wide[low[wide] < high[wide]]
    left = as_numpy(end) - low
    later = np.flatnonzero(left)
    leading = slots[low[later]]
    if hasattr(order, "release_pages"):
        order.release_pages()
    for column, column_before in zip(states, before, strict=True):
        as_numpy(column)[later] = as_numpy(take(column_before, leading))
    as_numpy(games)[:] -= left
    return as_column(low)


def concatenate(code: str, columns: Sequence[Column]) -> Column:
    """Return several columns as one, of integers of a type."""
    return as_column(np.concatenate([np.empty(0, dtype=code), *map(as_numpy, columns)]).astype(code, copy=False))


def shift(column: Column, by: int) -> Column:
    """Return a column with `by` added to all numbers."""
    if not should_use_numpy(len(column)):
        return array("q", [number + by for number in column])
    return as_column(as_numpy(column) + by)


def take(numbers: Column, column: Column) -> Column:
    """Return the numbers at the indices in a column; of a column in a file, only these are read."""
    if not should_use_numpy(len(column)):
        code = numbers.format if isinstance(numbers, memoryview) else numbers.typecode
        return array(code, [numbers[index] for index in column])
    indices = as_numpy(column)
    return as_column(numbers.take(indices) if hasattr(numbers, "take") else as_numpy(numbers)[indices])


def spans_of(starts: Column, numbers: Column) -> Column:
    """Return for each number the index of the last of the ascending `starts` that is not above it."""
    if not should_use_numpy(len(numbers) * len(starts).bit_length()):
        return array("q", [bisect_right(starts, number) - 1 for number in numbers])
    # Bisect for all numbers at once, so only the compared entries of a column in a file are read.
    targets, low = as_numpy(numbers), np.zeros(len(numbers), dtype=np.int64)
    high = np.full(len(numbers), len(starts), dtype=np.int64)
    while (high - low).max(initial=0) > 1:
        middle = (low + high) // 2
        above = as_numpy(take(starts, as_column(middle))) > targets
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return as_column(low)


def change_indices(column: Column) -> list[int]:
    """Return the indices at which the number of a column changes, including the first."""
    numbers = as_numpy(column)
    changes: list[int] = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    return [0, *changes] if len(numbers) else []


def distinct(column: Column) -> Column:
    """Return the different numbers of a column, in ascending order."""
    return as_column(np.unique(np.array(column, dtype=np.int64)))


def span_indices(start: Column, count: Column) -> Column:
    """Return the indices in spans, one span after another."""
    if not should_use_numpy(len(start)):
        return array("q", chain.from_iterable(map(range, start, map(add, start, count))))
    first, size = as_numpy(start), as_numpy(count).astype(np.int64)
    return as_column(np.arange(int(size.sum())) + np.repeat(first - (np.cumsum(size) - size), size))


def exclusive_cumsum(count: Column) -> Column:
    """Return for every number of a column the sum of the numbers before it."""
    size = as_numpy(count).astype(np.int64)
    return as_column(np.cumsum(size) - size)


def equal(left: Column, right: Column) -> bool:
    """Tell whether two columns hold the same numbers."""
    return len(left) == len(right) and bool((as_numpy(left) == as_numpy(right)).all())


def side_by_side(columns: Sequence[Column]) -> Any:
    """Return columns of one type as the rows of one array."""
    return columns if isinstance(columns, np.ndarray) else np.stack([as_numpy(column) for column in columns])
