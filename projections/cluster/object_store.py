"""Store objects in a folder, or in an object store that `fsspec` supports, and read and write the columns in them.
Objects are created atomically, and then never change.

In a folder, an object is written to a temporary file and linked to its name. An object store creates an object only if
the object does not exist; `create_nonce` checks that the store respects this condition.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.own_files import create_file, is_own_folder, open_own, refuse_other_accounts
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.column_files import ColumnFile, encode_columns, encode_lines, read_footer
from ratings_ledger.projections.facts.stored_columns import Bytes, ColumnPlace, StoredColumn

# the beginnings of the names of objects that are kept and forced to disk; all other objects are created again if they
# are lost
LASTING = ("segment-", "numbers-")


class Objects(Protocol):
    """The interface of a store for objects; another process can open it by its `url`.

    All methods raise `OSError`; reading a missing object raises `FileNotFoundError`.
    """

    url: str

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create an object; return False, without any change, if it exists."""

    def size(self, name: str) -> int | None:
        """Return the length of an object in bytes, or None if it does not exist."""

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return `length` bytes of an object from index `first`, or fewer at its end."""

    def names(self, prefix: str) -> list[str]:
        """Return the sorted names of the objects with a prefix."""

    def written_at(self, name: str) -> int | None:
        """Return the time at which an object was created, in seconds since 1970, or None if that is unknown."""

    def delete(self, name: str) -> None:
        """Delete an object if it exists."""


class Folder:
    """Objects as files of this account in a folder."""

    def __init__(self, path: Path) -> None:
        self._path, self.url = path, str(path)

    def refuse_other_accounts(self, bits: int) -> None:
        """Raise `StoreUnavailable` if the folder's mode gives other accounts any of these bits."""
        refuse_other_accounts(self._path, bits)

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create an object as a file; return False, without any change, if it exists."""
        path = self._path / name
        if path.exists():
            return False
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_own_folder(self._path):
            raise PermissionError(errno.EPERM, "not a folder of this account", str(self._path))
        with suppress(FileExistsError):
            with create_file(str(path), 0o600, forced=name.startswith(LASTING)) as file:
                for part in parts:
                    file.write(part)
            return True
        return False

    def size(self, name: str) -> int | None:
        """Return the length of an object's file, or None."""
        with suppress(FileNotFoundError):
            return (self._path / name).stat().st_size
        return None

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return bytes of an object's file."""
        with open_own(self._path / name, "rb") as file:
            return os.pread(file.fileno(), length, first)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with the prefix."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(name for name in os.listdir(self._path) if name.startswith(prefix))
        return []

    def written_at(self, name: str) -> int | None:
        """Return the time at which an object's file was written, or None."""
        with suppress(FileNotFoundError):
            return int((self._path / name).stat().st_mtime)
        return None

    def delete(self, name: str) -> None:
        """Delete an object's file."""
        with suppress(FileNotFoundError):
            (self._path / name).unlink()


class Bucket:
    """Objects below a URL that `fsspec` supports, such as s3://bucket/path."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with self._files():
            pass

    @contextmanager
    def _files(self) -> Iterator[tuple[Any, str]]:
        """Provide the file system and the path of the objects in it; convert all errors of its package to `OSError`."""
        from fsspec.core import url_to_fs

        # created for each use, because a forked process must not share a file system with its parent
        files, root = url_to_fs(self.url, use_listings_cache=False)
        try:
            yield files, root
        except (OSError, NotImplementedError, MemoryError):
            raise
        except Exception as problem:
            raise OSError(f"{type(problem).__name__}: {problem}") from None

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create an object; return False, without any change, if it exists and the store respects the condition."""
        content = b"".join(map(bytes, parts))
        with suppress(FileExistsError), self._files() as (files, root):
            files.pipe_file(f"{root}/{name}", content, mode="create")
            return True
        return False

    def size(self, name: str) -> int | None:
        """Return the length of an object, or None."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            return int(files.info(f"{root}/{name}")["size"])
        return None

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return bytes of an object."""
        if not length:
            return b""  # a store would return the whole object for an empty range
        with self._files() as (files, root):
            return files.cat_file(f"{root}/{name}", start=first, end=first + length)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with the prefix."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            names = [path.rpartition("/")[2] for path in files.ls(root, detail=False)]
            return sorted(name for name in names if name.startswith(prefix))
        return []

    def written_at(self, name: str) -> int | None:
        """Return the time at which an object was written, or None."""
        with suppress(FileNotFoundError, NotImplementedError), self._files() as (files, root):
            return int(files.modified(f"{root}/{name}").timestamp())
        return None

    def delete(self, name: str) -> None:
        """Delete an object."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            files.rm_file(f"{root}/{name}")


def open_object_store(url: str) -> Objects:
    """Open the object store at a URL or in a folder. Raises `StoreUnavailable` if no package supports it."""
    scheme, separator, path = url.partition("://")
    if not separator or scheme in ("file", "local"):
        return Folder(Path(path if separator else url).absolute())
    try:
        return Bucket(url)
    except (ImportError, ValueError) as problem:
        raise StoreUnavailable(f"{url} cannot be used for segments: {problem}", "file") from None


def describe_os_error(problem: OSError) -> str:
    """Describe an error of an object store in a few words."""
    return problem.strerror or str(problem) or type(problem).__name__


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
