"""Work in forked processes, which know what this one knows and never outlive it.

for message in ahead(blocks): ...               # blocks, an iterator of bytes, is driven by another process
for message in ahead(blocks, seconds=60): ...   # each within a minute
for message in forked(work, 100, cores=2): ...  # work(0) to work(99), each as soon as it is done
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
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import NoReturn

from ledger.errors import LedgerError, WorkerLost

MADE, ENDED, RAISED, FAILED = b"+", b".", b"!", b"?"
PIPE_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1
# the numbers of all parts of some work fit into the buffer of a pipe, so that writing them never waits
UNITS_MAX = 1_000
NUMBER_BYTES = 4


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
    return _results([made], () if apart else None, seconds, (OSError, LedgerError))


def forked(work: Callable[[int], bytes], units: int, cores: int) -> Generator[bytes]:
    """`work(number)` for every number below `units`, computed by `cores` processes, in the order they finish.

    Whichever process is free takes the next number; none holds a lock of this one. Close the iterator if it is not read
    to the end: that ends the processes. Raises `WorkerLost` when one of them is killed, `RuntimeError` when `work`
    raises.
    """
    assert 0 < units <= UNITS_MAX
    # the numbers still to do
    tasks, numbers = os.pipe()
    os.write(numbers, b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in range(units)))
    os.close(numbers)
    made = (work(int.from_bytes(number, "big")) for number in iter(lambda: os.read(tasks, NUMBER_BYTES), b""))
    try:
        yield from _results([made] * min(cores, units), (tasks,))
    finally:
        os.close(tasks)


def _results(
    parts: Sequence[Iterator[bytes]],
    kept: Sequence[int] | None,
    seconds: float | None = None,
    passed: tuple[type[Exception], ...] = (),
) -> Generator[bytes]:
    """What iterators give, each driven by a process that keeps these open files (None: all); see `ahead`."""
    processes: dict[Connection, int] = {}
    # closes when this process is gone, however it ended
    life, alive = os.pipe()
    try:
        with _uninterrupted():
            for made in parts:
                reading, writing = os.pipe()
                if (process := _fork()) == 0:
                    _make_and_exit(made, writing, life, kept, (alive, reading), passed)
                os.close(writing)
                processes[Connection(reading, writable=False)] = process
        while processes:
            ready = wait(list(processes), seconds)
            if not ready:
                raise TooSlow(f"no answer in {seconds:g} s")
            for results in ready:
                assert isinstance(results, Connection)
                try:
                    message = results.recv_bytes()
                except (EOFError, OSError):
                    message = b""
                if message[:1] == RAISED:
                    raise pickle.loads(message[1:])
                if message[:1] == FAILED:
                    raise RuntimeError(f"a worker process failed: {message[1:].decode()}")
                if message[:1] == MADE:
                    yield message[1:]
                    continue
                results.close()
                _ended(processes.pop(results))
                if not message:
                    raise WorkerLost("a worker process ended without a word")
    finally:
        for results, process in processes.items():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            results.close()
        for pipe in (life, alive):
            os.close(pipe)


def _make_and_exit(
    made: Iterator[bytes],
    writing: int,
    life: int,
    kept: Sequence[int] | None,
    parents: tuple[int, int],
    passed: tuple[type[Exception], ...],
) -> NoReturn:
    status = 1
    try:
        # a lock that a worker also held would outlive the parent, as would its connections
        inherited = map(int, os.listdir("/dev/fd")) if kept is not None else parents
        for file in inherited:
            if kept is None or (file > 2 and file not in (*kept, writing, life)):
                with suppress(OSError):  # the listing's own
                    os.close(file)
        _begin_work(life)
        _widen(writing)
        results = Connection(writing, readable=False)
        try:
            for message in made:
                results.send_bytes(MADE + message)
            results.send_bytes(ENDED)
            status = 0
        except MemoryError:  # the parent reports it, like a process killed for lack of memory
            pass
        except passed as error:
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


def _fork() -> int:
    """Fork; 0 in the new process."""
    with warnings.catch_warnings():
        # newer Pythons warn about threads; none in this process holds a lock that a worker needs
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """No KeyboardInterrupt between a fork and noting it, nor in a new process before it can deal with one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_work(life: int) -> None:
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


def _ended(process: int) -> None:
    """Wait for a process that has closed its pipe. Raises `WorkerLost` unless it finished its work."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with {status}"
        raise WorkerLost(f"a worker process {how}; if the machine ran out of memory, the system's log says so")
