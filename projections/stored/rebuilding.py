"""`rebuild`: all ladders, or some, are replayed and stored as a new generation, which is then promoted.

Appends continue meanwhile: a rebuild covers the log up to the position where it began to read. Ladders that nothing
recorded since can have changed are not replayed: their rows are taken over as they are.
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
from ratings_ledger.ledger.store.log import chain_hash_at, head, read_records_at
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import RunOutcome, all_runs, record_run
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_to_store, read_rulesets_at
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ranking, find_versions
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Result
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.building import HistoryPlan, NewGeneration, Tell, building
from ratings_ledger.projections.stored.changed_ladders import changed_since
from ratings_ledger.projections.stored.computing import (
    Built,
    LadderFailure,
    is_named,
)
from ratings_ledger.projections.stored.rebuild_lock import only_one
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, try_to_load
from ratings_ledger.projections.stored.work import Results, Work, WorkAt, work_here

logger = logging.getLogger(__name__)

# the live generation and the one before it, which somebody may still be reading
KEPT = 2
TOLD_LADDERS = 500
# the number of failures named in the message of a run, and stored with it
NAMED_MAX, TOLD_FAILURES, TOLD_CHARACTERS = 5, 500, 300


class HistoryMissing(ValueError):
    """The history of some ladders is asked for while that of the others is not kept."""


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """How to rebuild.

    check:        whether everything is replayed a second time, the plainest way, before it is promoted
    keep:         how many generations stay, including the live one
    keep_history: whether changes and games are kept for SQL; None: as last time
    rule_seconds: how long the rule of a package may take for each ladder, which it computes in a process of its own
    cores:        how many processes replay; None: one per processor
    """

    check: bool = False
    keep: int = KEPT
    keep_history: bool | None = None
    rule_seconds: float = RULE_SECONDS
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class Rebuilt(Result):
    """What a rebuild made. `unchanged` ladders are as they were; for `differing` ones a second replay gave other
    standings than are stored, so nothing was promoted. `left_out` are the positions of events that do not count, with
    the reasons in `why_left_out`. `history` says whether changes and games are kept for SQL; `changes` is how many
    changes the `ladders` have. `failed_games` are the games at which rules failed, by position; of what is `not_stored`
    there are no earlier standings that could stay.
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


class _Order(NamedTuple):
    """What is to be rebuilt, and from what.

    asked:     the requested ladders and rulesets; all if empty
    facts:     of the log up to its position
    work:      what there is to replay
    live:      the row of the live generation, if there is one, and `stored` those of its ladders
    unchanged: the rows of `stored` that nothing can have changed since
    changed:   the other ladders and rulesets; None if all are to be replayed
    history:   what becomes of the history for SQL
    """

    asked: Collection[str]
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
        """Return the position of the generation and its chain hash: those of what was not requested."""
        if not self.asked:
            return self.facts.position, self.facts.chain_hash
        return (0, ZERO) if self.live is None else (self.live.position, bytes(self.live.chain_hash))

    @property
    def named(self) -> list[str]:
        """Return the stored ladders that were asked for: one that no longer has games is stored as it is now, empty."""
        return [row.ladder for row in self.stored if is_named(row.ladder, self.asked)]


def rebuild(
    ledger: Ledger,
    clock: Clock,
    asked: Collection[str] = (),
    options: RebuildOptions = RebuildOptions(),
    *,
    tell: Tell = lambda what, numbers: None,
    at: WorkAt | None = None,
) -> Rebuilt:
    """Build and promote a generation of the requested ladders and rulesets (default: all) at the head.

    Of all ladders, those that cannot have changed since the live generation keep their rows; with names, the other
    ladders stay as they were. It leaves a run. The work is that `at` the head, by default done here.
    Raises `AlreadyRunning`, `HistoryMissing`, `LockLost`, `StoreUnavailable`, `UnknownLadder`, `WorkerLost`.
    """
    with ExitStack() as stack:
        lock = stack.enter_context(only_one(ledger))
        run = stack.enter_context(record_run(ledger, "rebuild", clock))
        stack.enter_context(ledger.translate_errors("rebuilder"))
        tell("reading", {})
        try_to_load(ledger, options.rule_seconds)
        try:
            order = _read_order(stack, ledger, asked, options, at)
        except (UnknownLadder, HistoryMissing):
            run.no_trace = True
            raise
        facts, live = order.facts, order.live
        run.position, run.details = facts.position, {"asked": list(asked)} | ({"check": True} if options.check else {})
        with building(lock, facts, clock, order.history, covers=order.covers, keep=options.keep) as generation:
            numbers = {"position": facts.position, "games": order.work.games}
            tell("planning", {"generation": generation.number} | numbers)
            failures = _write_ladders(generation, order, tell)
            left = _take_over(generation, order, failures)
            if generation.keeping is not None and not asked:
                tell("games", {"games": order.work.games})
                _write_games(ledger, generation.keeping, order)
            differing = _check(ledger, generation, order, failures, tell) if options.check else []
            if not differing:
                tell("promoting", {"generation": generation.number})
                generation.promote(None if live is None else live.generation)
        done = _outcome(ledger, generation, order, failures, left, differing)
        _record_outcome(run, done, is_whole=not asked)
    return done


def _read_order(
    stack: ExitStack, ledger: Ledger, asked: Collection[str], options: RebuildOptions, at: WorkAt | None
) -> _Order:
    """Read the log and what is stored. Raises `UnknownLadder`, `HistoryMissing`."""
    with ledger.reading() as connection:
        live, pointer = generations.live(connection), sql_history.pointer(connection)
        source = pointer if live is not None and live.generation == pointer else None
        position = head(connection).position
        _refuse_unknown(connection, position, asked)
        if asked and options.keep_history and source is None:
            raise HistoryMissing("the history of all other ladders is not kept; first: ratings rebuild --history")
        is_kept = pointer is not None if options.keep_history is None else options.keep_history
        # a history that is wanted, but waits for the next full rebuild, is still wanted
        history = HistoryPlan(
            is_kept and (source is not None or not asked), source, options.check, pointer if is_kept else None
        )
        elsewhere = None if at is None else stack.enter_context(at(connection, position))
        facts = decode_to_store(connection) if elsewhere is None else elsewhere.facts
        stored = [] if live is None else generations.ladders_of(connection, live.generation)
        changed = None
        if not asked and elsewhere is None and live is not None and not (history.is_kept and source is None):
            changed = _find_changed(ledger, connection, facts, live, stored)
    unchanged = [] if changed is None else [row for row in stored if not is_named(row.ladder, changed)]
    # what is checked comes from the first game on
    work = elsewhere or work_here(
        replace(facts, cache=None) if options.check else facts, options.rule_seconds, options.cores
    )
    changed = None if options.check else changed
    return _Order(asked, options, facts, work, live, stored, unchanged, changed, history)


def _find_changed(
    ledger: Ledger, connection: Connection, facts: Facts, live: Row[Any], stored: Sequence[Row[Any]]
) -> set[str] | None:
    """Return which ladders and rulesets may be other than in the live generation; None if nothing is known about that.

    That takes a full rebuild by this very program, in a history that the log contains.
    """
    runs = all_runs(ledger, connection, now=0)  # only what has ended has details
    built_by = [run for run in runs if run.kind == "rebuild" and run.details.get("generation") == live.generation]
    if not built_by or built_by[0].details.get("program") != program_digest():
        return None
    try:
        chain_hash, _ = generations.stored_head(live)
    except StoreDamaged:
        return None
    if not 0 < live.position <= facts.position or chain_hash_at(connection, live.position) != chain_hash:
        return None
    changed = changed_since(connection, facts, live.position)
    if changed is None:
        return None
    # an empty ladder disappears, lost rows are replaced, and what failed may work by now
    again = {*generations.incomplete_ladders(connection, live.generation)}
    again |= {row.ladder for row in stored if row.position != live.position}
    return changed | again | {failure["ladder"] for failure in built_by[0].details.get("failed", [])}


def _write_ladders(generation: NewGeneration, order: _Order, tell: Tell) -> list[LadderFailure]:
    """Compute and store the requested ladders, or those that may have changed; returns what could not be built."""
    known, results = 0, (result for result in list[Built | LadderFailure]())
    if order.changed != set():
        names = order.asked or order.changed or ()
        known, results = order.work.compute(names, order.named, order.history.is_kept)
    failures: list[LadderFailure] = []

    def report(ladders: int = known) -> None:
        numbers = {"ladders_done": len(generation.ladders), "ladders": ladders, "standings": generation.rows}
        tell("building", numbers | {"failures": len(failures)})

    report()
    with closing(results):
        for result in results:
            if isinstance(result, LadderFailure):
                failures.append(result)
            elif generation.write(result):
                report()
    generation.flush()
    report(max(known, len(generation.ladders) + len(failures)))
    return sorted(failures)


def _take_over(generation: NewGeneration, order: _Order, failures: Sequence[LadderFailure]) -> list[str]:
    """Take over what was not built of the live generation; returns the ladders that are as old as they were."""
    if order.changed is not None:
        generation.renew(order.unchanged)
    failed = {failure.ladder for failure in failures}
    left = [
        row
        for row in order.stored
        if row.ladder not in generation.ladders
        and (is_named(row.ladder, failed) or (order.asked and not is_named(row.ladder, order.asked)))
    ]
    # games are those of the last full rebuild, as is a generation's position
    generation.leave(left, games=bool(order.asked))
    return [row.ladder for row in left]


def _write_games(ledger: Ledger, keeping: sql_history.Keeping, order: _Order) -> None:
    """Keep the games; workers elsewhere do not leave them here, and what is checked does not come from the cache."""
    facts = order.facts
    is_whole = len(facts.first_position) == order.work.games and not order.options.check
    with ledger.reading() as connection:
        games = facts if is_whole else decode(connection, facts.position, cached=False)
        sql_history.write_games(keeping, connection, games)


def _check(
    ledger: Ledger, generation: NewGeneration, order: _Order, failures: Sequence[LadderFailure], tell: Tell
) -> list[str]:
    """Replay everything a second time, and return the ladders that are stored otherwise.

    A warning names those that were stored otherwise before, though nothing can have changed them.
    """
    facts, asked, changes = order.facts, order.asked, generation.keeping is not None
    tell("checking", {"ladders_done": 0, "ladders": len(generation.ladders)})
    with compiling.interpreting():
        plain = _plainly(ledger, facts.position)
        again = work_here(plain, order.options.rule_seconds, order.options.cores, _digest_by_definition)
        _, results = again.compute(asked, order.named, changes)
        failed = {failure.ladder for failure in failures}
        differing = _differing(ledger, generation, order, plain, results, failed, tell)
    for ladder, path in find_wrong_traces(facts, plain):
        logger.warning("ratings: %s says something else about %s than a replay; it is deleted", path, ladder)
    if differing and facts.cache is not None:
        logger.warning(
            "ratings: the second replay did without the cache, which may be what is wrong; it may be deleted: rm -r %s",
            quote(str(facts.cache)),
        )
    return differing


def _differing(
    ledger: Ledger,
    generation: NewGeneration,
    order: _Order,
    facts: Facts,
    results: Results,
    failed: set[str],
    tell: Tell,
) -> list[str]:
    """Return the ladders of a generation whose rows, as they are stored by now, are not those of another replay."""
    again, differing, failed_again = set[str](), set[str](), set[str]()
    before = {row.ladder: row for row in order.unchanged}
    with closing(results), ledger.reading() as connection:
        stored = {row.ladder: row for row in generations.ladders_of(connection, generation.number)}
        parts = sql_history.kept_parts(connection, generation.number) if generation.keeping else {}
        for number, result in enumerate(results, 1):
            if isinstance(result, LadderFailure):
                failed_again.add(result.ladder)
                continue
            again.add(result.ladder)
            if (row := before.get(result.ladder)) and any(generations.standings_differing(connection, row, result)):
                logger.warning("ratings: %s was not stored as a replay has it; it is replaced", result.ladder)
            if result.ladder in stored and (
                any(generations.standings_differing(connection, stored[result.ladder], result))
                or (generation.keeping and sql_history.differing(connection, parts.get(result.ladder, []), result))
            ):
                differing.add(result.ladder)
            if number % TOLD_LADDERS == 0:
                tell("checking", {"ladders_done": number, "ladders": len(generation.ladders)})
        if sql_history.GAMES in parts and sql_history.games_differing(connection, parts[sql_history.GAMES], facts):
            differing.add("live_games")
    return sorted(differing | (generation.ladders ^ again) | (failed ^ failed_again))


def _outcome(
    ledger: Ledger,
    generation: NewGeneration,
    order: _Order,
    failures: list[LadderFailure],
    left: list[str],
    differing: list[str],
) -> Rebuilt:
    facts, stored = order.facts, {name for ladder in left for name in (ladder, parse_name(ladder).ruleset_id)}
    return Rebuilt(
        generation=generation.number,
        position=facts.position,
        chain_hash=facts.chain_hash.hex(),
        ladders=len(generation.ladders),
        rows=generation.rows,
        games=order.work.games,
        failures=failures,
        unchanged=len(left),
        differing=differing,
        promoted=generation.is_promoted,
        changes=ABSENT if generation.keeping is None else generation.changes,
        left_out=tuple(facts.left_out) or ABSENT,
        history=generation.keeping is not None,
        why_left_out=facts.left_out,
        failed_games=_games_at(ledger, [failure.position for failure in failures]) if failures else {},
        not_stored=frozenset({failure.ladder for failure in failures} - stored),
    )


def _record_outcome(run: RunOutcome, done: Rebuilt, is_whole: bool) -> None:
    """Record in a rebuild's run what was promoted, and which ladders failed, or differ."""
    if done.promoted:
        run.details["generation"] = done.generation
    if done.promoted and is_whole and len(done.failures) <= TOLD_FAILURES:
        # the next rebuild may take over what is stored
        run.details["program"] = program_digest()
    if done.differing:
        run.fail(f"a second replay gives different standings for {_some(done.differing)}; nothing was promoted")
    elif done.failures:
        messages = [f"{failure.ladder} (position {failure.position}: {failure.message})" for failure in done.failures]
        run.fail(f"the rule failed for {_some(messages)}")
        run.details["failed"] = [
            {**failure._asdict(), "message": failure.message[:TOLD_CHARACTERS]}
            for failure in done.failures[:TOLD_FAILURES]
        ]


def _some(names: list[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _games_at(ledger: Ledger, positions: Sequence[int]) -> dict[int, str]:
    """Return the games that some events are about, by position."""
    with ledger.reading() as connection:
        records = read_records_at(connection, positions)
    games = {position: json.loads(record)["data"].get("game_id") for position, record in records.items()}
    return {position: game_id for position, game_id in games.items() if game_id}


def _refuse_unknown(connection: Connection, position: int, asked: Collection[str]) -> None:
    """Raises `UnknownLadder` for anything that names neither a ruleset nor a ladder that a ruleset could have."""
    facts = read_rulesets_at(connection, position)
    for name in asked:
        known = facts.rulesets.keys() | facts.unusable.keys()
        if name not in known and parse_name(name).ruleset_id not in facts.unusable:
            find_versions(facts, name)


def _plainly(ledger: Ledger, position: int) -> Facts:
    """Return all facts at a position, from the log alone."""
    with ledger.reading() as connection:
        return decode(connection, position, cached=False)


def _digest_by_definition(ranking: Ranking) -> str:
    return compute_digest(ranking.ruleset, ranking.json_rows())
