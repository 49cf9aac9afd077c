"""Read the system's clock; no other module does."""

import time
from collections.abc import Callable

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
