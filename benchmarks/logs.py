"""What is done with a log itself, however long it is; each gives its time, mostly after it was done once before."""

from collections.abc import Callable
from random import Random
from time import perf_counter
from typing import Any

from sqlalchemy import Connection

from benchmarks.histories import game_id
from benchmarks.ledgers import new_drafts
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import find_first_positions, head, read_page, read_records_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.verification import verify_log

Found = dict[str, Any]
PAGE_EVENTS = 25_000


def append_behind(url: str, events: int, batch: int) -> Found:
    """Append validated games behind the head, `batch` in each transaction."""
    ledger = open_ledger(url, keep_open=True)

    def once() -> int:
        with ledger.reading() as connection:
            position = head(connection).position
        games, done, started = new_drafts(events, 1_000, position, clock.now()), 0, perf_counter()
        for first in range(0, events, batch):
            done += append(ledger, games[first : first + batch], by="bench", clock=clock.now).appended
        times.append(perf_counter() - started)
        return done

    times: list[float] = []
    once()
    return {"count": once(), "seconds": times[1]}


def read_pages(url: str, pages: int) -> Found:
    """Read pages of records at places drawn from the whole log."""

    def once(connection: Connection, chance: Random) -> int:
        last, found = head(connection).position - PAGE_EVENTS, 0
        for _ in range(pages):
            after = chance.randrange(last)
            found += read_page(connection, after, after + PAGE_EVENTS).count(b"\n")
        return found

    return _twice(open_ledger(url), once)


def look_up(url: str, games: int, among: int) -> Found:
    """Look up games by their ids, drawn from all, one after another, and their records."""

    def once(connection: Connection, chance: Random) -> int:
        found = 0
        for _ in range(games):
            (position,) = find_first_positions(connection, [game_id(chance.randrange(among))]).values()
            found += len(read_records_at(connection, [position]))
        return found

    return _twice(open_ledger(url), once)


def verify_all_of_it(url: str) -> Found:
    """Verify the log, range by range, in as many processes as there are processors."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        started = perf_counter()
        walk = verify_log(ledger, connection)
        while True:
            try:
                raise SystemExit(f"the log is damaged: {next(walk)}")
            except StopIteration as end:
                return {"count": end.value.events, "seconds": perf_counter() - started}


def _twice(ledger: Ledger, once: Callable[[Connection, Random], int]) -> Found:
    """Do something at some places, then at others, whose time counts."""
    with ledger.reading() as connection:
        once(connection, Random(1))
        chance, started = Random(2), perf_counter()
        count = once(connection, chance)
        return {"count": count, "seconds": perf_counter() - started}
