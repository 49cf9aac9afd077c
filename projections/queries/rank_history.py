"""Follow a player's rank on a ladder over time.

On a list that ranks qualified players by points, a rank is one more than the number of players with more points. To
follow the rank of one player, every player has a level: the number of lower values among all points that the followed
player ever had.

    the followed player had 980, 1000 and 1016 points: 1008 and 1016 points are level 2, 1017 points are level 3
    while the followed player has 1000 points (level 1), the players at levels 2 and 3 are ahead

Counters hold the number of players at each level, in each block of 64 levels, and so on. So moving a player and
counting the players at higher levels take O(log n) steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from heapq import merge
from itertools import pairwise
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.zones import local_time, read_until
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import Answer, Result, RowSequence
from ratings_ledger.projections.queries.standings import find_rows_of_players
from ratings_ledger.projections.replay.streams import StreamAdjustment
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import month_start, newest, split_ladder_name

# the maximum number of steps of a ladder whose ranks are followed over time; more would take minutes
STEPS_MAX = 2_000_000
# the maximum number of instants at which a list that does not rank by points is computed
ENDS_MAX = 60
# each counter sums 2**BLOCK_BITS counters of the row before
BLOCK_BITS = 6
BLOCK_MASK = (1 << BLOCK_BITS) - 1
Interval = Literal["day", "month", "year"]
Counts = list[list[int]]


class LevelChange(NamedTuple):
    """The levels of the players in a game, or of the adjusted player, after the game or adjustment.

    game:       the number of the game on the ladder; for an adjustment, of the game after it
    row:        the game's row in the facts, None for an adjustment
    version:    the index of the version that scored the game, None for an adjustment
    adjustment: the adjustment, None for a game
    players:    the numbers of the players whose levels are given
    levels:     the levels of these players
    """

    game: int
    row: int | None
    version: int | None
    adjustment: StreamAdjustment | None
    players: Sequence[int]
    levels: Sequence[int]


def load_ranks(connection: Connection, ladders: Ladders, ladder: str, player: str, times: TimeFormat) -> Ranks:
    """Return the ranks over time of a player, given by current id. The player does not need to be on the ladder.

    Raises the errors of `Ladders.trace`.
    """
    trace = ladders.trace(ladder)
    stream, at = trace.stream, ladders.coordinates
    if all(stream.ranking.by_points(version.params) for version in stream.versions):
        is_short = trace.step_count <= STEPS_MAX
        rows = tuple(_find_rank_changes(ladders.facts, trace.join_parts(), player)) if is_short else None
        return Ranks(player=player, ladder=ladder, at=at, every="step", rows=rows, times=times)
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if ruleset.partition.is_by_time else times.zone
    ends_max = min(ENDS_MAX, STEPS_MAX // max(1, trace.step_count))
    every, ends = _list_period_ends(ladders, trace.join_parts(), zone, ends_max)
    rows = tuple(_rank_at_ends(ladders, trace, player, ends)) if len(ends) <= ends_max else None
    return Ranks(player=player, ladder=ladder, at=at, every=every, rows=rows, times=times)


def _find_rank_changes(facts: Facts, trace: Trace, player: str) -> Iterator[RankChange]:
    """Yield each change of a player's rank, which is compared after every step."""
    stream = trace.stream
    if player not in stream.names:
        return
    number_of_player = stream.names.index(player)
    own_points = _find_own_points(trace, number_of_player)
    levels, games = [NONE] * len(stream.names), [0] * len(stream.names)
    min_games_of_version = [version.params.min_games for version in stream.versions]
    min_games, last_rank = newest(stream.versions).params.min_games, None
    counts = _create_counts(len(own_points) + 1)
    for change in merge(
        _find_adjusted_levels(trace, own_points), _find_game_levels(trace, own_points), key=lambda change: change.game
    ):
        for number, level in zip(change.players, change.levels, strict=True):
            old_level = levels[number] if games[number] >= min_games else NONE
            games[number] += change.version is not None
            levels[number] = level
            if games[number] >= min_games and old_level != level:
                _update_counts(counts, old_level, level)
        new_min_games = min_games if change.version is None else min_games_of_version[change.version]
        if new_min_games != min_games:  # other players qualify under the new version
            min_games, counts = new_min_games, _create_counts(len(own_points) + 1)
            for level, count in zip(levels, games, strict=True):
                if level != NONE and count >= min_games:
                    _update_counts(counts, NONE, level)
        is_ranked = levels[number_of_player] != NONE and games[number_of_player] >= min_games
        rank = 1 + _count_higher(counts, levels[number_of_player]) if is_ranked else None
        if rank != last_rank:
            last_rank = rank
            yield RankChange(*_find_position_and_time(facts, change), rank, games[number_of_player])


def _find_position_and_time(facts: Facts, change: LevelChange) -> tuple[int, datetime]:
    """Return the position and the time of the game or the adjustment that changed levels."""
    if change.adjustment is not None:
        return change.adjustment.position, to_datetime(change.adjustment.occurred_at)
    return facts.live_position[change.row], to_datetime(facts.occurred_at[change.row])


def _find_own_points(trace: Trace, player: int) -> list[int]:
    """Return the distinct points that a player had after games and adjustments, in units, in ascending order."""
    slots, before, changes = trace.slots, trace.points_before, trace.changes
    own_slots = slots.order[slots.start[player] : slots.end[player]]
    adjustments = zip(trace.stream.adjustments, trace.states_before_adjustments[0], strict=True)
    return sorted(
        {before[slot] + changes[slot] for slot in own_slots}
        | {points + adjustment.units for adjustment, points in adjustments if adjustment.player == player}
    )


def _find_adjusted_levels(trace: Trace, own_points: Sequence[int]) -> Iterator[LevelChange]:
    """Yield the level of the adjusted player after each adjustment."""
    for adjustment, before in zip(trace.stream.adjustments, trace.states_before_adjustments[0], strict=True):
        level = bisect_left(own_points, before + adjustment.units)
        players = (adjustment.player,)
        yield LevelChange(
            adjustment.game, row=None, version=None, adjustment=adjustment, players=players, levels=(level,)
        )


def _find_game_levels(trace: Trace, own_points: Sequence[int]) -> Iterator[LevelChange]:
    """Yield the levels of the players after each game."""
    stream = trace.stream
    levels = [
        bisect_left(own_points, before + change)
        for before, change in zip(trace.points_before, trace.changes, strict=True)
    ]
    players = [*stream.players]
    games = zip(pairwise(stream.offsets), stream.version_indices, stream.rows, strict=True)
    for game, ((first, last), version, row) in enumerate(games):
        yield LevelChange(game, row, version, adjustment=None, players=players[first:last], levels=levels[first:last])


def _create_counts(size: int) -> Counts:
    """Return counters, all 0: one for each of `size` levels, one for each block of 64 levels, and so on."""
    counts = [[0] * size]
    while size > BLOCK_MASK + 1:
        size = (size + BLOCK_MASK) >> BLOCK_BITS
        counts.append([0] * size)
    return counts


def _update_counts(counts: Counts, old: int, new: int) -> None:
    """Move a player from the `old` level (`NONE` for a new player) to the `new` one."""
    for row in counts:
        if old == new:
            return
        if old != NONE:
            row[old] -= 1
        row[new] += 1
        old, new = old >> BLOCK_BITS, new >> BLOCK_BITS


def _count_higher(counts: Counts, level: int) -> int:
    """Return the number of players at higher levels."""
    total = 0
    for row in counts:
        total += sum(row[level + 1 : (level | BLOCK_MASK) + 1])
        level >>= BLOCK_BITS
    return total


def _find_month_end(year: int, month: int, zone: str) -> int:
    """Return the last instant of a month in a zone."""
    return month_start(year + month // 12, month % 12 + 1, zone) - 1


END_OF: dict[Interval, Callable[[date, str], int]] = {
    "day": lambda day, zone: read_until(day.isoformat(), zone),
    "month": lambda day, zone: _find_month_end(day.year, day.month, zone),
    "year": lambda day, zone: _find_month_end(day.year, 12, zone),
}


def _list_period_ends(ladders: Ladders, trace: Trace, zone: str, ends_max: int) -> tuple[Interval, list[int]]:
    """Return the interval (day, month or year) and the ends of all such periods in which a ladder changed.

    The interval is the shortest with at most `ends_max` ends, else the year. An annual list has no games, so it gets
    the ends of its months.
    """
    facts, stream, as_of = ladders.facts, trace.stream, ladders.as_of
    if stream.ranking.sums_lists:
        year = int(split_ladder_name(stream.ladder, stream.versions[0].ruleset)["year"])
        by_interval: dict[Interval, set[int]] = {
            "month": {_find_month_end(year, month, zone) for month in range(1, 13)}
        }
    else:
        instants = {
            *(facts.occurred_at[row] for row in stream.rows),
            *(adjustment.occurred_at for adjustment in stream.adjustments),
        }
        days = {local_time(instant, zone).date() for instant in instants}
        by_interval = {interval: {end(day, zone) for day in days} for interval, end in END_OF.items()}
    longest_interval: Interval = "year"
    interval = next((key for key, ends in by_interval.items() if len(ends) <= ends_max), longest_interval)
    ends = by_interval[interval]
    return interval, sorted(ends if as_of is None else {min(end, as_of) for end in ends})


def _rank_at_ends(ladders: Ladders, trace: Trace, player: str, ends: Sequence[int]) -> Iterator[RankChange]:
    """Yield the changes of a player's rank between successive instants, given in ascending order."""
    last_rank = None
    for instant in ends:
        row = find_rows_of_players(ladders.rank_at(trace, instant).rows, {player}).get(player)
        if row is not None and row.rank != last_rank:
            last_rank = row.rank
            yield RankChange(None, to_datetime(instant), row.rank, row.games)


@dataclass(frozen=True, slots=True)
class RankChange(Result):
    """A player's rank from a time on (None without a rank), and the number of the player's games by that time.

    `position` is the position of the game or adjustment that changed the rank; it is None if ranks are
    compared only at the ends of days, months or years.
    """

    position: int | None
    occurred_at: datetime
    rank: int | None
    games: int


@dataclass(frozen=True, slots=True)
class Ranks(Answer, RowSequence[RankChange]):
    """The changes of a player's rank on a ladder. Before the first row, the player has no rank.

    `every` says how often the rank is compared: after every `step` (a game or an adjustment of the ladder, in the order
    of replay), or at the end of every `day`, `month` or `year` with a step (on an annual list, of every month). `rows`
    is None for a ladder with too many steps.
    """

    player: str
    ladder: str
    at: Coordinates
    every: Literal["step", "day", "month", "year"]
    rows: tuple[RankChange, ...] | None
