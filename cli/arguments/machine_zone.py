"""Find the time zone of this machine."""

import os
from contextlib import suppress
from pathlib import Path

from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.rejections import Refused

LOCALTIME, TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
ZONE_FOLDER = "zoneinfo/"
# the names that machines have if nobody set their zone
UNSET = frozenset({"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


def find_machine_zone() -> str | None:
    """Return the name of the zone of this account (TZ) or machine, or None.

    UTC is ignored unless TZ sets it, because it is the default of machines.
    """
    if (name := os.environ.get("TZ", "").removeprefix(":")) and _is_zone(name):
        return name
    names = []
    with suppress(OSError):
        names.append(str(LOCALTIME.readlink()).partition(ZONE_FOLDER)[2])
    with suppress(OSError, UnicodeDecodeError):
        names.append(TIMEZONE.read_text(encoding="utf-8").strip())
    return next((name for name in names if name not in UNSET and _is_zone(name)), None)


def _is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except Refused:
        return False
    return True
