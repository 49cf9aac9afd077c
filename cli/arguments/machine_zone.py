"""Find the time zone that this machine is set to."""

import os
from contextlib import suppress
from pathlib import Path

from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.rejections import Refused

LOCALTIME, TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
ZONES = "zoneinfo/"
# the defaults of a machine whose zone was never set
UNSET = frozenset({"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


def find_machine_zone() -> str | None:
    """Return the name of the zone that is set for this account (TZ) or machine, or None.

    UTC counts only if TZ sets it, since machines have it by default.
    """
    if (name := os.environ.get("TZ", "").removeprefix(":")) and _is_zone(name):
        return name
    names = []
    with suppress(OSError):
        names.append(str(LOCALTIME.readlink()).partition(ZONES)[2])
    with suppress(OSError, UnicodeDecodeError):
        names.append(TIMEZONE.read_text(encoding="utf-8").strip())
    return next((name for name in names if name not in UNSET and _is_zone(name)), None)


def _is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except Refused:
        return False
    return True
