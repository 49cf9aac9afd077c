"""Servers with many, slow and silent clients, or stopped during a request; and the same site from both stores."""

import asyncio
import resource
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import uvicorn
from asking import serve, write_pages
from club import HOSTILE, LADDER, create_club, run_ok
from serving import fetch_page, run_server
from stores import create_postgres_database
from thresholds import set_thresholds

from ratings_ledger.web import connections, server
from ratings_ledger.web.addresses import encode_segment
from ratings_ledger.web.page import STYLE

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]


PLAYERS = ["anna", "ben", "Łukasz", "美咲", HOSTILE]
ADDRESSES = [
    "/", "/index.json", "/index.csv", "/rules", "/rules.json", "/games.jsonl", "/openapi.json", f"/ladders/{LADDER}",
    f"/ladders/{LADDER}.json", f"/ladders/{LADDER}.csv", "/nothing",
    *(f"/games/g-{number}{ending}" for number in range(1, 6) for ending in ("", ".json")),
    *(f"/players/{encode_segment(name)}{ladder}{ending}" for name in PLAYERS for ladder in ("", f"/{LADDER}")
      for ending in ("", ".json", ".csv")),
]  # fmt: skip


def test_simultaneous_requests_get_the_same_responses(copy_ledger: Callable[..., str], tmp_path: Path) -> None:
    """Fifty clients with requests for different addresses get the same responses as one client after another."""
    assert len(ADDRESSES) > 50
    with run_server(copy_ledger(create_club), tmp_path) as (port, _), ThreadPoolExecutor(50) as clients:
        together = list(clients.map(lambda address: fetch_page(port, address), ADDRESSES))
        assert together == [fetch_page(port, address) for address in ADDRESSES]
        assert [status for status, _ in together] == [404 if path == "/nothing" else 200 for path in ADDRESSES]


def test_server_answers_before_it_ends(copy_ledger_file: Callable[..., str], tmp_path: Path) -> None:
    """On SIGTERM, a server completes the response to its current request before it ends."""
    file = copy_ledger_file(create_club)
    with (
        run_server(file, tmp_path) as (port, process),
        closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as locking,
        ThreadPoolExecutor(1) as clients,
    ):
        locking.execute("BEGIN EXCLUSIVE")
        waiting = clients.submit(fetch_page, port, f"/ladders/{LADDER}.json")
        Timer(0.5, process.send_signal, [signal.SIGTERM]).start()
        Timer(1, locking.execute, ["ROLLBACK"]).start()
        status, body = waiting.result(20)
        assert (status, b"anna" in body) == (200, True)
        assert process.wait(20) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("target", ["postgres", "sqlite"])
def test_sites_of_both_stores_are_equal(
    target: str, server: str, copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """A ledger that is restored into the other kind of store has the same site, byte for byte."""
    with create_postgres_database(server) as database:
        first, second = database, f"sqlite:///{tmp_path / 'copy.db'}"
        if target == "postgres":
            first, second = copy_ledger_file(create_club), database
        else:
            create_club(ratings, first)
        run_ok(ratings, "export", "events", "-o", tmp_path / "events.jsonl", db=first)
        run_ok(ratings, "init", "--no-rules", db=second)
        run_ok(ratings, "import", "--restore", tmp_path / "events.jsonl", db=second)
        assert write_site(first, tmp_path / "first") == write_site(second, tmp_path / "second")


def write_site(url: str, folder: Path) -> dict[str, bytes]:
    """Write the site of a ledger and return its files."""
    write_pages(url, folder, "The club", {"anna": "Anna Ö."})
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(files) > 40
    return files


def test_silent_connections_exhaust_nothing(copy_ledger_file: Callable[..., str], tmp_path: Path) -> None:
    """While 300 connections send nothing, or half a request, to a server that may open 256 files, it shows pages.

    Its log does not have a line for each of these connections.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    with run_server(copy_ledger_file(create_club), tmp_path) as (port, process), ExitStack() as held:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in range(300):
            silent = held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            if number % 2:
                silent.sendall(b"GET / HTTP/1.1\r\nHost: local")
        start = time.monotonic()
        assert [fetch_page(port, address)[0] for address in ADDRESSES[:5]] == [200] * 5
        assert time.monotonic() - start < 10
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert len(process.stderr.read().splitlines()) <= 3


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET"])
def test_slow_heads_are_not_waited_for(
    sent: bytes, copy_ledger_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection whose client does not send the whole head of a request in time is closed, whatever it sends."""
    set_thresholds(monkeypatch, header_seconds=1)
    assert measure_seconds_until_closed(copy_ledger_file(create_club), sent, b"X" if sent else b"") < 5


def test_responses_that_are_not_read_are_dropped(
    copy_ledger_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that reads nothing of a long response loses its connection."""
    set_thresholds(monkeypatch, header_seconds=1, stalled_seconds=2)
    monkeypatch.setattr(server, "CSS", bytes(50_000_000))
    style = f"GET /{STYLE[0]}.css HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    assert 2 < measure_seconds_until_closed(copy_ledger_file(create_club), style, b"") < 10


def measure_seconds_until_closed(url: str, sent: bytes, slowly: bytes) -> float:
    """Return the seconds until a server, in a thread, closes the connection of a client that sends `sent`.

    The client sends `slowly` again ten times a second; it gives up after 20 seconds.
    """
    ready, stopping = threading.Event(), threading.Event()
    config = uvicorn.Config(serve(url), http=connections.LimitedConnection, log_level="error")
    running = connections.Server(config)

    async def run() -> None:
        config.load()
        running.lifespan = config.lifespan_class(config)
        await running.startup([listening])
        ready.set()
        await asyncio.to_thread(stopping.wait)
        await running.shutdown([listening])

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        done = threads.submit(asyncio.run, run())
        assert ready.wait(20)
        with socket.create_connection(listening.getsockname(), 20) as client:
            start = time.monotonic()
            client.sendall(sent)
            time.sleep(0.3)
            while running.server_state.connections and time.monotonic() - start < 20:
                with suppress(ConnectionError):
                    client.sendall(slowly)
                time.sleep(0.1)
            seconds = time.monotonic() - start
        stopping.set()
        done.result(20)
    return seconds
