"""Read columns from files. A layered column combines several stored columns with later changes in memory.

Blocks are checked when they are read. Blocks that a query does not need are neither read nor checked.
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
BLOCKS_KEPT_MAX = 1024  # blocks kept in memory for a column that is read at single indices
ANY = -(2**63), 2**63  # the limits of a column that may hold any number
CODES = "bBhiq"  # the type codes, as in `array`, that a column may have
Bytes = Any  # bytes or a memoryview


class ColumnPlace(NamedTuple):
    """The location of a column in a file: its type code, its shape, its first byte, and the CRC-32 of each block."""

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
        """Return `length` bytes from the byte `first` on; fewer at the end of the file."""

    def view(self, first: int, length: int) -> memoryview:
        """Return many bytes, like `read`. Changes to them do not change the file."""

    def make_damage_error(self, why: str, column: str = "", only_this_file: bool = True) -> Exception:
        """Return the error for a damaged file or column. Unless `only_this_file`, others may be damaged, too."""


def add_crcs(crcs: list[int], length: int, data: Bytes) -> None:
    """Update the CRC-32s of a column's blocks. The column had `length` bytes, and `data` follows."""
    rest = memoryview(data).cast("B")
    block_room = -length % BLOCK_BYTES
    if block_room and len(rest):
        crcs[-1] = zlib.crc32(rest[:block_room], crcs[-1])
        rest = rest[block_room:]
    crcs.extend(zlib.crc32(rest[begin : begin + BLOCK_BYTES]) for begin in range(0, len(rest), BLOCK_BYTES))


class StoredColumn:
    """Integers in a file, as an array of any shape. A block is read and checked on first access.

    Reading raises the source's error for damage. An index out of range is treated as damage, too, because only damaged
    data can contain one. The items of a column with several dimensions are numpy arrays.
    """

    def __init__(self, source: Source, name: str, place: ColumnPlace) -> None:
        """Raises the source's error for damage if the file is too short or the location is impossible."""
        self.name = name
        self.typecode: Any = place.code
        self._source, self._begin, self._crcs = source, place.begin, place.crcs
        self._item_count, *self._item_shape = place.shape
        self._item_width = prod(self._item_shape)
        item_size = array(place.code).itemsize
        self._byte_count = item_size * self._item_width * self._item_count
        self._low, self._high = ANY
        self._numbers_per_block = BLOCK_BYTES // item_size
        self._blocks: dict[int, Any] = {}
        self._checked_blocks: set[int] = set()  # blocks whose checksums matched
        self._all_items: Any = None
        self._pages: Any = None  # the mapped memory of `_all_items`
        self._origin: StoredColumn | None = None  # if this column has only the first items of another: the other column
        if min(place.shape) < 0 or len(place.crcs) != -(-self._byte_count // BLOCK_BYTES):
            raise self.make_damage_error("has the wrong number of checksums")
        if not 0 <= place.begin <= source.size - self._byte_count:
            raise self.make_damage_error("is too short")

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of items, followed by the shape of an item."""
        return self._item_count, *self._item_shape

    def make_damage_error(self, why: str, only_this_file: bool = True) -> Exception:
        """Return the error for a damaged column; see `Source.make_damage_error`."""
        return self._source.make_damage_error(why, self.name, only_this_file)

    def limit_to(self, low: int, high: int) -> StoredColumn:
        """Treat numbers below `low` or from `high` on as damage. Return the column."""
        self._low, self._high = low, high
        return self

    def __len__(self) -> int:
        return self._item_count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read_whole())

    def __getitem__(self, index: Any) -> Any:
        """Return an item, or the items of a slice with step 1."""
        if isinstance(index, slice):
            return self._slice(*index.indices(self._item_count)[:2])
        if not 0 <= index < self._item_count:
            raise self.make_damage_error("does not have a requested index")
        if self._all_items is not None:
            return self._all_items[index]
        if self._item_shape:
            return self._slice(index, index + 1)[0]
        block, offset = divmod(index, self._numbers_per_block)
        number = (self._blocks.get(block) or self._load_block(block))[offset]
        if not self._low <= number < self._high:
            raise self.make_damage_error("has an index out of range")
        return number

    def _slice(self, first: int, last: int) -> Any:
        if self._all_items is not None:
            return self._all_items[first:last]
        if first == 0 and last * self._item_width > self._numbers_per_block:
            shortened = copy(self)  # like the original, the copy reads only the blocks that are used
            shortened._item_count, shortened._origin = last, self
            return shortened
        number_count = (last - first) * self._item_width
        block, offset = divmod(first * self._item_width, self._numbers_per_block)
        numbers = array(self.typecode)
        while len(numbers) < number_count:
            part = (self._blocks.get(block) or self._load_block(block))[offset : offset + number_count - len(numbers)]
            numbers.frombytes(part.cast("B"))
            block, offset = block + 1, 0
        return self._check_limits(numbers)

    def _load_block(self, block: int) -> Any:
        """Return the numbers in a block, and keep the block for a while."""
        if len(self._blocks) >= BLOCKS_KEPT_MAX:
            self._blocks.clear()
        self._blocks[block] = numbers = memoryview(self._read_block(block)).cast(self.typecode)
        return numbers

    def _read_block(self, block: int) -> Bytes:
        begin = block * BLOCK_BYTES
        content = self._source.read(self._begin + begin, min(BLOCK_BYTES, self._byte_count - begin))
        if zlib.crc32(content) != self._crcs[block]:
            raise self.make_damage_error("is damaged")
        self._checked_blocks.add(block)
        return content

    def _check_limits(self, numbers: Any) -> Any:
        """Return numbers in the shape of the column's items. Raises the error for damage if one is out of limits."""
        if (self._low, self._high) != ANY and not arrays.is_within(numbers, self._low, self._high):
            raise self.make_damage_error("has an index out of range")
        return arrays.as_numpy(numbers).reshape(-1, *self._item_shape) if self._item_shape else numbers

    def take(self, indices: Any) -> Any:
        """Return the items at many indices in any order, as a numpy array. Keeps no blocks in memory."""
        if len(indices) and not 0 <= indices.min() <= indices.max() < self._item_count:
            raise self.make_damage_error("does not have a requested index")
        if self._all_items is not None or self._item_width > self._numbers_per_block:
            return arrays.as_numpy(self.read_whole())[indices]
        first_numbers = indices * self._item_width
        end_blocks = (
            first_numbers // self._numbers_per_block,
            (first_numbers + self._item_width - 1) // self._numbers_per_block,
        )
        for block in np.unique(end_blocks if self._item_shape else end_blocks[0]).tolist():
            if block not in self._checked_blocks:
                self._read_block(block)
        numbers = np.frombuffer(self._view(), dtype=self.typecode)
        return self._check_limits((numbers.reshape(-1, *self._item_shape) if self._item_shape else numbers)[indices])

    def blocks(self) -> Iterator[Bytes]:
        """Yield all bytes, a block at a time."""
        return map(self._read_block, range(len(self._crcs)))

    def read_into(self, memory: memoryview) -> None:
        """Fill `memory` with the first numbers of the column."""
        if self._all_items is not None:
            memory[:] = memoryview(self._all_items).cast("B")[: len(memory)]
            self.release_pages()  # the caller now has a copy
            return
        for block, begin in enumerate(range(0, len(memory), BLOCK_BYTES)):
            memory[begin : begin + BLOCK_BYTES] = self._read_block(block)[: len(memory) - begin]
        self._check_limits(memory.cast(self.typecode))

    def read_whole(self) -> Any:
        """Return all items in mapped memory of the file, and keep the memory for later calls."""
        if self._all_items is None and (origin := self._origin) is not None:
            self._all_items, self._pages = self._check_limits(origin.read_whole()[: self._item_count]), origin._pages
        if self._all_items is None:
            content = self._view()
            self._all_items, self._pages = self._check_items(content), content.obj
            self._blocks.clear()
        return self._all_items

    def read_uncached(self) -> Any:
        """Return all items without keeping their memory."""
        return self._check_items(self._view())

    def _check_items(self, content: memoryview) -> Any:
        for block, crc in enumerate(self._crcs):
            begin = block * BLOCK_BYTES
            if zlib.crc32(content[begin : min(begin + BLOCK_BYTES, self._byte_count)]) != crc:
                raise self.make_damage_error("is damaged")
        return self._check_limits(content.cast(self.typecode)[: self._item_count * self._item_width])

    def _view(self) -> memoryview:
        return self._source.view(self._begin, self._byte_count) if self._byte_count else memoryview(b"")

    def copy_with(self, changes: Mapping[int, int]) -> Any:
        """Return all numbers with `changes` (by index) applied. Only the changed pages take extra memory."""
        self.read_whole()
        numbers = self._view().cast(self.typecode)[: self._item_count]
        for index, number in changes.items():
            numbers[index] = number
        return numbers

    def release_pages(self) -> None:
        """Drop the column's mapped memory, which is read again when needed."""
        if isinstance(self._pages, mmap.mmap):
            self._pages.madvise(mmap.MADV_DONTNEED)


class LayeredColumn:
    """Consecutive stored columns with changes and appended numbers in memory. The files stay unchanged."""

    def __init__(self, bases: Sequence[StoredColumn], items: int | None = None) -> None:
        """Use the first `items` numbers of the columns; by default all."""
        self.bases = bases
        self.typecode = bases[0].typecode
        *self._starts, length = accumulate(map(len, bases), initial=0)
        self._item_count = length if items is None else items
        self.changes: dict[int, int] = {}
        self._tail = array(self.typecode)
        self._all_items: Any = None

    def __copy__(self) -> LayeredColumn:
        """Return a copy. Later changes affect only one of the two."""
        layered = LayeredColumn(self.bases, self._item_count)
        layered.changes, layered._tail = dict(self.changes), self._tail[:]
        return layered

    def __len__(self) -> int:
        return self._item_count + len(self._tail)

    def __iter__(self) -> Iterator[int]:
        return iter(self.read_whole())

    def __getitem__(self, index: Any) -> Any:
        """Return a number, or the numbers of a slice with step 1."""
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self))[:2])
        if not 0 <= index < self._item_count:
            return self._tail[self._find_tail_index(index)]
        if (all_items := self._all_items) is not None:
            return all_items[index]
        if index in self.changes:
            return self.changes[index]
        base_index = bisect_right(self._starts, index) - 1
        return self.bases[base_index][index - self._starts[base_index]]

    def _slice(self, first: int, last: int) -> Any:
        if (all_items := self._all_items) is not None:
            return all_items[first:last]
        base_index = bisect_right(self._starts, first) - 1
        start, base = self._starts[base_index], self.bases[base_index]
        if last <= min(start + len(base), self._item_count) and not self.changes:
            return base[first - start : last - start]
        return array(self.typecode, [self[index] for index in range(first, last)])

    def __setitem__(self, index: int, number: int) -> None:
        if 0 <= index < self._item_count:
            self.changes[index] = number
        else:
            self._tail[self._find_tail_index(index)] = number
        self._all_items = None

    def _find_tail_index(self, index: int) -> int:
        """Convert an index of the column to an index among the appended numbers."""
        if not self._item_count <= index < len(self):
            raise self.make_damage_error("does not have a requested index")
        return index - self._item_count

    def make_damage_error(self, why: str) -> Exception:
        """Return the error for columns that do not match others. Any file of the folder may be the damaged one."""
        return self.bases[0].make_damage_error(why, only_this_file=False)

    def append(self, number: int) -> None:
        """Append a number."""
        self.extend((number,))

    def extend(self, numbers: Iterable[int]) -> None:
        """Append numbers."""
        self._all_items = None
        self._tail.extend(numbers)

    def frombytes(self, numbers: Any) -> None:
        """Append numbers in their binary form."""
        self._all_items = None
        self._tail.frombytes(numbers)

    def list_pieces(self) -> list[Any]:
        """Return the numbers of each file, and the appended numbers, without later changes."""
        ends = (self._item_count - start for start in self._starts)
        return [*(base.read_whole()[: max(end, 0)] for base, end in zip(self.bases, ends, strict=True)), self._tail]

    def read_whole(self) -> Any:
        """Return all numbers in one piece of memory. A single unchanged file is not copied."""
        all_items = self._all_items
        if all_items is None:
            self._all_items = all_items = self._build_whole()
        return all_items

    def _build_whole(self) -> Any:
        if len(self.bases) == 1 and not self._tail:
            base = self.bases[0]
            return (base.copy_with(self.changes) if self.changes else base.read_whole())[: self._item_count]
        item_size = self._tail.itemsize
        memory = memoryview(bytearray(item_size * len(self)))
        for start, base in zip(self._starts, self.bases, strict=True):
            base.read_into(memory[item_size * start : item_size * min(start + len(base), self._item_count)])
        memory[item_size * self._item_count :] = memoryview(self._tail).cast("B")
        column = memory.cast(self.typecode)
        for index, number in self.changes.items():
            column[index] = number
        return column

    def take(self, indices: Any) -> Any:
        """Return the numbers at many indices in any order, as a numpy array. Reads no other blocks of the files."""
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(self):
            raise self.make_damage_error("does not have a requested index")
        if (all_items := self._all_items) is not None:
            return arrays.as_numpy(all_items)[indices]
        result = np.empty(len(indices), dtype=self.typecode)
        for base_start, base in zip(self._starts, self.bases, strict=True):
            in_base = (indices >= base_start) & (indices < min(base_start + len(base), self._item_count))
            if in_base.any():
                result[in_base] = base.take(indices[in_base] - base_start)
        in_tail = indices >= self._item_count
        if in_tail.any():
            result[in_tail] = arrays.as_numpy(self._tail)[indices[in_tail] - self._item_count]
        if self.changes:
            order = np.argsort(indices, kind="stable")
            changed_indices = np.fromiter(self.changes, dtype=np.int64, count=len(self.changes))
            starts, ends = (
                np.searchsorted(indices[order], changed_indices, side=side).tolist() for side in ("left", "right")
            )
            for index, start, end in zip(self.changes, starts, ends, strict=True):
                result[order[start:end]] = self.changes[index]
        return result

    def release_pages(self) -> None:
        """Drop the contents of files from memory. They are read again when needed."""
        self._all_items = None
        for base in self.bases:
            base.release_pages()


def list_pieces(column: Any) -> list[Any]:
    """Return a column as consecutive pieces of memory, without later changes."""
    if not isinstance(column, LayeredColumn):
        return [column.read_whole() if isinstance(column, StoredColumn) else column]
    return column.list_pieces()


def check_all(columns: Iterable[StoredColumn | LayeredColumn]) -> None:
    """Read and check all contents of some columns, several at a time. Keeps nothing in memory."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as threads:
        list(threads.map(_check, columns))


def _check(column: StoredColumn | LayeredColumn) -> None:
    list_pieces(column)
    column.release_pages()
