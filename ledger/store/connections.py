"""What a store sees of an opened ledger: its connections."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection


class Connections(Protocol):
    """An opened ledger, as its own store sees it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection on which each statement is a transaction of its own."""

    def driving(self) -> AbstractContextManager[Any]:
        """The driver's own connection, outside any transaction."""
