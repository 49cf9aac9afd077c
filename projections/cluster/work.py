"""The work of replaying all ladders as the workers of an engine do it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from typing import Any

from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster.coordinating import cluster_for, computed, prepared_for, sweep
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.stored.computing import ComputePlan, built, built_with_changes, compute, of_packages
from ratings_ledger.projections.stored.rule_processes import guarded
from ratings_ledger.projections.stored.work import Results, Work, WorkAt

Tell = Callable[[str, dict[str, Any]], None]


def work_on_at(
    ledger: Ledger, on: str, segments: str | None, rule_seconds: float, tell: Tell = lambda what, numbers: None
) -> WorkAt:
    """Return the work at a position, as `work_on` has it."""
    return lambda connection, position: work_on(ledger, on, segments, position, rule_seconds, tell)


@contextmanager
def work_on(
    ledger: Ledger, on: str, segments: str | None, position: int, rule_seconds: float, tell: Tell
) -> Iterator[Work]:
    """Provide the work up to a position as the workers of an engine do it, who share the place `segments`.

    The rules of packages run here, in processes of their own.

    Raises `BadArgument`, `StoreUnavailable`, `TasksFailed`, `WorkerLost`, `StoreDamaged`, as `compute` does.
    """
    with cluster_for(ledger, on, segments) as cluster:
        prepared = prepared_for(ledger, cluster, position, lambda numbers: tell("sealing", numbers))
        apart = of_packages(prepared.facts)

        def results(asked: Collection[str], stored: Collection[str], changes: bool) -> Results:
            told = computed(
                ledger, cluster, prepared, asked, stored, changes, apart, lambda numbers: tell("replaying", numbers)
            )  # fmt: skip
            with closing(told):
                yield from told
            if apart:
                with ledger.reading() as connection:
                    ladders = Ladders(decode(connection, position, cached=False))
                one, named = built_with_changes if changes else built, {parse_name(name).ruleset_id for name in asked}
                own = ComputePlan({}, [], [name for name in apart if not asked or name in named])
                guard = guarded(ladders, asked, stored, one, rule_seconds)
                with closing(compute(ladders, own, one, apart=guard, changes=changes)) as packages:
                    yield from packages

        def ladders_of(asked: Collection[str], stored: Collection[str], changes: bool) -> tuple[int, Results]:
            return 0, results(asked, stored, changes)

        yield Work(prepared.facts, prepared.games, ladders_of)
        # now that it is promoted: after a failure the next try goes on from here
        sweep(cluster)
