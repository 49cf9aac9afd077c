"""How fast new names are compared with those that a ledger knows."""

from collections.abc import Iterator

from benchmarks.measuring import Call, in_turn
from benchmarks.results import Bar, Line, series
from benchmarks.setting import Setting

SECONDS, TIMES = 1, 50
TRIED = 10  # of the plain way, which takes a moment for each


def names(setting: Setting) -> Iterator[Line]:
    """Yield a thousand new names, half of them slips, against comparing every pair; and ids that all begin alike."""
    known = setting.games(100_000)
    new = max(2 * TRIED, known // 100)
    arguments = {"new": new, "known": known}
    calls = {
        **{
            form: Call("benchmarks.ours:find_close_names", {"form": form, **arguments})
            for form in ("people", "numbers")
        },
        "pairs": Call("benchmarks.baselines.every_pair:run", {"form": "people", "tried": TRIED, **arguments}),
    }
    runs = in_turn(calls, setting.repetitions)
    what = f"{new:,} new names against {known:,} known"
    ours = series("close names", "names", new, runs["people"])
    close_count = runs["people"][0].details["found"]
    yield Line(what, ours, bar=Bar("seconds", SECONDS), note=f"{close_count:,} are close to others")
    pairs = series("every pair", "names", TRIED, runs["pairs"])
    yield Line(f"{what}, against every pair", ours, pairs, Bar("times as fast", TIMES))
    numbers = series("close names", "names", new, runs["numbers"])
    yield Line(f"{what}, ids such as member-0012345", numbers, bar=Bar("seconds", SECONDS))
