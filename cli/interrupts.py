"""Ctrl-C within commands that may be killed at any moment: it ends them soon, whatever they are waiting for."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
# how long an orderly exit may take: waiting for a lock of the store takes up to 30 s and cannot be interrupted, and
# freeing the memory of a long log piece by piece takes time, too
GRACE_SECONDS = 0.8
SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def ending_soon(last_words: Callable[[], str]) -> Iterator[None]:
    """After Ctrl-C the process ends within two seconds with code 130, by force if it does not exit in order.

    Raises `KeyboardInterrupt` after Ctrl-C, even if a driver turned it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    interrupted, left = threading.Event(), threading.Event()
    watch = threading.Thread(target=_watch, args=(reading, interrupted, left, last_words), daemon=True)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        left.set()
        os.close(writing)
        while watch.is_alive() and not interrupted.is_set():
            watch.join(0.01)
        if interrupted.is_set():
            raise KeyboardInterrupt


def _watch(
    reading: int, interrupted: threading.Event, left: threading.Event, last_words: Callable[[], str]
) -> None:  # fmt: skip
    """Read signal numbers until the other end is closed; some time after Ctrl-C's, end the process."""
    while number := os.read(reading, 1):
        if number[0] == signal.SIGINT:
            interrupted.set()
            time.sleep(GRACE_SECONDS)
            if not left.is_set():
                os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + f"{last_words()}\n".encode())
            os._exit(INTERRUPTED)
    os.close(reading)
