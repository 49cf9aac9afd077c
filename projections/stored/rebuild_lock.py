"""The rebuild lock: one rebuild at a time per database, however it is accessed; whoever loses it promotes nothing.

In PostgreSQL it is an advisory lock, held on a connection of its own; in SQLite it is a lock on the database file
itself, so neither a link to it nor a deleted file makes a second one. The number of the generation that a holder begins
is its fencing token: each holder's is higher than all before it, and only the highest is promoted.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from ledger.errors import AlreadyRunning, StoreUnavailable
from ledger.store.opening import Ledger

POSTGRES_REBUILD_LOCK, POSTGRES_FENCE_LOCK = 7_236_836_022, 7_236_836_023
# closing any descriptor of a file drops the locks that SQLite has on it in this process: none is ever closed
_descriptors: dict[tuple[int, int, int], int] = {}
_held: set[tuple[int, int, int]] = set()


class RebuildLock(NamedTuple):
    """The lock, held; in PostgreSQL on this connection."""

    ledger: Ledger
    connection: Connection | None

    @contextmanager
    def fenced(self) -> Iterator[Connection]:
        """A transaction during which nobody else begins, promotes or rolls back; on the lock's own connection.

        It fails if that connection is gone, and the lock with it.
        """
        if self.connection is None:
            with self.ledger.writing() as connection:
                yield connection
            return
        self.connection.exec_driver_sql("BEGIN")
        try:
            self.connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_FENCE_LOCK})")
            yield self.connection
            self.connection.exec_driver_sql("COMMIT")
        except BaseException:
            with suppress(SQLAlchemyError):
                self.connection.exec_driver_sql("ROLLBACK")
            raise


@contextmanager
def fenced(ledger: Ledger) -> Iterator[Connection]:
    """The same for somebody who does not hold the lock, or cannot know whether they still do."""
    with ledger.writing() as connection:
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_FENCE_LOCK})")
        yield connection


@contextmanager
def only_one(ledger: Ledger) -> Iterator[RebuildLock]:
    """Hold the rebuild lock, which dies with the process. Raises `AlreadyRunning`."""
    busy = AlreadyRunning(f"another rebuild of {ledger.location} is running; this one did nothing")
    if ledger.engine.dialect.name == "sqlite":
        file = _file(str(ledger.url.database))
        if file in _held:
            raise busy
        try:
            fcntl.flock(_descriptors[file], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        _held.add(file)
        try:
            yield RebuildLock(ledger, None)
        finally:
            _held.discard(file)
            fcntl.flock(_descriptors[file], fcntl.LOCK_UN)
        return
    with ledger.reading() as connection:
        if not connection.execute(text(f"SELECT pg_try_advisory_lock({POSTGRES_REBUILD_LOCK})")).scalar():
            raise busy
        try:
            yield RebuildLock(ledger, connection)
        finally:
            # the server may take a while to notice a closed connection; it may also be gone already
            with suppress(SQLAlchemyError):
                connection.execute(text(f"SELECT pg_advisory_unlock({POSTGRES_REBUILD_LOCK})"))


def _file(path: str) -> tuple[int, int, int]:
    """This process and the database file, opened by a descriptor. Raises `StoreUnavailable`."""
    try:
        found = os.stat(path)
        key = os.getpid(), found.st_dev, found.st_ino
        if key not in _descriptors:
            _descriptors[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be locked: {error.strerror}") from error
    return key
