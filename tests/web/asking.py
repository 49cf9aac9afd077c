"""Request pages without a network: call the ASGI application as a server would."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ratings_ledger
from ratings_ledger.web import server, site
from ratings_ledger.web.page import Site, render_file
from ratings_ledger.web.report import build_report_page
from ratings_ledger.web.server import Pages
from ratings_ledger.web.visits import Visit

# an ASGI application
Application = Callable[[Any, Any, Any], Awaitable[None]]


class Response(NamedTuple):
    """The response to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode()


def get(
    pages: Application,
    address: str,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    sent: list[dict[str, Any]] | None = None,
) -> Response:
    """Return the response to a request for an address with its query; append the ASGI messages to `sent`."""
    return asyncio.run(get_async(pages, address, headers, method, sent))


async def get_async(
    pages: Application,
    address: str,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    sent: list[dict[str, Any]] | None = None,
) -> Response:
    """Return the response, for callers within a running loop."""
    path, _, query = address.partition("?")
    sent = [] if sent is None else sent

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    request_headers = {"host": "localhost:8000", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in request_headers.items()],
    }
    await pages(scope, receive, send)
    start, *bodies = sent
    response_headers = {name.decode(): value.decode("ascii") for name, value in start["headers"]}
    return Response(start["status"], response_headers, b"".join(part["body"] for part in bodies))


def serve(
    url: str,
    title: str = "Ratings",
    names: Mapping[str, str] | None = None,
    hosts: Collection[str] = ("localhost",),
    **options: Any,
) -> Pages:
    """Return the pages of a ledger on a server."""
    return Pages(url, Site(title, names or {}), hosts, **options)


def write_pages(
    ledger: str | ratings_ledger.Ledger,
    folder: Path,
    title: str = "Ratings",
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> site.SiteSummary:
    """Write the pages of a ledger, open or named by its URL, into a folder, or bring them up to date."""
    with ratings_ledger.open(ledger) if isinstance(ledger, str) else nullcontext(ledger) as opened:
        return site.write_site(opened, folder, Site(title, names or {}, ".html"), **options)


def report_on(ledger: ratings_ledger.Ledger, player: str, ladder: str, as_of: str | None, then: int, now: int) -> str:
    """Return the report on a player as a file: what was known at one position, and at another."""
    sides = (Visit(ledger, {"known_at": str(at)} | ({"as_of": as_of} if as_of else {})) for at in (then, now))
    return render_file(build_report_page(*sides, player, ladder), Site())


def act_before_pages(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` each time before a server builds a page."""
    build_page_at = server.build_page_at

    def act_and_build(*arguments: Any) -> Any:
        act()
        return build_page_at(*arguments)

    patch.setattr(server, "build_page_at", act_and_build)


def break_off_games(patch: pytest.MonkeyPatch, failure: Exception) -> None:
    """Make the file of all games fail after its first line."""

    def yield_one_line(_: Any) -> Iterator[bytes]:
        yield b"{}\n"
        raise failure

    patch.setattr(server, "iterate_game_lines", yield_one_line)


def share_pages(patch: pytest.MonkeyPatch, cores: int) -> None:
    """Let this number of processes write even a few pages."""
    patch.setattr(site, "available_cores", lambda: cores)
    patch.setattr(site, "FORKING_GAMES", 0)
