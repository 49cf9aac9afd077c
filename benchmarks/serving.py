"""Measure pages: a site as files, a server, and appends during requests.

Each function runs in its own process. Throughput is measured over HTTP, and the time of a single answer by calling the
ASGI application.
"""

import asyncio
import gc
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from sqlite3 import connect
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any, NamedTuple

from benchmarks.histories import game_id, player_id
from benchmarks.ledgers import BY, new_drafts
from benchmarks.measuring import PROGRAM, ROOT, run_cold_command
from ratings_ledger import open as open_public
from ratings_ledger.cli.start import GC_THRESHOLD
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.web.page import Site
from ratings_ledger.web.server import Pages, ResponseCache

Measurement = dict[str, Any]

# the ladder of a club, and its number of players
CLUB, CLUB_PLAYERS = "bench-groups/0", 100
BUSY_GAMES = 1_000
CLIENTS, CONNECTIONS = 20, 4
APPENDS, PAUSE_SECONDS = 100, 0.02
START_SECONDS = 120
EARLIER_QUERIES = 5


def measure_site(url: str, folder: str) -> Measurement:
    """Measure the command `site`, from the start of the process to its end."""
    command = [*PROGRAM, "--db", url, "site", folder]
    started = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT, check=True)
    seconds = perf_counter() - started
    sizes = [path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()]
    return {"seconds": seconds, "files": len(sizes), "bytes": sum(sizes), "of_children": True}


def measure_cold_site(url: str, folder: str) -> Measurement:
    """Measure the command `site` into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return measure_site(url, folder)


def measure_site_again(url: str, folder: str, players: int) -> Measurement:
    """Measure the command `site` after one more game."""
    add_games(url, 1, players)
    return measure_site(url, folder)


def add_games(url: str, games: int, players: int, game: str = "bench") -> Measurement:
    """Append games of four that have just been played."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        position = head(connection).position
    drafts = new_drafts(games, players, position, clock.now())
    drafts = [draft._replace(data=draft.data.replace('"game":"bench"', f'"game":"{game}"')) for draft in drafts]
    return {"seconds": 0.0, "count": append(ledger, drafts, by=BY, clock=clock.now).appended}


def add_club(url: str) -> Measurement:
    """Append the games of a club: a hundred players with about a thousand games each."""
    return add_games(url, BUSY_GAMES * CLUB_PLAYERS // 4, CLUB_PLAYERS, "bench-groups")


def measure_answers(url: str, kind: str, count: int, games: int) -> Measurement:
    """Measure the 99th percentile of the times of answers that are not cached, at the head of an open ledger.

    `kind` is standings, player or game.
    """
    gc.set_threshold(GC_THRESHOLD)  # as the command does
    pages, times = Pages(url, Site(), ["localhost"]), list[float]()
    while asyncio.run(request_page(pages, f"/ladders/{CLUB}")) == 503:
        pass  # the first answer decodes the log, which is slow
    for number in range(-3, count):
        addresses = {
            "standings": f"/ladders/{CLUB}",
            "player": f"/players/{player_id(number % CLUB_PLAYERS)}/{CLUB}",
            "game": f"/games/{game_id(number * 7_919 % games)}",
        }
        pages._cache = ResponseCache()
        started = perf_counter()
        status = asyncio.run(request_page(pages, addresses[kind]))
        times.append(perf_counter() - started)
        assert status == 200, f"{addresses[kind]}: {status}"
    times = sorted(times[3:])
    return {"seconds": times[len(times) * 99 // 100], "median": times[len(times) // 2]}


def measure_answers_elsewhere(url: str, kind: str, games: int) -> Measurement:
    """Measure the median time of answers of an open ledger at positions that were not requested before."""
    pages, times = Pages(url, Site(), ["localhost"]), list[float]()
    while asyncio.run(request_page(pages, "/status")) == 503:
        pass
    for address, _, position in _list_earlier_queries(url, kind, games):
        started = perf_counter()
        status = asyncio.run(request_page(pages, f"{address}?known_at={position}"))
        times.append(perf_counter() - started)
        assert status == 200, f"{address} at {position}: {status}"
    return {"seconds": sorted(times)[len(times) // 2]}


def measure_commands_elsewhere(url: str, kind: str, games: int) -> Measurement:
    """Measure the commands for the same queries, each from start to end."""
    times = []
    for _, arguments, position in _list_earlier_queries(url, kind, games):
        command = [*PROGRAM, "--db", url, *arguments, "--known-at", str(position), "--format", "json"]
        times.append(run_cold_command(command)["seconds"])
    return {"seconds": sorted(times)[len(times) // 2], "of_children": True}


class EarlierQuery(NamedTuple):
    """A query at an earlier position of the log: the address of the page, and the command's arguments."""

    address: str
    arguments: list[str]
    position: int


def _list_earlier_queries(url: str, kind: str, games: int) -> Iterator[EarlierQuery]:
    """Yield the same query at several positions before the head."""
    with open_ledger(url).reading() as connection:
        last = head(connection).position
    player, game = player_id(7), game_id(games // 2)
    queries = {
        "standings": (f"/ladders/{CLUB}", ["standings", CLUB]),
        "player": (f"/players/{player}/{CLUB}", ["history", CLUB, player]),
        "game": (f"/games/{game}", ["explain", "bench-elo", game]),
    }
    for number in range(1, EARLIER_QUERIES + 1):
        yield EarlierQuery(*queries[kind], position=last - 100 * number)


async def request_page(pages: Pages, address: str) -> int:
    """Request a page as a server would; return the status."""
    path, _, query = address.partition("?")
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
    }
    await pages(scope, None, send)
    return int(sent[0]["status"])


def measure_coordinates(url: str, count: int) -> Measurement:
    """Measure the memory after a tenth of `count` different coordinates, and after all."""
    pages, resident_bytes = Pages(url, Site(), ["localhost"]), list[int]()
    last = datetime.now(UTC)
    started = perf_counter()
    for number in range(count):
        moment = f"{last - timedelta(hours=7 * number):%Y-%m-%dT%H:%MZ}"
        status = asyncio.run(request_page(pages, f"/ladders/bench-elo?as_of={moment}"))
        assert status == 200, f"{moment}: {status}"
        if number + 1 in (count // 10, count):
            resident_bytes.append(_read_resident_bytes())
    return {"seconds": perf_counter() - started, "count": count, "held": resident_bytes}


def _read_resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_requests(url: str, count: int) -> Measurement:
    """Measure `count` requests for a cached page of standings, to `ratings serve` on one core."""
    command = ["-m", "ratings_ledger", "--db", url, "serve"]
    return _time_requests(command, f"/ladders/{CLUB}", count)


def measure_datasette(url: str, count: int, table: str) -> Measurement:
    """Measure Datasette with a table of the same numbers, in its own file."""
    with open_public(url) as ledger:
        rows = ledger.at().overview(CLUB).rows
    Path(table).unlink(missing_ok=True)
    with connect(table) as connection:
        connection.execute(
            "CREATE TABLE standings (rank INTEGER, player TEXT PRIMARY KEY, points REAL, change REAL, "
            "games INTEGER, last_played TEXT)"
        )
        connection.executemany(
            "INSERT INTO standings VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    row.rank,
                    row.player,
                    float(row.points),
                    None if row.change is None else float(row.change),
                    row.games,
                    str(row.last_played),
                )
                for row in rows
            ],
        )
    connection.close()
    return _time_requests(["-m", "datasette", "serve", table], f"/{Path(table).stem}/standings?_size=100", count)


def _time_requests(command: Sequence[str], address: str, count: int) -> Measurement:
    """Measure requests over several connections to a server on one core; the clients use another core."""
    cores = sorted(os.sched_getaffinity(0))
    with _run_server(command, cores[-1:]) as port:
        os.sched_setaffinity(0, cores[:1])
        _warm_up(port, address)
        each = count // CONNECTIONS
        threads = [Thread(target=_send_requests, args=(port, address, each)) for _ in range(CONNECTIONS)]
        started = perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = perf_counter() - started
    return {"seconds": seconds, "count": each * CONNECTIONS, "of_children": True}


def _send_requests(port: int, address: str, count: int) -> None:
    """Send requests one after another on the same connection."""
    connection = HTTPConnection("127.0.0.1", port)
    for _ in range(count):
        connection.request("GET", address)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body[:1_000]
    connection.close()


def _warm_up(port: int, address: str) -> None:
    """Repeat a request until it is answered, because the first answer decodes the log and is slow."""
    for _ in range(START_SECONDS):
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", address)
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            return
        sleep(1)
    raise SystemExit(f"{address} has no answer")


@contextmanager
def _run_server(command: Sequence[str], cores: Sequence[int]) -> Iterator[int]:
    """Run a server in its own process on these cores, and provide its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *command, "--port", str(port)], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    os.sched_setaffinity(server.pid, cores)
    try:
        for _ in range(START_SECONDS * 10):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait()


def measure_appends(url: str, clients: int) -> Measurement:
    """Measure the longest of several single durable appends, while clients read pages of a server in a loop."""
    ledger, is_done = open_ledger(url, keep_open=True), Event()
    command = ["-m", "ratings_ledger", "--db", url, "serve"]
    with _run_server(command, sorted(os.sched_getaffinity(0))) as port:
        _warm_up(port, f"/ladders/{CLUB}")
        threads = [Thread(target=_read_pages, args=(port, number, is_done)) for number in range(clients)]
        for thread in threads:
            thread.start()
        times = list[float]()
        for number in range(APPENDS):
            with ledger.reading() as connection:
                position = head(connection).position
            drafts = new_drafts(1, CLUB_PLAYERS, position + number, clock.now())
            started = perf_counter()
            append(ledger, drafts, by=BY, clock=clock.now)
            times.append(perf_counter() - started)
            sleep(PAUSE_SECONDS)
        is_done.set()
        for thread in threads:
            thread.join()
    return {"seconds": max(times), "median": sorted(times)[len(times) // 2]}


def _read_pages(port: int, client: int, is_done: Event) -> None:
    """Request one page after another, of standings and players, until `is_done` is set."""
    number = client
    while not is_done.is_set():
        number += 1
        address = f"/ladders/{CLUB}" if number % 2 else f"/players/{player_id(number % CLUB_PLAYERS)}/{CLUB}"
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", address)
        connection.getresponse().read()
        connection.close()
