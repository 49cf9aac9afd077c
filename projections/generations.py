"""Generations: standings of all ladders, materialised beside the live ones and promoted by flipping one pointer.

A rebuild writes in small transactions while readers keep seeing the generation before; the last transaction flips the
pointer. Killed at any instant it leaves the old generation live, and the next rebuild sweeps up. The generation before
is kept for comparison and rollback. All SQL over these tables is here.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, text, tuple_, update

from ledger.clock import Clock
from ledger.errors import AlreadyRunning, StoreUnavailable
from ledger.store import Ledger
from projections.decoding import decode
from projections.facts import Facts, RuleFailure
from projections.lists.contract import Standing
from projections.schema import generation_ladders, generation_standings, generations, live_generation
from projections.standings import Ladders, Standings

TRANSACTION_ROWS = 5_000
POSTGRES_REBUILD_LOCK = 7_236_836_022


class Failure(NamedTuple):
    """A ladder, or all ladders of a ruleset, that could not be built: the old standings keep serving."""

    ladder: str
    position: int
    message: str


class Rebuilt(NamedTuple):
    """What a rebuild made."""

    generation: int
    position: int
    chain_hash: bytes
    ladders: int
    rows: int
    games: int
    failures: list[Failure]


def rebuild(ledger: Ledger, clock: Clock) -> Rebuilt:
    """Build and promote a generation of every ladder at the head. Raises `AlreadyRunning`, `StoreUnavailable`."""
    with _only_one(ledger):
        generation = _begin(ledger)
        with ledger.reading() as connection:
            facts = decode(connection)
        with ledger.writing() as connection:
            row = {"generation": generation, "position": facts.position, "chain_hash": facts.chain_hash,
                   "started_at": clock()}  # fmt: skip
            connection.execute(insert(generations), row)
        built, failures = _build(ledger, facts, generation)
        _promote(ledger, generation, failures, clock)
    return Rebuilt(
        generation, facts.position, facts.chain_hash, len(built), sum(len(s.rows) for s in built),
        len(facts.first_position), failures,
    )  # fmt: skip


def _build(ledger: Ledger, facts: Facts, generation: int) -> tuple[list[Standings], list[Failure]]:
    built: list[Standings] = []
    failures: list[Failure] = []
    waiting: list[Standings] = []
    for result in compute(facts):
        if isinstance(result, Failure):
            failures.append(result)
            continue
        built.append(result)
        waiting.append(result)
        if sum(len(s.rows) + 1 for s in waiting) >= TRANSACTION_ROWS:
            _write(ledger, facts, generation, waiting)
            waiting = []
    _write(ledger, facts, generation, waiting)
    return built, failures


def compute(facts: Facts) -> Iterator[Standings | Failure]:
    """The standings of every ladder that has games or adjustments, by replay, ruleset by ruleset."""
    ladders = Ladders(facts)
    for ruleset_id, unusable in sorted(facts.unusable.items()):
        yield Failure(ruleset_id, unusable.position, unusable.reason)
    for ruleset_id in sorted(facts.rulesets.keys() - facts.unusable.keys()):
        try:
            found = ladders.every(ruleset_id)
        except RuleFailure as error:
            yield Failure(ruleset_id, error.place(facts), str(error))
            continue
        for ladder, stream in sorted(found.items()):
            try:
                yield ladders.of_stream(stream)
            except RuleFailure as error:
                yield Failure(ladder, error.place(facts), str(error))


def _begin(ledger: Ledger) -> int:
    """Sweep up after rebuilds that were cut off, and give the number of the next generation."""
    with ledger.reading() as connection:
        newest = connection.execute(select(func.max(generations.c.generation))).scalar() or 0
    _sweep(ledger)
    return newest + 1


def _write(ledger: Ledger, facts: Facts, generation: int, built: list[Standings]) -> None:
    """Write standings, at most `TRANSACTION_ROWS` rows a transaction."""
    rows = [
        {"build": generation, "ladder": s.ladder, "ordinal": ordinal, **row._asdict(),
         "places": None if row.places is None else ",".join(map(str, row.places))}
        for s in built
        for ordinal, row in enumerate(s.rows, 1)
    ]  # fmt: skip
    for start in range(0, len(rows), TRANSACTION_ROWS):
        with ledger.writing() as connection:
            connection.execute(insert(generation_standings), rows[start : start + TRANSACTION_ROWS])
    ladders = [
        {"generation": generation, "ladder": s.ladder, "build": generation, "ruleset": s.ruleset, "digest": s.digest,
         "position": facts.position, "chain_hash": facts.chain_hash, "scale": s.scale, "games": s.games,
         "players": len(s.rows)}
        for s in built
    ]  # fmt: skip
    if ladders:
        with ledger.writing() as connection:
            connection.execute(insert(generation_ladders), ladders)


def _promote(ledger: Ledger, generation: int, failures: list[Failure], clock: Clock) -> None:
    """Take the old standings of failed ladders along, flip the pointer, drop what is two generations old."""
    with ledger.writing() as connection:
        live = live_generation_number(connection)
        for failure in failures:
            name = generation_ladders.c.ladder
            failed = (name == failure.ladder) | name.startswith(f"{failure.ladder}/", autoescape=True)
            old = select(generation_ladders).where(generation_ladders.c.generation == live, failed)
            for row in connection.execute(old).mappings().all():
                connection.execute(insert(generation_ladders), {**row, "generation": generation})
        connection.execute(
            update(generations).where(generations.c.generation == generation).values(finished_at=clock())
        )
        connection.execute(delete(live_generation))
        connection.execute(insert(live_generation), {"singleton": 1, "generation": generation})
    _sweep(ledger)


def _sweep(ledger: Ledger) -> None:
    """Forget all generations but the live one and the finished one before it, in small transactions."""
    with ledger.writing() as connection:
        live = live_generation_number(connection)
        earlier = (generations.c.generation < (live or 0)) & generations.c.finished_at.is_not(None)
        kept = [live or 0, connection.execute(select(func.max(generations.c.generation)).where(earlier)).scalar() or 0]
        connection.execute(delete(generation_ladders).where(generation_ladders.c.generation.not_in(kept)))
        connection.execute(delete(generations).where(generations.c.generation.not_in(kept)))
    table = generation_standings
    key = (table.c.build, table.c.ladder, table.c.ordinal)
    unused = table.c.build.not_in(select(generation_ladders.c.build))
    some = select(*key).where(unused).limit(TRANSACTION_ROWS)
    gone = TRANSACTION_ROWS
    while gone == TRANSACTION_ROWS:
        with ledger.writing() as connection:
            gone = connection.execute(delete(table).where(tuple_(*key).in_(some))).rowcount


def live_generation_number(connection: Connection) -> int | None:
    """The generation that readers see, or None before the first rebuild."""
    return connection.execute(select(live_generation.c.generation)).scalar()


def live(connection: Connection) -> Row[Any] | None:
    """The live generation's row of `generations`, or None before the first rebuild."""
    query = select(generations).join(live_generation, live_generation.c.generation == generations.c.generation)
    return connection.execute(query).one_or_none()


def ladders_of(connection: Connection, generation: int) -> list[Row[Any]]:
    """The rows of `generation_ladders` of a generation, by ladder."""
    query = select(generation_ladders).where(generation_ladders.c.generation == generation)
    return list(connection.execute(query.order_by(generation_ladders.c.ladder)))


def stored_rows(connection: Connection, build: int, ladder: str) -> list[Standing]:
    """A ladder's stored standings in order."""
    table = generation_standings
    columns = [table.c[name] for name in Standing._fields]
    query = select(*columns).where(table.c.build == build, table.c.ladder == ladder).order_by(table.c.ordinal)
    found = [Standing(*row) for row in connection.execute(query)]
    return [
        row if row.places is None else row._replace(places=tuple(map(int, str(row.places).split(",")))) for row in found
    ]


@contextmanager
def _only_one(ledger: Ledger) -> Iterator[None]:
    """Hold the rebuild lock, which dies with the process. Raises `AlreadyRunning`."""
    busy = AlreadyRunning(f"another rebuild of {ledger.location} is running; this one did nothing")
    if ledger.engine.dialect.name == "sqlite":
        path = f"{ledger.url.database}.rebuild-lock"
        try:
            file = open(path, "w")  # noqa: SIM115  (held until the end)
        except OSError as error:
            raise StoreUnavailable(f"the lock file {path} cannot be written: {error.strerror}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise busy from None
            yield
    else:
        with ledger.reading() as connection:
            if not connection.execute(text(f"SELECT pg_try_advisory_lock({POSTGRES_REBUILD_LOCK})")).scalar():
                raise busy
            yield
