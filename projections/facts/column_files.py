"""Write and read files of columns: arrays of integers in files that never change after they are written.

    COLUMN ... FOOTER LENGTH CRC MAGIC

The footer is JSON: a description of the file, its byte order, and the type, shape, offset and checksums of each column.
A file is written under a temporary name and then linked to its final name, so it is never incomplete. An object store
may hold the same bytes. Before use, a file's owner, its length, the checksums and the range of the numbers are checked.

In a cache folder, file names have the form SUBJECT-POSITION-DIGESTS-FORMAT. Any file of a cache may be deleted at any
time.
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
TAIL_BYTES = 1 << 16  # the last bytes of a file, read first because most footers fit into them
ALIGNMENT = 8  # every column starts at a multiple of this
TRACES = "traces"  # the folder of cached traces
UNUSED_S = 7 * 86_400  # older files in the format of another program version are deleted
POSITION_DIGITS_LIMIT = 19  # a position has fewer digits
# errors that mean that a file is damaged; all other errors may be temporary
DAMAGE_ERRNOS = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.EPERM, errno.EIO, errno.ENXIO)

logger = logging.getLogger(__name__)


class DamagedFile(Exception):
    """A file does not have the content that was written; `path`, the file or its folder, should be deleted."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path

    def discard(self) -> None:
        """Delete the damaged file or folder, and log a warning."""
        # log the text instead of the error, whose traceback would keep the file open
        logger.warning("ratings: a damaged file in %s is not used: %s", self.path.parent, str(self))
        for open_path in [*_OPEN_FILES]:
            if self.path in (open_path, *open_path.parents):
                _OPEN_FILES.pop(open_path, None)
        delete_file(self.path)


class UnreadableFile(Exception):
    """A file cannot be read now; its content may be valid."""


def encode_columns(columns: Mapping[str, tuple[str, Iterable[Column]]], about: Mapping[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of a file.

    Args:
        columns: by name, the type code of a column and its consecutive parts
        about: the description for the footer; a `name` in it must be the name of the file
    """
    position, places = 0, dict[str, ColumnPlace]()
    for name, (code, parts) in columns.items():
        crcs, byte_count, item_shape = list[int](), 0, tuple[int, ...]()
        for part in parts:
            column = part if isinstance(part, StoredColumn) else memoryview(arrays.load_into_memory(part))
            item_shape = (column.shape or ())[1:]
            blocks: Iterable[Bytes] = column.blocks() if isinstance(column, StoredColumn) else [column]
            for data in (memoryview(block).cast("B") for block in blocks if len(column)):
                yield data
                add_crcs(crcs, byte_count, data)
                byte_count += len(data)
        item_count = byte_count // (array(code).itemsize * prod(item_shape))
        places[name] = ColumnPlace(code, [item_count, *item_shape], position, crcs)
        yield bytes(-byte_count % ALIGNMENT)
        position += byte_count + -byte_count % ALIGNMENT
    footer = json.dumps({"about": about, "columns": places, "order": sys.byteorder}, sort_keys=True).encode()
    yield footer
    yield TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC)


def read_footer(source: Source) -> bytes:
    """Return the footer of a file. Raises the source's error for damage."""
    tail = bytes(source.read(max(0, source.size - TAIL_BYTES), min(source.size, TAIL_BYTES)))
    if len(tail) < TRAILER.size:
        raise source.make_damage_error("is too short")
    length, crc, magic = TRAILER.unpack(tail[-TRAILER.size :])
    if magic != MAGIC or length + TRAILER.size > source.size:
        raise source.make_damage_error("does not end like a file of columns")
    if length + TRAILER.size > len(tail):
        tail = bytes(source.read(source.size - length - TRAILER.size, length + TRAILER.size))
    footer = tail[-TRAILER.size - length : -TRAILER.size]
    if zlib.crc32(footer) != crc:
        raise source.make_damage_error("has a footer with a wrong checksum")
    return footer


class ColumnFile:
    """An opened file: its name, its description in `about`, and its columns, which are checked when they are read."""

    def __init__(self, source: Source, name: str, footer: bytes) -> None:
        """Raises the source's error for damage if the footer is invalid or belongs to a file of another name."""
        self.name = name
        try:
            content = json.loads(footer)
            self.about: dict[str, Any] = {**content["about"]}
            places = {column: ColumnPlace(*place) for column, place in content["columns"].items()}
            if self.about.get("name", name) != name:
                raise ValueError(f"it is {self.about['name']} under another name")
            if content["order"] != sys.byteorder:
                raise ValueError("it was written by a machine with another byte order")
            self.columns = {column: self._column(source, column, place) for column, place in places.items()}
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise source.make_damage_error(f"cannot be read: {error}") from None

    def _column(self, source: Source, name: str, place: ColumnPlace) -> StoredColumn:
        numbers = [place.begin, *place.shape, *place.crcs]
        if place.code not in CODES or not place.shape or not all(type(number) is int for number in numbers):
            raise ValueError(f"its footer has an invalid entry for {name}")
        return source.column(name, place)

    @property
    def codes(self) -> dict[str, str]:
        """Return the type codes of the columns by name."""
        return {name: column.typecode for name, column in self.columns.items()}

    def lines(self, name: str) -> list[Any]:
        """Return the values of a column of JSON lines."""
        values: list[Any] = json.loads(
            b"[" + b",".join(bytes(self.columns[name].read_uncached()).split(b"\n")[:-1]) + b"]"
        )
        return values

    def check(self) -> None:
        """Read and check all columns. Raises the source's error for damage."""
        check_all(self.columns.values())


def encode_lines(values: Iterable[Any]) -> bytes:
    """Return values as a column of JSON lines."""
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


class _OwnFile:
    """An open file of this account. Facts that use the same file share it."""

    def __init__(self, path: Path) -> None:
        """Raises `DamagedFile`, `UnreadableFile`, `FileNotFoundError`."""
        self._path = path
        try:
            with open_own(path, "rb") as file:
                self._descriptor = os.dup(file.fileno())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._make_read_error(error) from None
        finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        self.footer = read_footer(self)
        self._columns: WeakValueDictionary[str, StoredColumn] = WeakValueDictionary()

    def column(self, name: str, place: ColumnPlace) -> StoredColumn:
        """Return a column. All users of the file get the same object."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = StoredColumn(self, name, place)
        return column

    def read(self, first: int, length: int) -> Bytes:
        """Return `length` bytes from the byte `first` on; fewer at the end of the file."""
        try:
            return os.pread(self._descriptor, length, first)
        except OSError as error:
            raise self._make_read_error(error) from None

    def view(self, first: int, length: int) -> memoryview:
        """Return many bytes as mapped memory. Changes to the memory do not change the file."""
        shift = first % mmap.ALLOCATIONGRANULARITY
        try:
            pages = mmap.mmap(self._descriptor, length + shift, access=mmap.ACCESS_COPY, offset=first - shift)
        except ValueError:
            raise self.make_damage_error("is too short") from None
        except OSError as error:
            raise self._make_read_error(error) from None
        return memoryview(pages)[shift:]

    def _make_read_error(self, error: OSError) -> DamagedFile | UnreadableFile:
        reason = f"cannot be read: {error.strerror}"
        return (
            self.make_damage_error(reason)
            if error.errno in DAMAGE_ERRNOS
            else UnreadableFile(f"{self._path.name} {reason}")
        )

    def make_damage_error(self, why: str, column: str = "", only_this_file: bool = True) -> DamagedFile:
        """Return the error for a damaged file. Unless `only_this_file`, the whole folder should be deleted."""
        name = f"{self._path.name}/{column}" if column else self._path.name
        return DamagedFile(f"{name} {why}", self._path if only_this_file else self._path.parent)


_OPEN_FILES: WeakValueDictionary[Path, _OwnFile] = WeakValueDictionary()


def open_file(path: Path) -> ColumnFile | None:
    """Open a file of this account. Return None if it does not exist, or is not in a folder of this account.

    Raises `DamagedFile`, `UnreadableFile`.
    """
    if not is_own_folder(path.parent):
        return None
    try:
        source = _OwnFile(path)
    except FileNotFoundError:
        return None  # another process may have deleted it
    open_source = _OPEN_FILES.get(path)
    if open_source is None or open_source.footer != source.footer:
        open_source = _OPEN_FILES[path] = source
    return ColumnFile(open_source, path.name, open_source.footer)


def write_file(path: Path, content: Iterable[Bytes]) -> None:
    """Write a file unless it exists. Raises `OSError`.

    Raises `DamagedFile` or `UnreadableFile` if `content` comes from such files.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own_folder(path.parent):
        raise PermissionError(errno.EPERM, "not a folder of this account", str(path.parent))
    # another process may write the same file
    with suppress(FileExistsError), create_file(str(path), 0o600, forced=False) as file:
        for data in content:
            file.write(data)


def list_files(folder: Path, suffix: str = "", prefix: str = "*") -> Iterator[tuple[int, Path]]:
    """Yield (position, path) for the files of columns in a folder.

    The names must end with `suffix` and begin with `prefix`, a glob pattern.
    """
    for path in folder.glob(f"{prefix}-*-*{suffix}") if is_own_folder(folder) else ():
        position = path.name.split("-")[1]
        if position.isdecimal() and len(position) < POSITION_DIGITS_LIMIT:
            yield int(position), path


def read_about(path: Path) -> dict[str, Any]:
    """Return the description in a file's footer; empty if the file cannot be read."""
    try:
        file = open_file(path)
    except (DamagedFile, UnreadableFile):
        return {}
    return file.about if file else {}


def delete_file(path: Path) -> None:
    """Delete a file, or a folder with its content."""
    if is_own_folder(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def prune_files(folder: Path, own_format: str) -> None:
    """Delete old files in a folder, except files in the program's own format."""
    with suppress(OSError):
        for path in folder.iterdir() if is_own_folder(folder) else ():
            age = clock.now() // 1_000_000 - path.lstat().st_mtime
            if age > UNUSED_S and not path.name.endswith(f"-{own_format}"):
                delete_file(path)
