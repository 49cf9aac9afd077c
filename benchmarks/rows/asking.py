"""Questions to a long log, and what a correction or a night's games cost there, when traces are kept."""

import sys
from collections.abc import Iterator

from benchmarks.histories import SPAN_DAYS, History, game_id, player_id
from benchmarks.measuring import PROGRAM, Call, in_turn, measure
from benchmarks.results import Bar, Line, series
from benchmarks.setting import Setting

LADDER = "bench-elo"
AS_OF = "2017-01-01"
TOP = 100
ANSWERED_S, PREVIEWED_S, NEXT_S, NIGHT_S = 0.1, 0.5, 0.3, 3
ASKED_GB = 0.6
COLD_TIMES = 2.4  # the time of importing SQLAlchemy
NIGHTLY_GAMES = 1_000
WHATIF_TIMES = 1.3


def questions(setting: Setting) -> Iterator[Line]:
    """Each asked of an open ledger that has answered another one before, and as a command from start to end."""
    games = setting.games(10_000_000)
    history = History(games=games)
    url = setting.sqlite.ledger(history)
    ordinary, busiest, other = (
        player_id(history.player_at(rank)) for rank in (history.players // 2, 0, history.players // 3)
    )
    # by name: the command, the coordinate, and what the open ledger was asked before
    queries = {
        f"standings as of {AS_OF}, top {TOP}": (
            ["standings", LADDER, "--as-of", AS_OF, "--limit", str(TOP)],
            AS_OF,
            ([LADDER], "2015-01-01"),
        ),
        "history of an ordinary player": (["history", LADDER, ordinary], None, ([LADDER, other], None)),
        "history of the busiest player": (["history", LADDER, busiest], None, ([LADDER, other], None)),
        "explain a game": (["explain", LADDER, game_id(games * 2 // 3)], None, ([LADDER, game_id(games // 3)], None)),
    }
    imported = [sys.executable, "-c", "import sqlalchemy"]
    calls = {"import": Call("benchmarks.measuring:cold_command", {"command": imported})}
    for name, (arguments, as_of, before) in queries.items():
        method, ladder, *more = arguments
        options = {"limit": TOP} if method == "standings" else {}
        calls[f"{name}, open ledger"] = Call(
            "benchmarks.ours:answered",
            {
                "url": url,
                "method": method,
                "options": options,
                "queries": [before, ([ladder, *(() if options else more)], as_of)],
            },
        )
        calls[f"{name}, cold process"] = Call(
            "benchmarks.measuring:cold_command",
            {"command": [*PROGRAM, "--db", url, *arguments, "--format", "json"]},
        )
    measure(calls["explain a game, cold process"])  # after these, everything cacheable is cached
    measure(calls["history of an ordinary player, cold process"])
    runs = in_turn(calls, setting.repetitions)
    importing = series("python -c 'import sqlalchemy'", "imports", 1, runs.pop("import"))
    for name, measured in runs.items():
        what, ours = f"{name}, {games:,} games, traces kept", series("answer", "answers", 1, measured)
        if "busiest" in name:
            yield Line(what, ours)
            continue
        if name.endswith("open ledger"):
            yield Line(what, ours, bar=Bar("seconds", ANSWERED_S))
        else:
            yield Line(what, ours, importing, Bar("times the time", COLD_TIMES))
        yield Line(f"{what}: memory", ours, bar=Bar("gigabytes", ASKED_GB))


def corrections(setting: Setting) -> Iterator[Line]:
    """Measure a correction of the newest game in an open ledger: its preview, the standings, and a night's rebuild."""
    games = setting.games(10_000_000)
    history = History(games=games)
    url = setting.sqlite.ledger(history)
    grown = setting.sqlite.copied_ledger(history)
    week_back = game_id(games - 1 - 7 * games // SPAN_DAYS)
    calls = {
        "preview": Call("benchmarks.ours:previewed", {"url": url, "game_id": week_back}),
        "next": Call("benchmarks.ours:corrected", {"url": grown, "game_id": week_back, "limit": TOP}),
    }
    for ledger in (url, grown):  # each leaves a trace, beside its own place
        command = [*PROGRAM, "--db", ledger, "history", LADDER, player_id(0)]
        measure(Call("benchmarks.measuring:cold_command", {"command": command}))
    runs = in_turn(calls, setting.repetitions)
    yield Line(
        f"a correction of a game one week back in {games:,} games, open ledger, traces kept: all effects",
        series("preview", "previews", 1, runs["preview"]),
        bar=Bar("seconds", PREVIEWED_S),
    )
    yield Line(
        f"the next standings, {games:,} games, top {TOP}, open ledger",
        series("answer", "answers", 1, runs["next"]),
        bar=Bar("seconds", NEXT_S),
    )
    rebuilt = Call("benchmarks.ours:nightly", {"url": grown, "games": NIGHTLY_GAMES, "players": history.players})
    measure(rebuilt)  # the first one replays everything
    nights = in_turn({"night": rebuilt}, setting.repetitions)
    yield Line(
        f"rebuild after {NIGHTLY_GAMES:,} new games behind {games:,}",
        series("rebuild", "rebuilds", 1, nights["night"]),
        bar=Bar("seconds", NIGHT_S),
    )
    measure(Call("benchmarks.ours:published", {"url": grown, "name": "later/bench-months-1"}))
    month = Call(
        "benchmarks.ours:answered",
        {
            "url": grown,
            "method": "standings",
            "options": {"limit": TOP},
            "queries": [([f"bench-months/2016-{month}"], None) for month in (11, 12)],
        },
    )
    yield Line(
        f"the list of a month among {games:,} games, open ledger, replayed",
        series("answer", "answers", 1, in_turn({"month": month}, setting.repetitions)["month"]),
    )


def whatif(setting: Setting) -> Iterator[Line]:
    """Yield all games under another ruleset, with all effects and how well both predict, against one replay."""
    games = setting.games(10_000_000)
    url = setting.sqlite.ledger(History(games=games))
    calls = {
        "whatif": Call("benchmarks.ours:simulated", {"url": url}),
        "replay": Call("benchmarks.ours:replay", {"url": url}),
    }
    measure(calls["whatif"])  # after it, everything cacheable is cached
    runs = in_turn(calls, setting.repetitions)
    yield Line(
        f"whatif of one file over {games:,} games, open ledger, columns cached",
        series("whatif", "files", 1, runs["whatif"]),
        series("one replay", "games", games, runs["replay"]),
        Bar("times the time", WHATIF_TIMES),
    )
