"""Replay: drive a stream through its rule, from the beginning. Points come about in no other way.

The loop, `loops.run_ladder`, is interpreted for a short history. For a long one it is compiled, and the scoring
function with it: integers only, so the points are the same. Where a rule fails or cannot be compiled, it is
interpreted.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import UNITS_MAX, Columns
from ratings_ledger.projections.facts.columns import Column
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.containment import RuleFailure, balanced, failed
from ratings_ledger.projections.replay.ladders import LadderBatch, Stream
from ratings_ledger.projections.replay.loops import FAILED, NOWHERE
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.faults import FAULTS, fault, quiet, rule_table, whole
from ratings_ledger.projections.rulesets.versions import Version

# a ladder of this many games is worth a compiled call of its own, once the code is loaded
BATCHED_GAMES = 300
# an adjustment of as much takes anybody's points out of bounds
BEYOND = 3 * UNITS_MAX
OUT_OF_BOUNDS = "the points grow out of bounds"


def starting_points(player: str, version: Version, carried: dict[str, int]) -> int:
    """Return the points, in units, with which a player joins a ladder."""
    return carried.get(player, version.start) if version.params.carry_over else version.start


def _carried(stream: Stream) -> dict[str, int]:
    """Return what everybody had at the end of the last earlier season they were in, by player id."""
    seasons: list[Stream] = []
    before = stream.previous
    while before is not None:
        seasons.append(before)
        before = before.previous
    carried: dict[str, int] = {}
    for season in reversed(seasons):
        # each looks back no further: what it needs of earlier seasons is already carried
        end = replay(season, carried=carried, keep=False)
        carried |= {name: end.points[n] for n, name in enumerate(season.names) if end.seen[n]}
    return carried


def replay(
    stream: Stream, *, carried: dict[str, int] | None = None, keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Return the trace of a stream. Raises `RuleFailure`.

    `carried` is replayed from earlier seasons unless it is given. Without `keep`, points before games may be left out,
    which takes a third less memory. An `earlier` trace, whose players are the stream's first, is continued.
    """
    if stream.broken is not None:
        raise stream.broken
    if isinstance(stream.known, Trace):
        return stream.known
    carried = _carried(stream) if carried is None else carried
    if stream.batch is not None and not stream.adjustments and not carried:
        together = _together(stream, stream.batch, keep)
        if together is not None:
            return together
    games = len(stream.row)
    if compiling.is_worthwhile(games) or (stream.batch is not None and games >= BATCHED_GAMES):
        found = replay_compiled(stream, carried, keep, earlier)
        if found is not None:
            return found
    return replay_interpreted(stream, carried, keep, earlier)


class Way(NamedTuple):
    """How the loop goes through a stream, interpreted or compiled.

    run:     the loop, given the version that scores; None if it cannot
    cuts:    the games at which another version begins to score
    columns: what the rules read, side by side
    totals:  as `loops.run_ladder` has them
    room:    for one game: the points before it, and the changes
    new:     so many integers, all zero
    see:     what `run` takes for a column
    """

    run: Callable[..., int | None]
    cuts: Sequence[int]
    columns: Any
    totals: Any
    room: Sequence[Any]
    new: Callable[[int], Column]
    see: Callable[[Any], Any]


def replay_interpreted(
    stream: Stream, carried: dict[str, int], keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Return a replay by the interpreter, which says what failed where. Raises `RuleFailure`."""
    totals = [0] * 6
    scoring = {id(version): _careful(stream, version, totals) for version in stream.versions}
    cuts = [at for at in range(1, len(stream.row)) if stream.version[at] != stream.version[at - 1]]
    most = max((last - first for first, last in pairwise(stream.offsets)), default=0)

    def run(version: Version, *arguments: Any) -> int:
        loop = FunctionType(loops.run_ladder.__code__, {**vars(loops), "score": scoring[id(version)]})
        code: int = loop((), (), *arguments)
        if code == loops.BOUNDS:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, stream.row[totals[5]])
        if code == loops.ADJUSTED:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=stream.adjustments[totals[4]].position)
        return code

    room = [memoryview(_zeros(most)), memoryview(_zeros(most))]
    way = Way(run, cuts, _SideBySide(stream.columns), totals, room, _zeros, lambda column: column)
    with quiet(*(version.rule for version in stream.versions)):
        found = _go(way, stream, carried, keep, earlier)
    assert found is not None
    return found


def _zeros(length: int) -> array[int]:
    return array("q", bytes(8 * length))


class _SideBySide(list[Any]):
    """Columns sliced like the rows of a numpy array: `columns[:, first:last]`."""

    def __getitem__(self, key: Any) -> Any:
        return [column[key[1]].tolist() for column in self]


def _careful(stream: Stream, version: Version, totals: list[int]) -> Callable[..., int]:
    """Return the scoring function of a version, interpreted: what it does wrong is a failure of the game in work.

    Raises `RuleFailure` if its table cannot be used.
    """
    rule = version.rule
    try:
        table = rule_table(rule)
    except FAULTS as error:
        raise RuleFailure(stream.ladder, fault(error, rule.table), position=version.position) from error

    def score(n: int, points: Any, columns: Columns, _: Any, __: Any, change: Any) -> int:
        filled = array("q", bytes(8 * n))
        try:
            minted = whole(rule.score(n, points.tolist(), columns, version.constants, table, filled), "score")
            change[:n] = array("q", balanced(n, minted, filled))
        except FAULTS as error:
            raise failed(stream.ladder, rule, error, stream.row[totals[5]]) from error
        return minted

    return score


def replay_compiled(
    stream: Stream, carried: dict[str, int], keep: bool = True, earlier: Trace | None = None
) -> Trace | None:
    """Return a replay by compiled code; None if numba cannot compile the rule or the rule fails: it is then
    interpreted.
    """
    columns = arrays.side_by_side(stream.columns)
    for one in stream.versions:
        columns = compiling.read_only(columns, one.rule)

    def run(version: Version, *arguments: Any) -> int | None:
        found: int | None = compiling.around(loops.run_ladder, version.rule)(*rule_constants(version), *arguments)
        return found

    room = compiling.room_for_a_game(int(np.diff(arrays.as_numpy(stream.offsets)).max(initial=0)))
    cuts = arrays.change_indices(stream.version)
    new = partial(arrays.zeros, "q")
    way = Way(run, cuts, columns, np.zeros(6, dtype=np.int64), room, new, arrays.as_numpy)
    return _go(way, stream, carried, keep, earlier)


def _go(way: Way, stream: Stream, carried: dict[str, int], keep: bool, earlier: Trace | None) -> Trace | None:
    """Return the trace of a stream, from one change of version to the next; None if the loop stops. Raises what it
    raises.
    """
    there, names, see = len(earlier.points) if earlier else 0, len(stream.names), way.see
    found = Trace(
        stream, _zeros(names), _zeros(names), array("b", b"\1" * there + bytes(names - there)), carried,
        way.new(len(stream.players) if keep else 0), way.new(len(stream.row) if keep else 0),
        _zeros(len(stream.adjustments)), earlier=earlier,
    )  # fmt: skip
    if earlier is not None:
        found.points[:there], found.games[:there] = array("q", earlier.points), array("q", earlier.games)
    fixed = [
        *map(see, (stream.offsets, stream.players)), way.columns, 0, 0, 0,
        *map(see, (found.points, found.games, found.seen)), way.totals, *way.room,
        *map(see, (found.before, found.mints)), 0, *map(see, _adjusted(stream, carried)), see(found.adjusted_before),
    ]  # fmt: skip
    games = len(stream.row)
    for first, last in pairwise(sorted({0, *way.cuts, games})) if games else [(0, 0)]:
        version = stream.versions[stream.version[first] if games else 0]
        if way.run(version, first, last, see(_begins(stream, version, carried)), *fixed) != NOWHERE:
            return None
    before = (earlier.started, earlier.minted, earlier.burned, earlier.adjusted) if earlier else (0, 0, 0, 0)
    found.started, found.minted, found.burned, found.adjusted = map(int.__add__, before, map(int, way.totals[:4]))
    return found


def _adjusted(stream: Stream, carried: dict[str, int]) -> Iterator[Column]:
    """Yield the adjustments as the loop reads them: before which game, whose, how much, and their starts."""
    adjustments = stream.adjustments
    yield array("q", [one.game for one in adjustments])
    yield array("q", [one.player for one in adjustments])
    yield array("q", [max(-BEYOND, min(one.units, BEYOND)) for one in adjustments])
    versions = [stream.versions[one.version] for one in adjustments]
    begins = zip(adjustments, versions, strict=True)
    yield array("q", [starting_points(stream.names[one.player], version, carried) for one, version in begins])


def _begins(stream: Stream, version: Version, carried: dict[str, int]) -> Column:
    """Return what every player of a stream would begin with."""
    if not version.params.carry_over or not carried:
        return array("q", [version.start]) * len(stream.names)
    return array("q", [starting_points(name, version, carried) for name in stream.names])


def replay_together(streams: Iterable[Stream], keep: bool = False) -> None:
    """Replay the batches of some streams now, before processes share the rest of the work; with the points before all
    games if requested."""
    for stream in streams:
        if stream.batch is not None:
            # other lists are made from what the games gave, not just from the final points
            _outcomes(stream.batch, keep or not stream.ranking.running)


def _outcomes(batch: LadderBatch, keep: bool) -> tuple[Any, ...]:
    """Return the outcomes of a batch, empty if its ladders have to be replayed one by one."""
    known = batch.outcomes
    if known is None or (known and keep and len(known[-1]) < len(batch.shared.row)):
        batch.outcomes = _all_at_once(batch, keep) or ()
    return batch.outcomes or ()


def _together(stream: Stream, batch: LadderBatch, keep: bool) -> Trace | None:
    """Return the trace of a ladder without adjustments and earlier seasons; None if it has to be replayed by itself.

    All ladders of the batch are replayed when the first is needed: a call for each would cost more than its games.
    """
    outcomes = _outcomes(batch, keep)
    if not outcomes:
        return None
    shared, ladder = batch.shared, stream.index
    totals, stopped, points, games, seen, before, mints = outcomes
    if stopped[ladder] != NOWHERE:
        return None
    first, last = batch.numbered.names_from[ladder], batch.numbered.names_from[ladder + 1]
    low, high = shared.slot_from[ladder], shared.slot_from[ladder + 1]
    return Trace(
        stream, points[first:last], games[first:last], seen[first:last], {}, before[low:high],
        mints[shared.ladder_from[ladder] : shared.ladder_from[ladder + 1]], array("q"), *totals[ladder][:4].tolist(),
    )  # fmt: skip


def _all_at_once(batch: LadderBatch, keep: bool) -> tuple[Any, ...] | None:
    """By ladder the totals and how it ended, and by player and slot the results; None if versions differ."""
    shared, numbered, as_numpy = batch.shared, batch.numbered, arrays.as_numpy
    version = as_numpy(shared.version)
    scored_by = batch.versions[version[0]]
    if (version != version[0]).any():
        return None
    ladders, people = len(shared.ladders), numbered.names_from[len(shared.ladders)]
    totals, stopped = np.zeros((ladders, 6), dtype=np.int64), np.empty(ladders, dtype=np.int64)
    points, games = np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.int64)
    seen = np.zeros(people, dtype=np.int8)
    before, mints, none = (np.zeros(length, dtype=np.int64) for length in (
        shared.slot_from[len(shared.ladders)] * keep, len(shared.row) * keep, 0
    ))  # fmt: skip
    columns = compiling.read_only(arrays.side_by_side(batch.columns), scored_by.rule)
    stopped[:] = FAILED
    compiling.around(loops.run_ladders, scored_by.rule)(
        *rule_constants(scored_by),
        *map(as_numpy, (shared.ladder_from, shared.slot_from, numbered.names_from, shared.offset, numbered.number)),
        columns, np.full(people, scored_by.start, dtype=np.int64), points, games, seen, totals, stopped,
        *compiling.room_for_a_game(max(batch.participants, 0)), before, mints, none,
    )  # fmt: skip
    return totals, stopped, *map(arrays.as_column, (points, games, seen, before, mints))


def rule_constants(version: Version) -> tuple[Any, Any]:
    """Return the constants and the table of a version as compiled code reads them."""
    made = (compiling.constants(version.constants), compiling.constants(rule_table(version.rule)))
    return compiling.read_only(made[0], version.rule), compiling.read_only(made[1], version.rule)
