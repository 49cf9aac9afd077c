"""A cluster within the process of the tests: a submitted task runs at once, as a worker would run it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster import coordinating, packs, segments, tasks
from ratings_ledger.projections.cluster.columnar import open_object
from ratings_ledger.projections.cluster.object_store import open_object_store
from ratings_ledger.projections.cluster.task_runner import Cluster
from ratings_ledger.projections.cluster.worker_checks import CODE, Proof, compute_golden_digest, prove
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored.computing import BuiltLadder, LadderFailure, compute, list_package_rulesets, plan


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
def open_local_cluster(place: Path, engine: Any = None) -> Iterator[Cluster]:
    """Provide a cluster whose objects are in a folder."""
    open_object.cache_clear()
    objects = open_object_store(str(place))
    yield Cluster(engine or InProcessEngine(), objects, Proof(CODE, prove(objects), compute_golden_digest()), set())


def shrink_pieces(
    monkeypatch: pytest.MonkeyPatch, events: int, games: int = 20, pack: int = 30, window: int | None = None
) -> None:
    """Give even the shortest history several segments, parts and packs; and windows of `window` games."""
    if window is not None:
        monkeypatch.setattr(packs, "STREAMED_GAMES", 0)
        monkeypatch.setattr(tasks, "WINDOW_GAMES", window)
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", events)
    monkeypatch.setattr(coordinating, "PAGE_EVENTS", max(1, events // 2))
    monkeypatch.setattr(coordinating, "PACK_GAMES", pack)
    monkeypatch.setattr(segments, "PART_GAMES", games)


def rank_on_cluster(ledger: Ledger, cluster: Cluster, position: int, changes: bool = False) -> dict[str, Any]:
    """Return what a cluster builds for each ladder at a position."""
    prepared = coordinating.prepare_with_retries(ledger, cluster, position)
    isolated = list_package_rulesets(prepared.facts)
    with closing(coordinating.compute_on_cluster(ledger, cluster, prepared, (), (), changes, isolated)) as results:
        return _collect_by_ladder(results)


def rank_in_one_process(facts: Any) -> dict[str, Any]:
    """Return what one process builds for each ladder from the same facts."""
    ladders = Ladders(facts)
    return _collect_by_ladder(compute(ladders, plan(ladders, isolated=list_package_rulesets(facts)), cores=1))


def _collect_by_ladder(results: Iterator[BuiltLadder | LadderFailure]) -> dict[str, Any]:
    results_by_ladder: dict[str, Any] = {}
    for result in results:
        assert result.ladder not in results_by_ladder
        results_by_ladder[result.ladder] = result
    return results_by_ladder
