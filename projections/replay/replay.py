"""Replay: drive a stream through its rule, from the beginning. Points come about in no other way.

A short history is interpreted. For a long one, `loops.run_ladder` and the same scoring function are compiled: integers
only, so the points are the same. Where a rule fails or cannot be compiled, it is interpreted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from projections import compiling
from projections.contract import UNITS_MAX, Numbers, Score
from projections.facts.columns import Column
from projections.replay import loops
from projections.replay.containment import RuleFailure, balanced, failed
from projections.replay.ladders import Inserted, LadderBatch, Stream
from projections.replay.loops import FAILED, NOWHERE
from projections.rulesets.faults import FAULTS, fault, quiet, rule_table, whole
from projections.rulesets.versions import Version

# a ladder of this many games is worth a compiled call of its own, once the code is loaded
BATCHED_GAMES = 300
OUT_OF_BOUNDS = "the points grow out of bounds"


class Step(NamedTuple):
    """What one game or adjustment did to one player. For an adjustment, `game` is None and `position` its own."""

    game: int | None
    before: int
    change: int
    position: int | None = None


@dataclass
class Outcome:
    """Points after a replay, by the stream's player numbers; a player with `seen` 0 is not on the ladder yet.

    `carried` are the points, by player id, that those who were on the ladder in an earlier season would begin with;
    `started` is the sum of what everybody on the ladder began with. `changes` are those of every participant of every
    game, in the order of the stream.
    """

    points: Column
    games: Column
    seen: Column
    carried: dict[str, int]
    changes: Column
    started: int = 0
    minted: int = 0
    burned: int = 0
    adjusted: int = 0
    last_version: int | None = None


def starting_points(player: str, version: Version, carried: dict[str, int]) -> int:
    """The points, in units, with which a player joins a ladder."""
    return carried.get(player, version.start) if version.params.carry_over else version.start


def _carried(stream: Stream) -> dict[str, int]:
    """What everybody had at the end of the last earlier season they were in, by player id."""
    seasons: list[Stream] = []
    before = stream.previous
    while before is not None:
        seasons.append(before)
        before = before.previous
    carried: dict[str, int] = {}
    for season in reversed(seasons):
        # each looks back no further: what it needs of earlier seasons is already carried
        outcome, _ = replay(season, carried=carried)
        carried |= {name: outcome.points[n] for n, name in enumerate(season.names) if outcome.seen[n]}
    return carried


def replay(
    stream: Stream,
    *,
    stop: int | None = None,
    watch: int | None = None,
    carried: dict[str, int] | None = None,
    changes: bool = True,
) -> tuple[Outcome, list[Step]]:
    """The points after all games, or before the game at index `stop`; with the steps of the player `watch`.

    `carried` is replayed from earlier seasons unless it is given. Without `changes`, those of the outcome may be left
    out, which takes a third less memory; the steps are there all the same. Raises `RuleFailure`.
    """
    if stream.broken is not None:
        raise stream.broken
    carried = _carried(stream) if carried is None else carried
    games = len(stream.row) if stop is None else stop
    if stop is None and watch is None and stream.batch is not None and not stream.adjustments and not carried:
        together = _together(stream.batch, stream.index, changes)
        if together is not None:
            return together, []
    if compiling.pays(games) or (stream.batch is not None and games >= BATCHED_GAMES):
        found = replay_compiled(stream, games, watch, carried, changes)
        if found is not None:
            return found
    return replay_interpreted(stream, games, watch, carried)


def _nothing_yet(stream: Stream, carried: dict[str, int]) -> Outcome:
    zeros = bytes(8 * len(stream.names))
    return Outcome(array("q", zeros), array("q", zeros), array("b", bytes(len(stream.names))), carried, array("q"))


def _adjust(stream: Stream, outcome: Outcome, adjustment: Inserted) -> int:
    """Add an adjustment to somebody's points, putting them on the ladder if need be; returns what they had before."""
    player = adjustment.player
    if not outcome.seen[player]:
        outcome.seen[player] = 1
        version = stream.versions[adjustment.version]
        outcome.points[player] = starting_points(stream.names[player], version, outcome.carried)
        outcome.started += outcome.points[player]
    before: int = outcome.points[player]
    if abs(before + adjustment.units) > UNITS_MAX:
        raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=adjustment.position)
    outcome.points[player] += adjustment.units
    outcome.adjusted += adjustment.units
    return before


def replay_interpreted(
    stream: Stream, last: int, watch: int | None, carried: dict[str, int]
) -> tuple[Outcome, list[Step]]:
    """An interpreted replay up to a game. Raises `RuleFailure`."""
    with quiet(*(version.rule for version in stream.versions)):
        return _one_by_one(stream, last, watch, carried)


def _one_by_one(stream: Stream, last: int, watch: int | None, carried: dict[str, int]) -> tuple[Outcome, list[Step]]:
    outcome = _nothing_yet(stream, carried)
    points, games, seen = outcome.points, outcome.games, outcome.seen
    steps: list[Step] = []
    scoring = [_scoring(stream.ladder, version) for version in stream.versions]
    adjustments = iter(stream.adjustments)
    adjustment = next(adjustments, None)
    offsets, everybody = stream.offsets, stream.players

    for game in range(last + 1):
        while adjustment is not None and adjustment.game == game:
            before_it = _adjust(stream, outcome, adjustment)
            if adjustment.player == watch:
                steps.append(Step(None, before_it, adjustment.units, adjustment.position))
            adjustment = next(adjustments, None)
        if game == last:
            break
        low, high = offsets[game], offsets[game + 1]
        n = high - low
        participants = everybody[low:high]
        score, constants, table, version = scoring[stream.version[game]]
        for player in participants:
            if not seen[player]:
                seen[player] = 1
                points[player] = starting_points(stream.names[player], version, carried)
                outcome.started += points[player]
        before = [points[player] for player in participants]
        columns = [column[low:high].tolist() for column in stream.columns]
        filled = array("q", bytes(8 * n))
        try:
            minted = whole(score(n, before, columns, constants, table, filled), "score")
            change = balanced(n, minted, filled)
        except FAULTS as error:
            raise failed(stream.ladder, version.rule, error, stream.row[game]) from error
        for player, moved in zip(participants, change, strict=True):
            if player == watch:
                steps.append(Step(game, points[player], moved))
            if abs(points[player] + moved) > UNITS_MAX:
                raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, stream.row[game])
            points[player] += moved
            games[player] += 1
        outcome.changes.extend(change)
        outcome.minted += minted
        outcome.burned += minted - sum(change)
    if last:
        outcome.last_version = stream.version[last - 1]
    return outcome, steps


def _scoring(ladder: str, version: Version) -> tuple[Score, tuple[int, ...], Numbers, Version]:
    """What it takes to score the games of a version. Raises `RuleFailure` if its table cannot be used."""
    try:
        return version.rule.score, version.constants, rule_table(version.rule), version
    except FAULTS as error:
        message = fault(error, version.rule.table)
        raise RuleFailure(ladder, message, position=version.position) from error


def replay_compiled(
    stream: Stream, last: int, watch: int | None, carried: dict[str, int], keep: bool
) -> tuple[Outcome, list[Step]] | None:
    """A compiled replay up to a game, from one adjustment or change of version to the next; None if it has to be
    interpreted because numba cannot compile the rule or the rule fails. Keeps all changes, or only those of `watch`."""
    import numpy as np

    as_numpy = compiling.as_numpy
    outcome = _nothing_yet(stream, carried)
    offsets, players, version = (as_numpy(column) for column in (stream.offsets, stream.players, stream.version))
    columns = compiling.side_by_side(stream.columns)
    for one in stream.versions:
        columns = compiling.read_only(columns, one.rule)
    scratch = compiling.room_for_a_game(int(np.diff(offsets[: last + 1]).max(initial=0)))
    slots = np.empty(0, dtype=np.int64) if watch is None else np.flatnonzero(players[: offsets[last]] == watch)
    totals, changes = np.zeros(3, dtype=np.int64), np.empty(int(offsets[last]) if keep else len(slots), dtype=np.int64)
    points, games, seen = (as_numpy(column) for column in (outcome.points, outcome.games, outcome.seen))
    cuts = np.flatnonzero(version[1:last] != version[: last - 1]) + 1
    adjusted = [adjustment.game for adjustment in stream.adjustments if adjustment.game <= last]
    adjustments = iter([*stream.adjustments, None])
    adjustment = next(adjustments)
    first = 0
    for end in sorted({*cuts.tolist(), *adjusted, last}):
        if first < end:
            scored_by = stream.versions[version[first]]
            why = compiling.scoring(loops.run_ladder, scored_by.rule)(
                *_constants(scored_by), first, end, offsets, players, columns, 0, 0, 0,
                _begins(stream, scored_by, carried), points, games, seen, totals, *scratch, changes,
                NOWHERE if keep or watch is None else watch,
            )  # fmt: skip
            if why != NOWHERE:
                return None
        first = end
        while adjustment is not None and adjustment.game == end:
            _adjust(stream, outcome, adjustment)
            adjustment = next(adjustments)
    outcome.started += int(totals[0])
    outcome.minted, outcome.burned = int(totals[1]), int(totals[2])
    outcome.last_version = stream.version[last - 1]
    if keep:
        outcome.changes = compiling.as_column(changes)
        changes = changes[slots]
    return outcome, [] if watch is None else list(_steps(stream, outcome, last, watch, slots, changes))


def replay_together(streams: Iterable[Stream], changes: bool = False) -> None:
    """Replay the batches of some streams now, before processes share the rest of the work; with all `changes` if
    requested."""
    for stream in streams:
        if stream.batch is not None:
            _outcomes(stream.batch, changes or needs_changes(stream))


def needs_changes(stream: Stream) -> bool:
    """Whether a ladder's list is made from what the games gave, not just from the final points."""
    return not stream.ranking.running


def _outcomes(batch: LadderBatch, changes: bool) -> tuple[Any, ...]:
    """The outcomes of a batch, empty if its ladders have to be replayed one by one."""
    known = batch.outcomes
    if known is None or (known and changes and len(known[-1]) < len(batch.shared.slot)):
        batch.outcomes = _all_at_once(batch, changes) or ()
    return batch.outcomes or ()


def _together(batch: LadderBatch, ladder: int, changes: bool) -> Outcome | None:
    """The outcome of a ladder without adjustments and earlier seasons; None if it has to be replayed by itself.

    All ladders of the batch are replayed when the first is needed: a call for each would cost more than its games.
    """
    outcomes = _outcomes(batch, changes)
    if not outcomes:
        return None
    shared = batch.shared
    totals, stopped, points, games, seen, changed = outcomes
    if stopped[ladder] != NOWHERE:
        return None
    first, last = batch.numbered.names_from[ladder], batch.numbered.names_from[ladder + 1]
    low, high = shared.slot_from[ladder], shared.slot_from[ladder + 1]
    started, minted, burned = totals[ladder].tolist()
    return Outcome(
        points[first:last], games[first:last], seen[first:last], {}, changed[low:high], started, minted, burned,
        last_version=shared.version[0],
    )  # fmt: skip


def _all_at_once(batch: LadderBatch, keep_changes: bool) -> tuple[Any, ...] | None:
    """By ladder the totals and how it ended, and by player and slot the results; None if versions differ."""
    import numpy as np

    shared, numbered, as_numpy = batch.shared, batch.numbered, compiling.as_numpy
    version = as_numpy(shared.version)
    scored_by = batch.versions[version[0]]
    if (version != version[0]).any():
        return None
    ladders, people = len(shared.ladders), numbered.names_from[len(shared.ladders)]
    totals, stopped = np.zeros((ladders, 3), dtype=np.int64), np.empty(ladders, dtype=np.int64)
    points, games = np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.int64)
    seen, changes = np.zeros(people, dtype=np.int8), np.empty(len(shared.slot) * keep_changes, dtype=np.int64)
    columns = compiling.read_only(compiling.side_by_side(batch.columns), scored_by.rule)
    stopped[:] = FAILED
    compiling.scoring(loops.run_ladders, scored_by.rule)(
        *_constants(scored_by),
        *map(as_numpy, (shared.ladder_from, shared.slot_from, numbered.names_from, shared.offset, numbered.number)),
        columns, np.full(people, scored_by.start, dtype=np.int64), points, games, seen, totals, stopped,
        *compiling.room_for_a_game(int(as_numpy(shared.size).max(initial=0))), changes,
    )  # fmt: skip
    return totals, stopped, *(compiling.as_column(column) for column in (points, games, seen, changes))


def _constants(version: Version) -> tuple[Any, Any]:
    """The constants and the table of a version as compiled code reads them."""
    made = (compiling.constants(version.constants), compiling.constants(rule_table(version.rule)))
    return compiling.read_only(made[0], version.rule), compiling.read_only(made[1], version.rule)


def _begins(stream: Stream, version: Version, carried: dict[str, int]) -> Any:
    """What every player of a stream would begin with."""
    import numpy as np

    begins = np.full(len(stream.names), version.start, dtype=np.int64)
    if version.params.carry_over:
        for number, name in enumerate(stream.names):
            begins[number] = starting_points(name, version, carried)
    return begins


def _steps(stream: Stream, outcome: Outcome, last: int, watch: int, slots: Any, changes: Any) -> Iterator[Step]:
    """The steps of a player in the games before the one at index `last`, and in the adjustments up to it.

    `slots` are the player's, `changes` what they brought.
    """
    import numpy as np

    played = np.searchsorted(compiling.as_numpy(stream.offsets), slots, "right") - 1
    own: list[tuple[int, int, int, int | None, int]] = [
        (game, 1, change, None, stream.version[game])
        for game, change in zip(played.tolist(), changes.tolist(), strict=True)
    ]
    adjustments = (one for one in stream.adjustments if one.player == watch and one.game <= last)
    own += [(one.game, 0, one.units, one.position, one.version) for one in adjustments]
    points: int | None = None
    for game, is_game, change, position, version in sorted(own, key=itemgetter(0, 1)):
        if points is None:
            points = starting_points(stream.names[watch], stream.versions[version], outcome.carried)
        yield Step(game if is_game else None, points, change, position)
        points += change


def course(stream: Stream, outcome: Outcome) -> Iterator[tuple[int, Sequence[int], list[int]]]:
    """(game, participants, their points before it) for every game of a stream that was replayed to its end."""
    points: dict[int, int] = {}

    def on_ladder(player: int, version: int) -> int:
        return points.setdefault(
            player, starting_points(stream.names[player], stream.versions[version], outcome.carried)
        )

    adjustments = iter([*stream.adjustments, None])
    adjustment = next(adjustments)
    for game in range(len(stream.row)):
        while adjustment is not None and adjustment.game == game:
            points[adjustment.player] = on_ladder(adjustment.player, adjustment.version) + adjustment.units
            adjustment = next(adjustments)
        low, high = stream.offsets[game], stream.offsets[game + 1]
        participants = stream.players[low:high]
        before = [on_ladder(player, stream.version[game]) for player in participants]
        yield game, participants, before
        for i, player in enumerate(participants):
            points[player] = before[i] + outcome.changes[low + i]


def steps_of_all(stream: Stream, outcome: Outcome) -> Iterator[tuple[int, Step]]:
    """(player, step) for every game and adjustment of a replayed stream, in order; within a game by id."""
    adjustments = iter([*stream.adjustments, None])
    adjustment = next(adjustments)
    had: dict[int, int] = {}

    def adjusted(until: int) -> Iterator[tuple[int, Step]]:
        nonlocal adjustment
        while adjustment is not None and adjustment.game <= until:
            player, version = adjustment.player, stream.versions[adjustment.version]
            before = had.setdefault(player, starting_points(stream.names[player], version, outcome.carried))
            had[player] = before + adjustment.units
            yield player, Step(None, before, adjustment.units, adjustment.position)
            adjustment = next(adjustments)

    for game, participants, before in course(stream, outcome):
        yield from adjusted(game)
        low = stream.offsets[game]
        for i, player in enumerate(participants):
            had[player] = before[i] + outcome.changes[low + i]
            yield player, Step(game, before[i], outcome.changes[low + i])
    yield from adjusted(len(stream.row))
