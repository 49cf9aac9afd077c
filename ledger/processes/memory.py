"""Collect garbage less often, return freed memory to the system, and respect memory limits."""

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# how many new objects start a collection while many objects are created; Python's default is 700 to 2,000
GC_THRESHOLD = 100_000
# the memory that two threads need to start: their stacks, and room for the interpreter
THREADS_BYTES = 32 << 20


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Run the cyclic garbage collector less often while the block runs; it would take a fifth of an import's time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], GC_THRESHOLD), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def trim_heap() -> None:
    """Return freed memory that glibc still holds to the system."""
    import ctypes

    with suppress(AttributeError, OSError):  # other C libraries have no `malloc_trim`
        ctypes.CDLL(None).malloc_trim(0)


def is_memory_limited() -> bool:
    """Tell whether this process has a memory limit (`ulimit -v`). Callers then avoid threads.

    Without memory, a thread that starts or fails can block for ever within CPython 3.11, and with it all other threads.
    """
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def refuse_threads_without_memory() -> None:
    """Raise `MemoryError` if there is too little memory for new threads, which might otherwise block for ever."""
    require_memory(THREADS_BYTES)


def require_memory(size: int) -> None:
    """Raise `MemoryError` if the limit of this process leaves fewer bytes than `size`."""
    if is_memory_limited():
        bytearray(size)  # freed immediately
