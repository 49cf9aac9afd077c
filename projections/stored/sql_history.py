"""Store the SQL history of the live generation: ladder changes, current games and their participants.

This module contains all SQL for the history tables. Rows are stored in parts: blocks of a ladder's changes, or of
games. A generation references its parts, and reuses unchanged parts of the previous generation. New parts are written
in small transactions, and become visible when the generation is promoted. Unreferenced parts are deleted afterwards.
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
from ratings_ledger.projections.stored.computing import BuiltLadder
from ratings_ledger.projections.stored.schema import (
    history_changes,
    history_games,
    history_participants,
    history_parts,
    live_history,
)
from ratings_ledger.projections.stored.sql_rows import Block, GameBlock, iterate_change_rows, split_games_into_blocks

# the `ladder` of parts that hold games
GAMES = ""
ROW_TABLES = (history_changes, history_games, history_participants)
# the part ids of generation g lie between g * PARTS_PER_GENERATION and (g + 1) * PARTS_PER_GENERATION
PARTS_PER_GENERATION = 1 << 32

# ids of parts by (ladder, block, digest)
StoredParts = dict[tuple[str, int, str], int]


class HistoryWriter(NamedTuple):
    """The data for writing the history of a generation.

    stored_parts: the parts that the generation can reference instead of writing equal ones
    part_ids:     the ids of new parts
    """

    ledger: Ledger
    generation: int
    stored_parts: StoredParts
    part_ids: Iterator[int]


def read_history_generation(connection: Connection) -> int | None:
    """Return the generation with a published history, or None. After a rollback, it may not be the live generation."""
    generation: int | None = connection.execute(select(live_history.c.generation)).scalar()
    return generation


def open_history_writer(ledger: Ledger, generation: int, reuse: bool) -> HistoryWriter:
    """Return a writer for the history of a new generation; with `reuse`, it reuses equal stored parts."""
    table = history_parts.c
    stored_parts: StoredParts = {}
    if reuse:
        with ledger.reading() as connection:
            query = select(table.ladder, table.block, table.digest, table.part)
            for row in connection.execute(query.where(table.generation == read_history_generation(connection))):
                stored_parts[row.ladder, row.block, row.digest] = row.part
    return HistoryWriter(ledger, generation, stored_parts, count(generation * PARTS_PER_GENERATION + 1))


def write_changes(writer: HistoryWriter, built: Iterable[BuiltLadder]) -> int:
    """Store the changes of ladders; return the number of changes."""
    part_rows: list[tuple[Any, ...]] = []
    new_rows: list[Iterator[tuple[Table, tuple[Any, ...]]]] = []
    changes = 0
    for ladder in built:
        for number, block in enumerate(ladder.changes or ()):
            digest, players, _, _ = block
            part, is_new = _assign_part(writer, ladder.ladder, number, digest)
            part_rows.append((writer.generation, ladder.ladder, number, part, ladder.scale, len(players), digest))
            changes += len(players)
            if is_new:
                new_rows.append(_list_change_rows(part, number, block))
    _store(writer.ledger, part_rows, chain.from_iterable(new_rows))
    return changes


def write_games(writer: HistoryWriter, connection: Connection, facts: Facts) -> None:
    """Store the current games."""
    part_rows: list[tuple[Any, ...]] = []
    new_rows: list[Iterator[tuple[Table, tuple[Any, ...]]]] = []
    for number, block in enumerate(split_games_into_blocks(connection, facts)):
        part, is_new = _assign_part(writer, GAMES, number, block.digest)
        part_rows.append((writer.generation, GAMES, number, part, 1, block.row_count, block.digest))
        if is_new:
            new_rows.append(_list_game_rows(part, block))
    _store(writer.ledger, part_rows, chain.from_iterable(new_rows))


def _list_change_rows(part: int, number: int, block: Block) -> Iterator[tuple[Table, tuple[Any, ...]]]:
    yield from ((history_changes, (part, *row)) for row in iterate_change_rows(number, block))


def _list_game_rows(part: int, block: GameBlock) -> Iterator[tuple[Table, tuple[Any, ...]]]:
    games, participants = block.read()
    yield from ((history_games, (part, *row)) for row in games)
    yield from ((history_participants, (part, *row)) for row in participants)


def _assign_part(writer: HistoryWriter, ladder: str, number: int, digest: str) -> tuple[int, bool]:
    """Return the id of the part that holds a block, and whether the part is new."""
    stored_part = writer.stored_parts.get((ladder, number, digest))
    return (next(writer.part_ids), True) if stored_part is None else (stored_part, False)


def _store(ledger: Ledger, part_rows: list[tuple[Any, ...]], rows: Iterator[tuple[Table, tuple[Any, ...]]]) -> None:
    # the part rows are stored with the first data rows, so that a sweep knows their sizes if the process is killed
    while (batch := list(islice(rows, generations.TRANSACTION_ROWS))) or part_rows:
        generations.check_free_space(ledger)
        with ledger.writing() as connection:
            generations.insert_rows(connection, history_parts, part_rows)
            for table, table_rows in groupby(batch, key=lambda row: row[0]):
                generations.insert_rows(connection, table, [row for _, row in table_rows])
        part_rows = []


def reuse_parts(writer: HistoryWriter, source: int, ladders: Collection[str]) -> int:
    """Reference the parts of generation `source` for some ladders, and for the games if `ladders` contains `GAMES`.

    Return the number of their rows.
    """
    table = history_parts
    with writer.ledger.reading() as connection:
        rows = connection.execute(select(table).where(table.c.generation == source)).all()
    names = set(ladders)
    reused = [row for row in rows if row.ladder in names]
    part_rows = [(writer.generation, *row[1:]) for row in reused]
    for start in range(0, len(part_rows), generations.TRANSACTION_ROWS):
        _store(writer.ledger, part_rows[start : start + generations.TRANSACTION_ROWS], iter(()))
    return sum(row.rows for row in reused)


def check_row_count(ledger: Ledger, generation: int) -> None:
    """Raise `LockLost` if a row that a generation wrote is missing."""
    table = history_parts.c
    first_id, end_id = generation * PARTS_PER_GENERATION, (generation + 1) * PARTS_PER_GENERATION
    with ledger.reading() as connection:
        row_sum = select(func.coalesce(func.sum(table.rows), 0)).where(table.generation == generation)
        expected_count = int(connection.execute(row_sum.where(table.part > first_id, table.part < end_id)).scalar_one())
        stored_count = 0
        for row_table in ROW_TABLES:
            part = row_table.c.part
            count_query = select(func.count()).select_from(row_table).where(part > first_id, part < end_id)
            stored_count += connection.execute(count_query).scalar_one()
    if expected_count != stored_count:
        raise LockLost(
            f"generation {generation} has {stored_count:,} of its {expected_count:,} rows of changes and games; "
            "nothing was promoted; run: ratings rebuild --history"
        )


def set_history_generation(connection: Connection, generation: int | None) -> None:
    """Publish the history of a generation; readers see it once the generation is live. With None, publish none."""
    if generation is not None or read_history_generation(connection) is not None:
        connection.execute(delete(live_history))
    if generation is not None:
        connection.execute(insert(live_history), {"singleton": 1, "generation": generation})


def sweep_history(ledger: Ledger, until: int) -> None:
    """Delete the history of all generations up to `until`, except the published history.

    Later generations belong to a process that took over the lock, so they and their parts are kept.
    """
    table = history_parts.c
    with ledger.reading() as connection:
        published = read_history_generation(connection)
        # data rows without a row in history_parts come from a process that lost the lock and kept writing after a sweep
        stored = {part for row_table in ROW_TABLES for part in _list_parts_in(connection, row_table, until)}
        rows = connection.execute(select(table.generation, table.part, table.rows).order_by(table.part)).all()
    kept_parts = {row.part for row in rows if row.generation == published or row.generation > until}
    sizes = {row.part: row.rows for row in rows if row.generation <= until}
    obsolete = [part for part in sorted(sizes.keys() | stored) if part not in kept_parts]
    # a part without a row in history_parts has an unknown size, so it gets a transaction of its own
    for parts in _batch_parts([(part, sizes.get(part, generations.TRANSACTION_ROWS)) for part in obsolete]):
        with ledger.writing() as connection:
            for row_table in ROW_TABLES:
                connection.execute(delete(row_table).where(row_table.c.part.in_(parts)))
    for generation in sorted({row.generation for row in rows if row.generation <= until} - {published}):
        with ledger.writing() as connection:
            connection.execute(delete(history_parts).where(table.generation == generation))


def _list_parts_in(connection: Connection, table: Table, until: int) -> Iterator[int]:
    """Yield the parts of generations up to `until` that have rows in a table, including unreferenced parts."""
    lowest = select(func.min(table.c.part)).where(table.c.part < (until + 1) * PARTS_PER_GENERATION)
    part = connection.execute(lowest).scalar()
    while part is not None:
        yield part
        part = connection.execute(lowest.where(table.c.part > part)).scalar()


def _batch_parts(parts: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield part ids in batches that fit one transaction; `parts` holds (id, row count)."""
    batch: list[int] = []
    rows = 0
    for part, size in parts:
        if batch and (rows + size > generations.TRANSACTION_ROWS or len(batch) == generations.NAMES_MAX):
            yield batch
            batch, rows = [], 0
        batch.append(part)
        rows += size
    if batch:
        yield batch


def find_change_difference(connection: Connection, stored: Sequence[Row[Any]], replayed: BuiltLadder) -> str | None:
    """Describe the first difference between a ladder's stored changes and a replay, or return None."""
    blocks = replayed.changes or []
    replayed_parts = [
        (number, replayed.scale, len(players), digest) for number, (digest, players, _, _) in enumerate(blocks)
    ]
    subject = f"{replayed.ladder}: the stored changes"
    if not stored and replayed_parts:
        return f"{subject} are missing"
    if [(row.block, row.scale, row.rows, row.digest) for row in stored] != replayed_parts:
        return f"{subject} differ from a replay in their blocks, scale, row counts or digests"
    for row, block in zip(stored, blocks, strict=True):
        if _read_rows(connection, history_changes, row.part) != list(iterate_change_rows(row.block, block)):
            return f"{subject} differ from a replay"
    return None


def find_game_difference(connection: Connection, stored: Sequence[Row[Any]], facts: Facts) -> str | None:
    """Describe the first difference between the stored games and the log, or return None."""
    parts = list(stored)
    for number, block in enumerate(split_games_into_blocks(connection, facts)):
        if not parts:
            return "stored games are missing"
        row = parts.pop(0)
        if (row.block, row.scale, row.rows, row.digest) != (number, 1, block.row_count, block.digest):
            return "the stored games differ from the log in their blocks, scale, row counts or digests"
        for table, expected in zip((history_games, history_participants), block.read(), strict=True):
            stored_rows = _read_rows(connection, table, row.part)
            if stored_rows != expected:
                first = next((row for row, new in zip(stored_rows, expected, strict=False) if row != new), None)
                location = "" if first is None else f", the first at position {quote(str(first[0]))}"
                return f"the stored games differ from the log{location}"
    return "there are stored games that the log does not contain" if parts else None


def list_parts(connection: Connection, generation: int) -> dict[str, list[Row[Any]]]:
    """Return a generation's parts in order, by ladder; games have the key `GAMES`."""
    table = history_parts.c
    rows = connection.execute(
        select(history_parts).where(table.generation == generation).order_by(table.ladder, table.block)
    )
    parts_by_ladder: dict[str, list[Row[Any]]] = {}
    for row in rows:
        parts_by_ladder.setdefault(row.ladder, []).append(row)
    return parts_by_ladder


def _read_rows(connection: Connection, table: Table, part: int) -> list[tuple[Any, ...]]:
    """Return the rows of a part in order, without the part's id."""
    # read booleans as integers, because SQLite may store any number in them
    columns = [type_coerce(column, Integer) if isinstance(column.type, Boolean) else column for column in table.columns]
    query = select(*columns[1:]).where(table.c.part == part).order_by(*table.primary_key.columns)
    return [tuple(row) for row in connection.execute(query)]
