"""Open a ledger by its URL or file path.

An opened ledger provides connections for reading and writing, and converts a driver's errors to messages for people.
"""

import logging
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool, PoolProxiedConnection, QueuePool

from ratings_ledger.ledger.errors import BadArgument, LedgerExists, NoLedger, NotALedger, OldSchema, StoreUnavailable
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.dialect import BUSY_SECONDS, DIALECTS, Dialect
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

if TYPE_CHECKING:
    from ratings_ledger.ledger.store import postgres, sqlite

    # lets mypy check that both modules have all members of `Dialect`
    _stores: tuple[Dialect, ...] = (sqlite, postgres)


@dataclass(frozen=True, eq=False)
class Ledger:
    """An opened ledger; `location` names its store for people, without a password."""

    engine: Engine
    dialect: Dialect
    location: str
    url: URL
    # whether transactions that write check the catalogue; true once the store holds this program's tables
    checks_catalogue: bool = False
    _spare_connections: list[PoolProxiedConnection] = field(default_factory=list)
    # open connections keep a database in memory alive
    _memory_connections: list[PoolProxiedConnection] = field(default_factory=list)
    _closed: Event = field(default_factory=Event)

    @property
    def file(self) -> str | None:
        """Return the path of the ledger's file, or None for a ledger on a server or in memory."""
        return str(self.url.database) if self.dialect.IS_FILE and self.url.database != IN_MEMORY else None

    @contextmanager
    def reading(self, role: str | None = None) -> Iterator[Connection]:
        """Provide a connection on which each statement is its own transaction; for `role` see `translate_errors`."""
        with self.translate_errors(role), self.engine.connect() as connection:
            yield self.dialect.set_autocommit(connection)

    @contextmanager
    def writing(self, role: str | None = None, *, appends: bool = False) -> Iterator[Connection]:
        """Provide a connection in one transaction, which commits at the end or leaves nothing behind.

        For `role` see `translate_errors`. With `checks_catalogue`, raises the errors of `Dialect.refuse_unexpected`;
        with `appends`, the dialect's function by which the caller takes the append lock makes this check instead.
        """
        with self.translate_errors(role), self.engine.connect() as connection, connection.begin():
            self.dialect.begin(connection)
            if self.checks_catalogue and not appends:
                self.dialect.refuse_unexpected(connection)
            yield connection

    @contextmanager
    def borrow_driver(self) -> Iterator[Any]:
        """Provide the driver's own connection, outside any transaction, for repeatedly appending single events.

        A ledger that keeps its connections open keeps one outside the pool for this, because the pool is slow.
        """
        with self.translate_errors("writer"):
            connection = self._take_spare() or self.engine.raw_connection()
            try:
                yield connection.driver_connection
            except BaseException:
                connection.invalidate()
                raise
            if isinstance(self.engine.pool, QueuePool) and not self._spare_connections:
                self._spare_connections.append(connection)
            else:
                connection.close()

    def _take_spare(self) -> PoolProxiedConnection | None:
        """Return the connection outside the pool, or None if there is none that reaches the store."""
        try:
            connection = self._spare_connections.pop()  # atomic: only one thread gets the connection
        except IndexError:
            return None
        if not self.dialect.is_stale(connection.driver_connection):
            return connection
        connection.invalidate()
        return None

    def close(self) -> None:
        """Close all connections. Reading or writing later raises `BadArgument`."""
        self._closed.set()
        self.release()
        while self._memory_connections:
            self._memory_connections.pop().close()

    def wait_closed(self, seconds: float) -> bool:
        """Wait at most `seconds` until the ledger is closed; return whether it is closed."""
        return self._closed.wait(seconds)

    def close_late(self, _: Any, connection: Any) -> None:
        """Close a connection that returns to the pool after `close`; the pool would keep it open."""
        if self._closed.is_set():
            connection.invalidate()

    def release(self) -> None:
        """Close the idle connections now, and all others when they return to their pool."""
        with suppress(IndexError):
            while True:
                self._spare_connections.pop().close()
        old_pool = self.engine.pool
        self.engine.dispose()  # replaces the pool
        event.listen(old_pool, "checkin", lambda _, connection: connection.invalidate())

    @contextmanager
    def translate_errors(self, role: str | None = None) -> Iterator[None]:
        """Convert errors of the driver to this program's.

        With a `role` (`writer` or `rebuilder`) the message names the rights that the user lacks for the role's work.
        Raises `BadArgument` if the ledger is closed.
        """
        if self._closed.is_set():
            raise BadArgument("the ledger is closed; open it again")
        try:
            yield
        except (DBAPIError, self.engine.dialect.loaded_dbapi.Error) as error:
            if _is_interrupt(error):
                raise KeyboardInterrupt from error
            failure = self.dialect.translate_error(getattr(error, "orig", None) or error, self.location)
            if failure is None:
                raise
            if role is not None and failure.reason == "no-right":
                with self.reading() as connection:
                    lacking = self.dialect.describe_missing_rights(connection, role)
                failure = StoreUnavailable(f"{failure}; {lacking}" if lacking else str(failure), failure.reason)
            raise failure from error


def _is_interrupt(error: BaseException | None) -> bool:
    """Tell whether a driver failed because Ctrl-C interrupted a statement or its rollback."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


# the location of a ledger in memory, which disappears when it is closed
IN_MEMORY = ":memory:"

# mistyped URLs, which must not be taken for names of files: postgresql//db, anna:secret@db
_MISTYPED_URL = re.compile(r"(?i)[a-z+]*(sql|postgres)[a-z+]*(:|//|/.*:.*@)|[^:/@]*:[^@]*@")


def parse_url(name: str) -> URL:
    """Parse a SQLAlchemy URL or a file path. Raises `NotALedger` for other texts."""
    name = name.replace("postgres://", "postgresql://", 1) if name.startswith("postgres://") else name
    try:
        url: URL | None = make_url(name) if "://" in name else URL.create("sqlite", database=name)
    except (ArgumentError, ValueError):
        url = None
    if url is None or ("://" not in name and _MISTYPED_URL.match(name)):
        raise NotALedger(
            f"{quote(redact_password(name))} is not a database URL; write sqlite:///club.db or "
            "postgresql://HOST/DATABASE"
        )
    encoded_count = name.partition("://")[2].partition("@")[0].lower().count("%40")
    if "@" in (url.host or "") or (url.username or "").count("@") > encoded_count:
        raise NotALedger(
            f"{quote(redact_password(name))} has more than one @; in a user name or password, write it as %40"
        )
    if url.get_backend_name() not in DIALECTS:
        raise NotALedger(
            f"{url.get_backend_name()} is not supported; name a SQLite file such as club.db, or a postgresql:// URL"
        )
    return url


def is_file(name: str) -> bool:
    """Tell whether a name means a file and not a database on a server. Raises `NotALedger`."""
    dialect: Dialect = DIALECTS[parse_url(name).get_backend_name()]()
    return dialect.IS_FILE


def parse_timeout(url: URL) -> float:
    """Return how many seconds to wait for a lock: the URL's `timeout`, or else `BUSY_SECONDS`. Raises `NotALedger`."""
    values = url.query.get("timeout", f"{BUSY_SECONDS}")
    text = values if isinstance(values, str) else ",".join(values)
    if not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text, re.ASCII):
        raise NotALedger(
            f"the URL's timeout {text!r} cannot be used; write a number of seconds below 100,000, such as 30 or 0.5"
        )
    return float(text)


def connect(name: str, *, create: bool = False, keep_open: bool = False, checks_catalogue: bool = False) -> Ledger:
    """Connect to the store of this name without reading its content; for `keep_open` see `open_ledger`.

    Raises `NoLedger`, `StoreUnavailable`, and `NotALedger` for an invalid name.
    """
    url = parse_url(name)
    dialect: Dialect = DIALECTS[url.get_backend_name()]()
    # the user of a lost connection gets an error; the pool's own log messages would only repeat it
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    engine = dialect.build_engine(url, create, QueuePool if keep_open else NullPool, parse_timeout(url))
    engine.update_execution_options(dialect=dialect)
    location = str(url.database) if dialect.IS_FILE else redact_password(name)
    ledger = Ledger(engine, dialect, location, url, checks_catalogue)
    if keep_open:
        _keep_open(ledger)
    return ledger


def connect_in_memory() -> Ledger:
    """Create an empty store in memory, which disappears when it is closed. Raises `NotALedger` if SQLite is too old."""
    url = URL.create("sqlite", database=IN_MEMORY)
    dialect = DIALECTS[url.get_backend_name()]()
    engine: Engine = dialect.build_memory_engine(QueuePool)
    engine.update_execution_options(dialect=dialect)
    ledger = Ledger(engine, dialect, IN_MEMORY, url)
    _keep_open(ledger)
    connection = engine.raw_connection()
    connection.detach()  # the pool may close its connections, but this one must stay open
    ledger._memory_connections.append(connection)
    return ledger


def _keep_open(ledger: Ledger) -> None:
    _kept_open.add(ledger)
    event.listen(ledger.engine, "checkin", ledger.close_late)


# the ledgers whose connections are closed before a fork, because two processes must not share a connection
_kept_open: WeakSet[Ledger] = WeakSet()


def _release_connections() -> None:
    for ledger in list(_kept_open):
        ledger.release()


os.register_at_fork(before=_release_connections)


def open_ledger(name: str, keep_open: bool = False) -> Ledger:
    """Open the ledger of this name.

    Args:
        name: A file path or a URL.
        keep_open: Keep connections open until `close`. This saves time for a program that appends many single events,
            because connecting takes as long as appending. A forked process must open the ledger again.

    Raises:
        NoLedger: The store holds no ledger.
        NotALedger: The name is not a valid URL, or the store does not have the schema that this program needs.
        StoreUnavailable: The store cannot be reached.
    """
    ledger = connect(name, keep_open=keep_open, checks_catalogue=True)
    try:
        with ledger.reading() as connection:
            _refuse_other_schema(ledger, read_schema_revision(connection))
    except BaseException:
        ledger.close()  # because the caller gets no ledger that it could close
        raise
    return ledger


def build_ledger_exists_error(ledger: Ledger) -> LedgerExists:
    """Build the error for a location that already holds a ledger."""
    return LedgerExists(f"{ledger.location} already holds a ledger; open it with ratings_ledger.open")


def refuse_existing(name: str) -> None:
    """Raise `LedgerExists` if a ledger of that name exists, with any schema.

    Also raises `NotALedger` for an invalid name, and `StoreUnavailable`.
    """
    try:
        ledger = connect(name)
        with ledger.reading() as connection:
            if read_schema_revision(connection) is not None:
                raise build_ledger_exists_error(ledger)
    except NoLedger:
        return


def _refuse_other_schema(ledger: Ledger, revision: str | None) -> None:
    """Raise `NoLedger`, `OldSchema` or `NotALedger` unless a store has the schema that this program needs."""
    init = f"ratings --db {shlex.quote(ledger.location)} init"
    if revision is None:
        raise NoLedger(f"{ledger.location} holds no ledger; create one with: {init}")
    if revision != SCHEMA_REVISION:
        message = f"{ledger.location} has schema {revision}, but this program needs {SCHEMA_REVISION}"
        if revision < SCHEMA_REVISION:
            raise OldSchema(f"{message}; upgrade it with: {init.removesuffix('init')}upgrade")
        raise NotALedger(f"{message}; a newer ratings-ledger made it: upgrade the program", "new-schema")


def read_schema_revision(connection: Connection) -> str | None:
    """Return the store's schema, as the number of its last migration, or None if it holds no ledger."""
    tables = inspect(connection)
    if not (tables.has_table("alembic_version") and tables.has_table("ledger_identity")):
        return None
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar())
