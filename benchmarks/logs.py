"""Measure operations on a long log: append, read, look up, verify. Each but verify runs once before it is timed."""

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

Measurement = dict[str, Any]
PAGE_EVENTS = 25_000


def append_after_head(url: str, events: int, batch: int) -> Measurement:
    """Append validated games after the head, `batch` games per transaction."""
    ledger = open_ledger(url, keep_open=True)

    def run_once() -> int:
        with ledger.reading() as connection:
            position = head(connection).position
        games, appended, started = new_drafts(events, 1_000, position, clock.now()), 0, perf_counter()
        for first in range(0, events, batch):
            appended += append(ledger, games[first : first + batch], by="bench", clock=clock.now).appended
        times.append(perf_counter() - started)
        return appended

    times: list[float] = []
    run_once()
    return {"count": run_once(), "seconds": times[1]}


def read_pages(url: str, pages: int) -> Measurement:
    """Read pages of records from random positions of the whole log."""

    def run_once(connection: Connection, chance: Random) -> int:
        last, record_count = head(connection).position - PAGE_EVENTS, 0
        for _ in range(pages):
            after = chance.randrange(last)
            record_count += read_page(connection, after, after + PAGE_EVENTS).count(b"\n")
        return record_count

    return _time_second_run(open_ledger(url), run_once)


def look_up(url: str, games: int, among: int) -> Measurement:
    """Look up random games by id, one after another, and read their records."""

    def run_once(connection: Connection, chance: Random) -> int:
        record_count = 0
        for _ in range(games):
            (position,) = find_first_positions(connection, [game_id(chance.randrange(among))]).values()
            record_count += len(read_records_at(connection, [position]))
        return record_count

    return _time_second_run(open_ledger(url), run_once)


def verify_whole_log(url: str) -> Measurement:
    """Verify the log by ranges, with one process per processor."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        started = perf_counter()
        walk = verify_log(ledger, connection)
        while True:
            try:
                raise SystemExit(f"the log is damaged: {next(walk)}")
            except StopIteration as end:
                return {"count": end.value.events, "seconds": perf_counter() - started}


def _time_second_run(ledger: Ledger, run_once: Callable[[Connection, Random], int]) -> Measurement:
    """Run a function with one seed, then measure its time with another seed."""
    with ledger.reading() as connection:
        run_once(connection, Random(1))
        chance, started = Random(2), perf_counter()
        count = run_once(connection, chance)
        return {"count": count, "seconds": perf_counter() - started}
