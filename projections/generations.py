"""Generations: the stored standings of all ladders, written beside the live ones and promoted by flipping one pointer.

All SQL over their tables is here. Every transaction is small, so that appends never wait for long; all of them but the
one that flips the pointer change what no reader sees. Killed at any instant a rebuild leaves the live generation as it
was, and what it left behind is unfinished: the next one sweeps it up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from ledger.clock import Clock
from ledger.errors import LockLost, NoEarlierGeneration
from ledger.store import Ledger
from projections.building import Built, standing
from projections.facts import Facts
from projections.lists.contract import Standing
from projections.rebuild_lock import RebuildLock, only_one
from projections.schema import generation_ladders, generation_standings, generations, live_generation

TRANSACTION_ROWS = 5_000
# of names in one statement
NAMES_MAX = 400


class Generation(NamedTuple):
    """A stored generation; `built` of its `ladders` were computed by its own rebuild, the others are as they were."""

    generation: int
    position: int
    chain_hash: bytes
    finished_at: int
    ladders: int
    built: int
    live: bool


def begin(lock: RebuildLock, position: int, chain_hash: bytes, clock: Clock) -> int:
    """Enter a new generation, of which nobody knows yet, and sweep up what cut-off rebuilds left; gives its number."""
    with lock.fenced() as connection:
        number = (connection.execute(select(func.max(generations.c.generation))).scalar() or 0) + 1
        row = {"generation": number, "position": position, "chain_hash": chain_hash, "started_at": clock()}
        connection.execute(insert(generations), row)
    sweep(lock.ledger, building=number)
    return number


def write(ledger: Ledger, facts: Facts, generation: int, built: Sequence[Built]) -> None:
    """Store ladders that were computed from some facts."""
    named = [
        (generation, one.ladder, generation, one.ruleset, facts.position, facts.chain_hash, one.scale, one.games,
         len(one.rows), one.digest)
        for one in built
    ]  # fmt: skip
    rows = ((generation, one.ladder, ordinal, *row) for one in built for ordinal, row in enumerate(one.rows, 1))
    # what names the rows comes with the first of them, so that they are found if no more follow
    while (part := list(islice(rows, TRANSACTION_ROWS))) or named:
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, named)
            for _, alike in groupby(part, key=len):
                insert_rows(connection, generation_standings, list(alike))
        named = []


def insert_rows(connection: Connection, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows, which may leave out the last columns, the way that is fastest for the driver."""
    if not rows:
        return
    columns = ", ".join([column.name for column in table.columns][: len(rows[0])])
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(rows[0]))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", rows)
        return
    statement = f"COPY {table.name} ({columns}) FROM STDIN"
    try:
        cursor: Any = connection.connection.cursor()
        with cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise DBAPIError(statement, None, error) from error


def copy_rows(ledger: Ledger, generation: int, rows: Iterable[Row[Any]]) -> None:
    """Let a generation name ladders as another one does, with their older builds."""
    named = iter([(generation, *row[1:]) for row in rows])
    while part := list(islice(named, TRANSACTION_ROWS)):
        with ledger.writing() as connection:
            insert_rows(connection, generation_ladders, part)


def promote(
    lock: RebuildLock, generation: int, clock: Clock, also: Callable[[Connection], None] = lambda connection: None
) -> None:  # fmt: skip
    """Let readers see a generation that is written completely, and do something `also` in the same transaction.

    Raises `LockLost` if another rebuild has begun since, or what was written is not all there.
    """
    with lock.fenced() as connection:
        _refuse_lost(connection, generation)
        finished = update(generations).where(generations.c.generation == generation).values(finished_at=clock())
        connection.execute(finished)
        connection.execute(delete(live_generation))
        connection.execute(insert(live_generation), {"singleton": 1, "generation": generation})
        also(connection)
        promoted = live(connection)
        if promoted is None or promoted.generation != generation or promoted.finished_at is None:
            raise LockLost(f"generation {generation} could not be promoted: its row is not as it was written")


def _refuse_lost(connection: Connection, generation: int) -> None:
    """Raises `LockLost` unless a generation is the last that was begun, and whole."""
    newest = connection.execute(select(func.max(generations.c.generation))).scalar()
    if newest != generation:
        raise LockLost(
            f"another rebuild began generation {newest} while this one built {generation}, so it had lost its lock; "
            "nothing was promoted"
        )
    table = generation_ladders.c
    named = select(func.coalesce(func.sum(table.players), 0)).where(table.generation == generation)
    wanted = int(connection.execute(named.where(table.build == generation)).scalar_one())
    there = select(func.count()).select_from(generation_standings).where(generation_standings.c.build == generation)
    found = connection.execute(there).scalar_one()
    if wanted != found:
        raise LockLost(f"generation {generation} has {found:,} of its {wanted:,} standings; nothing was promoted")


def roll_back(ledger: Ledger) -> tuple[Row[Any], int]:
    """Let readers see the finished generation before the live one; gives its row, and the number of the one given up.

    That one is forgotten, so that the next step leads further back. Raises `AlreadyRunning`, `NoEarlierGeneration`.
    """
    with only_one(ledger) as lock:
        with lock.fenced() as connection:
            newest = _finished(connection)
            if len(newest) < 2:
                there = f"generation {newest[0].generation} is the only one that is" if newest else "nothing is"
                raise NoEarlierGeneration(f"there is no earlier generation to go back to: {there} stored")
            given_up, before = newest[0].generation, newest[1]
            connection.execute(update(live_generation).values(generation=before.generation))
            _mark_unfinished(connection, [given_up])
        sweep(ledger)
    return before, given_up


def sweep(ledger: Ledger, keep: int | None = None, building: int | None = None) -> None:
    """Forget all generations but the live one, those before it (`keep` in all; default: all), and the one being built.

    What goes is first marked as unfinished; its rows are found by its name until none is left.
    """
    with ledger.reading() as connection:
        staying = {row.generation for row in _finished(connection)[:keep]} | ({building} if building else set())
        every = set(connection.execute(select(generations.c.generation)).scalars())
        gone = sorted(every - staying)
        named = _builds(connection, staying) if gone else set()
    if gone:
        with ledger.writing() as connection:
            _mark_unfinished(connection, gone)
        for generation in gone:
            _forget(ledger, generation, named)
        with ledger.writing() as connection:
            # the newest row stays, with nothing behind it: its number was told, and is not given again
            rows = generations.c.generation.in_([number for number in gone if number != max(every)])
            connection.execute(delete(generations).where(rows))
    _forget_orphans(ledger)


def _mark_unfinished(connection: Connection, numbers: list[int]) -> None:
    connection.execute(update(generations).where(generations.c.generation.in_(numbers)).values(finished_at=None))


def _finished(connection: Connection) -> list[Row[Any]]:
    """The rows of `generations` of the live one and the finished ones before it, the newest first."""
    number, newest = generations.c.generation, select(live_generation.c.generation).scalar_subquery()
    before = (number < newest) & generations.c.finished_at.is_not(None)
    return list(connection.execute(select(generations).where((number == newest) | before).order_by(number.desc())))


def _builds(connection: Connection, of: Iterable[int]) -> set[tuple[int, str]]:
    """The (build, ladder) pairs that some generations name."""
    pairs = select(generation_ladders.c.build, generation_ladders.c.ladder)
    return {(row[0], row[1]) for row in connection.execute(pairs.where(generation_ladders.c.generation.in_(list(of))))}


def _forget(ledger: Ledger, generation: int, named: set[tuple[int, str]]) -> None:
    """Delete a generation with the builds that it names, unless they are `named` by another one."""
    table = generation_ladders
    query = select(table.c.build, table.c.ladder, table.c.players).where(table.c.generation == generation)
    with ledger.reading() as connection:
        rows = connection.execute(query.order_by(table.c.build, table.c.ladder)).all()
    mine = generation_standings.c
    for build, ladder, players in rows:
        for ordinal in range(players - TRANSACTION_ROWS, 0, -TRANSACTION_ROWS) if (build, ladder) not in named else ():
            with ledger.writing() as connection:
                last = (mine.build == build) & (mine.ladder == ladder) & (mine.ordinal > ordinal)
                connection.execute(delete(generation_standings).where(last))
    for part in _parts([(row.build, row.ladder, row.players) for row in rows]):
        with ledger.writing() as connection:
            for build in {build for build, _, _ in part}:
                names = [ladder for other, ladder, _ in part if other == build and (build, ladder) not in named]
                unnamed = (mine.build == build) & mine.ladder.in_(names)
                connection.execute(delete(generation_standings).where(unnamed))
            ladders = table.c.ladder.in_([ladder for _, ladder, _ in part])
            connection.execute(delete(table).where(table.c.generation == generation, ladders))


def _parts(ladders: list[tuple[int, str, int]]) -> Iterator[list[tuple[int, str, int]]]:
    """(build, ladder, players) in parts of few rows."""
    part: list[tuple[int, str, int]] = []
    rows = 0
    for one in ladders:
        if part and (rows + one[2] > TRANSACTION_ROWS or len(part) == NAMES_MAX):
            yield part
            part, rows = [], 0
        part.append(one)
        rows += one[2] + 1
    if part:
        yield part


def _forget_orphans(ledger: Ledger) -> None:
    """Delete the standings of builds that no generation names, whoever took the names away."""
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
        gone = TRANSACTION_ROWS
        while gone == TRANSACTION_ROWS:
            with ledger.writing() as connection:
                gone = connection.execute(delete(table).where(tuple_(*key).in_(some))).rowcount


def live(connection: Connection) -> Row[Any] | None:
    """The live generation's row of `generations`, or None before the first rebuild."""
    query = select(generations).join(live_generation, live_generation.c.generation == generations.c.generation)
    return connection.execute(query.where(live_generation.c.singleton == 1)).one_or_none()


def pointer_findings(connection: Connection) -> Iterator[str]:
    """What is wrong with the pointer to the live generation, or with what it leads to."""
    rows = connection.execute(select(live_generation)).all()
    for row in rows:
        there = connection.execute(select(generations).where(generations.c.generation == row.generation)).one_or_none()
        if row.singleton != 1:
            yield "the table live_generation has a second row"
        elif there is None:
            yield f"the live pointer leads to generation {row.generation}, which there is not"
        elif there.finished_at is None:
            yield f"the live pointer leads to generation {row.generation}, which is not finished"
    finished = select(func.count()).select_from(generations).where(generations.c.finished_at.is_not(None))
    if not rows and connection.execute(finished).scalar_one():
        yield "the live pointer is gone, though a generation is finished"


def before_live(connection: Connection) -> Row[Any] | None:
    """The finished generation before the live one, or None."""
    return next(iter(_finished(connection)[1:]), None)


def kept(connection: Connection) -> list[Generation]:
    """The live generation and the finished ones before it, the newest first; none before the first rebuild."""
    ladders, found = generation_ladders, []
    for number, row in enumerate(_finished(connection)):
        counts = select(func.count(), func.count().filter(ladders.c.build == row.generation))
        counted = connection.execute(counts.where(ladders.c.generation == row.generation)).one()
        generation = Generation(
            row.generation, row.position, bytes(row.chain_hash), row.finished_at, *counted, live=number == 0
        )
        found.append(generation)
    return found


def ladders_of(connection: Connection, generation: int) -> list[Row[Any]]:
    """The rows of `generation_ladders` of a generation, by ladder."""
    query = select(generation_ladders).where(generation_ladders.c.generation == generation)
    return list(connection.execute(query.order_by(generation_ladders.c.ladder)))


def stored_rows(connection: Connection, build: int, ladder: str) -> list[Standing]:
    """A ladder's stored standings in order."""
    table = generation_standings
    columns = [table.c[name] for name in Standing._fields]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    return [standing(tuple(row)) for row in connection.execute(query)]
