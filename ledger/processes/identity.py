"""Which process this is, so that another can tell later whether it is still there.

    db1 4711 8834112        host, process id, and when it was started, where the system says so (in its own ticks)

Process ids are reused; together with a start time they identify one process for ever.
"""

import os
import platform
import re
from pathlib import Path

# a process on another machine or in another container cannot be looked at: it counts as being there for this long
UNSEEN_MICROSECONDS = 24 * 3_600 * 1_000_000
_PROCESS = re.compile(r"(\S{1,255}) (\d{1,10}) (\d{0,20})", re.ASCII)


def name_this_process() -> str:
    """This process's name."""
    return f"{_host()} {os.getpid()} {_started(os.getpid()) or ''}"


def is_process_running(process: str, started_at: int, now: int) -> bool:
    """Tell whether the process of that name, which did something at `started_at`, is still there; times in
    microseconds.
    """
    match = _PROCESS.fullmatch(process)
    if match is None:
        return False
    host, number, started = match.groups()
    if host != _host():
        return abs(now - started_at) < UNSEEN_MICROSECONDS
    if started:
        return _started(int(number)) == started
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another account
        return True
    return True


def _host() -> str:
    return re.sub(r"\s", "", platform.node())[:255] or "localhost"


def _started(number: int) -> str | None:
    """Return when a process was started, in ticks since boot; None if it is gone, or this system does not say."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # after the name, which may hold anything
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" or len(fields) < 19 else fields[18]
