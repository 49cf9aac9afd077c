"""Servers as processes: many ask at once, one has to end while it answers; and sites of both stores are the same."""

import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from club import HOSTILE, LADDER, made, ok
from serving import fetched, serving
from stores import postgres_database

import ratings_ledger
from ratings_ledger.web.addresses import segment
from ratings_ledger.web.page import Site
from ratings_ledger.web.site import write_site

Ratings = Callable[..., Any]


PLAYERS = ["anna", "ben", "Łukasz", "美咲", HOSTILE]
ADDRESSES = [
    "/", "/index.json", "/index.csv", "/rules", "/rules.json", "/games.jsonl", "/openapi.json", f"/ladders/{LADDER}",
    f"/ladders/{LADDER}.json", f"/ladders/{LADDER}.csv", "/nothing",
    *(f"/games/g-{number}{ending}" for number in range(1, 6) for ending in ("", ".json")),
    *(f"/players/{segment(name)}{ladder}{ending}" for name in PLAYERS for ladder in ("", f"/{LADDER}")
      for ending in ("", ".json", ".csv")),
]  # fmt: skip


def test_fifty_at_once(copied: Callable[..., str], tmp_path: Path) -> None:
    """Fifty who ask at the same time, each for another address, are told the same as one after another."""
    assert len(ADDRESSES) > 50
    with serving(copied(made), tmp_path) as (port, _), ThreadPoolExecutor(50) as people:
        together = list(people.map(lambda address: fetched(port, address), ADDRESSES))
        assert together == [fetched(port, address) for address in ADDRESSES]
        assert [status for status, _ in together] == [404 if one == "/nothing" else 200 for one in ADDRESSES]


def test_ends_cleanly_while_it_answers(copied_file: Callable[..., str], tmp_path: Path) -> None:
    """On SIGTERM a request that is being answered is answered before the server ends."""
    file = copied_file(made)
    with (
        serving(file, tmp_path) as (port, process),
        closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other,
        ThreadPoolExecutor(1) as people,
    ):
        other.execute("BEGIN EXCLUSIVE")
        waiting = people.submit(fetched, port, f"/ladders/{LADDER}.json")
        Timer(0.5, process.send_signal, [signal.SIGTERM]).start()
        Timer(1, other.execute, ["ROLLBACK"]).start()
        status, body = waiting.result(20)
        assert (status, b"anna" in body) == (200, True)
        assert process.wait(20) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("towards", ["postgres", "sqlite"])
def test_sites_of_both_stores_are_equal(
    towards: str, server: str, copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """A ledger that is restored into the other kind of store has the same site, byte for byte."""
    with postgres_database(server) as database:
        first, second = database, f"sqlite:///{tmp_path / 'copy.db'}"
        if towards == "postgres":
            first, second = copied_file(made), database
        else:
            made(ratings, first)
        ok(ratings, "export", "events", "-o", tmp_path / "events.jsonl", db=first)
        ok(ratings, "init", "--no-rules", db=second)
        ok(ratings, "import", "--restore", tmp_path / "events.jsonl", db=second)
        assert site(first, tmp_path / "first") == site(second, tmp_path / "second")


def site(url: str, folder: Path) -> dict[str, bytes]:
    with ratings_ledger.open(url) as ledger:
        write_site(ledger, folder, Site("The club", {"anna": "Anna Ö."}, ".html"))
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(found) > 40
    return found
