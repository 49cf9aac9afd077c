"""Compute the local days of many instants at once."""

from typing import Any

from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections.arrays import np

DAY = 86_400_000_000


def local_days(instants: Any, zone: str) -> Any:
    """Return the day of each instant in a zone, in days since 1970.

    On most days a zone's offset does not change, so it is looked up only at the start and the end of each day.
    """
    if not len(instants):
        return np.zeros(0, dtype=np.int64)
    days, index = np.unique(instants // DAY, return_inverse=True)
    offsets = np.array([[_offset(day * DAY, zone), _offset(day * DAY + DAY - 1, zone)] for day in days.tolist()])
    local = (instants + offsets[index, 0]) // DAY
    for at in np.flatnonzero((offsets[:, 0] != offsets[:, 1])[index]).tolist():
        instant = int(instants[at])
        local[at] = (instant + _offset(instant, zone)) // DAY
    return local


def _offset(instant: int, zone: str) -> int:
    offset = local_time(instant, zone).utcoffset()
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * 1_000_000 + offset.microseconds
