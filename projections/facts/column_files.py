"""Files of columns: arrays of integers, in one file that is written once and never changed.

    COLUMN ... FOOTER LENGTH CRC MAGIC

The footer is JSON: what the columns are about, and the type, shape, place and checksums of each. A file is made beside
its place and linked to its name, so that it is there whole or not at all; the same bytes may be an object in a store.
What is read is checked first: that it is in a regular file of this account, its length, its checksum, and the range of
its numbers.

In a folder of caches a name is OF-POSITION-REST-FORMAT: of what, up to which position, and everything else that decides
what is in it. All of it may be deleted at any time.
"""

from __future__ import annotations

import errno
import json
import logging
import mmap
import os
import shutil
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, finalize

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.own_files import create_file, is_own_folder, open_own
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.columns import Column
from ratings_ledger.projections.facts.stored_columns import (
    CODES,
    Bytes,
    ColumnPlace,
    Source,
    StoredColumn,
    add_crcs,
    check_all,
)

MAGIC = b"ratings2"
TRAILER = struct.Struct("<QI8s")
TAIL_BYTES = 1 << 16  # read at first: with most footers in it
ALIGNMENT = 8  # every column begins at a multiple of it
TRACES = "traces"  # the folder of those that keep traces
DISUSED_S = 7 * 86_400  # so old is what an earlier program left, or one that was killed
POSITION_DIGITS = 19  # too many for the numbers of a database
# errors that say something about a file, and not only about now
ITS_FAULT = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.EPERM, errno.EIO, errno.ENXIO)

logger = logging.getLogger(__name__)


class Damaged(Exception):
    """A file is not as it was written; `place`, the file or its folder, is better deleted."""

    def __init__(self, message: str, place: Path) -> None:
        super().__init__(message)
        self.place = place

    def discard(self) -> None:
        """Delete the place, and say so in a line."""
        logger.warning("ratings: what is kept in %s is not used: %s", self.place.parent, str(self))
        for path in [*_OPEN]:
            if self.place in (path, *path.parents):
                _OPEN.pop(path, None)
        delete_file(self.place)


class Unreadable(Exception):
    """A file cannot be read now, which says nothing about its content."""


def encode_columns(columns: Mapping[str, tuple[str, Iterable[Column]]], about: Mapping[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of a file, whose columns are given by their types and their parts, one behind another.

    What `about` says of a `name` is the name that the file must have.
    """
    at, places = 0, dict[str, ColumnPlace]()
    for name, (code, parts) in columns.items():
        crcs, length, row = list[int](), 0, tuple[int, ...]()
        for part in parts:
            held = part if isinstance(part, StoredColumn) else memoryview(arrays.in_memory(part))
            row = (held.shape or ())[1:]
            blocks: Iterable[Bytes] = held.blocks() if isinstance(held, StoredColumn) else [held]
            for data in (memoryview(block).cast("B") for block in blocks if len(held)):
                yield data
                add_crcs(crcs, length, data)
                length += len(data)
        items = length // (array(code).itemsize * prod(row))
        places[name] = ColumnPlace(code, [items, *row], at, crcs)
        yield bytes(-length % ALIGNMENT)
        at += length + -length % ALIGNMENT
    footer = json.dumps({"about": about, "columns": places, "order": sys.byteorder}, sort_keys=True).encode()
    yield footer
    yield TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC)


def read_footer(source: Source) -> bytes:
    """Return the footer of a file. Raises what the source calls damage."""
    tail = bytes(source.read(max(0, source.size - TAIL_BYTES), min(source.size, TAIL_BYTES)))
    if len(tail) < TRAILER.size:
        raise source.damaged("is too short")
    length, crc, magic = TRAILER.unpack(tail[-TRAILER.size :])
    if magic != MAGIC or length + TRAILER.size > source.size:
        raise source.damaged("ends in something else")
    if length + TRAILER.size > len(tail):
        tail = bytes(source.read(source.size - length - TRAILER.size, length + TRAILER.size))
    footer = tail[-TRAILER.size - length : -TRAILER.size]
    if zlib.crc32(footer) != crc:
        raise source.damaged("has a footer with another checksum")
    return footer


class ColumnFile:
    """An opened file: its name, what it is about, and its columns, which are checked when they are read."""

    def __init__(self, source: Source, name: str, footer: bytes) -> None:
        """Raises what the source calls damage if the footer cannot be that of a file with this name."""
        self.name = name
        try:
            content = json.loads(footer)
            self.about: dict[str, Any] = {**content["about"]}
            places = {column: ColumnPlace(*place) for column, place in content["columns"].items()}
            if self.about.get("name", name) != name:
                raise ValueError(f"it is {self.about['name']} under another name")
            if content["order"] != sys.byteorder:
                raise ValueError("it was written by a machine with another order of bytes")
            self.columns = {column: self._column(source, column, place) for column, place in places.items()}
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as problem:
            raise source.damaged(f"cannot be read: {problem}") from None

    def _column(self, source: Source, name: str, place: ColumnPlace) -> StoredColumn:
        numbers = [place.begin, *place.shape, *place.crcs]
        if place.code not in CODES or not place.shape or not all(type(number) is int for number in numbers):
            raise ValueError(f"it has no place for {name}")
        return source.column(name, place)

    @property
    def codes(self) -> dict[str, str]:
        """Return the types of its columns."""
        return {name: column.typecode for name, column in self.columns.items()}

    def lines(self, name: str) -> list[Any]:
        """Return the values in a column of JSON, one per line."""
        values: list[Any] = json.loads(b"[" + b",".join(bytes(self.columns[name].load()).split(b"\n")[:-1]) + b"]")
        return values

    def check(self) -> None:
        """Read everything in it. Raises what its source calls damage."""
        check_all(self.columns.values())


def encode_lines(values: Iterable[Any]) -> bytes:
    """Return values as a column of JSON, one per line."""
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


class _OwnFile:
    """The bytes of a file of this account, which is opened once, however many facts have its columns."""

    def __init__(self, path: Path) -> None:
        """Raises `Damaged`, `Unreadable`, `FileNotFoundError`."""
        self._path = path
        try:
            with open_own(path, "rb") as file:
                self._descriptor = os.dup(file.fileno())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._unread(error) from None
        finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        self.footer = read_footer(self)
        self._columns: WeakValueDictionary[str, StoredColumn] = WeakValueDictionary()

    def column(self, name: str, place: ColumnPlace) -> StoredColumn:
        """Return a column, the same for all who have it."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = StoredColumn(self, name, place)
        return column

    def read(self, first: int, length: int) -> Bytes:
        """Return some bytes."""
        try:
            return os.pread(self._descriptor, length, first)
        except OSError as error:
            raise self._unread(error) from None

    def view(self, first: int, length: int) -> memoryview:
        """Return many bytes, in the file's own memory; what is changed in it stays there."""
        shift = first % mmap.ALLOCATIONGRANULARITY
        try:
            pages = mmap.mmap(self._descriptor, length + shift, access=mmap.ACCESS_COPY, offset=first - shift)
        except ValueError:
            raise self.damaged("is too short") from None
        except OSError as error:
            raise self._unread(error) from None
        return memoryview(pages)[shift:]

    def _unread(self, error: OSError) -> Damaged | Unreadable:
        why = f"cannot be read: {error.strerror}"
        return self.damaged(why) if error.errno in ITS_FAULT else Unreadable(f"{self._path.name} {why}")

    def damaged(self, why: str, column: str = "", alone: bool = True) -> Damaged:
        """Return the error that the file is not as it was written, or not it `alone`, and all that is beside it."""
        name = f"{self._path.name}/{column}" if column else self._path.name
        return Damaged(f"{name} {why}", self._path if alone else self._path.parent)


_OPEN: WeakValueDictionary[Path, _OwnFile] = WeakValueDictionary()


def open_file(path: Path) -> ColumnFile | None:
    """Return a file of this account; None if it is not there. Raises `Damaged`, `Unreadable`."""
    if not is_own_folder(path.parent):
        return None
    try:
        source = _OwnFile(path)
    except FileNotFoundError:
        return None  # somebody may just have deleted it
    known = _OPEN.get(path)
    if known is None or known.footer != source.footer:
        known = _OPEN[path] = source
    return ColumnFile(known, path.name, known.footer)


def write_file(path: Path, content: Iterable[Bytes]) -> None:
    """Write a file unless it is there. Raises `OSError`; `Damaged` if it is made of others that are."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own_folder(path.parent):
        raise PermissionError(errno.EPERM, "not a folder of this account", str(path.parent))
    with suppress(FileExistsError), create_file(str(path), 0o600, forced=False) as file:  # or somebody was faster
        for data in content:
            file.write(data)


def files_in(folder: Path, own_format: str = "", of: str = "*") -> Iterator[tuple[int, Path]]:
    """Yield the positions and paths of files with columns: of all, or of those in a format, or whose names begin so."""
    for path in folder.glob(f"{of}-*-*{own_format}") if is_own_folder(folder) else ():
        position = path.name.split("-")[1]
        if position.isdecimal() and len(position) < POSITION_DIGITS:
            yield int(position), path


def about_file(path: Path) -> dict[str, Any]:
    """Return what the columns in a file are about; empty if it cannot be read."""
    try:
        file = open_file(path)
    except (Damaged, Unreadable):
        return {}
    return file.about if file else {}


def delete_file(path: Path) -> None:
    """Delete a file, or a folder with all that is in it."""
    if is_own_folder(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def prune_files(folder: Path, own_format: str) -> None:
    """Delete what is old in a folder unless it is in the program's own format."""
    with suppress(OSError):
        for path in folder.iterdir() if is_own_folder(folder) else ():
            age = clock.now() // 1_000_000 - path.lstat().st_mtime
            if age > DISUSED_S and not path.name.endswith(f"-{own_format}"):
                delete_file(path)
