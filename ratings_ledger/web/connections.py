"""Limits on connections: how many there are, and how long one may wait, so that silent ones exhaust nothing."""

import resource
from asyncio import AbstractEventLoop, BaseTransport, Transport, get_running_loop
from logging import getLogger
from socket import socket
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10  # in which a client sends the whole head of a request
STALLED_SECONDS = 30  # for so long a client may take nothing of an answer
CONNECTIONS_MAX = 1_000
OTHER_FILES = (
    100  # of those that the system lets a process open: for the store, for workers, for what is not yet counted
)
ACCEPTED_AT_ONCE, BACKLOG = 16, 1_024
LOGGED_SECONDS = 60

LOGGER = getLogger("uvicorn.error")


class LimitedConnection(H11Protocol):
    """A connection that is closed if its client is too slow, or if it waits longest when there are too many."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin; if there are too many connections, close the one that has waited longest for its client."""
        super().connection_made(cast(Transport, transport))
        self._since, self._unsent = self.loop.time(), 0
        self._timer = self.loop.call_later(HEADER_SECONDS, self._close_if_slow)
        if len(self.connections) > connections_max():
            waiting = [one for one in self.connections if isinstance(one, LimitedConnection) and one.is_waiting]
            min(waiting, key=lambda one: one._since).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, also the timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Tell whether the client has yet to send the head of a request."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def drop(self) -> None:
        """Close the connection now; whatever is unsent is lost."""
        self.connections.discard(self)
        self.transport.abort()

    def _close_if_slow(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent != self._unsent or not (unsent or self.is_waiting):
            self._unsent, self._since = unsent, now
        rest = (STALLED_SECONDS if unsent else HEADER_SECONDS) - (now - self._since)
        if rest <= 0:
            self.drop()
        else:
            self._timer = self.loop.call_later(
                rest if self.is_waiting else min(rest, HEADER_SECONDS), self._close_if_slow
            )


class Server(uvicorn.Server):
    """A server that accepts a few connections at a time, so that they are counted before there are too many."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, with room in the system for many who connect at once."""
        get_running_loop().set_exception_handler(_Complaints())
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)


class _Complaints:
    """What goes wrong in the loop is logged; that nothing more can be accepted, once in a while."""

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def __call__(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        if "accept() out of system resource" not in str(context.get("message")):
            loop.default_exception_handler(context)
        elif self._logged_at is None or loop.time() - self._logged_at > LOGGED_SECONDS:
            self._logged_at = loop.time()
            LOGGER.warning("No connection can be accepted: %s; raise it with ulimit -n", context.get("exception"))


def connections_max() -> int:
    """Return how many connections are open at most, which leaves files for everything else."""
    return max(OTHER_FILES // 10, min(CONNECTIONS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES))
