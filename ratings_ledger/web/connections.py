"""Limit the number of connections and their idle time, so that silent clients cannot exhaust the server."""

import resource
from asyncio import AbstractEventLoop, BaseTransport, Transport, get_running_loop
from logging import getLogger
from socket import socket
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10  # the time in which a client must send the head of a request
STALLED_SECONDS = 30  # the time for which a client may stop reading an answer
CONNECTIONS_MAX = 1_000
OTHER_FILES = 100  # open files reserved for the store, the workers and connections not yet counted
ACCEPTED_AT_ONCE, BACKLOG = 16, 1_024
LOG_INTERVAL_SECONDS = 60  # between two warnings that no connection can be accepted

LOGGER = getLogger("uvicorn.error")


class LimitedConnection(H11Protocol):
    """A connection that is closed if its client is too slow, or if it is the longest idle of too many connections."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Start the connection. If there are too many, close the one that has been idle longest."""
        super().connection_made(cast(Transport, transport))
        self._idle_since, self._unsent_bytes = self.loop.time(), 0
        self._timer = self.loop.call_later(HEADER_SECONDS, self._close_if_slow)
        if len(self.connections) > compute_connections_max():
            connections = [connection for connection in self.connections if isinstance(connection, LimitedConnection)]
            idle = [connection for connection in connections if connection.is_idle]
            min(idle, key=lambda connection: connection._idle_since).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, and stop its timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Tell whether the client has yet to send the head of a request."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def drop(self) -> None:
        """Close the connection now; unsent data is lost."""
        self.connections.discard(self)
        self.transport.abort()

    def _close_if_slow(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent != self._unsent_bytes or not (unsent or self.is_idle):
            self._unsent_bytes, self._idle_since = unsent, now
        seconds_left = (STALLED_SECONDS if unsent else HEADER_SECONDS) - (now - self._idle_since)
        if seconds_left <= 0:
            self.drop()
        else:
            self._timer = self.loop.call_later(
                seconds_left if self.is_idle else min(seconds_left, HEADER_SECONDS), self._close_if_slow
            )


class Server(uvicorn.Server):
    """A server that accepts a few connections at a time, so that it can count them before there are too many."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, with a system backlog for many simultaneous clients."""
        get_running_loop().set_exception_handler(_LoopErrors())
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


class _LoopErrors:
    """The handler of errors in the event loop; it logs failures to accept at most every `LOG_INTERVAL_SECONDS`."""

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def __call__(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        if "accept() out of system resource" not in str(context.get("message")):
            loop.default_exception_handler(context)
        elif self._logged_at is None or loop.time() - self._logged_at > LOG_INTERVAL_SECONDS:
            self._logged_at = loop.time()
            LOGGER.warning(
                "No connection can be accepted: %s; if too many files are open, raise the limit with `ulimit -n`",
                context.get("exception"),
            )


def compute_connections_max() -> int:
    """Return the maximum number of open connections, which leaves open files for all other uses."""
    return max(OTHER_FILES // 10, min(CONNECTIONS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES))
