"""Replay: run a stream through its rule, from the beginning or from the end of an earlier trace.

All points are computed here. The loop, `loops.run_ladder`, is interpreted for a short history. For a long one it is
compiled together with the scoring function; both use only integers, so the points are the same. A rule that fails or
cannot be compiled is interpreted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Columns
from ratings_ledger.projections.facts.columns import Column
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.gaps import (
    EntryState,
    Gaps,
    State,
    fill_in_history,
    list_needed,
    measure_gaps,
    reads_history,
)
from ratings_ledger.projections.replay.ladders import (
    LadderBatch,
    Stream,
    StreamAdjustment,
    VersionSwitch,
    carry_columns,
    find_changes,
    insert_entries,
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

# once compiled code is loaded, it pays off to call it for a ladder of this many games
BATCHED_GAMES = 300
# an adjustment of this size brings any player's points out of bounds
UNITS_BEYOND = 3 * UNITS_MAX
OUT_OF_BOUNDS = "the points grow out of bounds"


def find_starting_points(stream: Stream, player: str, version: Version, joining: Mapping[str, EntryState]) -> int:
    """Return the points, in units, with which a player joins a ladder."""
    return find_starting_state(stream, player, version, joining)[0]


def find_starting_state(stream: Stream, player: str, version: Version, joining: Mapping[str, EntryState]) -> State:
    """Return the state with which a player joins a ladder under one of its versions. Raises `RuleFailure`."""
    entry = joining.get(player)
    state = None if entry is None else entry.begin(version)
    if entry is None or state is None:
        return version.start_state
    return _carry_forward(stream, entry, version) if entry.seeded is None else state


def _carry_forward(stream: Stream, joining: EntryState, version: Version) -> State:
    """Carry a player's state at the end of their last season forward through the versions that took effect since then.

    Raises `RuleFailure`.
    """
    state = joining.state
    for change in find_changes(stream.versions):
        if joining.entered < change.since <= (version.effective_from or MISSING):
            before, after = (stream.versions[index] for index in (change.before, change.version))
            carried = carry_columns(state[: before.rule.width], before, after)
            state = enter_version(after, stream.ladder, tuple(carried))
    return state


def _find_entry_states(stream: Stream) -> dict[str, EntryState]:
    """Return, by player id, the states with which players enter who are not new.

    They come from seeds, and from the end of the player's last earlier season. Raises `RuleFailure`.
    """
    seasons: list[Stream] = []
    season_before = stream.previous
    while season_before is not None:
        seasons.append(season_before)
        season_before = season_before.previous
    carried: dict[str, EntryState] = {}
    for season in reversed(seasons):
        # `carried` has all that this season takes over, so earlier seasons are not replayed again
        end = replay(season, joining={**season.seeds, **carried}, keep=False)
        carried |= {name: end.leave(player) for player, name in enumerate(season.names) if end.on_ladder[player]}
    return {**stream.seeds, **carried}


def replay(
    stream: Stream, *, joining: Mapping[str, EntryState] | None = None, keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Return the trace of a stream. Raises `RuleFailure`.

    Args:
        joining: by player id, the states with which players enter; by default they are replayed from earlier seasons.
        keep: if False, the points before games may be left out, which takes a third less memory.
        earlier: a trace to continue; its players are the stream's first players.
    """
    if stream.broken is not None:
        raise stream.broken
    if isinstance(stream.known, Trace):
        return stream.known
    joining = _find_entry_states(stream) if joining is None else joining
    known = () if earlier is None else (len(earlier.points), earlier.entered)
    stream = insert_entries(stream, *known)
    trace = _replay(stream, joining, keep, earlier)
    return trace if stream.until is None else trace.enter_until(stream.until)


def _replay(stream: Stream, joining: Mapping[str, EntryState], keep: bool, earlier: Trace | None) -> Trace:
    """Return the trace of a stream, using the fastest suitable loop. Raises `RuleFailure`."""
    if stream.periods is not None:
        return replay_periods(stream, joining)
    if stream.batch is not None and not stream.adjustments and not joining:
        batched = _replay_in_batch(stream, stream.batch, keep)
        if batched is not None:
            return batched
    games = len(stream.row)
    if compiling.is_worthwhile(games) or (stream.batch is not None and games >= BATCHED_GAMES):
        trace = replay_compiled(stream, joining, keep, earlier)
        if trace is not None:
            return trace
    return replay_interpreted(stream, joining, keep, earlier)


class LoopBackend(NamedTuple):
    """How the loop runs through a stream: interpreted or compiled.

    run:      (version, *arguments of the loop) -> the loop's code, or None if it cannot run
    columns:  the columns that the rules read, as rows
    totals:   as in `loops.run_ladder`
    game_arrays: two arrays for one game, to be filled by the loop: the players' states before it, and their changes
    gaps:     as in `loops.bring_states_forward`, as rows of an array
    to_input: converts a column to the form that `run` takes
    to_input_rows: converts the rows of an array to the form that `run` takes
    """

    run: Callable[..., int | None]
    columns: Any
    totals: Any
    game_arrays: Sequence[Any]
    gaps: Any
    to_input: Callable[[Any], Any]
    to_input_rows: Callable[[Any], Any]


def replay_interpreted(
    stream: Stream, joining: Mapping[str, EntryState], keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Replay in the interpreter, which locates failures. Raises `RuleFailure`."""
    totals = [0] * 6
    parts = {id(version): _make_checked_parts(stream, version, totals) for version in stream.versions}
    players_max = max((last - first for first, last in pairwise(stream.offsets)), default=0)

    def run(version: Version, *arguments: Any) -> int:
        loop = FunctionType(loops.run_ladder.__code__, {**vars(loops), **parts[id(version)]})
        code: int = loop((), (), *arguments)
        if code == loops.OVERFLOW:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, stream.row[totals[5]])
        if code == loops.ADJUSTMENT_OVERFLOW:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=stream.adjustments[totals[4]].position)
        return code

    # lists hold integers of any size, so the loop can report numbers out of bounds
    width = stream.width
    game_arrays = [[[0] * players_max for _ in range(width)] for _ in range(2)]
    gaps = _find_gaps(stream, joining, earlier)
    backend = LoopBackend(
        run=run,
        columns=_ColumnRows(read_rule_columns(stream, gaps)),
        totals=totals,
        game_arrays=game_arrays,
        gaps=read_steps(gaps),
        to_input=lambda column: column,
        to_input_rows=_view_as_columns,
    )
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run_loop(backend, stream, joining, keep, earlier)
    assert trace is not None
    return trace


class _ColumnRows(list[Any]):
    """Columns that support the slices of a two-dimensional numpy array: `columns[:, first:last]`."""

    def __getitem__(self, key: Any) -> Any:
        return [column[key[1]].tolist() for column in self]


def _make_checked_parts(stream: Stream, version: Version, totals: list[int]) -> dict[str, Callable[..., Any]]:
    """Return the functions that the interpreted loop calls for a version, by name.

    They turn an error of the rule into a failure of the current game. Raises `RuleFailure` if the rule's table cannot
    be used.
    """
    rule = version.rule
    try:
        table = rule_table(rule)
    except RULE_ERRORS as error:
        raise RuleFailure(stream.ladder, describe_error(error, rule.table), position=version.position) from error

    def change_states(n: int, before: Any, columns: Columns, _: Any, __: Any, change: Any) -> int:
        filled = array("q", bytes(8 * n))
        try:
            minted = read_integer(rule.score(n, before[0][:n], columns, version.constants, table, filled), "score")
            change[0][:n] = check_balance(n, minted, filled)
        except RULE_ERRORS as error:
            raise make_failure(stream.ladder, rule, error, stream.row[totals[5]]) from error
        return minted

    def change_several_states(n: int, before: Any, columns: Columns, _: Any, __: Any, change: Any) -> int:
        row = stream.row[totals[5]]
        minted, after = score_states(version, stream.ladder, row, [column[:n] for column in before], columns)
        for column, numbers, old in zip(change, after, before, strict=True):
            column[:n] = [number - before for number, before in zip(numbers, old, strict=False)]
        return minted

    def bring_all_forward(n: int, low: int, states: Any, gaps: Any, _: Any) -> tuple[int, int]:
        own = [row[low : low + n].tolist() for row in gaps]
        return _bring_all_forward(version, stream.ladder, stream.row[totals[5]], states, own)

    if rule.state:
        adjust = _make_checked_adjust(stream, version)
        return {"change_states": change_several_states, "bring_forward": bring_all_forward, "adjust": adjust}
    return {"change_states": change_states}


def _make_checked_adjust(stream: Stream, version: Version) -> Callable[..., Any]:
    """Return the function that the interpreted loops call for an adjustment.

    It turns an error in the rule's `enter` into a failure of the version.
    """

    def enter(state: State, _: Any) -> State:
        return enter_version(version, stream.ladder, tuple(map(int, state)))

    parts = {"enter": enter, "take_state": loops.TAKE_STATE[version.rule.width]}
    return FunctionType(loops.adjust.__code__, {**vars(loops), **parts})


def replay_compiled(
    stream: Stream, joining: Mapping[str, EntryState], keep: bool = True, earlier: Trace | None = None
) -> Trace | None:
    """Replay with compiled code. Return None if numba cannot compile the rule, or if the rule fails."""
    gaps = _find_gaps(stream, joining, earlier)
    columns = arrays.stack(read_rule_columns(stream, gaps))
    for version in stream.versions:
        columns = compiling.protect_from_rule(columns, version.rule)

    def run(version: Version, *arguments: Any) -> int | None:
        run_compiled = compiling.compile_with_rule(loops.run_ladder, version.rule, loops.find_rule_parts(version.rule))
        code: int | None = run_compiled(*rule_constants(version), *arguments)
        return code

    players_max = int(np.diff(arrays.as_numpy(stream.offsets)).max(initial=0))
    backend = LoopBackend(
        run=run,
        columns=columns,
        totals=np.zeros(6, dtype=np.int64),
        game_arrays=compiling.allocate_game_arrays(stream.width, players_max),
        gaps=read_steps(gaps),
        to_input=arrays.as_numpy,
        to_input_rows=lambda rows: rows,
    )
    return _run_loop(backend, stream, joining, keep, earlier)


def replay_periods(stream: Stream, joining: Mapping[str, EntryState]) -> Trace:
    """Return the trace of a stream whose games are scored by periods. Raises `RuleFailure`.

    The state before each game of a player in a period is their state at the start of the period.
    """
    gaps = _find_gaps(stream, joining, None)
    assert gaps is not None
    slots = PeriodSlots(stream, gaps)
    if compiling.is_worthwhile(len(stream.row)):
        trace = _run_periods(_compile_period_loop, stream, slots, joining)
        if trace is not None:
            return trace
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run_periods(_make_checked_period_loop, stream, slots, joining)
    assert trace is not None
    return trace


# long, because it names every argument of the compiled loop
def _run_periods(
    find_run: Callable[[Stream, Version, Any], Callable[..., int | None]],
    stream: Stream,
    slots: PeriodSlots,
    joining: Mapping[str, EntryState],
) -> Trace | None:
    """Return the trace of a stream scored by periods; None if the loop stops. Raises what the loop raises."""
    periods, results = slots.periods, slots.results
    width, count = stream.width, len(periods.begin)
    states, before = _zero_rows(width, len(stream.names)), _zero_rows(width, len(results.people))
    on_ladder, totals, mints = np.zeros(len(stream.names), dtype=np.int8), np.zeros(6, dtype=np.int64), _zeros(count)
    adjusted_before = _zero_rows(width, len(stream.adjustments))
    players_max = int(np.diff(results.people_from).max(initial=0))
    period_arrays, places = compiling.allocate_game_arrays(width, players_max), _zeros(players_max + 1)
    adjusted = [*map(arrays.as_numpy, _read_adjustments(stream))]
    adjusted[0] = np.searchsorted(periods.offsets, adjusted[0], "left").astype(np.int64)
    scored_by = arrays.as_column(arrays.as_numpy(stream.version)[periods.offsets[:-1]])
    switch = VersionSwitch(stream, states, adjusted_before)
    for version, first, last, end in _split_by_version(stream, scored_by, adjusted[0].tolist()):
        width_of_version = switch.begin(version)
        code = find_run(stream, version, totals)(
            first,
            last,
            _read_starts(stream, version, joining),
            results.people,
            results.people_from,
            results.rows_from,
            slots.rows_of(version),
            states[:width_of_version],
            on_ladder,
            totals,
            *(states_of_period[:width_of_version] for states_of_period in period_arrays),
            places,
            slots.gaps,
            before[:width_of_version],
            mints,
            *(column[:end] for column in adjusted),
            _read_starts_of_adjusted(stream, joining, width)[:width_of_version],
            adjusted_before[:width_of_version],
        )
        if code != OK:
            return None
        switch.end()
    stream.adjustments = _fill_in_units(stream, adjusted[2].tolist())
    # the points minted in a period are recorded at its last game
    of_games = _zeros(len(stream.row))
    of_games[periods.offsets[1:] - 1] = mints
    counts = np.bincount(arrays.as_numpy(stream.players), minlength=len(stream.names)).astype(np.int64)
    games, joined, minted = _view_as_columns((counts, on_ladder, of_games))
    stored = _view_as_columns(np.ascontiguousarray(before[:, slots.entry]))
    started, total_minted, burned, total_adjusted = map(int, totals[:4])
    return Trace(
        stream,
        states=_view_as_columns(states),
        games=games,
        on_ladder=joined,
        joining=joining,
        states_before=stored,
        mints=minted,
        adjusted_before=_view_as_columns(adjusted_before),
        started=started,
        minted=total_minted,
        burned=burned,
        adjusted=total_adjusted,
    )


def _compile_period_loop(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the compiled loop over periods for a version."""
    run = compiling.compile_with_rule(loops.run_periods, version.rule, loops.find_rule_parts(version.rule))
    constants = rule_constants(version)
    return lambda *arguments: run(*constants, *arguments)


def _make_checked_period_loop(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the interpreted loop over periods for a version.

    It turns an error of the rule into a failure of the period, named by the period's first game.
    """
    periods = stream.periods
    assert periods is not None

    def first_row() -> int:
        return int(stream.row[int(periods.offsets[int(totals[5])])])

    def score_period(n: int, before: Any, offsets: Any, rows: Any, _: Any, __: Any, after: Any) -> int:
        results = PeriodResults(before.tolist(), offsets.tolist(), rows.tolist())
        minted, states = score_period_states(version, stream.ladder, first_row(), results)
        after[:] = states
        return minted

    def bring_all_forward(n: int, low: int, states: Any, gaps: Any, _: Any) -> tuple[int, int]:
        return _bring_all_forward(version, stream.ladder, first_row(), states, gaps[:, low : low + n].tolist())

    adjust = _make_checked_adjust(stream, version)
    parts = {"score_period": score_period, "bring_forward": bring_all_forward, "adjust": adjust}
    loop = FunctionType(loops.run_periods.__code__, {**vars(loops), **parts})

    def run(*arguments: Any) -> int:
        code: int = loop((), (), *arguments)
        if code == loops.OVERFLOW:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, first_row())
        if code == loops.ADJUSTMENT_OVERFLOW:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=stream.adjustments[int(totals[4])].position)
        return code

    return run


def _bring_all_forward(
    version: Version, ladder: str, row: int, states: Any, gaps: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """Bring the states of players forward to a game or period, in place. Return the points minted and burned."""
    minted = burned = 0
    for i, (changes_season, elapsed) in enumerate(zip(*gaps, strict=True)):
        stored = tuple(int(column[i]) for column in states)
        state = bring_to_game(version, ladder, row, stored, changes_season, elapsed)
        for column, number in zip(states, state, strict=True):
            column[i] = number
        minted += max(state[0] - stored[0], 0)
        burned += max(stored[0] - state[0], 0)
    return minted, burned


# long, because it names every argument of the compiled loop
def _run_loop(
    backend: LoopBackend, stream: Stream, joining: Mapping[str, EntryState], keep: bool, earlier: Trace | None
) -> Trace | None:
    """Return the trace of a stream, run version by version; None if the loop stops. Raises what the loop raises."""
    known, names, games = len(earlier.points) if earlier else 0, len(stream.names), len(stream.row)
    width = len(backend.game_arrays[0])
    states, before = _zero_rows(width, names), _zero_rows(width, len(stream.players) * keep)
    new_games, mints = _view_as_columns(map(_zeros, (names, games * keep)))
    adjusted_before = _zero_rows(width, len(stream.adjustments))
    adjusted = [memoryview(column) for column in _read_adjustments(stream)]
    trace = Trace(
        stream,
        states=_view_as_columns(states),
        games=new_games,
        on_ladder=array("b", b"\1" * known + bytes(names - known)),
        joining=joining,
        states_before=_view_as_columns(before),
        mints=mints,
        adjusted_before=_view_as_columns(adjusted_before),
        earlier=earlier,
    )
    if earlier is not None:
        states[:, :known] = [arrays.as_numpy(column) for column in earlier.states]
        arrays.as_numpy(trace.games)[:known] = arrays.as_numpy(earlier.games)
    to_input, to_input_rows = backend.to_input, backend.to_input_rows
    adjusted_begin = _read_starts_of_adjusted(stream, joining, width)
    switch = VersionSwitch(stream, states, adjusted_before)
    if earlier is not None:
        switch.version = earlier.rated_by
    for version, first, last, end in _split_by_version(
        stream, stream.version, [adjustment.game for adjustment in stream.adjustments]
    ):
        width_of_version = switch.begin(version)
        arguments = (
            first,
            last,
            to_input_rows(_read_starts(stream, version, joining)),
            *map(to_input, (stream.offsets, stream.players)),
            backend.columns,
            0,
            0,
            0,
            to_input_rows(states[:width_of_version]),
            *map(to_input, (trace.games, trace.on_ladder)),
            backend.totals,
            *(states_of_game[:width_of_version] for states_of_game in backend.game_arrays),
            to_input_rows(backend.gaps),
            to_input_rows(before[:width_of_version]),
            to_input(trace.mints),
            0,
            *(to_input(column)[:end] for column in adjusted),
            to_input_rows(adjusted_begin[:width_of_version]),
            to_input_rows(adjusted_before[:width_of_version]),
        )
        if backend.run(version, *arguments) != OK:
            return None
        switch.end()
    stream.adjustments = _fill_in_units(stream, adjusted[2])
    accounts = (earlier.started, earlier.minted, earlier.burned, earlier.adjusted) if earlier else (0, 0, 0, 0)
    trace.started, trace.minted, trace.burned, trace.adjusted = map(int.__add__, accounts, map(int, backend.totals[:4]))
    return trace


def _split_by_version(
    stream: Stream, scored_by: Column, adjusted_at: Sequence[int]
) -> Iterator[tuple[Version, int, int, int]]:
    """Yield (version, first game, end, number of adjustments up to the end) for each run of games of one version.

    With rating periods, these are periods instead of games. A version that takes effect but scores nothing has an empty
    run.

    Args:
        scored_by: for each game or period, the version that scores it.
        adjusted_at: for each adjustment of the stream, the game or period that it precedes.
    """
    versions, count = stream.versions, len(scored_by)
    adjusted = [(at, adjustment.version) for at, adjustment in zip(adjusted_at, stream.adjustments, strict=True)]
    cuts = arrays.change_indices(scored_by) if count and len(versions) > 1 else [0]
    parts = {(cut, int(scored_by[cut])) for cut in cuts} if count else {*adjusted[:1]} or {(0, 0)}
    parts |= {*adjusted} if len(versions) > 1 and find_changes(versions) else set()
    in_order = sorted(parts, key=lambda part: (part[0], versions[part[1]].effective_from or MISSING))
    numbers, starts = {part: number for number, part in enumerate(in_order)}, [first for first, _ in in_order]
    places = [numbers.get(part, bisect_right(starts, part[0]) - 1) for part in adjusted]
    # within a rating period, an adjustment may precede a version that was in force earlier
    places = [min(places[at:]) for at in range(len(places))] if places != sorted(places) else places
    for number, (first, version) in enumerate(in_order):
        yield versions[version], first, [*starts, count][number + 1], bisect_right(places, number)


def _fill_in_units(stream: Stream, units: Sequence[int]) -> list[StreamAdjustment]:
    """Return the adjustments of a stream; those that stand for a version taking effect get the points it added."""
    return [
        adjustment._replace(units=gained) if adjustment.enters else adjustment
        for adjustment, gained in zip(stream.adjustments, units, strict=True)
    ]


def _find_gaps(stream: Stream, joining: Mapping[str, EntryState], earlier: Trace | None) -> Gaps | None:
    """Measure the gaps before all slots of a stream, and store them in the stream; return None if no rule has state."""
    if stream.calendar is None:
        return None
    before = None if earlier is None else earlier.gaps
    needed = list_needed([version.rule for version in stream.versions])
    stream.gaps = measure_gaps(stream.calendar, stream.offsets, stream.players, stream.names, joining, before, needed)
    return stream.gaps


def read_rule_columns(stream: Stream, gaps: Gaps | None) -> Any:
    """Return the columns that the rules of a stream read, including those about earlier games."""
    # a stream without games may have no columns
    if (
        gaps is None
        or not stream.columns
        or not any(reads_history(version.rule.columns) for version in stream.versions)
    ):
        return stream.columns
    columns = np.stack([arrays.as_numpy(column).astype(np.int64) for column in stream.columns])
    sizes = np.diff(arrays.as_numpy(stream.offsets))
    scored_by = np.repeat(arrays.as_numpy(stream.version), sizes)
    for index, version in enumerate(stream.versions):
        fill_in_history(columns, version.rule.columns, gaps, np.flatnonzero(scored_by == index))
    return columns


def read_steps(gaps: Gaps | None) -> Any:
    """Return the rows of the gaps that the loop reads."""
    return _zero_rows(2, 0) if gaps is None else gaps.steps


def _zeros(length: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(length, dtype=np.int64)


def _zero_rows(width: int, length: int) -> Any:
    """Return an array of zeros of shape (width, length)."""
    return np.zeros((width, length), dtype=np.int64)


def _view_as_columns(rows: Iterable[Any]) -> list[Column]:
    """Return arrays, or the rows of one array, as columns that share their memory."""
    return [memoryview(row) for row in rows]


def _read_adjustments(stream: Stream) -> Iterator[array[int]]:
    """Yield the adjustments as the loop reads them: game, player, units, and whether a version takes effect."""
    yield array("q", [adjustment.game for adjustment in stream.adjustments])
    yield array("q", [adjustment.player for adjustment in stream.adjustments])
    yield array("q", [max(-UNITS_BEYOND, min(adjustment.units, UNITS_BEYOND)) for adjustment in stream.adjustments])
    yield array("q", [adjustment.enters for adjustment in stream.adjustments])


def _read_starts_of_adjusted(stream: Stream, joining: Mapping[str, EntryState], width: int) -> Any:
    """Return the state with which the player of each adjustment would enter, one row for each state column."""
    states = [
        find_starting_state(stream, stream.names[adjustment.player], stream.versions[adjustment.version], joining)
        for adjustment in stream.adjustments
    ]
    # a version with fewer state columns fills the first rows
    return _join_rows([(*state, *[0] * (width - len(state))) for state in states], width)


def _read_starts(stream: Stream, version: Version, joining: Mapping[str, EntryState]) -> Any:
    """Return the state with which every player of a stream would enter, one row for each state column."""
    if not joining:
        return _repeat_state(version.start_state, len(stream.names))
    return _join_rows(
        [find_starting_state(stream, name, version, joining) for name in stream.names], version.rule.width
    )


def _repeat_state(state: State, people: int) -> Any:
    """Return the same state for `people` players, one row for each state column."""
    return np.repeat(np.array(state, dtype=np.int64)[:, None], people, axis=1)


def _join_rows(states: Sequence[State], width: int) -> Any:
    """Return states as an array with one row for each state column."""
    return np.ascontiguousarray(np.array(states, dtype=np.int64).reshape(len(states), width).T)


def replay_together(streams: Iterable[Stream], keep: bool = False) -> None:
    """Replay the batches of some streams, before processes share the rest of the work.

    With `keep`, the points before all games are kept.
    """
    for stream in streams:
        if stream.batch is not None:
            # lists other than running points need the changes of each game
            _find_outcomes(stream.batch, keep or not stream.ranking.running)


def _find_outcomes(batch: LadderBatch, keep: bool) -> tuple[Any, ...]:
    """Return the outcomes of a batch, as `_replay_batch` does; empty if its ladders must be replayed one by one."""
    outcomes = batch.outcomes
    if outcomes is None or (outcomes and keep and len(outcomes[-1]) < len(batch.shared.row)):
        batch.outcomes = _replay_batch(batch, keep) or ()
    return batch.outcomes or ()


def _replay_in_batch(stream: Stream, batch: LadderBatch, keep: bool) -> Trace | None:
    """Return the trace of a ladder without adjustments and earlier seasons; None if it must be replayed by itself.

    The first call replays all ladders of the batch, because a call for each would cost more than its games.
    """
    outcomes = _find_outcomes(batch, keep)
    if not outcomes:
        return None
    shared, ladder = batch.shared, stream.index
    totals, stopped, states, games, on_ladder, before, mints = outcomes
    if stopped[ladder] != OK:
        return None
    first, last = batch.numbered.names_from[ladder], batch.numbered.names_from[ladder + 1]
    low, high = shared.slot_from[ladder], shared.slot_from[ladder + 1]
    started, minted, burned, adjusted = totals[ladder][:4].tolist()
    return Trace(
        stream,
        states=[column[first:last] for column in states],
        games=games[first:last],
        on_ladder=on_ladder[first:last],
        joining={},
        states_before=[column[low:high] for column in before],
        mints=mints[shared.ladder_from[ladder] : shared.ladder_from[ladder + 1]],
        adjusted_before=[array("q")] * len(states),
        started=started,
        minted=minted,
        burned=burned,
        adjusted=adjusted,
    )


def _replay_batch(batch: LadderBatch, keep: bool) -> tuple[Any, ...] | None:
    """Replay all ladders of a batch. Return None if several versions score them.

    Returns:
        The totals and codes of the ladders; the states, games and `on_ladder` flags of the players; the states before
        each slot; and the points minted in each game.
    """
    shared, numbered, as_numpy = batch.shared, batch.numbered, arrays.as_numpy
    version = as_numpy(shared.version)
    scored_by = batch.versions[version[0]]
    if (version != version[0]).any():
        return None
    ladders, people = len(shared.ladders), numbered.names_from[len(shared.ladders)]
    totals, stopped = np.zeros((ladders, 6), dtype=np.int64), np.empty(ladders, dtype=np.int64)
    width = scored_by.rule.width
    states, before, no_states = (_zero_rows(width, length) for length in (people, shared.slot_from[ladders] * keep, 0))
    games, mints, none = map(_zeros, (people, len(shared.row) * keep, 0))
    on_ladder = np.zeros(people, dtype=np.int8)
    begin = _repeat_state(scored_by.start_state, people)
    columns = compiling.protect_from_rule(arrays.stack(batch.columns), scored_by.rule)
    stopped[:] = NOT_RUN
    compiling.compile_with_rule(loops.run_ladders, scored_by.rule, loops.find_rule_parts(scored_by.rule))(
        *rule_constants(scored_by),
        *map(as_numpy, (shared.ladder_from, shared.slot_from, numbered.names_from, shared.offset, numbered.number)),
        columns,
        begin,
        states,
        games,
        on_ladder,
        totals,
        stopped,
        *compiling.allocate_game_arrays(width, max(batch.participants, 0)),
        before,
        mints,
        none,
        no_states,
    )
    games, on_ladder, mints = _view_as_columns((games, on_ladder, mints))
    return totals, stopped, _view_as_columns(states), games, on_ladder, _view_as_columns(before), mints


def rule_constants(version: Version) -> tuple[Any, Any]:
    """Return the constants and the table of a version as arrays for compiled code."""
    constants, table = compiling.to_constants(version.constants), compiling.to_constants(rule_table(version.rule))
    return compiling.protect_from_rule(constants, version.rule), compiling.protect_from_rule(table, version.rule)
