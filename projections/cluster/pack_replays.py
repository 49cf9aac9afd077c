"""Replay the ladders of a pack in a worker: all games at once, or one long ladder window by window."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import SharedBase, Window
from ratings_ledger.projections.cluster.object_store import DamagedObject
from ratings_ledger.projections.cluster.packs import find_family
from ratings_ledger.projections.cluster.segments import NamedCell
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.continuation import number_players_after
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import build_streams
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.stored.computing import (
    BuiltLadder,
    LadderFailure,
    build_ladder,
    compute,
    serialise_results,
    to_ladder_failure,
    to_stored_row,
)
from ratings_ledger.projections.stored.computing import plan as plan_ladders

# the approximate number of games in a window
WINDOW_GAMES = 1_000_000


def replay_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Replay the ladders of a pack; return the serialised results. Raises `DamagedObject` if games are missing."""
    if plan["streamed"] is not None:
        ladder = stream_ladder(base, plan["cells"], plan["games"], plan["ruleset"], tuple(plan["streamed"]))
        return serialise_results([] if ladder is None else [ladder])
    ladders = Ladders(base.load_facts(plan["cells"], plan["games"]))
    planned = plan_ladders(ladders, [plan["ruleset"]], plan["stored"])
    versions = ladders.facts.rulesets[plan["ruleset"]]
    streams = {
        name: stream
        for name, stream in planned.streams.items()
        if find_family(versions, parse_name(name).values) in plan["families"]
        and (not plan["requested"] or name in plan["requested"])
    }
    build = partial(build_ladder, with_changes=plan["changes"])
    results = compute(ladders, planned._replace(streams=streams), build, cores=1, with_changes=plan["changes"])
    return serialise_results(sorted(results, key=lambda result: (result.ladder, isinstance(result, BuiltLadder))))


def split_into_windows(base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int) -> Iterator[Window]:
    """Yield windows of time that each contain about `games` games of the cells, from the first game to the last."""
    games_in_window, bounds = 0.0, list[int | None]([None])
    for sample_time, count in sorted(base.list_sample_times(cells)):
        if games_in_window >= games and sample_time != bounds[-1]:
            bounds.append(sample_time)
            games_in_window = 0.0
        games_in_window += count
    yield from pairwise([*bounds, None])


def stream_ladder(
    base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int, ruleset_id: str, values: tuple[str, ...]
) -> BuiltLadder | LadderFailure | None:
    """Build a ladder window by window, with less memory than `build_ladder`; None if no game counts on it.

    `values` are the ladder's partition values. Raises `DamagedObject` unless the segments have exactly `games` games.
    """
    ladder = "/".join([ruleset_id, *values])
    trace: Trace | None = None
    games_read, names = 0, list[str]()
    for window in split_into_windows(base, cells, WINDOW_GAMES):
        facts, game_count = base.load_facts_within(cells, window, names)
        games_read, names = games_read + game_count, facts.players
        ladders = Ladders(facts)
        try:
            trace = _continue_trace(facts, ladder, ruleset_id, values, window, trace)
        except RuleFailure as error:
            return to_ladder_failure(ladder, ladders, error)
    if games_read != games:
        raise DamagedObject(base.name, f"contains {games_read:,} games instead of {games:,}")
    if trace is None:
        return None
    ranked = ladders.rank(trace)[0]
    return BuiltLadder(
        ranked.ladder,
        ranked.ruleset,
        ranked.digest,
        ranked.scale,
        ranked.games,
        [to_stored_row(row) for row in ranked.rows],
    )


def _continue_trace(
    facts: Facts, ladder: str, ruleset_id: str, values: tuple[str, ...], window: Window, earlier: Trace | None
) -> Trace | None:
    """Return the trace at the end of a window, given the trace at its start; None before the ladder's first game.

    Raises `RuleFailure`.
    """
    versions, (since, until) = facts.rulesets[ruleset_id], window
    own_stream = build_streams(
        facts,
        versions,
        only=values,
        as_of=None if until is None else until - 1,
        after=None if since is None else (since, -1),
    ).get(ladder)
    if own_stream is None:
        return earlier
    # a version that takes effect after the last game is applied in the window of the next game
    own_stream = replace(own_stream, batch=None, until=None)
    stream = own_stream if earlier is None else number_players_after(earlier.stream, own_stream)
    return _drop_games(replay(stream, keep_history=False, earlier=earlier))


def _drop_games(trace: Trace) -> Trace:
    """Return a trace without its games; such a trace can still be continued and ranked."""
    stream, empty = trace.stream, array("q")
    last = trace.last_version
    version: Any = np.broadcast_to(np.int16(0 if last is None else stream.versions.index(last)), trace.game_count)
    return replace(
        trace,
        earlier=None,
        states_before=[empty] * len(trace.states),
        mints=empty,
        states_before_adjustments=[empty] * len(trace.states),
        stream=replace(
            stream,
            offsets=array("q", [0]),
            players=array("i"),
            columns=(),
            adjustments=[],
            rows=range(trace.game_count),
            version_indices=version,
            latest_version_start=trace.latest_version_start,
        ),
    )
