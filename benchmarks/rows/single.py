"""Measure events that are appended one by one, each durable before the next."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series
from benchmarks.setting import Setting
from benchmarks.stores import Store


def measure_single(setting: Setting, store: Store) -> Iterator[Line | Skipped]:
    """Compare single appends with commits of one row, and with `eventsourcing`.

    In SQLite, the latter only in WAL mode, which `eventsourcing` uses.
    """
    events = setting.events(500)
    history = History(games=events)
    arguments = {"history": history, "batch": 1}
    journals = (
        {"": {}} if store.name != "SQLite" else {f", journal {name}": {"journal": name} for name in ("truncate", "wal")}
    )
    calls = {}
    for journal, options in journals.items():
        for name, function in (("append", "benchmarks.ours:append_history"), ("raw", store.raw_inserts)):
            calls[name + journal] = Call(function, _defer_arguments(store, {**arguments, **options}))
    calls["eventsourcing"] = Call(
        "benchmarks.baselines.event_sourcing:save",
        lambda: {"env": store.empty_domain_events(), **arguments},
        needs=("eventsourcing",),
    )
    runs = run_in_turn(calls, setting.repetitions)
    for journal in journals:
        title = f"{events:,} single durable appends, {store.name}{journal}"
        ours = build_checked_series("append", "events", events, runs[f"append{journal}"])
        raw = build_checked_series("INSERT and COMMIT", "events", events, runs[f"raw{journal}"])
        yield Line(f"{title}, against raw commits", ours, raw, Bar("times as fast", 0.7))
        if journal.endswith("truncate"):
            continue
        if "eventsourcing" in runs:
            baseline = build_checked_series("eventsourcing, single saves", "events", events, runs["eventsourcing"])
            yield Line(f"{title}, against eventsourcing", ours, baseline, Bar("times as fast", 1))
        else:
            yield Skipped(f"{title}, against eventsourcing", "eventsourcing is not installed")


def _defer_arguments(store: Store, arguments: Mapping[str, Any]) -> Callable[[], Mapping[str, Any]]:
    """Return a function that builds the arguments just before the call."""
    return lambda: {"url": store.empty_ledger(), **arguments}
