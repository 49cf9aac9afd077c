"""A full rebuild, from the store to published standings, with nothing cached."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.measuring import Call, fastest, in_turn, measure
from benchmarks.results import Bar, Line, Run, Skipped, series
from benchmarks.setting import Setting
from benchmarks.stores import Store

EVENT_SOURCING = "benchmarks.baselines.event_sourcing"
VARIANTS = ("notifications", "stored")
# floats against exact integers, over a player's many games
TOLERANCE_POINTS = 0.01
SQLITE_TIMES = 1.3  # another store takes at most so many times as long


def rebuild(setting: Setting, store: Store) -> Iterator[Line | Skipped]:
    """Yield a ledger of games of four against a projection over the same games, and against merely reading them."""
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
        calls["eventsourcing"] = variants[fastest(variants)]
    if store.name != setting.sqlite.name:
        calls["sqlite"] = Call("benchmarks.ours:rebuild", {"url": setting.sqlite.ledger(history)})
    runs = in_turn(calls, setting.repetitions)
    ours = series("rebuild", "games", games, runs["ours"])
    if "sqlite" in runs:
        other = series("rebuild from SQLite", "games", games, runs["sqlite"])
        yield Line(f"{what}, against SQLite", ours, other, Bar("times as fast", round(1 / SQLITE_TIMES, 2)))
    if "eventsourcing" in runs:
        _require_agreement(url, runs["eventsourcing"][0])
        variant = calls["eventsourcing"].arguments
        assert not callable(variant)
        label = f"eventsourcing ({variant['variant']})"
        yield Line(what, ours, series(label, "games", games, runs["eventsourcing"]), Bar("times as fast", 5))
    else:
        yield Skipped(f"{what}, against eventsourcing", "eventsourcing is not installed")
    if "reading" in runs:
        limit = series("SELECT and parse alone (pyarrow)", "games", games, runs["reading"])
        yield Line(f"{what}, against the decoding limit", ours, limit, Bar("times as fast", 0.8))
    else:
        yield Skipped(f"{what}, against the decoding limit", "pyarrow is not installed")


def _require_agreement(url: str, baseline: Run) -> None:
    """Check that both came to the same points. Raises `AssertionError`."""
    ours = measure(Call("benchmarks.ours:live_points", {"url": url})).details["points"]
    theirs = baseline.details["points"]
    assert ours.keys() == theirs.keys(), "eventsourcing has other players"
    apart = max((abs(ours[player] - theirs[player]) for player in ours), default=0)
    assert apart < TOLERANCE_POINTS, f"the points of eventsourcing are {apart} apart"
