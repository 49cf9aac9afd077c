"""Replay: drive a stream through its rule, from the beginning or from where an earlier trace of it ends. Points come
about in no other way.

The loop, `loops.run_ladder`, is interpreted for a short history. For a long one it is compiled, and the scoring
function with it: integers only, so the points are the same. Where a rule fails or cannot be compiled, it is
interpreted. What comes before a first difference stays as it was, since points depend on nothing that is later: the
price of a late game or a correction is what lies behind it.
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
    Gaps,
    Joining,
    State,
    fill_in_history,
    list_needed,
    measure_gaps,
    reads_history,
)
from ratings_ledger.projections.replay.ladders import (
    Inserted,
    LadderBatch,
    Stream,
    Turnover,
    carry_columns,
    find_changes,
    insert_entries,
)
from ratings_ledger.projections.replay.loops import FAILED, NOWHERE
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

# a ladder of this many games is worth a compiled call of its own, once the code is loaded
BATCHED_GAMES = 300
# an adjustment of as much takes anybody's points out of bounds
BEYOND = 3 * UNITS_MAX
OUT_OF_BOUNDS = "the points grow out of bounds"


def starting_points(stream: Stream, player: str, version: Version, joining: Mapping[str, Joining]) -> int:
    """Return the points, in units, with which a player joins a ladder."""
    return starting_state(stream, player, version, joining)[0]


def starting_state(stream: Stream, player: str, version: Version, joining: Mapping[str, Joining]) -> State:
    """Return the state with which a player joins a ladder under one of its versions. Raises `RuleFailure`."""
    known = joining.get(player)
    begun = None if known is None else known.begin(version)
    if known is None or begun is None:
        return version.start_state
    return _enter_later(stream, known, version) if known.seeded is None else begun


def _enter_later(stream: Stream, joining: Joining, version: Version) -> State:
    """Return with what somebody joins a season whose first game a version scores: the state that the last season left,
    and what versions changed since.

    Raises `RuleFailure`.
    """
    state = joining.state
    for change in find_changes(stream.versions):
        if joining.entered < change.since <= (version.effective_from or MISSING):
            before, after = (stream.versions[one] for one in (change.before, change.version))
            carried = carry_columns(state[: before.rule.width], before, after)
            state = enter_version(after, stream.ladder, tuple(carried))
    return state


def _find_joining(stream: Stream) -> dict[str, Joining]:
    """Return what everybody joins with who does not join as a new player, by id: the seeds, and what everybody had at
    the end of the last earlier season they were in.
    """
    seasons: list[Stream] = []
    before = stream.previous
    while before is not None:
        seasons.append(before)
        before = before.previous
    carried: dict[str, Joining] = {}
    for season in reversed(seasons):
        # each looks back no further: what it needs of earlier seasons is already there
        end = replay(season, joining={**season.seeds, **carried}, keep=False)
        carried |= {name: end.leave(player) for player, name in enumerate(season.names) if end.seen[player]}
    return {**stream.seeds, **carried}


def replay(
    stream: Stream, *, joining: Mapping[str, Joining] | None = None, keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Return the trace of a stream. Raises `RuleFailure`.

    `joining` is replayed from earlier seasons unless it is given. Without `keep`, points before games may be left out,
    which takes a third less memory. An `earlier` trace, whose players are the stream's first, is continued.
    """
    if stream.broken is not None:
        raise stream.broken
    if isinstance(stream.known, Trace):
        return stream.known
    joining = _find_joining(stream) if joining is None else joining
    there = () if earlier is None else (len(earlier.points), earlier.entered)
    stream = insert_entries(stream, *there)
    trace = _replay(stream, joining, keep, earlier)
    return trace if stream.until is None else trace.enter_until(stream.until)


def _replay(stream: Stream, joining: Mapping[str, Joining], keep: bool, earlier: Trace | None) -> Trace:
    """Return the trace of a stream, by whichever loop suits it. Raises `RuleFailure`."""
    if stream.periods is not None:
        return replay_periods(stream, joining)
    if stream.batch is not None and not stream.adjustments and not joining:
        together = _replay_in_batch(stream, stream.batch, keep)
        if together is not None:
            return together
    games = len(stream.row)
    if compiling.is_worthwhile(games) or (stream.batch is not None and games >= BATCHED_GAMES):
        trace = replay_compiled(stream, joining, keep, earlier)
        if trace is not None:
            return trace
    return replay_interpreted(stream, joining, keep, earlier)


class Way(NamedTuple):
    """How the loop goes through a stream, interpreted or compiled.

    run:      the loop, given the version that scores; None if it cannot
    columns:  what the rules read, side by side
    totals:   as `loops.run_ladder` has them
    room:     for the states of one game's players: those before it, and how they change
    gaps:     as `loops.bring_states_forward` has them, rows of an array
    see:      what `run` takes for a column
    see_rows: what it takes for the rows of an array
    """

    run: Callable[..., int | None]
    columns: Any
    totals: Any
    room: Sequence[Any]
    gaps: Any
    see: Callable[[Any], Any]
    see_rows: Callable[[Any], Any]


def replay_interpreted(
    stream: Stream, joining: Mapping[str, Joining], keep: bool = True, earlier: Trace | None = None
) -> Trace:
    """Return a replay by the interpreter, which says what failed where. Raises `RuleFailure`."""
    totals = [0] * 6
    parts = {id(version): _play_carefully(stream, version, totals) for version in stream.versions}
    most = max((last - first for first, last in pairwise(stream.offsets)), default=0)

    def run(version: Version, *arguments: Any) -> int:
        loop = FunctionType(loops.run_ladder.__code__, {**vars(loops), **parts[id(version)]})
        code: int = loop((), (), *arguments)
        if code == loops.BOUNDS:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, stream.row[totals[5]])
        if code == loops.ADJUSTED:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=stream.adjustments[totals[4]].position)
        return code

    # lists hold numbers of any size, of which the loop says that they are out of bounds
    width = stream.width
    room = [[[0] * most for _ in range(width)] for _ in range(2)]
    gaps = _find_gaps(stream, joining, earlier)
    columns = _SideBySide(read_rule_columns(stream, gaps))
    way = Way(run, columns, totals, room, read_steps(gaps), lambda column: column, _view_as_columns)
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run(way, stream, joining, keep, earlier)
    assert trace is not None
    return trace


class _SideBySide(list[Any]):
    """Columns sliced like the rows of a numpy array: `columns[:, first:last]`."""

    def __getitem__(self, key: Any) -> Any:
        return [column[key[1]].tolist() for column in self]


def _play_carefully(stream: Stream, version: Version, totals: list[int]) -> dict[str, Callable[..., Any]]:
    """Return what the loop calls of a version, by name, interpreted: what the rule does wrong is a failure of the game
    in work.

    Raises `RuleFailure` if its table cannot be used.
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
            column[:n] = [number - had for number, had in zip(numbers, old, strict=False)]
        return minted

    def bring_all_forward(n: int, low: int, given: Any, gaps: Any, _: Any) -> tuple[int, int]:
        own = [row[low : low + n].tolist() for row in gaps]
        return _bring_all_forward(version, stream.ladder, stream.row[totals[5]], given, own)

    if rule.state:
        adjust = _adjust_carefully(stream, version)
        return {"change_states": change_several_states, "bring_forward": bring_all_forward, "adjust": adjust}
    return {"change_states": change_states}


def _adjust_carefully(stream: Stream, version: Version) -> Callable[..., Any]:
    """Return what the loops call for an adjustment, interpreted: what a rule does wrong to a rating when it takes
    effect is a failure of its version.
    """

    def enter(state: State, _: Any) -> State:
        return enter_version(version, stream.ladder, tuple(map(int, state)))

    parts = {"enter": enter, "take_state": loops.TAKE_STATE[version.rule.width]}
    return FunctionType(loops.adjust.__code__, {**vars(loops), **parts})


def replay_compiled(
    stream: Stream, joining: Mapping[str, Joining], keep: bool = True, earlier: Trace | None = None
) -> Trace | None:
    """Return a replay by compiled code; None if numba cannot compile the rule or the rule fails: it is then
    interpreted.
    """
    gaps = _find_gaps(stream, joining, earlier)
    columns = arrays.side_by_side(read_rule_columns(stream, gaps))
    for one in stream.versions:
        columns = compiling.read_only(columns, one.rule)

    def run(version: Version, *arguments: Any) -> int | None:
        run_around = compiling.around(loops.run_ladder, version.rule, loops.parts_of(version.rule))
        code: int | None = run_around(*rule_constants(version), *arguments)
        return code

    width = stream.width
    room = compiling.allocate_game_room(width, int(np.diff(arrays.as_numpy(stream.offsets)).max(initial=0)))
    way = Way(run, columns, np.zeros(6, dtype=np.int64), room, read_steps(gaps), arrays.as_numpy, lambda rows: rows)
    return _run(way, stream, joining, keep, earlier)


def replay_periods(stream: Stream, joining: Mapping[str, Joining]) -> Trace:
    """Return the trace of a stream whose games are scored by periods. Raises `RuleFailure`.

    All games of a player in one period have the states at its start before them.
    """
    gaps = _find_gaps(stream, joining, None)
    assert gaps is not None
    slots = PeriodSlots(stream, gaps)
    if compiling.is_worthwhile(len(stream.row)):
        trace = _run_periods(_compiled_periods, stream, slots, joining)
        if trace is not None:
            return trace
    with redirect_output(*(version.rule for version in stream.versions)):
        trace = _run_periods(_play_periods_carefully, stream, slots, joining)
    assert trace is not None
    return trace


def _run_periods(
    find_run: Callable[[Stream, Version, Any], Callable[..., int | None]],
    stream: Stream,
    slots: PeriodSlots,
    joining: Mapping[str, Joining],
) -> Trace | None:
    """Return the trace of a stream scored by periods; None if the loop stops. Raises what it raises."""
    periods, results = slots.periods, slots.results
    width, count = stream.width, len(periods.begin)
    states, before = _zero_rows(width, len(stream.names)), _zero_rows(width, len(results.people))
    seen, totals, mints = np.zeros(len(stream.names), dtype=np.int8), np.zeros(6, dtype=np.int64), _zeros(count)
    adjusted_before = _zero_rows(width, len(stream.adjustments))
    most = int(np.diff(results.people_from).max(initial=0))
    room, places = compiling.allocate_game_room(width, most), _zeros(most + 1)
    adjusted = [*map(arrays.as_numpy, _read_adjustments(stream))]
    adjusted[0] = np.searchsorted(periods.offsets, adjusted[0], "left").astype(np.int64)
    scored_by = arrays.as_column(arrays.as_numpy(stream.version)[periods.offsets[:-1]])
    turnover = Turnover(stream, states, adjusted_before)
    for version, first, last, end in _segments(stream, scored_by, adjusted[0].tolist()):
        own = turnover.begin(version)
        code = find_run(stream, version, totals)(
            first,
            last,
            _read_starts(stream, version, joining),
            results.people,
            results.people_from,
            results.rows_from,
            slots.rows_of(version),
            states[:own],
            seen,
            totals,
            *(one[:own] for one in room),
            places,
            slots.gaps,
            before[:own],
            mints,
            *(one[:end] for one in adjusted),
            _read_starts_of_adjusted(stream, joining, width)[:own],
            adjusted_before[:own],
        )
        if code != NOWHERE:
            return None
        turnover.end()
    stream.adjustments = _with_units(stream, adjusted[2].tolist())
    # what a period minted stands at its last game
    of_games = _zeros(len(stream.row))
    of_games[periods.offsets[1:] - 1] = mints
    counts = np.bincount(arrays.as_numpy(stream.players), minlength=len(stream.names)).astype(np.int64)
    games, is_there, minted = _view_as_columns((counts, seen, of_games))
    stored = _view_as_columns(np.ascontiguousarray(before[:, slots.entry]))
    started, total_minted, burned, total_adjusted = map(int, totals[:4])
    return Trace(
        stream,
        _view_as_columns(states),
        games,
        is_there,
        joining,
        stored,
        minted,
        _view_as_columns(adjusted_before),
        started,
        total_minted,
        burned,
        total_adjusted,
    )


def _compiled_periods(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the compiled loop over periods for a version."""
    run = compiling.around(loops.run_periods, version.rule, loops.parts_of(version.rule))
    constants = rule_constants(version)
    return lambda *arguments: run(*constants, *arguments)


def _play_periods_carefully(stream: Stream, version: Version, totals: Any) -> Callable[..., int | None]:
    """Return the interpreted loop over periods for a version: what its rule does wrong is a failure of a period, named
    by its first game.
    """
    periods = stream.periods
    assert periods is not None

    def row() -> int:
        return int(stream.row[int(periods.offsets[int(totals[5])])])

    def score_period(n: int, before: Any, offsets: Any, rows: Any, _: Any, __: Any, after: Any) -> int:
        results = PeriodResults(before.tolist(), offsets.tolist(), rows.tolist())
        minted, states = score_period_states(version, stream.ladder, row(), results)
        after[:] = states
        return minted

    def bring_all_forward(n: int, low: int, given: Any, gaps: Any, _: Any) -> tuple[int, int]:
        return _bring_all_forward(version, stream.ladder, row(), given, gaps[:, low : low + n].tolist())

    adjust = _adjust_carefully(stream, version)
    parts = {"score_period": score_period, "bring_forward": bring_all_forward, "adjust": adjust}
    loop = FunctionType(loops.run_periods.__code__, {**vars(loops), **parts})

    def run(*arguments: Any) -> int:
        code: int = loop((), (), *arguments)
        if code == loops.BOUNDS:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, row())
        if code == loops.ADJUSTED:
            raise RuleFailure(stream.ladder, OUT_OF_BOUNDS, position=stream.adjustments[int(totals[4])].position)
        return code

    return run


def _bring_all_forward(
    version: Version, ladder: str, row: int, given: Any, gaps: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """Bring the states of some players to a game or period, in place; return what that minted and burned."""
    minted = burned = 0
    for i, (changes_season, elapsed) in enumerate(zip(*gaps, strict=True)):
        stored = tuple(int(column[i]) for column in given)
        state = bring_to_game(version, ladder, row, stored, changes_season, elapsed)
        for column, number in zip(given, state, strict=True):
            column[i] = number
        minted += max(state[0] - stored[0], 0)
        burned += max(stored[0] - state[0], 0)
    return minted, burned


def _run(way: Way, stream: Stream, joining: Mapping[str, Joining], keep: bool, earlier: Trace | None) -> Trace | None:
    """Return the trace of a stream, from one change of version to the next; None if the loop stops. Raises what it
    raises.
    """
    there, names, games = len(earlier.points) if earlier else 0, len(stream.names), len(stream.row)
    width = len(way.room[0])
    states, before = _zero_rows(width, names), _zero_rows(width, len(stream.players) * keep)
    new_games, mints = _view_as_columns(map(_zeros, (names, games * keep)))
    adjusted_before = _zero_rows(width, len(stream.adjustments))
    adjusted = [memoryview(one) for one in _read_adjustments(stream)]
    trace = Trace(
        stream,
        _view_as_columns(states),
        new_games,
        array("b", b"\1" * there + bytes(names - there)),
        joining,
        _view_as_columns(before),
        mints,
        _view_as_columns(adjusted_before),
        earlier=earlier,
    )
    if earlier is not None:
        states[:, :there] = [arrays.as_numpy(column) for column in earlier.states]
        arrays.as_numpy(trace.games)[:there] = arrays.as_numpy(earlier.games)
    see, see_rows = way.see, way.see_rows
    adjusted_begin = _read_starts_of_adjusted(stream, joining, width)
    turnover = Turnover(stream, states, adjusted_before)
    if earlier is not None:
        turnover.version = earlier.rated_by
    for version, first, last, end in _segments(stream, stream.version, [one.game for one in stream.adjustments]):
        own = turnover.begin(version)
        arguments = (
            first,
            last,
            see_rows(_read_starts(stream, version, joining)),
            *map(see, (stream.offsets, stream.players)),
            way.columns,
            0,
            0,
            0,
            see_rows(states[:own]),
            *map(see, (trace.games, trace.seen)),
            way.totals,
            *(one[:own] for one in way.room),
            see_rows(way.gaps),
            see_rows(before[:own]),
            see(trace.mints),
            0,
            *(see(one)[:end] for one in adjusted),
            see_rows(adjusted_begin[:own]),
            see_rows(adjusted_before[:own]),
        )
        if way.run(version, *arguments) != NOWHERE:
            return None
        turnover.end()
    stream.adjustments = _with_units(stream, adjusted[2])
    accounts = (earlier.started, earlier.minted, earlier.burned, earlier.adjusted) if earlier else (0, 0, 0, 0)
    trace.started, trace.minted, trace.burned, trace.adjusted = map(int.__add__, accounts, map(int, way.totals[:4]))
    return trace


def _segments(stream: Stream, scored_by: Column, adjusted_at: Sequence[int]) -> Iterator[tuple[Version, int, int, int]]:
    """Yield which version scores from which game, or period, up to which one, in order; and how many adjustments there
    are up to its end.

    A version that takes effect where it scores nothing has a part without games.

    scored_by:   for every game, or period, the version that scores it
    adjusted_at: for every adjustment of the stream the game, or period, that it comes before
    """
    versions, count = stream.versions, len(scored_by)
    adjusted = [(at, one.version) for at, one in zip(adjusted_at, stream.adjustments, strict=True)]
    cuts = arrays.change_indices(scored_by) if count and len(versions) > 1 else [0]
    parts = {(cut, int(scored_by[cut])) for cut in cuts} if count else {*adjusted[:1]} or {(0, 0)}
    parts |= {*adjusted} if len(versions) > 1 and find_changes(versions) else set()
    in_order = sorted(parts, key=lambda part: (part[0], versions[part[1]].effective_from or MISSING))
    numbers, starts = {part: number for number, part in enumerate(in_order)}, [first for first, _ in in_order]
    places = [numbers.get(one, bisect_right(starts, one[0]) - 1) for one in adjusted]
    # of those within a rating period, an adjustment may come before a version that was in force earlier
    places = [min(places[at:]) for at in range(len(places))] if places != sorted(places) else places
    for number, (first, version) in enumerate(in_order):
        yield versions[version], first, [*starts, count][number + 1], bisect_right(places, number)


def _with_units(stream: Stream, units: Sequence[int]) -> list[Inserted]:
    """Return the adjustments of a stream, with the points that versions gave which took effect."""
    return [
        one._replace(units=gained) if one.enters else one for one, gained in zip(stream.adjustments, units, strict=True)
    ]


def _find_gaps(stream: Stream, joining: Mapping[str, Joining], earlier: Trace | None) -> Gaps | None:
    """Return what lies before every slot of a stream, which keeps it; None where no rule has state."""
    if stream.calendar is None:
        return None
    before = None if earlier is None else earlier.gaps
    needed = list_needed([version.rule for version in stream.versions])
    stream.gaps = measure_gaps(stream.calendar, stream.offsets, stream.players, stream.names, joining, before, needed)
    return stream.gaps


def read_rule_columns(stream: Stream, gaps: Gaps | None) -> Any:
    """Return what the rules of a stream read, with what they read of earlier games filled in."""
    # a stream without games, such as the one before a ladder's first game, may have no columns
    if gaps is None or not stream.columns or not any(reads_history(one.rule.columns) for one in stream.versions):
        return stream.columns
    columns = np.stack([arrays.as_numpy(column).astype(np.int64) for column in stream.columns])
    sizes = np.diff(arrays.as_numpy(stream.offsets))
    scored_by = np.repeat(arrays.as_numpy(stream.version), sizes)
    for index, version in enumerate(stream.versions):
        fill_in_history(columns, version.rule.columns, gaps, np.flatnonzero(scored_by == index))
    return columns


def read_steps(gaps: Gaps | None) -> Any:
    """Return what the loop needs of the gaps, as rows of an array."""
    return _zero_rows(2, 0) if gaps is None else gaps.steps


def _zeros(length: int) -> Any:
    return np.zeros(length, dtype=np.int64)


def _zero_rows(width: int, length: int) -> Any:
    return np.zeros((width, length), dtype=np.int64)


def _view_as_columns(rows: Iterable[Any]) -> list[Column]:
    """Return arrays, or the rows of one, as columns over the same memory."""
    return [memoryview(row) for row in rows]


def _read_adjustments(stream: Stream) -> Iterator[array[int]]:
    """Yield the adjustments as the loop reads them: before which game, whose, how much, and what takes effect."""
    yield array("q", [one.game for one in stream.adjustments])
    yield array("q", [one.player for one in stream.adjustments])
    yield array("q", [max(-BEYOND, min(one.units, BEYOND)) for one in stream.adjustments])
    yield array("q", [one.enters for one in stream.adjustments])


def _read_starts_of_adjusted(stream: Stream, joining: Mapping[str, Joining], width: int) -> Any:
    """Return with what the player of each adjustment would join the ladder, as rows by state column."""
    states = [
        starting_state(stream, stream.names[one.player], stream.versions[one.version], joining)
        for one in stream.adjustments
    ]
    # a version that keeps fewer numbers fills the first rows
    return _join_rows([(*state, *[0] * (width - len(state))) for state in states], width)


def _read_starts(stream: Stream, version: Version, joining: Mapping[str, Joining]) -> Any:
    """Return with what every player of a stream would join the ladder, as rows by state column."""
    if not joining:
        return _repeat_state(version.start_state, len(stream.names))
    return _join_rows([starting_state(stream, name, version, joining) for name in stream.names], version.rule.width)


def _repeat_state(state: State, people: int) -> Any:
    """Return the same state for so many people, as rows by state column."""
    return np.repeat(np.array(state, dtype=np.int64)[:, None], people, axis=1)


def _join_rows(states: Sequence[State], width: int) -> Any:
    """Return states as rows by state column."""
    return np.ascontiguousarray(np.array(states, dtype=np.int64).reshape(len(states), width).T)


def replay_together(streams: Iterable[Stream], keep: bool = False) -> None:
    """Replay the batches of some streams now, before processes share the rest of the work; with the points before all
    games if requested."""
    for stream in streams:
        if stream.batch is not None:
            # other lists are made from what the games gave, not just from the final points
            _find_outcomes(stream.batch, keep or not stream.ranking.running)


def _find_outcomes(batch: LadderBatch, keep: bool) -> tuple[Any, ...]:
    """Return the outcomes of a batch, empty if its ladders have to be replayed one by one."""
    known = batch.outcomes
    if known is None or (known and keep and len(known[-1]) < len(batch.shared.row)):
        batch.outcomes = _replay_batch(batch, keep) or ()
    return batch.outcomes or ()


def _replay_in_batch(stream: Stream, batch: LadderBatch, keep: bool) -> Trace | None:
    """Return the trace of a ladder without adjustments and earlier seasons; None if it has to be replayed by itself.

    All ladders of the batch are replayed when the first is needed: a call for each would cost more than its games.
    """
    outcomes = _find_outcomes(batch, keep)
    if not outcomes:
        return None
    shared, ladder = batch.shared, stream.index
    totals, stopped, states, games, seen, before, mints = outcomes
    if stopped[ladder] != NOWHERE:
        return None
    first, last = batch.numbered.names_from[ladder], batch.numbered.names_from[ladder + 1]
    low, high = shared.slot_from[ladder], shared.slot_from[ladder + 1]
    return Trace(
        stream,
        [column[first:last] for column in states],
        games[first:last],
        seen[first:last],
        {},
        [column[low:high] for column in before],
        mints[shared.ladder_from[ladder] : shared.ladder_from[ladder + 1]],
        [array("q")] * len(states),
        *totals[ladder][:4].tolist(),
    )


def _replay_batch(batch: LadderBatch, keep: bool) -> tuple[Any, ...] | None:
    """By ladder the totals and how it ended, and by player and slot the results; None if versions differ."""
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
    seen = np.zeros(people, dtype=np.int8)
    begin = _repeat_state(scored_by.start_state, people)
    columns = compiling.read_only(arrays.side_by_side(batch.columns), scored_by.rule)
    stopped[:] = FAILED
    compiling.around(loops.run_ladders, scored_by.rule, loops.parts_of(scored_by.rule))(
        *rule_constants(scored_by),
        *map(as_numpy, (shared.ladder_from, shared.slot_from, numbered.names_from, shared.offset, numbered.number)),
        columns,
        begin,
        states,
        games,
        seen,
        totals,
        stopped,
        *compiling.allocate_game_room(width, max(batch.participants, 0)),
        before,
        mints,
        none,
        no_states,
    )
    games, seen, mints = _view_as_columns((games, seen, mints))
    return totals, stopped, _view_as_columns(states), games, seen, _view_as_columns(before), mints


def rule_constants(version: Version) -> tuple[Any, Any]:
    """Return the constants and the table of a version as compiled code reads them."""
    constants, table = compiling.to_constants(version.constants), compiling.to_constants(rule_table(version.rule))
    return compiling.read_only(constants, version.rule), compiling.read_only(table, version.rule)
