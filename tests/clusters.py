"""Provide a cluster in the process of the tests, smaller pieces of a log, and faults of a coordinator.

A task that is submitted to the cluster in this process runs at once, as a worker would run it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from thresholds import set_thresholds

from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster import cluster_work, engines, prepared_log, resources, task_runner
from ratings_ledger.projections.cluster.object_store import OpenedObject, open_object, open_object_store
from ratings_ledger.projections.cluster.resources import Cluster
from ratings_ledger.projections.cluster.segments import read_player_names, to_numbers_name
from ratings_ledger.projections.cluster.worker_checks import (
    CODE_DIGEST,
    WorkerRequirements,
    compute_golden_digest,
    create_nonce,
)
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.computing import BuiltLadder, LadderFailure, compute, list_package_rulesets, plan

SWEEP = Cluster.sweep
# the calls of a coordinator at which a test may kill it
CALLS = {
    "a result": (prepared_log, "read_result"),
    "the promotion": (generations, "promote"),
    "the live generation": (generations, "read_live_generation"),
}
RUN_UNTIL_KILLED = """
import sys, time
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster.resources import open_cluster
with open_cluster(open_ledger(sys.argv[1]), "processes:1", sys.argv[2]):
    print("begun", flush=True)
    time.sleep(60)
"""


class InProcessEngine:
    """An engine that runs a task when it is submitted; it calls `before` with each plan first."""

    def __init__(self, before: Callable[[str], None] = lambda plan: None) -> None:
        self.submitted: list[str] = []
        self._before, self._ended = before, dict[int, Exception | None]()

    def submit(self, function: Callable[..., None], *arguments: Any) -> int:
        self.submitted.append(arguments[-1])
        try:
            self._before(arguments[-1])
            function(*arguments)
            self._ended[len(self.submitted)] = None
        except Exception as error:
            self._ended[len(self.submitted)] = error
        return len(self.submitted)

    def wait(self, handles: Collection[int], seconds: float) -> dict[Any, Exception | None]:
        return {handle: self._ended[handle] for handle in handles}

    def cancel(self, handle: int) -> None:
        pass

    def capacity(self) -> int:
        return 1


@contextmanager
def open_local_cluster(folder: Path, engine: Any = None) -> Iterator[Cluster]:
    """Provide a cluster whose objects are in a folder."""
    open_object.cache_clear()
    objects = open_object_store(str(folder))
    yield Cluster(
        engine or InProcessEngine(),
        objects,
        WorkerRequirements(CODE_DIGEST, create_nonce(objects), compute_golden_digest()),
        set(),
    )


@contextmanager
def use_local_cluster(folder: Path) -> Iterator[None]:
    """Let commands with `--on` use a cluster in this process, whose objects are in a folder."""
    with open_local_cluster(folder) as cluster, pytest.MonkeyPatch.context() as patch:
        for module in (cluster_work, resources):
            patch.setattr(module, "open_cluster", lambda *_: nullcontext(cluster))
        yield


def shrink_pieces(
    monkeypatch: pytest.MonkeyPatch, events: int, games: int = 20, pack: int = 30, window: int | None = None
) -> None:
    """Give even the shortest history several segments, parts and packs, and set the window if it is given."""
    if window is not None:
        set_thresholds(monkeypatch, streamed_games=0, window_games=window)
    set_thresholds(
        monkeypatch, segment_events=events, sealed_page_events=max(1, events // 2), pack_games=pack, part_games=games
    )


def rank_on_cluster(ledger: Ledger, cluster: Cluster, known_at: int | None = None) -> dict[str, Any]:
    """Return the standings that a cluster builds, by ladder, at a position or at the head."""
    if known_at is None:
        with ledger.reading() as connection:
            known_at = head(connection).position
    prepared = prepared_log.prepare_with_retries(ledger, cluster, known_at)
    isolated = list_package_rulesets(prepared.facts)
    with closing(cluster_work.compute_on_cluster(ledger, cluster, prepared, (), (), False, isolated)) as results:
        return _collect_by_ladder(results)


def rank_in_one_process(ledger: Ledger, known_at: int | None = None) -> dict[str, Any]:
    """Return the standings that one process builds from the log, by ladder, at a position or at the head."""
    return rank_in_processes(ledger, 1, known_at)


def rank_in_processes(ledger: Ledger, cores: int, known_at: int | None = None) -> dict[str, Any]:
    """Return the standings that this number of processes builds from the log, by ladder."""
    with ledger.reading() as connection:
        facts = decode(connection, known_at, cached=False)
    ladders = Ladders(facts)
    return _collect_by_ladder(compute(ladders, plan(ladders, isolated=list_package_rulesets(facts)), cores=cores))


def _collect_by_ladder(results: Iterator[BuiltLadder | LadderFailure]) -> dict[str, Any]:
    results_by_ladder: dict[str, Any] = {}
    for result in results:
        assert result.ladder not in results_by_ladder
        results_by_ladder[result.ladder] = result
    return results_by_ladder


def read_capacity(address: str) -> int:
    """Return how many tasks the engine at an address takes at once."""
    with engines.open_engine(address) as engine:
        return engine.capacity()


def use_segment_format(patch: pytest.MonkeyPatch, name: str) -> None:
    """Make a coordinator name segments after another format."""
    patch.setattr(prepared_log, "FORMAT", name)


def read_numbers_object(segment: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the description in the numbers object of a segment, and the players that it names; check its name."""
    numbers = OpenedObject(open_object_store(str(segment.parent)), to_numbers_name(segment.name))
    assert numbers.about.pop("name") == numbers.name
    return numbers.about, [*read_player_names(numbers)]


def start_endless_computation(url: str, objects: Path) -> "subprocess.Popen[str]":
    """Start a process that uses a ledger's segments until it is killed; it prints `begun` when it has opened them."""
    command = [sys.executable, "-c", RUN_UNTIL_KILLED, url, str(objects)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def make_machine_unfit(patch: pytest.MonkeyPatch, problem: str) -> None:
    """Make the check of computed points fail on this machine."""

    def refuse() -> str:
        raise engines.UnfitWorker(problem)

    patch.setattr(resources, "compute_golden_digest", refuse)


def keep_every_object(patch: pytest.MonkeyPatch) -> None:
    """Make a coordinator keep the objects that only its computation used."""
    patch.setattr(Cluster, "sweep", lambda cluster: None)


def sweep_after_rebuild(patch: pytest.MonkeyPatch) -> None:
    """Make a coordinator delete old objects after its rebuild, which `keep_every_object` prevents."""
    patch.setattr(Cluster, "sweep", SWEEP)


def kill_at_call(call: str, after: bool, nth: int = 1) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that makes a coordinator kill itself before or after the nth call of this member of `CALLS`."""
    module, name = CALLS[call]

    def patch_function(patch: pytest.MonkeyPatch) -> None:
        original, calls = getattr(module, name), []

        def call_and_kill(*arguments: Any, **options: Any) -> Any:
            calls.append(None)
            result = original(*arguments, **options) if after or len(calls) < nth else None
            if len(calls) == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        patch.setattr(module, name, call_and_kill)

    return patch_function


def submit_twice(patch: pytest.MonkeyPatch) -> None:
    """Make a coordinator submit every task twice."""
    submit = task_runner._TaskQueue._submit

    def submit_both(*arguments: Any) -> None:
        submit(*arguments)
        submit(*arguments)

    patch.setattr(task_runner._TaskQueue, "_submit", submit_both)


def call_at_submission(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` whenever a coordinator hands a task to Dask."""
    submit = engines.DaskEngine.submit

    def act_and_submit(*arguments: Any) -> Any:
        act()
        return submit(*arguments)

    patch.setattr(engines.DaskEngine, "submit", act_and_submit)
