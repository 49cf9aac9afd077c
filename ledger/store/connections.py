"""What a store sees of an opened ledger: its connections; and what stores have in common."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from sqlalchemy import URL, Connection
from sqlalchemy.exc import SQLAlchemyError

# the id, the subject, the type and the record of an event
NamedEvent = tuple[str, str, str, str]


class Connections(Protocol):
    """An opened ledger, as its own store sees it."""

    @property
    def url(self) -> URL:
        """Where it is."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection on which each statement is a transaction of its own."""

    def driving(self) -> AbstractContextManager[Any]:
        """The driver's own connection, outside any transaction."""


@contextmanager
def transaction(connection: Connection, *begin: str) -> Iterator[None]:
    """A transaction, begun by these statements, on a connection on which each statement is one of its own."""
    try:
        for statement in begin:
            connection.exec_driver_sql(statement)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise
