"""Rebuild ladders: replay them, store them as a new generation, and promote it.

Appends continue meanwhile, because a rebuild covers the log up to the position at which it started reading. Ladders
that no later event can have changed are not replayed; their rows are reused.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import RunOutcome, record_run
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Result
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.stored.building import NewGeneration, ReportProgress, build_generation
from ratings_ledger.projections.stored.computing import BuiltLadder, LadderFailure, is_named
from ratings_ledger.projections.stored.rebuild_check import check_by_replay
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rebuild_plan import (
    DEFAULT_OPTIONS,
    HistoryMissing,
    RebuildOptions,
    RebuildPlan,
    plan_rebuild,
)
from ratings_ledger.projections.stored.rule_processes import preload_rules
from ratings_ledger.projections.stored.work import WorkAt

# the numbers of failures named in the message of a run and stored with the run, and the length of a stored message
NAMED_MAX, STORED_FAILURES_MAX, MESSAGE_CHARACTERS_MAX = 5, 500, 300


@dataclass(frozen=True, slots=True)
class RebuildResult(Result):
    """The result of a rebuild.

    ladders:      the number of up-to-date ladders, which have `rows` standings
    unchanged:    the number of stale ladders, which keep their older standings
    differing:    the ladders whose second replay differs; if there are any, nothing was promoted
    changes:      the number of changes in the SQL history of the `ladders`
    left_out:     the positions of events that do not count; `why_left_out` has the reasons
    history:      whether the generation has an SQL history
    failed_games: the games at which rules failed, by position
    not_stored:   the failed ladders without earlier standings
    """

    generation: int
    position: int
    chain_hash: str
    ladders: int
    rows: int
    games: int
    failures: list[LadderFailure]
    unchanged: int
    differing: list[str]
    promoted: bool
    changes: int | Absent
    left_out: tuple[int, ...] | Absent
    history: bool = field(metadata=HIDDEN)
    why_left_out: dict[int, str] = field(metadata=HIDDEN)
    failed_games: dict[int, str] = field(metadata=HIDDEN)
    not_stored: frozenset[str] = field(metadata=HIDDEN)


def rebuild(
    ledger: Ledger,
    clock: Clock,
    requested: Collection[str] = (),
    options: RebuildOptions = DEFAULT_OPTIONS,
    *,
    report_progress: ReportProgress = lambda stage, numbers: None,
    work_at: WorkAt | None = None,
) -> RebuildResult:
    """Build and promote a generation at the head. The rebuild is recorded as a run.

    Args:
        ledger: The opened ledger.
        clock: The source of times.
        requested: The ladders and rulesets to rebuild; all other ladders keep their rows. By default all ladders are
            rebuilt, except ladders that cannot have changed since the live generation, which keep their rows.
        options: The options of the rebuild.
        report_progress: Receives the stage of the rebuild and its numbers.
        work_at: Provides the work at a position; by default, this machine does it.

    Raises:
        AlreadyRunning: Another rebuild, a rollback or an upgrade is running.
        HistoryMissing: A history was requested for some ladders, but the other ladders have none.
        LockLost: Another rebuild took over the lock, or rows of the new generation were changed or deleted.
        StoreUnavailable: The store cannot be written to.
        UnknownLadder: A requested name is neither a ladder nor a ruleset.
        WorkerLost: A process that did part of the work ended unexpectedly.
    """
    with ExitStack() as stack:
        lock = stack.enter_context(hold_rebuild_lock(ledger))
        run = stack.enter_context(record_run(ledger, "rebuild", clock))
        stack.enter_context(ledger.translate_errors("rebuilder"))
        report_progress("reading", {})
        preload_rules(ledger, options.rule_seconds)
        try:
            plan = plan_rebuild(stack, ledger, requested, options, work_at)
        except (UnknownLadder, HistoryMissing):
            run.no_trace = True
            raise
        facts, live = plan.facts, plan.live
        run.position = facts.position
        run.details = {"asked": list(requested)} | ({"check": True} if options.check else {})
        with build_generation(lock, facts, clock, plan.history, covers=plan.covers, keep=options.keep) as generation:
            numbers = {"position": facts.position, "games": plan.work.games}
            report_progress("planning", {"generation": generation.number} | numbers)
            failures = _write_ladders(generation, plan, report_progress)
            stale_ladders = _take_over_ladders(generation, plan, failures)
            if generation.history_writer is not None and not requested:
                report_progress("games", {"games": plan.work.games})
                with ledger.reading() as connection:
                    generation.write_games(connection, plan.load_games(connection))
            differing = check_by_replay(ledger, generation, plan, failures, report_progress) if options.check else []
            if not differing:
                report_progress("promoting", {"generation": generation.number})
                generation.promote(None if live is None else live.generation)
        result = _build_result(ledger, generation, plan, failures, stale_ladders, differing)
        _record_outcome(run, result, is_whole=not requested)
    return result


def _write_ladders(
    generation: NewGeneration, plan: RebuildPlan, report_progress: ReportProgress
) -> list[LadderFailure]:
    """Compute and store the requested ladders, or all ladders that may have changed; return the failures."""
    # an empty generator, for a rebuild that reuses every ladder
    expected_count, results = 0, (result for result in list[BuiltLadder | LadderFailure]())
    if plan.changed != set():
        names = plan.requested or plan.changed or ()
        expected_count, results = plan.work.compute(names, plan.requested_stored, plan.history.is_kept)
    failures: list[LadderFailure] = []

    def report(ladders: int = expected_count) -> None:
        numbers = {"ladders_done": len(generation.ladders), "ladders": ladders, "standings": generation.rows}
        report_progress("building", numbers | {"failures": len(failures)})

    report()
    with closing(results):
        for result in results:
            if isinstance(result, LadderFailure):
                failures.append(result)
            elif generation.write(result):
                report()
    generation.flush()
    report(max(expected_count, len(generation.ladders) + len(failures)))
    return sorted(failures)


def _take_over_ladders(generation: NewGeneration, plan: RebuildPlan, failures: Sequence[LadderFailure]) -> list[str]:
    """Reuse the live generation's ladders that were not built, and return the stale ones."""
    if plan.changed is not None:
        generation.take_over_unchanged(plan.unchanged)
    failed = {failure.ladder for failure in failures}
    stale_rows = [
        row
        for row in plan.stored
        if row.ladder not in generation.ladders
        and (is_named(row.ladder, failed) or (plan.requested and not is_named(row.ladder, plan.requested)))
    ]
    # a rebuild of some ladders reuses the stored games, which stay as of the last full rebuild
    generation.take_over_stale(stale_rows, games=bool(plan.requested))
    return [row.ladder for row in stale_rows]


def _build_result(
    ledger: Ledger,
    generation: NewGeneration,
    plan: RebuildPlan,
    failures: list[LadderFailure],
    stale_ladders: list[str],
    differing: list[str],
) -> RebuildResult:
    facts = plan.facts
    stored_names = {name for ladder in stale_ladders for name in (ladder, parse_name(ladder).ruleset_id)}
    return RebuildResult(
        generation=generation.number,
        position=facts.position,
        chain_hash=facts.chain_hash.hex(),
        ladders=len(generation.ladders),
        rows=generation.rows,
        games=plan.work.games,
        failures=failures,
        unchanged=len(stale_ladders),
        differing=differing,
        promoted=generation.is_promoted,
        changes=ABSENT if generation.history_writer is None else generation.changes,
        left_out=tuple(facts.left_out) or ABSENT,
        history=generation.history_writer is not None,
        why_left_out=facts.left_out,
        failed_games=_find_games(ledger, [failure.position for failure in failures]) if failures else {},
        not_stored=frozenset({failure.ladder for failure in failures} - stored_names),
    )


def _record_outcome(run: RunOutcome, result: RebuildResult, is_whole: bool) -> None:
    """Record in the run the promoted generation, and the ladders that failed or differ."""
    if result.promoted:
        run.details["generation"] = result.generation
    if result.promoted and is_whole and len(result.failures) <= STORED_FAILURES_MAX:
        # the next rebuild may reuse ladders that the same program built
        run.details["program"] = program_digest()
    if result.differing:
        run.fail(f"a second replay gives different standings for {_join_some(result.differing)}; nothing was promoted")
    elif result.failures:
        messages = [f"{failure.ladder} (position {failure.position}: {failure.message})" for failure in result.failures]
        run.fail(f"the rule failed for {_join_some(messages)}")
        run.details["failed"] = [
            {**failure._asdict(), "message": failure.message[:MESSAGE_CHARACTERS_MAX]}
            for failure in result.failures[:STORED_FAILURES_MAX]
        ]


def _join_some(names: list[str]) -> str:
    """Join the first few names, and append the number of the remaining names."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _find_games(ledger: Ledger, positions: Sequence[int]) -> dict[int, str]:
    """Return the ids of the games at these positions, by position, leaving out other events."""
    with ledger.reading() as connection:
        records = read_records_at(connection, positions)
    games = {position: json.loads(record)["data"].get("game_id") for position, record in records.items()}
    return {position: game_id for position, game_id in games.items() if game_id}
