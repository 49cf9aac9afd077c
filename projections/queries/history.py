"""Build a player's history on a ladder: every change of the player's points.

A course holds all changes as numbers, and builds a `Change` with the content of its event on demand. So a page that
shows only the last of a thousand games builds a single `Change`.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, overload

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.lookups import GameFacts
from ratings_ledger.projections.queries.coordinates import Coordinates, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo
from ratings_ledger.projections.queries.live_games import LiveGames, load_games, read_game_records
from ratings_ledger.projections.queries.published_lists import find_comparison_time, load_published_points
from ratings_ledger.projections.queries.rankings import Ranking
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
from ratings_ledger.projections.queries.standings import PeriodState
from ratings_ledger.projections.queries.visible_states import DEVIATION, VisibleState, build_visible_state_after
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Step

# the types of the last event about a live game that was changed after its first record
REVISION_TYPES = ("game.corrected", "game.reinstated")

# descriptions of the causes of changes other than games and adjustments
CAUSES = {
    "season": "a new season",
    "period": "the rating period closed",
    "version": "a version of the ruleset took effect",
}


def build_change(person: int, step: Step, game: GameFacts, scale: int, event: dict[str, Any]) -> Change:
    """Return a person's change in a step of the replay.

    Args:
        person: the number of the person's current id.
        step: the step.
        game: the entry of the step from `load_games`.
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
    states = [build_visible_state_after(version, ladder, state, count) for (state, version), count in states_and_games]
    course = Course(stream, facts.player_numbers[player], steps, games, records, live_games, states)
    course.published = _find_contradicting_lists(connection, ladders, ladder, player, course)
    return course


def _find_contradicting_lists(
    connection: Connection, ladders: Ladders, ladder: str, player: str, course: Course
) -> dict[int, list[ShownPoints]]:
    """Return the published lists that showed other points of a player than they would today, by index in the course.

    The index is that of the last change that a list covers: the last one played by its `as_of` or, for a list of a
    whole period, the last one recorded before the list was computed. A list that covers no change has the index 0.
    """
    by_index: dict[int, list[ShownPoints]] = {}
    facts, ruleset = ladders.facts, ladders.versions(ladder)[0].ruleset
    for entry in read_published_lists(connection, facts.position, ladder):
        until = find_comparison_time(entry, ruleset)
        if ladders.as_of is not None and (until is None or until > ladders.as_of):
            continue
        last_index = (
            course.find_last_known(entry.known_at) if until is None else bisect_right(course.instants, until) - 1
        )
        listed_points = load_published_points(connection, entry, player, ruleset.entrant, facts.position)
        current_points = (
            _compute_points_today(ladders, ladder, player, until, course.values[last_index])
            if last_index >= 0
            else None
        )
        if listed_points != current_points:
            as_of = None if entry.as_of is None else to_datetime(entry.as_of)
            by_index.setdefault(max(last_index, 0), []).append(ShownPoints(entry.position, as_of, listed_points))
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
    those of the player's first game in the season or last game in the period, or of the version.

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
        games: Sequence[GameFacts] = (),
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

    def games(self) -> Iterator[GameFacts]:
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

    `period` describes the ladder's rating periods. `running` tells whether the ladder ranks running points, and
    `sums_lists` whether it is an annual list, which has no changes of its own.
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
