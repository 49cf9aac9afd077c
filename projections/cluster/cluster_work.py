"""Let a cluster do the work of replaying all ladders at a position."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial

from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster.packs import PACK_GAMES, build_packs, find_streamed_ladder
from ratings_ledger.projections.cluster.prepared_log import (
    PreparedLog,
    create_pack_task,
    prepare_with_retries,
    run_pack_tasks,
)
from ratings_ledger.projections.cluster.resources import Cluster, ReportProgress, open_cluster
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.stored.computing import (
    BuiltLadder,
    ComputePlan,
    LadderFailure,
    build_ladder,
    compute,
    list_package_rulesets,
    parse_results,
    plan,
)
from ratings_ledger.projections.stored.rule_processes import isolate
from ratings_ledger.projections.stored.work import Results, Work, WorkAt


def create_cluster_work_at(
    ledger: Ledger,
    on: str,
    segments: str | None,
    rule_seconds: float,
    report_progress: ReportProgress = lambda stage, numbers: None,
) -> WorkAt:
    """Return a function that opens cluster work at a position; see `open_cluster_work`."""
    return lambda connection, position: open_cluster_work(ledger, on, segments, position, rule_seconds, report_progress)


@contextmanager
def open_cluster_work(
    ledger: Ledger, on: str, segments: str | None, position: int, rule_seconds: float, report_progress: ReportProgress
) -> Iterator[Work]:
    """Provide the work at a position. The workers of the engine `on` do it; they share the object store at `segments`.

    Third-party rules run on this machine, in separate processes.

    Raises `BadArgument`, `StoreUnavailable`, `TasksFailed`, `WorkerLost`, `StoreDamaged`.
    """
    with open_cluster(ledger, on, segments, report_progress) as cluster:
        prepared = prepare_with_retries(ledger, cluster, position)
        isolated = list_package_rulesets(prepared.facts)

        def generate_results(requested: Collection[str], stored: Collection[str], with_changes: bool) -> Results:
            with closing(
                compute_on_cluster(ledger, cluster, prepared, requested, stored, with_changes, isolated)
            ) as ladders_of_packs:
                yield from ladders_of_packs
            if isolated:
                with ledger.reading() as connection:
                    ladders = Ladders(decode(connection, position, cached=False))
                build = partial(build_ladder, with_changes=with_changes)
                requested_rulesets = {parse_name(name).ruleset_id for name in requested}
                isolated_plan = ComputePlan(
                    {}, [], [name for name in isolated if not requested or name in requested_rulesets]
                )
                compute_isolated = isolate(ladders, requested, stored, build, rule_seconds)
                with closing(
                    compute(ladders, isolated_plan, build, compute_isolated=compute_isolated, with_changes=with_changes)
                ) as ladders_of_packages:
                    yield from ladders_of_packages

        def compute_ladders(
            requested: Collection[str], stored: Collection[str], with_changes: bool
        ) -> tuple[int, Results]:
            return 0, generate_results(requested, stored, with_changes)

        yield Work(prepared.facts, prepared.games, compute_ladders)
        # only after success, because the next try after a failure reuses the objects
        cluster.sweep()


def compute_on_cluster(
    ledger: Ledger,
    cluster: Cluster,
    prepared: PreparedLog,
    requested: Collection[str],
    stored: Collection[str],
    with_changes: bool,
    isolated: Collection[str],
) -> Generator[BuiltLadder | LadderFailure]:
    """Compute the ladders of a log on a cluster, like `computing.compute`, except for the rulesets in `isolated`.

    Raises the errors of `run_tasks`.
    """
    facts = prepared.facts
    # with all rulesets as isolated, the plan has failures and ruleset ids, but no streams
    planned = plan(Ladders(facts.select_rows(array("q"))), requested, (), [*facts.rulesets])
    yield from planned.failures
    tasks = [
        create_pack_task(
            "replay",
            prepared,
            pack,
            requested=pack.requested,
            stored=pack.stored,
            changes=with_changes,
            streamed=find_streamed_ladder(pack, facts.rulesets[ruleset_id], with_changes),
        )
        for ruleset_id in planned.isolated
        if ruleset_id not in isolated
        for pack in build_packs(facts, ruleset_id, requested, stored, prepared.counts, PACK_GAMES)
    ]
    for result in run_pack_tasks(ledger, cluster, prepared, "replaying", tasks):
        yield from parse_results(result)
