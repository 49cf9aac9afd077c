"""The store of a ledger in a SQLite file, through Python's own `sqlite3`.

Every write first compares the file's tables, indexes and triggers with this program's definitions.
"""

import fcntl
import json
import os
import pwd
import re
import shlex
import sqlite3
import stat
import sys
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import Pool, QueuePool

from ratings_ledger.ledger.errors import (
    CLOCK_AHEAD,
    NOT_STORED,
    LedgerError,
    NoLedger,
    NotALedger,
    StoreDamaged,
    StoreUnavailable,
)
from ratings_ledger.ledger.events.records import ZERO, EventRow, chain_hash, is_valid_head, leaf_hash
from ratings_ledger.ledger.processes.identity import is_process_running
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.catalogue import Objects, load_generated_objects, raise_on_difference
from ratings_ledger.ledger.store.dialect import (
    BUSY_SECONDS,
    ChangeRights,
    ConnectionSource,
    Grants,
    NamedEvent,
    RightsProblem,
    Setting,
    transaction,
)
from ratings_ledger.ledger.store.guards import AHEAD, SQLITE_TRIGGERS, SQLITE_VIEW, sqlite_instant
from ratings_ledger.ledger.store.schema import HEAD_QUERY

# the number of values in one statement: 160 rows of the log, or 80 for SQLite before 3.32, which accepts 999 values
VALUES_PER_STATEMENT = 1_920 if sqlite3.sqlite_version_info >= (3, 32) else 960
# settings of each connection. SQLite's default journal mode, DELETE, loses the last acknowledged commit in some power
# cuts; see docs/internals.md
PRAGMAS: dict[str, str | int] = {
    "journal_mode": "truncate",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "recursive_triggers": 1,
    # an untrusted file must not run its own code, and its pages are checked before use
    "trusted_schema": 0,
    "cell_size_check": 1,
    "cache_size": -65_536,  # KiB; the indexes of a large import stay in memory
    # the guard triggers make SQLite keep undo data per row; writing it to a temporary file would cost more than the row
    "temp_store": 2,  # MEMORY
    **({"fullfsync": 1} if sys.platform == "darwin" else {}),
}

_REMEDY = (
    "another program forces its own setting on this file; close every program that uses the file, then run: "
    "ratings doctor"
)
_TIMEOUT_REMEDY = "remove the parameter timeout from the ledger's URL"

_COLUMNS = EventRow._fields
# SQLITE_DBCONFIG_DEFENSIVE keeps SQL from damaging the file
_DEFENSIVE = 1010
IS_FILE = True
GUARDS = tuple(SQLITE_TRIGGERS)
READABLE_VIEW = SQLITE_VIEW
sql_instant = sqlite_instant
# queries for the last position, in the order of preference: counting an intact index is more reliable than
# max(position) of a damaged table
LAST_POSITION_QUERIES: tuple[str, ...] = (
    "SELECT count(*) FROM events INDEXED BY events_by_type",
    "SELECT count(*) FROM events INDEXED BY events_by_subject",
    "SELECT max(position) FROM events",
)
_FILE_QUERY = "SELECT file FROM pragma_database_list WHERE name = 'main'"
# open descriptors by (process, device, inode); they stay open, because closing one drops all locks that SQLite holds on
# the file in this process
_descriptors: dict[tuple[int, int, int], int] = {}
_locked_files: set[tuple[int, int, int]] = set()
_LAST_ROW_QUERY = f"SELECT {', '.join(_COLUMNS)} FROM events ORDER BY position DESC LIMIT 1"

# the records of a range as one blob, or NULL if a record is missing; no record contains a newline, and a value that is
# not text becomes `null`, which is an invalid record
_JOIN_QUERY = """SELECT CASE count(*) WHEN {until} - {after} THEN CAST(group_concat(record, '') AS BLOB) END FROM (
SELECT CASE typeof(record) WHEN 'text' THEN record ELSE 'null' END || char(10) AS record
FROM events WHERE position > {after} AND position <= {until} ORDER BY position)"""


def build_engine(url: URL, create: bool, pool: type[Pool], busy_seconds: float) -> Engine:
    """Return an engine on the URL's file. Raises `NoLedger` if the file does not exist and `create` is false."""
    path = Path(url.database or "")
    if not url.database:
        raise NotALedger("no file is named; name a file such as club.db, or a PostgreSQL URL")
    if url.database == ":memory:":
        raise NotALedger(
            "a database in memory cannot be opened by name; name a file such as club.db, or a PostgreSQL URL"
        )
    try:
        is_folder, has_file = path.is_dir(), path.exists()
    except OSError as problem:  # the name is too long, or this account may not read the folder
        raise StoreUnavailable(
            f"{quote(str(path))} cannot be reached: {problem.strerror}; check the name and the folder's permissions"
        ) from None
    if is_folder:
        raise NotALedger(f"{path} is a folder; name the ledger's file in it, such as {path / 'club.db'}")
    if not create and not has_file:
        raise NoLedger(f"there is no ledger at {path}; create one with: ratings --db {shlex.quote(str(path))} init")
    if create and not path.absolute().parent.is_dir():
        folder = path.absolute().parent
        raise StoreUnavailable(f"the folder {folder} does not exist; create it: mkdir -p {shlex.quote(str(folder))}")
    if unknown := sorted(url.query.keys() - {"timeout"}):
        raise NotALedger(f"unknown URL parameter {unknown[0]!r}; SQLite accepts only timeout, in seconds")

    uri = f"file:{urllib.parse.quote(os.fspath(path.absolute()))}?mode={'rwc' if create else 'rw'}"
    return _create_engine(uri, PRAGMAS, pool, busy_seconds=busy_seconds, path=path.absolute())


def build_memory_engine(pool: type[Pool]) -> Engine:
    """Return an engine on a new database in memory, which lasts while any of its connections is open.

    Raises `NotALedger` if this SQLite cannot share a database in memory between connections.
    """
    if sqlite3.sqlite_version_info < (3, 36):
        raise NotALedger(
            f"a ledger in memory needs SQLite 3.36, but this Python has SQLite {sqlite3.sqlite_version}; name a file "
            "such as club.db, or use a newer Python"
        )
    # the virtual file system memdb has locks like a file; a journal on disk would be useless
    pragmas = PRAGMAS | {"journal_mode": "memory"}
    engine = _create_engine(f"file:/{uuid4()}?vfs=memdb", pragmas, pool, busy_seconds=BUSY_SECONDS, path=None)
    engine.update_execution_options(in_memory=True)
    return engine


class _Connection(sqlite3.Connection):
    """A connection that remembers the file that it opened: its path, device and inode."""

    path: Path | None = None
    file_id: tuple[int, int] | None = None


def _identify_file(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_stale(connection: Any) -> bool:
    """Tell whether the file that a connection opened has been deleted or replaced."""
    return connection.path is not None and _identify_file(connection.path) != connection.file_id


def _replace_stale(connection: Any, *_: Any) -> None:
    """Make the pool connect anew if an idle connection is stale."""
    if is_stale(connection):
        raise DisconnectionError


def _create_engine(
    uri: str, pragmas: Mapping[str, str | int], pool: type[Pool], *, busy_seconds: float, path: Path | None
) -> Engine:
    """Return an engine on the database at a URI of SQLite; its sessions start with these pragmas.

    Connections that a pool keeps are replaced once another file has taken the place of the one at `path`.
    """

    def connect() -> sqlite3.Connection:
        # identify the file before opening it: if it is replaced in between, the connection counts as stale and is
        # reopened, instead of passing for a connection to the new file
        file_id = None if path is None else _identify_file(path)
        # a pool may hand a connection to another thread, but never to two at once
        connection = sqlite3.connect(
            uri, timeout=busy_seconds, isolation_level=None, check_same_thread=False, factory=_Connection, uri=True
        )
        connection.path, connection.file_id = path, file_id
        try:
            if (configure := getattr(connection, "setconfig", None)) is not None:  # since Python 3.12
                configure(_DEFENSIVE, True)
            for pragma, value in pragmas.items():
                connection.execute(f"PRAGMA {pragma} = {value}")
        except sqlite3.Error:
            connection.close()
            raise
        except UnicodeDecodeError:  # SQLite's message about a damaged schema is not UTF-8
            connection.close()
            raise sqlite3.DatabaseError("malformed database schema") from None
        return connection

    if pool is not QueuePool:
        return create_engine("sqlite://", creator=connect, poolclass=pool)
    # without a limit, because no thread should wait for a connection of another thread
    pooling_engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1)
    event.listen(pooling_engine, "checkout", _replace_stale)
    return pooling_engine


def set_autocommit(connection: Connection) -> Connection:
    """Return the connection unchanged: it is always in autocommit mode.

    Setting the mode would make SQLite prepare all statements again.
    """
    return connection


def begin(connection: Connection) -> None:
    """Begin a transaction that writes, and take the file's write lock before any read."""
    connection.connection.cursor().execute("BEGIN IMMEDIATE")


def lock_schema(connection: Connection) -> None:
    """Do nothing: BEGIN IMMEDIATE has already taken the lock."""


def lock_appends(connection: Connection) -> None:
    """Check the catalogue under the lock that BEGIN IMMEDIATE has taken. Raises `StoreDamaged`."""
    refuse_unexpected(connection)


def refuse_unexpected(connection: Connection) -> None:
    """Raise `StoreDamaged` if an unexpected object endangers this program's tables; see `refuse_unexpected_objects`."""
    refuse_unexpected_objects(connection.connection.cursor())


def lock_generations(connection: Connection) -> None:
    """Do nothing: BEGIN IMMEDIATE holds the lock, and `Ledger.writing` checked the catalogue under it."""


@contextmanager
def transaction_on_runs(connection: Connection, milliseconds: int, exclusive: bool) -> Iterator[None]:
    """Run the block in a transaction on the table `runs`; wait at most `milliseconds` for the file's lock.

    Raises `StoreDamaged` for unexpected objects, because an untrusted file might run code even while it is verified.
    """
    timeout_before = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    try:
        with transaction(connection, f"PRAGMA busy_timeout = {milliseconds}", "BEGIN IMMEDIATE"):
            refuse_unexpected(connection)
            yield
    finally:
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {timeout_before}")


def mark_running(ledger: ConnectionSource, number: int) -> AbstractContextManager[None]:
    """Do nothing: a run is in progress while its process exists."""
    return nullcontext()


def is_running(connection: Connection, number: int, process: str, started_at: int, now: int) -> bool:
    """Tell whether the process of a run is running; one on another host counts as running for a day."""
    return is_process_running(process, started_at, now)


def lock_and_read_head(connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
    """Return the row of the head, and the events whose id or subject is in `names`.

    BEGIN IMMEDIATE has already taken the lock. Raises `StoreDamaged` for unexpected objects.
    """
    cursor: Any = connection.connection.cursor()
    refuse_unexpected_objects(cursor)
    return cursor.execute(HEAD_QUERY).fetchone(), find_events_named(cursor, names) if names else []


def append_one(ledger: ConnectionSource, build_values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
    """Append an event in one short transaction; return the new head.

    Append nothing and return None if the event needs the full checks of `append`.

    `build_values` is called under the lock. The guard and the unique indexes refuse an id or a game that exists.
    """
    with ledger.borrow_driver() as driver:
        driver.execute("BEGIN IMMEDIATE")
        try:
            refuse_unexpected_objects(driver)
            *members, now, by, record_start, record_end, expected_head = build_values()
            last = driver.execute(HEAD_QUERY).fetchone()
            position, chain, recorded_at = last or (0, ZERO, 0)
            if (last is None or is_valid_head(*last)) and recorded_at <= now and expected_head in (None, position):
                position += 1
                record = f"{record_start}{position}{record_end}"
                leaf = leaf_hash(record)
                chain = chain_hash(chain, leaf)
                row = (position, *members, now, by, None, record, leaf, chain)
                driver.execute(_build_insert("events", _COLUMNS, 1), row)
                if driver.execute(_LAST_ROW_QUERY).fetchone() != row:
                    raise StoreDamaged(NOT_STORED)
                driver.execute("COMMIT")
                return position, chain, now
        except sqlite3.IntegrityError:  # such as an id or a game that exists
            pass
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
    return None


def insert(cursor: sqlite3.Cursor, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows in order; each row holds the values of these columns.

    Many rows per statement take half the time of single rows, because SQLite keeps undo data for each statement.
    """
    rows, batch_size = iter(rows), VALUES_PER_STATEMENT // len(columns)
    while len(batch := list(islice(rows, batch_size))) == batch_size:
        cursor.execute(_build_insert(table, tuple(columns), batch_size), tuple(chain.from_iterable(batch)))
    cursor.executemany(_build_insert(table, tuple(columns), 1), batch)


@cache
def _build_insert(table: str, columns: tuple[str, ...], row_count: int) -> str:
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * row_count)}"


def join_records(connection: Connection, after: int, until: int) -> bytes | None:
    """Return the records at `after` < position <= `until`, one per line, or None if a record is missing."""
    query = _JOIN_QUERY.format(after=int(after), until=int(until))
    records: bytes | None = connection.exec_driver_sql(query).scalar()
    return records


def find_events_named(cursor: sqlite3.Cursor, names: Sequence[str]) -> list[NamedEvent]:
    """Return the events whose id or subject is one of these names."""
    # CROSS JOIN makes SQLite look up each name in the indexes
    cursor.execute(
        "SELECT events.event_id, events.subject, events.type, events.record FROM json_each(?) AS names "
        "CROSS JOIN events ON events.event_id = names.value OR events.subject = names.value",
        (json.dumps(names),),
    )
    return [NamedEvent(*row) for row in cursor.fetchall()]


def sql_head(table: str) -> str:
    """Return SQL for a row's position and chain hash: POSITION:CHAINHASH."""
    return f"{table}.position || ':' || lower(hex({table}.chain_hash))"


def sql_as_bytes(column: str) -> str:
    """Return SQL that reads a text as bytes, which might not be UTF-8; another value becomes a note of its type."""
    return (
        f"CASE WHEN typeof({column}) IN ('text', 'null') THEN CAST({column} AS BLOB) "
        f"ELSE 'a value of type ' || typeof({column}) END"
    )


def read_settings(connection: Connection) -> list[Setting]:
    """Read the store's settings, with their safe values."""
    safe_values = {**PRAGMAS, "busy_timeout": BUSY_SECONDS * 1_000}
    return [
        Setting("sqlite library", sqlite3.sqlite_version, None),
        *(
            Setting(
                name,
                str(connection.exec_driver_sql(f"PRAGMA {name}").scalar()),
                str(value),
                _TIMEOUT_REMEDY if name == "busy_timeout" else _REMEDY,
            )
            for name, value in safe_values.items()
        ),
    ]


def identify_database(connection: Connection) -> tuple[str, ...]:
    """Return the path of the database's file, with links resolved; empty for a database in memory."""
    if connection.get_execution_options().get("in_memory"):
        return ()
    return (os.path.realpath(connection.exec_driver_sql(_FILE_QUERY).scalar_one()),)


def find_altered_guards(connection: Connection) -> list[str]:
    """Return the names of the triggers that are missing or altered, sorted."""
    return _list_altered_guards(connection.connection.cursor())


def find_storage_damage(connection: Connection) -> list[str]:
    """Return a message for each corruption that SQLite itself finds in the file."""
    try:
        messages = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    except Exception as error:  # a damaged file can raise any error
        cause = getattr(error, "orig", None) or error
        if isinstance(cause, sqlite3.Error) and not is_damage(cause):
            raise
        return [str(cause)]
    return [] if messages == ["ok"] else messages


def is_damage(error: BaseException) -> bool:
    """Tell whether a driver error means damaged data, rather than a lock, a missing permission or an interrupt."""
    return isinstance(error, UnicodeDecodeError) or _find_code(error) in ("CORRUPT", "NOTADB", "FORMAT")


def _find_code(error: BaseException) -> str | None:
    """Return SQLite's code for an error, such as CORRUPT; None if the error is a bug."""
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.ProgrammingError):
        return None
    # an error that Python raises, about text that is not UTF-8, has no code
    return str(getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")).split("_")[1]


_BUSY = "{} is locked by another program; try again when it is done"
_INACCESSIBLE = "{} cannot be read or written: {}; check the file's and the folder's permissions"
_DISK_ERROR = "{} cannot be read or written: {}; check the disk and its free space, then run: ratings verify"
# by SQLite's code: the class of the error; the message, in which {} stands for the location and then for the driver's
# message; and the reason
FAILURES: dict[str, tuple[type[LedgerError], str, str | None]] = {
    "BUSY": (StoreUnavailable, _BUSY, "busy"),
    "LOCKED": (StoreUnavailable, _BUSY, "busy"),
    "FULL": (StoreUnavailable, "no space left for {}; free some space and run the same command again", "no-space"),
    "READONLY": (StoreUnavailable, _INACCESSIBLE, "read-only"),
    "PERM": (StoreUnavailable, _INACCESSIBLE, "no-right"),
    "AUTH": (StoreUnavailable, _INACCESSIBLE, "no-right"),
    "CANTOPEN": (StoreUnavailable, _INACCESSIBLE, None),
    "IOERR": (StoreUnavailable, _DISK_ERROR, None),
    "NOTADB": (NotALedger, "{} is not a SQLite file; name the file of a ledger", None),
    "CORRUPT": (
        StoreDamaged,
        "{} is damaged, or does not have this program's tables: {}; run: ratings verify",
        None,
    ),
}


def translate_error(error: BaseException, location: str) -> LedgerError | None:
    """Convert a driver's error to one of this program's; return None if the error is a bug."""
    if (code := _find_code(error)) is None:
        return None
    if AHEAD in str(error):
        return StoreUnavailable(CLOCK_AHEAD, "clock-ahead")
    error_type, message, reason = FAILURES.get(code, FAILURES["CORRUPT"])
    return error_type(message.format(location, error), reason)


def build_grant_statements(database: str, prefix: str) -> Grants | None:
    """Return None: a file has permissions instead of roles."""
    return None


def find_rights_problems(connection: Connection) -> tuple[str, list[RightsProblem]]:
    """Return this account's name, and the problems: the file, its folder or both, if all accounts may write to them."""
    path = Path(*identify_database(connection))
    problems = []
    for file_or_folder, kind in ((path, "the file"), (path.parent, "the folder")):
        if file_or_folder.stat().st_mode & stat.S_IWOTH:
            remedy = f"chmod o-w {shlex.quote(str(file_or_folder))}"
            problem = f"may write to {kind} {file_or_folder}, bypassing all guards"
            problems.append(RightsProblem("every account", problem, remedy))
    return f"the account {_read_account_name(os.geteuid())}", problems


def read_change_rights(connection: Connection) -> ChangeRights:
    """Read whether this account may write to the file and its folder, and who owns the file."""
    path = Path(*identify_database(connection))
    owner = _read_account_name(path.stat().st_uid)
    return ChangeRights(_read_account_name(os.geteuid()), owner, can_change_tables=not _find_unwritable(path))


def describe_missing_rights(connection: Connection, role: str) -> str:
    """Name the file or folder that this account may not write to, or both; empty if there is none.

    Every role needs the same rights.
    """
    unwritable = _find_unwritable(Path(*identify_database(connection)))
    return f"this account may not write to {' and '.join(unwritable)}" if unwritable else ""


def _find_unwritable(file: Path) -> list[str]:
    return [str(path) for path in (file, file.parent) if not os.access(path, os.W_OK)]


def _read_account_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@contextmanager
def hold_rebuild_lock(ledger: ConnectionSource) -> Iterator[None]:
    """Lock the ledger's file while the block runs. Raises `BlockingIOError` if the lock is already held.

    Unlike a lock file, this lock is the same for all links to the file, and cannot be deleted. Raises
    `StoreUnavailable` if the file cannot be opened.
    """
    path = str(ledger.url.database)
    try:
        status = os.stat(path)
        file = os.getpid(), status.st_dev, status.st_ino
        if file not in _descriptors:
            _descriptors[file] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be locked: {error.strerror}; check that the file exists and may be read"
        ) from error
    if file in _locked_files:
        raise BlockingIOError
    fcntl.flock(_descriptors[file], fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locked_files.add(file)
    try:
        yield
    finally:
        _locked_files.discard(file)
        fcntl.flock(_descriptors[file], fcntl.LOCK_UN)


_OBJECTS_QUERY = "SELECT type, tbl_name, name, CAST(sql AS BLOB) FROM sqlite_master"
# the rows of the last catalogue that had no difference, in a list of one item
_last_compared: list[Sequence[Any]] = [()]


def read_objects(cursor: Any) -> Objects:
    """Read all objects of the file."""
    return _to_objects(cursor.execute(_OBJECTS_QUERY).fetchall())


def _to_objects(rows: Sequence[Any]) -> Objects:
    return {
        (kind, table, name): "" if sql is None else bytes(sql).decode("utf-8", "backslashreplace")
        for kind, table, name, sql in rows
    }


def refuse_unexpected_objects(cursor: Any) -> None:
    """Raise `StoreDamaged` if an unexpected object can hide or reject rows, or run code when they change.

    Only objects that affect this program's tables matter. The check holds until the transaction ends, because no other
    connection can change the schema while this one writes.
    """
    rows = cursor.execute(_OBJECTS_QUERY).fetchall()
    if rows != _last_compared[0]:
        raise_on_difference(
            cursor, (f"the guard {name} is missing or altered" for name in _list_altered_guards(cursor))
        )
        raise_on_difference(cursor, _find_differences(cursor, _to_objects(rows), all_objects=False))
        _last_compared[0] = rows


def _list_altered_guards(cursor: Any) -> list[str]:
    triggers = {name: sql for (kind, _, name), sql in read_objects(cursor).items() if kind == "trigger"}
    return sorted(name for name, sql in SQLITE_TRIGGERS.items() if triggers.get(name) != sql)


def find_object_differences(connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
    """Yield a message for each object that differs, and None for each that matches.

    Guards are checked elsewhere.
    """
    cursor: Any = connection.connection.cursor()
    yield from _find_differences(cursor, read_objects(cursor), all_objects=True)


def _find_differences(cursor: Any, objects: Objects, all_objects: bool) -> Iterator[str | None]:
    """Compare the objects with this program's, and report unexpected triggers, indexes and foreign keys.

    Unless `all_objects`, skip views and plain indexes: a missing or altered one loses no rows and runs no code.
    """
    generated = load_generated_objects("sqlite")
    tables = {table.lower() for _, table, _ in generated}
    expected = {
        (kind, name): (table, sql)
        for (kind, table, name), sql in generated.items()
        if all_objects or kind == "table" or (kind == "index" and not _is_plain_index(sql))
    }
    titles_by_name = {name.lower(): f"the {kind} {name}" for kind, _, name in objects}
    definitions = {(kind, name): (table, sql) for (kind, table, name), sql in objects.items()}
    for kind, name in expected:
        if kind == "index" and ("table", expected[kind, name][0]) not in definitions:
            continue  # the indexes of a missing table are missing, too
        if (kind, name) not in definitions:
            note = f", but {titles_by_name[name]} exists" if name in titles_by_name else ""
            yield f"the {kind} {name} is missing{note}"
        else:
            is_same = definitions[kind, name] == expected[kind, name]
            yield None if is_same else f"the {kind} {name} differs from this program's definition"
    # table names are compared in lower case, because SQLite ignores case but keeps the spelling
    for kind, name in sorted(definitions.keys() - expected.keys()):
        table, sql = definitions[kind, name]
        is_own_table = table.lower() in tables
        if kind == "trigger" and name not in SQLITE_TRIGGERS:
            if is_own_table or not tables.isdisjoint(_WORD.findall(sql.lower())):
                yield f"the trigger {name} on {table} was not created by this program"
        elif kind == "index" and is_own_table and not _is_plain_index(sql):
            yield f"the index {name} on {table} was not created by this program"
    own_tables = {name for kind, _, name in generated if kind == "table"}
    for name, table in cursor.execute(_FOREIGN_KEYS_QUERY).fetchall():
        if name not in own_tables and str(table).lower() in tables - _IMMUTABLE_TABLES:
            yield f"a foreign key of {name} takes effect when a row of {table} is deleted"


_WORD = re.compile(r"\w+")
_FOREIGN_KEYS_QUERY = """SELECT DISTINCT m.name, f."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' ORDER BY 1, 2"""
# the tables whose rows are never deleted, so foreign keys that refer to them never take effect
_IMMUTABLE_TABLES = {name.partition("_refuse_")[0] for name in SQLITE_TRIGGERS if "_refuse_" in name}


def _is_plain_index(sql: str) -> bool:
    """Tell whether an index is on plain columns only, so it cannot reject rows or run code."""
    return bool(re.fullmatch(r"[^()]*\([^()]*\)\s*", sql)) and not re.search(r"\bUNIQUE\b", sql, re.IGNORECASE)
