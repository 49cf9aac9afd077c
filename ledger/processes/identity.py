"""Name processes so that another process can check later whether the named process is still running.

    db1 4711 8834112        host, process id, and start time in ticks since boot, if the system reports it

Process ids are reused. Together with the start time, an id identifies one process until the next boot.
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
    return f"{_read_host_name()} {os.getpid()} {_read_start_ticks(os.getpid()) or ''}"


def is_process_running(process: str, active_at: int, now: int) -> bool:
    """Tell whether the process of this name, which was active at `active_at`, is still running.

    Both times are in microseconds. A process on another host counts as running for a day.
    """
    match = _PROCESS.fullmatch(process)
    if match is None:
        return False
    host, pid, start_ticks = match.groups()
    if host != _read_host_name():
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


def _read_host_name() -> str:
    return re.sub(r"\s", "", platform.node())[:255] or "localhost"


def _read_start_ticks(pid: int) -> str | None:
    """Return the start time of a process in ticks since boot; None if it has ended or the system reports no time."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # the fields follow the name, which may hold any character
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" or len(fields) < 19 else fields[18]
