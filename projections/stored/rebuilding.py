"""`rebuild`: all ladders, or some, are replayed and stored as a new generation, which is then promoted.

Appends continue meanwhile: a rebuild covers the log up to the position where it began to read.
"""

import json
import logging
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.events.published_lists import digest_of
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import head, read_records_at
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import RunOutcome, running
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_to_store, rulesets_at
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders, versions_of
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Result
from ratings_ledger.projections.replay.containment import RuleFailure
from ratings_ledger.projections.replay.kept_traces import wrong_traces
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.computing import (
    Built,
    LadderFailure,
    compute,
    is_named,
    ladder_failure,
    of_packages,
    plan,
    stored_row,
)
from ratings_ledger.projections.stored.rebuild_lock import RebuildLock, only_one
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, guarded, try_to_load
from ratings_ledger.projections.stored.sql_history import Keeping
from ratings_ledger.projections.stored.sql_rows import blocks_of
from ratings_ledger.projections.stored.work import Work, WorkAt, work_here

logger = logging.getLogger(__name__)

# the live generation and the one before it, which somebody may still be reading
KEPT = 2
TOLD_LADDERS = 500
# the number of failures named in the message of a run, and stored with it
NAMED_MAX, TOLD_FAILURES, TOLD_CHARACTERS = 5, 500, 300

# how far a rebuild has got: a word, and the numbers that go with it
Tell = Callable[[str, dict[str, Any]], None]


class HistoryMissing(ValueError):
    """The history of some ladders is asked for while that of the others is not kept."""


@dataclass(frozen=True, slots=True)
class Rebuilt(Result):
    """What a rebuild made. `unchanged` ladders are as they were; for `differing` ones a second replay gave other
    standings than are stored, so nothing was promoted. `left_out` are the positions of events that do not count, with
    the reasons in `why_left_out`. `history` says whether changes and games are kept for SQL; `changes` is how many
    changes the ladders have that were built. `failed_games` are the games at which rules failed, by position; of what
    is `not_stored` there are no earlier standings that could stay.
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
    """What is to be rebuilt, and by what means."""

    lock: RebuildLock
    clock: Clock
    asked: Collection[str]
    check: bool
    rule_seconds: float
    cores: int | None
    tell: Tell
    work: Work


class _Kept(NamedTuple):
    """What becomes of the history for SQL: the new generation's if it is kept; the live generation if its own is; the
    generation it belongs to once the new one is promoted.
    """

    keeping: Keeping | None
    before: int | None
    pointer: int | None


def rebuild(
    ledger: Ledger,
    clock: Clock,
    asked: Collection[str] = (),
    *,
    keep: int = KEPT,
    check: bool = False,
    rule_seconds: float = RULE_SECONDS,
    cores: int | None = None,
    keep_history: bool | None = None,
    tell: Tell = lambda what, numbers: None,
    by: str | None = None,
    at: WorkAt | None = None,
) -> Rebuilt:
    """Build and promote a generation of the requested ladders and rulesets (default: all) at the head.

    The other ladders stay as they are. `keep` generations are kept; with `check` everything is first replayed again.
    The rules of packages run in processes of their own, each ladder for at most `rule_seconds`. Changes and games are
    kept for SQL if `keep_history` says so (default: as last time). It leaves a run, `by` the operating system's user if
    nobody else is named. The work is that `at` the head, by default done here, in `cores` processes.
    Raises `AlreadyRunning`, `HistoryMissing`, `LockLost`, `StoreUnavailable`, `UnknownLadder`, `WorkerLost`.
    """
    with ExitStack() as stack:
        lock = stack.enter_context(only_one(ledger))
        run = stack.enter_context(running(ledger, "rebuild", clock, by))
        stack.enter_context(ledger.translated("rebuilder"))
        tell("reading", {})
        try_to_load(ledger, rule_seconds)
        with ledger.reading() as connection:
            before = generations.live(connection)
            pointed = sql_history.pointer(connection)
            # whatever is not computed keeps its history from the live generation, if it has one
            there = before is not None and before.generation == pointed
            position = head(connection).position
            try:
                _refuse_unknown(connection, position, asked)
                if asked and keep_history and not there:
                    raise HistoryMissing(
                        "the history of all other ladders is not kept; first: ratings rebuild --history"
                    )
            except (UnknownLadder, HistoryMissing):
                run.no_trace = True
                raise
            elsewhere = None if at is None else stack.enter_context(at(connection, position))
            facts = decode_to_store(connection) if elsewhere is None else elsewhere.facts
        run.position, run.details = facts.position, {"asked": list(asked)} | ({"check": True} if check else {})
        wanted = pointed is not None if keep_history is None else keep_history
        # a generation has the position of what was not requested
        position, chain_hash = facts.position, facts.chain_hash
        if asked:
            position, chain_hash = (0, ZERO) if before is None else (before.position, bytes(before.chain_hash))
        generation = generations.begin_generation(lock, position, chain_hash, clock)
        sql_history.sweep_history(ledger, generation, building=True)
        keeping = (
            sql_history.begin_keeping(ledger, generation, reuse=not check) if wanted and (there or not asked) else None
        )
        # a history that is wanted, but waits for the next full rebuild, is still wanted
        pointer = generation if keeping else pointed if wanted else None
        # what is checked comes from the first game on
        work = elsewhere or work_here(replace(facts, cache=None) if check else facts, rule_seconds, cores)
        tell("planning", {"generation": generation, "position": facts.position, "games": work.games})
        try:
            order = _Order(lock, clock, asked, check, rule_seconds, cores, tell, work)
            done = _make(order, facts, before, generation, _Kept(keeping, pointed if there else None, pointer))
        except Exception:
            # what was written is no longer of use, and appends may need the room
            with suppress(LedgerError):
                generations.forget_generation(ledger, generation)
                sql_history.sweep_history(ledger, generation)
            raise
        generations.sweep_generations(lock, generation, keep if done.promoted else None)
        sql_history.sweep_history(ledger, generation)
        run.details |= {"generation": generation} if done.promoted else {}
        _tell_failures(run, done)
    return done


def _tell_failures(run: RunOutcome, done: Rebuilt) -> None:
    """Record in a rebuild's run which ladders failed, or differ."""
    if done.differing:
        run.fail(f"a second replay gives different standings for {_some(done.differing)}; nothing was promoted")
    elif done.failures:
        told = [f"{one.ladder} (position {one.position}: {one.message})" for one in done.failures]
        run.fail(f"the rule failed for {_some(told)}")
        failed = [{**one._asdict(), "message": one.message[:TOLD_CHARACTERS]} for one in done.failures[:TOLD_FAILURES]]
        run.details["failed"] = failed


def _some(names: list[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _make(order: _Order, facts: Facts, before: Row[Any] | None, generation: int, kept: _Kept) -> Rebuilt:
    """Build a generation that has begun, and promote it unless a second replay differs."""
    lock, clock, asked, check, rule_seconds, cores, tell, work = order
    ledger, keeping = lock.ledger, kept.keeping
    old = _stored(ledger, before) if asked else []
    # a requested ladder that no longer has games is stored as it is now, empty
    named = [row.ladder for row in old if is_named(row.ladder, asked)]
    known, results = work.compute(asked, named, keeping is not None)
    ladders, rows, failures, changes = _build(ledger, facts, results, known, generation, clock, keeping, tell)
    failed = {failure.ladder for failure in failures}
    failed_games = _games_at(ledger, [failure.position for failure in failures]) if failures else {}
    unchanged = [
        row for row in (old or _stored(ledger, before) if asked or failed else ())
        if row.ladder not in ladders
        and (is_named(row.ladder, failed) or (asked and not is_named(row.ladder, asked)))
    ]  # fmt: skip
    generations.copy_rows(ledger, generation, unchanged)
    if keeping is not None:
        _keep_the_rest(order, keeping, facts, kept.before, [row.ladder for row in unchanged])
    differing: list[str] = []
    if check:
        tell("checking", {"ladders_done": 0, "ladders": len(ladders)})
        with compiling.interpreting():
            again, digested = _plainly(ledger, facts.position), _digested_with_changes if keeping else _digested
            results = compute(
                again, plan(again, asked, named, of_packages(facts)), digested, cores,
                guarded(again, asked, named, digested, rule_seconds), changes=keeping is not None,
            )  # fmt: skip
            differing = _differing(ledger, generation, again.facts, results, ladders, failed, keeping, tell)
        for ladder, path in wrong_traces(facts, again.facts):
            logger.warning("ratings: %s says something else about %s than a replay; it is deleted", path, ladder)
    if differing and facts.cache is not None:
        logger.warning(
            "ratings: the second replay did without the cache, which may be what is wrong; it may be deleted: rm -r %s",
            quote(str(facts.cache)),
        )  # fmt: skip
    if not differing:
        tell("promoting", {"generation": generation})
        sql_history.refuse_short(ledger, generation)
        live = None if before is None else before.generation
        generations.promote(
            lock, generation, clock, live, lambda connection: sql_history.point_to(connection, kept.pointer)
        )
    stored = {name for row in unchanged for name in (row.ladder, parse_name(row.ladder).ruleset_id)}
    return Rebuilt(
        generation, facts.position, facts.chain_hash.hex(), len(ladders), rows, work.games, failures,
        len(unchanged), differing, not differing, ABSENT if keeping is None else changes,
        tuple(facts.left_out) or ABSENT, keeping is not None, facts.left_out, failed_games,
        frozenset(failed - stored),
    )  # fmt: skip


def _games_at(ledger: Ledger, positions: Sequence[int]) -> dict[int, str]:
    """Return the games that some events are about, by position."""
    with ledger.reading() as connection:
        records = read_records_at(connection, positions)
    found = {position: json.loads(record)["data"].get("game_id") for position, record in records.items()}
    return {position: game_id for position, game_id in found.items() if game_id}


def _stored(ledger: Ledger, generation: Row[Any] | None) -> list[Row[Any]]:
    """Return the rows of the ladders of a generation, if there is one."""
    if generation is None:
        return []
    with ledger.reading() as connection:
        return generations.ladders_of(connection, generation.generation)


def _refuse_unknown(connection: Connection, position: int, asked: Collection[str]) -> None:
    """Raises `UnknownLadder` for anything that names neither a ruleset nor a ladder that a ruleset could have."""
    facts = rulesets_at(connection, position)
    for name in asked:
        known = facts.rulesets.keys() | facts.unusable.keys()
        if name not in known and parse_name(name).ruleset_id not in facts.unusable:
            versions_of(facts, name)


def _build(
    ledger: Ledger, facts: Facts, results: Generator[Built | LadderFailure], known: int, generation: int,
    clock: Clock, keeping: Keeping | None, tell: Tell,
) -> tuple[set[str], int, list[LadderFailure], int]:  # fmt: skip
    """Store the results for the ladders, `known` of them known beforehand; returns the ladders, the number of
    standings, what could not be built, and the number of changes that are kept."""
    ladders = set[str]()
    failures: list[LadderFailure] = []
    waiting: list[Built] = []
    rows = waiting_rows = waiting_changes = changes = 0
    numbers = {"ladders_done": 0, "ladders": known, "standings": 0, "failures": 0}
    tell("building", numbers)
    with closing(results):
        for result in results:
            if isinstance(result, LadderFailure):
                failures.append(result)
                continue
            ladders.add(result.ladder)
            waiting.append(result)
            waiting_rows += len(result.rows) + 1
            waiting_changes += sum(len(players) for _, players, _, _ in result.changes or ())
            if waiting_rows + waiting_changes >= generations.TRANSACTION_ROWS:
                generations.write(ledger, facts, generation, waiting, clock())
                changes += sql_history.write_changes(keeping, waiting) if keeping else 0
                rows += waiting_rows - len(waiting)
                waiting, waiting_rows, waiting_changes = [], 0, 0
                tell("building", numbers | {"ladders_done": len(ladders), "standings": rows, "failures": len(failures)})
    generations.write(ledger, facts, generation, waiting, clock())
    changes += sql_history.write_changes(keeping, waiting) if keeping else 0
    rows += waiting_rows - len(waiting)
    done = {"ladders_done": len(ladders), "ladders": max(known, len(ladders) + len(failures))}
    tell("building", numbers | done | {"standings": rows, "failures": len(failures)})
    return ladders, rows, sorted(failures), changes


def _keep_the_rest(order: _Order, keeping: Keeping, facts: Facts, before: int | None, unchanged: list[str]) -> None:
    """Keep the games, and the changes of unchanged ladders as the generation `before` has them.

    Games are those of the last full rebuild, as is a generation's position.
    """
    if before is not None:
        sql_history.copy(keeping, before, [*unchanged, *([sql_history.GAMES] if order.asked else [])])
    if not order.asked:
        order.tell("games", {"games": order.work.games})
        with keeping.ledger.reading() as connection:
            # workers elsewhere do not leave the games here, and what is checked does not come from the cache
            is_whole = len(facts.first_position) == order.work.games and not order.check
            sql_history.write_games(
                keeping, connection, facts if is_whole else decode(connection, facts.position, cached=False)
            )  # fmt: skip


def _differing(
    ledger: Ledger, generation: int, facts: Facts, results: Generator[Built | LadderFailure], built: set[str],
    failed: set[str], keeping: Keeping | None, tell: Tell,
) -> list[str]:  # fmt: skip
    """Return the ladders of a generation whose rows, as they are stored by now, are not those of another replay."""
    again, differing, failed_again = set[str](), set[str](), set[str]()
    with closing(results), ledger.reading() as connection:
        stored = {row.ladder: row for row in generations.ladders_of(connection, generation)}
        parts = sql_history.kept_parts(connection, generation) if keeping else {}
        for number, result in enumerate(results, 1):
            if isinstance(result, LadderFailure):
                failed_again.add(result.ladder)
                continue
            again.add(result.ladder)
            if result.ladder in stored and (
                any(generations.standings_differing(connection, stored[result.ladder], result))
                or (keeping and sql_history.differing(connection, parts.get(result.ladder, []), result))
            ):
                differing.add(result.ladder)
            if number % TOLD_LADDERS == 0:
                tell("checking", {"ladders_done": number, "ladders": len(built)})
        if sql_history.GAMES in parts and sql_history.games_differing(connection, parts[sql_history.GAMES], facts):
            differing.add("live_games")
    return sorted(differing | (built ^ again) | (failed ^ failed_again))


def _plainly(ledger: Ledger, position: int) -> Ladders:
    """Return all ladders at a position, from the log alone and without any speed-ups."""
    with ledger.reading() as connection:
        return Ladders(decode(connection, position, cached=False))


def _digested(ladders: Ladders, stream: Stream) -> Built | LadderFailure:
    """Return a ladder with the digest by its definition."""
    try:
        found = ladders.of_stream(stream)
    except RuleFailure as error:
        return ladder_failure(stream.ladder, ladders, error)
    digest = digest_of(found.ruleset, found.json_rows())
    return Built(found.ladder, found.ruleset, digest, found.scale, found.games, [stored_row(row) for row in found.rows])


def _digested_with_changes(ladders: Ladders, stream: Stream) -> Built | LadderFailure:
    """Return the same with all changes that led there."""
    found = _digested(ladders, stream)
    return (
        found if isinstance(found, LadderFailure) else found._replace(changes=blocks_of(ladders.facts, replay(stream)))
    )
