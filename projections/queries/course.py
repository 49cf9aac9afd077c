"""A player's course on a ladder: what every game and adjustment did to them, in the order of replay.

All of it is there as numbers; a change, with what its event says, is made when somebody looks at it. So a page that
shows the last of a thousand games makes no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import record_instant
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, live_game
from ratings_ledger.ledger.events.types import corrected_game
from ratings_ledger.ledger.store.log import Log, read_records_at
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.published_lists import published_lists
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.looked_up import LookedUp, games_at
from ratings_ledger.projections.queries.answers_explained import Change, Shown
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.publication import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Ladders, Ranking
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.trace import Step

# the events after which a game no longer stands as it was recorded
REVISIONS = ("game.corrected", "game.reinstated")
WITHOUT_GAME = ('"type":"game.voided"', '"type":"game.reinstated"')


class Course(Sequence[Change]):
    """The changes, in order. Of each, `units` are the points after it in units of 1/`scale`, `instants` is when it was,
    and `is_game` tells a game from an adjustment. `published` has by index what lists showed that is other today, and
    `person` is the number of the player's current id.
    """

    def __init__(
        self, stream: Stream | None = None, person: int = 0, steps: Sequence[Step] = (), games: Sequence[LookedUp] = (),
        records: dict[int, str] | None = None, standing: StandingGames | None = None,
    ) -> None:  # fmt: skip
        self.scale = stream.rule.scale if stream else 1
        self.units = [step.before + step.change for step in steps]
        self.instants = [game.occurred_at for game in games]
        self.is_game = [step.game is not None for step in steps]
        self.published: dict[int, list[Shown]] = {}
        self.person, self._steps, self._games, self._records = person, steps, games, records or {}
        self._standing = standing
        self._made: dict[int, Change] = {}

    def __len__(self) -> int:
        return len(self.units)

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
        """When each was, as a time."""
        return [*map(moment, self.instants)]

    @cached_property
    def rows(self) -> tuple[Change, ...]:
        """All of them."""
        return self[:]

    @cached_property
    def values(self) -> list[Fraction]:
        """The points after each."""
        return [Fraction(units, self.scale) for units in self.units]

    @property
    def start(self) -> Fraction:
        """The points before the first, of a course that has one."""
        return Fraction(self._steps[0].before, self.scale)

    def games(self) -> Iterator[LookedUp]:
        """The games among them, with their seats."""
        return (game for game, is_game in zip(self._games, self.is_game, strict=True) if is_game)

    def revised(self) -> Iterator[tuple[int, Change]]:
        """The games that no longer stand as they were recorded, with their indices."""
        for index, game in enumerate(self._games):
            if game.live_position != game.first_position and self[index].revised_at is not None:
                yield index, self[index]

    def last_known(self, position: int) -> int:
        """The index of the last that was recorded up to a position; -1 if none was."""
        known = [index for index, game in enumerate(self._games) if game.first_position <= position]
        return known[-1] if known else -1

    def _change(self, index: int) -> Change:
        step, game = self._steps[index], self._games[index]
        event = from_json(self._records[game.live_position], cache_strings="keys")
        change = change_of(self.person, step, game, self.scale, event)
        shown = tuple(self.published[index]) if index in self.published else ABSENT
        standing = None if self._standing is None else self._standing.game(event)
        return replace(change, published=shown, game=standing)


def change_of(person: int, step: Step, game: LookedUp, scale: int, event: dict[str, Any]) -> Change:
    """Return what a step did to a person, by the number of their current id, given its event as recorded."""
    place = game.places[game.persons.index(person)] if game.persons else None
    return Change(
        event["position"], event["id"], None if step.game is None else event["data"]["game_id"],
        moment(game.occurred_at),
        place or None,  # some game types have none
        Fraction(step.before, scale), Fraction(step.change, scale), Fraction(step.before + step.change, scale),
        None if step.version is None else step.version.ruleset.name,
        ABSENT if step.game is not None else event["data"]["reason"],
        revised_at=None if event["type"] not in REVISIONS else moment(record_instant(event["recorded_at"])),
    )  # fmt: skip


def played(facts: Facts, steps: Sequence[Step]) -> list[LookedUp]:
    """The games of some steps; an adjustment is one without seats."""
    games = games_at(facts, [step.row for step in steps if step.row is not None])
    return [
        next(games) if step.row is not None else LookedUp(step.position, step.position, step.occurred_at, [], [], [])
        for step in steps
    ]


def records_of(connection: Connection, games: Iterable[LookedUp]) -> dict[int, str]:
    """The records that games stand by, by their positions."""
    return read_records_at(connection, sorted({game.live_position for game in games}))


class StandingGames:
    """The games of some records as they stand: with their players' current ids, and whatever the record leaves out."""

    def __init__(self, connection: Connection, until: int, records: dict[int, str]) -> None:
        self._people = identities(connection, until)
        # a void and a reinstatement do not repeat the game
        names = [
            from_json(record)["data"]["game_id"]
            for record in records.values() if any(kind in record for kind in WITHOUT_GAME)
        ]  # fmt: skip
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
        return self._people.present(data)


def course_of(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    """A player's course; empty for somebody not on the ladder. An annual list has no games of its own.

    `player` is a current id. The last one is kept, since who asks for it asks for more of the same player. Raises
    `UnknownLadder`, `RuleFailure`.
    """
    asked, found = ladders.worked_out.get(("course",), (None, None))
    if asked != (ladder, player):
        found = _course(connection, ladders, ladder, player)
        ladders.worked_out["course",] = (ladder, player), found
    course: Course = found
    return course


def _course(connection: Connection, ladders: Ladders, ladder: str, player: str) -> Course:
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream = trace.stream
    if player not in stream.names or stream.ranking.sums_lists:
        return Course()
    steps = trace.steps(stream.names.index(player))
    games = played(facts, steps)
    records = records_of(connection, games)
    standing = StandingGames(connection, facts.position, records)
    found = Course(stream, facts.player_numbers[player], steps, games, records, standing)
    found.published = _contradicted(connection, ladders, ladder, player, found)
    return found


def _contradicted(
    connection: Connection, ladders: Ladders, ladder: str, player: str, course: Course
) -> dict[int, list[Shown]]:  # fmt: skip
    """The published lists that showed a player differently from today, by the index in the player's course.

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
    """What a list up to then would show for a player today, given their points after what it covers."""
    if ladders.versions(ladder)[0].ranking.running:
        return last
    return _shown(ladders.at(until).standings(ladder), ladders.facts, player)


def _shown(found: Ranking, facts: Facts, player: str) -> Fraction | None:
    """The points of a player, by current id, in standings that may know them by an earlier one."""
    return next((row.value(found.scale) for row in found.rows if facts.current(row.player) == player), None)
