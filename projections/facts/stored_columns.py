"""Columns in files, several of which form one column with later changes in memory. Blocks are checked when read.

Blocks that a query does not need are neither read nor checked.
"""

from __future__ import annotations

import mmap
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple, Protocol

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np

BLOCK_BYTES = 1 << 15
BLOCKS_HELD = 1024  # of a column that is read here and there
ANY = -(2**63), 2**63
CODES = "bBhiq"  # the types of integers, as `array` names them
Bytes = Any  # bytes, or a view of some


class ColumnPlace(NamedTuple):
    """The place of a column in a file: its type, its shape, its start, and the CRC-32 of each of its blocks."""

    code: str
    shape: list[int]
    begin: int
    crcs: list[int]


class Source(Protocol):
    """The bytes of a file with columns."""

    size: int

    def column(self, name: str, place: ColumnPlace) -> StoredColumn:
        """Return the column at a place."""

    def read(self, first: int, length: int) -> Bytes:
        """Return some bytes; fewer at the end of the file."""

    def view(self, first: int, length: int) -> memoryview:
        """Return many bytes. The caller may change them without changing the file."""

    def damaged(self, why: str, column: str = "", alone: bool = True) -> Exception:
        """Return the error for a damaged file or column; unless `alone`, other files of the folder may be the cause."""


def add_crcs(crcs: list[int], length: int, data: Bytes) -> None:
    """Bring the CRC-32s of the blocks of a column that had so many bytes up to date with the `data` behind them."""
    rest = memoryview(data).cast("B")
    room = -length % BLOCK_BYTES
    if room and len(rest):
        crcs[-1] = zlib.crc32(rest[:room], crcs[-1])
        rest = rest[room:]
    crcs.extend(zlib.crc32(rest[at : at + BLOCK_BYTES]) for at in range(0, len(rest), BLOCK_BYTES))


class StoredColumn:
    """Integers in a file, in an array of any shape; a block is read and checked when something in it is asked for.

    Reading raises what its source calls damage, also for an index that is not there: nothing sound leads to it. Items
    of a column with more than one dimension are arrays of numpy.
    """

    def __init__(self, source: Source, name: str, place: ColumnPlace) -> None:
        """Raises what the source calls damage if the file is too short, or the place is impossible."""
        self.name = name
        self.typecode: Any = place.code
        self._source, self._begin, self._crcs = source, place.begin, place.crcs
        self._items, *self._row = place.shape
        self._width = prod(self._row)
        size = array(place.code).itemsize
        self._length = size * self._width * self._items
        self._low, self._high = ANY
        self._per_block = BLOCK_BYTES // size
        self._blocks: dict[int, Any] = {}
        self._sound: set[int] = set()  # the blocks that were checked
        self._whole: Any = None
        self._pages: Any = None  # of the file that the whole is in
        self._origin: StoredColumn | None = None  # which this is the beginning of
        if min(place.shape) < 0 or len(place.crcs) != -(-self._length // BLOCK_BYTES):
            raise self.damaged("has no checksums for its length")
        if not 0 <= place.begin <= source.size - self._length:
            raise self.damaged("is too short")

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many items it has, and the shape of each."""
        return self._items, *self._row

    def damaged(self, why: str, alone: bool = True) -> Exception:
        """Return the error that it is not as it was written, and why; or not it `alone`, and all that is beside it."""
        return self._source.damaged(why, self.name, alone)

    def within(self, low: int, high: int) -> StoredColumn:
        """Return the same; a number below `low`, or not below `high`, is damage."""
        self._low, self._high = low, high
        return self

    def __len__(self) -> int:
        return self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.whole())

    def __getitem__(self, index: Any) -> Any:
        """An item, or those of a slice, whose step is 1."""
        if isinstance(index, slice):
            return self._slice(*index.indices(self._items)[:2])
        if not 0 <= index < self._items:
            raise self.damaged("is asked for what it does not have")
        if self._whole is not None:
            return self._whole[index]
        if self._row:
            return self._slice(index, index + 1)[0]
        block, at = divmod(index, self._per_block)
        number = (self._blocks.get(block) or self._block(block))[at]
        if not self._low <= number < self._high:
            raise self.damaged("has an index out of range")
        return number

    def _slice(self, first: int, last: int) -> Any:
        if self._whole is not None:
            return self._whole[first:last]
        if first == 0 and last * self._width > self._per_block:
            shorter = copy(self)  # reads as little
            shorter._items, shorter._origin = last, self
            return shorter
        size = (last - first) * self._width
        block, at = divmod(first * self._width, self._per_block)
        numbers = array(self.typecode)
        while len(numbers) < size:
            part = (self._blocks.get(block) or self._block(block))[at : at + size - len(numbers)]
            numbers.frombytes(part.cast("B"))
            block, at = block + 1, 0
        return self._checked(numbers)

    def _block(self, block: int) -> Any:
        """Return the numbers in a block, which is held for a while."""
        if len(self._blocks) >= BLOCKS_HELD:
            self._blocks.clear()
        self._blocks[block] = numbers = memoryview(self._read(block)).cast(self.typecode)
        return numbers

    def _read(self, block: int) -> Bytes:
        begin = block * BLOCK_BYTES
        content = self._source.read(self._begin + begin, min(BLOCK_BYTES, self._length - begin))
        if zlib.crc32(content) != self._crcs[block]:
            raise self.damaged("is damaged")
        self._sound.add(block)
        return content

    def _checked(self, numbers: Any) -> Any:
        """Return numbers in the shape of the column's items, if all are within its limits."""
        if (self._low, self._high) != ANY and not arrays.is_within(numbers, self._low, self._high):
            raise self.damaged("has an index out of range")
        return arrays.as_numpy(numbers).reshape(-1, *self._row) if self._row else numbers

    def take(self, indices: Any) -> Any:
        """Return the items at many indices in any order, as numpy arrays: blocks are checked once, and nothing is
        kept.
        """
        if len(indices) and not 0 <= indices.min() <= indices.max() < self._items:
            raise self.damaged("is asked for what it does not have")
        if self._whole is not None or self._width > self._per_block:
            return arrays.as_numpy(self.whole())[indices]
        first = indices * self._width
        ends = (first // self._per_block, (first + self._width - 1) // self._per_block)
        for block in np.unique(ends if self._row else ends[0]).tolist():
            if block not in self._sound:
                self._read(block)
        numbers = np.frombuffer(self._view(), dtype=self.typecode)
        return self._checked((numbers.reshape(-1, *self._row) if self._row else numbers)[indices])

    def blocks(self) -> Iterator[Bytes]:
        """Return all bytes, a block at a time."""
        return map(self._read, range(len(self._crcs)))

    def read_into(self, memory: memoryview) -> None:
        """Fill memory of another's with numbers from the first on."""
        if self._whole is not None:
            memory[:] = memoryview(self._whole).cast("B")[: len(memory)]
            self.release_pages()  # whoever has all of them in one piece looks no more here
            return
        for block, begin in enumerate(range(0, len(memory), BLOCK_BYTES)):
            memory[begin : begin + BLOCK_BYTES] = self._read(block)[: len(memory) - begin]
        self._checked(memory.cast(self.typecode))

    def whole(self) -> Any:
        """Return all items, in the file's own memory."""
        if self._whole is None and (origin := self._origin) is not None:
            self._whole, self._pages = self._checked(origin.whole()[: self._items]), origin._pages
        if self._whole is None:
            content = self._view()
            self._whole, self._pages = self._sound_items(content), content.obj
            self._blocks.clear()
        return self._whole

    def load(self) -> Any:
        """Return all items, which are not kept."""
        return self._sound_items(self._view())

    def _sound_items(self, content: memoryview) -> Any:
        for block, crc in enumerate(self._crcs):
            begin = block * BLOCK_BYTES
            if zlib.crc32(content[begin : min(begin + BLOCK_BYTES, self._length)]) != crc:
                raise self.damaged("is damaged")
        return self._checked(content.cast(self.typecode)[: self._items * self._width])

    def _view(self) -> memoryview:
        return self._source.view(self._begin, self._length) if self._length else memoryview(b"")

    def changed(self, changes: Mapping[int, int]) -> Any:
        """Return all numbers, with some changed; only the pages of these are in memory of their own."""
        self.whole()
        numbers = self._view().cast(self.typecode)[: self._items]
        for index, number in changes.items():
            numbers[index] = number
        return numbers

    def release_pages(self) -> None:
        """Drop it from memory; reading brings it back."""
        if isinstance(self._pages, mmap.mmap):
            self._pages.madvise(mmap.MADV_DONTNEED)


class LayeredColumn:
    """Stored columns, one behind another, with what was changed and appended since: the files stay as they are, and so
    do copies of this."""

    def __init__(self, bases: Sequence[StoredColumn], items: int | None = None) -> None:
        """The first `items` of the numbers in one or more columns."""
        self.bases = bases
        self.typecode = bases[0].typecode
        *self._starts, length = accumulate(map(len, bases), initial=0)
        self._items = length if items is None else items
        self.changes: dict[int, int] = {}
        self._tail = array(self.typecode)
        self._whole: Any = None

    def __copy__(self) -> LayeredColumn:
        """The same, with changes of its own."""
        layered = LayeredColumn(self.bases, self._items)
        layered.changes, layered._tail = dict(self.changes), self._tail[:]
        return layered

    def __len__(self) -> int:
        return self._items + len(self._tail)

    def __iter__(self) -> Iterator[int]:
        return iter(self.whole())

    def __getitem__(self, index: Any) -> Any:
        """A number, or those of a slice, whose step is 1."""
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self))[:2])
        if not 0 <= index < self._items:
            return self._tail[self._past(index)]
        if (whole := self._whole) is not None:
            return whole[index]
        if index in self.changes:
            return self.changes[index]
        number = bisect_right(self._starts, index) - 1
        return self.bases[number][index - self._starts[number]]

    def _slice(self, first: int, last: int) -> Any:
        if (whole := self._whole) is not None:
            return whole[first:last]
        number = bisect_right(self._starts, first) - 1
        start, base = self._starts[number], self.bases[number]
        if last <= min(start + len(base), self._items) and not self.changes:
            return base[first - start : last - start]
        return array(self.typecode, [self[at] for at in range(first, last)])

    def __setitem__(self, index: int, number: int) -> None:
        if 0 <= index < self._items:
            self.changes[index] = number
        else:
            self._tail[self._past(index)] = number
        self._whole = None

    def _past(self, index: int) -> int:
        """Return the index in the tail."""
        if not self._items <= index < len(self):
            raise self.damaged("is asked for what it does not have")
        return index - self._items

    def damaged(self, why: str) -> Exception:
        """Return the error that these columns do not fit the others, without blaming a single file."""
        return self.bases[0].damaged(why, alone=False)

    def append(self, number: int) -> None:
        """Append a number."""
        self.extend((number,))

    def extend(self, numbers: Iterable[int]) -> None:
        """Append numbers."""
        self._whole = None
        self._tail.extend(numbers)

    def frombytes(self, numbers: Any) -> None:
        """Append numbers in their binary form."""
        self._whole = None
        self._tail.frombytes(numbers)

    def pieces(self) -> list[Any]:
        """Return the numbers of each file, and the appended ones."""
        ends = (self._items - start for start in self._starts)
        return [*(base.whole()[: max(end, 0)] for base, end in zip(self.bases, ends, strict=True)), self._tail]

    def whole(self) -> Any:
        """Return all numbers in one piece of memory: that of the file if there is only one, without changes."""
        whole = self._whole
        if whole is None:
            self._whole = whole = self._in_one()
        return whole

    def _in_one(self) -> Any:
        if len(self.bases) == 1 and not self._tail:
            base = self.bases[0]
            return (base.changed(self.changes) if self.changes else base.whole())[: self._items]
        size = self._tail.itemsize
        memory = memoryview(bytearray(size * len(self)))
        for start, base in zip(self._starts, self.bases, strict=True):
            base.read_into(memory[size * start : size * min(start + len(base), self._items)])
        memory[size * self._items :] = memoryview(self._tail).cast("B")
        column = memory.cast(self.typecode)
        for index, number in self.changes.items():
            column[index] = number
        return column

    def take(self, indices: Any) -> Any:
        """Return the numbers at many indices in any order, as numpy arrays: of the files, no more than that is read."""
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(self):
            raise self.damaged("is asked for what it does not have")
        if (whole := self._whole) is not None:
            return arrays.as_numpy(whole)[indices]
        result = np.empty(len(indices), dtype=self.typecode)
        for start, base in zip(self._starts, self.bases, strict=True):
            is_within = (indices >= start) & (indices < min(start + len(base), self._items))
            if is_within.any():
                result[is_within] = base.take(indices[is_within] - start)
        behind = indices >= self._items
        if behind.any():
            result[behind] = arrays.as_numpy(self._tail)[indices[behind] - self._items]
        if self.changes:
            order = np.argsort(indices, kind="stable")
            changed = np.fromiter(self.changes, dtype=np.int64, count=len(self.changes))
            first, last = (np.searchsorted(indices[order], changed, side=side).tolist() for side in ("left", "right"))
            for index, low, high in zip(self.changes, first, last, strict=True):
                result[order[low:high]] = self.changes[index]
        return result

    def release_pages(self) -> None:
        """Drop what is in files from memory; reading brings it back."""
        self._whole = None
        for base in self.bases:
            base.release_pages()


def pieces(column: Any) -> list[Any]:
    """Return a column as its pieces of memory, one behind another, as it was before anything was changed."""
    if not isinstance(column, LayeredColumn):
        return [column.whole() if isinstance(column, StoredColumn) else column]
    return column.pieces()


def check_all(columns: Iterable[StoredColumn | LayeredColumn]) -> None:
    """Read everything in some columns, several at once, and let go of it."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as threads:
        list(threads.map(_check, columns))


def _check(column: StoredColumn | LayeredColumn) -> None:
    pieces(column)
    column.release_pages()
