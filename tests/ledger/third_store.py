"""A third store, as a program that brings one would have it: it keeps a file as SQLite does."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from ratings_ledger.ledger.store import sqlite
from ratings_ledger.ledger.store.sqlite import *  # noqa: F403

GUARDS = tuple(reversed(sqlite.GUARDS))
# asked of this store alone
asked: list[str] = []


def identify_database(connection: Connection) -> tuple[str, ...]:
    """Another place than that of a ledger in SQLite, whose cache is none of this store's."""
    return ("third", *sqlite.identify_database(connection))


def lock_and_read_head(connection: Connection, names: Sequence[str]) -> object:
    """As in SQLite."""
    asked.append("lock_and_read_head")
    return sqlite.lock_and_read_head(connection, names)


def find_object_differences(connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
    """As in SQLite."""
    asked.append("find_object_differences")
    return sqlite.find_object_differences(connection, views)
