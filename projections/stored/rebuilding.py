"""Rebuild ladders: replay them, store them as a new generation, and promote it.

Appends continue meanwhile, because a rebuild covers the log up to the position at which it started reading. Ladders
that no later event can have changed are not replayed; their rows are reused.
"""

import json
import logging
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import head, read_chain_hash, read_records_at
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import RunOutcome, list_runs, record_run
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_to_store, read_rulesets_at
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.queries.coordinates import UnknownLadder, find_versions
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Result
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.building import HistoryPlan, NewGeneration, ReportProgress, build_generation
from ratings_ledger.projections.stored.changed_ladders import find_changed_ladders
from ratings_ledger.projections.stored.computing import (
    BuiltLadder,
    LadderFailure,
    is_named,
)
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, preload_rules
from ratings_ledger.projections.stored.work import Results, Work, WorkAt, create_local_work

logger = logging.getLogger(__name__)

# the live generation and the previous generation, which readers may still be using
GENERATIONS_KEPT = 2
LADDERS_PER_REPORT = 500
# the numbers of failures named in the message of a run and stored with the run, and the length of a stored message
NAMED_MAX, STORED_FAILURES_MAX, MESSAGE_CHARACTERS_MAX = 5, 500, 300


class HistoryMissing(ValueError):
    """A rebuild of some ladders is to keep a history, but the other ladders have none."""


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """The options of a rebuild.

    check:        whether to replay everything a second time, interpreted and without the cache, before promoting
    keep:         the number of generations to keep, including the live one
    keep_history: whether to store changes and games for SQL; None: as in the last rebuild
    rule_seconds: the processor time that a third-party rule may take for a ladder, in a separate process
    cores:        the number of processes that replay; None: one per processor
    """

    check: bool = False
    keep: int = GENERATIONS_KEPT
    keep_history: bool | None = None
    rule_seconds: float = RULE_SECONDS
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class RebuildResult(Result):
    """The result of a rebuild.

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


class _RebuildPlan(NamedTuple):
    """The plan of a rebuild: the inputs, the ladders to build, and the ladders to reuse.

    requested: the requested ladders and rulesets; all if empty
    options:   the options of the rebuild
    facts:     the facts at the position of the rebuild
    work:      the replay
    live:      the row of the live generation, if there is one
    stored:    the ladder rows of the live generation
    unchanged: the rows of `stored` that no event can have changed
    changed:   the ladders and rulesets that events may have changed; None if all ladders are to be replayed
    history:   the plan for the SQL history
    """

    requested: Collection[str]
    options: RebuildOptions
    facts: Facts
    work: Work
    live: Row[Any] | None
    stored: list[Row[Any]]
    unchanged: list[Row[Any]]
    changed: set[str] | None
    history: HistoryPlan

    @property
    def covers(self) -> tuple[int, bytes]:
        """Return the position and chain hash up to which all ladders of the generation are rebuilt."""
        if not self.requested:
            return self.facts.position, self.facts.chain_hash
        return (0, ZERO) if self.live is None else (self.live.position, bytes(self.live.chain_hash))

    @property
    def requested_stored(self) -> list[str]:
        """Return the requested ladders that are stored; ladders that lost all games are stored as empty ladders."""
        return [row.ladder for row in self.stored if is_named(row.ladder, self.requested)]


def rebuild(
    ledger: Ledger,
    clock: Clock,
    requested: Collection[str] = (),
    options: RebuildOptions = RebuildOptions(),
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
        AlreadyRunning: Another rebuild is running.
        HistoryMissing: A history was requested for some ladders, but the other ladders have none.
        LockLost: Another rebuild took over the lock.
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
            plan = _plan_rebuild(stack, ledger, requested, options, work_at)
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
                _write_games(ledger, generation.history_writer, plan)
            differing = _check_by_replay(ledger, generation, plan, failures, report_progress) if options.check else []
            if not differing:
                report_progress("promoting", {"generation": generation.number})
                generation.promote(None if live is None else live.generation)
        result = _build_result(ledger, generation, plan, failures, stale_ladders, differing)
        _record_outcome(run, result, is_whole=not requested)
    return result


def _plan_rebuild(
    stack: ExitStack, ledger: Ledger, requested: Collection[str], options: RebuildOptions, work_at: WorkAt | None
) -> _RebuildPlan:
    """Read the log and the stored ladders, and plan the rebuild. Raises `UnknownLadder`, `HistoryMissing`."""
    with ledger.reading() as connection:
        live, pointer = generations.read_live_generation(connection), sql_history.read_history_generation(connection)
        source = pointer if live is not None and live.generation == pointer else None
        position = head(connection).position
        _check_names(connection, position, requested)
        if requested and options.keep_history and source is None:
            raise HistoryMissing("the other ladders have no history; first run: ratings rebuild --history")
        is_kept = pointer is not None if options.keep_history is None else options.keep_history
        # a rebuild of some ladders cannot start a history, and must not withdraw an earlier request for a history
        history = HistoryPlan(
            is_kept=is_kept and (source is not None or not requested),
            source=source,
            writes_all=options.check,
            fallback=pointer if is_kept else None,
        )
        remote_work = None if work_at is None else stack.enter_context(work_at(connection, position))
        facts = decode_to_store(connection) if remote_work is None else remote_work.facts
        stored = [] if live is None else generations.list_ladder_rows(connection, live.generation)
        changed = None
        if not requested and remote_work is None and live is not None and not (history.is_kept and source is None):
            changed = _find_changed_names(ledger, connection, facts, live, stored)
    unchanged = [] if changed is None else [row for row in stored if not is_named(row.ladder, changed)]
    # for a check, replay from the first game, without cached traces
    work = remote_work or create_local_work(
        replace(facts, cache=None) if options.check else facts, options.rule_seconds, options.cores
    )
    changed = None if options.check else changed
    return _RebuildPlan(requested, options, facts, work, live, stored, unchanged, changed, history)


def _find_changed_names(
    ledger: Ledger, connection: Connection, facts: Facts, live: Row[Any], stored: Sequence[Row[Any]]
) -> set[str] | None:
    """Return the ladders and rulesets that may differ from the live generation; None if this cannot be known.

    It can be known only if this version of the program built the live generation from the history of this log.
    """
    runs = list_runs(ledger, connection, now=0)  # only finished runs have details
    builds = [run for run in runs if run.kind == "rebuild" and run.details.get("generation") == live.generation]
    if not builds or builds[0].details.get("program") != program_digest():
        return None
    try:
        chain_hash, _ = generations.read_stored_head(live)
    except StoreDamaged:
        return None
    if not 0 < live.position <= facts.position or read_chain_hash(connection, live.position) != chain_hash:
        return None
    changed = find_changed_ladders(connection, facts, live.position)
    if changed is None:
        return None
    # also rebuild ladders that are empty, have lost rows, or failed in an earlier rebuild
    to_rebuild = {*generations.find_incomplete_ladders(connection, live.generation)}
    to_rebuild |= {row.ladder for row in stored if row.position != live.position}
    return changed | to_rebuild | {failure["ladder"] for failure in builds[0].details.get("failed", [])}


def _write_ladders(
    generation: NewGeneration, plan: _RebuildPlan, report_progress: ReportProgress
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


def _take_over_ladders(generation: NewGeneration, plan: _RebuildPlan, failures: Sequence[LadderFailure]) -> list[str]:
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
    # a rebuild of some ladders reuses the stored games, because games, too, are as of the last full rebuild
    generation.take_over_stale(stale_rows, games=bool(plan.requested))
    return [row.ladder for row in stale_rows]


def _write_games(ledger: Ledger, writer: sql_history.HistoryWriter, plan: _RebuildPlan) -> None:
    """Store the current games. Decode them again if workers hold the games, or if a check must not use the cache."""
    facts = plan.facts
    has_all_games = len(facts.first_position) == plan.work.games and not plan.options.check
    with ledger.reading() as connection:
        games = facts if has_all_games else decode(connection, facts.position, cached=False)
        sql_history.write_games(writer, connection, games)


def _check_by_replay(
    ledger: Ledger,
    generation: NewGeneration,
    plan: _RebuildPlan,
    failures: Sequence[LadderFailure],
    report_progress: ReportProgress,
) -> list[str]:
    """Replay everything a second time, and return the ladders whose stored standings differ.

    Log a warning for each wrong cached trace, which is deleted, and for a cache that may be wrong.
    """
    facts, requested, changes = plan.facts, plan.requested, generation.history_writer is not None
    report_progress("checking", {"ladders_done": 0, "ladders": len(generation.ladders)})
    with compiling.force_interpreted():
        uncached_facts = _decode_uncached(ledger, facts.position)
        second_work = create_local_work(
            uncached_facts, plan.options.rule_seconds, plan.options.cores, _digest_by_definition
        )
        _, results = second_work.compute(requested, plan.requested_stored, changes)
        failed = {failure.ladder for failure in failures}
        differing = _find_differing(ledger, generation, plan, uncached_facts, results, failed, report_progress)
    for ladder, path in find_wrong_traces(facts, uncached_facts):
        logger.warning("ratings: %s differs from a replay of %s; it is deleted", path, ladder)
    if differing and facts.cache is not None:
        logger.warning(
            "ratings: only the first replay used the cache, so the cache may be wrong; to delete it: rm -r %s",
            quote(str(facts.cache)),
        )
    return differing


def _find_differing(
    ledger: Ledger,
    generation: NewGeneration,
    plan: _RebuildPlan,
    facts: Facts,
    results: Results,
    failed: set[str],
    report_progress: ReportProgress,
) -> list[str]:
    """Return the ladders of a generation whose stored rows differ from another replay.

    Log a warning for each reused ladder that differed before this rebuild.
    """
    replayed, differing, failed_again = set[str](), set[str](), set[str]()
    reused_rows = {row.ladder: row for row in plan.unchanged}
    with closing(results), ledger.reading() as connection:
        stored = {row.ladder: row for row in generations.list_ladder_rows(connection, generation.number)}
        parts = sql_history.list_parts(connection, generation.number) if generation.history_writer else {}
        for number, result in enumerate(results, 1):
            if isinstance(result, LadderFailure):
                failed_again.add(result.ladder)
                continue
            replayed.add(result.ladder)
            if (row := reused_rows.get(result.ladder)) and any(
                generations.describe_standing_differences(connection, row, result)
            ):
                logger.warning(
                    "ratings: the stored standings of %s differ from a replay; they are replaced", result.ladder
                )
            if result.ladder in stored and (
                any(generations.describe_standing_differences(connection, stored[result.ladder], result))
                or (
                    generation.history_writer
                    and sql_history.find_change_difference(connection, parts.get(result.ladder, []), result)
                )
            ):
                differing.add(result.ladder)
            if number % LADDERS_PER_REPORT == 0:
                report_progress("checking", {"ladders_done": number, "ladders": len(generation.ladders)})
        if sql_history.GAMES in parts and sql_history.find_game_difference(connection, parts[sql_history.GAMES], facts):
            differing.add("live_games")
    return sorted(differing | (generation.ladders ^ replayed) | (failed ^ failed_again))


def _build_result(
    ledger: Ledger,
    generation: NewGeneration,
    plan: _RebuildPlan,
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


def _check_names(connection: Connection, position: int, requested: Collection[str]) -> None:
    """Raise `UnknownLadder` for a name that is neither a ruleset nor a possible ladder of a ruleset."""
    facts = read_rulesets_at(connection, position)
    for name in requested:
        ruleset_ids = facts.rulesets.keys() | facts.unusable.keys()
        if name not in ruleset_ids and parse_name(name).ruleset_id not in facts.unusable:
            find_versions(facts, name)


def _decode_uncached(ledger: Ledger, position: int) -> Facts:
    """Decode all facts at a position from the log, without the cache."""
    with ledger.reading() as connection:
        return decode(connection, position, cached=False)


def _digest_by_definition(ranking: Ranking) -> str:
    return compute_digest(ranking.ruleset, ranking.json_rows())
