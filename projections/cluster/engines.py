"""Run tasks in processes of this machine, or on the workers of a Dask cluster.

    tcp://HOST:PORT     a Dask scheduler; with tls://, the certificates are those in Dask's configuration
    processes[:N]       N processes here (default: one for each processor)

An engine may run a task twice, or lose a task. Only the objects that tasks create count.
"""

from __future__ import annotations

import ipaddress
import logging
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from operator import call
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ratings_ledger.ledger.errors import BadArgument, LedgerError, StoreUnavailable
from ratings_ledger.ledger.processes.forking import available_cores, open_pool
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.cluster.object_store import DamagedObject

CONNECT_SECONDS = 20  # how long to wait for an answer from a Dask scheduler
# the number of tasks submitted at a time for each thread of a cluster, because an answer takes about 20 ms
TASKS_PER_THREAD = 16
SCHEDULER_GONE = (
    "the scheduler of the cluster is gone; finished tasks are kept; start it and run the same command again"
)


class UnfitWorker(Exception):
    """A worker cannot run any task of this computation; the message says why."""


class ConflictingOutput(Exception):
    """Two workers created different objects from the same plan."""


class TaskLost(Exception):
    """A task did not finish because its worker or the engine is gone."""


class TaskFailed(Exception):
    """A worker raised an error that is not one of `FORWARDED_ERRORS`; the message describes it."""


# the types of errors that pass from workers to the coordinator unchanged
FORWARDED_ERRORS = (OSError, MemoryError, LedgerError, DamagedObject, UnfitWorker, ConflictingOutput)


class Engine(Protocol):
    """The interface of an engine; a handle stands for a submitted task."""

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Let a worker call a function, and return a handle. Raises `StoreUnavailable`."""

    def wait(self, handles: Collection[Any], seconds: float) -> dict[Any, Exception | None]:
        """Wait until a task finishes, at most `seconds`; return the finished tasks, each with its error or None.

        The error is `TaskLost` if the worker is gone.
        """

    def cancel(self, handle: Any) -> None:
        """Cancel a task. It may still finish."""

    def capacity(self) -> int:
        """Return how many unfinished tasks the engine can hold at once, with its current workers; 0 without workers."""


class ProcessEngine:
    """An engine of forked processes. Each process is its own pool, so a killed process loses only its own task."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._busy: dict[Any, _Process] = {}  # by handle
        self._idle: list[_Process] = []

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Let a process call a function."""
        process = self._idle.pop() if self._idle else _Process()
        handle = process.submit_call(function, *arguments)
        self._busy[handle] = process
        return handle

    def wait(self, handles: Collection[Any], seconds: float) -> dict[Any, Exception | None]:
        """Return the tasks that are done."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        outcomes: dict[Any, Exception | None] = {}
        for handle in wait(handles, seconds, FIRST_COMPLETED).done:
            process, error = self._busy.pop(handle), handle.exception()
            if isinstance(error, BrokenProcessPool):
                process.close()
                outcomes[handle] = TaskLost("the process was killed")
            else:
                self._idle.append(process)
                outcomes[handle] = error if isinstance(error, Exception) else None
        return outcomes

    def cancel(self, handle: Any) -> None:
        """Kill the process of a task."""
        if handle in self._busy:
            self._busy.pop(handle).close()

    def capacity(self) -> int:
        """Return the number of processes."""
        return self._count

    def close(self) -> None:
        """End all processes."""
        for process in [*self._idle, *self._busy.values()]:
            process.close()


class _Process:
    """A forked process, with the functions that submit work to it and close it."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.submit_call, _ = stack.enter_context(open_pool(1, call, closes_files=True, forwarded=FORWARDED_ERRORS))
            self.close = stack.pop_all().close


class DaskEngine:
    """A running Dask cluster, used only to run tasks: no graphs, and no data in its memory."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._finished_handles: SimpleQueue[Any] = SimpleQueue()

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Let a worker of the cluster call a function."""
        with _translate_gone_scheduler():
            handle = self._client.submit(_call_with_plain_errors, function, *arguments, pure=False, retries=0)
        # a queue, because waiting on all handles after each finished task would take as long as a small task
        handle.add_done_callback(self._finished_handles.put)
        return handle

    def wait(self, handles: Collection[Any], seconds: float) -> dict[Any, Exception | None]:
        """Return the tasks that are done. Raises `StoreUnavailable` if the scheduler is gone."""
        ended = []
        with suppress(Empty):
            ended.append(self._finished_handles.get(timeout=seconds))
            while True:
                ended.append(self._finished_handles.get_nowait())
        self._check_scheduler()
        return {handle: _find_error(handle) for handle in ended if handle in handles}

    def cancel(self, handle: Any) -> None:
        """Cancel a task on the scheduler."""
        with suppress(Exception):
            handle.cancel()

    def capacity(self) -> int:
        """Return room for several tasks per worker thread, so that no thread waits for its next task."""
        self._check_scheduler()
        with _translate_gone_scheduler():
            info = self._client.scheduler_info(n_workers=-1)
        return TASKS_PER_THREAD * sum(int(worker["nthreads"]) for worker in info.get("workers", {}).values())

    def _check_scheduler(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise StoreUnavailable(SCHEDULER_GONE)


def _call_with_plain_errors(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a worker, and raise errors without traceback, because some tracebacks make Dask hang."""
    try:
        function(*arguments)
        return
    except FORWARDED_ERRORS as error:
        plain_error: Exception = error
    except Exception as error:
        plain_error = TaskFailed(f"{type(error).__name__}: {error}")
    raise plain_error.with_traceback(None)


def _import_dask() -> Any:
    """Import Dask's library. Raises `BadArgument` if it is not installed."""
    try:
        return import_module("distributed")  # as `Any`, because much of it has no types
    except ImportError:
        raise BadArgument("clusters need the extra cluster: pip install 'ratings-ledger[cluster]'", "on") from None


@contextmanager
def _translate_gone_scheduler() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise StoreUnavailable(SCHEDULER_GONE) from None


def _find_error(handle: Any) -> Exception | None:
    if handle.status == "finished":
        return None
    if handle.status in ("cancelled", "lost"):
        return TaskLost("the cluster lost the task")
    error: Exception | None = handle.exception()
    is_lost = isinstance(error, _import_dask().KilledWorker)
    return TaskLost("the workers that had the task are gone") if is_lost else error


@contextmanager
def open_engine(address: str) -> Iterator[Engine]:
    """Provide the engine at an address. Raises `BadArgument`, `StoreUnavailable`."""
    kind, _, rest = address.partition(":")
    if kind == "processes":
        if rest and not (rest.isdecimal() and 0 < int(rest) <= 1000):
            raise BadArgument(f"{quote(rest)} is not a number of processes; write 1 to 1000, such as processes:4", "on")
        processes = ProcessEngine(int(rest) if rest else available_cores())
        try:
            yield processes
        finally:
            processes.close()
        return
    if kind not in ("tcp", "tls") or not rest.startswith("//"):
        raise BadArgument(f"{address} is not an engine; pass tcp://HOST:PORT, tls://HOST:PORT, or processes:N", "on")
    if kind == "tcp" and not _is_loopback(rest[2:].rpartition(":")[0]):
        raise BadArgument(
            f"{address} is not a loopback address, so anyone who reaches the open port could run programs; use tls:// "
            "instead (docs/scale.md)",
            "on",
        )
    with _open_client(address) as client:
        yield DaskEngine(client)


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


@contextmanager
def _open_client(address: str) -> Iterator[Any]:
    dask = _import_dask()
    _silence_logs()
    if address.startswith("tls:"):
        _check_certificates(dask)
    try:
        client = dask.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError:
        raise StoreUnavailable(
            f"no Dask scheduler answered at {address} within {CONNECT_SECONDS} s; check that one is running there"
        ) from None
    except (ValueError, RuntimeError) as problem:
        raise StoreUnavailable(f"the cluster at {address} cannot be reached: {problem}") from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def _check_certificates(dask: Any) -> None:
    """Raise `BadArgument` if Dask's configuration names no certificates, or certificates that cannot be read."""
    try:
        if dask.Security().get_connection_args("client").get("ssl_context") is not None:
            return
        problem = "Dask's configuration, in ~/.config/dask or the folder DASK_CONFIG, names no certificates"
    except OSError as error:
        problem = f"the certificates in Dask's configuration cannot be read: {error.strerror or error}"
    raise BadArgument(f"{problem}: see docs/scale.md", "on")


def _silence_logs() -> None:
    """Silence Dask's warnings and logs about connections, because the relevant errors are raised."""
    warnings.filterwarnings("ignore", module=r"distributed\b")
    for name in [*logging.Logger.manager.loggerDict, "distributed"]:
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
