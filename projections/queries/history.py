"""Build a player's history on a ladder: every change of their points, and their rank over time.

A course holds all changes as numbers, and builds a `Change` with the content of its event on demand. So a page that
shows only the last of a thousand games builds a single `Change`.

On a list that ranks qualified players by points, a rank is one more than the number of players with more points. To
follow the rank of one player, every player has a level: the number of lower values among all points that the followed
player ever had.

    the followed player had 980, 1000 and 1016 points: 1008 and 1016 points are level 2, 1017 points are level 3
    while the followed player has 1000 points (level 1), the players at levels 2 and 3 are ahead

Counters hold the number of players at each level, in each block of 64 levels, and so on. So moving a player and
counting the players at higher levels take O(log n) steps.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from heapq import merge
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple, overload

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, live_game
from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.ledger.events.zones import local_time, read_until
from ratings_ledger.ledger.store.log import Log, read_records_at
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.lookups import GameRecord, look_up_games
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo, Ranking
from ratings_ledger.projections.queries.published_lists import find_comparison_time, load_published_list
from ratings_ledger.projections.queries.results import (
    ABSENT,
    AS_ROWS,
    HIDDEN,
    INLINE,
    Absent,
    Answer,
    Result,
    RowSequence,
)
from ratings_ledger.projections.queries.standings import PeriodState, find_rows_of_players
from ratings_ledger.projections.queries.visible_states import DEVIATION, VisibleState, build_state_after
from ratings_ledger.projections.replay.streams import Stream, StreamAdjustment
from ratings_ledger.projections.replay.trace import Step, Trace
from ratings_ledger.projections.rulesets.versions import month_start, newest, split_ladder_name

# the types of the last event about a live game that was changed after its first record
REVISION_TYPES = ("game.corrected", "game.reinstated")
# the types of events about a game that do not contain the game's data, as their records state them
TYPES_WITHOUT_GAME = ('"type":"game.voided"', '"type":"game.reinstated"')

# descriptions of the causes of changes other than games and adjustments
CAUSES = {
    "season": "a new season",
    "period": "the rating period closed",
    "version": "a version of the ruleset took effect",
}


def build_change(person: int, step: Step, game: GameRecord, scale: int, event: dict[str, Any]) -> Change:
    """Return a person's change in a step of the replay.

    Args:
        person: the number of the person's current id.
        step: the step.
        game: the game of the step; for a step without a game, a record without seats.
        scale: the units of a point.
        event: the live event of the game, or the event of a step without a game, such as an adjustment.
    """
    is_game = step.game is not None
    place = game.places[game.persons.index(person)] if is_game and game.persons else None
    return Change(
        event["position"],
        event["id"],
        event["data"]["game_id"] if is_game else None,
        to_datetime(game.occurred_at),
        place or None,  # 0 in a game type without places
        ExactNumber(step.points_before, scale),
        ExactNumber(step.change, scale),
        ExactNumber(step.points_before + step.change, scale),
        None if step.version is None else step.version.ruleset.name,
        ABSENT if is_game else CAUSES.get(step.cause) or event["data"]["reason"],
        cause=step.cause or ABSENT,
        revised_at=to_datetime(parse_record_instant(event["recorded_at"]))
        if is_game and event["type"] in REVISION_TYPES
        else None,
    )


def load_games(facts: Facts, steps: Sequence[Step]) -> list[GameRecord]:
    """Return the game of each step; for a step without a game, such as an adjustment, a record without seats."""
    games = look_up_games(facts, [step.row for step in steps if step.row is not None])
    return [
        next(games)
        if step.row is not None
        else GameRecord(step.position, step.position, step.occurred_at, persons=[], places=[], replaced=[], sides=[])
        for step in steps
    ]


def read_game_records(connection: Connection, games: Iterable[GameRecord]) -> dict[int, str]:
    """Return the live records of games, and the records of the steps without a game, by position."""
    return read_records_at(connection, sorted({game.live_position for game in games}))


class LiveGames:
    """The live data of games, given their records by position. Players have their current ids.

    On a ladder of clubs, the participants are clubs.
    """

    def __init__(self, connection: Connection, facts: Facts, records: dict[int, str]) -> None:
        until = facts.position
        self._club_facts = facts if facts.club_games is not None else None
        self._identities = read_identities(connection, until)
        game_ids = [
            from_json(record)["data"]["game_id"]
            for record in records.values()
            if any(type_member in record for type_member in TYPES_WITHOUT_GAME)
        ]
        events = Log(connection, until)
        live_games = (live_game(events.about(f"game:{game_id}")) for game_id in game_ids)
        self._games = {
            game_id: game.data for game_id, game in zip(game_ids, live_games, strict=True) if game is not None
        }

    def find_game(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the game after an event, which must be one of the records; None if the event is not about a game."""
        if event["type"] not in GAME_EVENTS:
            return None
        data: dict[str, Any] = event["data"]
        if event["type"] == "game.corrected":
            data = read_corrected_game(data, 0)[0]
        elif event["type"] != "game.recorded":
            data = self._games[data["game_id"]]
        if self._club_facts is not None:
            return _replace_players_by_clubs(self._club_facts, data)
        return self._identities.use_current_ids(data)


def _replace_players_by_clubs(facts: Facts, data: dict[str, Any]) -> dict[str, Any]:
    """Return a game with clubs as participants, each with the place of its best player."""
    best_places: dict[str, int] = {}
    for place, participant in zip(places(data), data["participants"], strict=True):
        if (label := participant.get("club")) is not None:
            club = facts.current(label)
            best_places[club] = min(place, best_places.get(club, place))
    return {"participants": [{"player": club, "place": place} for club, place in best_places.items()]}


# several queries in a row are often about the same player
_LAST_COURSE: Memo[tuple[str, str], Course] = Memo(limit=1)


def load_course(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    """Return the course of a player, given by current id.

    It is empty on annual lists, and for a player who is not on the ladder. Raises the errors of `Ladders.trace`.
    """
    return _LAST_COURSE.get(ladders, (ladder, player), lambda: _read_course(connection, ladders, ladder, player))


def _read_course(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream = trace.stream
    if player not in stream.names or stream.ranking.sums_lists:
        return Course()
    number = stream.names.index(player)
    steps = trace.steps(number)
    games = load_games(facts, steps)
    records = read_game_records(connection, games)
    live_games = LiveGames(connection, facts, records)
    states_and_games = zip(trace.states_after(number, steps), trace.games_after(number, steps), strict=True)
    states = [build_state_after(version, ladder, state, count) for (state, version), count in states_and_games]
    course = Course(stream, facts.player_numbers[player], steps, games, records, live_games, states)
    course.published = _find_contradicting_lists(connection, ladders, ladder, player, course)
    return course


def _find_contradicting_lists(
    connection: Connection, ladders: Ladders, ladder: str, player: str, course: Course
) -> dict[int, list[ShownPoints]]:
    """Return the published lists that showed other points of a player than they would today, by index in the course.

    The index is that of the last change that a list covers: the last one played by its `as_of` or, for a list of a
    whole period, the last one recorded when it was computed. A list that covers no change has the index 0.
    """
    by_index: dict[int, list[ShownPoints]] = {}
    facts, ruleset = ladders.facts, ladders.versions(ladder)[0].ruleset
    for entry in read_published_lists(connection, facts.position, ladder):
        until = find_comparison_time(entry, ruleset)
        if ladders.as_of is not None and (until is None or until > ladders.as_of):
            continue
        last = course.find_last_known(entry.known_at) if until is None else bisect_right(course.instants, until) - 1
        listed_points = _find_points(load_published_list(connection, entry), facts, player)
        current_points = (
            _compute_points_today(ladders, ladder, player, until, course.values[last]) if last >= 0 else None
        )
        if listed_points != current_points:
            as_of = None if entry.as_of is None else to_datetime(entry.as_of)
            by_index.setdefault(max(last, 0), []).append(ShownPoints(entry.position, as_of, listed_points))
    return by_index


def _compute_points_today(
    ladders: Ladders, ladder: str, player: str, until: int | None, last_points: Fraction
) -> Fraction | None:
    """Return the points that a list up to an instant would show today.

    `last_points` are the player's points after the last change that the list covers.
    """
    if ladders.versions(ladder)[0].ranking.running:
        return last_points
    return _find_points(ladders.at(until).standings(ladder), ladders.facts, player)


def _find_points(ranking: Ranking, facts: Facts, player: str) -> Fraction | None:
    """Return a player's points in standings, None if the player is not there.

    The player is given by current id; the standings may use an earlier id.
    """
    return next((row.exact_points(ranking.scale) for row in ranking.rows if facts.current(row.player) == player), None)


# the maximum number of steps of a ladder whose ranks are followed over time; more would take minutes
STEPS_MAX = 2_000_000
# the maximum number of instants at which a list that does not rank by points is computed
ENDS_MAX = 60
# each counter sums 2**BLOCK_BITS counters of the row before
BLOCK_BITS = 6
BLOCK_MASK = (1 << BLOCK_BITS) - 1
Unit = Literal["day", "month", "year"]
Counts = list[list[int]]


class LevelChange(NamedTuple):
    """The levels of some players after a game or an adjustment.

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


END_OF: dict[Unit, Callable[[date, str], int]] = {
    "day": lambda day, zone: read_until(day.isoformat(), zone),
    "month": lambda day, zone: _find_month_end(day.year, day.month, zone),
    "year": lambda day, zone: _find_month_end(day.year, 12, zone),
}


def _list_period_ends(ladders: Ladders, trace: Trace, zone: str, ends_max: int) -> tuple[Unit, list[int]]:
    """Return the unit (day, month or year) and the ends of all periods of that unit in which a ladder changed.

    The unit is the shortest with at most `ends_max` ends. An annual list has no games, so it gets the ends of its
    months.
    """
    facts, stream, as_of = ladders.facts, trace.stream, ladders.as_of
    if stream.ranking.sums_lists:
        year = int(split_ladder_name(stream.ladder, stream.versions[0].ruleset)["year"])
        by_unit: dict[Unit, set[int]] = {"month": {_find_month_end(year, month, zone) for month in range(1, 13)}}
    else:
        instants = {
            *(facts.occurred_at[row] for row in stream.rows),
            *(adjustment.occurred_at for adjustment in stream.adjustments),
        }
        days = {local_time(instant, zone).date() for instant in instants}
        by_unit = {unit: {end(day, zone) for day in days} for unit, end in END_OF.items()}
    longest_unit: Unit = "year"
    unit = next((unit for unit, ends in by_unit.items() if len(ends) <= ends_max), longest_unit)
    return unit, sorted(by_unit[unit] if as_of is None else {min(end, as_of) for end in by_unit[unit]})


def _rank_at_ends(ladders: Ladders, trace: Trace, player: str, ends: Sequence[int]) -> Iterator[RankChange]:
    """Yield the changes of a player's rank from each of some ascending instants to the next."""
    last_rank = None
    for instant in ends:
        row = find_rows_of_players(ladders.rank_at(trace, instant).rows, {player}).get(player)
        if row is not None and row.rank != last_rank:
            last_rank = row.rank
            yield RankChange(None, to_datetime(instant), row.rank, row.games)


@dataclass(frozen=True, slots=True)
class ShownPoints(Result):
    """A published list, by its position and `as_of`, and the points that it showed; None if it lacks the player."""

    position: int
    as_of: datetime | None
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class Change(Result):
    """A change of a player's points by a game, an adjustment or another cause.

    An adjustment has a `reason` and no game. A change without a game or adjustment has a `cause`, which its `reason`
    describes: a `season` that began, a `period` that closed, or a `version` that took effect. Its position and time are
    those of the season's first game, of the player's last game in the period, or of the version.

    state:       the player's numbers after the change, as decimals, if the rule keeps several
    state_exact: the same numbers exactly
    provisional: whether the rule considers these numbers unreliable
    published:   the published lists that showed other points after this change
    revised_at:  the time of the game's last correction or reinstatement; None for an unchanged game
    game:        the live game with its players' current ids
    """

    position: int
    event_id: str
    game_id: str | None
    occurred_at: datetime
    place: int | None
    before: Fraction
    change: Fraction
    after: Fraction
    ruleset: str | None
    reason: str | Absent = ABSENT
    published: tuple[ShownPoints, ...] | Absent = ABSENT
    cause: str | Absent = ABSENT
    state: dict[str, str] | Absent = ABSENT
    state_exact: dict[str, str] | Absent = ABSENT
    provisional: bool | Absent = ABSENT
    revised_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


class Course(Sequence[Change]):
    """All changes of a player's points on a ladder, in order, as columns with one entry for each change.

    units:     the points after the change, in units of 1/`scale`
    instants:  the time of the change, in microseconds since 1970
    is_game:   whether a game caused the change
    causes:    the name of the cause: `game`, `adjustment` or a key of `CAUSES`
    published: the published lists that showed other points than they would today, by the index of a change
    person:    the number of the player's current id
    """

    def __init__(
        self,
        stream: Stream | None = None,
        person: int = 0,
        steps: Sequence[Step] = (),
        games: Sequence[GameRecord] = (),
        records: dict[int, str] | None = None,
        live_games: LiveGames | None = None,
        states: Sequence[VisibleState] = (),
    ) -> None:
        self.scale = stream.rule.scale if stream else 1
        self.units = [step.points_before + step.change for step in steps]
        self.instants = [game.occurred_at for game in games]
        self.is_game = [step.game is not None for step in steps]
        self.causes = [step.cause or ("adjustment" if step.game is None else "game") for step in steps]
        self.published: dict[int, list[ShownPoints]] = {}
        self.person, self._steps, self._games, self._records = person, steps, games, records or {}
        self._live_games, self._states = live_games, states
        self._changes: dict[int, Change] = {}

    def __len__(self) -> int:
        return len(self.units)

    def __repr__(self) -> str:
        return f"Course({len(self):,} change{'' if len(self) == 1 else 's'})"

    @overload
    def __getitem__(self, index: int) -> Change: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Change, ...]: ...

    def __getitem__(self, index: int | slice) -> Change | tuple[Change, ...]:
        number = range(len(self.units))[index]
        if isinstance(number, range):
            return tuple(map(self.__getitem__, number))
        if number not in self._changes:
            self._changes[number] = self._build_change(number)
        return self._changes[number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Course) and self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def datetimes(self) -> list[datetime]:
        """Return the time of each change as a `datetime`."""
        return [*map(to_datetime, self.instants)]

    @cached_property
    def rows(self) -> tuple[Change, ...]:
        """Return all changes."""
        return self[:]

    @cached_property
    def values(self) -> list[Fraction]:
        """Return the exact points after each change."""
        return [ExactNumber(units, self.scale) for units in self.units]

    @cached_property
    def deviations(self) -> list[Fraction]:
        """Return the rating deviation after each change, 0 under a version without one; empty if no version has one."""
        deviations = [Fraction(state.exact.get(DEVIATION, 0)) for state in self._states]
        return deviations if any(deviations) else []

    @property
    def start(self) -> Fraction:
        """Return the points before the first change. The course must not be empty."""
        return ExactNumber(self._steps[0].points_before, self.scale)

    def games(self) -> Iterator[GameRecord]:
        """Yield the game, with its seats, of each change that a game caused."""
        return (game for game, is_game in zip(self._games, self.is_game, strict=True) if is_game)

    def list_revised(self) -> Iterator[tuple[int, Change]]:
        """Yield the index and the change of each game that was corrected or reinstated."""
        for index, game in enumerate(self._games):
            if game.live_position != game.first_position and self[index].revised_at is not None:
                yield index, self[index]

    def find_last_known(self, position: int) -> int:
        """Return the index of the last change that was recorded up to a position, or -1."""
        known_indexes = [index for index, game in enumerate(self._games) if game.first_position <= position]
        return known_indexes[-1] if known_indexes else -1

    def _build_change(self, index: int) -> Change:
        """Build the change at an index from its event."""
        step, game = self._steps[index], self._games[index]
        event = from_json(self._records[game.live_position], cache_strings="keys")
        change = build_change(self.person, step, game, self.scale, event)
        published = tuple(self.published[index]) if index in self.published else ABSENT
        game_data = None if self._live_games is None or change.game_id is None else self._live_games.find_game(event)
        change = replace(change, published=published, game=game_data)
        if not self._states:
            return change
        state = self._states[index]
        return replace(change, state=state.decimals, state_exact=state.exact, provisional=state.provisional)


@dataclass(frozen=True, slots=True)
class PlayerChange(Result):
    """A change of one player's points."""

    player: str
    change: Change = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class History(Answer, RowSequence[Change]):
    """Every change of a player's points on a ladder, in the order of replay.

    `period` describes the ladder's rating periods.
    """

    player: str
    ladder: str
    at: Coordinates
    steps: Course = field(metadata=AS_ROWS, repr=False, hash=False)
    period: PeriodState | Absent = ABSENT
    sums_lists: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def rows(self) -> tuple[Change, ...]:
        """Return every change of the course."""
        return self.steps.rows

    def _sequence(self) -> Course:
        """Return the changes; each is built when it is read."""
        return self.steps


# the number of steps whose events are read at once
CHUNK_STEPS = 10_000


def load_changes(connection: Connection, ladders: Ladders, ladder: str) -> Iterator[PlayerChange]:
    """Yield every change of every player's points on a ladder, in the order of replay.

    There are none on an annual list. Raises the errors of `Ladders.trace` before the first change.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream, steps = trace.stream, trace.every_step()
    if stream.ranking.sums_lists:
        return
    while chunk := list(islice(steps, CHUNK_STEPS)):
        games = load_games(facts, [step for _, step in chunk])
        records = read_game_records(connection, games)
        for (player, step), game in zip(chunk, games, strict=True):
            name, event = stream.names[player], json.loads(records[game.live_position])
            yield PlayerChange(name, build_change(facts.player_numbers[name], step, game, stream.rule.scale, event))


@dataclass(frozen=True, slots=True)
class RankChange(Result):
    """A player's rank from a time on (None without a rank), and the number of the player's games by that time.

    `position` is the position of the game or adjustment that changed the rank; it is None if the rank is that at the
    end of a day, month or year.
    """

    position: int | None
    occurred_at: datetime
    rank: int | None
    games: int


@dataclass(frozen=True, slots=True)
class Ranks(Answer, RowSequence[RankChange]):
    """The changes of a player's rank on a ladder. Before the first row, the player has no rank.

    `every` says how often the rank is compared: after every `step` (a game or an adjustment of the ladder, in the order
    of replay), or at the end of every `day`, `month` or `year` with a step. `rows` is None for a ladder with too many
    steps.
    """

    player: str
    ladder: str
    at: Coordinates
    every: Literal["step", "day", "month", "year"]
    rows: tuple[RankChange, ...] | None
