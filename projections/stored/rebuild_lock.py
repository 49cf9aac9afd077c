"""Hold the rebuild lock: one rebuild at a time per database. A process that loses the lock promotes nothing.

The store holds the lock. The number of the generation that a process creates under the lock is its fencing token:
numbers increase, and only the generation with the highest number can be promoted.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import AlreadyRunning
from ratings_ledger.ledger.store.dialect import transaction
from ratings_ledger.ledger.store.opening import Ledger


class RebuildLock(NamedTuple):
    """A held rebuild lock. `connection` is the one that holds it, or None if the lock does not need a connection."""

    ledger: Ledger
    connection: Connection | None

    @contextmanager
    def fenced_transaction(self) -> Iterator[Connection]:
        """Provide a transaction during which no other process creates, promotes or rolls back a generation.

        It uses the connection that holds the lock, if there is one, and fails if the lock is lost with this connection.
        """
        if self.connection is None:
            with fenced_transaction(self.ledger) as connection:
                yield connection
            return
        with transaction(self.connection, "BEGIN"):
            self.ledger.dialect.lock_generations(self.connection)
            yield self.connection


@contextmanager
def fenced_transaction(ledger: Ledger) -> Iterator[Connection]:
    """Provide a fenced transaction to a caller that does not hold the lock, or may have lost it."""
    with ledger.writing("rebuilder") as connection:
        ledger.dialect.lock_generations(connection)
        yield connection


@contextmanager
def hold_rebuild_lock(ledger: Ledger) -> Iterator[RebuildLock]:
    """Hold the rebuild lock until the end of the context, or of the process. Raises `AlreadyRunning`."""
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(ledger.dialect.hold_rebuild_lock(ledger))
        except BlockingIOError:
            raise AlreadyRunning(
                f"another rebuild, rollback or upgrade of {ledger.location} is running, so this command did nothing; "
                "try again when it has finished"
            ) from None
        yield RebuildLock(ledger, connection)
