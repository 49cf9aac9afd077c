"""A player's history on a ladder: every change of their points, and their rank over time.

All of it is there as numbers; a change, with what its event says, is made when it is read. So a page that shows the
last of a thousand games makes no others.

Where a list ranks whoever has enough games by their points, a rank is one more than how many have more points. So
everybody has a level among the points that the player ever had: how many of them they exceed.

    the player had 980, 1000 and 1016 points; with 1008 somebody is at level 2, with 1016, too, and with 1017 at 3
    ahead of the player with 1000, who is at level 1 then, are those at 2 and 3

How many are at every level is counted, and how many at every 64 of them, and so on: in O(log n) steps somebody moves,
and those at higher levels are counted.
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
from ratings_ledger.ledger.events.types import corrected_game
from ratings_ledger.ledger.events.zones import local_time, read_until
from ratings_ledger.ledger.store.log import Log, read_records_at
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.published_lists import published_lists
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.lookups import GameRecord, look_up_games
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo, Ranking
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, ROWS, SPREAD, Absent, Answer, Result, RowSequence
from ratings_ledger.projections.queries.shown_states import DEVIATION, ShownState, show_state_after
from ratings_ledger.projections.queries.standings import PeriodState, rows_of_players
from ratings_ledger.projections.replay.ladders import (
    Stream,
    StreamAdjustment,
    parse_name,
)
from ratings_ledger.projections.replay.partition import is_partitioned_by_time
from ratings_ledger.projections.replay.trace import Step, Trace
from ratings_ledger.projections.rulesets.versions import month_start, newest

# the events after which a game no longer stands as it was recorded
REVISIONS = ("game.corrected", "game.reinstated")
WITHOUT_GAME = ('"type":"game.voided"', '"type":"game.reinstated"')


# what changes points besides games and adjustments, in words
CAUSES = {
    "season": "a new season",
    "period": "the rating period closed",
    "version": "a version of the ruleset took effect",
}


def change_of(person: int, step: Step, game: GameRecord, scale: int, event: dict[str, Any]) -> Change:
    """Return what a step did to a person, by the number of their current id, given its event as recorded."""
    is_game = step.game is not None
    place = game.places[game.persons.index(person)] if is_game and game.persons else None
    return Change(
        event["position"],
        event["id"],
        event["data"]["game_id"] if is_game else None,
        moment(game.occurred_at),
        place or None,  # some game types have none
        ExactNumber(step.before, scale),
        ExactNumber(step.change, scale),
        ExactNumber(step.before + step.change, scale),
        None if step.version is None else step.version.ruleset.name,
        ABSENT if is_game else CAUSES.get(step.cause) or event["data"]["reason"],
        cause=step.cause or ABSENT,
        revised_at=moment(parse_record_instant(event["recorded_at"]))
        if is_game and event["type"] in REVISIONS
        else None,
    )


def played(facts: Facts, steps: Sequence[Step]) -> list[GameRecord]:
    """Return the games of some steps; an adjustment is one without seats."""
    games = look_up_games(facts, [step.row for step in steps if step.row is not None])
    return [
        next(games) if step.row is not None else GameRecord(step.position, step.position, step.occurred_at, [], [], [])
        for step in steps
    ]


def records_of(connection: Connection, games: Iterable[GameRecord]) -> dict[int, str]:
    """Return the records that games stand by, by their positions."""
    return read_records_at(connection, sorted({game.live_position for game in games}))


class GameVersions:
    """The games of some records as they stand: with their players' current ids, and whatever the record leaves out; on
    a ladder of clubs, with clubs as participants.
    """

    def __init__(self, connection: Connection, facts: Facts, records: dict[int, str]) -> None:
        until = facts.position
        self._clubs = facts if facts.club_games is not None else None
        self._people = identities(connection, until)
        # a void and a reinstatement do not repeat the game
        names = [
            from_json(record)["data"]["game_id"]
            for record in records.values()
            if any(kind in record for kind in WITHOUT_GAME)
        ]
        events = Log(connection, until)
        histories = (live_game(events.about(f"game:{name}")) for name in names)
        self._games = {name: game.data for name, game in zip(names, histories, strict=True) if game is not None}

    def game(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the game as the event of one of the records leaves it; None for an event about no game."""
        if event["type"] not in GAME_EVENTS:
            return None
        data: dict[str, Any] = event["data"]
        if event["type"] == "game.corrected":
            data = corrected_game(data, 0)[0]
        elif event["type"] != "game.recorded":
            data = self._games[data["game_id"]]
        return self._people.present(data) if self._clubs is None else _present_clubs(self._clubs, data)


def _present_clubs(facts: Facts, data: dict[str, Any]) -> dict[str, Any]:
    """Return a game as one of clubs, each at the place of the best who plays for it."""
    best: dict[str, int] = {}
    for place, participant in zip(places(data), data["participants"], strict=True):
        if (label := participant.get("club")) is not None:
            club = facts.current(label)
            best[club] = min(place, best.get(club, place))
    return {"participants": [{"player": club, "place": place} for club, place in best.items()]}


# who asks for a course asks for more of the same player
_LAST_COURSE: Memo[tuple[str, str], Course] = Memo(limit=1)


def course_of(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    """Return a player's course; empty for somebody not on the ladder. An annual list has no games of its own.

    `player` is a current id. Raises `UnknownLadder`, `RuleFailure`.
    """
    return _LAST_COURSE.get(ladders, (ladder, player), lambda: _read_course(connection, ladders, ladder, player))


def _read_course(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream = trace.stream
    if player not in stream.names or stream.ranking.sums_lists:
        return Course()
    number = stream.names.index(player)
    steps = trace.steps(number)
    games = played(facts, steps)
    records = records_of(connection, games)
    standing = GameVersions(connection, facts, records)
    after = zip(trace.states_after(number, steps), trace.games_after(number, steps), strict=True)
    states = [show_state_after(version, ladder, state, games) for (state, version), games in after]
    found = Course(stream, facts.player_numbers[player], steps, games, records, standing, states)
    found.published = _contradicted(connection, ladders, ladder, player, found)
    return found


def _contradicted(
    connection: Connection, ladders: Ladders, ladder: str, player: str, course: Course
) -> dict[int, list[Shown]]:
    """Return the published lists that showed a player differently from today, by the index in the player's course.

    A list belongs to the last change it covers: what was played up to the time at which it is compared, or for a whole
    period what was recorded when it was computed. A list that showed the player before the first change of today
    belongs to that one.
    """
    found: dict[int, list[Shown]] = {}
    facts, ruleset = ladders.facts, ladders.versions(ladder)[0].ruleset
    for one in published_lists(connection, facts.position, ladder):
        until = compared_at(one, ruleset)
        if ladders.as_of is not None and (until is None or until > ladders.as_of):
            continue
        last = course.last_known(one.known_at) if until is None else bisect_right(course.instants, until) - 1
        shown = _shown(as_published(connection, one), facts, player)
        today = _today(ladders, ladder, player, until, course.values[last]) if last >= 0 else None
        if shown != today:
            as_of = None if one.as_of is None else moment(one.as_of)
            found.setdefault(max(last, 0), []).append(Shown(one.position, as_of, shown))
    return found


def _today(ladders: Ladders, ladder: str, player: str, until: int | None, last: Fraction) -> Fraction | None:
    """Return what a list up to then would show for a player today, given their points after what it covers."""
    if ladders.versions(ladder)[0].ranking.running:
        return last
    return _shown(ladders.at(until).standings(ladder), ladders.facts, player)


def _shown(found: Ranking, facts: Facts, player: str) -> Fraction | None:
    """Return the points of a player, by current id, in standings that may know them by an earlier one."""
    return next((row.value(found.scale) for row in found.rows if facts.current(row.player) == player), None)


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
    adjustment: StreamAdjustment | None
    players: Sequence[int]
    levels: Sequence[int]


def ranks_over_time(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Ranks:
    """Return the ranks of a player, by current id, on the ladder or not. Raises `UnknownLadder`, `RuleFailure`."""
    trace = ladders.trace(ladder)
    stream, at = trace.stream, ladders.coordinates
    if all(stream.ranking.by_points(version.params) for version in stream.versions):
        short = trace.step_count <= STEPS_MAX
        rows = tuple(_by_step(ladders.facts, trace.whole(), player)) if short else None
        return Ranks(player, ladder, at, "step", rows, times=times)
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if is_partitioned_by_time(ruleset) else times.zone
    most = min(ENDS_MAX, STEPS_MAX // max(1, trace.step_count))
    every, ends = _ends(ladders, trace.whole(), zone, most)
    rows = tuple(_at_ends(ladders, trace, player, ends)) if len(ends) <= most else None
    return Ranks(player, ladder, at, every, rows, times=times)


def _by_step(facts: Facts, trace: Trace, player: str) -> Iterator[RankChange]:
    """Yield where a player's rank changed, step by step."""
    stream = trace.stream
    if player not in stream.names:
        return
    own = stream.names.index(player)
    had = _had(trace, own)
    levels, games = [NONE] * len(stream.names), [0] * len(stream.names)
    wanted = [version.params.min_games for version in stream.versions]
    least, counts, known = newest(stream.versions).params.min_games, _counts(len(had) + 1), None
    for moved in merge(_adjusted(trace, had), _played(trace, had), key=lambda one: one.game):
        enough = least if moved.version is None else wanted[moved.version]
        for there, level in zip(moved.players, moved.levels, strict=True):
            old = levels[there] if games[there] >= least else NONE
            games[there] += moved.version is not None
            levels[there] = level
            if games[there] >= least and old != level:
                _move(counts, old, level)
        if enough != least:
            least, counts = enough, _counts(len(had) + 1)
            for level, count in zip(levels, games, strict=True):
                if level != NONE and count >= least:
                    _move(counts, NONE, level)
        ranked = levels[own] != NONE and games[own] >= least
        rank = 1 + _higher(counts, levels[own]) if ranked else None
        if rank != known:
            known = rank
            yield RankChange(*_when(facts, moved), rank, games[own])


def _when(facts: Facts, moved: Moved) -> tuple[int, datetime]:
    """Return the position of a game or an adjustment, and the time."""
    if moved.adjustment is not None:
        return moved.adjustment.position, moment(moved.adjustment.occurred_at)
    return facts.live_position[moved.row], moment(facts.occurred_at[moved.row])


def _had(trace: Trace, player: int) -> list[int]:
    """Return the points that a player had after their games and adjustments, in ascending order."""
    slots, before, changes = trace.slots, trace.before, trace.changes
    own = slots.order[slots.start[player] : slots.end[player]]
    adjusted = zip(trace.stream.adjustments, trace.adjusted_before[0], strict=True)
    return sorted(
        {before[slot] + changes[slot] for slot in own}
        | {points + one.units for one, points in adjusted if one.player == player}
    )


def _adjusted(trace: Trace, had: Sequence[int]) -> Iterator[Moved]:
    """Yield where adjustments left players."""
    for one, before in zip(trace.stream.adjustments, trace.adjusted_before[0], strict=True):
        level = bisect_left(had, before + one.units)
        yield Moved(one.game, None, None, one, (one.player,), (level,))


def _played(trace: Trace, had: Sequence[int]) -> Iterator[Moved]:
    """Yield where games left players."""
    stream = trace.stream
    levels = [bisect_left(had, before + change) for before, change in zip(trace.before, trace.changes, strict=True)]
    players = [*stream.players]
    games = zip(pairwise(stream.offsets), stream.version, stream.row, strict=True)
    for game, ((first, last), version, row) in enumerate(games):
        yield Moved(game, row, version, None, players[first:last], levels[first:last])


def _counts(size: int) -> Counts:
    """Return a count of 0 for each of so many levels, for every 64 of them, and so on."""
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
        if old != NONE:
            row[old] -= 1
        row[new] += 1
        old, new = old >> BITS, new >> BITS


def _higher(counts: Counts, level: int) -> int:
    """Return how many are at higher levels."""
    found = 0
    for row in counts:
        found += sum(row[level + 1 : (level | MASK) + 1])
        level >>= BITS
    return found


def _month_end(year: int, month: int, zone: str) -> int:
    return month_start(year + month // 12, month % 12 + 1, zone) - 1


END_OF: dict[Unit, Callable[[date, str], int]] = {
    "day": lambda day, zone: read_until(day.isoformat(), zone),
    "month": lambda day, zone: _month_end(day.year, day.month, zone),
    "year": lambda day, zone: _month_end(day.year, 12, zone),
}


def _ends(ladders: Ladders, trace: Trace, zone: str, most: int) -> tuple[Unit, list[int]]:
    """Return the ends of the days on which something was done on a ladder; if these are more than `most`, of the
    months, else of the years. An annual list, which has no games of its own, has those of its months.
    """
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
    """Yield where a player's rank had changed at some instants."""
    known = None
    for instant in ends:
        row = rows_of_players(ladders.rank_at(trace, instant).rows, {player}).get(player)
        if row is not None and row.rank != known:
            known = row.rank
            yield RankChange(None, moment(instant), row.rank, row.games)


@dataclass(frozen=True, slots=True)
class Shown(Result):
    """What a published list showed instead: its position in the log, its `as_of`, the points or None if nothing."""

    position: int
    as_of: datetime | None
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class Change(Result):
    """What a game or an adjustment did to a player; an adjustment has a `reason` and no game. What else changes points
    has a `cause`: a `season` that began, with the position and time of the first game in it; a `period` that closed,
    with those of the player's last game in it; a `version` that took effect, with its own. Under a rule that keeps
    several numbers about a player, `state` are those after it, as decimals for people, and `state_exact` the same
    exactly; `provisional` says whether the rule finds them not reliable yet.

    `published` are lists that showed other points then; `revised_at` is when the game was corrected last, or counted
    again, None for one that stands as it was recorded. `game` is the game as it stands, with its players' current ids.
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
    published: tuple[Shown, ...] | Absent = ABSENT
    cause: str | Absent = ABSENT
    state: dict[str, str] | Absent = ABSENT
    state_exact: dict[str, str] | Absent = ABSENT
    provisional: bool | Absent = ABSENT
    revised_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


class Course(Sequence[Change]):
    """The changes, in order. Of each, `units` are the points after it in units of 1/`scale`, `instants` is when it was,
    and `is_game` tells a game from what changes points without one; `causes` has a name for either. `published` has by
    index what lists showed that is other today, and `person` is the number of the player's current id.
    """

    def __init__(
        self,
        stream: Stream | None = None,
        person: int = 0,
        steps: Sequence[Step] = (),
        games: Sequence[GameRecord] = (),
        records: dict[int, str] | None = None,
        standing: GameVersions | None = None,
        states: Sequence[ShownState] = (),
    ) -> None:
        self.scale = stream.rule.scale if stream else 1
        self.units = [step.before + step.change for step in steps]
        self.instants = [game.occurred_at for game in games]
        self.is_game = [step.game is not None for step in steps]
        self.causes = [step.cause or ("adjustment" if step.game is None else "game") for step in steps]
        self.published: dict[int, list[Shown]] = {}
        self.person, self._steps, self._games, self._records = person, steps, games, records or {}
        self._standing, self._states = standing, states
        self._made: dict[int, Change] = {}

    def __len__(self) -> int:
        return len(self.units)

    def __repr__(self) -> str:
        return f"Course({len(self):,} change{'' if len(self) == 1 else 's'})"

    @overload
    def __getitem__(self, index: int) -> Change: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Change, ...]: ...

    def __getitem__(self, index: int | slice) -> Change | tuple[Change, ...]:
        places = range(len(self.units))[index]
        if isinstance(places, range):
            return tuple(map(self.__getitem__, places))
        if places not in self._made:
            self._made[places] = self._change(places)
        return self._made[places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Course) and self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def moments(self) -> list[datetime]:
        """Return when each was, as a time."""
        return [*map(moment, self.instants)]

    @cached_property
    def rows(self) -> tuple[Change, ...]:
        """Return all of them."""
        return self[:]

    @cached_property
    def values(self) -> list[Fraction]:
        """Return the points after each."""
        return [ExactNumber(units, self.scale) for units in self.units]

    @cached_property
    def deviations(self) -> list[Fraction]:
        """Return the deviation of the points after each, 0 under a version without one; nothing if no version has."""
        known = [Fraction(state.exact.get(DEVIATION, 0)) for state in self._states]
        return known if any(known) else []

    @property
    def start(self) -> Fraction:
        """Return the points before the first, of a course that has one."""
        return ExactNumber(self._steps[0].before, self.scale)

    def games(self) -> Iterator[GameRecord]:
        """Return the games among them, with their seats."""
        return (game for game, is_game in zip(self._games, self.is_game, strict=True) if is_game)

    def revised(self) -> Iterator[tuple[int, Change]]:
        """Yield the games that no longer stand as they were recorded, with their indices."""
        for index, game in enumerate(self._games):
            if game.live_position != game.first_position and self[index].revised_at is not None:
                yield index, self[index]

    def last_known(self, position: int) -> int:
        """Return the index of the last that was recorded up to a position; -1 if none was."""
        known = [index for index, game in enumerate(self._games) if game.first_position <= position]
        return known[-1] if known else -1

    def _change(self, index: int) -> Change:
        step, game = self._steps[index], self._games[index]
        event = from_json(self._records[game.live_position], cache_strings="keys")
        change = change_of(self.person, step, game, self.scale, event)
        shown = tuple(self.published[index]) if index in self.published else ABSENT
        standing = None if self._standing is None or change.game_id is None else self._standing.game(event)
        change = replace(change, published=shown, game=standing)
        if not self._states:
            return change
        state = self._states[index]
        return replace(change, state=state.decimals, state_exact=state.exact, provisional=state.provisional)


@dataclass(frozen=True, slots=True)
class PlayerChange(Result):
    """A change of somebody's points."""

    player: str
    change: Change = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class History(Answer, RowSequence[Change]):
    """Every change of a player's points on a ladder, in the order of replay; `period` says how far the ladder's games
    are scored by rating periods.
    """

    player: str
    ladder: str
    at: Coordinates
    steps: Course = field(metadata=ROWS, repr=False, hash=False)
    period: PeriodState | Absent = ABSENT
    sums_lists: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def rows(self) -> tuple[Change, ...]:
        """Return every change, made of the `steps` of the course."""
        return self.steps.rows

    def _sequence(self) -> Course:
        """Return the changes, each made when it is read."""
        return self.steps


# the number of changes whose events are read at once
CHUNK_STEPS = 10_000


def changes(connection: Connection, ladders: Ladders, ladder: str) -> Iterator[PlayerChange]:
    """Yield what every game and adjustment of a ladder did to everybody, in replay order.

    Raises `UnknownLadder`, `RuleFailure` before the first one.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream, steps = trace.stream, trace.every_step()
    if stream.ranking.sums_lists:
        return
    while chunk := list(islice(steps, CHUNK_STEPS)):
        games = played(facts, [step for _, step in chunk])
        records = records_of(connection, games)
        for (player, step), game in zip(chunk, games, strict=True):
            name, event = stream.names[player], json.loads(records[game.live_position])
            yield PlayerChange(name, change_of(facts.player_numbers[name], step, game, stream.rule.scale, event))


@dataclass(frozen=True, slots=True)
class RankChange(Result):
    """A player's rank from a moment on, None while they have none, and how many games they had played by then.

    `position` is that of the game or adjustment; None at the end of a day, month or year.
    """

    position: int | None
    occurred_at: datetime
    rank: int | None
    games: int


@dataclass(frozen=True, slots=True)
class Ranks(Answer, RowSequence[RankChange]):
    """A player's rank on a ladder over time, where it changed: looked up after `every` step (a game or an adjustment of
    the ladder, in the order of replay), or at the end of every day, month or year in which there was one.

    Before the first row they have none. `rows` are None for a ladder that is too long.
    """

    player: str
    ladder: str
    at: Coordinates
    every: Literal["step", "day", "month", "year"]
    rows: tuple[RankChange, ...] | None
