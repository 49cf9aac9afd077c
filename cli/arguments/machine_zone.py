"""Find the time zone of this machine."""

import os
from contextlib import suppress
from pathlib import Path

from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.rejections import Refused

LOCALTIME, TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
ZONE_FOLDER = "zoneinfo/"
# the zones of machines on which no zone was set
DEFAULT_ZONES = frozenset({"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


def find_machine_zone() -> str | None:
    """Return the name of the time zone that TZ or this machine sets, or None.

    UTC counts only if TZ sets it, because machines have it by default.
    """
    if (name := os.environ.get("TZ", "").removeprefix(":")) and _is_zone(name):
        return name
    names = []
    with suppress(OSError):
        names.append(str(LOCALTIME.readlink()).partition(ZONE_FOLDER)[2])
    with suppress(OSError, UnicodeDecodeError):
        names.append(TIMEZONE.read_text(encoding="utf-8").strip())
    return next((name for name in names if name not in DEFAULT_ZONES and _is_zone(name)), None)


def _is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except Refused:
        return False
    return True
