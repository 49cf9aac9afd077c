"""Files of columns as objects in a place that workers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.projections import arrays
from ratings_ledger.projections.cluster.objects import Objects, objects_at, why
from ratings_ledger.projections.facts.column_files import ColumnFile, encode_columns, encode_lines, read_footer
from ratings_ledger.projections.facts.stored_columns import Bytes, ColumnPlace, StoredColumn

OPENED = 4096
CODES = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}  # of numpy, and of columns
Array = Any  # of numpy


class DamagedObject(Exception):
    """An object is not as it was written, or not there; `name` is its name."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return DamagedObject, (self.name, self.problem)


class _ObjectBytes:
    """The bytes of an object."""

    def __init__(self, objects: Objects, name: str) -> None:
        """Raises `DamagedObject`."""
        self._objects, self._name = objects, name
        size = objects.size(name)
        if size is None:
            raise self.damaged("is missing")
        self.size: int = size

    def column(self, name: str, place: ColumnPlace) -> StoredColumn:
        """Return a column."""
        return StoredColumn(self, name, place)

    def read(self, first: int, length: int) -> Bytes:
        """Return some bytes. Raises `DamagedObject`, `StoreUnavailable`."""
        try:
            return self._objects.read(self._name, first, length)
        except FileNotFoundError:
            raise self.damaged("is missing") from None
        except OSError as problem:
            # a store that does not answer is no reason to delete and make again what it has
            raise StoreUnavailable(f"{self._name} in {self._objects.url}: {why(problem)}", "file") from None

    def view(self, first: int, length: int) -> memoryview:
        """Return the same, read at once."""
        content = memoryview(self.read(first, length))
        if len(content) < length:
            raise self.damaged("is too short")
        return content

    def damaged(self, why: str, column: str = "", alone: bool = True) -> DamagedObject:
        """Return the error that it is not as it was written."""
        return DamagedObject(self._name, f"{why} ({column})" if column else why)


class OpenedObject(ColumnFile):
    """An object's columns; those that were read stay in memory."""

    def __init__(self, objects: Objects, name: str) -> None:
        """Raises `DamagedObject`."""
        source = _ObjectBytes(objects, name)
        super().__init__(source, name, read_footer(source))

    def column(self, name: str) -> Array:
        """Return a column, checked. Raises `DamagedObject`."""
        return arrays.as_numpy(self.columns[name].whole())


@lru_cache(OPENED)
def object_at(url: str, name: str) -> OpenedObject:
    """Open an object; objects never change, so opening it again gives the same. Raises `DamagedObject`."""
    return OpenedObject(_place(url), name)


@lru_cache(8)
def _place(url: str) -> Objects:
    return objects_at(url)


def object_bytes(columns: Mapping[str, Array | bytes | list[Any]], about: Mapping[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of an object; lists become lines of JSON. What `about` says of a `name` is the object's."""
    return encode_columns({name: _encode_column(column) for name, column in columns.items()}, about)


def _encode_column(column: Array | bytes | list[Any]) -> tuple[str, list[Any]]:
    if isinstance(column, list):
        column = encode_lines(column)
    return "B" if isinstance(column, bytes) else CODES[column.dtype.str[1:]], [column]
