"""End commands soon after Ctrl-C, even during operations that cannot be interrupted."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
# the time limit for an orderly exit, which can be slow: waiting for a lock of the store takes up to 30 s, and freeing
# the memory of a long log takes time
GRACE_SECONDS = 0.8
SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def end_soon_after_interrupt(format_message: Callable[[], str]) -> Iterator[None]:
    """End the process within two seconds after Ctrl-C with code 130.

    If the block does not end in time, print `format_message()`. Raises `KeyboardInterrupt` after Ctrl-C, even if a
    driver turned it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    interrupted, has_block_ended = threading.Event(), threading.Event()
    watch = threading.Thread(
        target=_force_exit, args=(read_end, interrupted, has_block_ended, format_message), daemon=True
    )
    previous_fd = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous_fd)
        has_block_ended.set()
        os.close(write_end)
        while watch.is_alive() and not interrupted.is_set():
            watch.join(0.01)
        if interrupted.is_set():
            raise KeyboardInterrupt


def _force_exit(
    read_end: int, interrupted: threading.Event, has_block_ended: threading.Event, format_message: Callable[[], str]
) -> None:
    """Read signal numbers until the other end is closed; after Ctrl-C, kill the process unless it exits in time."""
    while number := os.read(read_end, 1):
        if number[0] == signal.SIGINT:
            interrupted.set()
            time.sleep(GRACE_SECONDS)
            if not has_block_ended.is_set():
                os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + f"{format_message()}\n".encode())
            os._exit(INTERRUPTED)
    os.close(read_end)
