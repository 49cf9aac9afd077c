"""Measure how fast new names are compared with the names in a ledger."""

from collections.abc import Iterator

from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, build_checked_series
from benchmarks.setting import Setting

SECONDS_MAX, TIMES_AS_FAST = 1, 50
BASELINE_NAMES = 10  # few, because the baseline is slow


def measure_names(setting: Setting) -> Iterator[Line]:
    """Measure the search for close names, among people and among ids, against a comparison of every pair.

    Half of the new names are mistyped.
    """
    known = setting.games(100_000)
    new = max(2 * BASELINE_NAMES, known // 100)
    arguments = {"new": new, "known": known}
    calls = {
        **{
            form: Call("benchmarks.ours:find_close_names", {"form": form, **arguments})
            for form in ("people", "numbers")
        },
        "pairs": Call("benchmarks.baselines.every_pair:run", {"form": "people", "tried": BASELINE_NAMES, **arguments}),
    }
    runs = run_in_turn(calls, setting.repetitions)
    title = f"{new:,} new names compared with {known:,} known ones"
    ours = build_checked_series("close names", "names", new, runs["people"])
    close_count = runs["people"][0].details["found"]
    yield Line(title, ours, bar=Bar("seconds", SECONDS_MAX), note=f"{close_count:,} are close to others")
    pairs = build_checked_series("every pair", "names", BASELINE_NAMES, runs["pairs"])
    yield Line(f"{title}, against a comparison of every pair", ours, pairs, Bar("times as fast", TIMES_AS_FAST))
    numbers = build_checked_series("close names", "names", new, runs["numbers"])
    yield Line(f"{title}, ids such as member-0012345", numbers, bar=Bar("seconds", SECONDS_MAX))
