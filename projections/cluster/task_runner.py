"""Run tasks on an engine: the coordinator submits them, and a task is done once its output object exists.

A task whose output exists is not run again. A task that fails is retried a few times; a task that takes far too long is
also given to a second worker; a task that always fails is reported once all other tasks are done. A task that was lost
with its worker is retried while no other task runs, so that no other task can be blamed for the loss of the worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import LedgerError, StoreDamaged, WorkerLost
from ratings_ledger.projections.cluster.engines import ConflictingOutput, TaskFailed, TaskLost, UnfitWorker
from ratings_ledger.projections.cluster.object_store import DamagedObject, Objects, OpenedObject, describe_os_error
from ratings_ledger.projections.cluster.resources import Cluster
from ratings_ledger.projections.cluster.tasks import SAME_LOCATION, locate_plans, perform

TRIES = 3
WAIT_SECONDS = 1.0
# a task is slow if it takes longer than this multiple of the longest finished task, and longer than these seconds
SLOW_FACTOR, SLOW_SECONDS = 4, 60
NO_WORKERS_SECONDS = 60
# while tasks finish, the capacity of the engine is read again after this many turns of the loop in `run_tasks`
CAPACITY_TURNS = 50
# how many failed tasks a message names
NAMED_FAILURES = 3

logger = logging.getLogger(__name__)


class Task(NamedTuple):
    """A task: its plan, the name of its output object, and a label for messages."""

    plan: str
    output: str
    label: str


class TasksFailed(LedgerError):
    """Some tasks failed on every try; all other tasks are done (exit code 3)."""

    reason = "worker-lost"


def run_tasks(
    cluster: Cluster, stage: str, tasks: Sequence[Task], prepare: Callable[[Task], None] = lambda task: None
) -> Iterator[Task]:
    """Run tasks, and yield each task once its output is complete. `prepare` is called before a task is submitted.

    Raises:
        TasksFailed: Some tasks failed on every try; all other tasks are done.
        WorkerLost: There are no workers, or a worker is unfit or writes to another location.
        StoreDamaged: Two workers created different outputs.
        DamagedObject: A worker could not read an object.
        StoreUnavailable: The scheduler of the cluster is gone.
    """
    queue = _TaskQueue(cluster, tasks, prepare)
    for task in tasks:
        if _is_intact(cluster.objects, task.output):
            queue.done.add(task)
            yield task
    queue.fill()
    turns, ended = 0, dict[Any, Exception | None]()
    try:
        while len(queue.done) + len(queue.given_up) < len(tasks):
            # not on every turn, because reading the capacity is a request to the scheduler
            if not ended or turns % CAPACITY_TURNS == 0:
                capacity = cluster.engine.capacity()
            turns += 1
            queue.submit_waiting(capacity)
            cluster.report_progress(stage, queue.count_tasks())
            ended = queue.wait()
            for handle, error in ended.items():
                finished = queue.finish(handle, error)
                if finished is not None:
                    yield finished
            queue.resubmit_slow()
    finally:
        for handle in queue.running:
            cluster.engine.cancel(handle)
    cluster.report_progress(stage, queue.count_tasks())
    queue.raise_given_up()


class _TaskQueue:
    """The tasks on an engine, with their progress."""

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], prepare: Callable[[Task], None]) -> None:
        self._cluster, self._tasks, self._prepare = cluster, tasks, prepare
        self._plan_ranges = dict(zip(tasks, locate_plans([task.plan for task in tasks]), strict=True))
        # the tasks to submit, and the tasks that were lost with a worker, which are submitted one at a time
        self._waiting, self._suspects = list[Task](), list[Task]()
        # the start of each running task by its handle, and the messages of failed tries
        self._started_at, self._failures = dict[Any, float](), dict[Task, list[str]]()
        # `_now` is in seconds, and advances only on turns on which no task ends
        self._retried, self._longest_seconds, self._now, self._workerless_seconds = 0, 0.0, 0.0, 0.0
        self.running = dict[Any, Task]()
        self.done, self.given_up = set[Task](), list[Task]()
        cluster.own_objects.update(plan_range.plans for plan_range in self._plan_ranges.values())
        cluster.own_objects.update(task.output for task in tasks)

    def fill(self) -> None:
        """Fill the queue with the tasks that are not done; if there are any, create the object that holds all plans."""
        self._waiting = [task for task in reversed(self._tasks) if task not in self.done]
        if self._waiting:  # one object for all plans, because a store may take tens of milliseconds per object
            name = self._plan_ranges[self._tasks[0]].plans
            self._cluster.objects.create(name, [task.plan.encode() for task in self._tasks])

    def count_tasks(self) -> dict[str, int]:
        """Return the numbers of tasks for a progress report."""
        done, tasks = len(self.done), len(self._tasks)
        left = tasks - done - len(self.given_up)
        return {"tasks_done": done, "tasks": tasks, "retried": self._retried, "left": left}

    def submit_waiting(self, capacity: int) -> None:
        """Submit as many tasks as the engine can take. Tasks that were lost with a worker come last, one at a time.

        Raises `WorkerLost` if there have been no workers for too long.
        """
        while self._waiting and len(self.running) < capacity:
            self._prepare(self._waiting[-1])
            self._submit(self._waiting.pop())
        if self._suspects and capacity and not self.running:
            self._prepare(self._suspects[0])
            self._submit(self._suspects.pop(0))
        self._workerless_seconds = 0.0 if capacity else self._workerless_seconds + WAIT_SECONDS
        if self._workerless_seconds > NO_WORKERS_SECONDS:
            raise WorkerLost(
                f"the engine has had no workers for {NO_WORKERS_SECONDS} s; finished tasks are kept; check that this "
                "program is installed on the workers, which otherwise end immediately"
            )

    def _submit(self, task: Task) -> None:
        cluster = self._cluster
        handle = cluster.engine.submit(perform, cluster.objects.url, cluster.requirements, self._plan_ranges[task])
        self.running[handle], self._started_at[handle] = task, self._now

    def wait(self) -> dict[Any, Exception | None]:
        """Wait for tasks to end, at most `WAIT_SECONDS`; return the ended tasks, each with its error or None."""
        if self.running:
            ended = self._cluster.engine.wait(self.running, WAIT_SECONDS)
        else:
            time.sleep(WAIT_SECONDS)
            ended = {}
        self._now += 0.0 if ended else WAIT_SECONDS
        return ended

    def finish(self, handle: Any, error: Exception | None) -> Task | None:
        """Return the ended task if it is now done; otherwise queue it for another try, or give it up, and return None.

        Raises `WorkerLost`, `StoreDamaged`; `DamagedObject` if the task could not read an object.
        """
        task, objects = self.running.pop(handle), self._cluster.objects
        self._longest_seconds = max(self._longest_seconds, self._now - self._started_at.pop(handle))
        if isinstance(error, UnfitWorker):
            raise WorkerLost(str(error)) from None
        if isinstance(error, ConflictingOutput):
            raise StoreDamaged(
                f"{error}: a worker's memory or processor is faulty; find that machine, and run the same command again "
                "without it"
            ) from None
        if task in self.done:
            return None
        is_written = objects.size(task.output) is not None
        # a complete output counts, even if its worker was lost
        if _is_intact(objects, task.output):
            self.done.add(task)
            return task
        if error is None and not is_written:
            raise WorkerLost(f"the object {task.output} that a worker wrote is not in {objects.url}; {SAME_LOCATION}")
        if isinstance(error, DamagedObject) and error.name != task.output:
            raise error
        failures = self._failures.setdefault(task, [])
        failures.append(_describe_error(error))
        if task in self.running.values():  # a second worker has the task
            return None
        if len(failures) < TRIES:
            self._retried += 1
            (self._suspects if isinstance(error, TaskLost) else self._waiting).insert(0, task)
        else:
            self.given_up.append(task)
        return None

    def resubmit_slow(self) -> None:
        """Submit slow tasks a second time; the first output counts."""
        limit, running = max(SLOW_SECONDS, SLOW_FACTOR * self._longest_seconds), [*self.running.values()]
        for handle, task in [*self.running.items()]:
            if task not in self.done and running.count(task) == 1 and self._now - self._started_at[handle] > limit:
                self._retried += 1
                self._submit(task)

    def raise_given_up(self) -> None:
        """Raise `TasksFailed` if a task was given up."""
        if not self.given_up:
            return
        labels = "; ".join(f"{task.label} ({self._failures[task][-1]})" for task in self.given_up[:NAMED_FAILURES])
        more = len(self.given_up) - NAMED_FAILURES
        raise TasksFailed(
            f"{TRIES} tries failed for {labels}{f' and {more:,} more' if more > 0 else ''}; the other tasks are done "
            "and kept; run the same command again"
        )


def _describe_error(error: Exception | None) -> str:
    if error is None:
        return "its output was damaged"
    if isinstance(error, MemoryError):
        return "the worker ran out of memory"
    if isinstance(error, OSError):
        return f"{error.filename}: {describe_os_error(error)}" if error.filename else describe_os_error(error)
    return (
        str(error) if isinstance(error, TaskLost | TaskFailed | DamagedObject) else f"{type(error).__name__}: {error}"
    )


def _is_intact(objects: Objects, name: str) -> bool:
    """Tell whether an object exists with a valid footer; log and delete a damaged object."""
    if objects.size(name) is None:
        return False
    try:
        OpenedObject(objects, name)
    except DamagedObject as problem:
        logger.warning("ratings: %s in %s; it is created again", problem, objects.url)
        objects.delete(name)
        return False
    return True
