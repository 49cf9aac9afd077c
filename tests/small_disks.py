"""Mount small file systems for tests of full disks."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mount_small_disk(folder: Path | str, size: int | str, *options: str) -> Iterator[None]:
    """Mount a file system of a size, in bytes or such as `24k`, on a folder; skip the test if that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        yield
    finally:
        # lazily, because a rebuild keeps its file open as long as its process lives
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize_disk(folder: Path | str, size: int | str) -> None:
    """Change the size of a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
