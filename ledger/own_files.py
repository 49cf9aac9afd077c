"""Open, create and replace files of this account so that other accounts cannot replace them or see them half written.

Opening a file never follows a link, accepts only regular files of this account, and never waits for the other end of a
pipe.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from contextlib import contextmanager, suppress

from ratings_ledger.ledger.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:  # this module must load fast, because shell completion imports it
    from collections.abc import Iterator
    from typing import IO

# flags that refuse links, do not wait for a pipe, and close the file in new programs
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_own(path: str | os.PathLike[str], mode: str) -> IO[bytes]:
    """Open a file of this account: `rb`, `ab` (created if missing) or `wb` (created or emptied).

    Raises `OSError`.
    """
    flags = {"rb": os.O_RDONLY, "ab": os.O_RDWR | os.O_CREAT | os.O_APPEND, "wb": os.O_WRONLY | os.O_CREAT}[mode]
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "a file of another account", os.fspath(path))
        if mode == "wb":
            # O_TRUNC would have emptied the file before these checks
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


def find_cache_folder() -> str | None:
    """Return the folder of all caches, or None if the account has no home folder.

    The folder may be deleted at any time.
    """
    if cache_home := os.environ.get("XDG_CACHE_HOME"):
        return os.path.join(cache_home, "ratings-ledger")
    user_home = os.path.expanduser("~")
    return None if user_home == "~" else os.path.join(user_home, ".cache", "ratings-ledger")


def is_own_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder of this account, and not a link to one."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def refuse_other_accounts(path: str | os.PathLike[str], bits: int = 0o077) -> None:
    """Raise `StoreUnavailable` if a folder gives other accounts any of the rights in `bits`.

    An account that can write to files can also write their checksums, so checksums would prove nothing. A folder whose
    mode cannot be read is accepted.
    """
    try:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
    except OSError:  # the caller's next access reports it
        return
    if mode & bits:
        name = shlex.quote(os.fspath(path))
        right = "write into" if mode & bits & 0o022 else "open"
        raise StoreUnavailable(
            f"other accounts can {right} {name} (mode {mode:04o}), so its content is not trusted; run: "
            f"chmod {mode & ~bits:04o} {name} (or, if another account may have changed it, delete it: rm -r {name})",
            "file",
        )


@contextmanager
def name_file_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add this file's name to an `OSError` without a file name, such as an error while writing."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextmanager
def create_file(path: str, mode: int = 0o666, forced: bool = True) -> Iterator[IO[bytes]]:
    """Provide a new file. It gets its name once it is complete and on disk; a failure leaves nothing behind.

    Without `forced`, the file might not be on disk yet, so a power cut might damage it. The account's umask reduces
    `mode`. An existing file never changes: this raises `FileExistsError` if the name is taken at the beginning, or at
    the end. Raises `OSError` for other failures.
    """
    parent, name = os.path.split(path)
    if os.path.lexists(path) or name in ("", ".", ".."):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    try:
        folder = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _open_nameless(folder, mode) as (file, temporary_path):
                yield file
                file.flush()
                if forced:
                    os.fsync(file.fileno())
                _give_name(folder, temporary_path, name)
            with suppress(OSError):  # some file systems cannot force a folder to disk; the file is complete anyway
                if forced:
                    os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.filename != parent:
            error.filename, error.filename2 = path, None
        raise


def replace_file(path: str, content: bytes, mode: int = 0o600) -> None:
    """Replace the content of a file of this account, or create the file. Readers see either the old or the new content.

    The account's umask reduces `mode`. Raises `OSError`.
    """
    temporary_path = f"{path}.{_make_random_name()}.part"
    try:
        with create_file(temporary_path, mode) as file:
            file.write(content)
        os.replace(temporary_path, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary_path)
        if isinstance(error, OSError) and error.filename == temporary_path:
            error.filename, error.filename2 = path, None
        raise


def _make_random_name() -> str:
    return os.urandom(8).hex()


@contextmanager
def _open_nameless(folder: int, mode: int) -> Iterator[tuple[IO[bytes], str]]:
    """Provide a new file in a folder, and the path from which `_give_name` can link it.

    The file has no name, so it vanishes with the process. On a system without nameless files it has a random name.
    """
    temporary_name = f".ratings-{_make_random_name()}.part"
    descriptor = None
    if os.path.isdir("/proc/self/fd") and (unnamed := getattr(os, "O_TMPFILE", 0)):
        with suppress(OSError):  # the file system has no nameless files; the code below reports any other error
            descriptor = os.open(".", os.O_WRONLY | unnamed | os.O_CLOEXEC, mode, dir_fd=folder)
    if descriptor is not None:
        with os.fdopen(descriptor, "wb") as file:
            yield file, f"/proc/self/fd/{descriptor}"
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS
    with os.fdopen(os.open(temporary_name, flags, mode, dir_fd=folder), "wb") as file:
        try:
            yield file, temporary_name
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary_name, dir_fd=folder)


def _give_name(folder: int, temporary_path: str, name: str) -> None:
    """Give a complete file its name. Raises `FileExistsError` if the name is taken."""
    try:
        # without both folder arguments, Python would not follow the link in /proc
        os.link(temporary_path, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        has_no_links = error.errno in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
        if not has_no_links or temporary_path.startswith("/"):
            raise
        # the file system has no hard links
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        os.rename(temporary_path, name, src_dir_fd=folder, dst_dir_fd=folder)
