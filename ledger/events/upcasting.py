"""Old forms of events, read as if they had been written today.

A record is never rewritten. When a type gets a new schema version, one pure step from the previous version goes into
`STEPS`, and every reader sees the newest form; this module's test keeps the chain complete.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ledger.rejections import Refused, shown

Data = dict[str, Any]
Steps = Mapping[tuple[str, int], Callable[[Data], Data]]

STEPS: Steps = {}


def upcast(type_name: str, version: object, current: int, data: Data, steps: Steps = STEPS) -> Data:
    """`data`, written at `version`, in the form of version `current`. Raises `Refused` for a version unknown here."""
    if version == current and version is not True:
        return data
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < current:
        raise Refused(
            "unknown-schema-version",
            f"{type_name} version {shown(version)} is not known here (1 to {current}); a newer program wrote it",
        )
    for step in range(version, current):
        data = steps[type_name, step](data)
    return data
