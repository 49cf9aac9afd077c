"""Compare rebuilds by the workers of an engine on this machine with a rebuild by forked processes."""

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from statistics import median

from benchmarks.histories import History
from benchmarks.measuring import Call, measure, run_in_turn
from benchmarks.results import Bar, Line, Run, Series, Skipped, build_checked_series
from benchmarks.setting import Setting

GAMES, LADDERS, WORKERS = 20_000_000, 10_000, 2
TINY_PACK_GAMES = 1_100  # five ladders of 200 games each
TASK_SECONDS = 0.003
SPEED = 0.7


def measure_cluster(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure sealing, a rebuild of sealed events, and the overhead of a task."""
    large = History(games=setting.games(GAMES), ladders=LADDERS)
    small = large._replace(games=setting.games(GAMES // 10))
    segments = str(setting.folder / "segments")
    yield from _measure_sealing(setting, large, segments)
    yield from _measure_rebuilds(setting, large, segments)
    yield from _measure_tasks(setting, small, segments)
    shutil.rmtree(segments)


def _list_engines() -> list[str]:
    """Return the engines that can be measured here."""
    return [f"processes:{WORKERS}", *([f"dask:{WORKERS}"] if find_spec("distributed") else [])]


def _measure_sealing(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """Measure sealing all events, once."""
    url = setting.sqlite.ledger(history)
    run = measure(Call("benchmarks.clusters:seal", {"url": url, "on": f"processes:{WORKERS}", "segments": segments}))
    what, measured = f"sealing of {history.games:,} games by {WORKERS} processes, SQLite", run.details
    if not measured["count"]:
        yield Skipped(what, "they are too few for a segment")
        return
    yield Line(
        what,
        Series("seal", "events", measured["count"], [_use_worker_memory(run)]),
        note=f"{1e6 * measured['processor'] / measured['count']:.3g} µs of a worker and "
        f"{1e6 * measured['processor_here'] / measured['count']:.3g} µs of the coordinator an event, "
        f"{measured['bytes'] / measured['games']:.3g} bytes a game",
    )


def _measure_rebuilds(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """Compare the same rebuild by every engine and without an engine."""
    arguments = {"url": setting.sqlite.ledger(history), "segments": segments}
    calls = {
        "no engine": Call("benchmarks.clusters:rebuild", {**arguments, "on": None}),
        **{on: Call("benchmarks.clusters:rebuild", {**arguments, "on": on}) for on in _list_engines()},
    }
    measure(calls["no engine"])  # after it, its columns are cached, and the standings stored
    runs = run_in_turn(calls, setting.repetitions)
    digests = {run.details["digest"] for measured in runs.values() for run in measured}
    assert len(digests) == 1, "engines come to different standings"
    usual = build_checked_series(
        "forked workers, columns cached", "games", history.games, _use_worker_memory_in(runs.pop("no engine"))
    )
    what = f"rebuild of {history.games:,} games on {history.ladders:,} ladders, sealed"
    for on, measured in runs.items():
        ours = build_checked_series("rebuild", "games", history.games, _use_worker_memory_in(measured))
        tasks = measured[0].details["tasks"]
        note = (
            f"{tasks} packs; largest worker; processors {_format_processor_seconds(measured)}, of the other "
            f"{_format_processor_seconds(usual.runs)}"
        )
        yield Line(f"{what}, {on}", ours, usual, Bar("times as fast", SPEED), note=note)
    if not find_spec("distributed"):
        yield Skipped(f"{what}, dask:{WORKERS}", "distributed is not installed")


def _format_processor_seconds(runs: Sequence[Run]) -> str:
    return f"{median(run.details['processor'] + run.details['processor_here'] for run in runs):.1f} s"


def _measure_tasks(setting: Setting, history: History, segments: str) -> Iterator[Line]:
    """Measure the overhead of a task, by comparing very many packs with few."""
    arguments = {"url": setting.sqlite.ledger(history), "segments": segments}
    measure(Call("benchmarks.clusters:seal", {**arguments, "on": f"processes:{WORKERS}"}))
    for on in _list_engines():
        calls = {
            "few": Call("benchmarks.clusters:rebuild", {**arguments, "on": on}),
            "many": Call("benchmarks.clusters:rebuild", {**arguments, "on": on, "pack_games": TINY_PACK_GAMES}),
        }
        runs = run_in_turn(calls, setting.repetitions)
        assert len({run.details["digest"] for measured in runs.values() for run in measured}) == 1, (
            "packs change standings"
        )
        overheads = [_compute_overhead(few, many) for few, many in zip(runs["few"], runs["many"], strict=True)]
        tasks = runs["many"][0].details["tasks"]
        yield Line(
            f"a task besides its work, {on}: {tasks:,} packs of {history.games:,} games against "
            f"{runs['few'][0].details['tasks']}",
            Series("task", "task", 1, overheads),
            bar=Bar("seconds", TASK_SECONDS),
            note=f"{1e3 * median(run.details['worker'] for run in overheads):.2g} ms of a worker, "
            f"{1e3 * median(run.details['here'] for run in overheads):.2g} ms of the coordinator",
        )


def _compute_overhead(few: Run, many: Run) -> Run:
    """Return the additional time per task of a run with many tasks."""
    tasks = max(1, many.details["tasks"] - few.details["tasks"])
    return Run(
        max((many.seconds - few.seconds) / tasks, 1e-6),
        many.details["worker_bytes"],
        {
            "worker": (many.details["processor"] - few.details["processor"]) / tasks,
            "here": (many.details["processor_here"] - few.details["processor_here"]) / tasks,
        },
    )


def _use_worker_memory(run: Run) -> Run:
    """Return a run with the memory of the largest worker as its memory."""
    return run._replace(peak_bytes=int(run.details["worker_bytes"]))


def _use_worker_memory_in(runs: Sequence[Run]) -> list[Run]:
    return [_use_worker_memory(run) for run in runs]
