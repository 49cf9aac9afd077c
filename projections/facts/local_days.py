"""Compute the local days of many instants at once."""

from typing import Any

from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections.arrays import np

DAY = 86_400_000_000


def local_days(instants: Any, zone: str) -> Any:
    """Return the day of each instant (an array of microseconds since 1970) in a zone, in days since 1970.

    On most days a zone's offset does not change, so it is looked up only at the start and the end of each day.
    """
    if not len(instants):
        return np.zeros(0, dtype=np.int64)
    days, index = np.unique(instants // DAY, return_inverse=True)
    day_bounds = [(day * DAY, day * DAY + DAY - 1) for day in days.tolist()]
    offsets = np.array([[_find_offset(instant, zone) for instant in bounds] for bounds in day_bounds])
    local = (instants + offsets[index, 0]) // DAY
    for position in np.flatnonzero((offsets[:, 0] != offsets[:, 1])[index]).tolist():
        instant = int(instants[position])
        local[position] = (instant + _find_offset(instant, zone)) // DAY
    return local


def _find_offset(instant: int, zone: str) -> int:
    """Return the offset of a zone from UTC at an instant, in microseconds."""
    offset = local_time(instant, zone).utcoffset()
    assert offset is not None
    return (offset.days * 86_400 + offset.seconds) * 1_000_000 + offset.microseconds
