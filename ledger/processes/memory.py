"""Memory: holding back the cyclic garbage collector where very many objects are made and none of them is in a cycle;
and giving freed memory back."""

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OBJECTS = 100_000
# what two threads need to begin: their stacks, and room for the interpreter
THREADS_BYTES = 32 << 20


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Let it run only after many more objects are made; otherwise an import spends a fifth of its time on it."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def trim_heap() -> None:
    """Give freed memory, which the C library of Linux may keep, back to the system."""
    import ctypes

    with suppress(AttributeError, OSError):  # other libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def is_memory_limited() -> bool:
    """Tell whether this process has a limit of memory, as `ulimit -v` sets it; then it does without threads where it
    can.

    Where no byte is left, a thread that begins or ends with an error can wait for ever within CPython 3.11, and all
    others with it.
    """
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def refuse_threads_without_memory() -> None:
    """Raise `MemoryError` where a thread might begin and find no memory: whoever starts it would wait for ever."""
    if is_memory_limited():
        bytearray(THREADS_BYTES)  # never touched, and gone at once
