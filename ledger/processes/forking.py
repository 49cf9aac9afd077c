"""Forked processes, which know what this one knows and never outlive it; chiefly one that runs ahead of its reader.

for message in ahead(blocks): ...               # blocks, an iterator of bytes, is driven by another process
for message in ahead(blocks, seconds=60): ...   # each within a minute
"""

import ctypes
import gc
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import NoReturn

from ledger.errors import LedgerError, WorkerLost

MADE, ENDED, RAISED, FAILED = b"+", b".", b"!", b"?"
PIPE_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1


def available_cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class TooSlow(Exception):
    """A process gave nothing for too long and was killed."""


def ahead(made: Iterator[bytes], seconds: float | None = None, apart: bool = False) -> Generator[bytes]:
    """What an iterator gives, made by a forked process that runs as far ahead as a pipe holds.

    The process keeps open files open, so no lock may be held that lasts as long as a file does; with `apart` it closes
    all of them. Close the iterator if it is not read to the end: that ends the process. Raises `WorkerLost` when it is
    killed, `TooSlow` when it gives nothing for `seconds`, `RuntimeError` when the iterator raises; errors about a file
    or a store are raised as they are.
    """
    (reading, writing), (life, alive) = os.pipe(), os.pipe()
    process: int | None = None
    results = Connection(reading, writable=False)
    try:
        with uninterrupted():
            if (process := fork()) == 0:
                if apart:
                    close_all_but(writing, life)
                else:
                    os.close(alive)
                    os.close(reading)
                _make_and_exit(made, writing, life)
        os.close(writing)
        while True:
            if seconds is not None and not results.poll(seconds):
                raise TooSlow(f"no answer in {seconds:g} s")
            try:
                message = results.recv_bytes()
            except EOFError:
                gone, process = process, None
                ended(gone)
                raise WorkerLost("a worker process ended without a word") from None
            if message[:1] == RAISED:
                raise pickle.loads(message[1:])
            if message[:1] == FAILED:
                raise RuntimeError(f"a worker process failed: {message[1:].decode()}")
            if message[:1] == ENDED:
                return
            yield message[1:]
    finally:
        if process is not None:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        results.close()
        for pipe in (life, alive):
            os.close(pipe)


def _make_and_exit(made: Iterator[bytes], writing: int, life: int) -> NoReturn:
    status = 1
    try:
        begin_work(life)
        _widen(writing)
        results = Connection(writing, readable=False)
        try:
            for message in made:
                results.send_bytes(MADE + message)
            results.send_bytes(ENDED)
            status = 0
        except MemoryError:  # the parent reports it, like a process killed for lack of memory
            pass
        except (OSError, LedgerError) as error:
            results.send_bytes(RAISED + pickle.dumps(error))
        except Exception:
            results.send_bytes(FAILED + traceback.format_exc().encode())
    finally:
        # nothing of the parent's may be cleaned up here: no connection closed, no buffer written twice
        os._exit(status)


def _widen(pipe: int) -> None:
    """Let a pipe hold a few blocks, so that neither end waits when the other is briefly slower."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # more than the system allows
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def fork() -> int:
    """Fork; 0 in the new process."""
    with warnings.catch_warnings():
        # newer Pythons warn about threads; none in this process holds a lock that a worker needs
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No KeyboardInterrupt between a fork and noting it, nor in a new process before it can deal with one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_work(life: int) -> None:
    """The first thing in a new process: make it end only with the parent, whose end closes the pipe `life`."""
    # Ctrl-C reaches the whole group; the parent ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # objects from before the fork are not looked at again: looking would copy their memory
    gc.freeze()

    def wait_for_the_end() -> None:
        os.read(life, 1)
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    if sys.platform == "linux":
        # the thread cannot run while compiled code holds the interpreter
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def ended(process: int) -> None:
    """Wait for a process that has closed its pipe. Raises `WorkerLost` unless it finished its work."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with {status}"
        raise WorkerLost(f"a worker process {how}; if the machine ran out of memory, the system's log says so")


def close_all_but(*kept: int) -> None:
    """Close inherited files: a lock that a worker also held would outlive the parent, as would its connections."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the listing's own
                continue
