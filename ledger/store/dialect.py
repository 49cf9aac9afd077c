"""What differs between the stores: all that the rest of the program asks of a store, and the table of the stores.

A store is a module that gives every member of `Dialect`, and an entry in `DIALECTS`. One that speaks neither SQLite's
SQL nor PostgreSQL's also needs its words in the migrations. What all stores have in common is here, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import Pool

from ratings_ledger.ledger.errors import LedgerError

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


# how long a store may be busy
BUSY_SECONDS = 30

# settings, read back for `doctor`


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


# rights: who has one too many or lacks one, and the statements that give them

PREFIX = "ratings_"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)


class RightsProblem(NamedTuple):
    """Who has a right too many or lacks one, what it is, and how to fix it."""

    who: str
    what: str
    remedy: str


class Grants(NamedTuple):
    """The statements that make the roles: an administrator's, before `init`, and the owner's, after it."""

    administrator: list[str]
    owner: list[str]


class Dialect(Protocol):
    """A store, as a module. What its driver raises passes through; `Ledger` makes it one of our errors by `failure`."""

    IS_FILE: bool  # a file of this machine, which the URL's database names; else a server
    GUARDS: tuple[str, ...]  # the names of all that the migrations install to refuse changes
    READABLE_VIEW: str  # the statement that makes the view events_readable
    LAST_POSITIONS: tuple[str, ...]  # queries for the last position of a damaged log, the surest first

    # opening

    def engine(self, url: URL, create: bool, pool: type[Pool], busy_seconds: float) -> Engine:
        """Return an engine on the URL's database, its sessions set up; `create` may make a file. It need not connect
        yet. Sessions wait so many seconds for a lock.

        Raises `NotALedger` for a URL that cannot be meant, `NoLedger` or `StoreUnavailable` where no file can be.
        """

    def failure(self, error: BaseException, location: str) -> LedgerError | None:
        """Return a driver's error as one of ours, which names the location; None for an error that is a bug."""

    def is_damage(self, error: BaseException) -> bool:
        """Tell whether a driver's error means damaged data, not a connection, a lock, a right or an interrupt."""

    # transactions

    def autocommit(self, connection: Connection) -> Connection:
        """Return the connection, with each statement a transaction of its own."""

    def begin(self, connection: Connection) -> None:
        """Begin to write. A store without other locks takes the one it has, before anything is read."""

    def lock_schema(self, connection: Connection) -> None:
        """Let nobody else make or upgrade the tables until the transaction ends."""

    def lock_appends(self, connection: Connection) -> None:
        """Let nobody else append until the transaction ends; what is read next is the true head.

        Raises `StoreUnavailable` if the store may lose what it acknowledges, and what `refuse_foreign` raises.
        """

    def refuse_foreign(self, connection: Connection) -> None:
        """Compare the catalogue with the generated one, in a transaction that writes. Raises `StoreDamaged`.

        Refused is whatever could run, refuse or hide something on our tables: triggers, rules, policies, unique or
        non-plain indexes, defaults, constraints, references, functions with our names, and altered guards.
        """

    def fence(self, connection: Connection) -> None:
        """Let nobody else begin, promote or roll back a generation until the transaction ends, and refuse foreign
        objects."""

    def begin_brief(self, connection: Connection, milliseconds: int, alone: bool) -> AbstractContextManager[None]:
        """Return a transaction on the table `runs`, on an autocommitting connection, that waits at most so long for
        others.

        With `alone` no other transaction changes the table meanwhile. It leaves nothing behind if it fails.
        Raises `StoreDamaged` for foreign objects.
        """

    # appending and reading

    def lock_and_read_head(self, connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
        """Take the append lock as `lock_appends` does; the row of `NEWEST` under it, None in an empty log, and the
        events of these names.

        Raises `StoreDamaged` for foreign objects, `StoreUnavailable`.
        """

    def append_one(self, ledger: Connections, values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
        """Append one event in a transaction of its own: the position, the chain hash and the time of the new head.

        None, and nothing is appended, if there is something to decide: the id or the game is there, the head is later
        than the event or not where it was seen. `values` gives the event's first six columns after the position, who
        records it, its record before and behind the position, and the head that was seen, or None. Raises
        `StoreDamaged` unless the row is then there.
        """

    def insert(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert any number of rows in order, in the fastest way; each gives the values of these columns, where 0 and 1
        also stand for a boolean."""

    def join_records(self, connection: Connection, after: int, until: int) -> bytes | None:
        """Return the records behind a position up to another as one text in UTF-8, each ending in a newline, or None if
        one is missing. The database joins them: one value takes a fraction of the time of as many rows.
        """

    def find_events_named(self, cursor: Any, names: Sequence[str]) -> list[NamedEvent]:
        """Return the events whose id or subject is one of these names, in any order, found by the indexes."""

    # SQL for what is said in different words

    def instant(self, column: str) -> str:
        """Microseconds since 1970 as views show them."""

    def sql_head(self, table: str) -> str:
        """Return the position and the chain hash of a row of a table: POSITION:CHAINHASH."""

    def sql_as_bytes(self, column: str) -> str:
        """Return a column of texts, so that reading it never fails and another kind of value never reads as a text."""

    # looking after it; none of these changes anything

    def settings(self, connection: Connection) -> list[Setting]:
        """Return the settings that safety depends on, as they are, next to what they should be."""

    def place(self, connection: Connection) -> tuple[str, ...]:
        """Return what identifies the database among all that this account reaches, links resolved; nothing does for one
        in memory.
        """

    def missing_guards(self, connection: Connection) -> list[str]:
        """Return which of `GUARDS` are absent or not as the migrations install them, sorted."""

    def object_differences(self, connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
        """None for every other object that is as it should be, and what is wrong for every one that is not, or that
        could run on ours. `views` are the statements that make ours, by name."""

    def storage_findings(self, connection: Connection) -> list[str]:
        """Return what the store itself finds wrong with its pages."""

    # rights

    def grant_statements(self, database: str, prefix: str) -> Grants | None:
        """Return the statements that make a ledger's roles and their rights; None for a store without roles."""

    def find_rights_problems(self, connection: Connection) -> tuple[str, list[RightsProblem]]:
        """Return who asks, and who has a right too many or lacks one."""

    def read_change_rights(self, connection: Connection) -> tuple[str, str, bool]:
        """Return who asks, who may change the tables, and whether whoever asks may, too."""

    def describe_missing_rights(self, connection: Connection, role: str) -> str:
        """Return what whoever asks lacks for doing what a role does, `writer` or `rebuilder`, in words; empty if
        nothing.
        """

    # jobs

    def hold_rebuild_lock(self, ledger: Connections) -> AbstractContextManager[Connection | None]:
        """Hold the lock of rebuilds, one per database, which dies with the process. Gives the connection that it is
        held on, if it is held on one.

        Raises `BlockingIOError` if somebody else holds it.
        """

    def mark_running(self, ledger: Connections, number: int) -> AbstractContextManager[None]:
        """Let others see by its number that a run is in progress, until it ends in whatever way."""

    def is_running(self, connection: Connection, number: int, process: str, started_at: int, now: int) -> bool:
        """Tell whether a run is in progress; the process is as `name_this_process` named it."""


# by the backend that a URL names: what loads the store, which takes long, as SQLAlchemy's part for it does
DIALECTS: dict[str, Callable[[], Any]] = {
    "sqlite": partial(import_module, "ratings_ledger.ledger.store.sqlite"),
    "postgresql": partial(import_module, "ratings_ledger.ledger.store.postgres"),
}


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a connection of an opened ledger."""
    dialect: Dialect = connection.get_execution_options()["dialect"]
    return dialect
