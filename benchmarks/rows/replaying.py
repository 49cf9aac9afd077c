"""Compare a replay of a long history from cached columns with a hand-written loop; measure its memory."""

from collections.abc import Iterator

from benchmarks import data
from benchmarks.histories import History
from benchmarks.measuring import Call, measure, run_in_turn
from benchmarks.results import Bar, Line, Run, Skipped, build_checked_series
from benchmarks.setting import Setting

GIGABYTES_MAX = 1.5


def measure_replay(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure a replay of games of two to six players, with ties and late games."""
    games = setting.games(10_000_000)
    history = History(games=games)
    what = f"replay of {games:,} games, two to six players, ties"
    url = setting.sqlite.ledger(history)
    arguments = {"path": data.arrays(setting.folder, history), "players_count": history.players}
    ours = Call("benchmarks.ours:replay", {"url": url})
    calls = {
        "ours": ours,
        "in memory": Call("benchmarks.ours:replay_in_memory", {"url": url}),
        "loop": Call("benchmarks.baselines.numba_loop:run", arguments, needs=("numba",)),
    }
    measure(ours)  # after it, everything cacheable is cached
    runs = run_in_turn(calls, setting.repetitions)
    cached = build_checked_series("from cached columns to points", "games", games, runs["ours"])
    yield Line(f"{what}: memory", cached, bar=Bar("gigabytes", GIGABYTES_MAX))
    if "loop" not in runs:
        yield Skipped(f"{what}, against a loop by hand", "numba is not installed")
        return
    digests = {run.details["digest"] for measured in runs.values() for run in measured}
    assert len(digests) == 1, "the loop by hand computes other points"
    loop = build_checked_series("numba loop by hand over arrays in memory", "games", games, runs["loop"])
    yield Line(f"{what}, columns cached", cached, loop, Bar("times as fast", 0.7), note=_describe_parts(runs["ours"]))
    yield Line(f"{what}, its stream in memory", build_checked_series("replay", "games", games, runs["in memory"]), loop)


def _describe_parts(runs: list[Run]) -> str:
    """Describe the times of the parts of the fastest run."""
    quickest = min(runs).details
    parts = [f"{part} {quickest[part]:.2f} s" for part in ("decode", "stream", "replay")]
    return ", ".join([*parts, f"the first time in a process {quickest['first']:.2f} s"])
