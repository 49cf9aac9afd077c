"""The only module that asks what time it is."""

import time
from collections.abc import Callable

# a replacement for `now`, mostly in tests
Clock = Callable[[], int]
# how far the clocks of two sound machines may differ, in microseconds
TOLERANCE = 5 * 60 * 1_000_000


def now() -> int:
    """Return the current instant in microseconds since 1970-01-01T00:00:00Z."""
    return time.time_ns() // 1_000


def is_ahead(instant: int, at: int) -> bool:
    """Tell whether an instant is so far after `at` that one of the two clocks was wrong."""
    return instant - at > TOLERANCE
