"""A ledger in a PostgreSQL database, through psycopg 3 (the extra `postgres`)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import URL, Connection, Engine, Row, create_engine
from sqlalchemy.exc import NoSuchModuleError
from sqlalchemy.pool import NullPool

from ledger.errors import LedgerError, NotALedger, StoreDamaged, StoreUnavailable
from ledger.guards import POSTGRES_APPEND_LOCK, POSTGRES_FUNCTIONS, POSTGRES_TRIGGERS
from ledger.settings import Setting, busy_seconds

WANTED = {"server_encoding": "UTF8", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}

# the records of some positions as one value; the newline is no character of a record
JOINED_RECORDS = """SELECT convert_to(string_agg(record || E'\\n', '' ORDER BY position), 'UTF8') FROM events
WHERE position > {after} AND position <= {until}"""


def engine(url: URL, create: bool = False) -> Engine:
    """An engine on the database of the URL; `create` makes no database, only its tables can be made."""
    given = str(url.query.get("options", ""))
    arguments = {"connect_timeout": 10, "options": f"{given} -c lock_timeout={int(busy_seconds(url) * 1_000)}".strip()}
    url = url.set(drivername="postgresql+psycopg").difference_update_query(["timeout", "options"])
    try:
        return create_engine(url, poolclass=NullPool, connect_args=arguments)
    except (ImportError, NoSuchModuleError):
        raise NotALedger(
            "PostgreSQL needs the driver psycopg 3; install it with: pip install 'ratings-ledger[postgres]'"
        ) from None


def lock_appends(connection: Connection) -> None:
    """Take the append lock in a statement of its own, so that the next statement sees the true head."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_APPEND_LOCK})")
    unsafe = [setting for setting in settings(connection) if not setting.fine]
    if unsafe:
        named = ", ".join(f"{setting.name} = {setting.value}" for setting in unsafe)
        raise StoreUnavailable(f"the server is not set to keep what it acknowledges ({named}); see: ratings doctor")


def insert(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows; each gives the values of these columns as the driver takes them."""
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
    connection.exec_driver_sql(statement, list(rows))


def rows_with(connection: Connection, columns: Sequence[str], column: str, texts: Sequence[str]) -> Sequence[Row[Any]]:
    """Columns of the events whose column holds one of these texts; one parameter, however many there are."""
    statement = f"SELECT {', '.join(columns)} FROM events WHERE {column} = ANY(%s)"
    return connection.exec_driver_sql(statement, (list(texts),)).all()


def settings(connection: Connection) -> list[Setting]:
    """What the server is really set to, against what it should be."""
    names = ", ".join(f"current_setting('{name}')" for name in ("server_version", *WANTED))
    version, *values = connection.exec_driver_sql(f"SELECT {names}").one()
    return [
        Setting("server_version", version, None),
        *(Setting(name, value, wanted) for (name, wanted), value in zip(WANTED.items(), values, strict=True)),
    ]


def guards_missing(connection: Connection) -> list[str]:
    """The triggers that are absent, switched off, or do not run our functions, and functions that differ."""
    found = {
        name: definition if enabled == "O" else ""
        for name, enabled, definition in connection.exec_driver_sql(
            "SELECT tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger "
            "WHERE NOT tgisinternal AND tgrelid IN ('events'::regclass, 'ledger_identity'::regclass)"
        )
    }
    missing = {name for name, sql in POSTGRES_TRIGGERS.items() if _plain(found.get(name, "")) != _plain(sql)}
    bodies: dict[str, str] = dict(
        connection.exec_driver_sql(
            "SELECT proname, prosrc FROM pg_proc WHERE proname IN ('ledger_refuse', 'events_guard_insert') "
            "AND pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)"
        ).all()
    )
    missing |= {name for name, sql in POSTGRES_FUNCTIONS.items() if bodies.get(name, "?") not in sql}
    return sorted(missing)


def _plain(definition: str) -> str:
    """A trigger's definition without the schema, which is the database's choice."""
    return " ".join(word.rsplit(".", 1)[-1] for word in definition.split())


def storage_findings(connection: Connection) -> list[str]:
    """PostgreSQL checks its pages when it reads them."""
    return []


def failure(error: BaseException, location: str) -> LedgerError | None:
    """The driver's error as one of ours, or None for an error that is a bug."""
    state = getattr(error, "sqlstate", None)
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if state in ("55P03", "57014"):
        return StoreUnavailable(f"{location} is busy: {text}; try again")
    if state == "42501":
        return StoreUnavailable(f"this database user may not do that on {location}: {text}")
    if state is None or state[:2] in ("08", "28", "3D", "53", "57"):
        return StoreUnavailable(f"{location} cannot be reached: {text}")
    if state in ("42P01", "42703"):
        return StoreDamaged(f"{location} is not as the migrations made it: {text}")
    return None
