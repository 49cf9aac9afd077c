"""Names of processes, by which another process can tell later whether one is still running.

    db1 4711 8834112        host, process id, and start time in the system's ticks, if the system tells it

Process ids are reused; together with a start time they identify one process for ever.
"""

import os
import platform
import re
from pathlib import Path

# a process on another machine or in another container cannot be inspected: it counts as running for this long
UNSEEN_MICROSECONDS = 24 * 3_600 * 1_000_000
_PROCESS = re.compile(r"(\S{1,255}) (\d{1,10}) (\d{0,20})", re.ASCII)


def name_this_process() -> str:
    """Return this process's name: host, process id and start time."""
    return f"{_host_name()} {os.getpid()} {_start_ticks(os.getpid()) or ''}"


def is_process_running(process: str, started_at: int, now: int) -> bool:
    """Tell whether the process of that name, which was active at `started_at`, is still running.

    Times are in microseconds.
    """
    match = _PROCESS.fullmatch(process)
    if match is None:
        return False
    host, number, started = match.groups()
    if host != _host_name():
        return abs(now - started_at) < UNSEEN_MICROSECONDS
    if started:
        return _start_ticks(int(number)) == started
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another account
        return True
    return True


def _host_name() -> str:
    return re.sub(r"\s", "", platform.node())[:255] or "localhost"


def _start_ticks(number: int) -> str | None:
    """Return when a process was started, in ticks since boot; None if it is gone, or the system does not tell."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # the fields follow the name, which may hold any character
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" or len(fields) < 19 else fields[18]
