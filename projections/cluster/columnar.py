"""Read and write objects that hold columns, in a store that all workers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.projections import arrays
from ratings_ledger.projections.cluster.object_store import Objects, describe_os_error, open_object_store
from ratings_ledger.projections.facts.column_files import ColumnFile, encode_columns, encode_lines, read_footer
from ratings_ledger.projections.facts.stored_columns import Bytes, ColumnPlace, StoredColumn

OPENED_MAX = 4096  # objects
# the type codes of columns, by the type codes of numpy arrays
COLUMN_CODES = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
Array = Any  # a numpy array


class DamagedObject(Exception):
    """The object `name` is missing or damaged; `problem` says how, as in `is missing`."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return DamagedObject, (self.name, self.problem)


class _ObjectBytes:
    """The bytes of an object, read on demand."""

    def __init__(self, objects: Objects, name: str) -> None:
        """Look up the size of the object. Raises `DamagedObject`."""
        self._objects, self._name = objects, name
        size = objects.size(name)
        if size is None:
            raise self.make_damage_error("is missing")
        self.size: int = size

    def column(self, name: str, place: ColumnPlace) -> StoredColumn:
        """Return a column."""
        return StoredColumn(self, name, place)

    def read(self, first: int, length: int) -> Bytes:
        """Return at most `length` bytes from index `first`. Raises `DamagedObject`, `StoreUnavailable`."""
        try:
            return self._objects.read(self._name, first, length)
        except FileNotFoundError:
            raise self.make_damage_error("is missing") from None
        except OSError as problem:
            # not a `DamagedObject`, because a damaged object would be deleted and created again
            raise StoreUnavailable(
                f"{self._name} in {self._objects.url}: {describe_os_error(problem)}", "file"
            ) from None

    def view(self, first: int, length: int) -> memoryview:
        """Return exactly `length` bytes from index `first`, in memory. Raises `DamagedObject`."""
        content = memoryview(self.read(first, length))
        if len(content) < length:
            raise self.make_damage_error("is too short")
        return content

    def make_damage_error(self, why: str, column: str = "", only_this_file: bool = True) -> DamagedObject:
        """Build the error for a damaged object."""
        return DamagedObject(self._name, f"{why} ({column})" if column else why)


class OpenedObject(ColumnFile):
    """The columns of an object; columns that were read stay in memory."""

    def __init__(self, objects: Objects, name: str) -> None:
        """Read the footer of the object. Raises `DamagedObject`."""
        source = _ObjectBytes(objects, name)
        super().__init__(source, name, read_footer(source))

    def column(self, name: str) -> Array:
        """Check a column and return it as a numpy array. Raises `DamagedObject`."""
        return arrays.as_numpy(self.columns[name].read_whole())


@lru_cache(OPENED_MAX)
def open_object(url: str, name: str) -> OpenedObject:
    """Open an object. It is cached, because objects never change. Raises `DamagedObject`."""
    return OpenedObject(_open_cached_store(url), name)


@lru_cache(8)
def _open_cached_store(url: str) -> Objects:
    return open_object_store(url)


def encode_object(columns: Mapping[str, Array | bytes | list[Any]], about: Mapping[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of an object with these columns; lists become lines of JSON.

    `about` holds data about the whole object; a member `name` in it must be the object's name.
    """
    return encode_columns({name: _encode_column(column) for name, column in columns.items()}, about)


def _encode_column(column: Array | bytes | list[Any]) -> tuple[str, list[Any]]:
    if isinstance(column, list):
        column = encode_lines(column)
    return "B" if isinstance(column, bytes) else COLUMN_CODES[column.dtype.str[1:]], [column]
