"""Why a player's points on a ladder are not what they were: the causes between two coordinates, adding up exactly.

The facts are added one by one in log order, and each accounts for the difference it makes. Its own part is how much
the player's games and adjustments give differently if everybody comes to them with the points they had before; the
rest is the ripple: the player and others come to them with different points. What is played between two dates comes
next, and a different version for the whole replay last.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed, Unknown
from ratings_ledger.ledger.events.canonical import record_instant
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent, root_of
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import shown
from ratings_ledger.ledger.store.log import (
    Log,
    head,
    known_event,
    known_events,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.identities import identities, players_of
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.diff.affected import (
    affected_by,
    find_first_version,
    have_same_points,
    is_affected,
)
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, settle_facts
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    CoordinateSpec,
    Note,
    UnknownLadder,
    moment,
    times_of,
)
from ratings_ledger.projections.queries.ladders_at import Ladders, refuse_unknown, versions_of
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import FROM, HIDDEN, Answer, Result
from ratings_ledger.projections.replay.containment import RuleFailure, score
from ratings_ledger.projections.replay.ladders import Inserted, Stream, parse_name, partition_values, refuse_name
from ratings_ledger.projections.replay.replay import replay, starting_points
from ratings_ledger.projections.rulesets.versions import Version, newest


@dataclass(frozen=True, slots=True)
class AttributedEnd(Result):
    """A player's points at one of two coordinates, None where they are not on the ladder."""

    at: Coordinates
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class AttributedCause(Result):
    """What made a difference, with its event; `own` and `ripple` sum to the `amount`.

    A different version for all games has no event, nor has what comes out as played between two times.
    """

    cause: str
    position: int | None
    event_id: str | None
    game_id: str | None
    occurred_at: datetime | None
    recorded_at: datetime | None
    by: str | None
    reason: str | None
    own: Fraction
    ripple: Fraction
    amount: Fraction
    what: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class PointsAttributed(Answer):
    """What changed a player's points on a ladder from one place on the axes to another; the causes add up exactly.

    `start` stands in for the points of somebody who is not on it. `contradicted` tells which published lists showed
    other points than a replay does, `left_out` which events do not count, by position, with the reason.
    """

    player: str
    ladder: str
    before: AttributedEnd = field(metadata=FROM)
    to: AttributedEnd
    start: Fraction
    change: Fraction
    causes: tuple[AttributedCause, ...]
    contradicted: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


class Cause(NamedTuple):
    """What made a difference; `position` is that of its event, None for a different version. The parts sum to it."""

    what: str
    position: int | None
    own: Fraction
    ripple: Fraction

    @property
    def amount(self) -> Fraction:
        """Return the difference it made."""
        return self.own + self.ripple


class Attribution(NamedTuple):
    """A player's points at two coordinates, None where they are not on the ladder, and what made the difference.

    Somebody not on the ladder counts as having `start`.
    """

    start: Fraction
    before: Fraction | None
    after: Fraction | None
    causes: list[Cause]
    left_out: dict[int, str]  # the events that do not count, by position, with the reason


def attribute(connection: Connection, ladder: str, player: str, before: Coordinates, after: Coordinates) -> Attribution:
    """Return why a player's points differ between two coordinates.

    Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
    """
    if before.known_at > after.known_at:
        found = attribute(connection, ladder, player, after, before)
        turned = [cause._replace(own=-cause.own, ripple=-cause.ripple) for cause in reversed(found.causes)]
        return found._replace(before=found.after, after=found.before, causes=turned)
    walk = _Walk(connection, ladder, player, before, after.known_at)
    first = walk.world
    causes = [*walk.recorded(after.known_at), *walk.played(after.as_of), *walk.scored(after.rules)]
    causes = [cause for cause in causes if cause.own or cause.ripple]
    return Attribution(walk.start, first.points, walk.world.points, causes, walk.facts.left_out)


class _Walk:
    """The way from one set of coordinates to another; `world` is where it has got to."""

    def __init__(self, connection: Connection, ladder: str, player: str, at: Coordinates, ahead: int) -> None:
        self.connection = connection
        self.ladder = ladder
        self.name = parse_name(ladder)
        self.ids = identities(connection, ahead).asked_first(player)
        self.facts = decode(connection, at.known_at, ahead=ahead)
        self.as_of, self.rules = at.as_of, at.rules
        self.first = self._some_version(ahead)
        self.start = Fraction(self.first.start, self.first.rule.scale)
        self.running_points = self.first.ranking.running
        self.world = self._world(self._ladders(strict=True))

    def _ladders(self, strict: bool = False) -> Ladders:
        """Return the ladders at the current facts; a version withdrawn on the way no longer scores anything."""
        there = [version.ruleset.name for version in self.facts.rulesets.get(self.name.ruleset_id, ())]
        return Ladders(self.facts, self.as_of, self.rules if strict or self.rules in there else None)

    def _some_version(self, ahead: int) -> Version:
        """Return the newest version of the ladder's ruleset; if it is not published yet, or no longer, its first ever.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        if self.rules is not None or self.name.ruleset_id in self.facts.rulesets.keys() | self.facts.unusable.keys():
            return newest(versions_of(self.facts, self.ladder, self.rules))
        version = find_first_version(self.connection, ahead, self.name.ruleset_id)
        if version is None:
            return newest(versions_of(self.facts, self.ladder))
        if reason := refuse_name(self.name, version.ruleset):
            raise UnknownLadder(f"{shown(self.ladder)} is not a ladder: {reason}")
        return version

    @property
    def _versions(self) -> Sequence[Version]:
        return self.facts.rulesets.get(self.name.ruleset_id) or [self.first]

    def _stream(self, ladders: Ladders) -> Stream:
        """Return the ladder's stream, empty if its ruleset is not published."""
        there = self.name.ruleset_id in self.facts.rulesets.keys() | self.facts.unusable.keys()
        return ladders.stream(self.ladder) if there else Stream(self.ladder, self.first.rule, [self.first])

    def _world(self, ladders: Ladders) -> Situation:
        return Situation(ladders, self._stream(ladders), self._candidates())

    def _candidates(self) -> list[str]:
        return [self.facts.current(name) for name in self.ids]

    def _go_on(self, ladders: Ladders | None = None) -> tuple[Situation, Situation, Fraction]:
        """Replay at the current facts: the situations before and now, and the difference between them."""
        old, self.world = self.world, self._world(ladders or self._ladders())
        return old, self.world, self._points(self.world) - self._points(old)

    def _points(self, world: Situation) -> Fraction:
        return self.start if world.points is None else world.points

    # -- what was recorded

    def recorded(self, until: int) -> Iterator[Cause]:
        """Yield the causes among the events up to a position, in log order."""
        running: set[int] = set()  # the positions of games that came in order and are not replayed yet
        last = self._last()
        for page in read_records(self.connection, after=self.facts.position, until=until):
            for position, record in page:
                event = next(known_events([(position, record)]), None)
                if event is None or not self._may_be_affected(event):
                    apply_event(self.facts, position, record)
                    continue
                moment = (event.occurred_at, position)
                if event.type == "game.recorded" and self._runs_on() and moment > last:
                    apply_event(self.facts, position, record)
                    if self._touches(event):
                        running.add(position)
                        last = moment
                    continue
                if running:
                    settle_facts(self.facts)
                    yield from self._in_order(running)
                    running = set()
                yield from self._disturbed(event, record, late=moment < last)
                last = max(last, self._last())
        self.facts.position = until
        settle_facts(self.facts)
        if running:
            yield from self._in_order(running)

    def _runs_on(self) -> bool:
        """Tell whether a game played after all others changes only the points of its players."""
        versions = self._versions
        return self.running_points and not any(version.params.carry_over for version in versions)

    def _last(self) -> Moment:
        """Return the moment of the last game or adjustment on the ladder."""
        adjusted = [(a.occurred_at, a.position) for a in self.world.stream.adjustments]
        return max([*self.world.moments[-1:], *adjusted], default=(-(2**63), 0))

    def _may_be_affected(self, event: KnownEvent) -> bool:
        """Tell whether an event may concern the ladder, as far as one can tell before it is applied."""
        if event.type == "points.adjusted":
            return bool(event.data["ladder"] == self.ladder)
        is_revision = event.type in GAME_EVENTS and event.type != "game.recorded"
        if is_revision and self.facts.rows.get(event.data["game_id"], NONE) == NONE:
            return False  # put in with SQL, about a game that does not exist
        affected = affected_by(self.facts, event.type, event.data)
        return any(is_affected(version, affected) for version in self._versions)

    def _touches(self, event: KnownEvent) -> bool:
        """Tell whether an event that matters is about this ladder, at the current facts."""
        row = self._row(event)
        return row is None or (row != NONE and self._on_ladder(row))

    def _row(self, event: KnownEvent) -> int | None:
        """Return the row of an event's game, NONE before it is recorded; None for other types of events."""
        if event.type not in GAME_EVENTS:
            return None
        if event.type == "game.recorded":
            row = len(self.facts.first_position) - 1
            return row if row >= 0 and self.facts.first_position[row] == event.position else NONE
        return self.facts.rows[event.data["game_id"]]

    def _on_ladder(self, row: int) -> bool:
        """Tell whether a game is on the ladder by its labels and date, on one of its months, or an earlier season."""
        versions = self._versions
        ruleset, params = versions[0].ruleset, versions[0].params
        if any(version.params.carry_over for version in versions):
            return True
        if not versions[0].ranking.sums_lists:
            return self.name.values in partition_values(self.facts, row, ruleset)
        own = dict(zip(ruleset.partition.by, self.name.values, strict=True))
        for months in self.facts.rulesets.get(getattr(params, "of", ""), ())[:1]:
            for values in partition_values(self.facts, row, months.ruleset):
                month = dict(zip(months.ruleset.partition.by, values, strict=True))
                if {"year": month.pop("month")[:4], **month} == own:
                    return True
        return False

    def _in_order(self, positions: set[int]) -> Iterator[Cause]:
        """Yield the player's games among those recorded as they were played: nobody's points before them change."""
        _, new, total = self._go_on()
        parts = [(moment[1], played.change) for moment, played in new.played.items() if moment[1] in positions]
        yield from self._each("game", parts, total)

    def _each(self, what: str, parts: list[tuple[int, int]], total: Fraction) -> Iterator[Cause]:
        """Yield a cause for each (position, units); the first includes the start of a player who joins or leaves."""
        scale = self.world.stream.rule.scale
        rest = total - Fraction(sum(units for _, units in parts), scale)
        for position, units in sorted(parts):
            yield Cause(what, position, Fraction(units, scale) + rest, Fraction(0))
            rest = Fraction(0)
        assert not rest, f"{self.ladder}: a difference of {rest} has no cause"

    def _disturbed(self, event: KnownEvent, record: str, late: bool) -> Iterator[Cause]:
        """Yield what an event does to the points of games that were there before it."""
        root = root_of(Log(self.connection), event) or event
        there, theirs = self._touches(event), self._is_theirs(event, root)
        apply_event(self.facts, event.position or 0, record)
        settle_facts(self.facts)
        if not (there or self._touches(event)):
            return
        theirs |= self._is_theirs(event, root)
        follows = self.world.candidates == self._candidates()
        if follows and have_same_points(self.world.stream, self._stream(self._ladders())):
            return
        old, new, total = self._go_on()
        comes_or_goes = (old.points is None) != (new.points is None)
        if self.running_points and root.type != "player.renamed" and not comes_or_goes:
            own = own_part(old, new)
        else:
            own = total if theirs else Fraction(0)
        recorded = "late game" if late else "game"
        what = recorded if event.type == "game.recorded" else TYPES[event.type].cause or event.type
        yield Cause(what, event.position, own, total - own)

    def _is_theirs(self, event: KnownEvent, root: KnownEvent) -> bool:
        """Tell whether an event is about the player themselves, or about everybody alike."""
        row = self._row(event)
        if row is not None:
            return row >= 0 and self._takes_part(row)
        players = players_of(root)
        return not players or any(self._is_them(player) for player in players)

    def _is_them(self, player: str) -> bool:
        """Tell whether an id is one of the player's, at the current facts."""
        return self.facts.current(player) in self._candidates()

    def _takes_part(self, row: int) -> bool:
        """Tell whether the player takes part in a game."""
        first = self.facts.start[row]
        participants = self.facts.player[first : first + self.facts.count[row]]
        return any(self._is_them(self.facts.players[number]) for number in participants)

    # -- the other axes

    def played(self, as_of: int | None) -> Iterator[Cause]:
        """Yield what was played between two instants."""
        if as_of == self.as_of:
            return
        low, high = sorted((_or_never(self.as_of), _or_never(as_of)))
        forward = _or_never(as_of) == high
        what = "played" if forward else "not played yet"
        if not self.running_points:
            yield from self._one_by_one(what, low, high, as_of, forward)
            return
        self.as_of = as_of
        old, new, total = self._go_on()
        wider, sign = (new, 1) if forward else (old, -1)
        games = [(moment, played.change) for moment, played in wider.played.items()]
        moments = games + [((a.occurred_at, a.position), a.units) for a in wider.adjusted]
        parts = [(moment[1], sign * units) for moment, units in moments if low < moment[0] <= high]
        yield from self._each(what, parts, total)

    def _one_by_one(self, what: str, low: int, high: int, as_of: int | None, forward: bool) -> Iterator[Cause]:
        """On lists: what each game and adjustment does to the player's points."""
        for instant, those in sorted(self._between(low, high).items(), reverse=not forward):
            for number, (position, theirs) in sorted(enumerate(those), reverse=not forward):
                # without what comes at the same time but after it; going backwards without it, too
                later = {behind for behind, _ in those[number + forward :]}
                _, _, total = self._go_on(self._without(later, instant))
                yield Cause(what, position, total if theirs else Fraction(0), Fraction(0) if theirs else total)
        self.as_of = as_of
        _, _, total = self._go_on()
        yield Cause(what, None, total, Fraction(0))

    def _between(self, low: int, high: int) -> dict[int, list[tuple[int, bool]]]:
        """Return the ladder's games and adjustments by time: their positions, and whether they are the player's."""
        found: dict[int, list[tuple[int, bool]]] = {}
        for row, instant in enumerate(self.facts.occurred_at):
            if low < instant <= high and self._on_ladder(row):
                found.setdefault(instant, []).append((self.facts.first_position[row], self._takes_part(row)))
        for adjustment in self.facts.adjustments:
            if low < adjustment.occurred_at <= high and adjustment.ladder == self.ladder:
                theirs = self._is_them(self.facts.players[adjustment.player])
                found.setdefault(adjustment.occurred_at, []).append((adjustment.position, theirs))
        return {instant: sorted(those) for instant, those in found.items()}

    def _without(self, positions: set[int], as_of: int) -> Ladders:
        """Return the ladders at a time without the games and adjustments first recorded at some positions."""
        facts = self.facts.snapshot()
        facts.adjustments = [entry for entry in facts.adjustments if entry.position not in positions]
        for row, position in enumerate(facts.first_position) if positions else ():
            if position in positions:
                facts.voided.add(row)
        return Ladders(facts, as_of, self._ladders().rules)

    def scored(self, rules: str | None) -> Iterator[Cause]:
        """Yield what a different version for the whole replay does. Raises `UnknownLadder`."""
        if rules == self.rules:
            if rules is not None:
                versions_of(self.facts, self.ladder, rules)  # it may have been withdrawn on the way
            return
        self.rules = rules
        old, new, total = self._go_on(self._ladders(strict=True))
        comes_or_goes = (old.points is None) != (new.points is None)
        own = own_part(old, new) if self.running_points and not comes_or_goes else total
        yield Cause("rules", None, own, total - own)


def _or_never(as_of: int | None) -> int:
    return 2**63 if as_of is None else as_of


Moment = tuple[int, int]  # when a game ended, and the position of its first record


class Played(NamedTuple):
    """What a rule gets to see of a game, except the points, and what the game gave the player."""

    version: Version
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    change: int
    row: int


class Situation:
    """A ladder replayed, and which of the `candidates` (ids in order of preference) is on it.

    Nobody is on it if its ruleset is not published.
    """

    def __init__(self, ladders: Ladders, stream: Stream, candidates: Iterable[str]) -> None:
        """Raises `RuleFailure`."""
        facts = ladders.facts
        self.stream = stream
        self.candidates = list(candidates)
        self.trace = replay(stream)
        had = self._had(ladders)
        self.player = next((name for name in self.candidates if name in had), None)
        self.points = None if self.player is None else had[self.player]
        self.moments: list[Moment] = [(facts.occurred_at[row], facts.first_position[row]) for row in stream.row]

    def _had(self, ladders: Ladders) -> Mapping[str, Fraction]:
        """Return the points of the candidates who are on the ladder."""
        if parse_name(self.stream.ladder).ruleset_id not in ladders.facts.rulesets:
            return {}
        scale = self.stream.rule.scale
        if self.stream.ranking.running:
            there = [name for name in self.candidates if name in self._numbers]
            return {name: Fraction(self.trace.points[self._numbers[name]], scale) for name in there}
        rows = ladders.ranked(self.trace)[0].rows
        return {row.player: row.value(scale) for row in rows}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stream.names)}

    @cached_property
    def played(self) -> dict[Moment, Played]:
        """Return the player's games."""
        number, stream, games = self._numbers.get(self.player or ""), self.stream, {}
        for step in () if number is None else self.trace.steps(number):
            if step.game is not None and step.version is not None and step.row is not None:
                low, high = stream.offsets[step.game], stream.offsets[step.game + 1]
                names = tuple(stream.names[player] for player in stream.players[low:high])
                columns = tuple(tuple(column[low:high]) for column in stream.columns)
                games[self.moments[step.game]] = Played(step.version, names, columns, step.change, step.row)
        return games

    @cached_property
    def adjusted(self) -> list[Inserted]:
        """Return the player's adjustments."""
        return [a for a in self.stream.adjustments if self.stream.names[a.player] == self.player]

    def points_before(self, name: str, moment: Moment, version: Version) -> int:
        """Return what a player had just before a moment, in units; their start if not on the ladder yet."""
        number = self._numbers.get(name)
        if number is not None:
            adjustments = self.stream.adjustments
            place = (
                bisect_left(self.moments, moment),
                bisect_left(adjustments, moment, key=lambda a: (a.occurred_at, a.position)),
            )
            if (points := self.trace.points_of(self.stream.persons[number], *place)) is not None:
                return points
        return starting_points(name, version, self.trace.carried)


def own_part(old: Situation, new: Situation) -> Fraction:
    """Return what the player's games and adjustments give differently in `new`, each with everybody's points as in
    `old`.
    """
    units = sum(a.units for a in new.adjusted) - sum(a.units for a in old.adjusted)
    for when in old.played.keys() | new.played.keys():
        was, now = old.played.get(when), new.played.get(when)
        if was is not None and now is not None and was[:3] == now[:3]:
            continue
        if was is not None:
            units -= was.change
        if now is not None:
            units += _scored(old, now, when, str(new.player))
    return Fraction(units, new.stream.rule.scale)


def _scored(world: Situation, played: Played, moment: Moment, player: str) -> int:
    """Return what a game would give a player if everybody came to it with the points they have in a situation."""
    version = played.version
    points = [world.points_before(name, moment, version) for name in played.names]
    _, change = score(version, world.stream.ladder, played.row, points, played.columns)
    return change[played.names.index(player)]


Decode = Callable[[Connection, int], Facts]


def attributed(
    connection: Connection,
    ladder: str,
    player: str,
    before: CoordinateSpec,
    after: CoordinateSpec,
    note: Note,
    decode: Decode,
) -> PointsAttributed:
    """Return what changed a player's points on a ladder between two coordinates.

    Raises `BadArgument`, `Unknown` for somebody who is not recorded and what is not published, `RuleFailed`.
    """
    try:
        places = _places(connection, ladder, before, after, note, decode)
        found = attribute(connection, ladder, player, *places)
    except RuleFailure as problem:
        told = f"{problem.ladder}: the rule failed on the way: {problem}"
        raise RuleFailed(told, problem.ladder) from None
    ends = zip((before, after), places, (found.before, found.after), strict=True)
    contradicted = [
        told
        for asked, at, points in ends
        if asked.published
        for told in _contradicted(connection, ladder, player, at, points, decode)
    ]
    if found.before is None and found.after is None:
        refuse_unknown(decode(connection, head(connection).position), player)
    one, other = (
        AttributedEnd(at._replace(left_out=tuple(p for p in found.left_out if p <= at.known_at)), points)
        for at, points in zip(places, (found.before, found.after), strict=True)
    )
    had, has = (found.start if end.points is None else end.points for end in (one, other))
    causes = _with_events(connection, found)
    return PointsAttributed(
        player,
        ladder,
        one,
        other,
        found.start,
        has - had,
        causes,
        contradicted=tuple(contradicted),
        left_out=found.left_out,
        times=times_of(connection),
    )


def _places(
    connection: Connection, ladder: str, before: CoordinateSpec, after: CoordinateSpec, note: Note, decode: Decode
) -> list[Coordinates]:
    """Both coordinates; a published list lends its `as_of` to the other side if that has none."""
    places = []
    for asked in (before, after):
        if not asked.published:
            places.append(asked.resolve(connection, ladder, note))
            continue
        lists = asked.lists(connection, note, ladder)
        if not lists:
            raise Unknown(None, f"{ladder} was not published ({asked.text})")
        one = max(lists, key=lambda one: one.position)
        places.append(Coordinates(_compared_at(connection, one, decode), one.known_at, None))
    if before.published and not after.published and after.as_of is None:
        places[1] = places[1]._replace(as_of=places[0].as_of)
    if after.published and not before.published and before.as_of is None:
        places[0] = places[0]._replace(as_of=places[1].as_of)
    return places


def _compared_at(connection: Connection, one: PublishedList, decode: Decode) -> int | None:
    """Up to when a list is compared with what would come out today. Raises `RulesetUnusable`."""
    versions = versions_of(decode(connection, one.known_at), one.ladder, None)
    return compared_at(one, versions[0].ruleset)


def _contradicted(
    connection: Connection, ladder: str, player: str, at: Coordinates, points: Fraction | None, decode: Decode
) -> Iterator[str]:
    """Yield which lists showed points that differ from a replay of their coordinates; `verify` reports them."""
    for one in published_lists(connection, head(connection).position, ladder):
        if (_compared_at(connection, one, decode), one.known_at) == (at.as_of, at.known_at):
            listed, ids = as_published(connection, one), identities(connection).ids(player)
            then = next((row.value(listed.scale) for row in listed.rows if row.player in ids), None)
            if then != points:
                told = "nothing" if then is None else decimal(then.numerator, then.denominator)
                yield f"the list at position {one.position} shows {told}; see: ratings verify"


def causes_between(
    connection: Connection, ladder: str, player: str, before: Coordinates, after: Coordinates
) -> tuple[Fraction, tuple[AttributedCause, ...]]:
    """Return what a player had at a place, their start if they were not on the ladder; and what changed that until
    another one, with the events. Raises `UnknownLadder`, `RuleFailure`.
    """
    found = attribute(connection, ladder, player, before, after)
    return found.start if found.before is None else found.before, _with_events(connection, found)


def _with_events(connection: Connection, found: Attribution) -> tuple[AttributedCause, ...]:
    """Return the causes with what their events say; a withdrawal is named like the event that it withdraws."""
    records = read_records_at(connection, [cause.position for cause in found.causes if cause.position is not None])
    log = Log(connection)
    named = []
    for cause in found.causes:
        record = records.get(cause.position or 0)
        event = None if record is None else known_event(cause.position or 0, record)
        root = None if event is None else root_of(log, event) or event
        named.append(_with_event(cause, None if record is None else json.loads(record), root))
    return tuple(named)


def _with_event(cause: Cause, event: dict[str, Any] | None, root: KnownEvent | None) -> AttributedCause:
    """Return a cause with what its event says, named after the event that it is ultimately about."""
    if event is None or root is None:
        return AttributedCause(
            cause.what, cause.position, None, None, None, None, None, None, cause.own, cause.ripple, cause.amount, ""
        )
    occurred_at, recorded_at = (moment(record_instant(event[name])) for name in ("occurred_at", "recorded_at"))
    return AttributedCause(
        cause.what,
        cause.position,
        event["id"],
        event["data"].get("game_id"),
        occurred_at,
        recorded_at,
        event["by"],
        event["data"].get("reason"),
        cause.own,
        cause.ripple,
        cause.amount,
        _what(root),
    )


def _what(event: KnownEvent) -> str:
    """Return what an event is about, in a few words."""
    data = event.data
    if "game_id" in data:
        return str(data["game_id"])
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event.type == "points.adjusted":
        return f"{data['points']} to {data['player']}"
    return str(data.get("id") or data.get("player") or data.get("league") or event.event_id)
