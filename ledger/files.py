"""Files that this program makes for itself, opened so that nobody can put something else in their place.

No link is followed, nothing but a regular file of this account is opened, and no open waits for a pipe's other end.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO

_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_own(path: Path, mode: str) -> IO[bytes]:
    """A file of this account, for `rb`, `ab` (made if need be) or `wb` (made or emptied). Raises `OSError`."""
    flags = {"rb": os.O_RDONLY, "ab": os.O_RDWR | os.O_CREAT | os.O_APPEND, "wb": os.O_WRONLY | os.O_CREAT}[mode]
    descriptor = os.open(path, flags | _SAFE, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "a file of another account")
        if mode == "wb":
            # not with O_TRUNC, which would have emptied whatever it was
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


def is_own_folder(path: Path) -> bool:
    """Whether there is a folder of this account at a path, and no link to one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
