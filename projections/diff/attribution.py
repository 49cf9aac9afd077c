"""Attribute the difference between a player's points at two sets of coordinates to causes with exact amounts.

A path leads from one set of coordinates to the other. It adds events in log order, then moves `as_of`, then changes the
version for the whole replay. Each stage of the path accounts for the difference between one `PathPoint` and the next,
so the causes add up exactly. The own part of a stage is the change in the player's games and adjustments if every
player keeps the points from before the stage. The rest is the ripple: the player and their opponents now enter games
with different points. Events that cannot affect the ladder need no replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent, find_root
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.validation.identities import list_clubs, list_players, read_club_identities, read_identities
from ratings_ledger.projections.diff.affected import (
    find_affected_groups,
    find_first_version,
    have_same_points,
    is_affected,
    read_entries,
)
from ratings_ledger.projections.facts.applying import apply_event, settle_facts
from ratings_ledger.projections.facts.columns import NONE
from ratings_ledger.projections.facts.decoding import decode, set_recorded_until
from ratings_ledger.projections.queries.coordinates import Coordinates, check_ladder_name, find_versions
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.states_before_games import GameDay, read_game_day, score_single_game
from ratings_ledger.projections.replay.streams import (
    Stream,
    StreamAdjustment,
    find_seeded_states,
    have_same_state_columns,
    name_ladders_of_game,
)
from ratings_ledger.projections.replay.trace import Trace, TracePosition
from ratings_ledger.projections.rulesets.versions import Version, newest, split_ladder_name

NEVER = 2**63  # an instant after all events
# the kinds of a game or adjustment between two `as_of`s: it is added, or left out
PLAYED, NOT_PLAYED = "played", "not played yet"
# a rename moves whole games from one player to another, so its effect cannot be split into games
RENAME_TYPES = ("player.renamed", "club.renamed")
Moment = tuple[int, int]  # the time of a game or an adjustment, and the position of its first record


class Cause(NamedTuple):
    """A cause of a difference: its kind, the position of its event (None without one), and its two parts."""

    kind: str
    position: int | None
    own: Fraction
    ripple: Fraction = Fraction(0)

    @property
    def amount(self) -> Fraction:
        """Return the cause's whole contribution to the difference."""
        return self.own + self.ripple

    def negate(self) -> Cause:
        """Return the cause of the opposite difference; a game that was played is then one that is not played yet."""
        kind = {PLAYED: NOT_PLAYED, NOT_PLAYED: PLAYED}.get(self.kind, self.kind)
        return self._replace(kind=kind, own=-self.own, ripple=-self.ripple)


class Attribution(NamedTuple):
    """A player's points at two sets of coordinates, and the causes of the difference.

    `before` and `after` are None where the player is not on the ladder; `start` then replaces them in sums. `left_out`
    has the reason for each ignored event, by position.
    """

    start: Fraction
    before: Fraction | None
    after: Fraction | None
    causes: list[Cause]
    left_out: dict[int, str]

    @property
    def opening(self) -> Fraction:
        """Return the points to which the causes are added."""
        return self.start if self.before is None else self.before

    @property
    def change(self) -> Fraction:
        """Return the sum of the causes."""
        return (self.start if self.after is None else self.after) - self.opening


def attribute_difference(
    connection: Connection, ladder: str, player: str, before: Coordinates, after: Coordinates
) -> Attribution:
    """Attribute the difference between a player's points at two sets of coordinates to its causes.

    Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
    """
    if before.known_at > after.known_at:
        forward = attribute_difference(connection, ladder, player, after, before)
        causes = [cause.negate() for cause in reversed(forward.causes)]
        return forward._replace(before=forward.after, after=forward.before, causes=causes)
    path = _Path(connection, ladder, player, before, after.known_at)
    initial_point = path.point
    causes = [*path.add_events(after.known_at), *path.change_as_of(after.as_of), *path.change_rules(after.rules)]
    causes = [cause for cause in causes if cause.own or cause.ripple]
    return Attribution(
        start=path.start,
        before=initial_point.points,
        after=path.point.points,
        causes=causes,
        left_out=path.facts.left_out,
    )


class ReplayedGame(NamedTuple):
    """The inputs of the rule for a game, except the points before it, and the player's resulting `change` in units.

    `row` is the game's row in the facts.
    """

    version: Version
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    change: int
    row: int
    day: GameDay

    @property
    def inputs(self) -> tuple[Version, tuple[str, ...], tuple[tuple[int, ...], ...]]:
        """Return what decides the change, except for the points."""
        return self.version, self.names, self.columns


class PathPoint:
    """One point of the path: the replayed ladder, and the player's points and games on it.

    The player is the first of `ids` that is on the ladder.
    """

    def __init__(self, ladders: Ladders, stream: Stream, ids: Sequence[str]) -> None:
        """Replay the stream. Raises `RuleFailure`."""
        self.facts = ladders.facts
        self.stream = stream
        self.trace = replay(stream)
        # copies of the trace whose entry states include a version that this point lacks, by the version's name
        self._traces: dict[str, Trace] = {}
        self.ids = ids
        points = self._find_points(ladders)
        self.player = next((name for name in ids if name in points), None)
        self.points = None if self.player is None else points[self.player]

    def _find_points(self, ladders: Ladders) -> dict[str, Fraction]:
        """Return the points of the player's ids on the ladder; the ladder is empty if its ruleset is not published."""
        scale = self.stream.rule.scale
        if self.stream.ranking.running:
            numbers = {name: self._numbers[name] for name in self.ids if name in self._numbers}
            return {name: Fraction(self.trace.points[number], scale) for name, number in numbers.items()}
        rows = ladders.rank(self.trace)[0].rows if self.facts.versions_of(self.stream.ladder) else ()
        return {row.player: row.exact_points(scale) for row in rows if row.player in self.ids}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stream.names)}

    def moment(self, row: int) -> Moment:
        """Return the time at which a game ended, and the position of its first record."""
        return self.facts.occurred_at[row], self.facts.first_position[row]

    @property
    def last_moment(self) -> Moment:
        """Return the moment of the last game or adjustment."""
        adjustments = [adjustment.moment for adjustment in self.stream.adjustments]
        return max([*map(self.moment, self.stream.rows[-1:]), *adjustments], default=(-NEVER, 0))

    @cached_property
    def games(self) -> dict[Moment, ReplayedGame]:
        """Return the player's games, by moment."""
        number, stream, games = self._numbers.get(self.player or ""), self.stream, {}
        for step in () if number is None else self.trace.steps(number):
            if step.game is not None and step.version is not None and step.row is not None:
                low, high = stream.offsets[step.game], stream.offsets[step.game + 1]
                names = tuple(stream.names[player] for player in stream.players[low:high])
                columns = tuple(tuple(column[low:high]) for column in stream.columns)
                day = read_game_day(self.facts, step.row, step.version)
                games[self.moment(step.row)] = ReplayedGame(
                    version=step.version, names=names, columns=columns, change=step.change, row=step.row, day=day
                )
        return games

    @cached_property
    def adjustments(self) -> list[StreamAdjustment]:
        """Return the player's adjustments."""
        names = self.stream.names
        return [
            adjustment
            for adjustment in self.stream.adjustments
            if names[adjustment.player] == self.player and not adjustment.is_version_entry
        ]

    @cached_property
    def period_changes(self) -> dict[int, int] | None:
        """Return the player's change in each closed period, by the period's first instant; None without periods."""
        periods, number = self.stream.periods, self._numbers.get(self.player or "")
        if periods is None:
            return None
        if number is None:
            return {}
        game_by_row = {row: game for game, row in enumerate(self.stream.rows)}
        begins = periods.begin[periods.of_game]
        return {
            int(begins[game_by_row[step.row]]): step.change
            for step in self.trace.steps(number)
            if step.cause == "period" and step.row is not None
        }

    def find_period(self, moment: Moment) -> int:
        """Return the first instant of the closed period that contains a game; NONE without such a period."""
        periods = self.stream.periods
        if periods is None:
            return NONE
        spans = zip(periods.begin, periods.end, strict=True)
        return next((int(begin) for begin, end in spans if begin <= moment[0] < end), NONE)

    def score_game(self, game: ReplayedGame, moment: Moment, player: str) -> int:
        """Score a game with the points that players have at this point; return `player`'s change, in units."""
        trace = self._find_trace(game.version)
        before = TracePosition(trace, *trace.count_before(self.facts, moment))
        numbers = [self._numbers.get(name) for name in game.names]
        person_numbers = [None if number is None else self.stream.persons[number] for number in numbers]
        players = zip(person_numbers, game.names, strict=True)
        scored = score_single_game(self.facts, before, game.version, (game.row, game.day), game.columns, players)
        index = game.names.index(player)
        return scored.after[0][index] - scored.before[0][index]

    def _find_trace(self, version: Version) -> Trace:
        """Return the trace; for a version that this point lacks, a copy with the seeded players' states under it."""
        name, versions = version.ruleset.name, self.stream.versions
        if any(known_version.ruleset.name == name for known_version in versions):
            return self.trace
        if name not in self._traces:
            seeded = find_seeded_states(self.facts, self.stream.ladder, [*versions, version])
            entry_states = {
                player: entry._replace(seed=seeded.get(player)) if entry.seeded is None else seeded[player]
                for player, entry in self.trace.entry_states.items()
            }
            self._traces[name] = replace(self.trace, entry_states=entry_states)
        return self._traces[name]


def compute_own_part(old: PathPoint, new: PathPoint) -> Fraction:
    """Return the own part of the difference between two path points: the change in the player's games and adjustments.

    Every game is scored with the points in `old`. With rating periods, the own part is the change in the periods in
    which the player's games differ.
    """
    units = sum(adjustment.units for adjustment in new.adjustments)
    units -= sum(adjustment.units for adjustment in old.adjustments)
    if old.period_changes is not None and new.period_changes is not None:
        return Fraction(
            units + _compute_own_periods(old, new, old.period_changes, new.period_changes), new.stream.rule.scale
        )
    for moment in old.games.keys() | new.games.keys():
        old_game, new_game = old.games.get(moment), new.games.get(moment)
        if old_game is None or new_game is None or old_game.inputs != new_game.inputs:
            units -= 0 if old_game is None else old_game.change
            units += 0 if new_game is None else old.score_game(new_game, moment, str(new.player))
    return Fraction(units, new.stream.rule.scale)


def _compute_own_periods(
    old: PathPoint, new: PathPoint, old_changes: Mapping[int, int], new_changes: Mapping[int, int]
) -> int:
    """Return the change, in units, in the periods in which the player's games differ."""
    before, after = ({moment: game.inputs for moment, game in point.games.items()} for point in (old, new))
    moments = {moment for moment in before.keys() | after.keys() if before.get(moment) != after.get(moment)}
    new_sum: int = sum(new_changes.get(begin, 0) for begin in {new.find_period(moment) for moment in moments})
    return new_sum - sum(old_changes.get(begin, 0) for begin in {old.find_period(moment) for moment in moments})


class _Path:
    """The path from one set of coordinates to another; `point` is the point reached so far."""

    def __init__(self, connection: Connection, ladder: str, player: str, at: Coordinates, until: int) -> None:
        self.connection = connection
        self.ladder = ladder
        self.facts = decode(connection, at.known_at, ahead=until)
        self.as_of, self.rules = at.as_of, at.rules
        self.version = self._find_version(until)
        self.has_clubs = self.version.ruleset.entrant == "club"
        identities = read_club_identities(connection, until) if self.has_clubs else read_identities(connection, until)
        self.ids = identities.list_ids(player)
        self.start = Fraction(self.version.start, self.version.rule.scale)
        self.has_running_points = self.version.ranking.running
        self.point = self._replay(self._build_ladders(strict=True))

    def _build_ladders(self, strict: bool = False) -> Ladders:
        """Build the ladders from the current facts. Unless `strict`, ignore `rules` if it is not published."""
        rulesets = [version.ruleset.name for version in self.facts.versions_of(self.ladder)]
        return Ladders(self.facts.detached_copy(), self.as_of, self.rules if strict or self.rules in rulesets else None)

    def _find_version(self, until: int) -> Version:
        """Return the newest version of the ladder's ruleset, or the version that `rules` names.

        Without `rules`, if no version is published at the current coordinates, return the first usable one.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        version = None
        if self.rules is None and not self.facts.is_published(self.ladder):
            version = find_first_version(self.connection, until, self.ladder)
        if version is None:
            return newest(find_versions(self.facts, self.ladder, self.rules))
        check_ladder_name(self.ladder, version.ruleset)
        return version

    @property
    def _versions(self) -> Sequence[Version]:
        return self.facts.versions_of(self.ladder) or [self.version]

    def _load_stream(self, ladders: Ladders) -> Stream:
        """Load the ladder's stream, which is empty if its ruleset is not published."""
        if self.facts.is_published(self.ladder):
            return ladders.stream(self.ladder)
        return Stream(self.ladder, self.version.rule, [self.version])

    def _resolve_id(self, name: str) -> str:
        """Return the current id of a player or, on a ladder of clubs, of a club."""
        return self.facts.current_club(name) if self.has_clubs else self.facts.current(name)

    def _list_current_ids(self) -> list[str]:
        return [self._resolve_id(name) for name in self.ids]

    def _replay(self, ladders: Ladders) -> PathPoint:
        return PathPoint(ladders.for_ladder(self.ladder), self._load_stream(ladders), self._list_current_ids())

    def _advance(self, ladders: Ladders | None = None) -> tuple[PathPoint, PathPoint, Fraction]:
        """Replay the ladder, by default from the current facts.

        Return the old and the new point of the path, and the difference in the player's rating points.
        """
        old, new = self.point, self._replay(ladders or self._build_ladders())
        self.point = new
        points_before, points_after = (self.start if point.points is None else point.points for point in (old, new))
        return old, new, points_after - points_before

    def _attribute_step(
        self, kind: str, position: int | None, ladders: Ladders, *, is_own: bool = True, may_split: bool = True
    ) -> Cause:
        """Advance to the given ladders, and return the cause of the difference.

        A difference that cannot be split belongs wholly to the own part if `is_own`, else wholly to the ripple.
        """
        old, new, total = self._advance(ladders)
        own = total if is_own else Fraction(0)
        may_split = may_split and (old.points is None) == (new.points is None)
        if (
            self.has_running_points
            and may_split
            and have_same_state_columns(old.trace.final_version, new.trace.final_version)
        ):
            own = compute_own_part(old, new)
        return Cause(kind, position, own, total - own)

    def _list_causes(self, kind: str, parts: Iterable[tuple[int, int]], total: Fraction) -> Iterator[Cause]:
        """Yield a cause for each (position, units); the first also gets the part of `total` that the units leave out.

        That part is the difference between a player's own start and `self.start`, if the player joins or leaves.
        """
        in_log_order, scale = sorted(parts), self.point.stream.rule.scale
        unexplained = total - Fraction(sum(units for _, units in in_log_order), scale)
        for position, units in in_log_order:
            yield Cause(kind, position, Fraction(units, scale) + unexplained)
            unexplained = Fraction(0)
        assert not unexplained, f"{self.ladder}: a difference of {unexplained} has no cause"

    # -- recorded events

    def add_events(self, until: int) -> Iterator[Cause]:
        """Add the events up to a position, and yield the causes among them, in log order."""
        # one replay accounts for all games that were recorded in the order of play
        ordered_positions = set[int]()
        last = self.point.last_moment
        for position, record, event in read_entries(self.connection, self.facts.position, until):
            if event is None or not self._may_affect_ladder(event):
                apply_event(self.facts, position, record)
                continue
            moment = event.occurred_at, position
            if event.type == "game.recorded" and self._is_incremental() and moment > last:
                apply_event(self.facts, position, record)
                if self._concerns_ladder(event):
                    ordered_positions.add(position)
                    last = moment
                continue
            yield from self._attribute_ordered_games(ordered_positions)
            yield from self._attribute_event(event, record, is_late=moment < last)
            last = max(last, self.point.last_moment)
        self.facts.position = until
        settle_facts(self.facts)
        yield from self._attribute_ordered_games(ordered_positions)
        yield from self._close_periods()

    def _close_periods(self) -> Iterator[Cause]:
        """Yield the effect of the rating periods that the newly added records close."""
        recorded_until_before = self.facts.recorded_until
        set_recorded_until(self.facts, self.connection)
        if self.facts.recorded_until != recorded_until_before and self._versions[0].ruleset.period != "game":
            yield self._attribute_step("period", None, self._build_ladders())

    def _attribute_ordered_games(self, positions: set[int]) -> Iterator[Cause]:
        """Yield a cause for each of the player's games at these positions, and empty the set.

        The games were recorded in the order of play, so they changed no earlier points.
        """
        if positions:
            settle_facts(self.facts)
            _, new, total = self._advance()
            changes = [(position, game.change) for (_, position), game in new.games.items() if position in positions]
            yield from self._list_causes("game", changes, total)
            positions.clear()

    def _attribute_event(self, event: KnownEvent, record: str, is_late: bool) -> Iterator[Cause]:
        """Add an event that may change earlier games, and yield its effect, if any."""
        root = find_root(Log(self.connection), event) or event
        # an event can concern the ladder or the player before it is applied, after it, or both
        concerns_ladder, is_own = self._concerns_ladder(event), self._concerns_player(event, root)
        apply_event(self.facts, event.position or 0, record)
        settle_facts(self.facts)
        if not (concerns_ladder or self._concerns_ladder(event)):
            return
        ladders = self._build_ladders()
        has_same_ids = self.point.ids == self._list_current_ids()
        if has_same_ids and have_same_points(self.point.stream, self._load_stream(ladders)):
            return
        kind = TYPES[event.type].cause or event.type
        if event.type == "game.recorded":
            kind = "late game" if is_late else "game"
        is_own |= self._concerns_player(event, root)
        may_split = root.type not in RENAME_TYPES
        yield self._attribute_step(kind, event.position, ladders, is_own=is_own, may_split=may_split)

    def _is_incremental(self) -> bool:
        """Tell whether a game played after all other games changes only the points of its players."""
        is_by_game = self._versions[0].ruleset.period == "game"
        return self.has_running_points and is_by_game and not self._carries_over

    @property
    def _carries_over(self) -> bool:
        return any(version.params.carry_over for version in self._versions)

    def _may_affect_ladder(self, event: KnownEvent) -> bool:
        """Tell whether an event may affect the ladder, before the event is applied."""
        if event.type in ("points.adjusted", "player.seeded") and not self._carries_over:
            return bool(event.data["ladder"] == self.ladder)
        affected = find_affected_groups(self.facts, event.type, event.data)
        return any(is_affected(version, affected) for version in self._versions)

    def _find_row(self, event: KnownEvent) -> int | None:
        """Return the row of an event's game (NONE if it is not recorded yet), or None if the event has no game."""
        if event.type == "game.recorded":
            return self.facts.row_of(event.position or 0)
        return self.facts.rows.get(event.data["game_id"], NONE) if event.type in GAME_EVENTS else None

    def _concerns_ladder(self, event: KnownEvent) -> bool:
        """Tell whether an event is about a game of this ladder, according to the current facts, or about no game."""
        row = self._find_row(event)
        return row is None or (row != NONE and self._is_on_ladder(row))

    def _is_on_ladder(self, row: int) -> bool:
        """Tell whether a game is on the ladder by its labels and date, or on a month that the ladder sums."""
        if self._carries_over:
            return True  # games of earlier seasons count, too
        version = self._versions[0]
        if not version.ranking.sums_lists:
            return self.ladder in name_ladders_of_game(self.facts, row, version.ruleset)
        year_labels = split_ladder_name(self.ladder, version.ruleset)
        for months in self.facts.rulesets.get(getattr(version.params, "of", ""), ())[:1]:
            for ladder in name_ladders_of_game(self.facts, row, months.ruleset):
                labels = split_ladder_name(ladder, months.ruleset)
                if {"year": labels.pop("month")[:4], **labels} == year_labels:
                    return True
        return False

    def _concerns_player(self, event: KnownEvent, root: KnownEvent) -> bool:
        """Tell whether an event is about the player, or about all players."""
        row = self._find_row(event)
        if row is not None:
            return row != NONE and self._has_player(row)
        # an adjustment names a club as its player; other events that name no club concern everyone on the ladder
        is_of_club = self.has_clubs and root.type != "points.adjusted"
        players = list_clubs(root) if is_of_club else list_players(root)
        return not players or any(map(self._is_player, players))

    def _is_player(self, player: str) -> bool:
        """Tell whether an id belongs to the player, according to the current facts."""
        return self._resolve_id(player) in self._list_current_ids()

    def _has_player(self, row: int) -> bool:
        """Tell whether the player takes part in a game."""
        first = self.facts.start[row]
        participants = range(first, first + self.facts.count[row])
        if self.has_clubs:
            clubs = {self.facts.club_of(participant) for participant in participants} - {None}
            return any(self._is_player(str(club)) for club in clubs)
        return any(self._is_player(self.facts.players[self.facts.player[participant]]) for participant in participants)

    # -- the other axes

    def change_as_of(self, as_of: int | None) -> Iterator[Cause]:
        """Change the time up to which games count, and yield a cause for each game and adjustment in between.

        On a ladder with rating periods, yield one cause for all of them.
        """
        if as_of == self.as_of:
            return
        low, high = sorted(NEVER if instant is None else instant for instant in (self.as_of, as_of))
        is_forward = as_of is None or as_of == high
        kind = PLAYED if is_forward else NOT_PLAYED
        if not self.has_running_points:
            yield from self._change_as_of_stepwise(kind, low, high, as_of, is_forward)
            return
        self.as_of = as_of
        if self._versions[0].ruleset.period != "game":
            yield self._attribute_step("period", None, self._build_ladders())
            return
        old, new, total = self._advance()
        longer_point, sign = (new, 1) if is_forward else (old, -1)
        changes = [(moment, game.change) for moment, game in longer_point.games.items()]
        changes += [
            ((adjustment.occurred_at, adjustment.position), adjustment.units) for adjustment in longer_point.adjustments
        ]
        yield from self._list_causes(
            kind, [(moment[1], sign * units) for moment, units in changes if low < moment[0] <= high], total
        )

    def _change_as_of_stepwise(
        self, kind: str, low: int, high: int, as_of: int | None, is_forward: bool
    ) -> Iterator[Cause]:
        """Yield the effect of each game and adjustment on a list, where each can change several players' points."""
        for instant, entries in sorted(self._list_between(low, high).items(), reverse=not is_forward):
            for number, (position, is_own) in sorted(enumerate(entries), reverse=not is_forward):
                # leave out later entries at the same instant and, going backwards, the entry itself
                excluded = {position for position, _ in entries[number + is_forward :]}
                yield self._attribute_step(kind, position, self._exclude(excluded, instant), is_own=is_own)
        self.as_of = as_of
        yield self._attribute_step(kind, None, self._build_ladders())

    def _list_between(self, low: int, high: int) -> dict[int, list[tuple[int, bool]]]:
        """Return (position, whether it concerns the player) for each game and adjustment of the ladder, by time."""
        entries_by_time: dict[int, list[tuple[int, bool]]] = {}
        for row, instant in enumerate(self.facts.occurred_at):
            if low < instant <= high and self._is_on_ladder(row):
                entries_by_time.setdefault(instant, []).append((self.facts.first_position[row], self._has_player(row)))
        facts = Ladders(self.facts).for_ladder(self.ladder).facts
        for adjustment in facts.adjustments:
            if low < adjustment.occurred_at <= high and adjustment.ladder == self.ladder:
                is_own = self._is_player(facts.players[adjustment.player])
                entries_by_time.setdefault(adjustment.occurred_at, []).append((adjustment.position, is_own))
        return {instant: sorted(entries) for instant, entries in entries_by_time.items()}

    def _exclude(self, positions: set[int], as_of: int) -> Ladders:
        """Return the ladders at a time, without the games and adjustments first recorded at these positions."""
        ladders = self._build_ladders()
        facts = ladders.facts
        facts.adjustments = [entry for entry in facts.adjustments if entry.position not in positions]
        facts.voided.update(row for position in positions if (row := facts.row_of(position)) != NONE)
        return Ladders(facts, as_of=as_of, rules=ladders.rules)

    def change_rules(self, rules: str | None) -> Iterator[Cause]:
        """Replay all games under another version, and yield the effect. Raises `UnknownLadder`."""
        if rules != self.rules:
            self.rules = rules
            yield self._attribute_step("rules", None, self._build_ladders(strict=True))
        elif rules is not None:
            find_versions(self.facts, self.ladder, rules)  # raises if the version was withdrawn on the path
