"""A rebuild by the workers of an engine on this machine, against the forked processes of a rebuild as ever."""

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from statistics import median

from benchmarks.histories import History
from benchmarks.measuring import Call, in_turn, measure
from benchmarks.results import Bar, Line, Run, Series, Skipped, series
from benchmarks.setting import Setting

GAMES, LADDERS, WORKERS = 20_000_000, 10_000, 2
TINY_PACK_GAMES = 1_100  # five ladders of 200 games each
TASK_SECONDS = 0.003
SPEED = 0.7


def cluster(setting: Setting) -> Iterator[Line | Skipped]:
    """Yield what old events cost once, what a night costs then, and what a task costs besides its work."""
    large = History(games=setting.games(GAMES), ladders=LADDERS)
    small = large._replace(games=setting.games(GAMES // 10))
    segments = str(setting.folder / "segments")
    yield from _sealing(setting, large, segments)
    yield from _rebuilding(setting, large, segments)
    yield from _tasks(setting, small, segments)
    shutil.rmtree(segments)


def _engines() -> list[str]:
    """Return the engines that can be measured here."""
    return [f"processes:{WORKERS}", *([f"dask:{WORKERS}"] if find_spec("distributed") else [])]


def _sealing(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """Seal everything, once."""
    url = setting.sqlite.ledger(history)
    run = measure(Call("benchmarks.clusters:seal", {"url": url, "on": f"processes:{WORKERS}", "segments": segments}))
    what, measured = f"sealing of {history.games:,} games by {WORKERS} processes, SQLite", run.details
    if not measured["count"]:
        yield Skipped(what, "they are too few for a segment")
        return
    yield Line(
        what,
        Series("seal", "events", measured["count"], [_largest(run)]),
        note=f"{1e6 * measured['processor'] / measured['count']:.3g} µs of a worker and "
        f"{1e6 * measured['processor_here'] / measured['count']:.3g} µs of the coordinator an event, "
        f"{measured['bytes'] / measured['games']:.3g} bytes a game",
    )


def _rebuilding(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """Yield the same rebuild by every engine, and as ever."""
    arguments = {"url": setting.sqlite.ledger(history), "segments": segments}
    calls = {
        "as ever": Call("benchmarks.clusters:rebuild", {**arguments, "on": None}),
        **{on: Call("benchmarks.clusters:rebuild", {**arguments, "on": on}) for on in _engines()},
    }
    measure(calls["as ever"])  # after it, its columns are cached, and the standings stored
    runs = in_turn(calls, setting.repetitions)
    digests = {run.details["digest"] for measured in runs.values() for run in measured}
    assert len(digests) == 1, "engines come to different standings"
    usual = series("forked workers, columns cached", "games", history.games, _largest_of(runs.pop("as ever")))
    what = f"rebuild of {history.games:,} games on {history.ladders:,} ladders, sealed"
    for on, measured in runs.items():
        ours = series("rebuild", "games", history.games, _largest_of(measured))
        tasks = measured[0].details["tasks"]
        note = (
            f"{tasks} packs; largest worker; processors {_processors(measured)}, of the other {_processors(usual.runs)}"
        )
        yield Line(f"{what}, {on}", ours, usual, Bar("times as fast", SPEED), note=note)
    if not find_spec("distributed"):
        yield Skipped(f"{what}, dask:{WORKERS}", "distributed is not installed")


def _processors(runs: Sequence[Run]) -> str:
    return f"{median(run.details['processor'] + run.details['processor_here'] for run in runs):.1f} s"


def _tasks(setting: Setting, history: History, segments: str) -> Iterator[Line]:
    """Yield what a task costs besides its work: very many packs against few."""
    arguments = {"url": setting.sqlite.ledger(history), "segments": segments}
    measure(Call("benchmarks.clusters:seal", {**arguments, "on": f"processes:{WORKERS}"}))
    for on in _engines():
        calls = {
            "few": Call("benchmarks.clusters:rebuild", {**arguments, "on": on}),
            "many": Call("benchmarks.clusters:rebuild", {**arguments, "on": on, "pack_games": TINY_PACK_GAMES}),
        }
        runs = in_turn(calls, setting.repetitions)
        assert len({run.details["digest"] for measured in runs.values() for run in measured}) == 1, (
            "packs change standings"
        )
        more = [_more(few, many) for few, many in zip(runs["few"], runs["many"], strict=True)]
        tasks = runs["many"][0].details["tasks"]
        yield Line(
            f"a task besides its work, {on}: {tasks:,} packs of {history.games:,} games against "
            f"{runs['few'][0].details['tasks']}",
            Series("task", "task", 1, more),
            bar=Bar("seconds", TASK_SECONDS),
            note=f"{1e3 * median(run.details['worker'] for run in more):.2g} ms of a worker, "
            f"{1e3 * median(run.details['here'] for run in more):.2g} ms of the coordinator",
        )


def _more(few: Run, many: Run) -> Run:
    """Return what each of many tasks took longer."""
    tasks = max(1, many.details["tasks"] - few.details["tasks"])
    return Run(
        max((many.seconds - few.seconds) / tasks, 1e-6),
        many.details["worker_bytes"],
        {
            "worker": (many.details["processor"] - few.details["processor"]) / tasks,
            "here": (many.details["processor_here"] - few.details["processor_here"]) / tasks,
        },
    )


def _largest(run: Run) -> Run:
    """Return a run with the memory of the largest worker as its memory."""
    return run._replace(peak_bytes=int(run.details["worker_bytes"]))


def _largest_of(runs: Sequence[Run]) -> list[Run]:
    return [_largest(run) for run in runs]
