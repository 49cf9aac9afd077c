"""The coordinator's loop: tasks are handed out, and done when their object is there.

What is there already is not done again. A task that fails is tried again a few times, another worker is given one that
takes far too long, and one that always fails is named once all others are done. One that was lost with its worker is
tried again alone, so that none is blamed for another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import LedgerError, StoreDamaged, WorkerLost
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.engines import Engine, NotTheSame, TaskFailed, TaskLost, Unfit
from ratings_ledger.projections.cluster.objects import Objects, why
from ratings_ledger.projections.cluster.proofs import Proof
from ratings_ledger.projections.cluster.tasks import ONE_PLACE, perform, places_of

TRIES = 3
WAITED_SECONDS = 1.0
# a task is given to a second worker when it takes so many times as long as the longest one that is done, and at least
# so many seconds
TIMES_AS_LONG, SLOW_SECONDS = 4, 60
NO_WORKERS_SECONDS = 60
WIDTH_TURNS = 50  # so often, while tasks end, it is looked how many workers there are

logger = logging.getLogger(__name__)

ReportProgress = Callable[[str, dict[str, Any]], None]


class Task(NamedTuple):
    """A plan, the object that it leads to, and what it is called if it fails."""

    plan: str
    makes: str
    called: str


class TasksFailed(LedgerError):
    """Some tasks failed again and again; all others are done (exit code 3)."""

    reason = "worker-lost"


class Cluster(NamedTuple):
    """What one computation works with.

    proof: what a worker must show before it works
    own:   the names of the objects that are of use for this computation only
    tell:  takes the stage that it is at, and how far that is
    """

    engine: Engine
    objects: Objects
    proof: Proof
    own: set[str]
    tell: ReportProgress = lambda stage, numbers: None


def farm(
    cluster: Cluster, stage: str, tasks: Sequence[Task], prepare: Callable[[Task], None] = lambda task: None
) -> Iterator[Task]:
    """Yield the tasks, each once its object is there and whole, in the order in which they get done; each is prepared
    before it is handed out.

    Raises `TasksFailed` after all others are done, `WorkerLost` if there are no workers or they are unfit,
    `StoreDamaged` if two of them differ.
    """
    work = _Work(cluster, tasks, prepare)
    for task in tasks:
        if _is_whole(cluster.objects, task.makes):
            work.done.add(task)
            yield task
    work.put_plans()
    turns, ended = 0, dict[Any, Exception | None]()
    try:
        while len(work.done) + len(work.given_up) < len(tasks):
            # which an engine elsewhere has to be asked for
            if not ended or turns % WIDTH_TURNS == 0:
                width = cluster.engine.width()
            turns += 1
            work.hand_out(width)
            cluster.tell(stage, work.numbers())
            ended = work.wait()
            for handle, error in ended.items():
                done = work.end(handle, error)
                if done is not None:
                    yield done
            work.give_again()
    finally:
        for handle in work.running:
            cluster.engine.cancel(handle)
    cluster.tell(stage, work.numbers())
    work.refuse_given_up()


class _Work:
    """Tasks on an engine, and how far they are."""

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], prepare: Callable[[Task], None]) -> None:
        self._cluster, self._tasks, self._prepare = cluster, tasks, prepare
        self._places = dict(zip(tasks, places_of([task.plan for task in tasks]), strict=True))
        self._waiting, self._suspects = list[Task](), list[Task]()
        self._since, self._failures = dict[Any, float](), dict[Task, list[str]]()
        self._retried, self._longest, self._now, self._lonely = 0, 0.0, 0.0, 0.0
        self.running = dict[Any, Task]()
        self.done, self.given_up = set[Task](), list[Task]()
        cluster.own.update(place.plans for place in self._places.values())
        cluster.own.update(task.makes for task in tasks)

    def put_plans(self) -> None:
        """Create the object with all plans, if a task is not done."""
        self._waiting = [task for task in reversed(self._tasks) if task not in self.done]
        if self._waiting:  # all plans are one object, since a place may take tens of milliseconds to create one
            plans = self._places[self._tasks[0]].plans
            self._cluster.objects.create(plans, [task.plan.encode() for task in self._tasks])

    def numbers(self) -> dict[str, int]:
        """Return how far they are, as progress is told."""
        done, tasks = len(self.done), len(self._tasks)
        left = tasks - done - len(self.given_up)
        return {"tasks_done": done, "tasks": tasks, "retried": self._retried, "left": left}

    def hand_out(self, width: int) -> None:
        """Submit as many tasks as the workers can have; what was lost with a worker comes last, and one at a time.

        Raises `WorkerLost` if there have been no workers for too long.
        """
        while self._waiting and len(self.running) < width:
            self._prepare(self._waiting[-1])
            self._submit(self._waiting.pop())
        if self._suspects and width and not self.running:
            self._prepare(self._suspects[0])
            self._submit(self._suspects.pop(0))
        self._lonely = 0.0 if width else self._lonely + WAITED_SECONDS
        if self._lonely > NO_WORKERS_SECONDS:
            raise WorkerLost(
                f"the engine has had no workers for {NO_WORKERS_SECONDS} s; they end at once where this program is "
                "not installed; what is done is kept"
            )

    def _submit(self, task: Task) -> None:
        cluster = self._cluster
        handle = cluster.engine.submit(perform, cluster.objects.url, cluster.proof, self._places[task])
        self.running[handle], self._since[handle] = task, self._now

    def wait(self) -> dict[Any, Exception | None]:
        """Return what has ended, as soon as something has, at the latest after a while."""
        if self.running:
            ended = self._cluster.engine.wait(self.running, WAITED_SECONDS)
        else:
            time.sleep(WAITED_SECONDS)
            ended = {}
        self._now += 0.0 if ended else WAITED_SECONDS
        return ended

    def end(self, handle: Any, error: Exception | None) -> Task | None:
        """Return the task that ended if it is done now; what failed waits for its next try, or is given up.

        Raises `WorkerLost`, `StoreDamaged`; `DamagedObject` for what it was to read.
        """
        task, objects = self.running.pop(handle), self._cluster.objects
        self._longest = max(self._longest, self._now - self._since.pop(handle))
        if isinstance(error, Unfit):
            raise WorkerLost(str(error)) from None
        if isinstance(error, NotTheSame):
            raise StoreDamaged(f"{error}: a worker's memory or processor is at fault; nothing was promoted") from None
        if task in self.done:
            return None
        # an object that is there counts, whatever became of its worker
        if _is_whole(objects, task.makes):
            self.done.add(task)
            return task
        if error is None and objects.size(task.makes) is None:
            raise WorkerLost(f"what a worker wrote is not seen in {objects.url}; {ONE_PLACE}")
        if isinstance(error, DamagedObject) and error.name != task.makes:
            raise error
        failures = self._failures.setdefault(task, [])
        failures.append(_told(error))
        if task in self.running.values():  # a second worker has it
            return None
        if len(failures) < TRIES:
            self._retried += 1
            (self._suspects if isinstance(error, TaskLost) else self._waiting).insert(0, task)
        else:
            self.given_up.append(task)
        return None

    def give_again(self) -> None:
        """Give a second worker what takes far too long; whoever is first counts."""
        limit, running = max(SLOW_SECONDS, TIMES_AS_LONG * self._longest), [*self.running.values()]
        for handle, task in [*self.running.items()]:
            if task not in self.done and running.count(task) == 1 and self._now - self._since[handle] > limit:
                self._retried += 1
                self._submit(task)

    def refuse_given_up(self) -> None:
        """Raise `TasksFailed` if a task was given up."""
        if not self.given_up:
            return
        named = "; ".join(f"{task.called} ({self._failures[task][-1]})" for task in self.given_up[:TRIES])
        more = len(self.given_up) - TRIES
        raise TasksFailed(
            f"{TRIES} tries were not enough for {named}{f' and {more:,} more' if more > 0 else ''}; the others are "
            "done and kept for the next try"
        )


def _told(error: Exception | None) -> str:
    if isinstance(error, MemoryError):
        return "its worker ran out of memory"
    if isinstance(error, OSError):
        return f"{error.filename}: {why(error)}" if error.filename else why(error)
    return (
        str(error) if isinstance(error, TaskLost | TaskFailed | DamagedObject) else f"{type(error).__name__}: {error}"
    )


def _is_whole(objects: Objects, name: str) -> bool:
    """Report whether an object is there and its footer is right; a damaged one is told and deleted."""
    if objects.size(name) is None:
        return False
    try:
        OpenedObject(objects, name)
    except DamagedObject as problem:
        logger.warning("ratings: %s in %s; it is made again", problem, objects.url)
        objects.delete(name)
        return False
    return True
