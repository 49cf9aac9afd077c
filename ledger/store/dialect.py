"""The interface of a dialect, which covers all differences between databases, and the table of the dialects.

A dialect is a module with every member of `Dialect`, and an entry in `DIALECTS`. A new dialect also needs its
statements in the migrations if its SQL differs from that of SQLite and PostgreSQL. This module also holds what all
dialects share.
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


class NamedEvent(NamedTuple):
    """An event that was looked up by its id or subject."""

    event_id: str
    subject: str
    type: str
    record: str


class ConnectionSource(Protocol):
    """The part of an opened `Ledger` that a dialect uses."""

    @property
    def url(self) -> URL:
        """Return the URL of the ledger."""

    def reading(self, role: str | None = None) -> AbstractContextManager[Connection]:
        """Provide a connection on which each statement is its own transaction, for the work of a role."""

    def borrow_driver(self) -> AbstractContextManager[Any]:
        """Provide the driver's own connection, outside any transaction."""


@contextmanager
def transaction(connection: Connection, *begin: str) -> Iterator[None]:
    """Run the block in a transaction that these statements begin, on a connection in autocommit mode."""
    try:
        for statement in begin:
            connection.exec_driver_sql(statement)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise


# how long to wait for a lock of the store, unless the URL says otherwise
BUSY_SECONDS = 30


class Setting(NamedTuple):
    """A setting that `doctor` reads: its name and value, the safe value (None: any), and how to set it."""

    name: str
    value: str
    safe_value: str | None
    remedy: str = ""

    @property
    def is_safe(self) -> bool:
        """Tell whether the value is the safe one."""
        return self.safe_value is None or self.value == self.safe_value


# the default prefix of the names of a ledger's roles
ROLE_PREFIX = "ratings_"
# a name that SQL accepts without quotation marks
PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)


class RightsProblem(NamedTuple):
    """An excessive or missing right: the user, the problem ("may DELETE on events"), and how to fix it."""

    user: str
    problem: str
    remedy: str


class ChangeRights(NamedTuple):
    """The current user, the owners of the tables (joined by commas), and whether the user may change the tables."""

    user: str
    owner: str
    can_change_tables: bool


class Grants(NamedTuple):
    """The statements that set up the roles: an administrator's, to run before `init`, and the owner's, after it."""

    administrator: list[str]
    owner: list[str]


class Dialect(Protocol):
    """A module with the functions for one kind of database.

    Errors of its driver pass through; `Ledger` converts them with `translate_error`.
    """

    IS_FILE: bool  # whether the store is a local file, named by the URL's database, or in memory; else it is a server
    GUARDS: tuple[str, ...]  # the names of the triggers and functions that refuse changes; the migrations install them
    READABLE_VIEW: str  # the statement that creates the view events_readable
    LAST_POSITION_QUERIES: tuple[str, ...]  # queries for the last position of a damaged log, the most reliable first

    # opening

    def build_engine(self, url: URL, create: bool, pool: type[Pool], busy_seconds: float) -> Engine:
        """Return an engine for the URL's database. It sets up each session, and may connect later.

        With `create` a missing file is created. Sessions wait `busy_seconds` for a lock. Raises `NotALedger` for an
        invalid URL, `NoLedger` if the file does not exist, and `StoreUnavailable` if it cannot be reached or created.
        """

    def translate_error(self, error: BaseException, location: str) -> LedgerError | None:
        """Convert a driver's error to one of this program's, with the location; return None if the error is a bug."""

    def is_stale(self, connection: Any) -> bool:
        """Tell whether an idle connection of the driver no longer reaches the store, although it would not fail."""

    def is_damage(self, error: BaseException) -> bool:
        """Tell whether a driver's error means damaged data, not a lost connection, a lock, a right or an interrupt."""

    # transactions

    def set_autocommit(self, connection: Connection) -> Connection:
        """Set a connection to autocommit, so that each statement is its own transaction."""

    def begin(self, connection: Connection) -> None:
        """Begin a transaction that writes. A store with a single lock takes it before any read."""

    def lock_schema(self, connection: Connection) -> None:
        """Keep others from creating or upgrading tables until the transaction ends."""

    def lock_appends(self, connection: Connection) -> None:
        """Keep others from appending until the transaction ends. The next read sees the true head.

        Raises `StoreUnavailable` if the store does not keep events safe, and the errors of `refuse_unexpected`.
        """

    def refuse_unexpected(self, connection: Connection) -> None:
        """Refuse objects that this version would not create, in a transaction that writes.

        Raises `StoreDamaged`, or `NotALedger` if the ledger has the schema of another version.

        An unexpected object can run code on, reject or hide rows of this program's tables: a trigger, a rule, a policy,
        an index that is unique or has expressions, a default, a constraint, a foreign key, a function with the name of
        one of this program's functions, an altered guard.
        """

    def lock_generations(self, connection: Connection) -> None:
        """Keep others from changing generations until the transaction ends.

        Unexpected objects are refused here or in `Ledger.writing`.
        """

    def transaction_on_runs(
        self, connection: Connection, milliseconds: int, exclusive: bool
    ) -> AbstractContextManager[None]:
        """Run the block in a transaction on the table `runs`, on a connection in autocommit mode.

        The transaction waits at most `milliseconds` for a lock. With `exclusive` no other transaction changes the table
        meanwhile. A failure leaves nothing behind. Raises the errors of `refuse_unexpected`.
        """

    # appending and reading

    def lock_and_read_head(self, connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
        """Take the append lock as `lock_appends` does; return the head and the events with these names.

        The head is the position, chain hash and time of the last event. A name is an event's id or subject. Raises the
        errors of `lock_appends`.
        """

    def append_one(
        self, ledger: ConnectionSource, build_values: Callable[[], Sequence[Any]]
    ) -> tuple[int, bytes, int] | None:
        """Append one event in a transaction of its own; return the position, chain hash and time of the new head.

        Append nothing and return None if only the full checks of `appending.append` can decide: for example, if the id
        or the game exists, if the head is later than the event, or if the head has moved since the check.

        Args:
            ledger: The opened ledger.
            build_values: Returns the columns `event_id`, `type`, `schema_version`, `subject`, `occurred_at` and
                `recorded_at`, the recorder, the parts of the record before and after its position, and the position of
                the head at the check (None: any position).

        Raises:
            StoreDamaged: The store did not keep the row, or has unexpected objects.
            NotALedger: The store has unexpected objects and the schema of another version.
            StoreUnavailable: The store cannot be written.
        """

    def insert(self, cursor: Any, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows in order, in the fastest way; each row holds the values of these columns.

        A value 0 or 1 may stand for a boolean.
        """

    def join_records(self, connection: Connection, after: int, until: int) -> bytes | None:
        """Return the records at `after` < position <= `until` as one text in UTF-8, each ending in a newline.

        Return None if a record is missing. The database joins them, because it sends one value much faster than many
        rows.
        """

    def find_events_named(self, cursor: Any, names: Sequence[str]) -> list[NamedEvent]:
        """Return the events whose id or subject is one of these names, in any order."""

    # SQL expressions that differ between stores

    def sql_instant(self, column: str) -> str:
        """Return SQL that shows a column of microseconds since 1970 as views show times."""

    def sql_head(self, table: str) -> str:
        """Return SQL for the position and the chain hash of a row: POSITION:CHAINHASH."""

    def sql_as_bytes(self, column: str) -> str:
        """Return SQL that reads a column of texts, as bytes if they might not be UTF-8.

        If the column may hold other values, they become texts that name their types.
        """

    # maintenance: functions that only read

    def read_settings(self, connection: Connection) -> list[Setting]:
        """Read the settings that safety depends on, with their safe values."""

    def identify_database(self, connection: Connection) -> tuple[str, ...]:
        """Return a key that identifies the database, with symbolic links resolved; empty for a database in memory."""

    def find_altered_guards(self, connection: Connection) -> list[str]:
        """Return the names in `GUARDS` whose guards are missing or altered, sorted."""

    def find_object_differences(self, connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
        """Yield a message for each object that differs from what this program creates, and None for each that matches.

        Guards are left to `find_altered_guards`. `views` are the statements that create this program's views, by name.
        """

    def find_storage_damage(self, connection: Connection) -> list[str]:
        """Return a message for each corruption that the database finds in its own pages."""

    # rights

    def build_grant_statements(self, database: str, prefix: str) -> Grants | None:
        """Return the statements that create a ledger's roles and grant them rights; None for a store without roles."""

    def find_rights_problems(self, connection: Connection) -> tuple[str, list[RightsProblem]]:
        """Return the current user, and the problems with the rights of all users."""

    def read_change_rights(self, connection: Connection) -> ChangeRights:
        """Read whether the current user may change the tables, and who owns them."""

    def describe_missing_rights(self, connection: Connection, role: str) -> str:
        """Describe the rights that the current user lacks for a role's work; empty if the user lacks none.

        `role` is `writer` or `rebuilder`.
        """

    # jobs

    def hold_rebuild_lock(self, ledger: ConnectionSource) -> AbstractContextManager[Connection | None]:
        """Hold the database's lock on rebuilds inside the block; provide the connection that holds it, if any.

        The lock ends with the process. Raises `BlockingIOError` if it is already held, and `StoreUnavailable`.
        """

    def mark_running(self, ledger: ConnectionSource, number: int) -> AbstractContextManager[None]:
        """Show other processes, while the block runs, that the run with this number is in progress."""

    def is_running(self, connection: Connection, number: int, process: str, started_at: int, now: int) -> bool:
        """Tell whether the run with this number is in progress.

        `process` is its process, a name from `name_this_process`. Both times are in microseconds.
        """


# functions that load a dialect, by the URL's backend; a command loads only the one it needs, since drivers load slowly
DIALECTS: dict[str, Callable[[], Any]] = {
    "sqlite": partial(import_module, "ratings_ledger.ledger.store.sqlite"),
    "postgresql": partial(import_module, "ratings_ledger.ledger.store.postgres"),
}


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a connection of an opened ledger."""
    dialect: Dialect = connection.get_execution_options()["dialect"]
    return dialect
