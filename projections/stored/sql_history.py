"""What is kept of the live generation for SQL: every change on every ladder, the current games, and who took part.

All SQL on these tables is here. They hold parts: a block of a ladder's changes, or of games. A generation names its
parts, and reuses the previous ones that have not changed. New ones are written alongside, in small transactions, and
become visible when the generation is promoted; those it does not name are deleted afterwards.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, groupby, islice
from typing import Any, NamedTuple

from sqlalchemy import Boolean, Connection, Integer, Row, Table, delete, func, insert, select, type_coerce

from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.computing import Built
from ratings_ledger.projections.stored.schema import (
    history_changes,
    history_games,
    history_participants,
    history_parts,
    live_history,
)
from ratings_ledger.projections.stored.sql_rows import Block, GameBlock, blocks_of_games, change_rows

# parts that hold games rather than a ladder's changes
GAMES = ""
ROWS = (history_changes, history_games, history_participants)
# a generation numbers its own parts from its number times this
PARTS = 1 << 32

KnownParts = dict[tuple[str, int, str], int]


class Keeping(NamedTuple):
    """A generation whose history is being kept: the known parts by ladder, block and digest, and numbers for new ones.

    `generation` names the old ones that match as its own.
    """

    ledger: Ledger
    generation: int
    known: KnownParts
    numbers: Iterator[int]


def pointer(connection: Connection) -> int | None:
    """Return the generation whose history is kept, or None. After a rollback it is not the live one."""
    generation: int | None = connection.execute(select(live_history.c.generation)).scalar()
    return generation


def begin_keeping(ledger: Ledger, generation: int, reuse: bool) -> Keeping:
    """Keep the history of a generation that is being built, reusing parts that are already stored if `reuse`."""
    table = history_parts.c
    known: KnownParts = {}
    if reuse:
        with ledger.reading() as connection:
            query = select(table.ladder, table.block, table.digest, table.part)
            for row in connection.execute(query.where(table.generation == pointer(connection))):
                known[row.ladder, row.block, row.digest] = row.part
    return Keeping(ledger, generation, known, count(generation * PARTS + 1))


def write_changes(keeping: Keeping, built: Iterable[Built]) -> int:
    """Store the changes of ladders; returns how many there are."""
    named: list[tuple[Any, ...]] = []
    written: list[Iterator[tuple[Table, tuple[Any, ...]]]] = []
    changes = 0
    for ladder in built:
        for number, block in enumerate(ladder.changes or ()):
            part, is_new = _part(keeping, ladder.ladder, number, block[0])
            named.append((keeping.generation, ladder.ladder, number, part, ladder.scale, len(block[1]), block[0]))
            changes += len(block[1])
            if is_new:
                written.append(_of_block(part, number, block))
    _store(keeping.ledger, named, chain.from_iterable(written))
    return changes


def write_games(keeping: Keeping, connection: Connection, facts: Facts) -> None:
    """Store the games as they are now."""
    named: list[tuple[Any, ...]] = []
    written: list[Iterator[tuple[Table, tuple[Any, ...]]]] = []
    for number, block in enumerate(blocks_of_games(connection, facts)):
        part, is_new = _part(keeping, GAMES, number, block.digest)
        named.append((keeping.generation, GAMES, number, part, 1, block.rows, block.digest))
        if is_new:
            written.append(_of_games(part, block))
    _store(keeping.ledger, named, chain.from_iterable(written))


def _of_block(part: int, number: int, block: Block) -> Iterator[tuple[Table, tuple[Any, ...]]]:
    yield from ((history_changes, (part, *row)) for row in change_rows(number, block))


def _of_games(part: int, block: GameBlock) -> Iterator[tuple[Table, tuple[Any, ...]]]:
    games, participants = block.read()
    yield from ((history_games, (part, *row)) for row in games)
    yield from ((history_participants, (part, *row)) for row in participants)


def _part(keeping: Keeping, ladder: str, number: int, digest: str) -> tuple[int, bool]:
    """Return the part that holds a block, and whether it is a new one."""
    known = keeping.known.get((ladder, number, digest))
    return (next(keeping.numbers), True) if known is None else (known, False)


def _store(ledger: Ledger, named: list[tuple[Any, ...]], rows: Iterator[tuple[Table, tuple[Any, ...]]]) -> None:
    # the naming row is stored with the first rows, so that they can be found if no more follow
    while (some := list(islice(rows, generations.TRANSACTION_ROWS))) or named:
        generations.leave_room(ledger)
        with ledger.writing() as connection:
            generations.insert_rows(connection, history_parts, named)
            for table, of_table in groupby(some, key=lambda row: row[0]):
                generations.insert_rows(connection, table, [row for _, row in of_table])
        named = []


def copy(keeping: Keeping, before: int, ladders: Collection[str]) -> int:
    """Let the generation name the parts of some ladders, or of the games, as the previous one does.

    Returns how many rows they have.
    """
    table = history_parts
    with keeping.ledger.reading() as connection:
        rows = connection.execute(select(table).where(table.c.generation == before)).all()
    names = set(ladders)
    copied = [row for row in rows if row.ladder in names]
    named = [(keeping.generation, *row[1:]) for row in copied]
    for start in range(0, len(named), generations.TRANSACTION_ROWS):
        _store(keeping.ledger, named[start : start + generations.TRANSACTION_ROWS], iter(()))
    return sum(row.rows for row in copied)


def refuse_short(ledger: Ledger, generation: int) -> None:
    """Raises `LockLost` unless everything a generation wrote is there."""
    table = history_parts.c
    own = (generation * PARTS, (generation + 1) * PARTS)
    with ledger.reading() as connection:
        named = select(func.coalesce(func.sum(table.rows), 0)).where(table.generation == generation)
        promised = int(connection.execute(named.where(table.part > own[0], table.part < own[1])).scalar_one())
        stored_count = 0
        for rows in ROWS:
            counted = select(func.count()).select_from(rows).where(rows.c.part > own[0], rows.c.part < own[1])
            stored_count += connection.execute(counted).scalar_one()
    if promised != stored_count:
        raise LockLost(
            f"generation {generation} has {stored_count:,} of its {promised:,} rows of changes and games; "
            "nothing was promoted"
        )


def point_to(connection: Connection, generation: int | None) -> None:
    """Show readers the history of a generation, as soon as that is the live one; or none any more."""
    if generation is not None or pointer(connection) is not None:
        connection.execute(delete(live_history))
    if generation is not None:
        connection.execute(insert(live_history), {"singleton": 1, "generation": generation})


def sweep_history(ledger: Ledger, until: int, building: bool = False) -> None:
    """Forget the history of all generations up to a number except the one pointed to.

    That number's stays, too, if it is being built; anything after it belongs to whoever took over the lock, with all
    the parts it names.
    """
    table = history_parts.c
    with ledger.reading() as connection:
        staying = {pointer(connection)} | ({until} if building else set())
        # naming rows are stored along with the rows, so everything that is there is named by now
        stored = {part for of_rows in ROWS for part in _parts_of(connection, of_rows, until)}
        rows = connection.execute(select(table.generation, table.part, table.rows).order_by(table.part)).all()
    named = {row.part for row in rows if row.generation in staying or row.generation > until}
    sizes = {row.part: row.rows for row in rows if row.generation <= until}
    removed = [part for part in sorted(sizes.keys() | stored) if part not in named]
    for parts in _few([(part, sizes.get(part, generations.TRANSACTION_ROWS)) for part in removed]):
        with ledger.writing() as connection:
            for of_rows in ROWS:
                connection.execute(delete(of_rows).where(of_rows.c.part.in_(parts)))
    for generation in sorted({row.generation for row in rows if row.generation <= until} - staying):
        with ledger.writing() as connection:
            connection.execute(delete(history_parts).where(table.generation == generation))


def _parts_of(connection: Connection, table: Table, until: int) -> Iterator[int]:
    """Yield the parts of generations up to a number that have rows in a table, named by a generation or not."""
    first = select(func.min(table.c.part)).where(table.c.part < (until + 1) * PARTS)
    part = connection.execute(first).scalar()
    while part is not None:
        yield part
        part = connection.execute(first.where(table.c.part > part)).scalar()


def _few(parts: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Parts, given their numbers of rows, in batches of one transaction each."""
    some: list[int] = []
    rows = 0
    for part, size in parts:
        if some and (rows + size > generations.TRANSACTION_ROWS or len(some) == generations.NAMES_MAX):
            yield some
            some, rows = [], 0
        some.append(part)
        rows += size
    if some:
        yield some


# -- against a replay


def differing(connection: Connection, stored: Sequence[Row[Any]], replayed: Built) -> str | None:
    """Return what a ladder's stored changes, given its parts, have that a replay does not, or vice versa; or None."""
    blocks = replayed.changes or []
    named = [(number, replayed.scale, len(block[1]), block[0]) for number, block in enumerate(blocks)]
    what = f"{replayed.ladder}: the stored changes"
    if not stored and named:
        return f"{what} are missing"
    if [(row.block, row.scale, row.rows, row.digest) for row in stored] != named:
        return f"{what} are not named as in a replay"
    for row, block in zip(stored, blocks, strict=True):
        if _rows(connection, history_changes, row.part) != list(change_rows(row.block, block)):
            return f"{what} differ from a replay"
    return None


def games_differing(connection: Connection, stored: Sequence[Row[Any]], facts: Facts) -> str | None:
    """Return what the stored games, given their parts, have that the log does not, or vice versa; or None."""
    parts = list(stored)
    for number, block in enumerate(blocks_of_games(connection, facts)):
        if not parts:
            return "stored games are missing"
        row = parts.pop(0)
        if (row.block, row.scale, row.rows, row.digest) != (number, 1, block.rows, block.digest):
            return "the stored games are not named as in the log"
        for table, expected in zip((history_games, history_participants), block.read(), strict=True):
            stored_rows = _rows(connection, table, row.part)
            if stored_rows != expected:
                first = next((a for a, b in zip(stored_rows, expected, strict=False) if a != b), None)
                where = "" if first is None else f", the first at position {quote(str(first[0]))}"
                return f"the stored games differ from the log{where}"
    return "there are stored games that the log does not have" if parts else None


def kept_parts(connection: Connection, generation: int) -> dict[str, list[Row[Any]]]:
    """Return the parts that a generation names, by ladder, in order; those of games without a ladder."""
    table = history_parts.c
    rows = connection.execute(
        select(history_parts).where(table.generation == generation).order_by(table.ladder, table.block)
    )
    found: dict[str, list[Row[Any]]] = {}
    for row in rows:
        found.setdefault(row.ladder, []).append(row)
    return found


def _rows(connection: Connection, table: Table, part: int) -> list[tuple[Any, ...]]:
    """Return the rows of a part in order, without the part's number."""
    # a boolean as it is stored: in SQLite that may be any number
    columns = [type_coerce(column, Integer) if isinstance(column.type, Boolean) else column for column in table.columns]
    query = select(*columns[1:]).where(table.c.part == part).order_by(*table.primary_key.columns)
    return [tuple(row) for row in connection.execute(query)]
