"""Replay streams: score all games of a ladder by its rule, from the beginning or from the end of an earlier trace.

This module computes all points. The loops, `loops.run_ladder` and `loops.run_periods`, are interpreted for short
histories and compiled together with the rule's functions for long ones. Both ways give the same numbers; see
`compiling`. If a rule fails or cannot be compiled, its ladders are interpreted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Columns
from ratings_ledger.projections.facts.columns import Column
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.gaps import (
    Gaps,
    fill_in_history,
    list_needed_columns,
    measure_gaps,
    reads_history,
)
from ratings_ledger.projections.replay.loops import NOT_RUN, OK
from ratings_ledger.projections.replay.period_slots import PeriodSlots
from ratings_ledger.projections.replay.rule_calls import (
    PeriodResults,
    RuleFailure,
    bring_to_game,
    check_balance,
    enter_version,
    make_failure,
    score_period_states,
    score_states,
    subtract,
)
from ratings_ledger.projections.replay.seasons import EntryState, State, add_seeds
from ratings_ledger.projections.replay.streams import (
    LadderBatch,
    Stream,
    StreamAdjustment,
    carry_columns,
    find_version_changes,
    have_same_state_columns,
    insert_version_entries,
)
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.rule_errors import (
    RULE_ERRORS,
    describe_error,
    read_integer,
    redirect_output,
    rule_table,
)
from ratings_ledger.projections.rulesets.versions import Version

# compiled code that is already loaded for a batch is faster for a single ladder of at least this many games
COMPILED_GAMES_MIN_IN_BATCH = 300
# an adjustment of this size moves any player's points out of bounds
UNITS_BEYOND = 3 * UNITS_MAX
OUT_OF_BOUNDS = "the points grow out of bounds"


def find_starting_points(
    stream: Stream, player_id: str, version: Version, entry_states: Mapping[str, EntryState]
) -> int:
    """Return the points, in units, with which a player joins a ladder. Raises `RuleFailure`."""
    return find_starting_state(stream, player_id, version, entry_states)[0]


def find_starting_state(
    stream: Stream, player_id: str, version: Version, entry_states: Mapping[str, EntryState]
) -> State:
    """Return the state with which a player joins a ladder under one of its versions. Raises `RuleFailure`."""
    entry = entry_states[player_id].under(version) if player_id in entry_states else None
    if entry is None:
        return version.start_state
    return _carry_forward(stream, entry, version) if entry.seeded is None else entry.seeded[version.ruleset.name]


def _carry_forward(stream: Stream, entry: EntryState, version: Version) -> State:
    """Return the state of `entry` after the later versions up to `version` have taken effect. Raises `RuleFailure`."""
    state = entry.state
    for change in find_version_changes(stream.versions):
        if entry.latest_version_start < change.since <= (version.effective_from or MISSING):
            previous_version, new_version = (stream.versions[index] for index in (change.previous, change.version))
            carried = carry_columns(state[: previous_version.rule.width], previous_version, new_version)
            state = enter_version(new_version, stream.ladder, tuple(carried))
    return state[: version.rule.width]  # an entry has a number for each column of the widest version


def _find_entry_states(stream: Stream) -> dict[str, EntryState]:
    """Return, by player id, the entry states from seeds and earlier seasons. Raises `RuleFailure`.

    Players without an entry state enter as new players.
    """
    seasons = [stream]
    while (season_before := seasons[-1].previous) is not None:
        seasons.append(season_before)
    carried: dict[str, EntryState] = {}
    for season in reversed(seasons[1:]):
        # `carried` already holds the results of all earlier seasons, so the replay does not repeat them; versions that
        # take effect after a season's last game are applied where a player enters the next one
        trace = replay(replace(season, until=None), entry_states=add_seeds(carried, season.seeds), keep_history=False)
        carried |= {
            name: trace.make_season_entry(player) for player, name in enumerate(season.names) if trace.on_ladder[player]
        }
    return add_seeds(carried, stream.seeds) if carried else {**stream.seeds}


def replay(
    stream: Stream,
    *,
    entry_states: Mapping[str, EntryState] | None = None,
    keep_history: bool = True,
    earlier: Trace | None = None,
) -> Trace:
    """Return the trace of a stream. Raises `RuleFailure`.

    Args:
        entry_states: by player id, the states of players who enter with carried or seeded points; by default they are
            computed from the seeds of the stream and a replay of the earlier seasons
        keep_history: if False, the trace may omit the states before games, which takes a third less memory
        earlier: a trace to continue; its players must come first in the stream
    """
    if stream.failure is not None:
        raise stream.failure
    if isinstance(stream.trace, Trace):
        return stream.trace
    entry_states = _find_entry_states(stream) if entry_states is None else entry_states
    if earlier is None:
        stream = insert_version_entries(stream)
    else:
        stream = insert_version_entries(stream, len(earlier.points), earlier.latest_version_start)
    trace = _replay(stream, entry_states, keep_history, earlier)
    return trace if stream.until is None else trace.apply_versions_until(stream.until)


def _replay(stream: Stream, entry_states: Mapping[str, EntryState], keep_history: bool, earlier: Trace | None) -> Trace:
    """Return the trace of a stream, using the fastest suitable loop. Raises `RuleFailure`."""
    if stream.periods is not None:
        return replay_periods(stream, entry_states)
    if stream.batch is not None and not stream.adjustments and not entry_states:
        batched = _replay_in_batch(stream, stream.batch, keep_history)
        if batched is not None:
            return batched
    games = len(stream.rows)
    if compiling.is_worthwhile(games) or (stream.batch is not None and games >= COMPILED_GAMES_MIN_IN_BATCH):
        trace = replay_compiled(stream, entry_states, keep_history, earlier)
        if trace is not None:
            return trace
    return replay_interpreted(stream, entry_states, keep_history, earlier)


class VersionSwitch:
    """The states of a stream, which are converted between versions with different state columns.

    version: the version whose columns the states have now; None before the first version
    """

    def __init__(self, stream: Stream, states: Any, states_before_adjustments: Any) -> None:
        self.version: Version | None = None
        self._stream, self._states, self._states_before_adjustments = stream, states, states_before_adjustments
        self._states_to_record: tuple[Any, Any] | None = None

    def begin(self, version: Version) -> int:
        """Convert the states to the columns of a version. Return the number of these columns."""
        previous, self.version, self._states_to_record = self.version, version, None
        if previous is not None and not have_same_state_columns(previous, version):
            entry_indices = [
                index
                for index, adjustment in enumerate(self._stream.adjustments)
                if adjustment.is_version_entry and self._stream.versions[adjustment.version] is version
            ]
            players = [self._stream.adjustments[index].player for index in entry_indices]
            self._states_to_record = np.array(entry_indices, dtype=np.int64), self._states[:, players].copy()
            carried = carry_columns([*self._states[: previous.rule.width].copy()], previous, version)
            for column, numbers in zip(self._states, carried, strict=False):
                column[:] = numbers
            self._states[version.rule.width :] = 0
        return version.rule.width

    def end(self) -> None:
        """Record the states before the version's entries as they were: the loop recorded them after the conversion."""
        if self._states_to_record is not None:
            entry_indices, states = self._states_to_record
            self._states_before_adjustments[:, entry_indices] = states


class LoopBackend(NamedTuple):
    """An interpreted or compiled `loops.run_ladder`, with the arguments in the form that it needs.

    run:         (version, *arguments of the loop) -> the loop's result, or None if compiled code cannot run the rule
    columns:     the columns that the rules read: a row for each, by slot
    totals:      see `loops.START_TOTAL`
    game_arrays: work space for the states of one game's players, and for the changes of their states
    gaps:        see `loops.bring_states_forward`
    to_input:    converts a column for `run`
    to_input_rows: converts the rows of an array for `run`
    """

    run: Callable[..., int | None]
    columns: Any
    totals: Any
    game_arrays: Sequence[Any]
    gaps: Any
    to_input: Callable[[Any], Any]
    to_input_rows: Callable[[Any], Any]


def replay_interpreted(
    stream: Stream, entry_states: Mapping[str, EntryState], keep_history: bool = True, earlier: Trace | None = None
) -> Trace:
    """Replay a stream without compiled code. Raises `RuleFailure`, naming the failed game or adjustment, if any."""
    totals = [0] * loops.TOTALS_LENGTH
    parts = {id(version): _make_checked_parts(stream, version, totals) for version in stream.versions}
    players_max = max((end - start for start, end in pairwise(stream.offsets)), default=0)

    def run(version: Version, *arguments: Any) -> int:
        loop = FunctionType(loops.run_ladder.__code__, {**vars(loops), **parts[id(version)]})
        return _check_bounds(stream, loop((), (), *arguments), totals, lambda: stream.rows[totals[loops.CURRENT]])

    # lists hold integers of any size, so the loop can report numbers out of bounds
    width = stream.width
    game_arrays = [[[0] * players_max for _ in range(width)] for _ in range(2)]
    gaps = _measure_gaps(stream, entry_states, earlier)
    backend = LoopBackend(
        run=run,
        columns=_ColumnRows(read_rule_columns(stream, gaps)),
        totals=totals,
        game_arrays=game_arrays,
        gaps=read_gap_rows(gaps),
        to_input=lambda column: column,
        to_input_rows=_view_columns,
    )
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run_loop(backend, stream, entry_states, keep_history, earlier)
    assert trace is not None
    return trace


def _check_bounds(stream: Stream, result: int, totals: Sequence[int], find_row: Callable[[], int]) -> int:
    """Return the result of a loop. Raise `RuleFailure` if a game or adjustment moved points out of bounds."""
    if result == loops.OVERFLOW:
        raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, find_row())
    if result == loops.ADJUSTMENT_OVERFLOW:
        adjustment = stream.adjustments[int(totals[loops.NEXT_ADJUSTMENT])]
        raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=adjustment.position)
    return result


class _ColumnRows(list[Any]):
    """A list of columns that supports the slices of a two-dimensional numpy array: `columns[:, first:last]`."""

    def __getitem__(self, key: Any) -> Any:
        return [column[key[1]].tolist() for column in self]


def _make_checked_parts(stream: Stream, version: Version, totals: list[int]) -> dict[str, Callable[..., Any]]:
    """Return the functions that the interpreted loop calls for a version, by name.

    The functions turn an error of the rule into a failure of the current game; that of `adjust` names no game. Raises
    `RuleFailure` if the rule's table cannot be used.
    """
    rule = version.rule
    try:
        table = rule_table(rule)
    except RULE_ERRORS as error:
        raise RuleFailure(stream.ladder, describe_error(error, rule.table), position=version.position) from error

    def change_states(n: int, states_before: Any, columns: Columns, _: Any, __: Any, change: Any) -> int:
        game_changes = array("q", bytes(8 * n))
        try:
            points = states_before[0][:n]
            minted = read_integer(rule.score(n, points, columns, version.constants, table, game_changes), "score")
            change[0][:n] = check_balance(n, minted, game_changes)
        except RULE_ERRORS as error:
            raise make_failure(stream.ladder, rule, error, stream.rows[totals[loops.CURRENT]]) from error
        return minted

    def change_several_states(n: int, states_before: Any, columns: Columns, _: Any, __: Any, change: Any) -> int:
        row = stream.rows[totals[loops.CURRENT]]
        minted, after = score_states(version, stream.ladder, row, [column[:n] for column in states_before], columns)
        for column, new_numbers, old_numbers in zip(change, after, states_before, strict=True):
            column[:n] = subtract(new_numbers, old_numbers[:n])
        return minted

    def bring_all_forward(n: int, first_slot: int, states: Any, gaps: Any, _: Any) -> tuple[int, int]:
        player_gaps = [row[first_slot : first_slot + n].tolist() for row in gaps]
        return _bring_all_forward(version, stream.ladder, stream.rows[totals[loops.CURRENT]], states, player_gaps)

    if rule.state:
        adjust = _make_checked_adjust(stream, version)
        return {"change_states": change_several_states, "bring_forward": bring_all_forward, "adjust": adjust}
    return {"change_states": change_states}


def _make_checked_adjust(stream: Stream, version: Version) -> Callable[..., Any]:
    """Return the function that the interpreted loops call for an adjustment.

    The function turns an error in the rule's `enter` into a `RuleFailure`, which names no game.
    """

    def enter(state: State, _: Any) -> State:
        return enter_version(version, stream.ladder, tuple(map(int, state)))

    parts = {"enter": enter, "take_state": loops.TAKE_STATE[version.rule.width]}
    return FunctionType(loops.adjust.__code__, {**vars(loops), **parts})


def replay_compiled(
    stream: Stream, entry_states: Mapping[str, EntryState], keep_history: bool = True, earlier: Trace | None = None
) -> Trace | None:
    """Replay a stream with compiled code. Return None if numba cannot compile the rule, or if the loop fails."""
    gaps = _measure_gaps(stream, entry_states, earlier)
    columns = arrays.stack(read_rule_columns(stream, gaps))
    for version in stream.versions:
        columns = compiling.protect_from_rule(columns, version.rule)

    def run(version: Version, *arguments: Any) -> int | None:
        run_compiled = compiling.compile_with_rule(loops.run_ladder, version.rule, loops.find_rule_parts(version.rule))
        code: int | None = run_compiled(*build_rule_arrays(version), *arguments)
        return code

    players_max = int(np.diff(arrays.as_numpy(stream.offsets)).max(initial=0))
    backend = LoopBackend(
        run=run,
        columns=columns,
        totals=_zeros(loops.TOTALS_LENGTH),
        game_arrays=compiling.allocate_game_arrays(stream.width, players_max),
        gaps=read_gap_rows(gaps),
        to_input=arrays.as_numpy,
        to_input_rows=lambda rows: rows,
    )
    return _run_loop(backend, stream, entry_states, keep_history, earlier)


def replay_periods(stream: Stream, entry_states: Mapping[str, EntryState]) -> Trace:
    """Return the trace of a stream whose games are scored by rating periods. Raises `RuleFailure`.

    A player's state before each game in a period is the state at the start of the period.
    """
    gaps = _measure_gaps(stream, entry_states, earlier=None)
    assert gaps is not None
    slots = PeriodSlots(stream, gaps)
    if compiling.is_worthwhile(len(stream.rows)):
        trace = _run_periods(_compile_period_loop, stream, slots, entry_states)
        if trace is not None:
            return trace
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run_periods(_make_checked_period_loop, stream, slots, entry_states)
    assert trace is not None
    return trace


# long, because the compiled loop takes its many arguments by position
def _run_periods(
    make_loop: Callable[[Stream, Version, Any], Callable[..., int | None]],
    stream: Stream,
    slots: PeriodSlots,
    entry_states: Mapping[str, EntryState],
) -> Trace | None:
    """Return the trace of a stream scored by periods; None if compiled code fails or cannot run the rule.

    Interpreted code raises. `make_loop` returns the loop over periods for a version.
    """
    periods, results = slots.periods, slots.results
    width, period_count = stream.width, len(periods.begin)
    states, recorded = _zero_rows(width, len(stream.names)), _zero_rows(width, len(results.people))
    on_ladder = np.zeros(len(stream.names), dtype=np.int8)
    totals, mints = _zeros(loops.TOTALS_LENGTH), _zeros(period_count)
    states_before_adjustments = _zero_rows(width, len(stream.adjustments))
    players_max = int(np.diff(results.people_from).max(initial=0))
    period_arrays, offsets = compiling.allocate_game_arrays(width, players_max), _zeros(players_max + 1)
    adjustments = [*map(arrays.as_numpy, _read_adjustments(stream))]
    adjustments[0] = np.searchsorted(periods.offsets, adjustments[0], "left").astype(np.int64)
    scored_by = arrays.as_column(arrays.as_numpy(stream.version_indices)[periods.offsets[:-1]])
    switch = VersionSwitch(stream, states, states_before_adjustments)
    for version, start, stop, adjustment_stop in _split_by_version(stream, scored_by, adjustments[0].tolist()):
        width_of_version = switch.begin(version)
        result = make_loop(stream, version, totals)(
            start,
            stop,
            _stack_starting_states(stream, version, entry_states),
            results.people,
            results.people_from,
            results.rows_from,
            slots.select_rows(version),
            states[:width_of_version],
            on_ladder,
            totals,
            *(states_of_period[:width_of_version] for states_of_period in period_arrays),
            offsets,
            slots.gaps,
            recorded[:width_of_version],
            mints,
            *(column[:adjustment_stop] for column in adjustments),
            _stack_starting_states_of_adjustments(stream, entry_states, width)[:width_of_version],
            states_before_adjustments[:width_of_version],
        )
        if result != OK:
            return None
        switch.end()
    stream.adjustments = _fill_in_units(stream, adjustments[2].tolist())
    # the points minted in a period are recorded at its last game
    mints_by_game = _zeros(len(stream.rows))
    mints_by_game[periods.offsets[1:] - 1] = mints
    counts = np.bincount(arrays.as_numpy(stream.players), minlength=len(stream.names)).astype(np.int64)
    start_total, minted, burned, adjusted = map(int, totals[: loops.NEXT_ADJUSTMENT])
    return Trace(
        stream,
        states=_view_columns(states),
        games=arrays.as_column(counts),
        on_ladder=arrays.as_column(on_ladder),
        entry_states=entry_states,
        states_before=_view_columns(np.ascontiguousarray(recorded[:, slots.entry])),
        mints=arrays.as_column(mints_by_game),
        states_before_adjustments=_view_columns(states_before_adjustments),
        start_total=start_total,
        minted=minted,
        burned=burned,
        adjusted=adjusted,
    )


def _compile_period_loop(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the compiled loop over periods for a version."""
    run = compiling.compile_with_rule(loops.run_periods, version.rule, loops.find_rule_parts(version.rule))
    constants = build_rule_arrays(version)
    return lambda *arguments: run(*constants, *arguments)


def _make_checked_period_loop(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the interpreted loop over periods for a version.

    The loop turns an error of the rule into a failure of the period, which names the period's first game.
    """
    periods = stream.periods
    assert periods is not None

    def find_row() -> int:
        return int(stream.rows[int(periods.offsets[int(totals[loops.CURRENT])])])

    def score_period(n: int, before: Any, offsets: Any, rows: Any, _: Any, __: Any, after: Any) -> int:
        results = PeriodResults(before.tolist(), offsets.tolist(), rows.tolist())
        minted, new_states = score_period_states(version, stream.ladder, find_row(), results)
        after[:] = new_states
        return minted

    def bring_all_forward(n: int, first_entry: int, states: Any, gaps: Any, _: Any) -> tuple[int, int]:
        player_gaps = gaps[:, first_entry : first_entry + n].tolist()
        return _bring_all_forward(version, stream.ladder, find_row(), states, player_gaps)

    adjust = _make_checked_adjust(stream, version)
    parts = {"score_period": score_period, "bring_forward": bring_all_forward, "adjust": adjust}
    loop = FunctionType(loops.run_periods.__code__, {**vars(loops), **parts})

    def run(*arguments: Any) -> int:
        return _check_bounds(stream, loop((), (), *arguments), totals, find_row)

    return run


def _bring_all_forward(
    version: Version, ladder: str, row: int, states: Any, gaps: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """Bring the states of players forward to a game or period. Return the points minted and burned by new seasons.

    `states` is updated. `gaps` has two rows by player: whether a season begins, and the elapsed time.
    """
    minted = burned = 0
    for i, (changes_season, elapsed) in enumerate(zip(*gaps, strict=True)):
        old_state = tuple(int(column[i]) for column in states)
        new_state = bring_to_game(version, ladder, row, old_state, changes_season, elapsed)
        for column, number in zip(states, new_state, strict=True):
            column[i] = number
        minted += max(new_state[0] - old_state[0], 0)
        burned += max(old_state[0] - new_state[0], 0)
    return minted, burned


# long, because the compiled loop takes its many arguments by position
def _run_loop(
    backend: LoopBackend,
    stream: Stream,
    entry_states: Mapping[str, EntryState],
    keep_history: bool,
    earlier: Trace | None,
) -> Trace | None:
    """Return the trace of a stream; None if compiled code fails or cannot run the rule. Interpreted code raises."""
    known_players, player_count, game_count = len(earlier.points) if earlier else 0, len(stream.names), len(stream.rows)
    width = len(backend.game_arrays[0])
    states, states_before = _zero_rows(width, player_count), _zero_rows(width, len(stream.players) * keep_history)
    games_by_player, mints = _view_columns(map(_zeros, (player_count, game_count * keep_history)))
    states_before_adjustments = _zero_rows(width, len(stream.adjustments))
    adjustments = [memoryview(column) for column in _read_adjustments(stream)]
    trace = Trace(
        stream,
        states=_view_columns(states),
        games=games_by_player,
        on_ladder=array("b", b"\1" * known_players + bytes(player_count - known_players)),
        entry_states=entry_states,
        states_before=_view_columns(states_before),
        mints=mints,
        states_before_adjustments=_view_columns(states_before_adjustments),
        earlier=earlier,
    )
    if earlier is not None:
        states[:, :known_players] = [arrays.as_numpy(column) for column in earlier.states]
        arrays.as_numpy(trace.games)[:known_players] = arrays.as_numpy(earlier.games)
    to_input, to_input_rows = backend.to_input, backend.to_input_rows
    adjustment_starts = _stack_starting_states_of_adjustments(stream, entry_states, width)
    switch = VersionSwitch(stream, states, states_before_adjustments)
    if earlier is not None:
        switch.version = earlier.final_version
    for version, start, stop, adjustment_stop in _split_by_version(
        stream, stream.version_indices, [adjustment.game for adjustment in stream.adjustments]
    ):
        width_of_version = switch.begin(version)
        arguments = (
            start,
            stop,
            to_input_rows(_stack_starting_states(stream, version, entry_states)),
            *map(to_input, (stream.offsets, stream.players)),
            backend.columns,
            0,  # the stream's first offset,
            0,  # slot
            0,  # and player
            to_input_rows(states[:width_of_version]),
            *map(to_input, (trace.games, trace.on_ladder)),
            backend.totals,
            *(states_of_game[:width_of_version] for states_of_game in backend.game_arrays),
            to_input_rows(backend.gaps),
            to_input_rows(states_before[:width_of_version]),
            to_input(trace.mints),
            0,  # the stream's first game
            *(to_input(column)[:adjustment_stop] for column in adjustments),
            to_input_rows(adjustment_starts[:width_of_version]),
            to_input_rows(states_before_adjustments[:width_of_version]),
        )
        if backend.run(version, *arguments) != OK:
            return None
        switch.end()
    stream.adjustments = _fill_in_units(stream, adjustments[2])
    earlier_totals = earlier.list_totals() if earlier else (0, 0, 0, 0)
    totals = [int(total) + before for total, before in zip(backend.totals, earlier_totals, strict=False)]
    trace.start_total, trace.minted, trace.burned, trace.adjusted = totals
    return trace


class _VersionRun(NamedTuple):
    """Consecutive games or periods that the same version scores; none if a version only converts the states.

    start, stop:     the index of the first game or period, and the index after the last one
    adjustment_stop: the number of adjustments of the stream up to the end of the run
    """

    version: Version
    start: int
    stop: int
    adjustment_stop: int


def _split_by_version(stream: Stream, scored_by: Column, next_indices: Sequence[int]) -> Iterator[_VersionRun]:
    """Yield the runs of games or periods with the same version, in order.

    Args:
        scored_by: by game or period, the index of the version that scores it
        next_indices: by adjustment of the stream, the index of the game or period that it precedes
    """
    versions, end = stream.versions, len(scored_by)
    adjustment_runs = [
        (index, adjustment.version) for index, adjustment in zip(next_indices, stream.adjustments, strict=True)
    ]
    version_starts = arrays.change_indices(scored_by) if end and len(versions) > 1 else [0]
    runs = {(cut, int(scored_by[cut])) for cut in version_starts} if end else {*adjustment_runs[:1]} or {(0, 0)}
    runs |= {*adjustment_runs} if len(versions) > 1 and find_version_changes(versions) else set()
    sorted_runs = sorted(runs, key=lambda run: (run[0], versions[run[1]].effective_from or MISSING))
    index_of_run, starts = {run: number for number, run in enumerate(sorted_runs)}, [start for start, _ in sorted_runs]
    runs_of_adjustments = [index_of_run.get(run, bisect_right(starts, run[0]) - 1) for run in adjustment_runs]
    # within a rating period, a later adjustment may belong to an earlier version; all before it then join its run
    if runs_of_adjustments != sorted(runs_of_adjustments):
        runs_of_adjustments = [min(runs_of_adjustments[index:]) for index in range(len(runs_of_adjustments))]
    stops = [*starts[1:], end]
    for number, (start, version_index) in enumerate(sorted_runs):
        yield _VersionRun(versions[version_index], start, stops[number], bisect_right(runs_of_adjustments, number))


def _fill_in_units(stream: Stream, units: Sequence[int]) -> list[StreamAdjustment]:
    """Return the adjustments of a stream. Version entries get the `units` by which they changed the points."""
    return [
        adjustment._replace(units=gained) if adjustment.is_version_entry else adjustment
        for adjustment, gained in zip(stream.adjustments, units, strict=True)
    ]


def _measure_gaps(stream: Stream, entry_states: Mapping[str, EntryState], earlier: Trace | None) -> Gaps | None:
    """Measure the gaps of a stream and store them in the stream. Return None if no rule has state."""
    if stream.calendar is None:
        return None
    entries, earlier_gaps = stream.find_entries(entry_states), None if earlier is None else earlier.gaps
    needed_columns = list_needed_columns([version.rule for version in stream.versions])
    stream.gaps = measure_gaps(
        stream.calendar, stream.offsets, stream.players, len(stream.names), entries, earlier_gaps, needed_columns
    )
    return stream.gaps


def read_rule_columns(stream: Stream, gaps: Gaps | None) -> Any:
    """Return the columns that the rules of a stream read, including columns about earlier games."""
    # a stream without games may have no columns
    if (
        gaps is None
        or not stream.columns
        or not any(reads_history(version.rule.columns) for version in stream.versions)
    ):
        return stream.columns
    columns = np.stack([arrays.as_numpy(column).astype(np.int64) for column in stream.columns])
    sizes = np.diff(arrays.as_numpy(stream.offsets))
    scored_by = np.repeat(arrays.as_numpy(stream.version_indices), sizes)
    for index, version in enumerate(stream.versions):
        fill_in_history(columns, version.rule.columns, gaps, np.flatnonzero(scored_by == index))
    return columns


def read_gap_rows(gaps: Gaps | None) -> Any:
    """Return the rows that `loops.bring_states_forward` reads; empty rows without gaps."""
    return _zero_rows(2, 0) if gaps is None else gaps.loop_rows


def _zeros(length: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(length, dtype=np.int64)


def _zero_rows(width: int, length: int) -> Any:
    """Return an array of zeros of shape (width, length)."""
    return np.zeros((width, length), dtype=np.int64)


def _view_columns(rows: Iterable[Any]) -> list[Column]:
    """Return several arrays, or the rows of an array, as columns that share their memory."""
    return [memoryview(row) for row in rows]


def _read_adjustments(stream: Stream) -> Iterator[array[int]]:
    """Yield four columns for the loop: each adjustment's game, player and units, and whether it is a version entry."""
    yield array("q", [adjustment.game for adjustment in stream.adjustments])
    yield array("q", [adjustment.player for adjustment in stream.adjustments])
    yield array("q", [max(-UNITS_BEYOND, min(adjustment.units, UNITS_BEYOND)) for adjustment in stream.adjustments])
    yield array("q", [adjustment.is_version_entry for adjustment in stream.adjustments])


def _stack_starting_states_of_adjustments(stream: Stream, entry_states: Mapping[str, EntryState], width: int) -> Any:
    """Return the state with which the player of each adjustment would enter, as a row for each state column."""
    states = [
        find_starting_state(stream, stream.names[adjustment.player], stream.versions[adjustment.version], entry_states)
        for adjustment in stream.adjustments
    ]
    # versions with fewer state columns use the first rows
    return _stack_states([(*state, *[0] * (width - len(state))) for state in states], width)


def _stack_starting_states(stream: Stream, version: Version, entry_states: Mapping[str, EntryState]) -> Any:
    """Return the state with which each player of a stream would enter, as a row for each state column."""
    if not entry_states:
        return _repeat_state(version.start_state, len(stream.names))
    return _stack_states(
        [find_starting_state(stream, name, version, entry_states) for name in stream.names], version.rule.width
    )


def _repeat_state(state: State, player_count: int) -> Any:
    """Return the same state for all players, as a row for each state column."""
    return np.repeat(np.array(state, dtype=np.int64)[:, None], player_count, axis=1)


def _stack_states(states: Sequence[State], width: int) -> Any:
    """Return states as an array with a row for each state column."""
    return np.ascontiguousarray(np.array(states, dtype=np.int64).reshape(len(states), width).T)


def replay_together(streams: Iterable[Stream], keep_history: bool = False) -> None:
    """Replay the batches of some streams now, before processes share the remaining work."""
    for stream in streams:
        if stream.batch is not None:
            # lists other than running points need the changes of each game
            _get_outcomes(stream.batch, keep_history or not stream.ranking.running)


class BatchOutcomes(NamedTuple):
    """The outcomes of all ladders of a batch.

    totals, results: by ladder, the totals and the result of `loops.run_ladder`
    states, games, on_ladder: by player, as in `Trace`
    states_before:   by slot, as in `Trace`
    mints:           by game, as in `Trace`
    """

    totals: Any
    results: Any
    states: Sequence[Column]
    games: Column
    on_ladder: Column
    states_before: Sequence[Column]
    mints: Column


def _get_outcomes(batch: LadderBatch, keep_history: bool) -> BatchOutcomes | None:
    """Return the outcomes of a batch; None if its ladders must be replayed one by one."""
    outcomes = batch.outcomes
    if outcomes is None or (outcomes and keep_history and len(outcomes.mints) < len(batch.ladder_games.row)):
        outcomes = batch.outcomes = _replay_batch(batch, keep_history) or ()
    result: BatchOutcomes | None = outcomes or None
    return result


def _replay_in_batch(stream: Stream, batch: LadderBatch, keep_history: bool) -> Trace | None:
    """Return the trace of a ladder without adjustments or entry states; None if it must be replayed on its own.

    The first call replays all ladders of the batch, because a call for each ladder would take longer than its games.
    """
    outcomes, ladder_games, ladder = _get_outcomes(batch, keep_history), batch.ladder_games, stream.index
    if outcomes is None or outcomes.results[ladder] != OK:
        return None
    persons_from = batch.player_numbers.persons_from
    first_player, end_player = persons_from[ladder], persons_from[ladder + 1]
    first_slot, end_slot = ladder_games.slot_from[ladder], ladder_games.slot_from[ladder + 1]
    start_total, minted, burned, adjusted = outcomes.totals[ladder][: loops.NEXT_ADJUSTMENT].tolist()
    return Trace(
        stream,
        states=[column[first_player:end_player] for column in outcomes.states],
        games=outcomes.games[first_player:end_player],
        on_ladder=outcomes.on_ladder[first_player:end_player],
        entry_states={},
        states_before=[column[first_slot:end_slot] for column in outcomes.states_before],
        mints=outcomes.mints[ladder_games.ladder_from[ladder] : ladder_games.ladder_from[ladder + 1]],
        states_before_adjustments=[array("q")] * len(outcomes.states),
        start_total=start_total,
        minted=minted,
        burned=burned,
        adjusted=adjusted,
    )


def _replay_batch(batch: LadderBatch, keep_history: bool) -> BatchOutcomes | None:
    """Replay all ladders of a batch. Return None if several versions score their games."""
    ladder_games, player_numbers, as_numpy = batch.ladder_games, batch.player_numbers, arrays.as_numpy
    version_indices = as_numpy(ladder_games.version)
    if (version_indices != version_indices[0]).any():
        return None
    version = batch.versions[version_indices[0]]
    rule, width = version.rule, version.rule.width
    ladder_count = len(ladder_games.ladders)
    player_count, slot_count = player_numbers.persons_from[ladder_count], ladder_games.slot_from[ladder_count]
    totals, results = _zero_rows(ladder_count, loops.TOTALS_LENGTH), np.full(ladder_count, NOT_RUN, dtype=np.int64)
    states, states_before = _zero_rows(width, player_count), _zero_rows(width, slot_count * keep_history)
    games, mints = _zeros(player_count), _zeros(len(ladder_games.row) * keep_history)
    on_ladder = np.zeros(player_count, dtype=np.int8)
    compiling.compile_with_rule(loops.run_ladders, rule, loops.find_rule_parts(rule))(
        *build_rule_arrays(version),
        *map(as_numpy, (ladder_games.ladder_from, ladder_games.slot_from, player_numbers.persons_from)),
        *map(as_numpy, (ladder_games.offset, player_numbers.number)),
        compiling.protect_from_rule(arrays.stack(batch.columns), rule),
        _repeat_state(version.start_state, player_count),
        states,
        games,
        on_ladder,
        totals,
        results,
        *compiling.allocate_game_arrays(width, max(batch.participants_max, 0)),
        states_before,
        mints,
        _zeros(0),  # no adjustments
        _zero_rows(width, 0),  # no states
    )
    return BatchOutcomes(
        totals,
        results,
        states=_view_columns(states),
        games=arrays.as_column(games),
        on_ladder=arrays.as_column(on_ladder),
        states_before=_view_columns(states_before),
        mints=arrays.as_column(mints),
    )


def build_rule_arrays(version: Version) -> tuple[Any, Any]:
    """Return the constants and the table of a version's rule as arrays for compiled code."""
    constants, table = compiling.to_constants(version.constants), compiling.to_constants(rule_table(version.rule))
    return compiling.protect_from_rule(constants, version.rule), compiling.protect_from_rule(table, version.rule)
