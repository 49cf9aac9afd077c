"""Ask the pages without a network: an ASGI application is called as a server would."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from ratings_ledger.web.server import Pages


class TimelineEntry(NamedTuple):
    """What a request was told."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


def get(
    pages: Pages, address: str, headers: Mapping[str, str] | None = None, method: str = "GET",
    sent: list[dict[str, Any]] | None = None,
) -> TimelineEntry:  # fmt: skip
    """What a request for an address, with its query, is told; `sent` gets the messages to the server."""
    return asyncio.run(asked(pages, address, headers, method, sent))


async def asked(
    pages: Pages, address: str, headers: Mapping[str, str] | None = None, method: str = "GET",
    sent: list[dict[str, Any]] | None = None,
) -> TimelineEntry:  # fmt: skip
    """The same in a loop that runs already."""
    path, _, query = address.partition("?")
    sent = [] if sent is None else sent

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    given = {"host": "localhost:8000", **(headers or {})}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    await pages(scope, receive, send)
    begun, *bodies = sent
    found = {name.decode(): value.decode("ascii") for name, value in begun["headers"]}
    return TimelineEntry(begun["status"], found, b"".join(one["body"] for one in bodies))
