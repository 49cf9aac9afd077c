"""The program as measured: the only module of the benchmarks that calls replay, generations and appends.

Each function runs in a process of its own and times what it names, not what it prepares.
"""

import os
import resource
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import measuring
from benchmarks.digests import digest_of_points
from benchmarks.games import chunks
from benchmarks.histories import History
from benchmarks.ledgers import BY, RULESETS, drafts, new_drafts
from benchmarks.names import drawn as drawn_names
from ratings_ledger import Ledger
from ratings_ledger import open as open_public
from ratings_ledger.cli.main import invoke
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store import sqlite
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head, read_live
from ratings_ledger.ledger.store.opening import Ledger as Store
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.validation.names import find_close_names as close
from ratings_ledger.projections.facts.column_cache import folder_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import replay as replay_stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import bind, parse_toml, read_toml
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.rebuilding import rebuild as rebuild_ladders

Found = dict[str, Any]

LADDER = "bench-elo"


def forget_columns(url: str) -> None:
    """Delete the cached columns of a ledger."""
    with open_ledger(url).reading() as connection:
        name = folder_of(connection)
    shutil.rmtree(Path(os.environ[measuring.CACHES]) / "ratings-ledger" / name, ignore_errors=True)


def find_close_names(form: str, new: int, known: int) -> Found:
    """Return which drawn new names are close to drawn known ones."""
    news, knowns = drawn_names(form, new, known)
    started = perf_counter()
    result = dict(close(news, knowns))
    return {"seconds": perf_counter() - started, "found": len(result)}


def published_rulesets(ledger: Store) -> list[str]:
    """Return the ids of all rulesets: a rebuild of named ones computes each ladder, even if nothing changed."""
    with ledger.reading() as connection:
        events = read_live(connection, until=None, type_name="ruleset.published")
    return sorted({event.data["id"] for event in events})


def rebuild(url: str, cached: bool = False, only_changed: bool = False) -> Found:
    """Rebuild from an opened ledger to promoted standings of all ladders, or `only_changed` ones, those that can have
    changed since the last time; caches are deleted first, unless `cached`."""
    if not cached:
        forget_columns(url)
    ledger = open_ledger(url)
    rulesets = [] if only_changed else published_rulesets(ledger)
    started = perf_counter()
    done = rebuild_ladders(ledger, clock.now, rulesets)
    seconds = perf_counter() - started
    if done.failures:
        raise SystemExit(f"a rule failed: {done.failures[0]}")
    return {"seconds": seconds, "count": done.games, "ladders": done.ladders, "rows": done.rows}


def live_points(url: str) -> Found:
    """Return the points on the ladder of all games in the live generation, in points."""
    with open_ledger(url).reading() as connection:
        live = generations.read_live_generation(connection)
        assert live is not None, "nothing is rebuilt yet"
        (ladder,) = [row for row in generations.list_ladder_rows(connection, live.generation) if row.ladder == LADDER]
        rows = generations.read_standings(connection, ladder.build, LADDER)
    return {"points": {row.player: row.points / ladder.scale for row in rows}}


def replay(url: str) -> Found:
    """From cached columns to everybody's points on the ladder of all games, in a process that has done it once before.

    Also gives the time of each part, and of the first time, which loads or compiles the compiled code.
    """
    first = _replayed(url)["seconds"]
    return {**_replayed(url), "first": first}


def _replayed(url: str) -> Found:
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        started = perf_counter()
        facts = decode(connection)
        decoded = perf_counter()
        stream = Ladders(facts).stream(LADDER)
        streamed = perf_counter()
        trace = replay_stream(stream, keep_history=False)
        ended = perf_counter()
    return {
        "seconds": ended - started,
        "decode": decoded - started,
        "stream": streamed - decoded,
        "replay": ended - streamed,
        "count": len(stream.row),
        "digest": _digest(stream.names, trace),
    }


def replay_in_memory(url: str, name: str = "", compared: int = 0) -> Found:
    """Return the replay alone, of a stream in memory, in a process that has done it once before.

    With the `name` of a ruleset of the folder `later`, the ladder of that ruleset, which is not published; with
    `compared`, also everybody's points after so many games.
    """
    facts, ladder = _decode_with(url, name)
    stream = Ladders(facts).stream(ladder)
    replay_stream(stream, keep_history=False)
    if stream.batch is not None:
        stream.batch.outcomes = None  # otherwise it is only looked up
    started = perf_counter()
    trace = replay_stream(stream, keep_history=False)
    seconds = perf_counter() - started
    result = {"seconds": seconds, "count": len(stream.row), "digest": _digest(stream.names, trace)}
    if compared:
        part = replay_stream(stream.up_to(compared, 0), keep_history=False)
        scale = stream.rule.scale
        points = zip(part.stream.names, part.points, strict=True)
        result["points"] = {player: units / scale for player, units in points}
    return result


def replay_decoded(url: str, name: str) -> Found:
    """From decoded columns to everybody's points on the ladder of a ruleset of the folder `later`, on one core, in a
    process that has done it once before.

    Also gives the time of each part, and of the first time.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    times: list[float] = []
    for _ in range(2):
        decoding = perf_counter()
        facts, ladder = _decode_with(url, name)
        started = perf_counter()
        stream = Ladders(facts).stream(ladder)
        streamed = perf_counter()
        replay_stream(stream, keep_history=False)
        ended = perf_counter()
        times.append(ended - started)
    return {
        "seconds": times[1],
        "first": times[0],
        "decode": started - decoding,
        "stream": streamed - started,
        "replay": ended - streamed,
        "count": len(stream.row),
    }


def _decode_with(url: str, name: str) -> tuple[Facts, str]:
    """Return the facts of a ledger, and the ladder of all games, or that of a ruleset of the folder `later`."""
    with open_ledger(url).reading() as connection:
        facts = decode(connection)
    if not name:
        return facts, LADDER
    ruleset, problems = read_toml((RULESETS / "later" / f"{name}.toml").read_text())
    assert ruleset is not None, problems
    version, problems = bind(ruleset)
    assert version is not None, problems
    facts.rulesets[ruleset.id] = [version]
    return facts, ruleset.id


def _digest(names: list[str], trace: Trace) -> str:
    return digest_of_points({name: int(points) for name, points in zip(names, trace.points, strict=True)})


def append_history(url: str, history: list[Any], batch: int, journal: str | None = None) -> Found:
    """Append validated events, `batch` per transaction; the drafts are made before the clock starts.

    `journal` is a SQLite journal mode, in place of the one ledgers are opened with.
    """
    if journal is not None:
        sqlite.PRAGMAS["journal_mode"] = journal
    ledger = open_ledger(url, keep_open=True)
    seconds, count = 0.0, 0
    for drawn in chunks(History(*history)):
        games = drafts(drawn, History(*history))
        started = perf_counter()
        for first in range(0, len(games), batch):
            count += append(ledger, games[first : first + batch], by=BY, clock=clock.now).appended
        seconds += perf_counter() - started
    return {"seconds": seconds, "count": count}


def answered(url: str, method: str, options: dict[str, Any], queries: list[tuple[list[Any], str | None]]) -> Found:
    """Measure the last of some queries to an open ledger: a method of the snapshot, with arguments and `as_of`."""
    with open_public(url) as ledger:
        for arguments, as_of in queries:
            started = perf_counter()
            result = getattr(ledger.at(as_of), method)(*arguments, **options)
            seconds = perf_counter() - started
    assert result is not None
    return {"seconds": seconds}


def previewed(url: str, game_id: str) -> Found:
    """Return what a correction of a game would change, in a ledger that stays open and has previewed it once before."""
    with open_public(url) as ledger:
        event = _turned_round(ledger, game_id)
        for _ in range(2):
            started = perf_counter()
            plan = ledger.propose(event, by=BY)
            changes = plan.impact().changes
            seconds = perf_counter() - started
            assert changes, plan.rejections
    return {"seconds": seconds}


def corrected(url: str, game_id: str, limit: int) -> Found:
    """Return the first standings after a correction of a game, in a ledger that stays open, the second time."""
    with open_public(url) as ledger:
        before = ledger.at().standings(LADDER, limit=limit).digest
        for _ in range(2):
            ledger.propose(_turned_round(ledger, game_id), by=BY).commit()
            started = perf_counter()
            result = ledger.at().standings(LADDER, limit=limit)
            seconds = perf_counter() - started
            assert result.digest != before
            before = result.digest
    return {"seconds": seconds}


def published(url: str, name: str) -> Found:
    """Publish a ruleset of this folder, without a look at all that it changes."""
    data, problems = parse_toml((RULESETS / f"{name}.toml").read_text())
    assert data is not None, problems
    with open_public(url) as ledger:
        ledger.propose({"type": "ruleset.published", "data": data}, by=BY).commit()
    return {"seconds": 0.0}


def _turned_round(ledger: Ledger, game_id: str) -> dict[str, Any]:
    """Return a correction of a game: the places are the other way round."""
    game = {participant.player: participant.place for participant in ledger.at().explain(LADDER, game_id).players}
    swapped = [{"player": player, "place": place} for player, place in zip(game, reversed(game.values()), strict=True)]
    data = {"game": "bench", "game_id": game_id, "participants": swapped}
    return {"type": "game.corrected", "data": {"game_id": game_id, "game": data, "reason": "the wrong way round"}}


def simulated(url: str) -> Found:
    """Return all games under another ruleset, in a ledger that stays open and has done it once before."""
    text = (RULESETS / "bench-elo-1.toml").read_text().replace('version = "1"', 'version = "2"')
    with open_public(url) as ledger:
        for _ in range(2):
            started = perf_counter()
            result = ledger.simulate(text.replace("k_total = 32", "k_total = 24"), ledger.at())
            seconds = perf_counter() - started
    assert result.variants[0].ladders[0].changes
    return {"seconds": seconds}


def nightly(url: str, games: int, players: int) -> Found:
    """Return a rebuild after so many new games of four, which are appended before the clock starts."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        position = head(connection).position
    append(ledger, new_drafts(games, players, position, clock.now()), by=BY, clock=clock.now)
    return {"seconds": rebuild(url, cached=True, only_changed=True)["seconds"]}


def command(url: str, arguments: list[str], repeated: bool = False) -> Found:
    """Return a command in this process, its output discarded; with `repeated` it has run once before."""
    for _ in range(1 + repeated):
        with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing):
            started = perf_counter()
            code = invoke(["--db", url, *arguments])
            seconds = perf_counter() - started
        if code:
            raise SystemExit(f"ratings {' '.join(arguments)} ended with {code}")
    return {"seconds": seconds}


def import_table(url: str, arguments: list[str]) -> Found:
    """Return the same of an import, and the most memory that a process held that it started."""
    result = command(url, [*arguments, "--new-names", "accept"])
    unit = 1 if sys.platform == "darwin" else 1_024
    return {**result, "reader_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit}
