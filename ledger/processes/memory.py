"""Memory: the collector of cyclic garbage, held back where very many objects are made and none of them is in a cycle;
and what is free again, given back."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OBJECTS = 100_000


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Let it run only when so many more objects are there; else an import spends a fifth of its time on it."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def give_back() -> None:
    """Let the system have the memory that is free again, which the C library of Linux may keep."""
    import ctypes

    with suppress(AttributeError, OSError):  # other libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)
