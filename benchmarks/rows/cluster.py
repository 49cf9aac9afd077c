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
    """What old events cost once, what a night costs then, and what a task costs besides its work."""
    large = History(games=setting.games(GAMES), ladders=LADDERS)
    small = large._replace(games=setting.games(GAMES // 10))
    segments = str(setting.folder / "segments")
    yield from _sealing(setting, large, segments)
    yield from _rebuilding(setting, large, segments)
    yield from _tasks(setting, small, segments)
    shutil.rmtree(segments)


def _engines() -> list[str]:
    """The engines that can be measured here."""
    return [f"processes:{WORKERS}", *([f"dask:{WORKERS}"] if find_spec("distributed") else [])]


def _sealing(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """Seal everything, once."""
    url = setting.sqlite.ledger(history)
    run = measure(Call("benchmarks.clusters:seal", {"url": url, "on": f"processes:{WORKERS}", "segments": segments}))
    what, found = f"sealing of {history.games:,} games by {WORKERS} processes, SQLite", run.found
    if not found["count"]:
        yield Skipped(what, "they are too few for a segment")
        return
    yield Line(
        what,
        Series("seal", "events", found["count"], [_largest(run)]),
        note=f"{1e6 * found['processor'] / found['count']:.3g} µs of a worker and "
        f"{1e6 * found['processor_here'] / found['count']:.3g} µs of the coordinator an event, "
        f"{found['bytes'] / found['games']:.3g} bytes a game",
    )


def _rebuilding(setting: Setting, history: History, segments: str) -> Iterator[Line | Skipped]:
    """The same rebuild by every engine, and as ever."""
    given = {"url": setting.sqlite.ledger(history), "segments": segments}
    calls = {
        "as ever": Call("benchmarks.clusters:rebuild", {**given, "on": None}),
        **{on: Call("benchmarks.clusters:rebuild", {**given, "on": on}) for on in _engines()},
    }
    measure(calls["as ever"])  # after it, its columns are cached, and the standings stored
    runs = in_turn(calls, setting.repetitions)
    digests = {run.found["digest"] for found in runs.values() for run in found}
    assert len(digests) == 1, "engines come to different standings"
    usual = series("forked workers, columns cached", "games", history.games, _largest_of(runs.pop("as ever")))
    what = f"rebuild of {history.games:,} games on {history.ladders:,} ladders, sealed"
    for on, found in runs.items():
        ours = series("rebuild", "games", history.games, _largest_of(found))
        tasks = found[0].found["tasks"]
        note = f"{tasks} packs; largest worker; processors {_processors(found)}, of the other {_processors(usual.runs)}"
        yield Line(f"{what}, {on}", ours, usual, Bar("times as fast", SPEED), note=note)
    if not find_spec("distributed"):
        yield Skipped(f"{what}, dask:{WORKERS}", "distributed is not installed")


def _processors(runs: Sequence[Run]) -> str:
    return f"{median(run.found['processor'] + run.found['processor_here'] for run in runs):.1f} s"


def _tasks(setting: Setting, history: History, segments: str) -> Iterator[Line]:
    """What a task costs besides its work: very many packs against few."""
    given = {"url": setting.sqlite.ledger(history), "segments": segments}
    measure(Call("benchmarks.clusters:seal", {**given, "on": f"processes:{WORKERS}"}))
    for on in _engines():
        calls = {
            "few": Call("benchmarks.clusters:rebuild", {**given, "on": on}),
            "many": Call("benchmarks.clusters:rebuild", {**given, "on": on, "pack_games": TINY_PACK_GAMES}),
        }
        runs = in_turn(calls, setting.repetitions)
        assert len({run.found["digest"] for found in runs.values() for run in found}) == 1, "packs change standings"
        more = [_more(few, many) for few, many in zip(runs["few"], runs["many"], strict=True)]
        tasks = runs["many"][0].found["tasks"]
        yield Line(
            f"a task besides its work, {on}: {tasks:,} packs of {history.games:,} games against "
            f"{runs['few'][0].found['tasks']}",
            Series("task", "task", 1, more),
            bar=Bar("seconds", TASK_SECONDS),
            note=f"{1e3 * median(run.found['worker'] for run in more):.2g} ms of a worker, "
            f"{1e3 * median(run.found['here'] for run in more):.2g} ms of the coordinator",
        )


def _more(few: Run, many: Run) -> Run:
    """What each of many tasks took longer."""
    tasks = max(1, many.found["tasks"] - few.found["tasks"])
    return Run(
        max((many.seconds - few.seconds) / tasks, 1e-6),
        many.found["worker_bytes"],
        {
            "worker": (many.found["processor"] - few.found["processor"]) / tasks,
            "here": (many.found["processor_here"] - few.found["processor_here"]) / tasks,
        },
    )


def _largest(run: Run) -> Run:
    """A run with the memory of the largest worker as its memory."""
    return run._replace(peak_bytes=int(run.found["worker_bytes"]))


def _largest_of(runs: Sequence[Run]) -> list[Run]:
    return [_largest(run) for run in runs]
