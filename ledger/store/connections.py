"""What a store gets of an opened ledger: its connections."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection


class Connections(Protocol):
    """An opened ledger, as its own store sees it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection whose statements are transactions of their own."""

    def driving(self) -> AbstractContextManager[Any]:
        """The driver's own connection, outside of any transaction."""
