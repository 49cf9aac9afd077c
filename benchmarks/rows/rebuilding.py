"""Measure a full rebuild, from the store to promoted standings, without caches."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.measuring import Call, find_fastest, measure, run_in_turn
from benchmarks.results import Bar, Line, Run, Skipped, build_checked_series
from benchmarks.setting import Setting
from benchmarks.stores import Store

EVENT_SOURCING = "benchmarks.baselines.event_sourcing"
# the ways in which the projection of `eventsourcing` can read events
VARIANTS = ("notifications", "stored")
# the maximum difference between floats and exact integers after all games
TOLERANCE_POINTS = 0.01
SQLITE_TIMES = 1.3  # the maximum time of another store, relative to SQLite


def measure_rebuild(setting: Setting, store: Store) -> Iterator[Line | Skipped]:
    """Compare a rebuild of games of four with a projection of `eventsourcing`, and with only reading the records."""
    games = setting.games(1_000_000)
    history = History(games=games, size=4, late=False)
    what = f"full rebuild of {games:,} games of four, nothing cached, {store.name}"
    url = store.ledger(history)
    calls = {
        "ours": Call("benchmarks.ours:rebuild", {"url": url}),
        "reading": Call("benchmarks.baselines.decoding_limit:run", {"url": url}, needs=("pyarrow",)),
    }
    probe = Call(f"{EVENT_SOURCING}:replay", {}, needs=("eventsourcing",))
    if not probe.missing:
        environment = store.domain_events(history)
        variants = {name: probe._replace(arguments={"env": environment, "variant": name}) for name in VARIANTS}
        calls["eventsourcing"] = variants[find_fastest(variants)]
    if store.name != setting.sqlite.name:
        calls["sqlite"] = Call("benchmarks.ours:rebuild", {"url": setting.sqlite.ledger(history)})
    runs = run_in_turn(calls, setting.repetitions)
    ours = build_checked_series("rebuild", "games", games, runs["ours"])
    if "sqlite" in runs:
        baseline = build_checked_series("rebuild from SQLite", "games", games, runs["sqlite"])
        yield Line(f"{what}, against SQLite", ours, baseline, Bar("times as fast", round(1 / SQLITE_TIMES, 2)))
    if "eventsourcing" in runs:
        _require_agreement(url, runs["eventsourcing"][0])
        variant = calls["eventsourcing"].arguments
        assert not callable(variant)
        label = f"eventsourcing ({variant['variant']})"
        yield Line(
            what, ours, build_checked_series(label, "games", games, runs["eventsourcing"]), Bar("times as fast", 5)
        )
    else:
        yield Skipped(f"{what}, against eventsourcing", "eventsourcing is not installed")
    if "reading" in runs:
        limit = build_checked_series("SELECT and parse alone (pyarrow)", "games", games, runs["reading"])
        yield Line(f"{what}, against the decoding limit", ours, limit, Bar("times as fast", 0.8))
    else:
        yield Skipped(f"{what}, against the decoding limit", "pyarrow is not installed")


def _require_agreement(url: str, baseline: Run) -> None:
    """Check that both computed the same points. Raises `AssertionError`."""
    ours = measure(Call("benchmarks.ours:read_live_points", {"url": url})).details["points"]
    theirs = baseline.details["points"]
    assert ours.keys() == theirs.keys(), "eventsourcing has other players"
    difference = max((abs(ours[player] - theirs[player]) for player in ours), default=0)
    assert difference < TOLERANCE_POINTS, f"the points of eventsourcing differ by {difference}"
