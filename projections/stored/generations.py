"""Store the standings of all ladders in generations. A generation is written next to the live one, and then promoted.

This module has all SQL on the tables of generations. Every transaction is small, so that appends never wait for long.
Readers see a change only when the pointer to the live generation moves. If a rebuild is killed, the live generation is
unchanged, and the next rebuild deletes the unfinished generation.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, delete, func, insert, select, tuple_, type_coerce, update
from sqlalchemy.types import NullType

from ratings_ledger.ledger.clock import Clock
from ratings_ledger.ledger.errors import LockLost, NoEarlierGeneration, StoreDamaged, StoreUnavailable
from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN, format_instant
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import open_driver_cursor
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.projections.stored.computing import BuiltLadder, from_stored_row
from ratings_ledger.projections.stored.rebuild_lock import RebuildLock, fenced_transaction, hold_rebuild_lock
from ratings_ledger.projections.stored.schema import (
    generation_ladders,
    generation_standings,
    generations,
    live_generation,
)

# the largest number of rows in a transaction: normally, and where the disk may be full
TRANSACTION_ROWS, CLEANUP_ROWS = 5_000, 200
# the disk space that a rebuild leaves free for appends
RESERVED_BYTES = 1 << 20
# the largest number of names in one statement
NAMES_MAX = 400


@dataclass(frozen=True, slots=True)
class Generation(Result):
    """A stored generation. Its rebuild computed `built` of its `ladders`, and reused the others.

    `finished` is `finished_at` as text, to the second; `age_seconds` is the time since then.
    """

    generation: int
    position: int
    chain_hash: str
    finished_at: datetime
    ladders: int
    built: int
    live: bool
    finished: str
    age_seconds: int


def begin_generation(lock: RebuildLock, position: int, chain_hash: bytes, clock: Clock) -> int:
    """Create a new, invisible generation, delete the remains of aborted rebuilds, and return the new number."""
    with lock.fenced_transaction() as connection:
        number = (connection.execute(select(func.max(generations.c.generation))).scalar() or 0) + 1
        row = {"generation": number, "position": position, "chain_hash": chain_hash, "started_at": clock()}
        connection.execute(insert(generations), row)
    sweep_generations(lock, number, is_building=True)
    return number


def write_ladders(ledger: Ledger, facts: Facts, generation: int, built: Sequence[BuiltLadder], now: int) -> None:
    """Store ladders that were computed from the facts."""
    ladder_rows = [
        (
            generation,
            ladder.ladder,
            generation,
            ladder.ruleset,
            facts.position,
            facts.chain_hash,
            ladder.scale,
            ladder.games,
            len(ladder.rows),
            ladder.digest,
            now,
        )
        for ladder in built
    ]
    rows = (
        (generation, ladder.ladder, ordinal, *row) for ladder in built for ordinal, row in enumerate(ladder.rows, 1)
    )
    # the ladder rows are stored with the first standings, so that a sweep finds the standings if the process is killed
    while (batch := list(islice(rows, TRANSACTION_ROWS))) or ladder_rows:
        check_free_space(ledger)
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, ladder_rows)
            for _, equal_length in groupby(batch, key=len):
                insert_rows(connection, generation_standings, list(equal_length))
        ladder_rows = []


def check_free_space(ledger: Ledger) -> None:
    """Raise `StoreUnavailable` if the disk of a SQLite file is almost full; the rest is for appends and sweeps."""
    if ledger.file is None:
        return
    free = shutil.disk_usage(Path(ledger.file).absolute().parent).free
    if free < RESERVED_BYTES:
        raise StoreUnavailable(
            f"no space left for {ledger.location}: the last {free >> 10:,} KiB are reserved for appends; "
            "free some space and run the same command again",
            "no-space",
        )


def insert_rows(connection: Connection, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows, which may omit the last columns."""
    if not rows:
        return
    columns = [column.name for column in table.columns][: len(rows[0])]
    with open_driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, table.name, columns, rows)


def copy_ladder_rows(ledger: Ledger, generation: int, rows: Iterable[Row[Any]], **overrides: Any) -> None:
    """Copy ladder rows into a generation, with their builds; `overrides` replaces the values of columns."""
    ladder_rows = (tuple((row._asdict() | {"generation": generation} | overrides).values()) for row in rows)
    while batch := list(islice(ladder_rows, TRANSACTION_ROWS)):
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, batch)


def promote(
    lock: RebuildLock,
    generation: int,
    clock: Clock,
    previous: int | None,
    before_commit: Callable[[Connection], None] = lambda connection: None,
) -> None:
    """Make a complete generation visible to readers, and call `before_commit` in the same transaction.

    `previous` is the generation that was live when the rebuild began. Raises `LockLost` if another rebuild has begun
    since then, if another generation is live, or if rows are missing.
    """
    with lock.fenced_transaction() as connection:
        _check_promotable(connection, generation, previous)
        connection.execute(
            update(generations).where(generations.c.generation == generation).values(finished_at=clock())
        )
        connection.execute(delete(live_generation))
        connection.execute(insert(live_generation), {"singleton": 1, "generation": generation})
        before_commit(connection)
        promoted = read_live_generation(connection)
        if promoted is None or promoted.generation != generation or promoted.finished_at is None:
            raise LockLost(
                f"generation {generation} could not be promoted, because its row has been changed; run: ratings rebuild"
            )


def _check_promotable(connection: Connection, generation: int, previous: int | None) -> None:
    """Raise `LockLost` unless a generation is the newest and complete, and `previous` is still live."""
    newest = connection.execute(select(func.max(generations.c.generation))).scalar()
    if newest != generation:
        raise LockLost(
            f"this rebuild lost its lock: another rebuild began generation {newest} while this one built generation "
            f"{generation}; nothing was promoted; run: ratings rebuild"
        )
    current = read_live_generation(connection)
    if previous != (None if current is None else current.generation):
        raise LockLost(
            f"{'no generation' if current is None else f'generation {current.generation}'} is live now, but "
            f"{'none' if previous is None else previous} was live when this rebuild began, so this rebuild has "
            "lost its lock; nothing was promoted; run: ratings rebuild"
        )
    ladders, rows = generation_ladders.c, generation_standings
    expected_query = select(func.coalesce(func.sum(ladders.players), 0)).where(ladders.generation == generation)
    is_same_ladder = (rows.c.build == ladders.build) & (rows.c.ladder == ladders.ladder)
    count_query = select(func.count()).select_from(generation_ladders.join(rows, is_same_ladder))
    expected = int(connection.execute(expected_query).scalar_one())
    stored = connection.execute(count_query.where(ladders.generation == generation)).scalar_one()
    if expected != stored:
        raise LockLost(
            f"generation {generation} has {stored:,} of its {expected:,} standings; nothing was promoted; "
            "run: ratings rebuild"
        )


def forget_generation(ledger: Ledger, generation: int) -> None:
    """Delete a generation that could not be built, to free its space. A finished or live generation is not deleted.

    The caller may have lost the lock, so rows of other rebuilds are not touched. Transactions are small, because the
    disk may be full.
    """
    with fenced_transaction(ledger) as connection:
        finished = select(generations.c.finished_at).where(generations.c.generation == generation)
        live = connection.execute(select(live_generation).where(live_generation.c.generation == generation)).first()
        if live is not None or connection.execute(finished).scalar() is not None:
            return
        other_generations = select(generations.c.generation).where(generations.c.generation != generation)
        builds_in_use = _list_builds(connection, connection.execute(other_generations).scalars())
    _delete_generation(ledger, generation, builds_in_use, CLEANUP_ROWS)


@dataclass(frozen=True, slots=True)
class Rollback(Result):
    """A rollback: the generation that is live again, and `given_up`, the number of the one that was live until then."""

    generation: int
    position: int
    given_up: int
    chain_hash: str


def roll_back(ledger: Ledger) -> Rollback:
    """Make the finished generation before the live one live again.

    The live generation is deleted, so the next rollback goes further back. Raises `AlreadyRunning`,
    `NoEarlierGeneration`.
    """
    with hold_rebuild_lock(ledger) as lock:
        with lock.fenced_transaction() as connection:
            finished = _list_finished(connection)
            if len(finished) < 2:
                detail = f"only generation {finished[0].generation} is stored" if finished else "no generation is live"
                problem = f"there is no earlier generation to go back to; {detail}"
                raise NoEarlierGeneration(f"{problem}; for a new one, run: ratings rebuild")
            given_up, previous = finished[0].generation, finished[1]
            connection.execute(update(live_generation).values(generation=previous.generation))
            _mark_unfinished(connection, [given_up])
            latest = connection.execute(select(func.max(generations.c.generation))).scalar_one()
        sweep_generations(lock, latest)
    return Rollback(previous.generation, previous.position, given_up, bytes(previous.chain_hash).hex())


def sweep_generations(lock: RebuildLock, until: int, keep: int | None = None, is_building: bool = False) -> None:
    """Delete the generations up to `until`, except the live generation and the finished generations before it.

    With `keep`, only this many generations stay, the live one included. With `is_building`, generation `until` stays.
    Generations after `until` belong to a process that took over the lock. The generations to delete are marked as
    unfinished while no other process can promote; then their rows are deleted.
    """
    number, ladder_generation = generations.c.generation, generation_ladders.c.generation
    with lock.fenced_transaction() as connection:
        kept = {row.generation for row in _list_finished(connection)[:keep]} | ({until} if is_building else set())
        unfinished = set(connection.execute(select(number).where(number <= until)).scalars()) - kept
        referencing = select(ladder_generation).where(ladder_generation <= until).distinct()
        obsolete = set(connection.execute(referencing).scalars()) - kept
        builds_in_use = _list_builds(connection, kept) if unfinished or obsolete else set()
        _mark_unfinished(connection, sorted(unfinished))
    for generation in sorted(obsolete):
        _delete_generation(lock.ledger, generation, builds_in_use)
    # keep the rows of builds in use, because they hold the positions at which ladders were built, and the newest row,
    # so that no later rebuild uses its number again
    if unused := unfinished - {until, *(build for build, _ in builds_in_use)}:
        with lock.ledger.writing() as connection:
            connection.execute(delete(generations).where(number.in_(sorted(unused))))
    _delete_orphans(lock.ledger)


def _mark_unfinished(connection: Connection, numbers: list[int]) -> None:
    connection.execute(update(generations).where(generations.c.generation.in_(numbers)).values(finished_at=None))


def _list_finished(connection: Connection) -> list[Row[Any]]:
    """Return the rows of the live generation and of the finished generations before it, newest first."""
    number, live = generations.c.generation, select(live_generation.c.generation).scalar_subquery()
    is_earlier = (number < live) & generations.c.finished_at.is_not(None)
    return list(connection.execute(select(generations).where((number == live) | is_earlier).order_by(number.desc())))


def _list_builds(connection: Connection, numbers: Iterable[int]) -> set[tuple[int, str]]:
    """Return the pairs (build, ladder) that the generations with these numbers reference."""
    pairs = select(generation_ladders.c.build, generation_ladders.c.ladder)
    return {
        (row[0], row[1]) for row in connection.execute(pairs.where(generation_ladders.c.generation.in_(list(numbers))))
    }


def _delete_generation(
    ledger: Ledger, generation: int, builds_in_use: set[tuple[int, str]], batch_rows: int | None = None
) -> None:
    """Delete a generation and its builds, except builds that another generation references.

    A transaction deletes at most about `batch_rows` rows, by default `TRANSACTION_ROWS`.
    """
    batch_rows = batch_rows or TRANSACTION_ROWS
    table = generation_ladders
    query = select(table.c.build, table.c.ladder, table.c.players).where(table.c.generation == generation)
    with ledger.reading() as connection:
        rows = connection.execute(query.order_by(table.c.build, table.c.ladder)).all()
    standings = generation_standings.c
    for build, ladder, players in rows:
        for ordinal in range(players - batch_rows, 0, -batch_rows) if (build, ladder) not in builds_in_use else ():
            with ledger.writing() as connection:
                tail = (standings.build == build) & (standings.ladder == ladder) & (standings.ordinal > ordinal)
                connection.execute(delete(generation_standings).where(tail))
    for batch in _batch_ladders([(row.build, row.ladder, row.players) for row in rows], batch_rows):
        with ledger.writing() as connection:
            for build in {build for build, _, _ in batch}:
                names = [
                    ladder
                    for stored_build, ladder, _ in batch
                    if stored_build == build and (build, ladder) not in builds_in_use
                ]
                of_names = (standings.build == build) & standings.ladder.in_(names)
                connection.execute(delete(generation_standings).where(of_names))
            of_batch = table.c.ladder.in_([ladder for _, ladder, _ in batch])
            connection.execute(delete(table).where(table.c.generation == generation, of_batch))


def _batch_ladders(ladders: list[tuple[int, str, int]], batch_rows: int) -> Iterator[list[tuple[int, str, int]]]:
    """Yield the entries (build, ladder, players) in batches of about `batch_rows` rows.

    A ladder with more rows is a batch of its own.
    """
    batch: list[tuple[int, str, int]] = []
    rows = 0
    for entry in ladders:
        if batch and (rows + entry[2] > batch_rows or len(batch) == NAMES_MAX):
            yield batch
            batch, rows = [], 0
        batch.append(entry)
        rows += entry[2] + 1
    if batch:
        yield batch


def _delete_orphans(ledger: Ledger) -> None:
    """Delete the standings of builds that no generation references."""
    table = generation_standings
    with ledger.reading() as connection:
        builds, lowest = list[int](), select(func.min(table.c.build))
        build = connection.execute(lowest).scalar()
        while build is not None:
            builds.append(build)
            build = connection.execute(lowest.where(table.c.build > build)).scalar()
        builds_in_use = (
            set(connection.execute(select(generation_ladders.c.build).distinct()).scalars()) if builds else set()
        )
    key = (table.c.build, table.c.ladder, table.c.ordinal)
    for build in sorted(set(builds) - builds_in_use):
        batch = select(*key).where(table.c.build == build).limit(TRANSACTION_ROWS)
        deleted = TRANSACTION_ROWS
        while deleted == TRANSACTION_ROWS:
            with ledger.writing() as connection:
                deleted = connection.execute(delete(table).where(tuple_(*key).in_(batch))).rowcount


def read_live_generation(connection: Connection) -> Row[Any] | None:
    """Return the live generation's row of `generations`, or None before the first rebuild."""
    query = select(generations).join(live_generation, live_generation.c.generation == generations.c.generation)
    return connection.execute(query.where(live_generation.c.singleton == 1)).one_or_none()


def check_live_pointer(connection: Connection) -> Iterator[str]:
    """Describe each problem with the pointer to the live generation, or with the generation that it names."""
    rows = connection.execute(select(live_generation)).all()
    for row in rows:
        entry = connection.execute(select(generations).where(generations.c.generation == row.generation)).one_or_none()
        if row.singleton != 1:
            yield "the table live_generation has a second row"
        elif entry is None:
            yield f"the live pointer names generation {row.generation}, which does not exist"
        elif entry.finished_at is None:
            yield f"the live pointer names generation {row.generation}, which is not finished"
    finished = select(func.count()).select_from(generations).where(generations.c.finished_at.is_not(None))
    if not rows and connection.execute(finished).scalar_one():
        yield "the live pointer is missing, although a generation is finished"


def read_previous_generation(connection: Connection) -> Row[Any] | None:
    """Return the finished generation before the live one, or None."""
    return next(iter(_list_finished(connection)[1:]), None)


def list_generations(connection: Connection, now: int) -> list[Generation]:
    """Return the live generation and the finished generations before it, newest first."""
    ladders, entries = generation_ladders, []
    for index, row in enumerate(_list_finished(connection)):
        count_query = select(func.count(), func.count().filter(ladders.c.build == row.generation))
        ladder_count, built_count = connection.execute(count_query.where(ladders.c.generation == row.generation)).one()
        chain_hash, finished_at = read_stored_head(row)
        entries.append(
            Generation(
                generation=row.generation,
                position=row.position,
                chain_hash=chain_hash.hex(),
                finished_at=to_datetime(finished_at),
                ladders=ladder_count,
                built=built_count,
                live=index == 0,
                finished=format_whole_second(finished_at),
                age_seconds=count_seconds_since(finished_at, now),
            )
        )
    return entries


def format_whole_second(instant: int) -> str:
    """Return an instant in whole seconds, rounded down, such as 2026-11-22T15:14:56Z."""
    return f"{format_instant(instant)[:19]}Z"


def count_seconds_since(instant: int, now: int) -> int:
    """Return the whole seconds since an instant; 0 for an instant in the future."""
    return max(0, (now - instant) // 1_000_000)


def read_stored_head(row: Row[Any]) -> tuple[bytes, int]:
    """Return the chain hash of a generation and the time at which it was finished.

    Raises `StoreDamaged` for values that no rebuild writes.
    """
    chain_hash, finished_at = row.chain_hash, row.finished_at
    has_valid_numbers = (
        isinstance(row.position, int) and isinstance(finished_at, int) and INSTANT_MIN <= finished_at <= INSTANT_MAX
    )
    if not has_valid_numbers or not isinstance(chain_hash, (bytes, memoryview)):
        raise StoreDamaged(
            f"generation {row.generation} has values that no rebuild stores; to replace it, run: ratings rebuild"
        )
    return bytes(chain_hash), finished_at


def list_ladder_ages(connection: Connection, generation: int) -> list[Row[Any]]:
    """Return (ladder, position, built_at) of a generation's ladders, sorted by ladder; `built_at` may be None."""
    table = generation_ladders.c
    built_at = func.coalesce(table.built_at, generations.c.finished_at).label("built_at")
    query = select(table.ladder, table.position, built_at).where(table.generation == generation).order_by(table.ladder)
    joined = generation_ladders.outerjoin(generations, generations.c.generation == table.build)
    return list(connection.execute(query.select_from(joined)))


def list_ladder_rows(connection: Connection, generation: int) -> list[Row[Any]]:
    """Return a generation's ladder rows, sorted by ladder."""
    query = select(generation_ladders).where(generation_ladders.c.generation == generation)
    return list(connection.execute(query.order_by(generation_ladders.c.ladder)))


def list_ladders_built_before(connection: Connection, generation: int, position: int) -> set[str]:
    """Return the ladders of a generation that were certainly computed before a position."""
    ladders, builds = generation_ladders.c, generations.alias()
    # a ladder at its generation's position may have been reused unchanged from an earlier build
    generation_position = select(generations.c.position).where(generations.c.generation == generation).scalar_subquery()
    is_earlier = (ladders.position < position) | (
        (ladders.position == generation_position) & (builds.c.position < position)
    )
    query = select(ladders.ladder).join_from(generation_ladders, builds, builds.c.generation == ladders.build)
    return set(connection.execute(query.where(ladders.generation == generation, is_earlier)).scalars())


def find_incomplete_ladders(connection: Connection, generation: int) -> list[str]:
    """Return the ladders of a generation whose number of stored standings is wrong or zero."""
    ladders, rows = generation_ladders.c, generation_standings.c
    is_same_ladder = (rows.build == ladders.build) & (rows.ladder == ladders.ladder)
    query = select(ladders.ladder).join_from(generation_ladders, generation_standings, is_same_ladder, isouter=True)
    query = query.where(ladders.generation == generation).group_by(ladders.ladder, ladders.players)
    is_incomplete = (func.count(rows.ordinal) != ladders.players) | (ladders.players == 0)
    return list(connection.execute(query.having(is_incomplete)).scalars())


def read_plain_rows(connection: Connection, build: int, ladder: str) -> list[tuple[Any, ...]]:
    """Return a ladder's stored standings in order, with their ordinals; booleans become 0 or 1."""
    table = generation_standings
    columns = [type_coerce(table.c[name], NullType()).label(name) for name in ("ordinal", *RankedRow._fields)]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    rows = connection.execute(query)
    return [tuple(int(value) if isinstance(value, bool) else value for value in row) for row in rows]


def describe_standing_differences(connection: Connection, stored: Row[Any], replayed: BuiltLadder) -> Iterator[str]:
    """Describe the differences between a ladder's stored standings, or its ladder row, and a replay."""
    rows = read_plain_rows(connection, stored.build, stored.ladder)
    expected_rows = [
        (ordinal, *row, *(None,) * (len(RankedRow._fields) - len(row))) for ordinal, row in enumerate(replayed.rows, 1)
    ]
    if stored.digest != replayed.digest or _add_types(rows) != _add_types(expected_rows):
        yield f"{stored.ladder}: the stored standings differ from a replay"
    expected = {
        "ruleset": replayed.ruleset,
        "scale": replayed.scale,
        "games": replayed.games,
        "players": len(replayed.rows),
    }
    for name, value in expected.items():
        if getattr(stored, name) != value:
            actual = quote(getattr(stored, name))
            yield f"{stored.ladder}: {name} is stored as {actual}, but a replay has {quote(value)}"


def _add_types(rows: list[tuple[Any, ...]]) -> list[list[tuple[type, Any]]]:
    """Pair each value with its type, so that a stored 1.0 does not compare equal to 1."""
    return [[(type(value), value) for value in row] for row in rows]


def find_build_conflicts(connection: Connection, generation: int) -> list[str]:
    """Return the ladders of a generation that contradict an earlier row of the same build, or name a later build.

    The rows of a build may differ only in the position up to which the ladder is unchanged, and in the chain
    hash and time of that position.
    """
    rows, earlier_rows = generation_ladders.alias(), generation_ladders.alias()
    may_differ = ("generation", "position", "chain_hash", "built_at")
    is_equal = [earlier_rows.c[column.name] == column for column in rows.c if column.name not in may_differ]
    is_same_build = (earlier_rows.c.build == rows.c.build) & (earlier_rows.c.ladder == rows.c.ladder)
    is_earlier = is_same_build & (earlier_rows.c.generation < rows.c.generation)
    ladders = select(rows.c.ladder).where(rows.c.generation == generation)
    contradicting = ladders.join(earlier_rows, is_earlier).where(
        ~and_(*is_equal, earlier_rows.c.position <= rows.c.position)
    )
    built_later = ladders.where(rows.c.build > generation)
    return sorted({*connection.execute(contradicting).scalars(), *connection.execute(built_later).scalars()})


def read_standings(connection: Connection, build: int, ladder: str) -> list[RankedRow]:
    """Return a ladder's stored standings in order."""
    table = generation_standings
    columns = [table.c[name] for name in RankedRow._fields]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    return [from_stored_row(tuple(row)) for row in connection.execute(query)]
