"""A psycopg connection that does not wait for ever: it pings a silent server.

The driver waits as long as the connection lasts, even while a server is frozen or a cable is unplugged. After some
silence this connection pings the server over a new connection, as `pg_isready` does. A server that is busy with a long
task answers, and the wait continues. A server that does not answer is given up; other connections to it then ping it
immediately until it answers again.
"""

import time
from collections.abc import Generator, Sequence
from typing import Any

from psycopg import ClientCursor, Connection, OperationalError
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

SILENT_SECONDS = 60.0
PING_SECONDS = 10
# the connection strings of servers that this process gave up and that have not answered since
_given_up = set[str]()


class AnsweringConnection(Connection[Any]):
    """A connection whose statements fail with `OperationalError` when the server no longer answers.

    `can_append` tells whether the statement of single appends is prepared for the catalogue as last compared.
    """

    can_append = False

    def execute_last(self, statements: str, arguments: Sequence[Any]) -> Any:
        """Execute statements that are sent together; return the first row of the last one's result, or None."""
        with ClientCursor(self) as cursor:
            cursor.execute(statements, arguments)
            while cursor.nextset():
                pass
            return cursor.fetchone()

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        """Consume one of the driver's generators, as `Connection.wait` does. Raises `OperationalError`."""
        return super().wait(self._watch_silence(gen), *arguments, **options)

    def _watch_silence(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Drive the generator as the driver does, but check the clock whenever no data has arrived for a moment."""
        silent_since = None
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    silent_since = None
                elif silent_since is None:
                    silent_since = time.monotonic()
                elif (_given_up and self.info.dsn in _given_up) or time.monotonic() - silent_since >= SILENT_SECONDS:
                    self._ping_server()
                    silent_since = None
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _ping_server(self) -> None:
        """Give the connection up unless the server answers on another one; any answer counts."""
        dsn = self.info.dsn
        if PGconn.ping(make_conninfo(dsn, connect_timeout=PING_SECONDS).encode()) == Ping.NO_RESPONSE:
            so_far = "still says nothing" if dsn in _given_up else f"has said nothing for {SILENT_SECONDS:g} s"
            _given_up.add(dsn)
            self.pgconn.finish()
            raise OperationalError(f"the server {so_far}, and does not answer at all")
        _given_up.discard(dsn)
