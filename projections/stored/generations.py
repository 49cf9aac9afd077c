"""Generations: the stored standings of all ladders, written alongside the live ones, promoted by flipping one pointer.

All SQL on their tables is here. Every transaction is small, so appends never wait for long; all but the one that flips
the pointer change only what no reader sees. If killed at any instant, a rebuild leaves the live generation as it was,
and its leftovers unfinished: the next one sweeps them up.
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
from ratings_ledger.ledger.store.log import driver_cursor
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.projections.stored.computing import Built, standing
from ratings_ledger.projections.stored.rebuild_lock import RebuildLock, fenced, only_one
from ratings_ledger.projections.stored.schema import (
    generation_ladders,
    generation_standings,
    generations,
    live_generation,
)

TRANSACTION_ROWS, GIVEN_UP_ROWS = 5_000, 200
# a rebuild always leaves this much of a disk free
ROOM_BYTES = 1 << 20
# names in one statement
NAMES_MAX = 400


@dataclass(frozen=True, slots=True)
class Generation(Result):
    """A stored generation; `built` of its `ladders` were computed by its own rebuild, the others are unchanged.

    `finished` is when, in whole seconds; `age_seconds` how long ago.
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
    """Enter a new generation, still invisible, and sweep up what aborted rebuilds left; returns its number."""
    with lock.fenced() as connection:
        number = (connection.execute(select(func.max(generations.c.generation))).scalar() or 0) + 1
        row = {"generation": number, "position": position, "chain_hash": chain_hash, "started_at": clock()}
        connection.execute(insert(generations), row)
    sweep_generations(lock, number, building=True)
    return number


def write(ledger: Ledger, facts: Facts, generation: int, built: Sequence[Built], now: int) -> None:
    """Store ladders that were computed from some facts."""
    named = [
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
    # the naming row is stored with the first rows, so that they can be found if no more follow
    while (part := list(islice(rows, TRANSACTION_ROWS))) or named:
        leave_room(ledger)
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, named)
            for _, alike in groupby(part, key=len):
                insert_rows(connection, generation_standings, list(alike))
        named = []


def leave_room(ledger: Ledger) -> None:
    """Raises `StoreUnavailable` if a file's disk is all but full: appends need the rest, and so does the sweep."""
    if ledger.file is None:
        return
    free = shutil.disk_usage(Path(ledger.file).absolute().parent).free
    if free < ROOM_BYTES:
        raise StoreUnavailable(
            f"no space left for {ledger.location}: {free >> 10:,} KiB are free, which are reserved for appends; "
            "free some space and run the same command again",
            "no-space",
        )


def insert_rows(connection: Connection, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows, which may omit the last columns."""
    if not rows:
        return
    columns = [column.name for column in table.columns][: len(rows[0])]
    with driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, table.name, columns, rows)


def copy_rows(ledger: Ledger, generation: int, rows: Iterable[Row[Any]], **renewed: Any) -> None:
    """Let a generation name ladders as another one does, with their older builds; `renewed` columns have new values."""
    named = (tuple((row._asdict() | {"generation": generation} | renewed).values()) for row in rows)
    while part := list(islice(named, TRANSACTION_ROWS)):
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, part)


def promote(
    lock: RebuildLock,
    generation: int,
    clock: Clock,
    before: int | None,
    also: Callable[[Connection], None] = lambda connection: None,
) -> None:
    """Make a completely written generation visible to readers, and do `also` in the same transaction.

    `before` was live when it was begun. Raises `LockLost` if another rebuild has begun since, another generation is
    live, or rows are missing.
    """
    with lock.fenced() as connection:
        _refuse_lost(connection, generation, before)
        finished = update(generations).where(generations.c.generation == generation).values(finished_at=clock())
        connection.execute(finished)
        connection.execute(delete(live_generation))
        connection.execute(insert(live_generation), {"singleton": 1, "generation": generation})
        also(connection)
        promoted = live(connection)
        if promoted is None or promoted.generation != generation or promoted.finished_at is None:
            raise LockLost(f"generation {generation} could not be promoted: its row is not as it was written")


def _refuse_lost(connection: Connection, generation: int, before: int | None) -> None:
    """Raises `LockLost` unless a generation is the last one begun, follows the live one, and is complete."""
    newest = connection.execute(select(func.max(generations.c.generation))).scalar()
    if newest != generation:
        raise LockLost(
            f"another rebuild began generation {newest} while this one built {generation}, so it had lost its lock; "
            "nothing was promoted"
        )
    now = live(connection)
    if before != (None if now is None else now.generation):
        raise LockLost(
            f"{'no generation' if now is None else f'generation {now.generation}'} is live now, not "
            f"{'none' if before is None else before} as when this rebuild began, so it had lost its lock; "
            "nothing was promoted"
        )
    ladders, rows = generation_ladders.c, generation_standings
    promised = select(func.coalesce(func.sum(ladders.players), 0)).where(ladders.generation == generation)
    named = (rows.c.build == ladders.build) & (rows.c.ladder == ladders.ladder)
    counted = select(func.count()).select_from(generation_ladders.join(rows, named))
    expected = int(connection.execute(promised).scalar_one())
    stored = connection.execute(counted.where(ladders.generation == generation)).scalar_one()
    if expected != stored:
        raise LockLost(f"generation {generation} has {stored:,} of its {expected:,} standings; nothing was promoted")


def forget_generation(ledger: Ledger, generation: int) -> None:
    """Forget a generation that could not be built, to free its space; never one that readers see.

    The lock may already be lost: nothing of another rebuild is touched. The transactions are small, since the disk may
    be full.
    """
    with fenced(ledger) as connection:
        finished = select(generations.c.finished_at).where(generations.c.generation == generation)
        live = connection.execute(select(live_generation).where(live_generation.c.generation == generation)).first()
        if live is not None or connection.execute(finished).scalar() is not None:
            return
        other_generations = select(generations.c.generation).where(generations.c.generation != generation)
        named = _builds(connection, connection.execute(other_generations).scalars())
    _forget(ledger, generation, named, GIVEN_UP_ROWS)


@dataclass(frozen=True, slots=True)
class RolledBack(Result):
    """A generation that is live again, and the number of the one that was given up for it."""

    generation: int
    position: int
    given_up: int
    chain_hash: str


def roll_back(ledger: Ledger) -> RolledBack:
    """Make the finished generation before the live one visible.

    The live one is forgotten, so the next rollback goes further back. Raises `AlreadyRunning`, `NoEarlierGeneration`.
    """
    with only_one(ledger) as lock:
        with lock.fenced() as connection:
            newest = _finished(connection)
            if len(newest) < 2:
                available = f"generation {newest[0].generation} is the only one that is" if newest else "nothing is"
                raise NoEarlierGeneration(f"there is no earlier generation to go back to: {available} stored")
            given_up, before = newest[0].generation, newest[1]
            connection.execute(update(live_generation).values(generation=before.generation))
            _mark_unfinished(connection, [given_up])
            last = connection.execute(select(func.max(generations.c.generation))).scalar_one()
        sweep_generations(lock, last)
    return RolledBack(before.generation, before.position, given_up, bytes(before.chain_hash).hex())


def sweep_generations(lock: RebuildLock, until: int, keep: int | None = None, building: bool = False) -> None:
    """Forget all generations up to a number except the live one and those before it (`keep` in all; default: all).

    That number stays if it is being built; anything after it belongs to whoever took over the lock. What goes is chosen
    and marked as unfinished while nobody promotes; its rows are found by its name until none is left.
    """
    number, listed = generations.c.generation, generation_ladders.c.generation
    with lock.fenced() as connection:
        staying = {row.generation for row in _finished(connection)[:keep]} | ({until} if building else set())
        removed = set(connection.execute(select(number).where(number <= until)).scalars()) - staying
        lists = set(connection.execute(select(listed).where(listed <= until).distinct()).scalars()) - staying
        named = _builds(connection, staying) if removed or lists else set()
        _mark_unfinished(connection, sorted(removed))
    for generation in sorted(lists):
        _forget(lock.ledger, generation, named)
    # the row of a build that is still named says where it was built; the newest row stays, with no data: its number has
    # been shown, and is not given again
    if unused := removed - {until, *(build for build, _ in named)}:
        with lock.ledger.writing() as connection:
            connection.execute(delete(generations).where(number.in_(sorted(unused))))
    _forget_orphans(lock.ledger)


def _mark_unfinished(connection: Connection, numbers: list[int]) -> None:
    connection.execute(update(generations).where(generations.c.generation.in_(numbers)).values(finished_at=None))


def _finished(connection: Connection) -> list[Row[Any]]:
    """Return the rows of `generations` for the live one and the finished ones before it, newest first."""
    number, newest = generations.c.generation, select(live_generation.c.generation).scalar_subquery()
    before = (number < newest) & generations.c.finished_at.is_not(None)
    return list(connection.execute(select(generations).where((number == newest) | before).order_by(number.desc())))


def _builds(connection: Connection, of: Iterable[int]) -> set[tuple[int, str]]:
    """Return the (build, ladder) pairs that some generations name."""
    pairs = select(generation_ladders.c.build, generation_ladders.c.ladder)
    return {(row[0], row[1]) for row in connection.execute(pairs.where(generation_ladders.c.generation.in_(list(of))))}


def _forget(ledger: Ledger, generation: int, named: set[tuple[int, str]], together: int | None = None) -> None:
    """Delete a generation with the builds it names, unless they are `named` by another one; `together` rows at a time
    (by default `TRANSACTION_ROWS`)."""
    together = together or TRANSACTION_ROWS
    table = generation_ladders
    query = select(table.c.build, table.c.ladder, table.c.players).where(table.c.generation == generation)
    with ledger.reading() as connection:
        rows = connection.execute(query.order_by(table.c.build, table.c.ladder)).all()
    mine = generation_standings.c
    for build, ladder, players in rows:
        for ordinal in range(players - together, 0, -together) if (build, ladder) not in named else ():
            with ledger.writing() as connection:
                last = (mine.build == build) & (mine.ladder == ladder) & (mine.ordinal > ordinal)
                connection.execute(delete(generation_standings).where(last))
    for part in _parts([(row.build, row.ladder, row.players) for row in rows], together):
        with ledger.writing() as connection:
            for build in {build for build, _, _ in part}:
                names = [
                    ladder for stored_build, ladder, _ in part if stored_build == build and (build, ladder) not in named
                ]
                unnamed = (mine.build == build) & mine.ladder.in_(names)
                connection.execute(delete(generation_standings).where(unnamed))
            ladders = table.c.ladder.in_([ladder for _, ladder, _ in part])
            connection.execute(delete(table).where(table.c.generation == generation, ladders))


def _parts(ladders: list[tuple[int, str, int]], together: int) -> Iterator[list[tuple[int, str, int]]]:
    """(build, ladder, players) in parts with few rows."""
    part: list[tuple[int, str, int]] = []
    rows = 0
    for one in ladders:
        if part and (rows + one[2] > together or len(part) == NAMES_MAX):
            yield part
            part, rows = [], 0
        part.append(one)
        rows += one[2] + 1
    if part:
        yield part


def _forget_orphans(ledger: Ledger) -> None:
    """Delete the standings of builds that no generation names, whoever removed the names."""
    table = generation_standings
    with ledger.reading() as connection:
        builds, first = list[int](), select(func.min(table.c.build))
        build = connection.execute(first).scalar()
        while build is not None:
            builds.append(build)
            build = connection.execute(first.where(table.c.build > build)).scalar()
        named = set(connection.execute(select(generation_ladders.c.build).distinct()).scalars()) if builds else set()
    key = (table.c.build, table.c.ladder, table.c.ordinal)
    for build in sorted(set(builds) - named):
        some = select(*key).where(table.c.build == build).limit(TRANSACTION_ROWS)
        deleted = TRANSACTION_ROWS
        while deleted == TRANSACTION_ROWS:
            with ledger.writing() as connection:
                deleted = connection.execute(delete(table).where(tuple_(*key).in_(some))).rowcount


def live(connection: Connection) -> Row[Any] | None:
    """Return the live generation's row of `generations`, or None before the first rebuild."""
    query = select(generations).join(live_generation, live_generation.c.generation == generations.c.generation)
    return connection.execute(query.where(live_generation.c.singleton == 1)).one_or_none()


def pointer_findings(connection: Connection) -> Iterator[str]:
    """Yield what is wrong with the pointer to the live generation, or with what it points to."""
    rows = connection.execute(select(live_generation)).all()
    for row in rows:
        entry = connection.execute(select(generations).where(generations.c.generation == row.generation)).one_or_none()
        if row.singleton != 1:
            yield "the table live_generation has a second row"
        elif entry is None:
            yield f"the live pointer leads to generation {row.generation}, which does not exist"
        elif entry.finished_at is None:
            yield f"the live pointer leads to generation {row.generation}, which is not finished"
    finished = select(func.count()).select_from(generations).where(generations.c.finished_at.is_not(None))
    if not rows and connection.execute(finished).scalar_one():
        yield "the live pointer is gone, though a generation is finished"


def before_live(connection: Connection) -> Row[Any] | None:
    """Return the finished generation before the live one, or None."""
    return next(iter(_finished(connection)[1:]), None)


def kept_generations(connection: Connection, now: int) -> list[Generation]:
    """Return the live generation and the finished ones before it, newest first; none before the first rebuild."""
    ladders, found = generation_ladders, []
    for number, row in enumerate(_finished(connection)):
        counts = select(func.count(), func.count().filter(ladders.c.build == row.generation))
        counted = connection.execute(counts.where(ladders.c.generation == row.generation)).one()
        chain_hash, at = stored_head(row)
        when = moment(at), *counted, number == 0, whole_second(at), age_seconds(at, now)
        found.append(Generation(row.generation, row.position, chain_hash.hex(), *when))
    return found


def whole_second(instant: int) -> str:
    """Return an instant in whole seconds, rounded down, such as 2026-11-22T15:14:56Z."""
    return f"{format_instant(instant)[:19]}Z"


def age_seconds(instant: int, now: int) -> int:
    """Return the whole seconds since an instant."""
    return max(0, (now - instant) // 1_000_000)


def stored_head(row: Row[Any]) -> tuple[bytes, int]:
    """Return the chain hash of a generation, and when it was finished. Raises `StoreDamaged` for values no rebuild
    writes.
    """
    chain, at = row.chain_hash, row.finished_at
    numbers = isinstance(row.position, int) and isinstance(at, int) and INSTANT_MIN <= at <= INSTANT_MAX
    if not numbers or not isinstance(chain, (bytes, memoryview)):
        raise StoreDamaged(f"generation {row.generation} is not as a rebuild stores it; run a rebuild to replace it")
    return bytes(chain), at


def ages_of(connection: Connection, generation: int) -> list[Row[Any]]:
    """(ladder, position, built_at) of the ladders of a generation, by ladder; `built_at` is None if nobody knows."""
    table = generation_ladders.c
    built_at = func.coalesce(table.built_at, generations.c.finished_at).label("built_at")
    query = select(table.ladder, table.position, built_at).where(table.generation == generation).order_by(table.ladder)
    joined = generation_ladders.outerjoin(generations, generations.c.generation == table.build)
    return list(connection.execute(query.select_from(joined)))


def ladders_of(connection: Connection, generation: int) -> list[Row[Any]]:
    """Return the rows of `generation_ladders` for a generation, by ladder."""
    query = select(generation_ladders).where(generation_ladders.c.generation == generation)
    return list(connection.execute(query.order_by(generation_ladders.c.ladder)))


def built_before(connection: Connection, generation: int, position: int) -> set[str]:
    """Return the ladders of a generation whose rows were certainly computed before a position."""
    ladders, builds = generation_ladders.c, generations.alias()
    # one whose position is its generation's may have been taken over from an earlier build
    own = select(generations.c.position).where(generations.c.generation == generation).scalar_subquery()
    earlier = (ladders.position < position) | ((ladders.position == own) & (builds.c.position < position))
    query = select(ladders.ladder).join_from(generation_ladders, builds, builds.c.generation == ladders.build)
    return set(connection.execute(query.where(ladders.generation == generation, earlier)).scalars())


def incomplete_ladders(connection: Connection, generation: int) -> list[str]:
    """Return the ladders of a generation that have not as many stored standings as are named, or none at all."""
    ladders, rows = generation_ladders.c, generation_standings.c
    same_ladder = (rows.build == ladders.build) & (rows.ladder == ladders.ladder)
    query = select(ladders.ladder).join_from(generation_ladders, generation_standings, same_ladder, isouter=True)
    query = query.where(ladders.generation == generation).group_by(ladders.ladder, ladders.players)
    short = (func.count(rows.ordinal) != ladders.players) | (ladders.players == 0)
    return list(connection.execute(query.having(short)).scalars())


def plain_rows(connection: Connection, build: int, ladder: str) -> list[tuple[Any, ...]]:
    """Return a ladder's stored standings in order, each after its ordinal, as the store has them: nothing is converted
    except booleans to 0 or 1.
    """
    table = generation_standings
    columns = [type_coerce(table.c[name], NullType()).label(name) for name in ("ordinal", *RankedRow._fields)]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    rows = connection.execute(query)
    return [tuple(int(value) if isinstance(value, bool) else value for value in row) for row in rows]


def standings_differing(connection: Connection, stored: Row[Any], replayed: Built) -> Iterator[str]:
    """Name the differences between a ladder's stored rows, or what is stored about them, and a replay."""
    rows = plain_rows(connection, stored.build, stored.ladder)
    wanted = [
        (ordinal, *row, *(None,) * (len(RankedRow._fields) - len(row))) for ordinal, row in enumerate(replayed.rows, 1)
    ]
    if stored.digest != replayed.digest or _typed(rows) != _typed(wanted):
        yield f"{stored.ladder}: the stored standings differ from a replay"
    expected = {"ruleset": replayed.ruleset, "scale": replayed.scale, "games": replayed.games, "players": len(rows)}
    for name, value in expected.items():
        if getattr(stored, name) != value:
            actual = quote(getattr(stored, name))
            yield f"{stored.ladder}: {name} is stored as {actual}, a replay has {quote(value)}"


def _typed(rows: list[tuple[Any, ...]]) -> list[list[tuple[type, Any]]]:
    """Values with their types, so that no text or fraction passes for the number it equals."""
    return [[(type(value), value) for value in row] for row in rows]


def built_otherwise(connection: Connection, generation: int) -> list[str]:
    """Return the ladders of a generation that share a build with an earlier one but disagree with it about that build.

    They may only differ in the position up to which nothing changed, and in its chain hash and time.
    """
    own, referred = generation_ladders.alias(), generation_ladders.alias()
    renewed = ("generation", "position", "chain_hash", "built_at")
    same = [referred.c[column.name] == column for column in own.c if column.name not in renewed]
    shared = (referred.c.build == own.c.build) & (referred.c.ladder == own.c.ladder)
    earlier = shared & (referred.c.generation < own.c.generation)
    mine = select(own.c.ladder).where(own.c.generation == generation)
    differing = mine.join(referred, earlier).where(~and_(*same, referred.c.position <= own.c.position))
    later = mine.where(own.c.build > generation)
    return sorted({*connection.execute(differing).scalars(), *connection.execute(later).scalars()})


def stored_rows(connection: Connection, build: int, ladder: str) -> list[RankedRow]:
    """Return a ladder's stored standings in order."""
    table = generation_standings
    columns = [table.c[name] for name in RankedRow._fields]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    return [standing(tuple(row)) for row in connection.execute(query)]
