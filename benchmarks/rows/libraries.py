"""Compare the replay with rating packages, on the same games in memory."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series, rate
from benchmarks.setting import Setting

# the number of games for each, so that a run takes a second or two
PACKAGES = {"multi_elo": 100_000, "openskill": 30_000, "elote": 30_000, "trueskill": 2_000}


def measure_libraries(setting: Setting) -> Iterator[Line | Skipped]:
    """Compare replays of games of four by Elo; only the fastest package has a bar."""
    games = setting.games(1_000_000)
    history = History(games=games, size=4, late=False)
    what = f"replay of {games:,} games of four in memory"
    calls = {"ours": Call("benchmarks.ours:replay_in_memory", {"url": setting.sqlite.ledger(history)})}
    for name, count in PACKAGES.items():
        arguments = {"history": history, "count": min(count, games)}
        calls[name] = Call(f"benchmarks.baselines.libraries:{name}", arguments, needs=(name,))
    runs = run_in_turn(calls, setting.repetitions)
    ours = build_checked_series("replay", "games", games, runs.pop("ours"))
    baselines = [
        build_checked_series(name, "games", min(PACKAGES[name], games), measured) for name, measured in runs.items()
    ]
    for baseline in sorted(baselines, key=rate, reverse=True):
        bar = Bar("times as fast", 50) if baseline is max(baselines, key=rate) else None
        yield Line(f"{what}, against {baseline.label}", ours, baseline, bar)
    for name in PACKAGES.keys() - runs.keys():
        yield Skipped(f"{what}, against {name}", f"{name} is not installed")
