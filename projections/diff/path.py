"""The path of one player on one ladder from one set of coordinates to another, and the causes of the difference.

The facts are added one by one in log order, then comes what is played between two dates, and a different version for
the whole replay last. Each step leads from one snapshot to the next and accounts for the difference between them, so
that the causes add up exactly. Its own part is how much the player's games and adjustments give differently if
everybody comes to them with the points they had before; the rest is the ripple: the player and others come to them with
different points. Events that cannot affect the ladder cost no replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent, find_root
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.validation.identities import club_identities, clubs_of, identities, players_of
from ratings_ledger.projections.diff.affected import (
    affected_by,
    find_first_version,
    have_same_points,
    is_affected,
    read_entries,
)
from ratings_ledger.projections.facts.columns import NONE
from ratings_ledger.projections.facts.decoding import apply_event, decode, note_time, settle_facts
from ratings_ledger.projections.queries.coordinates import Coordinates, UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders, find_versions
from ratings_ledger.projections.replay.arrivals import GameDay, read_game_day, score_arrivals
from ratings_ledger.projections.replay.ladders import (
    Stream,
    StreamAdjustment,
    have_same_state,
    list_partition_values,
    parse_name,
    refuse_name,
)
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.trace import TracePosition
from ratings_ledger.projections.rulesets.versions import Version, newest

NEVER = 2**63
# they move games from one to another, which no game gives
RENAMES = ("player.renamed", "club.renamed")
Moment = tuple[int, int]  # when a game ended, and the position of its first record


class Cause(NamedTuple):
    """What made a difference; `position` is that of its event, None for a different version. The parts sum to it."""

    what: str
    position: int | None
    own: Fraction
    ripple: Fraction = Fraction(0)

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

    @property
    def opening(self) -> Fraction:
        """Return the points that the causes begin with."""
        return self.start if self.before is None else self.before

    @property
    def change(self) -> Fraction:
        """Return the sum of the causes."""
        return (self.start if self.after is None else self.after) - self.opening


def attribute(connection: Connection, ladder: str, player: str, before: Coordinates, after: Coordinates) -> Attribution:
    """Return why a player's points differ between two coordinates.

    Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
    """
    if before.known_at > after.known_at:
        back = attribute(connection, ladder, player, after, before)
        causes = [cause._replace(own=-cause.own, ripple=-cause.ripple) for cause in reversed(back.causes)]
        return back._replace(before=back.after, after=back.before, causes=causes)
    path = _Path(connection, ladder, player, before, after.known_at)
    first = path.state
    causes = [*path.record(after.known_at), *path.play(after.as_of), *path.rescore(after.rules)]
    causes = [cause for cause in causes if cause.own or cause.ripple]
    return Attribution(path.start, first.points, path.state.points, causes, path.facts.left_out)


class Played(NamedTuple):
    """What a rule gets to see of a game, except the points, and what the game gave the player."""

    version: Version
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    change: int
    row: int
    when: GameDay


class PlayerState:
    """A ladder at one place of the path, and which of a player's `ids`, in order of preference, is on it."""

    def __init__(self, ladders: Ladders, stream: Stream, ids: Sequence[str]) -> None:
        """Raises `RuleFailure`."""
        self.facts = ladders.facts
        self.stream = stream
        self.trace = replay(stream)
        self.ids = ids
        points = self._points_of(ladders)
        self.player = next((name for name in ids if name in points), None)
        self.points = None if self.player is None else points[self.player]

    def _points_of(self, ladders: Ladders) -> dict[str, Fraction]:
        """Return the points of the ids that are on the ladder; none is on that of a ruleset that is not published."""
        scale = self.stream.rule.scale
        if self.stream.ranking.running:
            numbers = {name: self._numbers[name] for name in self.ids if name in self._numbers}
            return {name: Fraction(self.trace.points[number], scale) for name, number in numbers.items()}
        is_published = parse_name(self.stream.ladder).ruleset_id in self.facts.rulesets
        rows = ladders.rank(self.trace)[0].rows if is_published else ()
        return {row.player: row.value(scale) for row in rows if row.player in self.ids}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stream.names)}

    def moment(self, row: int) -> Moment:
        """Return when a game ended and was recorded."""
        return self.facts.occurred_at[row], self.facts.first_position[row]

    @property
    def last(self) -> Moment:
        """Return the moment of the last game or adjustment."""
        adjusted = [adjustment.moment for adjustment in self.stream.adjustments]
        return max([*map(self.moment, self.stream.row[-1:]), *adjusted], default=(-NEVER, 0))

    @cached_property
    def played(self) -> dict[Moment, Played]:
        """Return the player's games."""
        number, stream, games = self._numbers.get(self.player or ""), self.stream, {}
        for step in () if number is None else self.trace.steps(number):
            if step.game is not None and step.version is not None and step.row is not None:
                low, high = stream.offsets[step.game], stream.offsets[step.game + 1]
                names = tuple(stream.names[player] for player in stream.players[low:high])
                columns = tuple(tuple(column[low:high]) for column in stream.columns)
                when = read_game_day(self.facts, step.row, step.version)
                games[self.moment(step.row)] = Played(step.version, names, columns, step.change, step.row, when)
        return games

    @cached_property
    def adjusted(self) -> list[StreamAdjustment]:
        """Return the player's adjustments."""
        own = [
            adjustment for adjustment in self.stream.adjustments if self.stream.names[adjustment.player] == self.player
        ]
        return [adjustment for adjustment in own if not adjustment.enters]

    @cached_property
    def closings(self) -> dict[int, int] | None:
        """Return what every closed period gave the player, by its first instant; None where games are scored alone."""
        periods, number = self.stream.periods, self._numbers.get(self.player or "")
        if periods is None or number is None:
            return None if periods is None else {}
        games = {row: game for game, row in enumerate(self.stream.row)}
        closes = [(step.row, step.change) for step in self.trace.steps(number) if step.cause == "period"]
        begins = periods.begin[periods.of_game]
        return {int(begins[games[row]]): change for row, change in closes if row is not None}

    def period_of(self, moment: Moment) -> int:
        """Return the first instant of the closed period in which a game was played; -1 if there is none."""
        periods = self.stream.periods
        if periods is None:
            return NONE
        inside = [at for at in range(len(periods.begin)) if periods.begin[at] <= moment[0] < periods.end[at]]
        return int(periods.begin[inside[0]]) if inside else NONE

    def score_here(self, played: Played, moment: Moment, player: str) -> int:
        """Return what a game would give a player if everybody came to it with the points they have here."""
        before = TracePosition(self.trace, *self.trace.place(self.facts, moment))
        numbers = [self._numbers.get(name) for name in played.names]
        persons = [None if number is None else self.stream.persons[number] for number in numbers]
        people = zip(persons, played.names, strict=True)
        game = played.row, played.when
        scored = score_arrivals(self.facts, before, played.version, game, played.columns, people)
        at = played.names.index(player)
        return scored.after[0][at] - scored.before[0][at]


def own_part(old: PlayerState, new: PlayerState) -> Fraction:
    """Return what the player's games and adjustments give differently in `new`, each with everybody's points as in
    `old`; of rating periods, what those give differently in which the player's games differ.
    """
    units = sum(adjustment.units for adjustment in new.adjusted) - sum(adjustment.units for adjustment in old.adjusted)
    if old.closings is not None and new.closings is not None:
        return Fraction(units + _own_periods(old, new, old.closings, new.closings), new.stream.rule.scale)
    for moment in old.played.keys() | new.played.keys():
        was, now = old.played.get(moment), new.played.get(moment)
        if was is None or now is None or was[:3] != now[:3]:
            units -= 0 if was is None else was.change
            units += 0 if now is None else old.score_here(now, moment, str(new.player))
    return Fraction(units, new.stream.rule.scale)


def _own_periods(old: PlayerState, new: PlayerState, was: Mapping[int, int], now: Mapping[int, int]) -> int:
    """Return what those periods give differently in `new` in which the player's games differ."""
    before, after = ({moment: game[:3] for moment, game in state.played.items()} for state in (old, new))
    differing = {moment for moment in before.keys() | after.keys() if before.get(moment) != after.get(moment)}
    gained: int = sum(now.get(begin, 0) for begin in {new.period_of(moment) for moment in differing})
    return gained - sum(was.get(begin, 0) for begin in {old.period_of(moment) for moment in differing})


class _Path:
    """The way from one set of coordinates to another; `state` is where it has got to."""

    def __init__(self, connection: Connection, ladder: str, player: str, at: Coordinates, ahead: int) -> None:
        self.connection = connection
        self.ladder = ladder
        self.name = parse_name(ladder)
        self.facts = decode(connection, at.known_at, ahead=ahead)
        self.as_of, self.rules = at.as_of, at.rules
        self.first = self._some_version(ahead)
        self.has_clubs = self.first.ruleset.entrant == "club"
        names = club_identities(connection, ahead) if self.has_clubs else identities(connection, ahead)
        self.ids = names.list_ids(player)
        self.start = Fraction(self.first.start, self.first.rule.scale)
        self.is_running = self.first.ranking.running
        self.state = self._at(self._ladders(strict=True))

    def _ladders(self, strict: bool = False) -> Ladders:
        """Return the ladders at the current facts; a version withdrawn on the way no longer scores anything."""
        rulesets = [version.ruleset.name for version in self.facts.rulesets.get(self.name.ruleset_id, ())]
        return Ladders(self.facts.snapshot(), self.as_of, self.rules if strict or self.rules in rulesets else None)

    @property
    def _is_published(self) -> bool:
        return self.name.ruleset_id in self.facts.rulesets.keys() | self.facts.unusable.keys()

    def _some_version(self, ahead: int) -> Version:
        """Return the newest version of the ladder's ruleset; if it is not published yet, or no longer, its first ever.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        version = None
        if self.rules is None and not self._is_published:
            version = find_first_version(self.connection, ahead, self.name.ruleset_id)
        if version is None:
            return newest(find_versions(self.facts, self.ladder, self.rules))
        if reason := refuse_name(self.name, version.ruleset):
            raise UnknownLadder(f"{quote(self.ladder)} is not a ladder: {reason}")
        return version

    @property
    def _versions(self) -> Sequence[Version]:
        return self.facts.rulesets.get(self.name.ruleset_id) or [self.first]

    def _stream(self, ladders: Ladders) -> Stream:
        """Return the ladder's stream, empty if its ruleset is not published."""
        if self._is_published:
            return ladders.stream(self.ladder)
        return Stream(self.ladder, self.first.rule, [self.first])

    def _current(self, name: str) -> str:
        """Return the current id of a player, or of a club on a ladder of clubs."""
        return self.facts.current_club(name) if self.has_clubs else self.facts.current(name)

    def _candidates(self) -> list[str]:
        return [self._current(name) for name in self.ids]

    def _at(self, ladders: Ladders) -> PlayerState:
        return PlayerState(ladders.for_ladder(self.ladder), self._stream(ladders), self._candidates())

    def _go_on(self, ladders: Ladders | None = None) -> tuple[PlayerState, PlayerState, Fraction]:
        """Replay at the current facts: the states before and now, and the difference between them."""
        old, new = self.state, self._at(ladders or self._ladders())
        self.state = new
        points_before, points_after = (self.start if state.points is None else state.points for state in (old, new))
        return old, new, points_after - points_before

    def _step(
        self, what: str, position: int | None, ladders: Ladders, is_theirs: bool = True, may_split: bool = True
    ) -> Cause:
        """Go on to some ladders; of a difference that cannot be split, all is the player's own part or ripple."""
        old, new, total = self._go_on(ladders)
        own = total if is_theirs else Fraction(0)
        may_split = may_split and (old.points is None) == (new.points is None)
        if self.is_running and may_split and have_same_state(old.trace.rated_by, new.trace.rated_by):
            own = own_part(old, new)
        return Cause(what, position, own, total - own)

    def _each(self, what: str, parts: Iterable[tuple[int, int]], total: Fraction) -> Iterator[Cause]:
        """Yield a cause for each (position, units); the first includes the start of a player who joins or leaves."""
        in_log_order, scale = sorted(parts), self.state.stream.rule.scale
        rest = total - Fraction(sum(units for _, units in in_log_order), scale)
        for position, units in in_log_order:
            yield Cause(what, position, Fraction(units, scale) + rest)
            rest = Fraction(0)
        assert not rest, f"{self.ladder}: a difference of {rest} has no cause"

    # -- what was recorded

    def record(self, until: int) -> Iterator[Cause]:
        """Yield the causes among the events up to a position, in log order."""
        in_order = set[int]()  # the positions of games that came in order and are not replayed yet
        last = self.state.last
        for position, record, event in read_entries(self.connection, self.facts.position, until):
            if event is None or not self._may_be_affected(event):
                apply_event(self.facts, position, record)
                continue
            moment = event.occurred_at, position
            if event.type == "game.recorded" and self._runs_on() and moment > last:
                apply_event(self.facts, position, record)
                if self._touches(event):
                    in_order.add(position)
                    last = moment
                continue
            yield from self._in_order(in_order)
            yield from self._disturbed(event, record, is_late=moment < last)
            last = max(last, self.state.last)
        self.facts.position = until
        settle_facts(self.facts)
        yield from self._in_order(in_order)
        yield from self._closed()

    def _closed(self) -> Iterator[Cause]:
        """Yield what the rating periods did that closed by the time at which the last event was recorded."""
        before = self.facts.recorded_until
        note_time(self.facts, self.connection)
        if self.facts.recorded_until != before and self._versions[0].ruleset.period != "game":
            yield self._step("period", None, self._ladders())

    def _in_order(self, positions: set[int]) -> Iterator[Cause]:
        """Yield the player's games among those recorded as they were played: nobody's points before them change."""
        if positions:
            settle_facts(self.facts)
            _, new, total = self._go_on()
            played = ((position, played.change) for (_, position), played in new.played.items())
            yield from self._each("game", [part for part in played if part[0] in positions], total)
            positions.clear()

    def _disturbed(self, event: KnownEvent, record: str, is_late: bool) -> Iterator[Cause]:
        """Yield what an event does to the points of games that were there before it."""
        root = find_root(Log(self.connection), event) or event
        touched, is_theirs = self._touches(event), self._is_theirs(event, root)
        apply_event(self.facts, event.position or 0, record)
        settle_facts(self.facts)
        if not (touched or self._touches(event)):
            return
        ladders = self._ladders()
        follows = self.state.ids == self._candidates()
        if follows and have_same_points(self.state.stream, self._stream(ladders)):
            return
        what = TYPES[event.type].cause or event.type
        if event.type == "game.recorded":
            what = "late game" if is_late else "game"
        is_theirs |= self._is_theirs(event, root)
        yield self._step(what, event.position, ladders, is_theirs, may_split=root.type not in RENAMES)

    def _runs_on(self) -> bool:
        """Tell whether a game played after all others changes only the points of its players."""
        is_by_game = self._versions[0].ruleset.period == "game"
        return self.is_running and is_by_game and not self._carries_over

    @property
    def _carries_over(self) -> bool:
        return any(version.params.carry_over for version in self._versions)

    def _may_be_affected(self, event: KnownEvent) -> bool:
        """Tell whether an event may concern the ladder, as far as one can tell before it is applied."""
        if event.type in ("points.adjusted", "player.seeded") and not self._carries_over:
            return bool(event.data["ladder"] == self.ladder)
        affected = affected_by(self.facts, event.type, event.data)
        return any(is_affected(version, affected) for version in self._versions)

    def _row(self, event: KnownEvent) -> int | None:
        """Return the row of an event's game, NONE before it is recorded; None for other types of events."""
        if event.type == "game.recorded":
            return self.facts.row_of(event.position or 0)
        return self.facts.rows.get(event.data["game_id"], NONE) if event.type in GAME_EVENTS else None

    def _touches(self, event: KnownEvent) -> bool:
        """Tell whether an event that matters is about this ladder, at the current facts."""
        row = self._row(event)
        return row is None or (row != NONE and self._on_ladder(row))

    def _on_ladder(self, row: int) -> bool:
        """Tell whether a game is on the ladder by its labels and date, on one of its months, or an earlier season."""
        if self._carries_over:
            return True
        version = self._versions[0]
        if not version.ranking.sums_lists:
            return self.name.values in list_partition_values(self.facts, row, version.ruleset)
        own = dict(zip(version.ruleset.partition.by, self.name.values, strict=True))
        for months in self.facts.rulesets.get(getattr(version.params, "of", ""), ())[:1]:
            for values in list_partition_values(self.facts, row, months.ruleset):
                month = dict(zip(months.ruleset.partition.by, values, strict=True))
                if {"year": month.pop("month")[:4], **month} == own:
                    return True
        return False

    def _is_theirs(self, event: KnownEvent, root: KnownEvent) -> bool:
        """Tell whether an event is about the player themselves, or about everybody alike."""
        row = self._row(event)
        if row is not None:
            return row != NONE and self._takes_part(row)
        # a club has no accounts, and another id of a player does not concern it
        is_of_club = self.has_clubs and root.type != "points.adjusted"
        players = clubs_of(root) if is_of_club else players_of(root)
        return not players or any(map(self._is_them, players))

    def _is_them(self, player: str) -> bool:
        """Tell whether an id is one of the player's, at the current facts."""
        return self._current(player) in self._candidates()

    def _takes_part(self, row: int) -> bool:
        """Tell whether the player takes part in a game."""
        first = self.facts.start[row]
        participants = range(first, first + self.facts.count[row])
        if self.has_clubs:
            clubs = {self.facts.club_of(participant) for participant in participants} - {None}
            return any(self._is_them(str(club)) for club in clubs)
        return any(self._is_them(self.facts.players[self.facts.player[participant]]) for participant in participants)

    # -- the other axes

    def play(self, as_of: int | None) -> Iterator[Cause]:
        """Yield what was played between two instants."""
        if as_of == self.as_of:
            return
        low, high = sorted(NEVER if instant is None else instant for instant in (self.as_of, as_of))
        is_forward = as_of is None or as_of == high
        what = "played" if is_forward else "not played yet"
        if not self.is_running:
            yield from self._play_one_by_one(what, low, high, as_of, is_forward)
            return
        self.as_of = as_of
        if self._versions[0].ruleset.period != "game":
            yield self._step("period", None, self._ladders())
            return
        old, new, total = self._go_on()
        wider, sign = (new, 1) if is_forward else (old, -1)
        moments = [(moment, played.change) for moment, played in wider.played.items()]
        moments += [((adjustment.occurred_at, adjustment.position), adjustment.units) for adjustment in wider.adjusted]
        yield from self._each(what, [(at[1], sign * units) for at, units in moments if low < at[0] <= high], total)

    def _play_one_by_one(self, what: str, low: int, high: int, as_of: int | None, is_forward: bool) -> Iterator[Cause]:
        """On lists: what each game and adjustment does to the player's points."""
        for instant, entries in sorted(self._between(low, high).items(), reverse=not is_forward):
            for number, (position, is_theirs) in sorted(enumerate(entries), reverse=not is_forward):
                # without what comes at the same time but after it; going backwards without it, too
                later = {behind for behind, _ in entries[number + is_forward :]}
                yield self._step(what, position, self._without(later, instant), is_theirs)
        self.as_of = as_of
        yield self._step(what, None, self._ladders())

    def _between(self, low: int, high: int) -> dict[int, list[tuple[int, bool]]]:
        """Return the ladder's games and adjustments by time: their positions, and whether they are the player's."""
        found: dict[int, list[tuple[int, bool]]] = {}
        for row, instant in enumerate(self.facts.occurred_at):
            if low < instant <= high and self._on_ladder(row):
                found.setdefault(instant, []).append((self.facts.first_position[row], self._takes_part(row)))
        facts = Ladders(self.facts).for_ladder(self.ladder).facts
        for adjustment in facts.adjustments:
            if low < adjustment.occurred_at <= high and adjustment.ladder == self.ladder:
                is_theirs = self._is_them(facts.players[adjustment.player])
                found.setdefault(adjustment.occurred_at, []).append((adjustment.position, is_theirs))
        return {instant: sorted(entries) for instant, entries in found.items()}

    def _without(self, positions: set[int], as_of: int) -> Ladders:
        """Return the ladders at a time without the games and adjustments first recorded at some positions."""
        ladders = self._ladders()
        facts = ladders.facts
        facts.adjustments = [entry for entry in facts.adjustments if entry.position not in positions]
        facts.voided.update(row for position in positions if (row := facts.row_of(position)) != NONE)
        return Ladders(facts, as_of, ladders.rules)

    def rescore(self, rules: str | None) -> Iterator[Cause]:
        """Yield what a different version for the whole replay does. Raises `UnknownLadder`."""
        if rules != self.rules:
            self.rules = rules
            yield self._step("rules", None, self._ladders(strict=True))
        elif rules is not None:
            find_versions(self.facts, self.ladder, rules)  # it may have been withdrawn on the way
