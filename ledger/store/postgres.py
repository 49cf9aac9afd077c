"""The store of a ledger in a PostgreSQL database, through psycopg 3 (the extra `postgres`)."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import Pool

from ratings_ledger.ledger.errors import (
    CLOCK_AHEAD,
    NOT_STORED,
    LedgerError,
    NotALedger,
    StoreDamaged,
    StoreUnavailable,
)
from ratings_ledger.ledger.store.dialect import ConnectionSource, NamedEvent, Setting, transaction
from ratings_ledger.ledger.store.guards import (
    AHEAD,
    POSTGRES_APPEND,
    POSTGRES_APPEND_LOCK,
    POSTGRES_FUNCTIONS,
    POSTGRES_TRIGGERS,
    POSTGRES_VIEW,
)
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.postgres_catalogue import find_altered_guards as find_altered_guards
from ratings_ledger.ledger.store.postgres_catalogue import find_object_differences as find_object_differences
from ratings_ledger.ledger.store.postgres_catalogue import prepare_append, refuse_unexpected_objects
from ratings_ledger.ledger.store.postgres_roles import build_grant_statements as build_grant_statements
from ratings_ledger.ledger.store.postgres_roles import describe_missing_rights as describe_missing_rights
from ratings_ledger.ledger.store.postgres_roles import find_rights_problems as find_rights_problems
from ratings_ledger.ledger.store.postgres_roles import read_change_rights as read_change_rights
from ratings_ledger.ledger.store.schema import HEAD_QUERY

if TYPE_CHECKING:
    from psycopg import Cursor

# looks up each name in the indexes; a condition on many names might scan the whole table if statistics are outdated
_NAMED_QUERY = """SELECT event.* FROM unnest(%(names)s::text[]) AS names (name) CROSS JOIN LATERAL
(SELECT event_id, subject, type, record FROM events WHERE event_id = name OR subject = name) AS event"""
# keeps other sessions from adding objects to the table until the transaction ends; only the holder of the append lock
# takes this lock
_LOCK_TABLE = "LOCK TABLE events IN ROW EXCLUSIVE MODE"
# statements that are sent together are one transaction; the lock on the table makes the last statement see the true
# catalogue
_APPEND_ONE = f"""EXECUTE ratings_append_lock; {_LOCK_TABLE};
EXECUTE ratings_append_one({", ".join(["%s"] * 10)})"""
# SQL for the state of the table `events`: `kept` if acknowledged rows survive a crash, and no other table adds rows
_EVENTS_STATE = """CASE WHEN (SELECT relpersistence FROM pg_class WHERE oid = 'events'::regclass) <> 'p' THEN 'unlogged'
WHEN EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'events'::regclass) THEN 'inherited by another table'
ELSE 'kept' END"""

# the settings that `read_settings` reads, each with its safe value (None: any) and how to set it
SAFE_SETTINGS: dict[str, tuple[str | None, str]] = {
    "server_version": (None, ""),
    "server_encoding": ("UTF8", "restore an export into a database created with ENCODING 'UTF8'"),
    "fsync": ("on", "as a superuser: ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"),
    "synchronous_commit": (
        "on",
        "set it to on for the server, the database and the role; pg_db_role_setting lists the overrides",
    ),
    "full_page_writes": ("on", "as a superuser: ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()"),
    "session_replication_role": (
        "origin",
        "set it to origin for the role and the database, so that the guards run",
    ),
    "events": (
        "kept",
        "as its owner, if it is unlogged: ALTER TABLE events SET LOGGED; if another table inherits from it: "
        "ALTER TABLE <other table> NO INHERIT events",
    ),
}

# the records of a range as one text, or NULL if a record is missing; no record contains a newline
_JOIN_QUERY = """SELECT CASE count(*) WHEN {until} - {after} THEN string_agg(record, E'\\n' ORDER BY position) END
FROM events WHERE position > {after} AND position <= {until}"""
# how many records are joined to one text; the server takes twice as long for a text of more than a megabyte
JOINED_RECORDS = 1_700

_SCHEMA = """SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = 'ledger_identity'::pg_catalog.regclass"""

# parameters of the connection, which the URL may override; without keepalives a lost host would go unnoticed
CONNECTION_PARAMETERS = {
    "connect_timeout": "10",
    "fallback_application_name": "ratings",
    "keepalives_idle": "60",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
IS_FILE = False
GUARDS = (*POSTGRES_TRIGGERS, *POSTGRES_FUNCTIONS, *POSTGRES_APPEND)
READABLE_VIEW = POSTGRES_VIEW
LAST_POSITION_QUERIES: tuple[str, ...] = ("SELECT max(position) FROM events",)
# the numbers of the advisory locks, besides that of appends
POSTGRES_REBUILD_LOCK, POSTGRES_GENERATIONS_LOCK, POSTGRES_SCHEMA_LOCK = 7_236_836_022, 7_236_836_023, 7_236_836_024
_COUNT_LOCKS = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND ((classid::bigint << 32) | objid::bigint) = {:d}"""


def build_engine(url: URL, create: bool, pool: type[Pool], busy_seconds: float) -> Engine:
    """Return an engine on the URL's database, which must exist, even with `create`."""
    # at least 1, because PostgreSQL waits for ever if lock_timeout is 0
    lock_timeout = f"SET lock_timeout = {max(int(busy_seconds * 1_000), 1)}"
    location = redact_password(url.render_as_string())
    url = url.set(drivername="postgresql+psycopg").difference_update_query(["timeout"])
    explicit = {*url.query, *(["connect_timeout"] if "PGCONNECT_TIMEOUT" in os.environ else [])}
    url = url.update_query_dict({name: value for name, value in CONNECTION_PARAMETERS.items() if name not in explicit})

    def connect() -> Any:
        _, parameters = new_engine.dialect.create_connect_args(url)
        return AnsweringConnection.connect(**{**parameters, "client_encoding": "UTF8"})

    try:
        # imported here because the driver is an extra
        from ratings_ledger.ledger.store.postgres_connection import AnsweringConnection, open_session

        new_engine: Engine = create_engine(url, poolclass=pool, creator=connect)
    except (ImportError, NoSuchModuleError):
        raise NotALedger(
            "PostgreSQL needs the driver psycopg 3; install it with: pip install 'ratings-ledger[postgres]'"
        ) from None
    except (ArgumentError, TypeError, ValueError):
        raise NotALedger(
            f"{location} is not a valid PostgreSQL URL; write postgresql://user@host:5432/database"
        ) from None

    poolers: set[str] = set()

    # `insert` puts this listener before SQLAlchemy's own, which already run statements
    event.listen(
        new_engine,
        "connect",
        lambda connection, record: open_session(
            connection, lock_timeout=lock_timeout, location=location, connect=connect, poolers=poolers
        ),
        insert=True,
    )
    return new_engine


def is_stale(connection: Any) -> bool:
    """Return False: a connection that no longer reaches the server fails when it is used."""
    return False


def set_autocommit(connection: Connection) -> Connection:
    """Set a connection to autocommit, so that each statement is its own transaction."""
    return connection.execution_options(isolation_level="AUTOCOMMIT")


def begin(connection: Connection) -> None:
    """Do nothing: the driver begins a transaction with the first statement."""


def lock_schema(connection: Connection) -> None:
    """Wait until no other session creates or upgrades the tables, and keep others from it."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_SCHEMA_LOCK})")


def lock_appends(connection: Connection) -> None:
    """Take the append lock in a separate statement, so that the next statement sees the true head."""
    _refuse_unsafe(connection.exec_driver_sql(_build_settings_query(locking=True)).one())
    connection.exec_driver_sql(_LOCK_TABLE)
    refuse_unexpected(connection)


def refuse_unexpected(connection: Connection) -> None:
    """Raise `StoreDamaged` if an unexpected object can run code on, reject or hide rows of this program's tables."""
    refuse_unexpected_objects(connection.connection.cursor())


def lock_generations(connection: Connection) -> None:
    """Keep others from changing generations until the transaction ends, and refuse unexpected objects."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_GENERATIONS_LOCK})")
    refuse_unexpected(connection)


@contextmanager
def hold_rebuild_lock(ledger: ConnectionSource) -> Iterator[Connection]:
    """Hold the advisory lock of rebuilds inside the block; provide its connection.

    Raises `BlockingIOError` if the lock is already held.
    """
    with ledger.reading() as connection:
        if not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({POSTGRES_REBUILD_LOCK})").scalar():
            raise BlockingIOError
        try:
            yield connection
        finally:
            _release_lock(connection, POSTGRES_REBUILD_LOCK)


def _release_lock(connection: Connection, number: int) -> None:
    # the server may notice late that a connection was closed, so release the lock first; a lost connection holds none
    with suppress(SQLAlchemyError):
        connection.exec_driver_sql(f"SELECT pg_advisory_unlock({number:d})")


@contextmanager
def transaction_on_runs(connection: Connection, milliseconds: int, exclusive: bool) -> Iterator[None]:
    """Run the block in a transaction on the table `runs`, which waits a limited time for its locks."""
    with transaction(connection, "BEGIN", f"SET LOCAL lock_timeout = {milliseconds}"):
        if exclusive:
            connection.exec_driver_sql("LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE")
        refuse_unexpected(connection)
        yield


@contextmanager
def mark_running(ledger: ConnectionSource, number: int) -> Iterator[None]:
    """Hold an advisory lock on a run's number inside the block, if another connection is available."""
    with ExitStack() as stack:
        with suppress(LedgerError, SQLAlchemyError):
            connection = stack.enter_context(ledger.reading())
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({number:d})")
            stack.callback(_release_lock, connection, number)
        yield


def is_running(connection: Connection, number: int, process: str, started_at: int, now: int) -> bool:
    """Tell whether a run's number is locked."""
    return bool(connection.exec_driver_sql(_COUNT_LOCKS.format(number)).scalar_one())


def lock_and_read_head(connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
    """Take the append lock; return the row of the head and the events whose id or subject is in `names`.

    The statements before the comparison with the catalogue are sent together, because others wait for the lock during
    each round trip.
    """
    driver: Any = connection.connection.driver_connection
    with driver.pipeline():
        lock = driver.execute(_build_settings_query(locking=True))
        driver.execute(_LOCK_TABLE)
        head = driver.execute(HEAD_QUERY)
        named_events = driver.execute(_NAMED_QUERY, {"names": list(names)}, prepare=False) if names else None
        _refuse_unsafe(lock.fetchone())
        refuse_unexpected_objects(driver)
        return head.fetchone(), [] if named_events is None else [NamedEvent(*row) for row in named_events.fetchall()]


def append_one(ledger: ConnectionSource, build_values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
    """Append an event in one round trip; return the new head, or None if only the full checks of `append` can decide.

    Under the append lock the server only compares a value that changes with the catalogue, because a full comparison
    for each event would double the time.
    """
    from psycopg.errors import InvalidSqlStatementName

    arguments = build_values()
    with ledger.borrow_driver() as driver:
        autocommit_before, driver.autocommit = driver.autocommit, True
        try:
            if not driver.can_append:
                driver.can_append = prepare_append(driver)
            if not driver.can_append:
                return None
            row = driver.execute_together(_APPEND_ONE, arguments)
            # if there is no row, the catalogue may have changed: compare it in full before the next event
            driver.can_append = row is not None
        except InvalidSqlStatementName:  # after a rollback the driver deallocates all statements; nothing was appended
            driver.can_append, row = False, None
        finally:
            driver.autocommit = autocommit_before
    return None if row is None else (row[0], bytes(row[1]), arguments[5])


def _refuse_unsafe(row: Sequence[Any]) -> None:
    unsafe = [f"{setting.name} = {setting.value}" for setting in _read_settings(row) if not setting.is_safe]
    if unsafe:
        raise StoreUnavailable(
            f"the server does not keep events safe ({', '.join(unsafe)}); run: ratings doctor", "unsafe-settings"
        )


def insert(cursor: "Cursor", table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows in order; each row holds the values of these columns."""
    rows = iter(rows)
    first_rows = list(islice(rows, 2))
    if len(first_rows) == 1:
        marks = ", ".join(["%s"] * len(columns))
        # a text takes the type of its column, as in COPY; the number 1 cannot become a boolean
        values = [str(value) if type(value) is int else value for value in first_rows[0]]
        cursor.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values)
    elif first_rows:
        with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in chain(first_rows, rows):
                copy.write_row(row)


def join_records(connection: Connection, after: int, until: int) -> bytes | None:
    """Return the records at `after` < position <= `until`, one per line, or None if a record is missing."""
    from psycopg.types.string import ByteaBinaryLoader

    texts = list[bytes]()
    driver: Any = connection.connection.driver_connection
    with driver.cursor(binary=True) as cursor:
        cursor.adapters.register_loader("text", ByteaBinaryLoader)
        for start in range(after, until, JOINED_RECORDS):
            query = _JOIN_QUERY.format(after=start, until=min(start + JOINED_RECORDS, until))
            (text,) = cursor.execute(query, prepare=False).fetchone()
            if text is None:
                return None
            texts.append(text)
    return b"\n".join([*texts, b""])


def find_events_named(cursor: "Cursor", names: Sequence[str]) -> list[NamedEvent]:
    """Return the events whose id or subject is one of these names."""
    rows = cursor.execute(_NAMED_QUERY, {"names": list(names)}, prepare=False).fetchall()
    return [NamedEvent(*row) for row in rows]


def sql_instant(column: str) -> str:
    """Return SQL for microseconds since 1970 as views show them: a timestamp with time zone."""
    # two products, because PostgreSQL multiplies an interval as a floating-point number
    seconds, rest = f"({column} / 1000000) * INTERVAL '1 second'", f"mod({column}, 1000000) * INTERVAL '1 microsecond'"
    return f"TIMESTAMPTZ 'epoch' + {seconds} + {rest}"


def sql_head(table: str) -> str:
    """Return SQL for a row's position and chain hash: POSITION:CHAINHASH."""
    return f"concat({table}.position, ':', encode({table}.chain_hash, 'hex'))"


def sql_as_bytes(column: str) -> str:
    """Return the column itself: the server keeps texts in UTF-8."""
    return column


def read_settings(connection: Connection) -> list[Setting]:
    """Read the server's settings, with their safe values."""
    return _read_settings(connection.exec_driver_sql(_build_settings_query()).one())


def _build_settings_query(locking: bool = False) -> str:
    """Return the statement that reads the settings, and with `locking` takes the append lock."""
    names = ", ".join(_EVENTS_STATE if name == "events" else f"current_setting('{name}')" for name in SAFE_SETTINGS)
    return f"SELECT {names}" + (f", pg_advisory_xact_lock({POSTGRES_APPEND_LOCK})" if locking else "")


def _read_settings(row: Sequence[Any]) -> list[Setting]:
    return [Setting(name, value, *safe) for (name, safe), value in zip(SAFE_SETTINGS.items(), row, strict=False)]


def identify_database(connection: Connection) -> tuple[str, ...]:
    """Return the host, port, name and schema, which identify the database to this account.

    The server's own identifiers cannot be used: a copied server has the same identifiers, and a database that is
    recreated each night has a new number.
    """
    driver: Any = connection.connection.driver_connection
    schema = connection.exec_driver_sql(_SCHEMA).scalar_one()
    return driver.info.host, str(driver.info.port), driver.info.dbname, schema


def find_storage_damage(connection: Connection) -> list[str]:
    """Return nothing: PostgreSQL checks its pages when it reads them."""
    return []


# the codes of the errors that mean damage: the server cannot read a page, an index or a text
DAMAGE_CODES = ("XX001", "XX002", "22021", "22P05")


def is_damage(error: BaseException) -> bool:
    """Tell whether a driver's error means damaged data, not a lost connection, a lock, a right or a cancellation."""
    state = getattr(error, "sqlstate", None)
    return state in DAMAGE_CODES or (state == "XX000" and "toast" in str(error))


# by the beginning of the server's code: the class of the error; the message, in which {} stands for the location and
# then for the server's message; and the reason. The first match counts
FAILURES: tuple[tuple[tuple[str, ...], type[LedgerError], str, str | None], ...] = (
    (("55P03", "57014", "40"), StoreUnavailable, "{} is busy: {}; try again", "busy"),
    (("25006",), StoreUnavailable, "{} is read-only: {}; name the primary server if this is a standby", "read-only"),
    (("42501",), StoreUnavailable, "this database user lacks a right on {}: {}", "no-right"),
    (
        ("53100",),
        StoreUnavailable,
        "no space left on the server of {}: {}; free some space and run the same command again",
        "no-space",
    ),
    (("53",), StoreUnavailable, "the server of {} has reached a limit: {}; try again", "server-limit"),
    (("08", "28", "3D", "57", "58"), StoreUnavailable, "{} cannot be reached: {}; check the URL and the server", None),
    (DAMAGE_CODES, StoreDamaged, "{} is damaged: {}; run: ratings verify", None),
    (("42P01", "42703"), StoreDamaged, "{} does not have this program's tables: {}; run: ratings verify", None),
    (("23001",), StoreDamaged, "a guard of {} refused the events: {}; run: ratings verify", None),
)


def translate_error(error: BaseException, location: str) -> LedgerError | None:
    """Convert a driver's error to one of this program's; return None if the error is a bug."""
    while getattr(error, "sqlstate", None) is None and error.__context__ and hasattr(error.__context__, "sqlstate"):
        error = error.__context__  # report the error that broke the connection, not the rollback that failed after it
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    state = getattr(error, "sqlstate", None) or "08000"
    if AHEAD in text:
        return StoreUnavailable(CLOCK_AHEAD, "clock-ahead")
    if state == "22000" and "appended is not there" in text:
        return StoreDamaged(NOT_STORED)
    if state == "58030" and "No space left" in text:
        state = "53100"
    for states, error_type, message, reason in FAILURES:
        if state.startswith(states):
            return error_type(message.format(location, text), reason)
    return None
