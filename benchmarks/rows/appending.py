"""Measure appending in bulk: validated events, and whole files."""

from collections.abc import Iterator

from benchmarks import data
from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series
from benchmarks.setting import Setting
from benchmarks.stores import Store

# as many as `import` appends per transaction
BATCH_EVENTS = 50_000
# the minimum speed, relative to raw inserts and to `eventsourcing`
BARS = {"append": (0.4, 1), "import JSON Lines": (0.4, 1.2), "import CSV": (0.6, 1)}


def measure_append(setting: Setting, store: Store, full: int) -> Iterator[Line | Skipped]:
    """Compare appends and imports of `full` events with raw inserts and with `eventsourcing`.

    All use batches of the same size.
    """
    games = setting.games(full)
    history = History(games=games)
    arguments = {"history": history, "batch": BATCH_EVENTS}
    files = {"JSON Lines": data.json_lines(setting.folder, history), "CSV": data.csv(setting.folder, history)}
    calls = {
        "append": Call("benchmarks.ours:append_history", lambda: {"url": store.empty_ledger(), **arguments}),
        **{f"import {form}": _import(store, path) for form, path in files.items()},
        "raw": Call(store.raw_inserts, lambda: {"url": store.empty_ledger(), **arguments}),
        "eventsourcing": Call(
            "benchmarks.baselines.event_sourcing:save",
            lambda: {"env": store.empty_domain_events(), **arguments},
            needs=("eventsourcing",),
        ),
    }
    runs = run_in_turn(calls, setting.repetitions)
    raw = build_checked_series("executemany of the same rows", "events", games, runs.pop("raw"))
    saved = runs.pop("eventsourcing", None)
    for name, measured in runs.items():
        ours = build_checked_series(name, "events", games, measured)
        what = f"{name} of {games:,} events, {store.name}"
        against_raw, against_saved = BARS[name]
        yield Line(f"{what}, against raw inserts", ours, raw, Bar("times as fast", against_raw))
        if saved is None:
            yield Skipped(f"{what}, against eventsourcing", "eventsourcing is not installed")
        else:
            baseline = build_checked_series("eventsourcing, saved in batches", "events", games, saved)
            yield Line(f"{what}, against eventsourcing", ours, baseline, Bar("times as fast", against_saved))


def _import(store: Store, path: str) -> Call:
    """Return the call that imports a file into an empty ledger, without the start of the process."""
    return Call("benchmarks.ours:run_command", lambda: {"url": store.empty_ledger(), "arguments": ["import", path]})
