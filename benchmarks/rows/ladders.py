"""Measure a rebuild of very many small ladders."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, build_checked_series
from benchmarks.setting import Setting
from benchmarks.stores import Store

GAMES_PER_LADDER = 100
GAMES_A_SECOND = 200_000


def measure_small_ladders(setting: Setting, store: Store) -> Iterator[Line]:
    """Measure rebuilds from an opened ledger to promoted standings, with cached columns and without caches."""
    games = setting.games(1_000_000)
    history = History(games=games, ladders=max(2, games // GAMES_PER_LADDER))
    url = store.ledger(history)
    calls = {
        "nothing cached": Call("benchmarks.ours:rebuild", {"url": url}),
        "columns cached": Call("benchmarks.ours:rebuild", {"url": url, "cached": True}),
    }
    runs = run_in_turn(calls, setting.repetitions)
    what = f"rebuild of {history.ladders:,} ladders of {GAMES_PER_LADDER} games each, {store.name}"
    for name, measured in runs.items():
        assert {run.details["ladders"] for run in measured} == {history.ladders}, "not all ladders were rebuilt"
        bar = Bar("a second", GAMES_A_SECOND) if name == "columns cached" else None
        yield Line(f"{what}, {name}", build_checked_series("rebuild", "games", games, measured), bar=bar)
