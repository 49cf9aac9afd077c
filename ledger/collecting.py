"""The collector of cyclic garbage, held back where very many objects are made and none of them is in a cycle."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
