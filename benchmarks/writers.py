"""Measure several processes that append single events at the same time, while this process follows the log."""

from itertools import islice
from multiprocessing import get_context
from time import perf_counter, sleep
from typing import Any

from benchmarks.games import chunks
from benchmarks.histories import History
from benchmarks.ledgers import BY, drafts
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head, read_records
from ratings_ledger.ledger.store.opening import open_ledger

# without a pause, the reader would take half of two processors from the writers
PAUSE_S = 0.02


def run(url: str, history: list[Any], writers: int) -> dict[str, Any]:
    """Append a history; measure the time from when all writers are ready until the reader has seen the last event.

    Raises `AssertionError` if the reader missed an event or saw one out of order.
    """
    drawn = History(*history)
    games = [draft for chunk in chunks(drawn) for draft in drafts(chunk, drawn)]
    context = get_context("spawn")
    ready = context.Barrier(writers + 1)
    shares = [list(islice(games, first, None, writers)) for first in range(writers)]
    processes = [context.Process(target=_write, args=(url, share, ready)) for share in shares]
    for process in processes:
        process.start()
    with open_ledger(url, keep_open=True).reading() as connection:
        first = after = head(connection).position
        read_ids: list[str] = []
        ready.wait()
        started = perf_counter()
        while len(read_ids) < len(games) and (after < first + len(games)):
            for page in read_records(connection, after=after):
                assert [position for position, _ in page] == list(range(after + 1, after + 1 + len(page)))
                read_ids += [parse_object(record.encode())["id"] for _, record in page]
                after = page[-1][0]
            sleep(PAUSE_S)
            if not any(process.is_alive() for process in processes) and head(connection).position == after:
                break
        seconds = perf_counter() - started
    for process in processes:
        process.join()
    assert sorted(read_ids) == sorted(draft.event_id for draft in games), "the reader missed events"
    return {"seconds": seconds, "count": len(read_ids)}


def _write(url: str, games: list[Draft], ready: Any) -> None:
    ledger = open_ledger(url, keep_open=True)
    ready.wait()
    for draft in games:
        append(ledger, [draft], by=BY, clock=clock.now)
