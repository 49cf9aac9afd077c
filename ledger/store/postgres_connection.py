"""Connections of psycopg: how this program configures them, and a connection that pings a silent server.

The driver waits even if the server is frozen or a cable is unplugged. After `SILENT_SECONDS` without an answer, this
connection pings the server over a new connection, as `pg_isready` does. If the server answers the ping, it is busy with
a long task, and the wait continues; if not, the connection fails. Until the server answers a ping again, this program's
other connections to it ping it as soon as it is silent.
"""

import time
import urllib.parse
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

from psycopg import ClientCursor, Connection, OperationalError
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.catalogue import load_generated_objects

SILENT_SECONDS = 60.0
# how long to wait for the answer to a ping
PING_SECONDS = 10
# how long to wait for a notification through a pooler
NOTIFY_SECONDS = 5.0
# the connection strings of the servers that did not answer the last ping
_unresponsive = set[str]()

# the schemas in which the session finds this program's tables, each with their names; the schema with most tables first
_SCHEMAS_WITH_TABLES = """SELECT n.nspname, pg_catalog.string_agg(t.name, ', ')
FROM pg_catalog.unnest(%s::pg_catalog.text[]) t(name)
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.name)
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace GROUP BY 1 ORDER BY pg_catalog.count(*) DESC, 1"""

# settings of each session, which override those of the server, the database, the role and the environment; statements
# set them, because a pooler passes on statements but not parameters of the connection
SESSION = (
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
    "SET quote_all_identifiers = off",
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_read_only = off",
    # makes a statement fail if a policy would hide rows
    "SET row_security = off",
    "SET bytea_output = 'hex'",
    # keeps temporary tables from shadowing the ledger's
    "SELECT set_config('search_path', current_setting('search_path') || ', pg_temp', false)",
    # the connection that holds the lock of a rebuild is idle for a long time
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'",
)


class AnsweringConnection(Connection[Any]):
    """A connection whose statements fail with `OperationalError` when the server no longer answers.

    `can_append` tells whether the statements that append one event are prepared, and the catalogue has not
    been found changed since. `append_one` sets it.
    """

    can_append = False

    def execute_together(self, statements: str, arguments: Sequence[Any]) -> Any:
        """Send statements together; return the first row of the last statement's result, or None."""
        with ClientCursor(self) as cursor:
            cursor.execute(statements, arguments)
            while cursor.nextset():
                pass
            return cursor.fetchone()

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        """Drive a generator of the driver like `Connection.wait`. Raises `OperationalError` if the server is silent."""
        return super().wait(self._watch_silence(gen), *arguments, **options)

    def _watch_silence(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Drive the generator like the driver, but check the clock whenever no data has arrived for a moment."""
        silent_since = None
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    silent_since = None
                elif silent_since is None:
                    silent_since = time.monotonic()
                elif (
                    _unresponsive and self.info.dsn in _unresponsive
                ) or time.monotonic() - silent_since >= SILENT_SECONDS:
                    self._ping_server()
                    silent_since = None
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _ping_server(self) -> None:
        """Close the connection and raise `OperationalError` unless the server answers a ping, even with an error."""
        dsn = self.info.dsn
        if PGconn.ping(make_conninfo(dsn, connect_timeout=PING_SECONDS).encode()) == Ping.NO_RESPONSE:
            silence = "is still silent" if dsn in _unresponsive else f"has been silent for {SILENT_SECONDS:g} s"
            _unresponsive.add(dsn)
            self.pgconn.finish()
            raise OperationalError(f"the server {silence} and does not answer a ping")
        _unresponsive.discard(dsn)


def open_session(
    connection: Any, *, lock_timeout: str, location: str, connect: Callable[[], Any], poolers: set[str]
) -> None:
    """Configure a new connection of the driver for this program.

    Args:
        connection: The driver's connection.
        lock_timeout: The statement that sets how long to wait for a lock.
        location: The database, for messages.
        connect: Opens another connection to the database.
        poolers: The locations of poolers that are known to keep their client's session; updated.

    Raises:
        NotALedger: The encoding is not UTF-8, a pooler does not keep the session, or the search path leads to tables in
            several schemas.
    """
    autocommit_before, connection.autocommit = connection.autocommit, True
    encoding, process = connection.execute("SELECT current_setting('server_encoding'), pg_backend_pid()").fetchone()
    if encoding != "UTF8":
        raise NotALedger(
            f"the database {location} has the encoding {encoding}; create another with ENCODING 'UTF8' for a ledger"
        )
    # behind a pooler, the client is told a process number that is not the server's
    if process != connection.info.backend_pid and location not in poolers:
        if not _keeps_sessions(connection, connect):
            raise NotALedger(
                f"the pooler at {location} does not keep a session beyond a transaction; let it pool by session "
                "(PgBouncer: pool_mode = session), or name the server itself"
            )
        poolers.add(location)
    _refuse_mixed_schemas(connection, location)
    connection.execute("; ".join((*SESSION, lock_timeout)))
    connection.autocommit = autocommit_before


def _refuse_mixed_schemas(connection: Any, location: str) -> None:
    """Raise `NotALedger` if the search path leads to tables with this program's names in different schemas."""
    names = [name for kind, _, name in load_generated_objects("postgresql") if kind == "table"]
    schemas = connection.execute(_SCHEMAS_WITH_TABLES, (names,)).fetchall()
    if len(schemas) > 1:
        (schema, _), (other_schema, tables) = schemas[:2]
        path = connection.execute("SELECT pg_catalog.current_setting('search_path')").fetchone()[0]
        option = urllib.parse.quote(f"-csearch_path={schema}")
        raise NotALedger(
            f"{location}: search_path = {path} leads to the ledger in the schema {quote(schema)}, but to {tables} in "
            f"the schema {quote(other_schema)}; add a parameter to the URL that names only the ledger's schema: "
            f"options={option}"
        )


def _keeps_sessions(connection: Any, connect: Callable[[], Any]) -> bool:
    """Tell whether a pooler keeps the session of an idle connection, by sending a notification to that session.

    Return True if this cannot be tested, because the pooler has no second connection or the server forbids LISTEN.
    """
    channel = f"ratings_{uuid4().hex}"
    try:
        connection.execute(f"LISTEN {channel}")
        with closing(connect()) as second:
            second.pgconn.send_query(f"NOTIFY {channel}".encode())
            is_notified = any(connection.notifies(timeout=NOTIFY_SECONDS, stop_after=1))
            second.pgconn.consume_input()
            has_pending_reply = second.pgconn.is_busy()
        connection.execute(f"UNLISTEN {channel}")
    except type(connection).Error:
        return not connection.closed
    return is_notified or bool(has_pending_reply)
