"""A psycopg connection that pings a silent server instead of waiting for ever.

The driver waits even if the server is frozen or a cable is unplugged. After `SILENT_SECONDS` without an answer, this
connection pings the server over a new connection, as `pg_isready` does. If the server answers the ping, it is busy with
a long task, and the wait continues; if not, the connection fails. Until the server answers a ping again, this program's
other connections to it ping it as soon as it is silent.
"""

import time
from collections.abc import Generator, Sequence
from typing import Any

from psycopg import ClientCursor, Connection, OperationalError
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

SILENT_SECONDS = 60.0
# how long to wait for the answer to a ping
PING_SECONDS = 10
# the connection strings of the servers that did not answer the last ping
_unresponsive = set[str]()


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
