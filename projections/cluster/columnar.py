"""Columns in one object: parts that are read by themselves, then columns, then what they are.

    PART ... COLUMN ... FOOTER LENGTH CRC MAGIC      the footer is JSON; each part and column has a CRC-32

Who reads a part needs to know its place, length and checksum: they are in columns.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.objects import Bytes, Objects, objects_at, why

MAGIC = b"ratings1"
TRAILER = struct.Struct("<QI8s")
TAIL_BYTES = 1 << 16  # read at first: with most footers in it
OPENED = 4096
WIDTH = 8  # everything begins at a multiple of it
Array = Any  # of numpy


class DamagedObject(Exception):
    """An object is not as it was written, or not there; `name` is its name."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return DamagedObject, (self.name, self.problem)


class Part(NamedTuple):
    """Where a part is, and its checksum."""

    at: int
    length: int
    crc: int


def parts_of(parts: Iterable[Bytes]) -> tuple[list[Bytes], list[Part]]:
    """Parts to begin an object with, padded, and where they are."""
    told, found, at = list[Bytes](), list[Part](), 0
    for part in parts:
        seen = memoryview(part).cast("B")
        found.append(Part(at, len(seen), zlib.crc32(seen)))
        told += [seen, bytes(-len(seen) % WIDTH)]
        at += len(seen) + -len(seen) % WIDTH
    return told, found


def object_bytes(parts: list[Bytes], columns: Mapping[str, Array], about: Mapping[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of an object: `parts` as `parts_of` gives them, columns, and anything that JSON can say; what
    says a `name` there is no other object."""
    at, places = sum(len(part) for part in parts), dict[str, tuple[str, int, int, int]]()
    yield from parts
    for name, column in columns.items():
        seen = memoryview(column).cast("B") if len(column) else memoryview(b"")
        places[name] = (column.dtype.str, at, len(seen), zlib.crc32(seen))
        yield seen
        yield bytes(-len(seen) % WIDTH)
        at += len(seen) + -len(seen) % WIDTH
    footer = json.dumps({"about": about, "columns": places}, sort_keys=True).encode()
    yield footer
    yield TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC)


class OpenedObject:
    """An object's columns; those that were read stay in memory."""

    def __init__(self, objects: Objects, name: str) -> None:
        """Raises `DamagedObject`."""
        self._objects, self.name = objects, name
        size = objects.size(name)
        if size is None:
            raise DamagedObject(name, "is missing")
        tail = bytes(self._read(max(0, size - TAIL_BYTES), min(size, TAIL_BYTES)))
        if len(tail) < TRAILER.size:
            raise DamagedObject(name, "is too short")
        length, crc, magic = TRAILER.unpack(tail[-TRAILER.size :])
        if magic != MAGIC or length + TRAILER.size > size:
            raise DamagedObject(name, "ends in something else")
        if length + TRAILER.size > len(tail):
            tail = bytes(self._read(size - length - TRAILER.size, length + TRAILER.size))
        footer = tail[-TRAILER.size - length : -TRAILER.size]
        if zlib.crc32(footer) != crc:
            raise DamagedObject(name, "has a footer with another checksum")
        told = json.loads(footer)
        self.about: dict[str, Any] = told["about"]
        if self.about.get("name", name) != name:
            raise DamagedObject(name, f"is {self.about['name']} under another name")
        self._places: dict[str, tuple[str, int, int, int]] = told["columns"]
        self._columns: dict[str, Array] = {}

    def _read(self, first: int, length: int) -> Bytes:
        try:
            return self._objects.read(self.name, first, length)
        except FileNotFoundError:
            raise DamagedObject(self.name, "is missing") from None
        except OSError as problem:
            # a store that does not answer is no reason to delete and make again what it has
            raise StoreUnavailable(f"{self.name} in {self._objects.url}: {why(problem)}", "file") from None

    def part(self, part: Part) -> Bytes:
        """Return a part, checked. Raises `DamagedObject`."""
        found = self._read(part.at, part.length)
        if len(found) != part.length or zlib.crc32(found) != part.crc:
            raise DamagedObject(self.name, f"is damaged between bytes {part.at:,} and {part.at + part.length:,}")
        return found

    def column(self, name: str) -> Array:
        """Return a column, checked. Raises `DamagedObject`."""
        if name not in self._columns:
            kind, *place = self._places[name]
            self._columns[name] = np.frombuffer(self.part(Part(*place)), dtype=kind)
        return self._columns[name]

    def lines(self, name: str) -> list[Any]:
        """Return a column of JSON values, one per line."""
        text = self.column(name).tobytes()
        return list(json.loads(b"[" + b",".join(text.split(b"\n")[:-1]) + b"]"))

    def check(self) -> None:
        """Read all columns. Raises `DamagedObject`."""
        for name in self._places:
            self.column(name)


@lru_cache(OPENED)
def object_at(url: str, name: str) -> OpenedObject:
    """Return an object that is never changed: whoever opens it again gets the same. Raises `DamagedObject`."""
    return OpenedObject(_place(url), name)


@lru_cache(8)
def _place(url: str) -> Objects:
    return objects_at(url)


def as_lines(values: Iterable[Any]) -> Array:
    """JSON values as a column, one per line."""
    return as_bytes("".join(f"{json.dumps(value)}\n" for value in values).encode())


def as_bytes(text: bytes) -> Array:
    """Bytes as a column."""
    return np.frombuffer(text, dtype=np.uint8)
