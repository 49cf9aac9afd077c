"""Compare the cost of a game in short and in long histories."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.measuring import Call, measure, run_in_turn
from benchmarks.results import Bar, Line, build_checked_series, rate
from benchmarks.setting import Setting

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
GIGABYTES_MAX = 1.2
COST_TIMES = 1.3  # the maximum cost of a game in a long history, relative to a shorter one


def measure_growth(setting: Setting) -> Iterator[Line]:
    """Measure rebuilds without caches and replays from cached columns; the cost per game should not grow."""
    sizes = sorted({setting.games(size) for size in SIZES})
    calls = {}
    for size in sizes:
        url = setting.sqlite.ledger(History(games=size))
        calls["rebuild", size] = Call("benchmarks.ours:rebuild", {"url": url})
        calls["replay", size] = Call("benchmarks.ours:replay", {"url": url})
        measure(calls["replay", size])  # after it, everything cacheable is cached
    named = {f"{what} {size}": call for (what, size), call in calls.items()}
    runs = run_in_turn(named, setting.repetitions)
    for what, label in (("rebuild", "rebuild, nothing cached"), ("replay", "replay, columns cached")):
        for size in sizes:
            measured = build_checked_series(what, "games", size, runs[f"{what} {size}"])
            # the rebuild of the largest history needs the most memory
            bar = Bar("gigabytes", GIGABYTES_MAX) if (what, size) == ("rebuild", sizes[-1]) else None
            yield Line(f"{label}, {size:,} games", measured, bar=bar, note=f"{1e6 / rate(measured):.3g} µs a game")
        by_size = {
            size: build_checked_series(f"{size:,} games", "games", size, runs[f"{what} {size}"]) for size in sizes
        }
        cheapest = max(sizes[:-1] or sizes, key=lambda size: rate(by_size[size]))
        yield Line(
            f"{label}: a game among {sizes[-1]:,} against one among {cheapest:,}, where it costs least",
            by_size[sizes[-1]],
            by_size[cheapest],
            Bar("times as fast", round(1 / COST_TIMES, 2)),
        )
