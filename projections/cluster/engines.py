"""Where tasks are done: in processes of this machine, or by the workers of a Dask cluster.

    tcp://HOST:PORT     a Dask scheduler; tls:// with certificates, from Dask's own configuration
    processes[:N]       N processes here (default: one for each processor)

An engine is a farm of tasks that may do any of them twice, and forget all of them. What counts is in the objects.
"""

from __future__ import annotations

import ipaddress
import logging
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ratings_ledger.ledger.errors import BadArgument, LedgerError, StoreUnavailable
from ratings_ledger.ledger.processes.forking import available_cores, open_pool
from ratings_ledger.projections.cluster.columnar import DamagedObject

START_SECONDS = 20
AHEAD = 16  # tasks for each worker of a cluster that are handed out at once: an answer takes some 20 ms
GONE = "the scheduler of the cluster is gone; what is done is kept for the next try"


class Unfit(Exception):
    """A worker cannot do what it is asked for, and no other task either."""


class NotTheSame(Exception):
    """Two workers made different objects from the same plan."""


class TaskLost(Exception):
    """A task did not end: its worker, or the engine, is gone."""


class TaskFailed(Exception):
    """A worker raised something else, which this says."""


# what a worker raises is raised here, too
PASSED = (OSError, MemoryError, LedgerError, DamagedObject, Unfit, NotTheSame)


class Engine(Protocol):
    """What is needed of an engine; a handle stands for a task that was submitted."""

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Have a worker call a function. Raises `StoreUnavailable`."""

    def wait(self, handles: Collection[Any], seconds: float) -> dict[Any, Exception | None]:
        """Wait until a task is done, but no longer than some seconds; return the finished ones with their errors.

        The error is `TaskLost` if the worker is gone.
        """

    def cancel(self, handle: Any) -> None:
        """Forget a task, which may still be done."""

    def width(self) -> int:
        """Return how many tasks the engine takes at once now; 0 without workers."""


class Processes:
    """Each process is a pool of its own: one that is killed takes only its own task with it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._busy: dict[Any, _Process] = {}  # by handle
        self._idle: list[_Process] = []

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Have a process call it."""
        process = self._idle.pop() if self._idle else _Process()
        handle = process.submitted(function, *arguments)
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
                outcomes[handle] = TaskLost("its process was killed")
            else:
                self._idle.append(process)
                outcomes[handle] = error if isinstance(error, Exception) else None
        return outcomes

    def cancel(self, handle: Any) -> None:
        """End its process."""
        if handle in self._busy:
            self._busy.pop(handle).close()

    def width(self) -> int:
        """Return how many processes there may be."""
        return self._count

    def close(self) -> None:
        """End all processes."""
        for process in [*self._idle, *self._busy.values()]:
            process.close()


class _Process:
    """A forked process, and the function that has it do something."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.submitted, _ = stack.enter_context(open_pool(1, _call, closes_files=True, passed=PASSED))
            self.close = stack.pop_all().close


def _call(function: Callable[..., None], *arguments: Any) -> None:
    function(*arguments)


class Dask:
    """A cluster that is there already, used as a farm of tasks alone: no graphs, no data in its memory."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ended: SimpleQueue[Any] = SimpleQueue()

    def submit(self, function: Callable[..., None], *arguments: Any) -> Any:
        """Have a worker of the cluster call it."""
        with _or_gone():
            handle = self._client.submit(_plainly, function, *arguments, pure=False, retries=0)
        # to wait for all of them anew for each that is done would take as long as a small task
        handle.add_done_callback(self._ended.put)
        return handle

    def wait(self, handles: Collection[Any], seconds: float) -> dict[Any, Exception | None]:
        """Return the tasks that are done. Raises `StoreUnavailable` if the scheduler is gone."""
        ended = []
        with suppress(Empty):
            ended.append(self._ended.get(timeout=seconds))
            while True:
                ended.append(self._ended.get_nowait())
        self._refuse_gone()
        return {handle: _raised(handle) for handle in ended if handle in handles}

    def cancel(self, handle: Any) -> None:
        """Tell the scheduler."""
        with suppress(Exception):
            handle.cancel()

    def width(self) -> int:
        """Some for each thread of all workers, so that none waits for the next one."""
        self._refuse_gone()
        with _or_gone():
            info = self._client.scheduler_info(n_workers=-1)
        return AHEAD * sum(int(worker["nthreads"]) for worker in info.get("workers", {}).values())

    def _refuse_gone(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise StoreUnavailable(GONE)


def _plainly(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a worker, and raise what everybody can read: Dask waits for ever for some tracebacks."""
    try:
        function(*arguments)
        return
    except PASSED as error:
        raised: Exception = error
    except Exception as error:
        raised = TaskFailed(f"{type(error).__name__}: {error}")
    raise raised.with_traceback(None)


def _dask() -> Any:
    """Return the library; it has no types for much of what is called. Raises `BadArgument`."""
    try:
        return import_module("distributed")
    except ImportError:
        raise BadArgument("clusters need the extra cluster: pip install 'ratings-ledger[cluster]'", "on") from None


@contextmanager
def _or_gone() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise StoreUnavailable(GONE) from None


def _raised(handle: Any) -> Exception | None:
    if handle.status == "finished":
        return None
    if handle.status in ("cancelled", "lost"):
        return TaskLost("the cluster forgot it")
    error: Exception | None = handle.exception()
    return TaskLost("the workers that had it are gone") if isinstance(error, _dask().KilledWorker) else error


@contextmanager
def engine_at(address: str) -> Iterator[Engine]:
    """Provide the engine at an address. Raises `BadArgument`, `StoreUnavailable`."""
    kind, _, rest = address.partition(":")
    if kind == "processes":
        if rest and not (rest.isdecimal() and 0 < int(rest) <= 1000):
            raise BadArgument(f"{address}: the number of processes is from 1 to 1000, such as processes:4", "on")
        processes = Processes(int(rest) if rest else available_cores())
        try:
            yield processes
        finally:
            processes.close()
        return
    if kind not in ("tcp", "tls") or not rest.startswith("//"):
        raise BadArgument(f"{address} is no engine; one is at tcp://HOST:PORT, tls://HOST:PORT, or processes:N", "on")
    if kind == "tcp" and not _is_loopback(rest[2:].rpartition(":")[0]):
        raise BadArgument(
            f"{address} is beyond this machine, where whoever reaches a port can run programs: use tls://, see "
            "docs/scale.md",
            "on",
        )
    with _client(address) as client:
        yield Dask(client)


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


@contextmanager
def _client(address: str) -> Iterator[Any]:
    dask = _dask()
    _keep_quiet()
    if address.startswith("tls:"):
        _need_certificates(dask)
    try:
        client = dask.Client(address, timeout=START_SECONDS, set_as_default=False)
    except OSError:
        raise StoreUnavailable(
            f"no Dask scheduler answers at {address} within {START_SECONDS} s; is one running there?"
        ) from None
    except (ValueError, RuntimeError) as problem:
        raise StoreUnavailable(f"the cluster at {address} cannot be reached: {problem}") from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def _need_certificates(dask: Any) -> None:
    """Raises `BadArgument` if Dask's configuration names no certificates, or some that cannot be read."""
    try:
        if dask.Security().get_connection_args("client").get("ssl_context") is not None:
            return
        problem = "Dask's configuration, in ~/.config/dask or the folder DASK_CONFIG, names no certificates"
    except OSError as error:
        problem = f"the certificates in Dask's configuration cannot be read: {error.strerror or error}"
    raise BadArgument(f"{problem}: see docs/scale.md", "on")


def _keep_quiet() -> None:
    """Keep what Dask writes about its connections, with tracebacks, away from standard error: what matters of it is
    raised."""
    warnings.filterwarnings("ignore", module=r"distributed\b")
    for name in [*logging.Logger.manager.loggerDict, "distributed"]:
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
