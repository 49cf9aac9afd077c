"""Compute with columns of integers: arrays, memoryviews of numpy arrays, or columns in files, verified when read.

Indexing a column returns Python integers. The functions of this module process all numbers of a column at once.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

from ratings_ledger.ledger.events.zones import local_time

if TYPE_CHECKING:
    import numpy as np
else:

    class _LoadedOnUse:
        """numpy, loaded on first use: shell completion and a piped `import` rarely need it, so they start faster."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            vars(self).update(vars(numpy))  # later attribute reads skip __getattr__
            return getattr(numpy, name)

    np = _LoadedOnUse()

__all__ = [
    "DAY",
    "LONG_HISTORY",
    "Column",
    "as_column",
    "as_numpy",
    "change_indices",
    "concatenate",
    "distinct",
    "equal",
    "exclusive_cumsum",
    "find_spans",
    "is_within",
    "largest",
    "load_into_memory",
    "local_days",
    "np",
    "rewind",
    "shift",
    "should_use_numpy",
    "span_indices",
    "stack",
    "take",
    "total",
    "zeros",
]

DAY = 86_400_000_000  # in microseconds
# In functions that shell completion and a piped import call, importing numpy pays off from this number of games on.
LONG_HISTORY = 12_000
# Importing numpy pays off from this number of single look-ups, or of sequential reads, on.
LOOKUPS_MIN, READS_MIN = 30_000, 1_000_000
# Integers: an array, or any object that supports the same indexing and slicing, such as a column in a file.
Column: TypeAlias = Any


def should_use_numpy(count: int, count_min: int = LOOKUPS_MIN) -> bool:
    """Tell whether to process `count` numbers with numpy: it is already imported, or importing it pays off."""
    return "numpy" in sys.modules or count >= count_min


def zeros(code: str, length: int) -> Column:
    """Return a column of `length` zeros of the type `code`, for loops to fill in."""
    return as_column(np.zeros(length, dtype=code))  # untouched pages take no memory


def load_into_memory(column: Column) -> Column:
    """Return a column with all of its numbers in memory. A column of a file is read; integers pass unchanged."""
    return column.read_whole() if hasattr(column, "read_whole") else column


def as_numpy(column: Column) -> Any:
    """Return a column as a numpy array that shares its memory. An integer is returned unchanged."""
    if isinstance(column, int | np.ndarray):
        return column
    column = load_into_memory(column)
    if isinstance(column, np.ndarray):  # a column of a file with more than one dimension
        return column
    dtype = np.dtype(memoryview(column).format)
    return np.frombuffer(column, dtype=dtype) if len(column) else np.empty(0, dtype=dtype)


def as_column(numbers: Any) -> Column:
    """Return a numpy array as a column of Python integers that shares its memory."""
    return memoryview(numbers)


def largest(column: Column) -> int:
    """Return the largest number of a column, but at least -1; so -1 if the column is empty."""
    return int(as_numpy(column).max(initial=-1))


def is_within(column: Column, low: int, high: int) -> bool:
    """Tell whether all numbers of a column are at least `low` and less than `high`."""
    if not len(column):
        return True
    if should_use_numpy(len(column), READS_MIN):
        numbers = as_numpy(column)
        return bool(low <= numbers.min() and numbers.max() < high)
    return bool(low <= min(column) and max(column) < high)


def total(column: Column) -> int:
    """Return the sum of a column."""
    return int(as_numpy(column).sum())


def rewind(
    states: Sequence[Column],
    games: Column,
    *,
    start: Column,
    end: Column,
    order: Column,
    before: Sequence[Column],
    slot: int,
) -> Column:
    """Rewind the states and game counts of all players, in place, to the point before a slot.

    Args:
        states: the state columns, with one entry per player
        games: by player, the number of games
        start, end, order: the slots of player p are `order[start[p]:end[p]]`, in ascending order
        before: the state columns, with one entry per slot: the player's state before the slot
        slot: the first slot to undo

    Returns:
        By player, the index into `order` of the first slot that was undone, or `end[p]` if none was.
    """
    slots, low, high = as_numpy(order), as_numpy(start).copy(), as_numpy(end).copy()
    # bisect for all players at once, until each player's range is empty
    unsettled = np.flatnonzero(low < high)
    while len(unsettled):
        middle = (low[unsettled] + high[unsettled]) // 2
        below = slots[middle] < slot
        low[unsettled[below]], high[unsettled[~below]] = middle[below] + 1, middle[~below]
        unsettled = unsettled[low[unsettled] < high[unsettled]]
    undone = as_numpy(end) - low
    rewound = np.flatnonzero(undone)
    first_undone = slots[low[rewound]]
    if hasattr(order, "release_pages"):
        order.release_pages()
    for column, column_before in zip(states, before, strict=True):
        as_numpy(column)[rewound] = as_numpy(take(column_before, first_undone))
    as_numpy(games)[:] -= undone
    return as_column(low)


def concatenate(code: str, columns: Sequence[Column]) -> Column:
    """Concatenate columns into one column of integers of the type `code`."""
    return as_column(np.concatenate([np.empty(0, dtype=code), *map(as_numpy, columns)]).astype(code, copy=False))


def shift(column: Column, by: int) -> Column:
    """Return a column with `by` added to every number."""
    if not should_use_numpy(len(column)):
        return array("q", [number + by for number in column])
    return as_column(as_numpy(column) + by)


def take(numbers: Column, indices: Column) -> Column:
    """Return the numbers at the indices. From a column of a file, only the blocks with these numbers are read."""
    if not should_use_numpy(len(indices)):
        code = numbers.format if isinstance(numbers, memoryview) else numbers.typecode
        return array(code, [numbers[index] for index in indices])
    positions = as_numpy(indices)
    return as_column(numbers.take(positions) if hasattr(numbers, "take") else as_numpy(numbers)[positions])


def find_spans(starts: Column, numbers: Column) -> Column:
    """Return, for each number, the index of its span: the span with the largest start that is not above the number.

    `starts` must be in ascending order, and no number may be below the first of them.
    """
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
    """Return the indices of the numbers that differ from their predecessor, and index 0 if there are numbers."""
    numbers = as_numpy(column)
    changes: list[int] = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    return [0, *changes] if len(numbers) else []


def distinct(column: Column) -> Column:
    """Return the distinct numbers of a column in ascending order."""
    return as_column(np.unique(np.array(column, dtype=np.int64)))


def span_indices(start: Column, count: Column) -> Column:
    """Return the indices in spans of `count` numbers from `start` on, one span after another.

    >>> list(span_indices(array("q", [3, 10]), array("q", [2, 3])))
    [3, 4, 10, 11, 12]
    """
    if not should_use_numpy(len(start)):
        return array("q", chain.from_iterable(map(range, start, map(add, start, count))))
    first, size = as_numpy(start), as_numpy(count).astype(np.int64)
    return as_column(np.arange(int(size.sum())) + np.repeat(first - (np.cumsum(size) - size), size))


def exclusive_cumsum(count: Column) -> Column:
    """Return, for each number of a column, the sum of all numbers before it."""
    size = as_numpy(count).astype(np.int64)
    return as_column(np.cumsum(size) - size)


def equal(left: Column, right: Column) -> bool:
    """Tell whether two columns hold the same numbers."""
    return len(left) == len(right) and bool((as_numpy(left) == as_numpy(right)).all())


def stack(columns: Sequence[Column]) -> Any:
    """Return a two-dimensional array with a row for each column. The columns must have the same type."""
    return columns if isinstance(columns, np.ndarray) else np.stack([as_numpy(column) for column in columns])


def local_days(instants: Any, zone: str) -> Any:
    """Return the day of each instant (an array of microseconds since 1970) in a zone, in days since 1970.

    On most days a zone's offset does not change, so it is looked up at the start and the end of each day, and at single
    instants only where these two differ.
    """
    if not len(instants):
        return np.zeros(0, dtype=np.int64)
    days, index = np.unique(instants // DAY, return_inverse=True)
    day_bounds = [(day * DAY, day * DAY + DAY - 1) for day in days.tolist()]
    offsets = np.array([[_find_offset(instant, zone) for instant in bounds] for bounds in day_bounds])
    local = (instants + offsets[index, 0]) // DAY
    for position in np.flatnonzero((offsets[:, 0] != offsets[:, 1])[index]).tolist():
        instant = int(instants[position])
        local[position] = (instant + _find_offset(instant, zone)) // DAY
    return local


def _find_offset(instant: int, zone: str) -> int:
    """Return the offset of a zone from UTC at an instant, in microseconds."""
    offset = local_time(instant, zone).utcoffset()
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * 1_000_000 + offset.microseconds
