"""The interface of a store, which covers all differences between databases, and the table of the stores.

A store is a module with every member of `Dialect`, and an entry in `DIALECTS`. A store with another SQL than SQLite's
or PostgreSQL's also needs its statements in the migrations. Code that all stores share is here, too.
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
    """The part of an opened ledger that its store uses."""

    @property
    def url(self) -> URL:
        """Return the URL of the ledger."""

    def reading(self, role: str | None = None) -> AbstractContextManager[Connection]:
        """Return a connection on which each statement is a transaction of its own, for the work of a role."""

    def driving(self) -> AbstractContextManager[Any]:
        """Return the driver's own connection, outside any transaction."""


@contextmanager
def transaction(connection: Connection, *begin: str) -> Iterator[None]:
    """Provide a transaction that these statements begin, on a connection in autocommit mode."""
    try:
        for statement in begin:
            connection.exec_driver_sql(statement)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise


# how long to wait for a busy store
BUSY_SECONDS = 30

# settings, read back for `doctor`


class Setting(NamedTuple):
    """A setting: its name and value, the safe value (None: any), and how to change it."""

    name: str
    value: str
    wanted: str | None
    remedy: str = ""

    @property
    def fine(self) -> bool:
        """Tell whether the value is the wanted one."""
        return self.wanted is None or self.value == self.wanted


# rights: excess and missing ones, and the statements that grant them

PREFIX = "ratings_"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)


class RightsProblem(NamedTuple):
    """An excess or a missing right: who has or lacks it, what it is, and how to fix it."""

    who: str
    what: str
    remedy: str


class Grants(NamedTuple):
    """The statements that create the roles: an administrator's, before `init`, and the owner's, after it."""

    administrator: list[str]
    owner: list[str]


class Dialect(Protocol):
    """A store, as a module. Errors of its driver pass through; `Ledger` converts them by `failure`."""

    IS_FILE: bool  # a file of this machine, which the URL's database names; else a server
    GUARDS: tuple[str, ...]  # the names of the triggers and functions that the migrations install to refuse changes
    READABLE_VIEW: str  # the statement that creates the view events_readable
    LAST_POSITIONS: tuple[str, ...]  # queries for the last position of a damaged log, the most reliable first

    # opening

    def engine(self, url: URL, create: bool, pool: type[Pool], busy_seconds: float) -> Engine:
        """Return an engine on the URL's database, which sets up each session; `create` may make a file.

        It need not connect yet. Sessions wait `busy_seconds` for a lock. Raises `NotALedger` for an invalid URL, and
        `NoLedger` or `StoreUnavailable` if the file cannot exist.
        """

    def failure(self, error: BaseException, location: str) -> LedgerError | None:
        """Convert a driver's error to one of this program's, with the location; None for an error that is a bug."""

    def is_damage(self, error: BaseException) -> bool:
        """Tell whether a driver's error means damaged data, not a connection, a lock, a right or an interrupt."""

    # transactions

    def autocommit(self, connection: Connection) -> Connection:
        """Set a connection to autocommit, so that each statement is a transaction of its own."""

    def begin(self, connection: Connection) -> None:
        """Begin to write. A store with a single lock takes it before any read."""

    def lock_schema(self, connection: Connection) -> None:
        """Keep others from creating or upgrading tables until the transaction ends."""

    def lock_appends(self, connection: Connection) -> None:
        """Keep others from appending until the transaction ends; the next read sees the true head.

        Raises `StoreUnavailable` if the store may lose what it acknowledges, and what `refuse_foreign` raises.
        """

    def refuse_foreign(self, connection: Connection) -> None:
        """Compare the catalogue with the generated one, in a transaction that writes. Raises `StoreDamaged`.

        It refuses all objects that can run code, refuse rows or hide rows on our tables: triggers, rules, policies,
        unique or non-plain indexes, defaults, constraints, references, functions with our names, and altered guards.
        """

    def lock_generations(self, connection: Connection) -> None:
        """Keep others from changing generations until the transaction ends, and refuse foreign objects."""

    def begin_on_runs(self, connection: Connection, milliseconds: int, exclusive: bool) -> AbstractContextManager[None]:
        """Provide a transaction on the table `runs` that waits a limited time; the connection is in autocommit mode.

        With `exclusive` no other transaction changes the table meanwhile. A failure leaves nothing behind. Raises
        `StoreDamaged` for foreign objects.
        """

    # appending and reading

    def lock_and_read_head(self, connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
        """Take the append lock as `lock_appends` does; return the row of `NEWEST` and the events of these names.

        Raises `StoreDamaged` for foreign objects, `StoreUnavailable`.
        """

    def append_one(self, ledger: Connections, values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
        """Append one event in a transaction of its own; return the position, chain hash and time of the new head.

        Appends nothing and returns None if the full append must decide: the id or the game exists, the head is later
        than the event, or has moved since it was seen. `values` returns the event's first six columns after the
        position, the recorder, the record before and after its position, and the position of the head that was seen,
        or None. Raises `StoreDamaged` unless the row was stored.
        """

    def insert(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows in order, in the fastest way; each has the values of these columns. 0 and 1 may be booleans."""

    def join_records(self, connection: Connection, after: int, until: int) -> bytes | None:
        """Return the records after a position up to another as one text in UTF-8, each ending in a newline.

        Returns None if one is missing. The database joins them, since one value is much faster than many rows.
        """

    def find_events_named(self, cursor: Any, names: Sequence[str]) -> list[NamedEvent]:
        """Look up the events whose id or subject is one of these names, in any order, by the indexes."""

    # SQL expressions that differ between stores

    def instant(self, column: str) -> str:
        """Return SQL for microseconds since 1970 as views show them."""

    def sql_head(self, table: str) -> str:
        """Return SQL for the position and the chain hash of a row: POSITION:CHAINHASH."""

    def sql_as_bytes(self, column: str) -> str:
        """Return SQL that reads a column of texts as bytes, and never takes another kind of value for a text."""

    # maintenance; none of these changes anything

    def settings(self, connection: Connection) -> list[Setting]:
        """Read the settings that safety depends on, with their safe values."""

    def identify_database(self, connection: Connection) -> tuple[str, ...]:
        """Return a key that identifies the database to this account, with links resolved.

        It is empty for a database in memory.
        """

    def missing_guards(self, connection: Connection) -> list[str]:
        """Return those of `GUARDS` that are missing or altered, sorted."""

    def find_object_differences(self, connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
        """Yield None for each object with the expected definition, and a message for each altered or foreign one.

        Guards are left out. `views` are the statements that create this program's views, by name.
        """

    def storage_findings(self, connection: Connection) -> list[str]:
        """Return the damage that the store itself finds in its pages."""

    # rights

    def grant_statements(self, database: str, prefix: str) -> Grants | None:
        """Return the statements that create a ledger's roles and grant their rights; None for a store without roles."""

    def find_rights_problems(self, connection: Connection) -> tuple[str, list[RightsProblem]]:
        """Return the current user, and the excess and missing rights of all users."""

    def read_change_rights(self, connection: Connection) -> tuple[str, str, bool]:
        """Return the current user, the owner of the tables, and whether the current user may change the tables."""

    def describe_missing_rights(self, connection: Connection, role: str) -> str:
        """Describe the rights that the current user lacks for the work of a role, `writer` or `rebuilder`.

        The text is empty if no right is missing.
        """

    # jobs

    def hold_rebuild_lock(self, ledger: Connections) -> AbstractContextManager[Connection | None]:
        """Hold the lock of rebuilds, one per database, which ends with the process. Raises `BlockingIOError` if taken.

        Provides the connection that holds it, if one does.
        """

    def mark_running(self, ledger: Connections, number: int) -> AbstractContextManager[None]:
        """Show to others, by its number, that a run is in progress, until it ends in any way."""

    def is_running(self, connection: Connection, number: int, process: str, started_at: int, now: int) -> bool:
        """Tell whether a run is in progress; `process` is a name from `name_this_process`."""


# the loader of each store, by the backend that a URL names; loading a store with its driver is slow
DIALECTS: dict[str, Callable[[], Any]] = {
    "sqlite": partial(import_module, "ratings_ledger.ledger.store.sqlite"),
    "postgresql": partial(import_module, "ratings_ledger.ledger.store.postgres"),
}


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a connection of an opened ledger."""
    dialect: Dialect = connection.get_execution_options()["dialect"]
    return dialect
