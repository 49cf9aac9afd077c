"""Process names that let another process check later whether the named one is still running.

    db1 4711 8834112        host, process id, and start time in ticks since boot, if the system reports it

Process ids are reused; together with the start time they identify one process until the next boot.
"""

import os
import platform
import re
from pathlib import Path

# a process on another machine or in another container cannot be inspected: it counts as running for this long
REMOTE_TIMEOUT_MICROSECONDS = 24 * 3_600 * 1_000_000
_PROCESS = re.compile(r"(\S{1,255}) (\d{1,10}) (\d{0,20})", re.ASCII)


def name_this_process() -> str:
    """Return this process's name: host, process id and start time."""
    return f"{_host_name()} {os.getpid()} {_read_start_ticks(os.getpid()) or ''}"


def is_process_running(process: str, active_at: int, now: int) -> bool:
    """Return whether the process of that name, which was active at `active_at`, is still running.

    Both times are in microseconds.
    """
    match = _PROCESS.fullmatch(process)
    if match is None:
        return False
    host, pid, start_ticks = match.groups()
    if host != _host_name():
        return abs(now - active_at) < REMOTE_TIMEOUT_MICROSECONDS
    if start_ticks:
        return _read_start_ticks(int(pid)) == start_ticks
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another account, so it exists
        return True
    return True


def _host_name() -> str:
    return re.sub(r"\s", "", platform.node())[:255] or "localhost"


def _read_start_ticks(pid: int) -> str | None:
    """Return when a process was started, in ticks since boot; None if it is gone or the system does not report it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # the fields follow the name, which may hold any character
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" or len(fields) < 19 else fields[18]
