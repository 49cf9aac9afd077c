"""A ledger in a SQLite file, opened through Python's own `sqlite3` and nothing else in the process."""

import json
import os
import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.pool import Pool

from ledger.errors import CLOCK_AHEAD, NOT_STORED, LedgerError, NoLedger, NotALedger, StoreDamaged, StoreUnavailable
from ledger.events.records import ZERO, EventRow, chain_hash, leaf_hash
from ledger.store.connections import Connections
from ledger.store.guards import AHEAD, SQLITE_TRIGGERS
from ledger.store.schema import NEWEST
from ledger.store.settings import BUSY_SECONDS, Setting, busy_seconds

NamedEvent = tuple[str, str, str, str]

# rows per statement; SQLite before 3.32 takes at most 999 values
INSERTED_TOGETHER = 80
# DELETE, SQLite's default journal, loses the last acknowledged commit in some power cuts; see docs/architecture.md
PRAGMAS = {
    "journal_mode": "truncate",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "recursive_triggers": 1,
    # a file may be a stranger's: no code in it runs except our guards, and its pages are checked before they are used
    "trusted_schema": 0,
    "cell_size_check": 1,
    "cache_size": -65_536,  # KiB; the indexes of a large import stay in memory
    # the guards make SQLite keep what it needs to undo a single row; in a file that costs more than the row itself
    "temp_store": 2,  # MEMORY
    **({"fullfsync": 1} if sys.platform == "darwin" else {}),
}

REMEDY = "another program keeps it so: close the programs that have the file open, and open it again"

_COLUMNS = EventRow._fields
# SQLITE_DBCONFIG_DEFENSIVE: no SQL can damage the file
_DEFENSIVE = 1010
GUARDS = tuple(SQLITE_TRIGGERS)
_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = 'events'"
_LAST_ROW = f"SELECT {', '.join(_COLUMNS)} FROM events ORDER BY position DESC LIMIT 1"

_FILE = "SELECT file FROM pragma_database_list WHERE name = 'main'"

# the records of some positions as one blob, unless one is missing; no record contains a newline, and what is not text
# is not a record
JOINED_RECORDS = """SELECT CASE count(*) WHEN {until} - {after} THEN CAST(group_concat(record, '') AS BLOB) END FROM (
SELECT CASE typeof(record) WHEN 'text' THEN record ELSE 'null' END || char(10) AS record
FROM events WHERE position > {after} AND position <= {until} ORDER BY position)"""


def engine(url: URL, create: bool, pool: type[Pool]) -> Engine:
    """An engine on the URL's file. Raises `NoLedger` if there is none and `create` is false."""
    path = Path(url.database or "")
    if not url.database or url.database == ":memory:":
        raise NotALedger("a ledger lives in a file or in PostgreSQL, not in memory")
    if path.is_dir():
        raise NotALedger(f"{path} is a folder; name the ledger's file")
    if not create and not path.exists():
        raise NoLedger(f"there is no ledger at {path}; create one with: ratings --db {shlex.quote(str(path))} init")
    if create and not path.absolute().parent.is_dir():
        raise StoreUnavailable(f"the folder {path.absolute().parent} does not exist")
    seconds = busy_seconds(url)
    if unknown := sorted(url.query.keys() - {"timeout"}):
        raise NotALedger(f"the URL's {unknown[0]!r} is not known for SQLite; only timeout, in seconds, is")

    def connect() -> sqlite3.Connection:
        name = f"file:{quote(os.fspath(path.absolute()))}?mode={'rwc' if create else 'rw'}"
        # a pool may hand a connection to another thread, but never to two
        connection = sqlite3.connect(name, uri=True, timeout=seconds, isolation_level=None, check_same_thread=False)
        try:
            if (configure := getattr(connection, "setconfig", None)) is not None:  # since Python 3.12
                configure(_DEFENSIVE, True)
            for pragma, value in PRAGMAS.items():
                connection.execute(f"PRAGMA {pragma} = {value}")
        except sqlite3.Error:
            connection.close()
            raise
        except UnicodeDecodeError:  # not even SQLite's complaint about the schema can be read
            connection.close()
            raise sqlite3.DatabaseError("malformed database schema") from None
        return connection

    return create_engine("sqlite://", creator=connect, poolclass=pool)


def autocommitting(connection: Connection) -> Connection:
    """The connection, which already is; if SQLAlchemy set it, SQLite would have to prepare all statements anew."""
    return connection


def begin(connection: Connection) -> None:
    """Begin to write; the lock is taken before anything is read. Reads are single statements, each a transaction."""
    connection.connection.cursor().execute("BEGIN IMMEDIATE")


def lock_schema(connection: Connection) -> None:
    """BEGIN IMMEDIATE has already taken the lock."""


def lock_appends(connection: Connection) -> None:
    """BEGIN IMMEDIATE has already taken the lock."""


def locked(connection: Connection, names: Sequence[str]) -> tuple[Any, list[NamedEvent]]:
    """The row of the head, and the events of these names; the append lock is already held.

    Raises `StoreDamaged` if triggers other than the guards could change what is appended.
    """
    cursor: Any = connection.connection.cursor()
    if not {row[0] for row in cursor.execute(_TRIGGERS)} <= SQLITE_TRIGGERS.keys():
        raise StoreDamaged("the table events has other triggers than this program's; see: ratings verify")
    return cursor.execute(NEWEST).fetchone(), events_named(cursor, names) if names else []


def append_one(ledger: Connections, values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
    """Append an event in one short transaction: the new head, or None if there is something to decide.

    `values`, called under the lock, gives the arguments of PostgreSQL's function `events_append_one`. What that
    function looks up first, the guard and the indexes look up here.
    """
    with ledger.driving() as driver:
        return _append_one(driver, values)


def _append_one(driver: sqlite3.Connection, values: Callable[[], Sequence[Any]]) -> tuple[int, bytes, int] | None:
    driver.execute("BEGIN IMMEDIATE")
    try:
        *members, now, by, before, behind, head_seen = values()
        position, chain, recorded_at = driver.execute(NEWEST).fetchone() or (0, ZERO, 0)
        if recorded_at <= now and head_seen in (None, position):
            position += 1
            record = f"{before}{position}{behind}"
            leaf = leaf_hash(record)
            chain = chain_hash(chain, leaf)
            row = (position, *members, now, by, None, record, leaf, chain)
            driver.execute(_insertion("events", _COLUMNS, 1), row)
            if driver.execute(_LAST_ROW).fetchone() != row:
                raise StoreDamaged(NOT_STORED)
            driver.execute("COMMIT")
            return position, chain, now
    except sqlite3.IntegrityError:  # the id or the game is already there
        pass
    finally:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
    return None


def insert(cursor: sqlite3.Cursor, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows; each gives the values of these columns.

    Many in one statement take half the time: SQLite keeps what it needs to undo a statement once for all of them.
    """
    rows = iter(rows)
    while len(group := list(islice(rows, INSERTED_TOGETHER))) == INSERTED_TOGETHER:
        cursor.execute(_insertion(table, tuple(columns), INSERTED_TOGETHER), tuple(chain.from_iterable(group)))
    cursor.executemany(_insertion(table, tuple(columns), 1), group)


@cache
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * rows)}"


def events_named(cursor: sqlite3.Cursor, names: Sequence[str]) -> list[NamedEvent]:
    """(id, subject, type, record) of the events whose id or subject is one of these names."""
    # the names come first so that each is looked up in the indexes
    cursor.execute(
        "SELECT events.event_id, events.subject, events.type, events.record FROM json_each(?) AS names "
        "CROSS JOIN events ON events.event_id = names.value OR events.subject = names.value",
        (json.dumps(names),),
    )
    return cursor.fetchall()


def driver_errors() -> tuple[type[Exception], ...]:
    """The errors that the driver itself raises."""
    return (sqlite3.Error,)


def settings(connection: Connection) -> list[Setting]:
    """The store's actual settings, next to what they should be."""
    wanted = {**PRAGMAS, "busy_timeout": BUSY_SECONDS * 1_000}
    return [
        Setting("sqlite library", sqlite3.sqlite_version, None),
        *(
            Setting(name, str(connection.exec_driver_sql(f"PRAGMA {name}").scalar()), str(value), REMEDY)
            for name, value in wanted.items()
        ),
    ]


def place(connection: Connection) -> tuple[str, ...]:
    """What identifies the database among all that this account reaches: its file, with links resolved."""
    return (os.path.realpath(connection.exec_driver_sql(_FILE).scalar_one()),)


def guards_missing(connection: Connection) -> list[str]:
    """The triggers that are absent or not what the migrations installed."""
    found: dict[str, bytes] = dict(
        connection.exec_driver_sql("SELECT name, CAST(sql AS BLOB) FROM sqlite_master WHERE type = 'trigger'").all()
    )
    return sorted(name for name, sql in SQLITE_TRIGGERS.items() if found.get(name) != sql.encode())


def storage_findings(connection: Connection) -> list[str]:
    """What SQLite itself finds wrong with the file, one text per finding."""
    try:
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    except Exception as error:  # a damaged file fails in every way there is
        cause = getattr(error, "orig", None) or error
        if isinstance(cause, sqlite3.Error) and not is_damage(cause):
            raise
        return [str(cause)]
    return [] if found == ["ok"] else found


def is_damage(error: BaseException) -> bool:
    """Whether a driver error means damaged data, rather than a lock, a right or an interrupt."""
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, UnicodeDecodeError)
    # Python's own complaints, about text that is not UTF-8, carry no code
    return getattr(error, "sqlite_errorname", "SQLITE_CORRUPT").split("_")[1] in ("CORRUPT", "NOTADB", "FORMAT")


def failure(error: BaseException, location: str) -> LedgerError | None:
    """A driver error as one of ours, or None for an error that is a bug."""
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.ProgrammingError):
        return None
    # Python's own complaints, about text that is not UTF-8, carry no code
    code = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT").split("_")[1]
    if AHEAD in str(error):
        return StoreUnavailable(CLOCK_AHEAD, "clock-ahead")
    if code in ("BUSY", "LOCKED"):
        return StoreUnavailable(f"{location} is locked by another program; try again when it is done", "busy")
    if code == "FULL":
        return StoreUnavailable(f"no space left for {location}; free some and run the same command again", "no-space")
    if code in ("READONLY", "CANTOPEN", "IOERR", "PERM", "AUTH"):
        return StoreUnavailable(
            f"{location} cannot be read or written: {error}; check the file's and the folder's permissions",
            {"READONLY": "read-only", "PERM": "no-right", "AUTH": "no-right"}.get(code),
        )
    if code == "NOTADB":
        return NotALedger(f"{location} is not a SQLite file")
    return StoreDamaged(f"{location} is damaged or not as the migrations made it: {error}; run: ratings verify")
