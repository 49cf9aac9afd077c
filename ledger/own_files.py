"""Files of this account: where its caches are, and files that nobody can replace or find half written.

No link is followed, only regular files of this account are opened, and no open waits for the other end of a pipe.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from contextlib import contextmanager, suppress

from ratings_ledger.ledger.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:  # a shell waits for who reads names
    from collections.abc import Iterator
    from typing import IO

_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_own(path: str | os.PathLike[str], mode: str) -> IO[bytes]:
    """Return a file of this account, for `rb`, `ab` (created if need be) or `wb` (created or emptied). Raises
    `OSError`.
    """
    flags = {"rb": os.O_RDONLY, "ab": os.O_RDWR | os.O_CREAT | os.O_APPEND, "wb": os.O_WRONLY | os.O_CREAT}[mode]
    descriptor = os.open(path, flags | _SAFE, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "a file of another account", os.fspath(path))
        if mode == "wb":
            # not with O_TRUNC, which would have emptied whatever it was
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


def cache_folder() -> str | None:
    """Return the folder of all caches, which may be deleted at any time; None if the account has no home."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return os.path.join(home, "ratings-ledger")
    own = os.path.expanduser("~")
    return None if own == "~" else os.path.join(own, ".cache", "ratings-ledger")


def is_own_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder of this account, and not a link to one."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def refuse_other_accounts(path: str | os.PathLike[str], bits: int = 0o077) -> None:
    """Raise `StoreUnavailable` if a folder's mode gives other accounts any of these bits, as far as it can be read.

    Where an account can write, checksums prove nothing: it can write these as well.
    """
    try:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
    except OSError:  # whoever goes on to use it says so
        return
    if mode & bits:
        name = shlex.quote(os.fspath(path))
        raise StoreUnavailable(
            f"other accounts can write into {name} (mode {mode:04o}), so nothing is stored from what is in it; type: "
            f"chmod {mode & ~bits:04o} {name} (if one may have done so, delete it instead, and it is made again: "
            f"rm -r {name})", "file",
        )  # fmt: skip


@contextmanager
def name_file_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes an `OSError` that names no file, as those of writing do, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextmanager
def create_file(path: str, mode: int = 0o666, forced: bool = True) -> Iterator[IO[bytes]]:
    """Provide a file that gets its name once it is whole and on disk; until then, and after a failure, there is
    nothing.

    Unless it is `forced` to the disk, a power cut may damage it. `mode` is the file's, less what the account's umask
    takes away. No existing file is touched. Raises `OSError`; `FileExistsError` if anything has the name, before the
    first byte is written or at the end.
    """
    parent, name = os.path.split(path)
    if os.path.lexists(path) or name in ("", ".", ".."):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    try:
        folder = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _nameless(folder, mode) as (file, beside):
                yield file
                file.flush()
                if forced:
                    os.fsync(file.fileno())
                _give_name(folder, beside, name)
            with suppress(OSError):  # some file systems cannot; the file is there anyway
                if forced:
                    os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.filename != parent:
            error.filename, error.filename2 = path, None
        raise


def replace_file(path: str, content: bytes, mode: int = 0o600) -> None:
    """Replace the content of a file of this account, or create it: readers see either the old content or the new.

    `mode` is the file's, less what the account's umask takes away. Raises `OSError`.
    """
    beside = f"{path}.{_random()}.part"
    try:
        with create_file(beside, mode) as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename == beside:
            error.filename, error.filename2 = path, None
        raise


def _random() -> str:
    return os.urandom(8).hex()


@contextmanager
def _nameless(folder: int, mode: int) -> Iterator[tuple[IO[bytes], str]]:
    """Provide a new file in a folder, and where it can be found: one without a name, which vanishes with the process,
    or one with a name nobody knows where the system has no nameless files.
    """
    beside = f".ratings-{_random()}.part"
    descriptor = None
    if os.path.isdir("/proc/self/fd") and (unnamed := getattr(os, "O_TMPFILE", 0)):
        with suppress(OSError):  # the file system cannot; if it is something else, the second way will say so
            descriptor = os.open(".", os.O_WRONLY | unnamed | os.O_CLOEXEC, mode, dir_fd=folder)
    if descriptor is not None:
        with os.fdopen(descriptor, "wb") as file:
            yield file, f"/proc/self/fd/{descriptor}"
        return
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, mode, dir_fd=folder), "wb") as file:
        try:
            yield file, beside
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)


def _give_name(folder: int, beside: str, name: str) -> None:
    """Give a file its name. Raises `FileExistsError` if the name is taken."""
    try:
        # the folder is passed twice, or the link in /proc would not be followed
        os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK) or beside.startswith("/"):
            raise
        # a file system without links
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
