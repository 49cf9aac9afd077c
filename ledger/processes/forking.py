"""Run work in forked processes, which inherit this process's memory and never outlive it.

for message in run_ahead(blocks): ...               # another process drives the iterator of bytes `blocks`
for message in run_ahead(blocks, seconds=60): ...   # the same, with at most a minute of processor time per message
for message in run_forked(work, 100, cores=2): ...  # work(0) to work(99), each as soon as it is done

The pools come from `concurrent.futures`. This module adds to that library: a worker closes files that it must not keep
open, workers always end with this process, Ctrl-C interrupts only this process, an error says how a lost worker ended,
and no reader waits for the rest of a lost worker's message.
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
from itertools import islice
from typing import TYPE_CHECKING, Any

from ratings_ledger.ledger.errors import LedgerError, WorkerLost
from ratings_ledger.ledger.processes.memory import is_memory_limited, refuse_threads_without_memory

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess

# the option of prctl by which the system kills a process when its parent ends
PR_SET_PDEATHSIG = 1
# the maximum number of units of work of one call of `run_forked`
UNITS_MAX = 1_000
# how many messages are computed ahead of their reader, and how many units of work each process may hold
MESSAGES_AHEAD, UNITS_AHEAD = 16, 2
# the time between two checks that all processes still exist
CHECK_SECONDS = 1
PIPE_BYTES = 1 << 20  # room for results that are not read yet
# the limit by the clock, as a multiple of the limit of processor time: a process that only waits uses no processor
# time, and one on a busy machine needs longer
CLOCK_LIMIT_FACTOR = 10


def available_cores() -> int:
    """Return how many processors to use: one if memory is limited, because pools of processes need threads."""
    if is_memory_limited():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class TimeLimitExceeded(Exception):
    """A process was killed at its time limit. The message names the limit, as in "60 s of processor time"."""


def run_ahead(messages: Iterator[bytes], seconds: float | None = None, closes_files: bool = False) -> Generator[bytes]:
    """Yield the messages of an iterator; a forked process drives it `MESSAGES_AHEAD` messages ahead.

    With `closes_files`, the forked process closes all files that it inherits. Otherwise it keeps them open, so this
    process must hold no lock that lasts until a file is closed everywhere. A caller that stops early must close the
    iterator, which ends the forked process.

    Raises:
        WorkerLost: The forked process ended unexpectedly.
        TimeLimitExceeded: A message took more than `seconds` of processor time, or far longer by the clock.
        RuntimeError: The iterator raised an error. An `OSError` or a `LedgerError` passes through instead.
    """
    with open_pool(
        1, partial(next, messages, None), closes_files=closes_files, forwarded=(OSError, LedgerError), seconds=seconds
    ) as (submit, wait_for_done):
        pending = deque(submit() for _ in range(MESSAGES_AHEAD))
        while True:
            (future,) = wait_for_done({pending.popleft()})
            message = future.result()
            if message is None:
                return
            yield message
            pending.append(submit())


def run_forked(work: Callable[[int], bytes], units: int, cores: int, closes_files: bool = True) -> Generator[bytes]:
    """Yield `work(number)` for each number below `units`, computed by `cores` processes, each as soon as it is done.

    Each free process takes the next number. With `closes_files`, the processes close all files that they inherit, and
    so hold none of this process's locks. A caller that stops early must close the iterator, which ends the processes.

    Raises:
        WorkerLost: A process ended unexpectedly.
        RuntimeError: `work` raised an error. An `OSError` or a `LedgerError` passes through instead.
    """
    assert 0 < units <= UNITS_MAX
    workers = min(cores, units)
    numbers = iter(range(units))
    with open_pool(workers, work, closes_files=closes_files, forwarded=(OSError, LedgerError)) as (
        submit,
        wait_for_done,
    ):
        running = set(map(submit, islice(numbers, UNITS_AHEAD * workers)))
        while running:
            done = wait_for_done(running)
            running -= done
            for future in done:
                yield future.result()
                running.update(map(submit, islice(numbers, 1)))


@contextmanager
def open_pool(
    workers: int,
    work: Callable[..., Any],
    *,
    closes_files: bool,
    forwarded: tuple[type[Exception], ...],
    seconds: float | None = None,
) -> Iterator[tuple[Callable[..., "Future[Any]"], Callable[..., "set[Future[Any]]"]]]:
    """Provide a function that submits a unit of work to forked processes, and a function that waits for units.

    With `seconds`, each unit of work is limited to this processor time. Errors of the types `forwarded` pass through;
    others become a `RuntimeError`. The processes end with the block. Raises `TimeLimitExceeded`, `WorkerLost`.
    """
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    limited_work = work if seconds is None else partial(_limit_processor_time, seconds, work)
    initializer = partial(_begin_work, limited_work, forwarded, _list_open_files() if closes_files else {}, sys.stdin)
    executor = ProcessPoolExecutor(workers, get_context("fork"), initializer)
    processes = _start_processes(executor)
    try:
        thread = executor._executor_manager_thread
        yield partial(executor.submit, _run_unit), partial(_wait_for_done, thread, processes, seconds=seconds)
    except BrokenProcessPool:
        for process in processes:
            process.terminate()
        executor.shutdown()
        codes = [process.exitcode or 0 for process in processes]
        if seconds is not None and -signal.SIGPROF in codes:
            raise TimeLimitExceeded(f"{seconds:g} s of processor time") from None
        raise WorkerLost(f"a worker process {_describe_loss(codes)}") from None
    finally:
        for process in processes:
            process.kill()
        executor.shutdown()


def _start_processes(executor: Any) -> "list[BaseProcess]":
    """Start the processes of a pool and return them. If the pool's thread cannot start, end the processes again."""
    # private members are used, because before Python 3.14 the library neither kills workers nor reports how one ended
    try:
        refuse_threads_without_memory()
        with _block_interrupts():
            executor.submit(int)
    except BaseException:
        for process in executor._processes.values():
            process.kill()
        raise
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        # with a larger pipe, a worker can continue before the pool's thread has read the last result
        with suppress(OSError):
            fcntl.fcntl(executor._result_queue._writer.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # if this process kept the pipe's writing end open, the pool's thread would wait for ever for the rest of a
    # truncated message
    executor._result_queue._writer.close()
    return list(executor._processes.values())


def _wait_for_done(
    thread: Any, processes: "list[BaseProcess]", units: "set[Future[Any]]", seconds: float | None = None
) -> "set[Future[Any]]":
    """Wait until at least one of these units of work is done; return the units that are done.

    The pool's thread hands out the results. It ends silently if it runs out of memory, and while it reads a message it
    does not notice that the sending process is lost; so both are checked here. Raises `BrokenProcessPool`,
    `TimeLimitExceeded`, `WorkerLost`.
    """
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    limit = None if seconds is None else seconds * CLOCK_LIMIT_FACTOR
    interval = CHECK_SECONDS if limit is None else min(CHECK_SECONDS, limit)
    waited = 0.0
    while True:
        is_thread_alive, has_lost_process = thread.is_alive(), not all(process.is_alive() for process in processes)
        done = wait(units, interval, FIRST_COMPLETED).done
        if done:
            return done
        if not is_thread_alive:
            raise WorkerLost("the results of worker processes cannot be read; the machine may have run out of memory")
        if has_lost_process:
            raise BrokenProcessPool
        waited += interval
        if limit is not None and waited >= limit:
            raise TimeLimitExceeded(f"{limit:g} s by the clock, most of it waiting")


def _describe_loss(codes: Sequence[int]) -> str:
    """Describe how a worker ended, by the first of `codes` that is not from this process's own SIGTERM."""
    code = next((code for code in codes if code != -signal.SIGTERM), -signal.SIGTERM)
    if not code:
        return "ended early, with exit status 0"
    description = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
    return f"{description}; if the machine ran out of memory, the system's log says so"


def _list_open_files() -> dict[int, tuple[int, ...]]:
    """Return the numbers of the open files, each with an identity that differs for a later file of the same number."""
    identities: dict[int, tuple[int, ...]] = {}
    for file in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # the file by which /dev/fd was listed is closed again
            identities[file] = os.fstat(file)[1:3]
    return identities


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block Ctrl-C while processes start, and keep them from closing standard input."""
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    stdin, sys.stdin = sys.stdin, None
    try:
        with warnings.catch_warnings():
            # newer Pythons warn when a process with threads forks; no thread here holds a lock that a worker needs
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        sys.stdin = stdin
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)


def _begin_work(
    work: Callable[..., Any], forwarded: tuple[type[Exception], ...], files: dict[int, tuple[int, ...]], stdin: Any
) -> None:
    """Set up a new process: close these files of its parent, ignore Ctrl-C, and end with the parent."""
    global _work, _forwarded
    from multiprocessing import parent_process

    _work, _forwarded, sys.stdin = work, forwarded, stdin
    parent = parent_process()
    assert parent is not None
    # locks and connections that a worker inherits would outlive the parent
    for file, identity in files.items():
        with suppress(OSError):
            if file > 2 and os.fstat(file)[1:3] == identity:
                os.close(file)
    # Ctrl-C reaches all processes of the group, but the parent alone handles it and ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # collecting objects from before the fork would copy their memory
    gc.freeze()
    try:
        refuse_threads_without_memory()
        threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
        if sys.platform == "linux":
            import ctypes

            # needed as well, because the thread cannot run while compiled code holds the interpreter lock
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (RuntimeError, ImportError, OSError, MemoryError):
        os._exit(1)  # there is no memory for a thread; the parent reports the lost worker


def _exit_with(parent: "BaseProcess") -> None:
    parent.join()
    os._exit(1)


def _limit_processor_time(seconds: float, work: Callable[..., Any], *arguments: Any) -> Any:
    """Run a unit of work. The system kills this process at the time limit, even within compiled code."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return work(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


_work: Callable[..., Any]
_forwarded: tuple[type[Exception], ...]


def _run_unit(*arguments: Any) -> Any:
    try:
        return _work(*arguments)
    except _forwarded:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            os._exit(1)  # the parent reports the lost worker, like one that the system killed
        raise RuntimeError(f"a worker process failed: {traceback.format_exc()}") from None
