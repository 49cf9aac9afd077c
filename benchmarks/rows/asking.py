"""Measure queries of a long log, corrections and nightly rebuilds, with traces in the cache."""

import sys
from collections.abc import Iterator

from benchmarks.histories import SPAN_DAYS, History, game_id, player_id
from benchmarks.measuring import PROGRAM, Call, measure, run_in_turn
from benchmarks.results import Bar, Line, build_checked_series
from benchmarks.setting import Setting

LADDER = "bench-elo"
AS_OF = "2017-01-01"
TOP = 100
ANSWERED_S, PREVIEWED_S, NEXT_S, NIGHT_S = 0.1, 0.5, 0.3, 3
ASKED_GB = 0.6
COLD_TIMES = 2.4  # relative to the time of importing SQLAlchemy
NIGHTLY_GAMES = 1_000
WHATIF_TIMES = 1.3


def measure_questions(setting: Setting) -> Iterator[Line]:
    """Measure each query in an open ledger after another query, and as a command from start to end."""
    games = setting.games(10_000_000)
    history = History(games=games)
    url = setting.sqlite.ledger(history)
    ordinary, busiest, other_player = (
        player_id(history.player_at(rank)) for rank in (history.players // 2, 0, history.players // 3)
    )
    # for each name: the command, the coordinate, and the earlier query of the open ledger
    queries = {
        f"standings as of {AS_OF}, top {TOP}": (
            ["standings", LADDER, "--as-of", AS_OF, "--limit", str(TOP)],
            AS_OF,
            ([LADDER], "2015-01-01"),
        ),
        "history of an ordinary player": (["history", LADDER, ordinary], None, ([LADDER, other_player], None)),
        "history of the busiest player": (["history", LADDER, busiest], None, ([LADDER, other_player], None)),
        "explain a game": (["explain", LADDER, game_id(games * 2 // 3)], None, ([LADDER, game_id(games // 3)], None)),
    }
    import_command = [sys.executable, "-c", "import sqlalchemy"]
    calls = {"import": Call("benchmarks.measuring:run_cold_command", {"command": import_command})}
    for name, (arguments, as_of, before) in queries.items():
        method, ladder, *more = arguments
        options = {"limit": TOP} if method == "standings" else {}
        calls[f"{name}, open ledger"] = Call(
            "benchmarks.ours:measure_answer",
            {
                "url": url,
                "method": method,
                "options": options,
                "queries": [before, ([ladder, *(() if options else more)], as_of)],
            },
        )
        calls[f"{name}, cold process"] = Call(
            "benchmarks.measuring:run_cold_command",
            {"command": [*PROGRAM, "--db", url, *arguments, "--format", "json"]},
        )
    measure(calls["explain a game, cold process"])  # after these, everything cacheable is cached
    measure(calls["history of an ordinary player, cold process"])
    runs = run_in_turn(calls, setting.repetitions)
    importing = build_checked_series("python -c 'import sqlalchemy'", "imports", 1, runs.pop("import"))
    for name, measured in runs.items():
        what, ours = f"{name}, {games:,} games, traces kept", build_checked_series("answer", "answers", 1, measured)
        if "busiest" in name:
            yield Line(what, ours)
            continue
        if name.endswith("open ledger"):
            yield Line(what, ours, bar=Bar("seconds", ANSWERED_S))
        else:
            yield Line(what, ours, importing, Bar("times the time", COLD_TIMES))
        yield Line(f"{what}: memory", ours, bar=Bar("gigabytes", ASKED_GB))


def measure_corrections(setting: Setting) -> Iterator[Line]:
    """Measure a correction of the newest game in an open ledger: its preview, the standings, and a night's rebuild."""
    games = setting.games(10_000_000)
    history = History(games=games)
    url = setting.sqlite.ledger(history)
    grown = setting.sqlite.copied_ledger(history)
    week_back = game_id(games - 1 - 7 * games // SPAN_DAYS)
    calls = {
        "preview": Call("benchmarks.ours:measure_preview", {"url": url, "game_id": week_back}),
        "next": Call("benchmarks.ours:measure_next_standings", {"url": grown, "game_id": week_back, "limit": TOP}),
    }
    for ledger in (url, grown):  # each leaves a trace in the cache of its location
        command = [*PROGRAM, "--db", ledger, "history", LADDER, player_id(0)]
        measure(Call("benchmarks.measuring:run_cold_command", {"command": command}))
    runs = run_in_turn(calls, setting.repetitions)
    yield Line(
        f"a correction of a game one week back in {games:,} games, open ledger, traces kept: all effects",
        build_checked_series("preview", "previews", 1, runs["preview"]),
        bar=Bar("seconds", PREVIEWED_S),
    )
    yield Line(
        f"the next standings, {games:,} games, top {TOP}, open ledger",
        build_checked_series("answer", "answers", 1, runs["next"]),
        bar=Bar("seconds", NEXT_S),
    )
    rebuilt = Call(
        "benchmarks.ours:measure_nightly_rebuild", {"url": grown, "games": NIGHTLY_GAMES, "players": history.players}
    )
    measure(rebuilt)  # the first one replays everything
    nights = run_in_turn({"night": rebuilt}, setting.repetitions)
    yield Line(
        f"rebuild after {NIGHTLY_GAMES:,} new games behind {games:,}",
        build_checked_series("rebuild", "rebuilds", 1, nights["night"]),
        bar=Bar("seconds", NIGHT_S),
    )
    measure(Call("benchmarks.ours:publish_ruleset", {"url": grown, "name": "later/bench-months-1"}))
    month = Call(
        "benchmarks.ours:measure_answer",
        {
            "url": grown,
            "method": "standings",
            "options": {"limit": TOP},
            "queries": [([f"bench-months/2016-{month}"], None) for month in (11, 12)],
        },
    )
    yield Line(
        f"the list of a month among {games:,} games, open ledger, replayed",
        build_checked_series("answer", "answers", 1, run_in_turn({"month": month}, setting.repetitions)["month"]),
    )


def measure_whatif(setting: Setting) -> Iterator[Line]:
    """Compare a simulation of all games under another ruleset with one replay."""
    games = setting.games(10_000_000)
    url = setting.sqlite.ledger(History(games=games))
    calls = {
        "whatif": Call("benchmarks.ours:measure_simulation", {"url": url}),
        "replay": Call("benchmarks.ours:replay", {"url": url}),
    }
    measure(calls["whatif"])  # after it, everything cacheable is cached
    runs = run_in_turn(calls, setting.repetitions)
    yield Line(
        f"whatif of one file over {games:,} games, open ledger, columns cached",
        build_checked_series("whatif", "files", 1, runs["whatif"]),
        build_checked_series("one replay", "games", games, runs["replay"]),
        Bar("times the time", WHATIF_TIMES),
    )
