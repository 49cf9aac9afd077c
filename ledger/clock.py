"""The only module that asks what time it is."""

import time
from collections.abc import Callable

# anything that tells the time in place of `now`, mostly in tests
Clock = Callable[[], int]


def now() -> int:
    """The current instant in microseconds since 1970-01-01T00:00:00Z."""
    return time.time_ns() // 1_000
