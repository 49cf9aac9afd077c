"""The result of a replay: a trace, from which steps, changes and earlier points are read without scoring again.

A trace holds the states of all players before each of their games and adjustments, and at the end. It may continue an
earlier one. Its columns are by player, game, adjustment or slot; slots are the players of each game, game by game.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.gaps import Calendar, Gaps, measure_gaps
from ratings_ledger.projections.replay.rule_calls import begin_season, enter_version
from ratings_ledger.projections.replay.seasons import EntryState, State
from ratings_ledger.projections.replay.streams import (
    LazyColumns,
    Stream,
    StreamAdjustment,
    VersionChange,
    carry_columns,
    find_version_changes,
    make_version_entry,
)
from ratings_ledger.projections.rulesets.versions import Version

PARTS_MAX = 8  # a trace with more parts is compacted
SORT_CHUNK_SLOTS = 10_000_000  # sort only this many slots at a time, to limit memory


class Step(NamedTuple):
    """A change of one player's points by a game, an adjustment, a new season, a new version or a rating period.

    cause:   "season", "version" or "period"; empty for games and adjustments
    game:    for a game, its number on the ladder
    points_before, change: in units
    row:     the row in the facts of a game of the player: the game itself, the season's first, or the period's last
    version: for a game, the version that scored it
    position, occurred_at: the position and time of the adjustment; of a version, its position and when it took effect
    """

    game: int | None
    points_before: int
    change: int
    row: int | None = None
    version: Version | None = None
    position: int = 0
    occurred_at: int = 0
    cause: str = ""


class TracePosition(NamedTuple):
    """A position in a trace: the point after its first `games` and `adjustments`."""

    trace: Trace
    games: int
    adjustments: int

    def state_of(self, person: int) -> State | None:
        """Return a person's state; None before they joined the ladder."""
        return self.trace.state_of(person, self.games, self.adjustments)

    def game_count_and_last_row(self, person: int) -> tuple[int, int | None]:
        """Return a person's number of games, and the last one's row in the facts; the row is None without games."""
        return self.trace.game_count_and_last_row(person, self.games)

    def points_of(self, person: int) -> int | None:
        """Return a person's points; None before they joined the ladder."""
        state = self.state_of(person)
        return None if state is None else state[0]


class _StoredState(NamedTuple):
    """A player's state before a game or adjustment, or at the end, and the version that applies there.

    `is_step` tells whether `Trace.steps` has a step for the game or adjustment.
    """

    state: State
    is_step: bool
    version: Version


class Slots(NamedTuple):
    """The slots of a stream, sorted by player. The slots of player p are `order[start[p]:end[p]]`."""

    start: Column
    end: Column
    order: Column


@dataclass
class Trace:
    """A replayed stream. Players are numbered as in the stream.

    states:    by state column and player, the states at the end. Column 0 holds the points. If the rules of versions
               differ in width, a narrower rule uses the first columns
    games:     by player, the number of games
    on_ladder: by player, 1 once the player has joined the ladder
    entry_states: by player id, the states of players who enter with carried or seeded points
    states_before: by state column and slot, the states before each game; empty without history
    mints:     by game, the minted points; those of a rating period at its last game; empty without history
    states_before_adjustments: by state column and adjustment, the states before the adjustment
    start_total, minted, burned, adjusted: the totals of the trial balance, in units; `start_total` is the sum of the
               points with which players joined
    earlier:   the trace that this one continues. Its players come first in the stream. The stream has only the later
               games and adjustments, while states, games and totals include the earlier ones
    """

    stream: Stream
    states: Sequence[Column]
    games: Column
    on_ladder: Column
    entry_states: Mapping[str, EntryState]
    states_before: Sequence[Column]
    mints: Column
    states_before_adjustments: Sequence[Column]
    start_total: int = 0
    minted: int = 0
    burned: int = 0
    adjusted: int = 0
    earlier: Trace | None = None
    _cached_steps: tuple[int, list[Step]] = field(default=(-1, []), init=False, repr=False, compare=False)

    @property
    def points(self) -> Column:
        """Return the points of all players at the end."""
        return self.states[0]

    @property
    def points_before(self) -> Column:
        """Return the points before each game, by slot."""
        return self.states_before[0]

    def state(self, player: int) -> State:
        """Return the state of a player at the end."""
        return tuple(column[player] for column in self.states)

    @cached_property
    def gaps(self) -> Gaps:
        """Return the gaps before all slots of the stream. The end values include the earlier part of the ladder."""
        stream = self.stream
        if stream.gaps is not None:
            return stream.gaps
        assert stream.calendar is not None
        entries, earlier = stream.find_entries(self.entry_states), self.earlier.gaps if self.earlier else None
        return measure_gaps(stream.calendar, stream.offsets, stream.players, len(stream.names), entries, earlier)

    def make_season_entry(self, player: int) -> EntryState:
        """Return the entry state of a player for the next season's ladder."""
        state, latest_version_start = self.state(player), self.latest_version_start
        if self.stream.calendar is None:
            return EntryState(state, latest_version_start=latest_version_start)
        last_day, last_season, played = self.gaps.end_values
        return EntryState(state, played[player], last_day[player], last_season[player], latest_version_start)

    @property
    def has_history(self) -> bool:
        """Tell whether the trace holds the states before each game."""
        return len(self.mints) == len(self.stream.rows)

    @property
    def game_count(self) -> int:
        """Return the number of games."""
        return len(self.stream.rows) + self.earlier_games

    @property
    def earlier_games(self) -> int:
        """Return the number of games in the earlier trace."""
        return self.earlier.game_count if self.earlier else 0

    @property
    def adjustment_count(self) -> int:
        """Return the number of adjustments."""
        return len(self.stream.adjustments) + (self.earlier.adjustment_count if self.earlier else 0)

    @property
    def step_count(self) -> int:
        """Return the number of slots and adjustments, which is about the number of steps of all players."""
        earlier_steps = self.earlier.step_count if self.earlier else 0
        return earlier_steps + len(self.stream.players) + len(self.stream.adjustments)

    @property
    def last_row(self) -> int | None:
        """Return the row in the facts of the ladder's last game; None without games."""
        if not len(self.stream.rows):
            return self.earlier.last_row if self.earlier else None
        return int(self.stream.rows[len(self.stream.rows) - 1])

    def row_of(self, game: int) -> int:
        """Return the row of a game in the facts."""
        if self.earlier and game < self.earlier_games:
            return self.earlier.row_of(game)
        return int(self.stream.rows[game - self.earlier_games])

    def rows_from(self, game: int) -> Iterator[int]:
        """Yield the rows in the facts of a game and all later games."""
        if self.earlier and game < self.earlier_games:
            yield from self.earlier.rows_from(game)
        yield from self.stream.rows[max(game - self.earlier_games, 0) :]

    @property
    def last_version(self) -> Version | None:
        """Return the version that scored the last game; None without games."""
        if not len(self.stream.rows):
            return self.earlier.last_version if self.earlier else None
        version: int = self.stream.version_indices[len(self.stream.rows) - 1]
        return self.stream.versions[version]

    def find_start(self, facts: Facts) -> tuple[int, str] | None:
        """Return the time and kind ("game" or "adjustment") of the ladder's first entry; None for an empty ladder."""
        candidates = [self.stream.find_start(facts)]
        candidates += [self.earlier.find_start(facts)] if self.earlier else []
        return min(filter(None, candidates), default=None)

    def count_before(self, facts: Facts, moment: tuple[int, int], limit: int | None = None) -> tuple[int, int]:
        """Count the games and adjustments that come before a moment; at most `limit` games."""
        own_limit = None if limit is None else max(limit - self.earlier_games, 0)
        games, adjustments = self.stream.count_before(facts, moment, own_limit)
        if self.earlier is None:
            return games, adjustments
        if not games and not adjustments:
            return self.earlier.count_before(facts, moment, None if limit is None else min(limit, self.earlier_games))
        return self.earlier_games + games, self.earlier.adjustment_count + adjustments

    @cached_property
    def changes(self) -> Column:
        """Return, by slot, the change of points in units from before a game to the player's next game or adjustment."""
        changes = arrays.zeros("q", len(self.points_before))
        self._run_loop(
            loops.compute_changes,
            self.stream.players,
            self.points_before,
            self._adjustment_slots,
            array("q", [adjustment.player for adjustment in self.stream.adjustments]),
            self.states_before_adjustments[0],
            _copy_to_array(self.points),
            changes,
        )
        return changes

    @cached_property
    def _adjustment_slots(self) -> Column:
        """Return the slot that follows each adjustment of the stream."""
        return array("q", [self.stream.offsets[adjustment.game] for adjustment in self.stream.adjustments])

    def _find_adjustments(self, player: int) -> list[int]:
        """Return the indices of a player's adjustments in the stream."""
        return [index for index, adjustment in enumerate(self.stream.adjustments) if adjustment.player == player]

    def _run_loop(self, loop: Callable[..., None], *arguments: Any) -> None:
        compiling.run_loop(loop, *arguments, as_compiled=compiling.is_worthwhile(len(self.stream.rows)))

    @cached_property
    def slots(self) -> Slots:
        """Return the stream's slots sorted by player."""
        players = self.stream.players
        bounds, sorted_slots = array("q", bytes(8 * (len(self.points) + 1))), array("i", bytes(4 * len(players)))
        self._run_loop(loops.sort_slots, players, bounds, sorted_slots)
        return Slots(memoryview(bounds)[:-1], memoryview(bounds)[1:], sorted_slots)

    def find_slot_bounds(self) -> Column:
        """Return the bounds of each player's slots among the slots sorted by player, without sorting them."""
        bounds = array("q", bytes(8 * (len(self.points) + 1)))
        self._run_loop(loops.count_slots, self.stream.players, bounds)
        return bounds

    def sort_slots_in_chunks(self, bounds: Column) -> Iterator[Column]:
        """Yield the stream's slots sorted by player, in chunks to save memory. `bounds` is from `find_slot_bounds`."""
        first_player, player_count = 0, len(bounds) - 1
        while first_player < player_count:
            end_player = max(first_player + 1, bisect_right(bounds, bounds[first_player] + SORT_CHUNK_SLOTS) - 1)
            chunk_bounds = bounds[first_player : end_player + 1]
            sorted_slots = arrays.zeros("i", bounds[end_player] - bounds[first_player])
            self._run_loop(loops.sort_some_slots, self.stream.players, first_player, chunk_bounds, sorted_slots)
            yield sorted_slots
            first_player = end_player

    def steps(self, player: int, limit: int | None = None) -> list[Step]:
        """Return the steps of a player in order; with `limit`, only the latest `limit` steps.

        All steps of the player queried most recently are cached, because most queries read them several times.
        """
        cached_player, cached_steps = self._cached_steps
        if limit is None and cached_player == player:
            return cached_steps
        steps = self._list_steps_without_changes(player, limit)
        points_after = [*(step.points_before for step in steps[1:]), self.points[player]]
        steps = [
            step._replace(change=after - step.points_before) for step, after in zip(steps, points_after, strict=True)
        ]
        if limit is None:
            self._cached_steps = player, steps
        return steps

    def states_after(self, player: int, steps: Sequence[Step]) -> list[tuple[State, Version]]:
        """Return the state and version after each step of a player, given all steps; [] if no rule has state."""
        if not any(version.rule.state for version in self.stream.versions):
            return []
        trace = self.join_parts()
        stored_states = trace._read_stored_states(trace.stream.numbers[self.stream.persons[player]])
        states, index, version = list[tuple[State, Version]](), 0, stored_states[0].version
        for step in steps:
            state = stored_states[index].state
            if step.cause == "season":
                version = stored_states[index].version
                state = begin_season(version, trace.stream.ladder, step.row, state[: version.rule.width])
            elif step.cause != "period":
                while not stored_states[index].is_step:
                    index += 1
                version = version if not step.cause and step.game is None else stored_states[index].version
                index += 1
                # with rating periods, the state changes at the end of the period, not at each game
                if step.game is None or trace.stream.periods is None:
                    state = stored_states[index].state
            states.append(((step.points_before + step.change, *state[1 : version.rule.width]), version))
        return states

    def _read_stored_states(self, player: int) -> list[_StoredState]:
        """Return a player's states before each of their games and adjustments, in order, and at the end."""
        stream, slots = self.stream, self.slots
        own_slots = slots.order[slots.start[player] : slots.end[player]]
        keyed_states = []
        for slot in own_slots:
            version = stream.versions[stream.version_indices[_find_game(stream, slot)]]
            state = tuple(int(column[slot]) for column in self.states_before)
            keyed_states.append(((slot, len(stream.adjustments)), _StoredState(state, is_step=True, version=version)))
        for index in self._find_adjustments(player):
            adjustment = stream.adjustments[index]
            state = tuple(int(column[index]) for column in self.states_before_adjustments)
            stored = _StoredState(state, _is_step(adjustment), stream.versions[adjustment.version])
            keyed_states.append(((self._adjustment_slots[index], index), stored))
        keyed_states.sort(key=lambda keyed_state: keyed_state[0])
        at_end = _StoredState(self.state(player), is_step=False, version=self.final_version)
        return [*(stored for _, stored in keyed_states), at_end]

    def games_after(self, player: int, steps: Sequence[Step]) -> list[int]:
        """Return a player's number of games after each of the steps; an empty list if no rule has state.

        Includes games played before the player entered this ladder, as recorded in the entry state.
        """
        if not any(version.rule.state for version in self.stream.versions):
            return []
        games = self.gaps.games_played[player] - sum(step.game is not None for step in steps)
        return [games := games + (step.game is not None) for step in steps]

    def last_points(self, player: int, limit: int) -> list[int]:
        """Return a player's points after each of the latest `limit` steps, in order."""
        start, end, stream = self.slots.start[player], self.slots.end[player], self.stream
        has_other_steps = stream.periods is not None or any(version.rule.new_season for version in stream.versions)
        if has_other_steps or end - start < limit or self._find_adjustments(player):
            return [step.points_before + step.change for step in self.steps(player, limit)]
        # between games nothing changes, so the points after a game are the points before the next game
        return [*(self.points_before[slot] for slot in self.slots.order[end - limit + 1 : end]), self.points[player]]

    def _list_steps_without_changes(self, player: int, limit: int | None) -> list[Step]:
        """Return the latest `limit` steps of a player, or all. `steps` computes their changes."""
        stream, slots, earlier, earlier_games = self.stream, self.slots, self.earlier, self.earlier_games
        start, end = slots.start[player], slots.end[player]
        own_slots = array("q", slots.order[start if limit is None else max(start, end - limit) : end])
        games = arrays.find_spans(stream.offsets, own_slots)
        points_before, rows = arrays.take(self.points_before, own_slots), arrays.take(stream.rows, games)
        versions = arrays.take(stream.version_indices, games)
        parts = [
            self._list_steps_at_slot(slot, Step(earlier_games + game, before, 0, row, stream.versions[version]))
            for slot, game, before, row, version in zip(own_slots, games, points_before, rows, versions, strict=True)
        ]
        for index in reversed(self._find_adjustments(player)):
            adjustment = stream.adjustments[index]
            if _is_step(adjustment):
                parts.insert(
                    bisect_left(games, adjustment.game),
                    [_make_adjustment_step(adjustment, self.states_before_adjustments[0][index])],
                )
        steps = [*chain.from_iterable(parts)]
        missing = None if limit is None else limit - len(steps)
        if earlier and player < len(earlier.points) and (missing is None or missing > 0):
            steps = earlier._list_steps_without_changes(player, missing) + steps
        return steps if limit is None else steps[-limit:]

    def _list_steps_at_slot(self, slot: int, step: Step) -> list[Step]:
        """Return the steps at a slot: a new season that changes points, the game, and a period after its last game."""
        version = step.version
        if self.stream.periods is not None:
            return self._list_steps_in_period(slot, step)
        if version is None or version.rule.new_season is None or not self.gaps.column("changes_season")[slot]:
            return [step]
        state = tuple(column[slot] for column in self.states_before[: version.rule.width])
        points = begin_season(version, self.stream.ladder, step.row, state)[0]
        if points == step.points_before:
            return [step]
        season_change = points - step.points_before
        season = Step(None, step.points_before, season_change, step.row, cause="season")
        return [season, step._replace(points_before=points, change=step.change - season_change)]

    def _list_steps_in_period(self, slot: int, step: Step) -> list[Step]:
        """Return a game's step; after the player's last game in a period, also the step of the period."""
        periods, stream = self.stream.periods, self.stream
        assert periods is not None
        game = _find_game(stream, slot)
        end = stream.offsets[int(periods.offsets[int(periods.of_game[game]) + 1])]
        player = stream.players[slot]
        next_index = bisect_right(self.slots.order, slot, self.slots.start[player], self.slots.end[player])
        if next_index < self.slots.end[player] and self.slots.order[next_index] < end:
            return [step]
        period = Step(None, step.points_before, step.change, step.row, cause="period")
        return [step._replace(change=0), period]

    def players_of(self, game: int) -> Column:
        """Return the counted players of a game, given its number on the ladder."""
        if self.earlier and game < self.earlier_games:
            return self.earlier.players_of(game)
        offsets, own_game = self.stream.offsets, game - self.earlier_games
        return self.stream.players[offsets[own_game] : offsets[own_game + 1]]

    def players_by_game(self, games: Sequence[int]) -> list[Sequence[int]]:
        """Return the counted players of each of some games. `games` must be in ascending order."""
        earlier_games = self.earlier_games
        earlier_count = bisect_left(games, earlier_games)
        players_by_game = self.earlier.players_by_game(games[:earlier_count]) if self.earlier and earlier_count else []
        own_games, take = array("q", [game - earlier_games for game in games[earlier_count:]]), arrays.take
        starts, ends = take(self.stream.offsets, own_games), take(self.stream.offsets, arrays.shift(own_games, 1))
        sizes = array("q", [end - start for start, end in zip(starts, ends, strict=True)])
        players = take(self.stream.players, arrays.span_indices(starts, sizes)).tolist()
        position = 0
        for size in sizes:
            players_by_game.append(players[position : position + size])
            position += size
        return players_by_game

    def last_row_of(self, player: int) -> int | None:
        """Return the row in the facts of a player's last game on the ladder; None without games."""
        slots, earlier = self.slots, self.earlier
        if slots.start[player] < slots.end[player]:
            slot = slots.order[slots.end[player] - 1]
            row: int = self.stream.rows[bisect_right(self.stream.offsets, slot) - 1]
            return row
        return earlier.last_row_of(player) if earlier and player < len(earlier.points) else None

    def last_period_of(self, player: int) -> int | None:
        """Return the `Periods.last_number` of the last rating period in which a player played; None without games."""
        periods, slots = self.stream.periods, self.slots
        assert periods is not None
        if slots.start[player] == slots.end[player]:
            return None
        return int(periods.last_number[periods.of_game[_find_game(self.stream, slots.order[slots.end[player] - 1])]])

    def every_step(self) -> Iterator[tuple[int, Step]]:
        """Yield (player, step) for all steps of all players, in the order of the ladder; within a game by player id."""
        earlier_games = self.earlier_games
        if self.earlier:
            yield from self.earlier.every_step()
        stream, changes = self.stream, self.changes
        adjustments = iter([*enumerate(stream.adjustments), (len(stream.adjustments), None)])
        index, adjustment = next(adjustments)
        for game in range(len(stream.rows) + 1):
            while adjustment is not None and adjustment.game == game:
                if _is_step(adjustment):
                    yield adjustment.player, _make_adjustment_step(adjustment, self.states_before_adjustments[0][index])
                index, adjustment = next(adjustments)
            if game < len(stream.rows):
                row, version = stream.rows[game], stream.versions[stream.version_indices[game]]
                for slot in range(stream.offsets[game], stream.offsets[game + 1]):
                    step = Step(earlier_games + game, self.points_before[slot], changes[slot], row, version)
                    for step_at_slot in self._list_steps_at_slot(slot, step):
                        yield stream.players[slot], step_at_slot

    def has_same_results(self, trace: Trace) -> bool:
        """Tell whether another trace has the same parts, with equal games, states and totals."""
        if self is trace:
            return True
        left, right = self.stream, trace.stream
        return (
            (left.names, left.versions, left.adjustments) == (right.names, right.versions, right.adjustments)
            and self.list_totals() == trace.list_totals()
            and all(map(arrays.equal, self._list_columns(), trace._list_columns()))
            and (self.earlier is None) == (trace.earlier is None)
            and (self.earlier is None or trace.earlier is None or self.earlier.has_same_results(trace.earlier))
        )

    def _list_columns(self) -> tuple[Column, ...]:
        stream = self.stream
        return (
            stream.offsets,
            stream.players,
            stream.version_indices,
            stream.rows,
            *self.states_before,
            *self.states,
            self.games,
            self.mints,
            *self.states_before_adjustments,
        )

    def list_totals(self) -> tuple[int, ...]:
        """Return the totals of the trial balance: the start total, and the minted, burned and adjusted points."""
        return self.start_total, self.minted, self.burned, self.adjusted

    @cached_property
    def latest_version_start(self) -> int:
        """Return the start of the latest version that has taken effect in this trace; `MISSING` if there is none."""
        starts: list[int | None] = [self.stream.latest_version_start]
        if self.stream.adjustments:
            last = self.stream.adjustments[-1]
            changes = find_version_changes(self.stream.versions)
            starts += [change.since for change in changes if change.instant <= last.occurred_at]
            if last.is_version_entry:
                starts.append(self.stream.versions[last.version].effective_from)
        if self.last_version is not None:
            starts.append(self.last_version.effective_from)
        if self.earlier is not None:
            starts.append(self.earlier.latest_version_start)
        return max(instant for instant in starts if instant is not None)

    @cached_property
    def final_version(self) -> Version:
        """Return the version whose rule defines the players' state columns at the end."""
        stream, start = self.stream, self.latest_version_start
        in_force = [version for version in stream.versions if (version.effective_from or MISSING) == start]
        return in_force[0] if len(in_force) == 1 else self.last_version or stream.versions[0]

    def apply_versions_until(self, instant: int) -> Trace:
        """Apply the versions that take effect after the last game and up to an instant. Return the extended trace.

        Raises `RuleFailure`.
        """
        trace, open_from = self, self.stream.open_from
        # a version that comes into force within a rating period takes effect when the period closes
        instant = instant if open_from is None else min(instant, open_from)
        for change in find_version_changes(self.stream.versions):
            if self.latest_version_start < change.since and change.instant <= instant and self.step_count:
                trace = _enter_version_at_end(trace, change)
        return trace

    def compact(self) -> Trace:
        """Join all parts but the first if there are many, because each query about a player reads all parts.

        The first part is not copied, because it is the longest and may be in a file.
        """
        parts = self._list_parts()
        return _join_parts(parts[1:]) if len(parts) > PARTS_MAX else self

    def join_parts(self) -> Trace:
        """Return this trace as a single part. Players are numbered by their first games, those without games last."""
        return self if self.earlier is None else _join_parts(self._list_parts())

    def _list_parts(self) -> list[Trace]:
        return [*(self.earlier._list_parts() if self.earlier else ()), self]

    def state_of(self, person: int, games: int, adjustments: int) -> State | None:
        """Return a person's state after the first `games` and `adjustments`; None if they have not joined yet."""
        number, earlier = self.stream.numbers.get(person), self.earlier
        if number is None or (games == self.game_count and adjustments == self.adjustment_count):
            return None if number is None else self.state(number)
        if earlier and games <= earlier.game_count and adjustments <= earlier.adjustment_count:
            return earlier.state_of(person, games, adjustments)
        if earlier:
            games, adjustments = games - earlier.game_count, adjustments - earlier.adjustment_count
        slots, end = self.slots, self.stream.offsets[games]
        position = bisect_left(slots.order, end, slots.start[number], slots.end[number])
        own_adjustments = self._find_adjustments(number)
        is_known = earlier is not None and number < len(earlier.points)
        if not (is_known or position > slots.start[number] or any(index < adjustments for index in own_adjustments)):
            return None
        # the player's state now is their state before the next game or adjustment
        slot = slots.order[position] if position < slots.end[number] else len(self.points_before)
        state = [
            int(before[slot] if slot < len(before) else states[number])
            for before, states in zip(self.states_before, self.states, strict=True)
        ]
        next_adjustment = next(
            (index for index in own_adjustments if index >= adjustments and self._adjustment_slots[index] <= slot), None
        )
        if next_adjustment is not None:
            return tuple(int(column[next_adjustment]) for column in self.states_before_adjustments)
        return tuple(state)

    def game_count_and_last_row(self, person: int, games: int) -> tuple[int, int | None]:
        """Return the number of a person's games among the first `games`, and the row of the last one in the facts.

        The row is None if there is no such game. Games recorded in the person's entry state are not included.
        """
        number, earlier, earlier_games = self.stream.numbers.get(person), self.earlier, self.earlier_games
        if number is None:
            return 0, None
        earlier_result: tuple[int, int | None] = (0, None)
        if earlier and number < len(earlier.points):
            earlier_result = earlier.game_count_and_last_row(person, min(games, earlier_games))
        if games <= earlier_games:
            return earlier_result
        slots, end = self.slots, self.stream.offsets[games - earlier_games]
        position = bisect_left(slots.order, end, slots.start[number], slots.end[number])
        if position == slots.start[number]:
            return earlier_result
        game = _find_game(self.stream, slots.order[position - 1])
        return earlier_result[0] + position - slots.start[number], self.stream.rows[game]

    def truncate(self, games: int, adjustments: int) -> Trace:
        """Return the trace of only the ladder's first `games` and `adjustments`."""
        if games == self.game_count and adjustments == self.adjustment_count:
            return self
        earlier = self.earlier
        if earlier and games <= earlier.game_count and adjustments <= earlier.adjustment_count:
            return earlier.truncate(games, adjustments)
        known_players, minted, adjusted, start_total = 0, 0, 0, 0
        if earlier:
            games, adjustments = games - earlier.game_count, adjustments - earlier.adjustment_count
            known_players = len(earlier.points)
            minted, adjusted, start_total = earlier.minted, earlier.adjusted, earlier.start_total
        end, slots = self.stream.offsets[games], self.slots
        states, played, next_positions = self._rewind_states(end, adjustments)
        # new players are numbered by their first games, so those without games up to here come last
        count = bisect_left(
            range(len(played)), True, known_players, key=lambda player: slots.start[player] == next_positions[player]
        )
        stream = self.stream.truncate(games, adjustments, player_count=count)
        numbers = array("i", [*range(count), *(self.stream.numbers[person] for person in stream.persons[count:])])
        trace = Trace(
            stream,
            states=[arrays.take(column, numbers) for column in states],
            games=arrays.take(played, numbers),
            on_ladder=array("b", b"\1" * len(numbers)),
            entry_states=self.entry_states,
            states_before=[column[:end] for column in self.states_before],
            mints=self.mints[:games],
            states_before_adjustments=[column[:adjustments] for column in self.states_before_adjustments],
            start_total=start_total + arrays.total(arrays.take(self.opening_points, numbers[known_players:])),
            minted=minted
            + arrays.total(self.mints[:games])
            + sum(max(adjustment.units, 0) for adjustment in stream.adjustments if adjustment.is_version_entry),
            adjusted=adjusted
            + sum(adjustment.units for adjustment in stream.adjustments if not adjustment.is_version_entry),
            earlier=earlier,
        )
        trace.burned = trace.start_total + trace.minted + trace.adjusted - arrays.total(trace.points)
        trace.slots = Slots(arrays.take(slots.start, numbers), arrays.take(next_positions, numbers), slots.order)
        return trace

    def _rewind_states(self, end: int, adjustments: int) -> tuple[Sequence[Column], Column, Column]:
        """Rewind all players to the point where the slots below `end` and the first `adjustments` are applied.

        Returns the states and game counts there and, by player, the position of the next slot in `slots.order`.
        """
        states, games, slots = [*map(_copy_to_array, self.states)], _copy_to_array(self.games), self.slots
        next_positions = arrays.rewind(
            states, games, start=slots.start, end=slots.end, order=slots.order, before=self.states_before, slot=end
        )
        for index in range(len(self._adjustment_slots) - 1, adjustments - 1, -1):
            player = self.stream.adjustments[index].player
            plays_later = next_positions[player] < slots.end[player]
            if not plays_later or self._adjustment_slots[index] <= slots.order[next_positions[player]]:
                for column, states_before in zip(states, self.states_before_adjustments, strict=True):
                    column[player] = states_before[index]
        return states, games, next_positions

    @cached_property
    def opening_points(self) -> Column:
        """Return the points of all players before the stream's first game and adjustment."""
        points, first_slots = _copy_to_array(self.points), array("q", [NONE]) * len(self.points)
        self._run_loop(loops.find_first_slots, self.stream.players, first_slots)
        for player, slot in enumerate(first_slots):
            if slot != NONE:
                points[player] = self.points_before[slot]
        for index in reversed(range(len(self._adjustment_slots))):
            player = self.stream.adjustments[index].player
            if first_slots[player] == NONE or self._adjustment_slots[index] <= first_slots[player]:
                points[player] = self.states_before_adjustments[0][index]
        return points


def _find_game(stream: Stream, slot: int) -> int:
    return bisect_right(stream.offsets, slot) - 1


def _is_step(adjustment: StreamAdjustment) -> bool:
    """Tell whether an adjustment is a step. A version entry is a step only if it changes points."""
    return bool(adjustment.units or not adjustment.is_version_entry)


def _make_adjustment_step(adjustment: StreamAdjustment, before: int) -> Step:
    cause = "version" if adjustment.is_version_entry else ""
    return Step(
        None, before, adjustment.units, position=adjustment.position, occurred_at=adjustment.occurred_at, cause=cause
    )


def _enter_version_at_end(trace: Trace, change: VersionChange) -> Trace:
    """Return a trace extended by a version that takes effect at the end. Raises `RuleFailure`."""
    stream, (old, new) = trace.stream, (trace.stream.versions[number] for number in (change.previous, change.version))
    before = [trace.state(player) for player in range(len(stream.names))]
    carried = [tuple(carry_columns(state[: old.rule.width], old, new)) for state in before]
    after = [enter_version(new, stream.ladder, state) for state in carried]
    gains = [new_state[0] - old_state[0] for new_state, old_state in zip(after, before, strict=True)]
    entries = [
        make_version_entry(stream, player, len(stream.rows), change, units) for player, units in enumerate(gains)
    ]
    extended = replace(
        trace,
        stream=replace(stream, adjustments=[*stream.adjustments, *entries], trace=None),
        states=_to_columns(after, stream.width),
        states_before_adjustments=_join_columns([trace.states_before_adjustments, _to_columns(before, stream.width)]),
        minted=trace.minted + sum(max(units, 0) for units in gains),
        burned=trace.burned + sum(max(-units, 0) for units in gains),
    )
    extended.slots = trace.slots
    return extended


def _to_columns(states: Sequence[State], width: int) -> list[Column]:
    """Transpose states into `width` columns. Columns that the states lack are 0."""
    columns = np.zeros((width, len(states)), dtype=np.int64)
    for column, numbers in zip(columns, zip(*states, strict=True), strict=False):
        column[:] = numbers
    return [arrays.as_column(column) for column in columns]


def _join_parts(parts: Sequence[Trace]) -> Trace:
    """Join successive parts of a trace into a single part, which continues the same trace as the first of them."""
    earlier = parts[0].earlier
    known_players = len(earlier.points) if earlier else 0
    last, streams = parts[-1], [part.stream for part in parts]
    streams_with_games = [stream for stream in streams if len(stream.rows)]
    first_slots = _find_first_slots(parts)
    # number players by their first games; players who have only adjustments come last, in their previous order
    new_players = sorted(range(known_players, len(last.points)), key=lambda player: first_slots.get(player, 2**63))
    new_order = [*range(known_players), *new_players]
    new_numbers = array("i", bytes(4 * len(new_order)))
    for new, old in enumerate(new_order):
        new_numbers[old] = new
    offsets, adjustments, slot_count, game_count = [array("q", [0])], list[StreamAdjustment](), 0, 0
    for stream in streams:
        offsets.append(arrays.shift(stream.offsets[1:], slot_count))
        adjustments += [
            adjustment._replace(game=adjustment.game + game_count, player=new_numbers[adjustment.player])
            for adjustment in stream.adjustments
        ]
        slot_count, game_count = slot_count + len(stream.players), game_count + len(stream.rows)
    players = arrays.take(new_numbers, arrays.concatenate("i", [stream.players for stream in streams]))
    joined = Stream(
        ladder=last.stream.ladder,
        rule=last.stream.rule,
        versions=last.stream.versions,
        names=[last.stream.names[old] for old in new_order],
        offsets=arrays.concatenate("q", offsets),
        players=players,
        columns=LazyColumns(lambda: _join_columns(stream.columns for stream in streams_with_games)),
        version_indices=arrays.concatenate("h", [stream.version_indices for stream in streams]),
        rows=arrays.concatenate("q", [stream.rows for stream in streams]),
        adjustments=adjustments,
        persons=[last.stream.persons[old] for old in new_order],
        seeds=last.stream.seeds,
    )
    if calendars := [stream.calendar for stream in streams if stream.calendar is not None]:
        joined.calendar = Calendar(*_join_columns(calendars))
    return Trace(
        joined,
        states=[array("q", [column[old] for old in new_order]) for column in last.states],
        games=array("q", [last.games[old] for old in new_order]),
        on_ladder=last.on_ladder,
        entry_states=last.entry_states,
        states_before=_join_columns(part.states_before for part in parts),
        mints=arrays.concatenate("q", [part.mints for part in parts]),
        states_before_adjustments=_join_columns(part.states_before_adjustments for part in parts),
        start_total=last.start_total,
        minted=last.minted,
        burned=last.burned,
        adjusted=last.adjusted,
        earlier=earlier,
    )


def _join_columns(parts: Iterable[Sequence[Column]]) -> list[Column]:
    """Concatenate the columns of several parts, column by column."""
    return [arrays.concatenate("q", columns) for columns in zip(*parts, strict=True)]


def _find_first_slots(parts: Sequence[Trace]) -> dict[int, int]:
    """Return the first slot of every player with games. The slots are numbered across all parts."""
    first_slots: dict[int, int] = {}
    begin = 0
    for part in parts:
        for number, (start, end) in enumerate(zip(part.slots.start, part.slots.end, strict=True)):
            if start < end:
                first_slots.setdefault(number, begin + part.slots.order[start])
        begin += len(part.stream.players)
    return first_slots


def _copy_to_array(column: Column) -> array[int]:
    return array("q", memoryview(arrays.load_into_memory(column)).tobytes())
