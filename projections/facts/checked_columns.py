"""Columns in files that are checked when they are read, block by block, and several of them as one, with what was
changed since they were written.

What a question does not read is neither read nor checked for it.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, finalize

from ratings_ledger.ledger.own_files import open_own
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np

BLOCK_BYTES = 1 << 15
BLOCKS_HELD = 1024  # of a column that is read here and there
ANY = -(2**63), 2**63
# errors that say something about a file, and not only about now
ITS_FAULT = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.EPERM, errno.EIO, errno.ENXIO)

logger = logging.getLogger(__name__)
_OPEN: WeakValueDictionary[Path, Checked] = WeakValueDictionary()


class Damaged(Exception):
    """A file is not as it was written; the folder `place` is better deleted."""

    def __init__(self, message: str, place: Path) -> None:
        super().__init__(message)
        self.place = place

    def discard(self) -> None:
        """Delete the folder, and say so in a line."""
        logger.warning("ratings: what is kept in %s is not used: %s", self.place.parent, str(self))
        for path in [*_OPEN]:
            if self.place in path.parents:
                _OPEN.pop(path, None)
        import shutil  # hardly ever needed

        shutil.rmtree(self.place, ignore_errors=True)


class Unreadable(Exception):
    """A file cannot be read now, which says nothing about its content."""


def add_crcs(crcs: list[int], length: int, data: Any) -> None:
    """Bring the CRC-32s of the blocks of a file that had so many bytes up to date with the `data` behind them."""
    rest = memoryview(data).cast("B")
    room = -length % BLOCK_BYTES
    if room and len(rest):
        crcs[-1] = zlib.crc32(rest[:room], crcs[-1])
        rest = rest[room:]
    crcs.extend(zlib.crc32(rest[at : at + BLOCK_BYTES]) for at in range(0, len(rest), BLOCK_BYTES))


class Checked:
    """Integers in a file; a block of it is read and checked when something in it is asked for.

    Reading raises `Damaged`, also for an index that is not there: nothing sound leads to it.
    """

    def __init__(self, path: Path, code: str, items: int, crcs: list[int]) -> None:
        """The first `items` of the integers in a file. Raises `Damaged`, `Unreadable`."""
        size = array(code).itemsize
        length = items * size
        self.typecode: Any = code
        self._path, self._length, self._crcs = path, length, crcs
        self._items = items
        self._low, self._high = ANY
        self._per_block = BLOCK_BYTES // size
        self._blocks: dict[int, Any] = {}
        self._sound: set[int] = set()  # the blocks that were checked
        self._whole: Any = None
        self._origin: Checked | None = None  # which has the file open
        if length < 0 or len(crcs) != -(-length // BLOCK_BYTES):
            raise self.damaged("has no checksums for its length")
        if length:
            self._descriptor = self._opened()
            finalize(self, os.close, self._descriptor)

    def _opened(self) -> int:
        try:
            with open_own(self._path, "rb") as file:
                found = os.dup(file.fileno())
        except OSError as error:
            raise self._unread(error) from None
        if os.fstat(found).st_size < self._length:
            os.close(found)
            raise self.damaged("is too short")
        return found

    def _unread(self, error: OSError) -> Damaged | Unreadable:
        told = f"cannot be read: {error.strerror}"
        return self.damaged(told) if error.errno in ITS_FAULT else Unreadable(f"{self._path.name} {told}")

    def damaged(self, why: str, alone: bool = True) -> Damaged:
        """That it is not as it was written, and why; or not it `alone`, and all that is kept beside it."""
        folder = self._path.parent
        return Damaged(f"{folder.name}/{self._path.name} {why}", folder if alone else folder.parent)

    def within(self, low: int, high: int) -> Checked:
        """Return the same; a number below `low`, or not below `high`, is damage."""
        self._low, self._high = low, high
        return self

    def is_of(self, code: str, items: int, crcs: list[int]) -> bool:
        """Tell whether it is a column of this type, length and content."""
        return (self.typecode, self._items, self._crcs) == (code, items, crcs)

    def __len__(self) -> int:
        return self._items

    def __iter__(self) -> Iterator[int]:
        return iter(self.whole())

    def __getitem__(self, index: Any) -> Any:
        """A number, or those of a slice, whose step is 1."""
        if isinstance(index, slice):
            return self._slice(*index.indices(self._items)[:2])
        if not 0 <= index < self._items:
            raise self.damaged("is asked for what it does not have")
        if self._whole is not None:
            return self._whole[index]
        block, at = divmod(index, self._per_block)
        number = (self._blocks.get(block) or self._block(block))[at]
        if not self._low <= number < self._high:
            raise self.damaged("has a number that leads nowhere")
        return number

    def _slice(self, first: int, last: int) -> Any:
        if self._whole is not None:
            return self._whole[first:last]
        if first == 0 and last > self._per_block:
            shorter = copy(self)  # reads as little
            shorter._items, shorter._origin = last, self
            return shorter
        block, at = divmod(first, self._per_block)
        found = array(self.typecode)
        while len(found) < last - first:
            part = (self._blocks.get(block) or self._block(block))[at : at + last - first - len(found)]
            found.frombytes(part.cast("B"))
            block, at = block + 1, 0
        return self._ranged(found)

    def _block(self, block: int) -> Any:
        """Return the numbers in a block, which is held for a while."""
        if len(self._blocks) >= BLOCKS_HELD:
            self._blocks.clear()
        self._blocks[block] = found = memoryview(self._read(block)).cast(self.typecode)
        return found

    def _read(self, block: int) -> bytes:
        begin = block * BLOCK_BYTES
        try:
            told = os.pread(self._descriptor, min(BLOCK_BYTES, self._length - begin), begin)
        except OSError as error:
            raise self._unread(error) from None
        if zlib.crc32(told) != self._crcs[block]:
            raise self.damaged("is damaged")
        self._sound.add(block)
        return told

    def _ranged(self, numbers: Any) -> Any:
        if (self._low, self._high) != ANY and not within(numbers, self._low, self._high):
            raise self.damaged("has a number that leads nowhere")
        return numbers

    def taken(self, indices: Any) -> Any:
        """Return the numbers at many indices in any order, as numpy arrays: blocks are checked once, and nothing is
        kept.
        """
        if len(indices) and not 0 <= indices.min() <= indices.max() < self._items:
            raise self.damaged("is asked for what it does not have")
        if self._whole is not None:
            return arrays.as_numpy(self._whole)[indices]
        for block in np.unique(indices // self._per_block).tolist():
            if block not in self._sound:
                self._read(block)
        return self._ranged(np.frombuffer(self._mapped(), dtype=self.typecode)[indices])

    def blocks(self) -> Iterator[bytes]:
        """Return all bytes, a block at a time."""
        return map(self._read, range(len(self._crcs)))

    def read_into(self, memory: memoryview) -> None:
        """Fill memory of another's with numbers from the first on."""
        if self._whole is not None:
            memory[:] = self._whole.cast("B")[: len(memory)]
            self.let_go()  # whoever has all of them in one piece looks no more here
            return
        for block, begin in enumerate(range(0, len(memory), BLOCK_BYTES)):
            memory[begin : begin + BLOCK_BYTES] = self._read(block)[: len(memory) - begin]
        self._ranged(memory.cast(self.typecode))

    def whole(self) -> Any:
        """Return all numbers, in the file's own memory."""
        if self._whole is None and self._origin is not None:
            self._whole = self._ranged(self._origin.whole()[: self._items])
        if self._whole is None:
            pages = self._mapped()
            for block, crc in enumerate(self._crcs):
                begin = block * BLOCK_BYTES
                if zlib.crc32(pages[begin : min(begin + BLOCK_BYTES, self._length)]) != crc:
                    raise self.damaged("is damaged")
            self._whole = self._ranged(pages.cast(self.typecode)[: self._items])
            self._blocks.clear()
        return self._whole

    def _mapped(self) -> memoryview:
        if not self._length:
            return memoryview(b"")
        try:
            return memoryview(mmap.mmap(self._descriptor, self._length, access=mmap.ACCESS_COPY))
        except ValueError:
            raise self.damaged("is too short") from None
        except OSError as error:
            raise self._unread(error) from None

    def changed(self, changes: Mapping[int, int]) -> Any:
        """Return all numbers, with some changed; only the pages of these are in memory of their own."""
        self.whole()
        found = self._mapped().cast(self.typecode)[: self._items]
        for index, number in changes.items():
            found[index] = number
        return found

    def let_go(self) -> None:
        """Drop it from memory; reading brings it back."""
        if self._whole is not None and self._length:
            self._whole.obj.madvise(mmap.MADV_DONTNEED)


def opened(path: Path, code: str, items: int, crcs: list[int]) -> Checked:
    """Return a column in a file that is opened once, however many facts have it. Raises `Damaged`, `Unreadable`."""
    found = _OPEN.get(path)
    if found is None or not found.is_of(code, items, crcs):
        found = _OPEN[path] = Checked(path, code, items, crcs)
    return found


class Layered:
    """Checked columns, one behind another, with what was changed and appended since: the files stay as they are, and so
    do copies of this."""

    def __init__(self, bases: Sequence[Checked], items: int | None = None) -> None:
        """The first `items` of the numbers in one or more columns."""
        self.bases = bases
        self.typecode = bases[0].typecode
        *self._starts, length = accumulate(map(len, bases), initial=0)
        self._items = length if items is None else items
        self.changes: dict[int, int] = {}
        self._tail = array(self.typecode)
        self._whole: Any = None

    def __copy__(self) -> Layered:
        """The same, with changes of its own."""
        found = Layered(self.bases, self._items)
        found.changes, found._tail = dict(self.changes), self._tail[:]
        return found

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

    def damaged(self, why: str) -> Damaged:
        """That these columns do not go with the others, and why; no single one is to blame."""
        return self.bases[0].damaged(why, alone=False)

    def append(self, number: int) -> None:
        """Put a number behind the others."""
        self.extend((number,))

    def extend(self, numbers: Iterable[int]) -> None:
        """Put numbers behind the others."""
        self._whole = None
        self._tail.extend(numbers)

    def frombytes(self, numbers: Any) -> None:
        """The same for numbers as they are in memory."""
        self._whole = None
        self._tail.frombytes(numbers)

    def pieces(self) -> list[Any]:
        """Return what is in each of the columns, and what was appended."""
        ends = (self._items - start for start in self._starts)
        return [*(base.whole()[: max(end, 0)] for base, end in zip(self.bases, ends, strict=True)), self._tail]

    def whole(self) -> Any:
        """Return all numbers in one piece of memory: the file's if there is one and nothing was changed."""
        found = self._whole
        if found is None:
            self._whole = found = self._in_one()
        return found

    def _in_one(self) -> Any:
        if len(self.bases) == 1 and not self._tail:
            base = self.bases[0]
            return (base.changed(self.changes) if self.changes else base.whole())[: self._items]
        size = self._tail.itemsize
        memory = memoryview(bytearray(size * len(self)))
        for start, base in zip(self._starts, self.bases, strict=True):
            base.read_into(memory[size * start : size * min(start + len(base), self._items)])
        memory[size * self._items :] = memoryview(self._tail).cast("B")
        found = memory.cast(self.typecode)
        for index, number in self.changes.items():
            found[index] = number
        return found

    def taken(self, indices: Any) -> Any:
        """Return the numbers at many indices in any order, as numpy arrays: of the files, no more than that is read."""
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(self):
            raise self.damaged("is asked for what it does not have")
        if (whole := self._whole) is not None:
            return arrays.as_numpy(whole)[indices]
        found = np.empty(len(indices), dtype=self.typecode)
        for start, base in zip(self._starts, self.bases, strict=True):
            there = (indices >= start) & (indices < min(start + len(base), self._items))
            if there.any():
                found[there] = base.taken(indices[there] - start)
        behind = indices >= self._items
        if behind.any():
            found[behind] = arrays.as_numpy(self._tail)[indices[behind] - self._items]
        if self.changes:
            order = np.argsort(indices, kind="stable")
            changed = np.fromiter(self.changes, dtype=np.int64, count=len(self.changes))
            first, last = (np.searchsorted(indices[order], changed, side=side).tolist() for side in ("left", "right"))
            for index, low, high in zip(self.changes, first, last, strict=True):
                found[order[low:high]] = self.changes[index]
        return found

    def let_go(self) -> None:
        """Drop what is in files from memory; reading brings it back."""
        self._whole = None
        for base in self.bases:
            base.let_go()


def pieces(column: Any) -> list[Any]:
    """Return a column as its pieces of memory, one behind another, as it was before anything was changed."""
    if not isinstance(column, Layered):
        return [column.whole() if isinstance(column, Checked) else column]
    return column.pieces()


def within(numbers: Any, low: int, high: int) -> bool:
    """Tell whether all numbers are at least `low` and below `high`."""
    if not len(numbers):
        return True
    values = arrays.as_numpy(numbers)
    return bool(low <= values.min() and values.max() < high)


def check_all(columns: Iterable[Checked | Layered]) -> None:
    """Read everything in some columns, several at once, and let go of it. Raises `Damaged`."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as threads:
        list(threads.map(_check, columns))


def _check(column: Checked | Layered) -> None:
    pieces(column)
    column.let_go()
