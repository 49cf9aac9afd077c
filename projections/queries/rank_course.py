"""A player's rank over time: after every game and adjustment of a ladder, or where that is too much, at ends of days.

Where a list ranks whoever has enough games by their points, a rank is one more than how many have more points. So
everybody has a level among the points that the player ever had: how many of them they exceed.

    the player had 980, 1000 and 1016 points; with 1008 somebody is at level 2, with 1016, too, and with 1017 at 3
    ahead of the player with 1000, who is at level 1 then, are those at 2 and 3

How many are at every level is counted, and how many at every 64 of them, and so on: in O(log n) steps somebody moves,
and those at higher levels are counted.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from heapq import merge
from itertools import pairwise
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.zones import end_of, local_time
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers_profiled import RankChange, Ranks
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.standings import Ladders, rows_of
from ratings_ledger.projections.replay.ladders import Inserted, parse_name
from ratings_ledger.projections.replay.loops import NOWHERE
from ratings_ledger.projections.replay.partition import by_time
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.periods import month_start
from ratings_ledger.projections.rulesets.versions import newest

# if more than this was done to players on a ladder, ranks over time would take minutes
STEPS_MAX = 2_000_000
# a list that ranks in another way is made at so many moments at most
ENDS_MAX = 60
# levels are counted by so many bits at once
BITS = 6
MASK = (1 << BITS) - 1

Unit = Literal["day", "month", "year"]
Counts = list[list[int]]


class Moved(NamedTuple):
    """At which levels players are after a game, `row` in the facts, or after an adjustment before a game.

    `version` indexes the one that scored the game.
    """

    game: int
    row: int | None
    version: int | None
    adjustment: Inserted | None
    players: Sequence[int]
    levels: Sequence[int]


def ranks_over_time(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Ranks:
    """The ranks of a player, by current id, who may not be on the ladder. Raises `UnknownLadder`, `RuleFailure`."""
    trace = ladders.trace(ladder)
    stream, at = trace.stream, ladders.coordinates
    if all(stream.ranking.by_points(version.params) for version in stream.versions):
        short = trace.step_count <= STEPS_MAX
        rows = tuple(_by_step(ladders.facts, trace.whole(), player)) if short else None
        return Ranks(player, ladder, at, "step", rows, times=times)
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if by_time(ruleset) else times.zone
    most = min(ENDS_MAX, STEPS_MAX // max(1, trace.step_count))
    every, ends = _ends(ladders, trace.whole(), zone, most)
    rows = tuple(_at_ends(ladders, trace, player, ends)) if len(ends) <= most else None
    return Ranks(player, ladder, at, every, rows, times=times)


def _by_step(facts: Facts, trace: Trace, player: str) -> Iterator[RankChange]:
    """Where a player's rank changed, step by step."""
    stream = trace.stream
    if player not in stream.names:
        return
    own = stream.names.index(player)
    had = _had(trace, own)
    levels, games = [NOWHERE] * len(stream.names), [0] * len(stream.names)
    wanted = [version.params.min_games for version in stream.versions]
    least, counts, known = newest(stream.versions).params.min_games, _counts(len(had) + 1), None
    for moved in merge(_adjusted(trace, had), _played(trace, had), key=lambda one: one.game):
        enough = least if moved.version is None else wanted[moved.version]
        for there, level in zip(moved.players, moved.levels, strict=True):
            old = levels[there] if games[there] >= least else NOWHERE
            games[there] += moved.version is not None
            levels[there] = level
            if games[there] >= least and old != level:
                _move(counts, old, level)
        if enough != least:
            least, counts = enough, _counts(len(had) + 1)
            for level, count in zip(levels, games, strict=True):
                if level != NOWHERE and count >= least:
                    _move(counts, NOWHERE, level)
        ranked = levels[own] != NOWHERE and games[own] >= least
        rank = 1 + _higher(counts, levels[own]) if ranked else None
        if rank != known:
            known = rank
            yield RankChange(*_when(facts, moved), rank, games[own])


def _when(facts: Facts, moved: Moved) -> tuple[int, datetime]:
    """The position of a game or an adjustment, and the time."""
    if moved.adjustment is not None:
        return moved.adjustment.position, moment(moved.adjustment.occurred_at)
    return facts.live_position[moved.row], moment(facts.occurred_at[moved.row])


def _had(trace: Trace, player: int) -> list[int]:
    """The points that a player had after their games and adjustments, in ascending order."""
    slots, before, changes = trace.slots, trace.before, trace.changes
    own = slots.order[slots.start[player] : slots.end[player]]
    adjusted = zip(trace.stream.adjustments, trace.adjusted_before, strict=True)
    return sorted(
        {before[slot] + changes[slot] for slot in own}
        | {points + one.units for one, points in adjusted if one.player == player}
    )


def _adjusted(trace: Trace, had: Sequence[int]) -> Iterator[Moved]:
    """Where adjustments left players."""
    for one, before in zip(trace.stream.adjustments, trace.adjusted_before, strict=True):
        level = bisect_left(had, before + one.units)
        yield Moved(one.game, None, None, one, (one.player,), (level,))


def _played(trace: Trace, had: Sequence[int]) -> Iterator[Moved]:
    """Where games left players."""
    stream = trace.stream
    levels = [bisect_left(had, before + change) for before, change in zip(trace.before, trace.changes, strict=True)]
    players = [*stream.players]
    games = zip(pairwise(stream.offsets), stream.version, stream.row, strict=True)
    for game, ((first, last), version, row) in enumerate(games):
        yield Moved(game, row, version, None, players[first:last], levels[first:last])


def _counts(size: int) -> Counts:
    """A count of 0 for each of so many levels, for every 64 of them, and so on."""
    found = [[0] * size]
    while size > MASK + 1:
        size = (size + MASK) >> BITS
        found.append([0] * size)
    return found


def _move(counts: Counts, old: int, new: int) -> None:
    """Somebody leaves a level, if they were at one, and comes to another."""
    for row in counts:
        if old == new:
            return
        if old != NOWHERE:
            row[old] -= 1
        row[new] += 1
        old, new = old >> BITS, new >> BITS


def _higher(counts: Counts, level: int) -> int:
    """How many are at higher levels."""
    found = 0
    for row in counts:
        found += sum(row[level + 1 : (level | MASK) + 1])
        level >>= BITS
    return found


def _month_end(year: int, month: int, zone: str) -> int:
    return month_start(year + month // 12, month % 12 + 1, zone) - 1


END_OF: dict[Unit, Callable[[date, str], int]] = {
    "day": lambda day, zone: end_of(day.isoformat(), zone),
    "month": lambda day, zone: _month_end(day.year, day.month, zone),
    "year": lambda day, zone: _month_end(day.year, 12, zone),
}


def _ends(ladders: Ladders, trace: Trace, zone: str, most: int) -> tuple[Unit, list[int]]:
    """The ends of the days on which something was done on a ladder; if these are more than `most`, of the months, else
    of the years. An annual list, which has no games of its own, has those of its months."""
    facts, stream, as_of = ladders.facts, trace.stream, ladders.as_of
    if stream.ranking.sums_lists:
        by = stream.versions[0].ruleset.partition.by
        year = int(dict(zip(by, parse_name(stream.ladder).values, strict=True))["year"])
        found: dict[Unit, set[int]] = {"month": {_month_end(year, month, zone) for month in range(1, 13)}}
    else:
        instants = {*(facts.occurred_at[row] for row in stream.row), *(one.occurred_at for one in stream.adjustments)}
        days = {local_time(instant, zone).date() for instant in instants}
        found = {unit: {end(day, zone) for day in days} for unit, end in END_OF.items()}
    longest: Unit = "year"
    unit = next((unit for unit, ends in found.items() if len(ends) <= most), longest)
    return unit, sorted(found[unit] if as_of is None else {min(end, as_of) for end in found[unit]})


def _at_ends(ladders: Ladders, trace: Trace, player: str, ends: Sequence[int]) -> Iterator[RankChange]:
    """Where a player's rank had changed at some instants."""
    known = None
    for instant in ends:
        row = rows_of(ladders.ranked_at(trace, instant).rows, {player}).get(player)
        if row is not None and row.rank != known:
            known = row.rank
            yield RankChange(None, moment(instant), row.rank, row.games)
