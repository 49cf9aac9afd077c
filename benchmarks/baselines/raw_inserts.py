"""Insert a ledger's rows by hand, with the same schema, guards, indexes and settings, but no validation."""

import sqlite3
from contextlib import closing
from time import perf_counter
from typing import Any

from benchmarks.games import chunks
from benchmarks.histories import History
from benchmarks.ledgers import drafts, rows
from ratings_ledger.ledger.events.records import EventRow
from ratings_ledger.ledger.store.log import Head, head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.sqlite import PRAGMAS

COLUMN_COUNT = len(EventRow._fields)


def into_sqlite(url: str, history: list[Any], batch: int, journal: str = "truncate") -> dict[str, Any]:
    """Insert prepared rows into SQLite with `executemany`, `batch` rows per transaction, on one connection."""
    statement = f"INSERT INTO events VALUES ({', '.join('?' * COLUMN_COUNT)})"
    seconds, count = 0.0, 0
    latest = _head(url)
    with closing(sqlite3.connect(url, isolation_level=None)) as connection:
        for name, value in {**PRAGMAS, "journal_mode": journal}.items():
            connection.execute(f"PRAGMA {name} = {value}")
        for drawn in chunks(History(*history)):
            ready = rows(drafts(drawn, History(*history)), latest)
            started = perf_counter()
            for first in range(0, len(ready), batch):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(statement, ready[first : first + batch])
                connection.execute("COMMIT")
            seconds += perf_counter() - started
            count += len(ready)
            latest = Head(ready[-1].position, ready[-1].chain_hash, ready[-1].recorded_at)
    return {"seconds": seconds, "count": count}


def into_postgres(url: str, history: list[Any], batch: int) -> dict[str, Any]:
    """Insert prepared rows with psycopg, whose `executemany` sends rows without waiting for each."""
    import psycopg

    statement = f"INSERT INTO events VALUES ({', '.join(['%s'] * COLUMN_COUNT)})"
    seconds, count = 0.0, 0
    latest = _head(url)
    with psycopg.connect(url) as connection:
        for drawn in chunks(History(*history)):
            ready = rows(drafts(drawn, History(*history)), latest)
            started = perf_counter()
            for first in range(0, len(ready), batch):
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(statement, ready[first : first + batch])
            seconds += perf_counter() - started
            count += len(ready)
            latest = Head(ready[-1].position, ready[-1].chain_hash, ready[-1].recorded_at)
    return {"seconds": seconds, "count": count}


def _head(url: str) -> Head:
    with open_ledger(url).reading() as connection:
        return head(connection)
