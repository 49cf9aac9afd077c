"""The coordinator's loop: tasks are handed out, and done when their object is there.

What is there already is not done again. A task that fails is tried again a few times, another worker is given one that
takes far too long, and one that always fails is named once all others are done. One that was lost with its worker is
tried again alone, so that none is blamed for another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import LedgerError, StoreDamaged, WorkerLost
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.engines import Engine, NotTheSame, TaskFailed, TaskLost, Unfit
from ratings_ledger.projections.cluster.objects import Objects, why
from ratings_ledger.projections.cluster.proofs import Proof
from ratings_ledger.projections.cluster.tasks import ONE_PLACE, PlanRange, perform, places_of

TRIES = 3
WAITED_SECONDS = 1.0
# a task is given to a second worker when it takes so many times as long as the longest one that is done, and at least
# so many seconds
TIMES_AS_LONG, SLOW_SECONDS = 4, 60
NO_WORKERS_SECONDS = 60
WIDTH_TURNS = 50  # so often, while tasks end, it is looked how many workers there are

logger = logging.getLogger(__name__)

Tell = Callable[[str, dict[str, Any]], None]


class Task(NamedTuple):
    """A plan, the object that it leads to, and what it is called if it fails."""

    plan: str
    makes: str
    called: str


class TasksFailed(LedgerError):
    """Some tasks failed again and again; all others are done (exit code 3)."""

    reason = "worker-lost"


@dataclass
class _State:
    """How far the tasks are."""

    waiting: list[Task]
    places: dict[Task, PlanRange]
    running: dict[Any, Task] = field(default_factory=dict)
    since: dict[Any, float] = field(default_factory=dict)
    suspects: list[Task] = field(default_factory=list)
    failures: dict[Task, list[str]] = field(default_factory=dict)
    given_up: list[Task] = field(default_factory=list)
    done: set[Task] = field(default_factory=set)
    retried: int = 0
    longest: float = 0.0
    now: float = 0.0


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
    tell: Tell = lambda stage, numbers: None


def farm(
    cluster: Cluster, stage: str, tasks: Sequence[Task], prepare: Callable[[Task], None] = lambda task: None
) -> Iterator[Task]:
    """Yield the tasks, each once its object is there and whole, in the order in which they get done; each is prepared
    before it is handed out.

    Raises `TasksFailed` after all others are done, `WorkerLost` if there are no workers or they are unfit,
    `StoreDamaged` if two of them differ.
    """
    engine, objects = cluster.engine, cluster.objects
    places = places_of([task.plan for task in tasks])
    state = _State([], dict(zip(tasks, places, strict=True)))
    cluster.own.update(place.plans for place in places)
    cluster.own.update(task.makes for task in tasks)
    for task in tasks:
        if _is_whole(objects, task.makes):
            state.done.add(task)
            yield task
        else:
            state.waiting.append(task)
    if state.waiting:  # all plans are one object, since a place may take tens of milliseconds to create one
        objects.create(places[0].plans, [task.plan.encode() for task in tasks])
    state.waiting.reverse()
    lonely, width, turns, ended = 0.0, 0, 0, dict[Any, Exception | None]()
    try:
        while len(state.done) + len(state.given_up) < len(tasks):
            # which an engine elsewhere has to be asked for
            if not ended or turns % WIDTH_TURNS == 0:
                width = engine.width()
            turns += 1
            _hand_out(cluster, state, width, prepare)
            cluster.tell(stage, _numbers(state, len(tasks)))
            lonely = 0.0 if width else lonely + WAITED_SECONDS
            if lonely > NO_WORKERS_SECONDS:
                raise WorkerLost(
                    f"the engine has had no workers for {NO_WORKERS_SECONDS} s; they end at once where this program is "
                    "not installed; what is done is kept"
                )
            if not state.running:
                time.sleep(WAITED_SECONDS)
            ended = engine.wait(state.running, WAITED_SECONDS) if state.running else {}
            state.now += 0.0 if ended else WAITED_SECONDS
            for handle, error in ended.items():
                task = state.running.pop(handle)
                state.longest = max(state.longest, state.now - state.since.pop(handle))
                if task in state.done:
                    _refuse(error)
                elif _ends(objects, state, task, error):
                    yield task
            _give_again(cluster, state)
    finally:
        for handle in state.running:
            engine.cancel(handle)
    cluster.tell(stage, _numbers(state, len(tasks)))
    if state.given_up:
        told = "; ".join(f"{task.called} ({state.failures[task][-1]})" for task in state.given_up[:TRIES])
        more = len(state.given_up) - TRIES
        raise TasksFailed(
            f"{TRIES} tries were not enough for {told}{f' and {more:,} more' if more > 0 else ''}; the others are done "
            "and kept for the next try"
        )


def _hand_out(cluster: Cluster, state: _State, width: int, prepare: Callable[[Task], None]) -> None:
    """Submit as many tasks as the workers can have; what was lost with a worker comes last, and one at a time."""
    while state.waiting and len(state.running) < width:
        prepare(state.waiting[-1])
        _submit(cluster, state, state.waiting.pop())
    if state.suspects and width and not state.running:
        prepare(state.suspects[0])
        _submit(cluster, state, state.suspects.pop(0))


def _numbers(state: _State, tasks: int) -> dict[str, int]:
    return {
        "tasks_done": len(state.done), "tasks": tasks, "retried": state.retried,
        "left": tasks - len(state.done) - len(state.given_up),
    }  # fmt: skip


def _submit(cluster: Cluster, state: _State, task: Task) -> None:
    handle = cluster.engine.submit(perform, cluster.objects.url, cluster.proof, state.places[task])
    state.running[handle], state.since[handle] = task, state.now


def _refuse(error: Exception | None) -> None:
    """Raises what an error says about all tasks."""
    if isinstance(error, Unfit):
        raise WorkerLost(str(error)) from None
    if isinstance(error, NotTheSame):
        raise StoreDamaged(f"{error}: a worker's memory or processor is at fault; nothing was promoted") from None


def _ends(objects: Objects, state: _State, task: Task, error: Exception | None) -> bool:
    """Report whether a task is done; what failed waits for its next try, or is given up.

    Raises `WorkerLost`, `StoreDamaged`; `DamagedObject` for what it was to read.
    """
    _refuse(error)
    # an object that is there counts, whatever became of its worker
    if _is_whole(objects, task.makes):
        state.done.add(task)
        return True
    if error is None and objects.size(task.makes) is None:
        raise WorkerLost(f"what a worker wrote is not seen in {objects.url}; {ONE_PLACE}")
    if isinstance(error, DamagedObject) and error.name != task.makes:
        raise error
    failures = state.failures.setdefault(task, [])
    failures.append(_told(error))
    if task in state.running.values():  # a second worker has it
        return False
    if len(failures) < TRIES:
        state.retried += 1
        (state.suspects if isinstance(error, TaskLost) else state.waiting).insert(0, task)
    else:
        state.given_up.append(task)
    return False


def _told(error: Exception | None) -> str:
    if isinstance(error, MemoryError):
        return "its worker ran out of memory"
    if isinstance(error, OSError):
        return f"{error.filename}: {why(error)}" if error.filename else why(error)
    return (
        str(error) if isinstance(error, TaskLost | TaskFailed | DamagedObject) else f"{type(error).__name__}: {error}"
    )


def _give_again(cluster: Cluster, state: _State) -> None:
    """Give a second worker what takes far too long; whoever is first counts."""
    limit = max(SLOW_SECONDS, TIMES_AS_LONG * state.longest)
    for handle, task in [*state.running.items()]:
        twins = sum(other == task for other in state.running.values())
        if task not in state.done and twins == 1 and state.now - state.since[handle] > limit:
            state.retried += 1
            _submit(cluster, state, task)


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
