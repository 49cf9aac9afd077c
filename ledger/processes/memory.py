"""Memory: fewer garbage collections while many objects are created, return of freed memory, and memory limits."""

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OBJECTS = 100_000
# what two threads need to start: their stacks, and room for the interpreter
THREADS_BYTES = 32 << 20


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Run the cyclic garbage collector less often; it would otherwise take a fifth of the time of an import."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], OBJECTS), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def trim_heap() -> None:
    """Return freed memory to the system, which the C library of Linux may keep."""
    import ctypes

    with suppress(AttributeError, OSError):  # other libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def is_memory_limited() -> bool:
    """Tell whether this process has a limit of memory, as `ulimit -v` sets it; then it avoids threads.

    With no memory left, a thread that starts or fails can block for ever within CPython 3.11, and all others with it.
    """
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def refuse_threads_without_memory() -> None:
    """Raise `MemoryError` if a new thread might find no memory; starting it would block for ever."""
    require_memory(THREADS_BYTES)


def require_memory(size: int) -> None:
    """Raise `MemoryError` if the limit of this process leaves fewer bytes than `size`."""
    if is_memory_limited():
        bytearray(size)  # freed immediately
