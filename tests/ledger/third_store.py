"""A third store, like one of another program: a file, as in SQLite."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from ratings_ledger.ledger.store import sqlite
from ratings_ledger.ledger.store.sqlite import *  # noqa: F403

GUARDS = tuple(reversed(sqlite.GUARDS))
# the calls of this store's own functions
recorded_calls: list[str] = []


def identify_database(connection: Connection) -> tuple[str, ...]:
    """Return a key that differs from that of SQLite, so that the two stores share no cache."""
    return ("third", *sqlite.identify_database(connection))


def lock_and_read_head(connection: Connection, names: Sequence[str]) -> object:
    """Record the call, and do the same as SQLite."""
    recorded_calls.append("lock_and_read_head")
    return sqlite.lock_and_read_head(connection, names)


def find_object_differences(connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
    """Record the call, and do the same as SQLite."""
    recorded_calls.append("find_object_differences")
    return sqlite.find_object_differences(connection, views)
