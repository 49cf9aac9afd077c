"""The pages as measured: a site as files, a server that answers, and appends while it does.

Each function runs in a process of its own. A server is asked over HTTP where its speed counts, and as an ASGI
application where the time of one answer does.
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
from typing import Any

from benchmarks.histories import game_id, player_id
from benchmarks.ledgers import BY, new_drafts
from benchmarks.measuring import ROOT, cold_command
from ratings_ledger import open as open_public
from ratings_ledger.cli.start import GC_THRESHOLD
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.web.page import Site
from ratings_ledger.web.server import Pages, ResponseCache

Found = dict[str, Any]

# the ladder of a club among the games of others
CLUB, CLUB_PLAYERS = "bench-groups/0", 100
BUSY_GAMES = 1_000
CLIENTS, CONNECTIONS = 20, 4
APPENDS, PAUSE_S = 100, 0.02
STARTED_S = 120
ELSEWHERE = 5


def site(url: str, folder: str) -> Found:
    """Measure the command `site`, from the start of the process to its end."""
    command = [sys.executable, "-m", "ratings_ledger", "--db", url, "site", folder]
    started = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT, check=True)
    seconds = perf_counter() - started
    sizes = [path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()]
    return {"seconds": seconds, "files": len(sizes), "bytes": sum(sizes), "of_children": True}


def cold_site(url: str, folder: str) -> Found:
    """Measure the command `site` into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return site(url, folder)


def site_again(url: str, folder: str, players: int) -> Found:
    """Measure the command `site` after one more game."""
    add_games(url, 1, players)
    return site(url, folder)


def add_games(url: str, games: int, players: int, game: str = "bench") -> Found:
    """Append games of four that have just been played."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        position = head(connection).position
    drafts = new_drafts(games, players, position, clock.now())
    drafts = [draft._replace(data=draft.data.replace('"game":"bench"', f'"game":"{game}"')) for draft in drafts]
    return {"seconds": 0.0, "count": append(ledger, drafts, by=BY, clock=clock.now).appended}


def add_club(url: str) -> Found:
    """Append the games of a club: a hundred players with about a thousand games each."""
    return add_games(url, BUSY_GAMES * CLUB_PLAYERS // 4, CLUB_PLAYERS, "bench-groups")


def answers(url: str, kind: str, count: int, games: int) -> Found:
    """Return the 99th percentile of the times of answers that are not in memory, at the head of an open ledger.

    `kind` is standings, player or game.
    """
    gc.set_threshold(GC_THRESHOLD)  # as the command does
    pages, times = Pages(url, Site(), ["localhost"]), list[float]()
    while asyncio.run(asked(pages, f"/ladders/{CLUB}")) == 503:
        pass  # the first answer decodes the log, for which a server takes its time
    for number in range(-3, count):
        addresses = {
            "standings": f"/ladders/{CLUB}",
            "player": f"/players/{player_id(number % CLUB_PLAYERS)}/{CLUB}",
            "game": f"/games/{game_id(number * 7_919 % games)}",
        }
        pages._cache = ResponseCache()
        started = perf_counter()
        status = asyncio.run(asked(pages, addresses[kind]))
        times.append(perf_counter() - started)
        assert status == 200, f"{addresses[kind]}: {status}"
    times = sorted(times[3:])
    return {"seconds": times[len(times) * 99 // 100], "median": times[len(times) // 2]}


def answers_elsewhere(url: str, kind: str, games: int) -> Found:
    """Return the median time of answers at new positions of the log, by an open ledger."""
    pages, times = Pages(url, Site(), ["localhost"]), list[float]()
    while asyncio.run(asked(pages, "/status")) == 503:
        pass
    for address, position in _elsewhere(url, kind, games):
        started = perf_counter()
        status = asyncio.run(asked(pages, f"{address[0]}?known_at={position}"))
        times.append(perf_counter() - started)
        assert status == 200, f"{address[0]} at {position}: {status}"
    return {"seconds": sorted(times)[len(times) // 2]}


def commands_elsewhere(url: str, kind: str, games: int) -> Found:
    """Measure the command with the same queries, each from start to end."""
    times = []
    for address, position in _elsewhere(url, kind, games):
        command = [
            sys.executable,
            "-m",
            "ratings_ledger",
            "--db",
            url,
            *address[1],
            "--known-at",
            str(position),
            "--format",
            "json",
        ]
        times.append(cold_command(command)["seconds"])
    return {"seconds": sorted(times)[len(times) // 2], "of_children": True}


def _elsewhere(url: str, kind: str, games: int) -> Iterator[tuple[tuple[str, list[str]], int]]:
    """Addresses with the arguments of the command that asks the same, and a position of the log for each."""
    with open_ledger(url).reading() as connection:
        last = head(connection).position
    player, game = player_id(7), game_id(games // 2)
    asked_for = {
        "standings": (f"/ladders/{CLUB}", ["standings", CLUB]),
        "player": (f"/players/{player}/{CLUB}", ["history", CLUB, player]),
        "game": (f"/games/{game}", ["explain", "bench-elo", game]),
    }
    for number in range(1, ELSEWHERE + 1):
        yield asked_for[kind], last - 100 * number


async def asked(pages: Pages, address: str) -> int:
    """Ask for a page as a server would; gives the status."""
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


def coordinates(url: str, count: int) -> Found:
    """Memory while so many different coordinates are asked for, after a tenth of them and after all."""
    pages, held = Pages(url, Site(), ["localhost"]), list[int]()
    last = datetime.now(UTC)
    started = perf_counter()
    for number in range(count):
        moment = f"{last - timedelta(hours=7 * number):%Y-%m-%dT%H:%MZ}"
        status = asyncio.run(asked(pages, f"/ladders/bench-elo?as_of={moment}"))
        assert status == 200, f"{moment}: {status}"
        if number + 1 in (count // 10, count):
            held.append(_resident_bytes())
    return {"seconds": perf_counter() - started, "count": count, "held": held}


def _resident_bytes() -> int:
    told = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(told[1]) * os.sysconf("SC_PAGE_SIZE")


def requests(url: str, count: int) -> Found:
    """So many requests for a page of standings that is in memory, to `ratings serve` on one core."""
    command = ["-m", "ratings_ledger", "--db", url, "serve"]
    return _requested(command, f"/ladders/{CLUB}", count)


def requests_to_datasette(url: str, count: int, table: str) -> Found:
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
    return _requested(["-m", "datasette", "serve", table], f"/{Path(table).stem}/standings?_size=100", count)


def _requested(command: Sequence[str], address: str, count: int) -> Found:
    """So many requests over a few connections, to a server that has one core; the clients have the other."""
    cores = sorted(os.sched_getaffinity(0))
    with _serving(command, cores[-1:]) as port:
        os.sched_setaffinity(0, cores[:1])
        _warm(port, address)
        each = count // CONNECTIONS
        threads = [Thread(target=_ask, args=(port, address, each)) for _ in range(CONNECTIONS)]
        started = perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = perf_counter() - started
    return {"seconds": seconds, "count": each * CONNECTIONS, "of_children": True}


def _ask(port: int, address: str, count: int) -> None:
    """So many requests one after another on a connection that stays open."""
    connection = HTTPConnection("127.0.0.1", port)
    for _ in range(count):
        connection.request("GET", address)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body[:1_000]
    connection.close()


def _warm(port: int, address: str) -> None:
    """Ask until there is an answer: the first one decodes the log, for which a server takes its time."""
    for _ in range(STARTED_S):
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", address)
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            return
        sleep(1)
    raise SystemExit(f"{address} has no answer")


@contextmanager
def _serving(command: Sequence[str], cores: Sequence[int]) -> Iterator[int]:
    """Run a server in its own process on these cores, and provide its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *command, "--port", str(port)], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    os.sched_setaffinity(server.pid, cores)
    try:
        for _ in range(STARTED_S * 10):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait()


def appends(url: str, clients: int) -> Found:
    """Return the longest of some single durable appends, while so many clients read pages of a server in a loop."""
    ledger, ended = open_ledger(url, keep_open=True), Event()
    command = ["-m", "ratings_ledger", "--db", url, "serve"]
    with _serving(command, sorted(os.sched_getaffinity(0))) as port:
        _warm(port, f"/ladders/{CLUB}")
        threads = [Thread(target=_read_on, args=(port, number, ended)) for number in range(clients)]
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
            sleep(PAUSE_S)
        ended.set()
        for thread in threads:
            thread.join()
    return {"seconds": max(times), "median": sorted(times)[len(times) // 2]}


def _read_on(port: int, client: int, ended: Event) -> None:
    """Ask for one page after another, standings and players, until it has ended."""
    number = client
    while not ended.is_set():
        number += 1
        address = f"/ladders/{CLUB}" if number % 2 else f"/players/{player_id(number % CLUB_PLAYERS)}/{CLUB}"
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", address)
        connection.getresponse().read()
        connection.close()
