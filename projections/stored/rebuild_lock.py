"""The rebuild lock: one rebuild at a time per database, however it is accessed; whoever loses it promotes nothing.

The store holds it. The number of the generation that a holder begins is its fencing token: each holder's is higher than
all before it, and only the highest is promoted.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import AlreadyRunning
from ratings_ledger.ledger.store.dialect import transaction
from ratings_ledger.ledger.store.opening import Ledger


class RebuildLock(NamedTuple):
    """The lock, held; on this connection, if a connection holds it."""

    ledger: Ledger
    connection: Connection | None

    @contextmanager
    def fenced(self) -> Iterator[Connection]:
        """Provide a transaction during which nobody else begins, promotes or rolls back; on the lock's own connection.

        It fails if that connection is gone, and the lock with it.
        """
        if self.connection is None:
            with fenced(self.ledger) as connection:
                yield connection
            return
        with transaction(self.connection, "BEGIN"):
            self.ledger.dialect.lock_generations(self.connection)
            yield self.connection


@contextmanager
def fenced(ledger: Ledger) -> Iterator[Connection]:
    """Provide the same for a caller that does not hold the lock, or may have lost it."""
    with ledger.writing("rebuilder") as connection:
        ledger.dialect.lock_generations(connection)
        yield connection


@contextmanager
def only_one(ledger: Ledger) -> Iterator[RebuildLock]:
    """Hold the rebuild lock, which dies with the process. Raises `AlreadyRunning`."""
    with ExitStack() as stack:
        try:
            held = stack.enter_context(ledger.dialect.hold_rebuild_lock(ledger))
        except BlockingIOError:
            message = f"another rebuild of {ledger.location} is running; this one did nothing"
            raise AlreadyRunning(message) from None
        yield RebuildLock(ledger, held)
