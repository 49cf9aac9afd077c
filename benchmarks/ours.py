"""Measure the program itself: replays, rebuilds, appends, imports, and queries of an open ledger.

Each function runs in its own process. The time of its preparations does not count.
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
from benchmarks.names import draw_names
from ratings_ledger import Ledger
from ratings_ledger import open as open_public
from ratings_ledger.cli.main import invoke
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store import sqlite
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head, read_live
from ratings_ledger.ledger.store.opening import Ledger as Store
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.validation.close_names import find_close_names as close
from ratings_ledger.projections.facts.column_cache import name_cache_folder
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import replay as replay_stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import bind, parse_toml, read_toml
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.rebuilding import rebuild as rebuild_ladders

Measurement = dict[str, Any]

LADDER = "bench-elo"


def delete_columns(url: str) -> None:
    """Delete the cached columns of a ledger."""
    with open_ledger(url).reading() as connection:
        name = name_cache_folder(connection)
    shutil.rmtree(Path(os.environ[measuring.CACHES]) / "ratings-ledger" / name, ignore_errors=True)


def find_close_names(form: str, new: int, known: int) -> Measurement:
    """Measure the search for new names that are close to known names."""
    new_names, known_names = draw_names(form, new, known)
    started = perf_counter()
    result = dict(close(new_names, known_names))
    return {"seconds": perf_counter() - started, "found": len(result)}


def list_rulesets(ledger: Store) -> list[str]:
    """Return the ids of all rulesets. A rebuild that names them computes every ladder, even if nothing changed."""
    with ledger.reading() as connection:
        events = read_live(connection, until=None, type_name="ruleset.published")
    return sorted({event.data["id"] for event in events})


def rebuild(url: str, cached: bool = False, only_changed: bool = False) -> Measurement:
    """Measure a rebuild, from an opened ledger to promoted standings.

    Args:
        url: the ledger.
        cached: keep the cached columns; by default they are deleted first.
        only_changed: rebuild only the ladders that may have changed since the last rebuild.
    """
    if not cached:
        delete_columns(url)
    ledger = open_ledger(url)
    rulesets = [] if only_changed else list_rulesets(ledger)
    started = perf_counter()
    result = rebuild_ladders(ledger, clock.now, rulesets)
    seconds = perf_counter() - started
    if result.failures:
        raise SystemExit(f"a rule failed: {result.failures[0]}")
    return {"seconds": seconds, "count": result.games, "ladders": result.ladders, "rows": result.rows}


def read_live_points(url: str) -> Measurement:
    """Return the points of each player on the ladder of all games, from the live generation."""
    with open_ledger(url).reading() as connection:
        live = generations.read_live_generation(connection)
        assert live is not None, "nothing is rebuilt yet"
        (ladder,) = [row for row in generations.list_ladder_rows(connection, live.generation) if row.ladder == LADDER]
        rows = generations.read_standings(connection, ladder.build, LADDER)
    return {"points": {row.player: row.points / ladder.scale for row in rows}}


def replay(url: str) -> Measurement:
    """Measure the second replay in a process, from cached columns to all points on the ladder of all games.

    The result also has the time of each part, and of the first replay, which loads or compiles kernels.
    """
    first = _time_replay(url)["seconds"]
    return {**_time_replay(url), "first": first}


def _time_replay(url: str) -> Measurement:
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
        "count": len(stream.rows),
        "digest": _compute_digest(stream.names, trace),
    }


def replay_in_memory(url: str, name: str = "", compared: int = 0) -> Measurement:
    """Measure the second replay of a stream in memory, without building the stream.

    Args:
        url: the ledger.
        name: a ruleset of the folder `later`, which is not published; by default the ladder of all games.
        compared: if given, also return all points after this many games.
    """
    facts, ladder = _decode_with(url, name)
    stream = Ladders(facts).stream(ladder)
    replay_stream(stream, keep_history=False)
    if stream.batch is not None:
        stream.batch.outcomes = None  # otherwise the replay would only look up these outcomes
    started = perf_counter()
    trace = replay_stream(stream, keep_history=False)
    seconds = perf_counter() - started
    result = {"seconds": seconds, "count": len(stream.rows), "digest": _compute_digest(stream.names, trace)}
    if compared:
        part = replay_stream(stream.truncate(compared, 0), keep_history=False)
        scale = stream.rule.scale
        points = zip(part.stream.names, part.points, strict=True)
        result["points"] = {player: units / scale for player, units in points}
    return result


def replay_decoded(url: str, name: str) -> Measurement:
    """Measure the second replay from decoded columns to all points, on one core, by a ruleset of the folder `later`.

    The result also has the time of each part, and of the first replay.
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
        "count": len(stream.rows),
    }


def _decode_with(url: str, name: str) -> tuple[Facts, str]:
    """Return the facts of a ledger, and a ladder: of all games, or of a ruleset of the folder `later`."""
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


def _compute_digest(names: list[str], trace: Trace) -> str:
    return digest_of_points({name: int(points) for name, points in zip(names, trace.points, strict=True)})


def append_history(url: str, history: list[Any], batch: int, journal: str | None = None) -> Measurement:
    """Measure appends of validated events, `batch` per transaction. The time to build the drafts does not count.

    `journal` is the SQLite journal mode, instead of the program's own.
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


def measure_answer(
    url: str, method: str, options: dict[str, Any], queries: list[tuple[list[Any], str | None]]
) -> Measurement:
    """Measure the last of several queries of an open ledger: a method of the snapshot, with arguments and `as_of`."""
    with open_public(url) as ledger:
        for arguments, as_of in queries:
            started = perf_counter()
            result = getattr(ledger.at(as_of), method)(*arguments, **options)
            seconds = perf_counter() - started
    assert result is not None
    return {"seconds": seconds}


def measure_preview(url: str, game_id: str) -> Measurement:
    """Measure the second preview of a correction in an open ledger."""
    with open_public(url) as ledger:
        event = _build_reversal(ledger, game_id)
        for _ in range(2):
            started = perf_counter()
            plan = ledger.propose(event, by=BY)
            changes = plan.impact().changes
            seconds = perf_counter() - started
            assert changes, plan.rejections
    return {"seconds": seconds}


def measure_next_standings(url: str, game_id: str, limit: int) -> Measurement:
    """Measure the first standings after a second correction of a game in an open ledger."""
    with open_public(url) as ledger:
        before = ledger.at().standings(LADDER, limit=limit).digest
        for _ in range(2):
            ledger.propose(_build_reversal(ledger, game_id), by=BY).commit()
            started = perf_counter()
            result = ledger.at().standings(LADDER, limit=limit)
            seconds = perf_counter() - started
            assert result.digest != before
            before = result.digest
    return {"seconds": seconds}


def publish_ruleset(url: str, name: str) -> Measurement:
    """Publish a ruleset of the folder `rulesets`, without computing its impact."""
    data, problems = parse_toml((RULESETS / f"{name}.toml").read_text())
    assert data is not None, problems
    with open_public(url) as ledger:
        ledger.propose({"type": "ruleset.published", "data": data}, by=BY).commit()
    return {"seconds": 0.0}


def _build_reversal(ledger: Ledger, game_id: str) -> dict[str, Any]:
    """Return a correction that reverses the places of a game."""
    game = {participant.player: participant.place for participant in ledger.at().explain(LADDER, game_id).players}
    swapped = [{"player": player, "place": place} for player, place in zip(game, reversed(game.values()), strict=True)]
    data = {"game": "bench", "game_id": game_id, "participants": swapped}
    return {"type": "game.corrected", "data": {"game_id": game_id, "game": data, "reason": "the wrong way round"}}


def measure_simulation(url: str) -> Measurement:
    """Measure the second simulation of all games under another ruleset in an open ledger."""
    text = (RULESETS / "bench-elo-1.toml").read_text().replace('version = "1"', 'version = "2"')
    with open_public(url) as ledger:
        for _ in range(2):
            started = perf_counter()
            result = ledger.simulate(text.replace("k_total = 32", "k_total = 24"), ledger.at())
            seconds = perf_counter() - started
    assert result.variants[0].ladders[0].changes
    return {"seconds": seconds}


def measure_nightly_rebuild(url: str, games: int, players: int) -> Measurement:
    """Measure a rebuild after new games of four. The time to append them does not count."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        position = head(connection).position
    append(ledger, new_drafts(games, players, position, clock.now()), by=BY, clock=clock.now)
    return {"seconds": rebuild(url, cached=True, only_changed=True)["seconds"]}


def run_command(url: str, arguments: list[str], repeated: bool = False) -> Measurement:
    """Measure a command in this process, without its output; with `repeated`, measure the second run."""
    for _ in range(1 + repeated):
        with open(os.devnull, "w", encoding="utf-8") as null_device, redirect_stdout(null_device):
            started = perf_counter()
            code = invoke(["--db", url, *arguments])
            seconds = perf_counter() - started
        if code:
            raise SystemExit(f"ratings {' '.join(arguments)} ended with {code}")
    return {"seconds": seconds}


def import_table(url: str, arguments: list[str]) -> Measurement:
    """Measure an import in this process, and the peak memory of the largest process that it starts."""
    result = run_command(url, [*arguments, "--new-names", "accept"])
    unit = 1 if sys.platform == "darwin" else 1_024
    return {**result, "reader_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit}
