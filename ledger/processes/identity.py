"""Which process this is, so that another one can tell later whether it is still there.

    db1 4711 8834112        host, process id, and where the system says so when it was started (a number of its own)

Process ids are given again; with the time of its start one means the same process for ever.
"""

import os
import platform
import re
from pathlib import Path

# a process of another machine, or of another container, cannot be looked at: so long it counts as being there
UNSEEN_MICROSECONDS = 24 * 3_600 * 1_000_000
_PROCESS = re.compile(r"(\S{1,255}) (\d{1,10}) (\d{0,20})", re.ASCII)


def this_process() -> str:
    """The name of this process."""
    return f"{_host()} {os.getpid()} {_started(os.getpid()) or ''}"


def is_there(process: str, started_at: int, now: int) -> bool:
    """Whether a process of that name, which did something at `started_at`, is still there; instants in microseconds."""
    match = _PROCESS.fullmatch(process)
    if match is None:
        return False
    host, number, started = match.groups()
    if host != _host():
        return now - started_at < UNSEEN_MICROSECONDS
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
    """When a process was started, in ticks since the machine was; None if it is gone, or this system does not tell."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # behind the name, which may hold anything
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" or len(fields) < 19 else fields[18]
