"""A trace: the result of a replay. Steps, changes and earlier points are read from it without scoring again.

It holds the points of all players before each of their games and adjustments, and at the end. A trace may continue an
earlier one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.gaps import Calendar, EntryState, Gaps, State, measure_gaps
from ratings_ledger.projections.replay.ladders import (
    LazyColumns,
    Stream,
    StreamAdjustment,
    VersionStart,
    carry_columns,
    find_changes,
    make_entry,
)
from ratings_ledger.projections.replay.rule_calls import begin_season, enter_version
from ratings_ledger.projections.rulesets.versions import Version

PARTS_MAX = 8
PART_SLOTS = 10_000_000  # the slots of a trace that are sorted at once


class Step(NamedTuple):
    """A change of one player's points by a game, an adjustment, a new season or a new version.

    game, row, version: of a game: its number on the ladder, its row in the facts, and the version that scored it
    position, occurred_at: of an adjustment, or of a version that takes effect
    cause: "season", "version" or "period"; empty for games and adjustments. A new season has the `row` of its first
           game
    """

    game: int | None
    before: int
    change: int
    row: int | None = None
    version: Version | None = None
    position: int = 0
    occurred_at: int = 0
    cause: str = ""


class TracePosition(NamedTuple):
    """A position in a trace: after its first `games` and `adjustments`."""

    trace: Trace
    games: int
    adjustments: int

    def state_of(self, person: int) -> State | None:
        """Return a person's state; None before they joined the ladder."""
        return self.trace.state_of(person, self.games, self.adjustments)

    def last_game_of(self, person: int) -> tuple[int, int | None]:
        """Return a person's number of games, and the row of the last one in the facts."""
        return self.trace.last_game_of(person, self.games)

    def points_of(self, person: int) -> int | None:
        """Return a person's points; None before they joined the ladder."""
        state = self.state_of(person)
        return None if state is None else state[0]


class _StoredState(NamedTuple):
    """A player's state before a game or adjustment, the version that applies, and whether it is one of their steps."""

    state: State
    is_step: bool
    version: Version


class Slots(NamedTuple):
    """The slots of a stream sorted by player: those of player p are `order[start[p]:end[p]]`."""

    start: Column
    end: Column
    order: Column


@dataclass
class Trace:
    """A replayed stream. Players are numbered as in the stream.

    states:   by state column and player, the states at the end. Column 0 holds the points, and only these change by
              adjustments. A version whose rule has fewer columns than another's fills the first ones
    games:    by player, the number of games
    on_ladder: by player, 0 for players who have not joined the ladder yet
    joining:  by player id, the states with which players enter who are not new
    states_before: by state column, the states of every participant of every game before it, in the order of the stream
    mints:    by game, the minted points; `states_before` and `mints` are empty unless they were kept
    adjusted_before: by state column, the states before every adjustment
    started, minted, burned, adjusted: the totals of the trial balance; `started` sums the points that players began
              with
    earlier:  the trace that this one continues, or None. The stream's first players are those of the earlier trace, and
              its games and adjustments follow those of the earlier trace. Points and totals are those of both
    """

    stream: Stream
    states: Sequence[Column]
    games: Column
    on_ladder: Column
    joining: Mapping[str, EntryState]
    states_before: Sequence[Column]
    mints: Column
    adjusted_before: Sequence[Column]
    started: int = 0
    minted: int = 0
    burned: int = 0
    adjusted: int = 0
    earlier: Trace | None = None
    _last_steps: tuple[int, list[Step]] = field(default=(-1, []), init=False, repr=False, compare=False)

    @property
    def points(self) -> Column:
        """Return the points of all players at the end."""
        return self.states[0]

    @property
    def before(self) -> Column:
        """Return the points of every participant of every game before it."""
        return self.states_before[0]

    def state(self, player: int) -> State:
        """Return the state of a player at the end."""
        return tuple(column[player] for column in self.states)

    @cached_property
    def gaps(self) -> Gaps:
        """Return the gaps before all slots; their end is that of the whole trace."""
        stream = self.stream
        if stream.gaps is not None:
            return stream.gaps
        assert stream.calendar is not None
        earlier = self.earlier.gaps if self.earlier else None
        return measure_gaps(stream.calendar, stream.offsets, stream.players, stream.names, self.joining, earlier)

    def leave(self, player: int) -> EntryState:
        """Return the state with which a player enters the ladder of the next season."""
        state, entered = self.state(player), self.entered
        if self.stream.calendar is None:
            return EntryState(state, entered=entered)
        last_day, last_season, played = self.gaps.end
        return EntryState(state, played[player], last_day[player], last_season[player], entered)

    @property
    def is_kept(self) -> bool:
        """Tell whether the points before all games were kept."""
        return len(self.mints) == len(self.stream.row)

    @property
    def count(self) -> int:
        """Return the number of games."""
        return len(self.stream.row) + (self.earlier.count if self.earlier else 0)

    @property
    def adjustments(self) -> int:
        """Return the number of adjustments."""
        return len(self.stream.adjustments) + (self.earlier.adjustments if self.earlier else 0)

    @property
    def step_count(self) -> int:
        """Return the number of steps of all players."""
        own = len(self.stream.players) + len(self.stream.adjustments)
        return own + (self.earlier.step_count if self.earlier else 0)

    @property
    def last_row(self) -> int | None:
        """Return the row of the last game in the facts; None without games."""
        if not len(self.stream.row):
            return self.earlier.last_row if self.earlier else None
        row: int = self.stream.row[len(self.stream.row) - 1]
        return row

    def row_of(self, game: int) -> int:
        """Return the row of a game in the facts."""
        begin = self.earlier.count if self.earlier else 0
        if self.earlier and game < begin:
            return self.earlier.row_of(game)
        row: int = self.stream.row[game - begin]
        return row

    def rows_from(self, game: int) -> Iterator[int]:
        """Yield the rows of the games from one on."""
        begin = 0
        if self.earlier:
            begin = self.earlier.count
            if game < begin:
                yield from self.earlier.rows_from(game)
        yield from self.stream.row[max(game - begin, 0) :]

    @property
    def last_version(self) -> Version | None:
        """Return the version that scored the last game; None without games."""
        if not len(self.stream.row):
            return self.earlier.last_version if self.earlier else None
        last: int = self.stream.version[len(self.stream.row) - 1]
        return self.stream.versions[last]

    def first_moment(self, facts: Facts) -> tuple[int, str] | None:
        """Return when the ladder begins, and whether with a `game` or an `adjustment`; None if it has neither."""
        both = [self.stream.first_moment(facts), self.earlier.first_moment(facts) if self.earlier else None]
        return min((first for first in both if first), default=None)

    def place(self, facts: Facts, moment: tuple[int, int], limit: int | None = None) -> tuple[int, int]:
        """Return how many games and adjustments come before a (time, position), at most the first `limit` games."""
        begin = 0 if self.earlier is None else self.earlier.count
        games, adjustments = self.stream.place(facts, moment, None if limit is None else max(limit - begin, 0))
        if self.earlier is None:
            return games, adjustments
        if not games and not adjustments:
            return self.earlier.place(facts, moment, None if limit is None else min(limit, begin))
        return self.earlier.count + games, self.earlier.adjustments + adjustments

    @cached_property
    def changes(self) -> Column:
        """Return the change of points of every participant of every game, in the order of the stream."""
        changes, adjusted = (
            arrays.zeros("q", len(self.before)),
            [adjustment.player for adjustment in self.stream.adjustments],
        )
        self._run(
            loops.compute_changes,
            self.stream.players,
            self.before,
            self._adjusted_at,
            array("q", adjusted),
            self.adjusted_before[0],
            _copy_column(self.points),
            changes,
        )
        return changes

    @cached_property
    def _adjusted_at(self) -> Column:
        """Return the slot that follows each adjustment of the stream."""
        return array("q", [self.stream.offsets[adjustment.game] for adjustment in self.stream.adjustments])

    def _run(self, loop: Callable[..., None], *arguments: Any) -> None:
        compiling.run_loop(loop, *arguments, as_compiled=compiling.is_worthwhile(len(self.stream.row)))

    @cached_property
    def slots(self) -> Slots:
        """Return the stream's slots sorted by player."""
        players = self.stream.players
        first, order = array("q", bytes(8 * (len(self.points) + 1))), array("i", bytes(4 * len(players)))
        self._run(loops.sort_slots, players, first, order)
        return Slots(memoryview(first)[:-1], memoryview(first)[1:], order)

    def slots_from(self) -> Column:
        """Return where the slots of every player begin if sorted by player, and where the last ones end."""
        first = array("q", bytes(8 * (len(self.points) + 1)))
        self._run(loops.count_slots, self.stream.players, first)
        return first

    def slots_in_parts(self, first: Column) -> Iterator[Column]:
        """Yield the stream's slots sorted by player, those of some players at a time to save memory."""
        low, players = 0, len(first) - 1
        while low < players:
            high = max(low + 1, bisect_right(first, first[low] + PART_SLOTS) - 1)
            some, order = first[low : high + 1], arrays.zeros("i", first[high] - first[low])
            self._run(loops.sort_some_slots, self.stream.players, low, some, order)
            yield order
            low = high

    def steps(self, player: int, last: int | None = None) -> list[Step]:
        """Return the steps of a player in order, all or only the `last` ones.

        All steps of one player are cached, because most queries read them several times.
        """
        last_player, steps = self._last_steps
        if last is None and last_player == player:
            return steps
        own = self._steps(player, last)
        after = [*(step.before for step in own[1:]), self.points[player]]
        steps = [step._replace(change=then - step.before) for step, then in zip(own, after, strict=True)]
        if last is None:
            self._last_steps = player, steps
        return steps

    def states_after(self, player: int, steps: Sequence[Step]) -> list[tuple[State, Version]]:
        """Return a player's state after each of the steps, with its version; empty if no rule has state."""
        if not any(version.rule.state for version in self.stream.versions):
            return []
        whole = self.whole()
        stored = whole._read_stored_states(whole.stream.numbers[self.stream.persons[player]])
        states, done, version = list[tuple[State, Version]](), 0, stored[0].version
        for step in steps:
            state = stored[done].state
            if step.cause == "season":
                version = stored[done].version
                state = begin_season(version, whole.stream.ladder, step.row, state[: version.rule.width])
            elif step.cause != "period":
                while not stored[done].is_step:
                    done += 1
                version = version if not step.cause and step.game is None else stored[done].version
                done += 1
                if step.game is None or whole.stream.periods is None:  # a period changes what its games leave alone
                    state = stored[done].state
            states.append(((step.before + step.change, *state[1 : version.rule.width]), version))
        return states

    def _read_stored_states(self, player: int) -> list[_StoredState]:
        """Return a player's states before each of their games and adjustments, and at the end."""
        stream, slots = self.stream, self.slots
        own = slots.order[slots.start[player] : slots.end[player]]
        parts = [
            (
                (slot, len(stream.adjustments)),
                self.states_before,
                slot,
                True,
                stream.version[_find_game_of_slot(stream, slot)],
            )
            for slot in own
        ] + [
            (
                (self._adjusted_at[at], at),
                self.adjusted_before,
                at,
                bool(adjustment.units or not adjustment.enters),
                adjustment.version,
            )
            for at, adjustment in enumerate(stream.adjustments)
            if adjustment.player == player
        ]
        parts.sort(key=lambda part: part[0])
        return [
            *(
                _StoredState(tuple(int(column[at]) for column in columns), is_step, stream.versions[version])
                for _, columns, at, is_step, version in parts
            ),
            _StoredState(self.state(player), False, self.rated_by),
        ]

    def games_after(self, player: int, steps: Sequence[Step]) -> list[int]:
        """Return a player's number of games after each of the steps, including games before the ladder; empty if no
        rule has state.
        """
        if not any(version.rule.state for version in self.stream.versions):
            return []
        games = self.gaps.played[player] - sum(step.game is not None for step in steps)
        return [games := games + (step.game is not None) for step in steps]

    def last_points(self, player: int, last: int) -> list[int]:
        """Return a player's points after each of the `last` steps, in order."""
        start, end = self.slots.start[player], self.slots.end[player]
        has_more = any(version.rule.new_season for version in self.stream.versions)
        if has_more or end - start < last or any(adjustment.player == player for adjustment in self.stream.adjustments):
            return [step.before + step.change for step in self.steps(player, last)]
        # Between games nothing changes, so the points after a game are those before the next one.
        return [*(self.before[slot] for slot in self.slots.order[end - last + 1 : end]), self.points[player]]

    def _steps(self, player: int, last: int | None) -> list[Step]:
        """Return the steps of a player with all changes 0."""
        stream, slots, earlier = self.stream, self.slots, self.earlier
        begin, start, end = earlier.count if earlier else 0, slots.start[player], slots.end[player]
        some = array("q", slots.order[start if last is None else max(start, end - last) : end])
        games = arrays.find_spans(stream.offsets, some)
        take = arrays.take
        befores, rows, versions = take(self.before, some), take(stream.row, games), take(stream.version, games)
        parts = [
            self._steps_at_slot(slot, Step(begin + game, before, 0, row, stream.versions[version]))
            for slot, game, before, row, version in zip(some, games, befores, rows, versions, strict=True)
        ]
        for at in reversed([at for at, adjustment in enumerate(stream.adjustments) if adjustment.player == player]):
            adjustment = stream.adjustments[at]
            if adjustment.units or not adjustment.enters:
                parts.insert(
                    bisect_left(games, adjustment.game),
                    [_make_adjustment_step(adjustment, self.adjusted_before[0][at])],
                )
        steps = [*chain.from_iterable(parts)]
        left = None if last is None else last - len(steps)
        if earlier and player < len(earlier.points) and (left is None or left > 0):
            steps = earlier._steps(player, left) + steps
        return steps if last is None else steps[-last:]

    def _steps_at_slot(self, slot: int, step: Step) -> list[Step]:
        """Return the steps of a player at a slot: that of a new season, if any, then the game's."""
        version = step.version
        if self.stream.periods is not None:
            return self._steps_at_period(slot, step)
        if version is None or version.rule.new_season is None or not self.gaps.column("changes_season")[slot]:
            return [step]
        stored = tuple(column[slot] for column in self.states_before[: version.rule.width])
        points = begin_season(version, self.stream.ladder, step.row, stored)[0]
        if points == step.before:
            return [step]
        moved = points - step.before
        season = Step(None, step.before, moved, step.row, cause="season")
        return [season, step._replace(before=points, change=step.change - moved)]

    def _steps_at_period(self, slot: int, step: Step) -> list[Step]:
        """Return a game's step without change and, after the player's last game in a period, the step of the period."""
        periods, stream = self.stream.periods, self.stream
        assert periods is not None
        game = _find_game_of_slot(stream, slot)
        end = stream.offsets[int(periods.offsets[int(periods.of_game[game]) + 1])]
        number = stream.players[slot]
        at = bisect_right(self.slots.order, slot, self.slots.start[number], self.slots.end[number])
        if at < self.slots.end[number] and self.slots.order[at] < end:
            return [step]
        period = Step(None, step.before, step.change, step.row, cause="period")
        return [step._replace(change=0), period]

    def players_of(self, game: int) -> Column:
        """Return the counted players of a game, given its number on the ladder."""
        begin = self.earlier.count if self.earlier else 0
        if self.earlier and game < begin:
            return self.earlier.players_of(game)
        offsets = self.stream.offsets
        return self.stream.players[offsets[game - begin] : offsets[game - begin + 1]]

    def players_of_all(self, games: Sequence[int]) -> list[Sequence[int]]:
        """Return the counted players of several games, given in ascending order."""
        begin = self.earlier.count if self.earlier else 0
        before = bisect_left(games, begin)
        players_by_game = self.earlier.players_of_all(games[:before]) if self.earlier and before else []
        own, take = array("q", [game - begin for game in games[before:]]), arrays.take
        starts, ends = take(self.stream.offsets, own), take(self.stream.offsets, arrays.shift(own, 1))
        sizes = array("q", [end - start for start, end in zip(starts, ends, strict=True)])
        players = take(self.stream.players, arrays.span_indices(starts, sizes)).tolist()
        last = 0
        for size in sizes:
            players_by_game.append(players[last : last + size])
            last += size
        return players_by_game

    def last_row_of(self, player: int) -> int | None:
        """Return the row of a player's last game in the facts; None without games."""
        slots, earlier = self.slots, self.earlier
        if slots.start[player] < slots.end[player]:
            slot = slots.order[slots.end[player] - 1]
            row: int = self.stream.row[bisect_right(self.stream.offsets, slot) - 1]
            return row
        return earlier.last_row_of(player) if earlier and player < len(earlier.points) else None

    def last_period_of(self, player: int) -> int | None:
        """Return the last rating period in which a player played, numbered as in `Periods.last`; None without games."""
        periods, slots = self.stream.periods, self.slots
        assert periods is not None
        if slots.start[player] == slots.end[player]:
            return None
        return int(periods.last[periods.of_game[_find_game_of_slot(self.stream, slots.order[slots.end[player] - 1])]])

    def _make_step(self, begin: int, game: int, before: int, change: int) -> Step:
        stream = self.stream
        return Step(begin + game, before, change, stream.row[game], stream.versions[stream.version[game]])

    def every_step(self) -> Iterator[tuple[int, Step]]:
        """Yield (player, step) for every game and adjustment, in order; within a game by id."""
        begin = 0
        if self.earlier:
            yield from self.earlier.every_step()
            begin = self.earlier.count
        stream, changes = self.stream, self.changes
        adjustments = iter([*enumerate(stream.adjustments), (len(stream.adjustments), None)])
        at, adjustment = next(adjustments)
        for game in range(len(stream.row) + 1):
            while adjustment is not None and adjustment.game == game:
                if adjustment.units or not adjustment.enters:
                    yield adjustment.player, _make_adjustment_step(adjustment, self.adjusted_before[0][at])
                at, adjustment = next(adjustments)
            if game < len(stream.row):
                for slot in range(stream.offsets[game], stream.offsets[game + 1]):
                    for step in self._steps_at_slot(
                        slot, self._make_step(begin, game, self.before[slot], changes[slot])
                    ):
                        yield stream.players[slot], step

    def is_like(self, other: Trace) -> bool:
        """Tell whether two traces have the same games, order, points and totals, part by part."""
        if self is other:
            return True
        left, right = self.stream, other.stream
        return (
            (left.names, left.versions, left.adjustments) == (right.names, right.versions, right.adjustments)
            and self._accounts() == other._accounts()
            and all(map(arrays.equal, self._columns(), other._columns()))
            and (self.earlier is None) == (other.earlier is None)
            and (self.earlier is None or other.earlier is None or self.earlier.is_like(other.earlier))
        )

    def _columns(self) -> tuple[Column, ...]:
        stream = self.stream
        return (
            stream.offsets,
            stream.players,
            stream.version,
            stream.row,
            *self.states_before,
            *self.states,
            self.games,
            self.mints,
            *self.adjusted_before,
        )

    def _accounts(self) -> tuple[int, ...]:
        return self.started, self.minted, self.burned, self.adjusted

    @cached_property
    def entered(self) -> int:
        """Return since when the version is in force that took effect last; `MISSING` for an empty trace."""
        version, own = self.last_version, self.stream.adjustments[-1:]
        since = [
            self.stream.entered,
            *(self.stream.versions[adjustment.version].effective_from for adjustment in own if adjustment.enters),
        ]
        since += [
            change.since
            for change in find_changes(self.stream.versions)
            if own and change.instant <= own[0].occurred_at
        ]
        since += [version.effective_from] if version is not None else []
        since += [self.earlier.entered] if self.earlier is not None else []
        return max(instant for instant in since if instant is not None)

    @cached_property
    def rated_by(self) -> Version:
        """Return the version whose state columns the players have at the end."""
        stream = self.stream
        in_force = [version for version in stream.versions if (version.effective_from or MISSING) == self.entered]
        return self.last_version or stream.versions[0] if len(in_force) != 1 else in_force[0]

    def enter_until(self, instant: int) -> Trace:
        """Return this trace with the versions that take effect after the last game, up to an instant.

        Raises `RuleFailure`.
        """
        trace, opens = self, self.stream.open_from
        # Within a rating period, a version takes effect when the period closes.
        instant = instant if opens is None else min(instant, opens)
        for change in find_changes(self.stream.versions):
            if self.entered < change.since and change.instant <= instant and self.step_count:
                trace = _enter_version_at_end(trace, change)
        return trace

    def compact(self) -> Trace:
        """Join the parts behind the first if there are many, because each query about a player reads all of them.

        The first part is the longest, perhaps in a file, and is not copied.
        """
        parts = self._parts()
        return _join_parts(parts[1:]) if len(parts) > PARTS_MAX else self

    def whole(self) -> Trace:
        """Return this trace in one part, with players numbered in the order in which they joined."""
        return self if self.earlier is None else _join_parts(self._parts())

    def _parts(self) -> list[Trace]:
        return [*(self.earlier._parts() if self.earlier else ()), self]

    def state_of(self, person: int, games: int, adjustments: int) -> State | None:
        """Return a person's state after the first `games` and `adjustments`; None if not on the ladder yet."""
        number, earlier = self.stream.numbers.get(person), self.earlier
        if number is None or (games == self.count and adjustments == self.adjustments):
            return None if number is None else self.state(number)
        if earlier and games <= earlier.count and adjustments <= earlier.adjustments:
            return earlier.state_of(person, games, adjustments)
        if earlier:
            games, adjustments = games - earlier.count, adjustments - earlier.adjustments
        slots, end = self.slots, self.stream.offsets[games]
        at = bisect_left(slots.order, end, slots.start[number], slots.end[number])
        own = [index for index, adjustment in enumerate(self.stream.adjustments) if adjustment.player == number]
        is_known = earlier is not None and number < len(earlier.points)
        if not (is_known or at > slots.start[number] or any(index < adjustments for index in own)):
            return None
        # The state before the next game is the one after these.
        slot = slots.order[at] if at < slots.end[number] else len(self.before)
        state = [
            int(before[slot] if slot < len(before) else states[number])
            for before, states in zip(self.states_before, self.states, strict=True)
        ]
        later = next((index for index in own if index >= adjustments and self._adjusted_at[index] <= slot), None)
        if later is not None:
            return tuple(int(column[later]) for column in self.adjusted_before)
        return tuple(state)

    def last_game_of(self, person: int, games: int) -> tuple[int, int | None]:
        """Return how many of the first `games` a person played, and the row of the last one in the facts.

        The row is None before the first game. Games from before the ladder are not included.
        """
        number, earlier = self.stream.numbers.get(person), self.earlier
        begin = earlier.count if earlier else 0
        if number is None:
            return 0, None
        before = (
            earlier.last_game_of(person, min(games, begin)) if earlier and number < len(earlier.points) else (0, None)
        )
        if games <= begin:
            return before
        slots, end = self.slots, self.stream.offsets[games - begin]
        at = bisect_left(slots.order, end, slots.start[number], slots.end[number])
        if at == slots.start[number]:
            return before
        game = _find_game_of_slot(self.stream, slots.order[at - 1])
        return before[0] + at - slots.start[number], self.stream.row[game]

    def up_to(self, games: int, adjustments: int) -> Trace:
        """Return the trace of the ladder's first `games` and `adjustments`."""
        if games == self.count and adjustments == self.adjustments:
            return self
        earlier = self.earlier
        if earlier and games <= earlier.count and adjustments <= earlier.adjustments:
            return earlier.up_to(games, adjustments)
        known, minted, adjusted, started = 0, 0, 0, 0
        if earlier:
            games, adjustments, known = games - earlier.count, adjustments - earlier.adjustments, len(earlier.points)
            minted, adjusted, started = earlier.minted, earlier.adjusted, earlier.started
        end, slots = self.stream.offsets[games], self.slots
        states, played, following = self._rewind_states(end, adjustments)
        # Players are numbered in the order in which they joined, so those who had not played yet come last.
        joined = bisect_left(
            range(len(played)), True, known, key=lambda player: slots.start[player] == following[player]
        )
        stream = self.stream.up_to(games, adjustments, joined)
        numbers = array("i", [*range(joined), *(self.stream.numbers[person] for person in stream.persons[joined:])])
        trace = Trace(
            stream,
            [arrays.take(column, numbers) for column in states],
            arrays.take(played, numbers),
            array("b", b"\1" * len(numbers)),
            self.joining,
            [column[:end] for column in self.states_before],
            self.mints[:games],
            [column[:adjustments] for column in self.adjusted_before],
            started=started + arrays.total(arrays.take(self.began, numbers[known:])),
            minted=minted
            + arrays.total(self.mints[:games])
            + sum(max(adjustment.units, 0) for adjustment in stream.adjustments if adjustment.enters),
            adjusted=adjusted + sum(adjustment.units for adjustment in stream.adjustments if not adjustment.enters),
            earlier=earlier,
        )
        trace.burned = trace.started + trace.minted + trace.adjusted - arrays.total(trace.points)
        trace.slots = Slots(
            arrays.take(slots.start, numbers),
            arrays.take(following, numbers),
            slots.order,
        )
        return trace

    def _rewind_states(self, end: int, adjustments: int) -> tuple[Sequence[Column], Column, Column]:
        """Return the states and games of all players after the first slots and adjustments, and their next slots."""
        states, games, slots = [*map(_copy_column, self.states)], _copy_column(self.games), self.slots
        following = arrays.rewind(
            states, games, start=slots.start, end=slots.end, order=slots.order, before=self.states_before, slot=end
        )
        for at in range(len(self._adjusted_at) - 1, adjustments - 1, -1):
            player = self.stream.adjustments[at].player
            later = following[player] < slots.end[player]
            if not later or self._adjusted_at[at] <= slots.order[following[player]]:
                for column, before in zip(states, self.adjusted_before, strict=True):
                    column[player] = before[at]
        return states, games, following

    @cached_property
    def began(self) -> Column:
        """Return the points of all players before the stream's first game and adjustment."""
        points, first = _copy_column(self.points), array("q", [NONE]) * len(self.points)
        self._run(loops.find_first_slots, self.stream.players, first)
        for player, slot in enumerate(first):
            if slot != NONE:
                points[player] = self.before[slot]
        for at in reversed(range(len(self._adjusted_at))):
            player = self.stream.adjustments[at].player
            if first[player] == NONE or self._adjusted_at[at] <= first[player]:
                points[player] = self.adjusted_before[0][at]
        return points


def _find_game_of_slot(stream: Stream, slot: int) -> int:
    return bisect_right(stream.offsets, slot) - 1


def _make_adjustment_step(adjustment: StreamAdjustment, before: int) -> Step:
    cause = "version" if adjustment.enters else ""
    return Step(
        None, before, adjustment.units, position=adjustment.position, occurred_at=adjustment.occurred_at, cause=cause
    )


def _enter_version_at_end(trace: Trace, change: VersionStart) -> Trace:
    """Return a trace in which a version takes effect at the end."""
    stream, (old, new) = trace.stream, (trace.stream.versions[number] for number in (change.before, change.version))
    before = [trace.state(player) for player in range(len(stream.names))]
    carried = [tuple(carry_columns(state[: old.rule.width], old, new)) for state in before]
    after = [enter_version(new, stream.ladder, state) for state in carried]
    gains = [new_state[0] - old_state[0] for new_state, old_state in zip(after, before, strict=True)]
    entries = [make_entry(stream, player, len(stream.row), change, units) for player, units in enumerate(gains)]
    entered = replace(
        trace,
        stream=replace(stream, adjustments=[*stream.adjustments, *entries], known=None),
        states=_to_columns(after, stream.width),
        adjusted_before=[
            arrays.concatenate("q", both)
            for both in zip(trace.adjusted_before, _to_columns(before, stream.width), strict=True)
        ],
        minted=trace.minted + sum(max(units, 0) for units in gains),
        burned=trace.burned + sum(max(-units, 0) for units in gains),
    )
    entered.slots = trace.slots
    return entered


def _to_columns(states: Sequence[State], width: int) -> list[Column]:
    """Return states by column; columns that a version does not have are 0."""
    columns = np.zeros((width, len(states)), dtype=np.int64)
    for column, numbers in zip(columns, zip(*states, strict=True), strict=False):
        column[:] = numbers
    return [arrays.as_column(column) for column in columns]


def _join_parts(parts: Sequence[Trace]) -> Trace:
    """Join successive parts of a trace into one, which continues the trace that the first of them continues."""
    earlier = parts[0].earlier
    known = len(earlier.points) if earlier else 0
    last, streams = parts[-1], [part.stream for part in parts]
    played = [stream for stream in streams if len(stream.row)]
    first = _find_first_slots(parts)
    # Number players by their first games; players with adjustments only come last, in their previous order.
    new_players = sorted(range(known, len(last.points)), key=lambda number: first.get(number, 2**63))
    order = [*range(known), *new_players]
    number = array("i", bytes(4 * len(order)))
    for new, old in enumerate(order):
        number[old] = new
    offsets, adjustments, slots, games = [array("q", [0])], list[StreamAdjustment](), 0, 0
    for stream in streams:
        offsets.append(arrays.shift(stream.offsets[1:], slots))
        adjustments += [
            adjustment._replace(game=adjustment.game + games, player=number[adjustment.player])
            for adjustment in stream.adjustments
        ]
        slots, games = slots + len(stream.players), games + len(stream.row)
    players = arrays.take(number, arrays.concatenate("i", [stream.players for stream in streams]))
    whole = Stream(
        last.stream.ladder,
        last.stream.rule,
        last.stream.versions,
        [last.stream.names[old] for old in order],
        arrays.concatenate("q", offsets),
        players,
        LazyColumns(lambda: [arrays.concatenate("q", same) for same in zip(*(s.columns for s in played), strict=True)]),
        arrays.concatenate("h", [stream.version for stream in streams]),
        arrays.concatenate("q", [stream.row for stream in streams]),
        adjustments,
        [last.stream.persons[old] for old in order],
    )
    whole.seeds, calendars = last.stream.seeds, [stream.calendar for stream in streams if stream.calendar is not None]
    if calendars:
        whole.calendar = Calendar(*(arrays.concatenate("q", same) for same in zip(*calendars, strict=True)))
    return Trace(
        whole,
        [array("q", [column[old] for old in order]) for column in last.states],
        array("q", [last.games[old] for old in order]),
        last.on_ladder,
        last.joining,
        [arrays.concatenate("q", same) for same in zip(*(part.states_before for part in parts), strict=True)],
        arrays.concatenate("q", [part.mints for part in parts]),
        [arrays.concatenate("q", same) for same in zip(*(part.adjusted_before for part in parts), strict=True)],
        last.started,
        last.minted,
        last.burned,
        last.adjusted,
        earlier,
    )


def _find_first_slots(parts: Sequence[Trace]) -> dict[int, int]:
    """Return the first slot of every player who has one."""
    first_slots: dict[int, int] = {}
    begin = 0
    for part in parts:
        for number, (start, end) in enumerate(zip(part.slots.start, part.slots.end, strict=True)):
            if start < end:
                first_slots.setdefault(number, begin + part.slots.order[start])
        begin += len(part.stream.players)
    return first_slots


def _copy_column(column: Column) -> array[int]:
    return array("q", memoryview(arrays.in_memory(column)).tobytes())
