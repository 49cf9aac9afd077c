"""Work in forked processes, which know what this one knows and never outlive it.

for message in ahead(blocks): ...               # blocks, an iterator of bytes, is driven by another process
for message in ahead(blocks, seconds=60): ...   # each within a minute of processor time
for message in forked(work, 100, cores=2): ...  # work(0) to work(99), each as soon as it is done

The pools are `concurrent.futures`'s. What that leaves open is said here: which files a worker keeps, that it ends with
this process however that ends, that Ctrl-C is for this process alone, how a worker that is gone ended, and that nobody
waits for the rest of a message that it had begun to send.
"""

import fcntl
import gc
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from ratings_ledger.ledger.errors import LedgerError, WorkerLost
from ratings_ledger.ledger.processes.memory import is_memory_limited, refuse_threads_without_memory

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess

PR_SET_PDEATHSIG = 1
UNITS_MAX = 1_000
# so many messages are made ahead of their reader, and for each process so many parts of some work
MESSAGES_AHEAD, UNITS_AHEAD = 16, 2
WATCHED_SECONDS = 1
PIPE_BYTES = 1 << 20  # room for answers that nobody has read yet
# a process that waits uses no processor time: it is killed after this many times its limit, which a busy machine allows
WAITING_TIMES = 10


def available_cores() -> int:
    """Return the processors that this process may use: one if its memory is limited, as others need threads."""
    if is_memory_limited():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class TimeLimitExceeded(Exception):
    """A process that was killed at its time limit. The message names the time, as in "60 s of processor time"."""


def run_ahead(made: Iterator[bytes], seconds: float | None = None, apart: bool = False) -> Generator[bytes]:
    """Yield what an iterator gives, made by a forked process that runs some messages ahead.

    The process keeps open files open, so no lock may be held that lasts as long as a file does; with `apart` it closes
    all of them. Close the iterator if it is not read to the end: that ends the process. Raises `WorkerLost` when it is
    killed, `TimeLimitExceeded` when a message takes more than `seconds` of processor time or far longer by the clock,
    `RuntimeError` when the iterator raises; errors about a file or a store are raised as they are.
    """
    with open_pool(1, partial(next, made, None), apart, (OSError, LedgerError), seconds) as (submitted, watched):
        waiting = deque(submitted() for _ in range(MESSAGES_AHEAD))
        while True:
            (unit,) = watched({waiting.popleft()})
            message = unit.result()
            if message is None:
                return
            yield message
            waiting.append(submitted())


def run_forked(work: Callable[[int], bytes], units: int, cores: int, apart: bool = True) -> Generator[bytes]:
    """`work(number)` for every number below `units`, computed by `cores` processes, in the order they finish.

    Whichever process is free takes the next number; none holds a lock of this one, unless they keep its files open, not
    `apart`, as `run_ahead` does. Close the iterator if it is not read to the end: that ends the processes. Raises
    `WorkerLost` when one of them is killed, `RuntimeError` when `work` raises; errors about a file or a store are
    raised as they are.
    """
    assert 0 < units <= UNITS_MAX
    workers = min(cores, units)
    numbers = iter(range(units))
    with open_pool(workers, work, apart, (OSError, LedgerError)) as (submitted, watched):
        running = set(map(submitted, islice(numbers, UNITS_AHEAD * workers)))
        while running:
            done = watched(running)
            running -= done
            for unit in done:
                yield unit.result()
                running.update(map(submitted, islice(numbers, 1)))


@contextmanager
def open_pool(
    workers: int, work: Callable[..., Any], apart: bool, passed: tuple[type[Exception], ...],
    seconds: float | None = None,
) -> Iterator[tuple[Callable[..., "Future[Any]"], Callable[..., "set[Future[Any]]"]]]:  # fmt: skip
    """Provide a function that has processes do some work, and one that waits for it, `_done_of`; see `run_ahead` and
    `run_forked`.

    With `seconds`, each unit of work is limited to so much processor time. Errors that are not `passed` on are a
    `RuntimeError`. The processes end with the context.
    """
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    limited = work if seconds is None else partial(_limit_processor_time, seconds, work)
    begin = partial(_begin_work, limited, passed, _open_files() if apart else {}, sys.stdin)
    executor = ProcessPoolExecutor(workers, get_context("fork"), begin)
    processes = _started(executor)
    try:
        thread = executor._executor_manager_thread
        yield partial(executor.submit, _done), partial(_done_of, thread, processes, seconds=seconds)
    except BrokenProcessPool:
        for process in processes:
            process.terminate()
        executor.shutdown()
        codes = [process.exitcode or 0 for process in processes]
        if seconds is not None and -signal.SIGPROF in codes:
            raise TimeLimitExceeded(f"{seconds:g} s of processor time") from None
        raise WorkerLost(f"a worker process {_how_lost(codes)}") from None
    finally:
        for process in processes:
            process.kill()
        executor.shutdown()


def _started(executor: Any) -> "list[BaseProcess]":
    """Return the processes of a pool, which it starts with its first work; none stays if its thread cannot start."""
    # until Python 3.14 has become the oldest, the library neither kills workers nor says how one ended
    try:
        refuse_threads_without_memory()
        with _undisturbed():
            executor.submit(int)
    except BaseException:
        for process in executor._processes.values():
            process.kill()
        raise
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        # a worker goes on while the pool's thread waits for its turn to read
        with suppress(OSError):
            fcntl.fcntl(executor._result_queue._writer.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # the pool's thread reads a message to its end; with this end open, it would wait for ever for what is cut short
    executor._result_queue._writer.close()
    return list(executor._processes.values())


def _done_of(
    thread: Any, processes: "list[BaseProcess]", units: "set[Future[Any]]", seconds: float | None = None
) -> "set[Future[Any]]":
    """Those of some units of work that are done, as soon as one is. Raises `BrokenProcessPool`, `TimeLimitExceeded`,
    `WorkerLost`.

    The pool's thread hands out their results. If there is no memory for what it does, it ends without a word. It does
    not see that a process is gone while it reads what that process began to send.
    """
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    limit = None if seconds is None else seconds * WAITING_TIMES
    at_once = WATCHED_SECONDS if limit is None else min(WATCHED_SECONDS, limit)
    for times in count(1):
        alive, lost = thread.is_alive(), not all(process.is_alive() for process in processes)
        done = wait(units, at_once, FIRST_COMPLETED).done
        if done:
            return done
        if not alive:
            raise WorkerLost("what worker processes give is not handed on; the machine may have run out of memory")
        if lost:
            raise BrokenProcessPool
        if limit is not None and times * at_once >= limit:
            raise TimeLimitExceeded(f"{limit:g} s, most of which it waited")
    raise AssertionError


def _how_lost(codes: Sequence[int]) -> str:
    """Return how a worker ended that others were terminated for."""
    code = next((code for code in codes if code != -signal.SIGTERM), -signal.SIGTERM)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return (
        f"{how}; if the machine ran out of memory, the system's log says so" if code else "ended without an exit status"
    )


def _open_files() -> dict[int, tuple[int, ...]]:
    """Return the open files, by number, each with what tells it from another that gets its number."""
    found: dict[int, tuple[int, ...]] = {}
    for file in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # the listing's own
            found[file] = os.fstat(file)[1:3]
    return found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No KeyboardInterrupt in a new process before it can deal with one; and its standard input is not closed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    stdin, sys.stdin = sys.stdin, None
    try:
        with warnings.catch_warnings():
            # newer Pythons warn about threads; none in this process holds a lock that a worker needs
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        sys.stdin = stdin
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_work(
    work: Callable[..., Any], passed: tuple[type[Exception], ...], files: dict[int, tuple[int, ...]], stdin: Any
) -> None:
    """The first thing in a new process, which closes these files of its parent's, and ends only with it."""
    global _work, _passed
    from multiprocessing import parent_process

    _work, _passed, sys.stdin = work, passed, stdin
    parent = parent_process()
    assert parent is not None
    # a lock that a worker also held would outlive the parent, as would its connections
    for file, found in files.items():
        with suppress(OSError):
            if file > 2 and os.fstat(file)[1:3] == found:
                os.close(file)
    # Ctrl-C reaches the whole group; the parent ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # objects from before the fork are not looked at again: looking would copy their memory
    gc.freeze()
    try:
        refuse_threads_without_memory()
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        if sys.platform == "linux":
            import ctypes

            # the thread cannot run while compiled code holds the interpreter
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (RuntimeError, ImportError, OSError, MemoryError):
        os._exit(1)  # there is no memory for that; the parent reports it, as it does later


def _end_with(parent: "BaseProcess") -> None:
    parent.join()
    os._exit(1)


def _limit_processor_time(seconds: float, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do a unit of work; the system kills this process, even within compiled code, once that took too much time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return work(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


_work: Callable[..., Any]
_passed: tuple[type[Exception], ...]


def _done(*arguments: Any) -> Any:
    try:
        return _work(*arguments)
    except _passed:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            os._exit(1)  # the parent reports it, like a process killed for lack of memory
        raise RuntimeError(f"a worker process failed: {traceback.format_exc()}") from None
