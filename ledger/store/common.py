"""What stores have in common: connections to an opened ledger, settings, and words about rights."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple, Protocol

from sqlalchemy import URL, Connection
from sqlalchemy.exc import SQLAlchemyError

from ratings_ledger.ledger.errors import NotALedger

# the id, the subject, the type and the record of an event
NamedEvent = tuple[str, str, str, str]


class Connections(Protocol):
    """An opened ledger, as its own store sees it."""

    @property
    def url(self) -> URL:
        """Return where it is."""

    def reading(self, role: str | None = None) -> AbstractContextManager[Connection]:
        """Return a connection on which each statement is a transaction of its own, for the work of a role."""

    def driving(self) -> AbstractContextManager[Any]:
        """Return the driver's own connection, outside any transaction."""


@contextmanager
def transaction(connection: Connection, *begin: str) -> Iterator[None]:
    """Provide a transaction, begun by these statements, on a connection on which each statement is one of its own."""
    try:
        for statement in begin:
            connection.exec_driver_sql(statement)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise


# settings, read back for `doctor`; and how long a store may be busy

BUSY_SECONDS = 30


class Setting(NamedTuple):
    """A setting's name, its value, what it should be (None: any value is fine), and how to change it."""

    name: str
    value: str
    wanted: str | None
    remedy: str = ""

    @property
    def fine(self) -> bool:
        """Tell whether the value is the wanted one."""
        return self.wanted is None or self.value == self.wanted


def busy_seconds(url: URL) -> float:
    """Return how long to wait for a lock: the URL's `timeout`, else `BUSY_SECONDS`. Raises `NotALedger`."""
    text = str(url.query.get("timeout", BUSY_SECONDS))
    if not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text, re.ASCII):
        raise NotALedger(f"the URL's timeout is {text!r}; it is a number of seconds such as 30 or 0.5")
    return float(text)


# rights: who has one too many or lacks one, and the statements that give them

PREFIX, SCHEMA = "ratings_", "public"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)


class Wrong(NamedTuple):
    """Who has a right too many or lacks one, what it is, and how to fix it."""

    who: str
    what: str
    remedy: str


class Grants(NamedTuple):
    """The statements that make the roles: an administrator's, before `init`, and the owner's, after it."""

    administrator: list[str]
    owner: list[str]
