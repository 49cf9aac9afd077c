"""Read the system's clock, which no other module does, and choose the times of records."""

import time
from collections.abc import Callable

from ratings_ledger.ledger.errors import ClockBehind
from ratings_ledger.ledger.events.canonical import format_instant

# a function such as `now`; tests pass other ones
Clock = Callable[[], int]
# how far the clocks of two machines may differ before one of them counts as wrong, in microseconds
TOLERANCE = 5 * 60 * 1_000_000


def now() -> int:
    """Return the current instant in microseconds since 1970-01-01T00:00:00Z."""
    return time.time_ns() // 1_000


def is_ahead(instant: int, at: int) -> bool:
    """Tell whether an instant is so far after `at` that one of the clocks was wrong. Both are in microseconds."""
    return instant - at > TOLERANCE


def choose_recorded_at(previous: int, clock: Clock, ignore_clock: bool) -> int:
    """Return the time for the next record, in microseconds: now, or the time of the `previous` record if that is later.

    Raises `ClockBehind` if the previous record's time is much later, except with `ignore_clock`.
    """
    this_time = clock()
    if is_ahead(previous, this_time) and not ignore_clock:
        raise ClockBehind(
            f"the last event was recorded at {format_instant(previous)}, but this machine's clock says "
            f"{format_instant(this_time)}; set the clock, or pass --ignore-clock to record with the last event's time"
        )
    return max(this_time, previous)
