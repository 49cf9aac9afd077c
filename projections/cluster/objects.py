"""Places for objects: a folder, or an object store that `fsspec` reaches. An object appears whole or not at all, and is
never changed.

A folder's object is written beside its place and linked to its name; a store is asked to create it only if it is not
there, and `prove` tries whether it keeps to that.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.own_files import create_file, is_own_folder, open_own, refuse_other_accounts
from ratings_ledger.projections.facts.stored_columns import Bytes

# objects that are of use for ever, and forced to the disk; what others lose is noticed, and made again
LASTING = ("segment-", "numbers-")


class Objects(Protocol):
    """What the program needs of a place for objects; `url` leads another process there.

    Everything raises `OSError`; what is not there is a `FileNotFoundError`.
    """

    url: str

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create an object; False, and nothing is done, if it is there."""

    def size(self, name: str) -> int | None:
        """Return its length in bytes, or None if it is not there."""

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return some of its bytes; fewer where it ends."""

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with the prefix, in order."""

    def written_at(self, name: str) -> int | None:
        """Return when it was created, in seconds since 1970, or None if it is not there or the place does not know."""

    def delete(self, name: str) -> None:
        """Delete an object if it is there."""


class Folder:
    """Objects as files of this account in a folder."""

    def __init__(self, path: Path) -> None:
        self._path, self.url = path, str(path)

    def refuse_other_accounts(self, bits: int) -> None:
        """Raise `StoreUnavailable` if its mode gives other accounts any of these bits."""
        refuse_other_accounts(self._path, bits)

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create it as a file."""
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
        """Return its length, or None."""
        with suppress(FileNotFoundError):
            return (self._path / name).stat().st_size
        return None

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return some of its bytes."""
        with open_own(self._path / name, "rb") as file:
            return os.pread(file.fileno(), length, first)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with the prefix."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(name for name in os.listdir(self._path) if name.startswith(prefix))
        return []

    def written_at(self, name: str) -> int | None:
        """Return when its file was written, or None."""
        with suppress(FileNotFoundError):
            return int((self._path / name).stat().st_mtime)
        return None

    def delete(self, name: str) -> None:
        """Delete its file."""
        with suppress(FileNotFoundError):
            (self._path / name).unlink()


class Bucket:
    """Objects below an address that `fsspec` knows, such as s3://bucket/path; it does all of the work."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with self._files():
            pass

    @contextmanager
    def _files(self) -> Iterator[tuple[Any, str]]:
        """Provide what talks to the store, and where in it the objects are; all that a store's package raises is an
        `OSError`.
        """
        from fsspec.core import url_to_fs

        # a forked process gets its own
        files, root = url_to_fs(self.url, use_listings_cache=False)
        try:
            yield files, root
        except (OSError, NotImplementedError, MemoryError):
            raise
        except Exception as problem:
            raise OSError(f"{type(problem).__name__}: {problem}") from None

    def create(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Create it, if the store keeps to the condition."""
        content = b"".join(map(bytes, parts))
        with suppress(FileExistsError), self._files() as (files, root):
            files.pipe_file(f"{root}/{name}", content, mode="create")
            return True
        return False

    def size(self, name: str) -> int | None:
        """Return its length, or None."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            return int(files.info(f"{root}/{name}")["size"])
        return None

    def read(self, name: str, first: int, length: int) -> Bytes:
        """Return some of its bytes."""
        if not length:
            return b""  # a store takes a range without bytes for everything
        with self._files() as (files, root):
            return files.cat_file(f"{root}/{name}", start=first, end=first + length)

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with the prefix."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            names = [path.rpartition("/")[2] for path in files.ls(root, detail=False)]
            return sorted(name for name in names if name.startswith(prefix))
        return []

    def written_at(self, name: str) -> int | None:
        """Return when it was modified, or None."""
        with suppress(FileNotFoundError, NotImplementedError), self._files() as (files, root):
            return int(files.modified(f"{root}/{name}").timestamp())
        return None

    def delete(self, name: str) -> None:
        """Delete it."""
        with suppress(FileNotFoundError), self._files() as (files, root):
            files.rm_file(f"{root}/{name}")


def objects_at(url: str) -> Objects:
    """Return the objects at a URL or in a folder. Raises `StoreUnavailable` if nothing here knows such URLs."""
    scheme, found, rest = url.partition("://")
    if not found or scheme in ("file", "local"):
        return Folder(Path(rest if found else url).absolute())
    try:
        return Bucket(url)
    except (ImportError, ValueError) as problem:
        raise StoreUnavailable(f"{url} cannot be used for segments: {problem}", "file") from None


def why(problem: OSError) -> str:
    """Return what an error about an object says."""
    return problem.strerror or str(problem) or type(problem).__name__
