"""Ladders: their names, their games, and the stream of games and adjustments that each replays.

club-catan-elo/3-4      the ruleset's id, then a value for each member of its partition
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Rule, State, StateValues
from ratings_ledger.projections.facts.columns import LABELS, NONE, Adjustment, Cell, Column, Facts, Seed
from ratings_ledger.projections.lists import LISTS, RankingList
from ratings_ledger.projections.replay.eligibility import find_league_starts, order_rows, select_games, version_starts
from ratings_ledger.projections.replay.gaps import Calendar, EntryState, Gaps, read_calendar
from ratings_ledger.projections.replay.partition import (
    LadderGames,
    PlayerNumbers,
    is_partitioned_by_time,
    list_cell_values,
    list_values_at,
    number_players,
    partition_games,
)
from ratings_ledger.projections.replay.periods import Periods, find_period_end, label_events, number_periods
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.rule_inputs import GameSlots, read_columns_of_rules, read_optional_column
from ratings_ledger.projections.rulesets.versions import Version, find_period, in_force, oldest

# With more participants, numbering players and reading the columns of rules at once takes too much memory.
LONG_SLOTS = 20_000_000


class StreamAdjustment(NamedTuple):
    """An adjustment in a stream: `units` are added before the game at index `game`.

    `version` is the index of the version with whose start value a new player enters at that moment. If the adjustment
    `enters`, that version takes effect for the player, and the replay sets `units` to the points that this gives.
    """

    game: int
    player: int
    units: int
    version: int
    position: int
    occurred_at: int
    enters: bool = False

    @property
    def moment(self) -> tuple[int, int]:
        """Return the (time, position) that sorts it; a version is in force from its first instant on."""
        return self.occurred_at, NONE if self.enters else self.position


@dataclass
class LadderBatch:
    """The ladders of a ruleset, to be replayed together.

    `participants` is the largest number of participants of a game; `outcomes` is the result, for `replay`.
    """

    shared: LadderGames
    participants: int
    numbered: PlayerNumbers
    columns: Sequence[Column]
    versions: Sequence[Version]
    outcomes: tuple[Any, ...] | None = None


class LazyColumns(Sequence[Any]):
    """Columns that are built when they are first read."""

    def __init__(self, fetch: Callable[[], Sequence[Column]]) -> None:
        self._fetch = fetch

    @cached_property
    def _columns(self) -> Sequence[Column]:
        return self._fetch()

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index]


@dataclass
class Stream:
    """The input of a replay: a ladder's counted games in order, with their counted participants, and its adjustments.

    names, persons: the players by their number on this ladder: ids, and numbers of persons
    offsets:   game g has the slots offsets[g] up to offsets[g + 1], its participants sorted by id
    players, columns: by slot, the number of the player, and the columns that rules read
    version, row: by game, an index into `versions`, and the row in the facts
    batch, index: the ladders of the ruleset that compiled code replays together, and the index of this one
    previous:  the same ladder in the previous season, if the ruleset carries points over
    broken:    why the stream cannot be replayed: the rule's check fails at one of its games
    known:     the trace, if the stream has been replayed
    calendar, gaps: for rules with state: the days and seasons of games, and the gaps that the replay measures
    periods:   the closed rating periods; the games are those of these periods, period by period
    open_rows, open_from: the games in open periods, and the begin of the first of these
    closes_now: whether the played games of open periods are scored, as if their periods closed now
    seeds:     by id, the states with which seeded players enter
    until:     the last instant of changes without a game; by default the last game
    entered:   of a stream without its earlier part: up to when versions have taken effect there
    """

    ladder: str
    rule: Rule
    versions: list[Version]
    names: list[str] = field(default_factory=list)
    offsets: Column = field(default_factory=lambda: array("q", [0]))
    players: Column = field(default_factory=lambda: array("i"))
    columns: Sequence[Column] = ()
    version: Column = field(default_factory=lambda: array("h"))
    row: Column = field(default_factory=lambda: array("q"))
    adjustments: list[StreamAdjustment] = field(default_factory=list)
    persons: list[int] = field(default_factory=list)
    batch: LadderBatch | None = None
    index: int = 0
    previous: Stream | None = None
    broken: RuleFailure | None = None
    known: Any = None
    calendar: Calendar | None = None
    gaps: Gaps | None = None
    periods: Periods | None = None
    open_rows: Column = field(default_factory=lambda: array("q"))
    open_from: int | None = None
    closes_now: bool = False
    seeds: Mapping[str, EntryState] = field(default_factory=dict)
    until: int | None = None
    entered: int = MISSING

    @property
    def width(self) -> int:
        """Return the largest number of state columns of its versions."""
        return max(version.rule.width for version in self.versions)

    @cached_property
    def ranking(self) -> RankingList:
        """Return the kind of list that ranks its players."""
        return LISTS[self.rule.ranking]

    def number(self, person: int, name: str) -> int:
        """Return the number of a person on this ladder; a new person gets the next number."""
        if person not in self.numbers:
            self.numbers[person] = len(self.names)
            self.persons.append(person)
            self.names.append(name)
        return self.numbers[person]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Return the numbers by person."""
        return {person: number for number, person in enumerate(self.persons)}

    def place(self, facts: Facts, moment: tuple[int, int], limit: int | None = None) -> tuple[int, int]:
        """Return how many games and adjustments come before a (time, position), at most the first `limit` games."""
        if self.periods is not None:
            return self._place_closed(self.periods, moment, limit)
        return (
            bisect_left(
                self.row, moment, 0, limit, key=lambda row: (facts.occurred_at[row], facts.first_position[row])
            ),
            bisect_left(self.adjustments, moment, key=lambda adjustment: adjustment.moment),
        )

    def _place_closed(self, periods: Periods, moment: tuple[int, int], limit: int | None) -> tuple[int, int]:
        """Return how many games and adjustments belong to periods closed before a moment."""
        games = int(periods.offsets[periods.count_closed(moment[0] - 1)])
        games = games if limit is None else min(games, limit)
        adjustments = bisect_left(self.adjustments, moment, key=lambda adjustment: adjustment.moment)
        return games, bisect_right(self.adjustments, games, 0, adjustments, key=lambda adjustment: adjustment.game)

    def first_moment(self, facts: Facts) -> tuple[int, str] | None:
        """Return when the stream begins, and whether with a `game` or an `adjustment`; None if it has neither."""
        games = [(facts.occurred_at[row], "game") for row in self.row[:1]]
        return min([*games, *((adjustment.occurred_at, "adjustment") for adjustment in self.adjustments)], default=None)

    def _first_of_columns(self, slots: int) -> Sequence[Column]:
        """Return the columns of the first slots."""
        if isinstance(self.columns, LazyColumns) and slots:
            return LazyColumns(lambda: [memoryview(column)[:slots] for column in self.columns])
        return [memoryview(column)[:slots] for column in self.columns if slots]

    def up_to(self, games: int, adjustments: int, joined: int | None = None) -> Stream:
        """Return the stream of the first `games` and `adjustments` alone; `joined` is the number of players of these
        games.
        """
        slots = self.offsets[games]
        # Players are numbered as they join, first those with games, then those with adjustments only.
        joined = arrays.largest(self.players[:slots]) + 1 if joined is None else joined
        shorter = replace(
            self,
            names=self.names[:joined],
            offsets=self.offsets[: games + 1],
            players=self.players[:slots],
            columns=self._first_of_columns(slots),
            version=self.version[:games],
            row=self.row[:games],
            persons=self.persons[:joined],
            adjustments=[],
            batch=None,
            known=None,
            gaps=None,
            calendar=self.calendar.first(games) if self.calendar else None,
            until=None,
        )
        if self.periods is not None:
            shorter.periods = self.periods.first_with(games)
            shorter.open_rows = arrays.concatenate("q", [self.row[games:], self.open_rows])
            shorter.open_from = self.periods.open_from(len(shorter.periods.begin), self.open_from)
        for adjustment in self.adjustments[:adjustments]:
            person = self.persons[adjustment.player]
            shorter.adjustments.append(
                adjustment._replace(player=shorter.number(person, self.names[adjustment.player]))
            )
        return shorter


class LadderName(NamedTuple):
    """A parsed ladder name."""

    ruleset_id: str
    values: tuple[str, ...]


def parse_name(name: str) -> LadderName:
    """Split the name of a ladder, without checking whether its ruleset exists."""
    ruleset_id, *values = name.split("/")
    return LadderName(ruleset_id, tuple(values))


# The band of all games of a ruleset. Its ladder is known by the ruleset's id: elo-chess is elo-chess/all.
ALL = "all"


def short_name(ladder: str) -> str:
    """Return the short name of a ladder for people; events, JSON, CSV and digests have the full name.

    >>> short_name("elo-chess/all"), short_name("elo-chess/2"), short_name("catan-monthly/7/all")
    ('elo-chess', 'elo-chess/2', 'catan-monthly/7/all')
    """
    ruleset_id, _, value = ladder.partition("/")
    return ruleset_id if value == ALL else ladder


class OnLadder(Protocol):
    """A row, a dataclass, that is about one ladder."""

    @property
    def ladder(self) -> str:
        """Return the whole name of the ladder."""


Row = TypeVar("Row", bound=OnLadder)


def drop_duplicate_ladders(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that people see: without those of elo-chess/2 where those of elo-chess/all say the same."""
    rows, contents = [*rows], defaultdict[str, list[Any]](list)
    for row in rows:
        contents[row.ladder].append(replace(cast("Any", row), ladder=""))

    def is_double(ladder: str) -> bool:
        ruleset_id, values = parse_name(ladder)
        whole = f"{ruleset_id}/{ALL}"
        is_size = len(values) == 1 and re.fullmatch(r"\d+(-\d+)?", values[0], re.ASCII) is not None
        return is_size and whole in contents and contents[whole] == contents[ladder]

    doubles = {ladder for ladder in contents if is_double(ladder)}
    return [row for row in rows if row.ladder not in doubles]


def distinct_ladders(*tables: Iterable[OnLadder]) -> set[str]:
    """Return the ladders that at least one of several tables shows."""
    return {row.ladder for table in tables for row in drop_duplicate_ladders(table)}


_VALUE_FORMS = {"month": r"\d{4}-(0[1-9]|1[0-2])", "year": r"\d{4}", "players": r"[1-9]\d*"}


def find_ladder_name_problem(name: LadderName, ruleset: Ruleset) -> str | None:
    """Return why a ladder name does not fit the partition of its ruleset, or None."""
    by, bands = ruleset.partition.by, ruleset.partition.bands
    form = "/".join([ruleset.id, *({"month": "YYYY-MM", "year": "YYYY"}.get(part, part.upper()) for part in by)])
    if len(name.values) != len(by) or not all(name.values):
        return f"the ladders of {ruleset.id} are named {form}" + (
            f", {by[-1].upper()} one of {', '.join(bands)}" if bands else ""
        )
    for part, value in zip(by, name.values, strict=True):
        if part == "players" and bands and value not in bands:
            return f"{quote(value)} is none of the bands {', '.join(bands)}{did_you_mean(value, bands)}"
        if not (part == "players" and bands) and not re.fullmatch(_VALUE_FORMS.get(part, ".+"), value, re.ASCII):
            return f"{quote(value)} is no {part}; the ladders are named {form}"
    return None


def list_partition_values(facts: Facts, row: int, ruleset: Ruleset) -> list[tuple[str, ...]]:
    """Return the partition values of the ladders a game is on: none, one, or several where bands overlap."""
    return list_values_at(facts, facts.cell_of(row), facts.occurred_at[row], ruleset)


def build_streams(
    facts: Facts,
    versions: Sequence[Version],
    *,
    only: tuple[str, ...] | None = None,
    as_of: int | None = None,
    ordered: Callable[[], Column] | None = None,
    after: tuple[int, int] | None = None,
    close_now: bool = False,
) -> dict[str, Stream]:
    """Return the streams of all ladders of a ruleset, or of the one with the partition values `only`, by name.

    Args:
        as_of: the last instant of their games and adjustments.
        ordered: a function that returns the rows up to `as_of`, for callers that have them.
        after: a (time, position); only later adjustments are included.
        close_now: score open rating periods as if they closed now.
    """
    ruleset = versions[0].ruleset
    if only is not None and any(version.params.carry_over for version in versions):
        all_streams = build_streams(facts, versions, as_of=as_of, ordered=ordered, close_now=close_now)
        return {name: stream for name, stream in all_streams.items() if parse_name(name).values == only}
    rows = ordered or partial(_select_rows, facts, ruleset, only, as_of)
    if ruleset.period != "game":
        # The end of an event depends on its last game, so later games are needed, too.
        rows = partial(_select_rows, facts, ruleset, only, None)
    streams_by_values = _build_game_streams(facts, versions, only, rows, PeriodCutoff(as_of, close_now))
    _add_adjustments(facts, versions, streams_by_values, only, as_of, after)
    if any(version.params.carry_over for version in versions):
        _chain_seasons(streams_by_values, ruleset.partition.by.index("season"))
    for stream in streams_by_values.values():
        stream.seeds, stream.until = find_seeded_states(facts, stream.ladder, versions), as_of
    return {stream.ladder: stream for stream in streams_by_values.values()}


def find_seeded_states(facts: Facts, ladder: str, versions: Sequence[Version]) -> dict[str, EntryState]:
    """Return, by id, the states with which seeded players enter a ladder under each of its versions."""
    return {
        facts.players[person]: EntryState(
            (),
            seed.games,
            seeded={version.ruleset.name: compute_seeded_state(seed, version, versions) for version in versions},
        )
        for person, seed in find_seeds(facts, ladder).items()
    }


def _add_adjustments(
    facts: Facts,
    versions: Sequence[Version],
    streams_by_values: dict[tuple[str, ...], Stream],
    only: tuple[str, ...] | None,
    as_of: int | None = None,
    after: tuple[int, int] | None = None,
) -> None:
    """Add adjustments to the streams by partition values, or to the one with the values `only`; see `build_streams`."""
    ruleset = versions[0].ruleset
    starts = find_league_starts(facts, versions) if ruleset.freeze == "league-start" else {}
    for adjustment in sorted(facts.adjustments):
        name = parse_name(adjustment.ladder)
        is_late = as_of is not None and adjustment.occurred_at > as_of
        is_early = after is not None and adjustment[:2] < after
        if name.ruleset_id == ruleset.id and not (is_late or is_early) and only in (None, name.values):
            league = dict(zip(ruleset.partition.by, name.values, strict=True)).get("league", "")
            instant = starts.get(facts.text_numbers.get(league, NONE), adjustment.occurred_at)
            if name.values not in streams_by_values:
                streams_by_values[name.values] = _begin_stream(facts, adjustment.ladder, versions)
            _add_adjustment(streams_by_values[name.values], facts, adjustment, instant)


def _begin_stream(facts: Facts, ladder: str, versions: Sequence[Version]) -> Stream:
    """Return the stream of a ladder without games."""
    stream = Stream(ladder, versions[0].rule, list(versions))
    if any(version.rule.state for version in versions):
        stream.calendar = read_calendar(facts, stream.row, versions[0].ruleset)
    return stream


def find_seeds(facts: Facts, ladder: str) -> Mapping[int, Seed]:
    """Return the live seeds of a ladder by person. A seed replaces the start value, whenever it was recorded."""
    return facts.seeds.get(ladder, {})


def state_columns(rule: Rule) -> tuple[State, ...]:
    """Return the state columns of a rule; a rule of contract 1 has only `points`."""
    return rule.state or (State("points", rule.scale, 6),)


def compute_seeded_state(seed: Seed, version: Version, versions: Sequence[Version]) -> StateValues:
    """Return the state with which a seeded player begins under one of the versions of a ruleset, in units.

    Columns that the seed does not name begin as usual. The first column also takes a value that the seed has under the
    name of another version's first column, because a change of rule may rename it.
    """
    columns = state_columns(version.rule)
    firsts = [columns[0].name, *(state_columns(other_version.rule)[0].name for other_version in versions)]
    texts = [next((seed.state[name] for name in firsts if name in seed.state), None)]
    texts += [seed.state.get(column.name) for column in columns[1:]]
    return tuple(
        start if text is None else _within_64_bits(Decimal(text) * column.scale)
        for column, text, start in zip(columns, texts, version.start_state, strict=True)
    )


def _within_64_bits(units: Decimal) -> int:
    """Return whole units within 64 bits; a number out of the bounds of points stays out of bounds."""
    return max(-UNITS_MAX - 1, min(int(units), UNITS_MAX + 1))


# long, because the order in which large columns are read and freed bounds memory
def _build_game_streams(
    facts: Facts,
    versions: Sequence[Version],
    only: tuple[str, ...] | None,
    rows: Callable[[], Column],
    closing: PeriodCutoff,
) -> dict[tuple[str, ...], Stream]:
    """Return the streams of the games in some rows by partition values, without adjustments."""
    ruleset = versions[0].ruleset

    def is_requested(cell: Cell) -> bool:
        values = list_cell_values(facts, cell, ruleset)
        return bool(values) if only is None or is_partitioned_by_time(ruleset) else only in values

    # For clubs, the games that their players' rule cannot score are known.
    failures: dict[int, Exception] = {} if facts.club_games is None else {**facts.club_games.failures}
    selected = select_games(facts, versions, rows, is_requested, failures)
    shared = partition_games(facts, ruleset, selected, only)
    del selected
    games = GameSlots(shared.row, shared.size, shared.slot)
    with ThreadPoolExecutor(1) as thread:
        numbering = thread.submit(number_players, facts, shared)
        if len(shared.slot) >= LONG_SLOTS:
            numbering.result()
            facts.release_pages()
        columns = read_columns_of_rules(facts, versions, games, shared.version)
        numbered = numbering.result()
    if shared.compiled:
        facts.release_pages()
    most = arrays.largest(shared.size) if shared.compiled else 0
    # From here on, only the players' numbers and the rules' columns are needed of the participants.
    shared = shared._replace(slot=array("i"), size=array("i"))
    del games
    is_stateful = any(version.rule.state for version in versions)
    # Scoring by a rule with state takes much longer than a call per ladder, so these are not batched.
    batched = shared.compiled and not is_stateful
    batch = LadderBatch(shared, most, numbered, columns, versions) if batched else None
    streams_by_values: dict[tuple[str, ...], Stream] = {}
    reason = explain_not_replayed(versions)
    for ladder, values in enumerate(shared.ladders):
        low, high = shared.ladder_from[ladder], shared.ladder_from[ladder + 1]
        first, last = shared.slot_from[ladder], shared.slot_from[ladder + 1]
        persons = list(numbered.names[numbered.names_from[ladder] : numbered.names_from[ladder + 1]])
        streams_by_values[values] = Stream(
            "/".join([ruleset.id, *values]),
            versions[0].rule,
            list(versions),
            [facts.players[p] for p in persons],
            shared.offset[low + ladder : high + ladder + 1],
            numbered.number[first:last],
            [memoryview(column)[first:last] for column in columns],
            shared.version[low:high],
            shared.row[low:high],
            persons=persons,
            batch=batch,
            index=ladder,
        )
        if ruleset.period != "game":
            streams_by_values[values] = close_periods(facts, streams_by_values[values], closing)
        if is_stateful:
            streams_by_values[values].calendar = read_calendar(facts, streams_by_values[values].row, ruleset)
        if failures:
            streams_by_values[values].broken = _first_failure(streams_by_values[values], failures)
        if reason:
            streams_by_values[values].broken = RuleFailure(
                streams_by_values[values].ladder, reason, streams_by_values[values].row[0]
            )
    return streams_by_values


class VersionStart(NamedTuple):
    """A version that takes effect and changes the states of players.

    instant: when it changes them
    since:   from when on it is in force, which may be earlier, within a rating period
    before, version: the indices of the version in force until then, and of this one
    """

    instant: int
    since: int
    before: int
    version: int


def find_changes(versions: Sequence[Version]) -> list[VersionStart]:
    """Return the starts of versions that change the states of players, in order.

    A version does so if its rule has `enter`, or other state columns. The first version changes nothing, nor does any
    version if ladders keep the version of their league's start. A version that takes effect within a rating period
    changes states at its end.
    """
    ruleset = versions[0].ruleset
    if not any(version.rule.state for version in versions) or ruleset.freeze != "none":
        return []
    in_order = [start for start in zip(*version_starts(versions), strict=True) if start[1] != NONE]
    return [
        VersionStart(find_period_end(since, ruleset.period, ruleset.time_zone), since, before, version)
        for (_, before), (since, version) in pairwise(in_order)
        if before != version
        and (versions[version].rule.enter is not None or not have_same_state(versions[before], versions[version]))
    ]


def have_same_state(left: Version, right: Version) -> bool:
    """Tell whether the rules of two versions have the same state columns."""
    return [column.name for column in state_columns(left.rule)] == [column.name for column in state_columns(right.rule)]


def carry_columns(columns: Sequence[Any], before: Version, after: Version) -> list[Any]:
    """Carry states over to the rule of another version: columns carry over by name, the first one under any name, and
    new columns begin with their start value.

    columns: the state columns of the version `before`, or one player's numbers in them
    """
    by_name = dict(zip((column.name for column in state_columns(before.rule)), columns, strict=False))
    new_columns = zip(state_columns(after.rule)[1:], after.start_state[1:], strict=True)
    return [columns[0], *(by_name.get(column.name, start) for column, start in new_columns)]


class VersionSwitch:
    """The switch of a stream's states from one version to the next, whose rule may have other state columns.

    version: the version whose columns `states` holds; None before the first
    """

    def __init__(self, stream: Stream, states: Any, adjusted_before: Any) -> None:
        self.version: Version | None = None
        self._stream, self._states, self._adjusted_before = stream, states, adjusted_before
        self._left: tuple[Any, Any] | None = None

    def begin(self, version: Version) -> int:
        """Carry the states over to a version, and return the number of its state columns."""
        before, self.version, self._left = self.version, version, None
        if before is not None and not have_same_state(before, version):
            entries = [
                index
                for index, adjustment in enumerate(self._stream.adjustments)
                if adjustment.enters and self._stream.versions[adjustment.version] is version
            ]
            players = [self._stream.adjustments[index].player for index in entries]
            self._left = np.array(entries, dtype=np.int64), self._states[:, players].copy()
            carried = carry_columns([*self._states[: before.rule.width].copy()], before, version)
            for column, numbers in zip(self._states, carried, strict=False):
                column[:] = numbers
            self._states[version.rule.width :] = 0
        return version.rule.width

    def end(self) -> None:
        """Record the states of players before the switch, because the loop saw them as carried over."""
        if self._left is not None:
            entries, states = self._left
            self._adjusted_before[:, entries] = states


def insert_entries(stream: Stream, people: int = 0, begun: int = MISSING) -> Stream:
    """Return the same stream with the entries before its last game or adjustment.

    An entry is a version that takes effect for a player who is on the ladder. It is replayed like an adjustment, and
    follows from the games before it, so it is not stored. The stream's first `people` are already on the ladder, and
    versions in force since `begun` or before have taken effect for them. `Trace.enter_until` adds the entries after the
    last game.
    """
    changes = [change for change in find_changes(stream.versions) if change.since > begun]
    if not changes:
        return stream
    adjustments = [adjustment for adjustment in stream.adjustments if not adjustment.enters]
    since = _find_version_starts(stream)
    known_players = set(range(people))
    entries = list(adjustments)
    for change in changes:
        later = np.flatnonzero(since >= change.since)
        game = int(later[0]) if len(later) else len(since)
        if not len(later) and not any(adjustment.occurred_at >= change.instant for adjustment in adjustments):
            break
        joined = np.unique(arrays.as_numpy(stream.players)[: stream.offsets[game]]).tolist()
        adjusted = {
            adjustment.player
            for adjustment in adjustments
            if (adjustment.game, adjustment.occurred_at) < (game, change.instant)
        }
        entries += [make_entry(stream, player, game, change) for player in sorted({*known_players, *joined, *adjusted})]
    return replace(stream, adjustments=sorted(entries, key=lambda adjustment: (adjustment.game, adjustment.moment)))


def _find_version_starts(stream: Stream) -> Any:
    """Return for every game since when its version is in force; with rating periods, the begin of the game's period,
    because a version may come into force within an earlier one.
    """
    if stream.periods is not None:
        return stream.periods.begin[stream.periods.of_game]
    in_force = np.array([version.effective_from or MISSING for version in stream.versions], dtype=np.int64)
    return in_force[arrays.as_numpy(stream.version)] if len(stream.version) else in_force[:0]


def make_entry(stream: Stream, player: int, game: int, change: VersionStart, units: int = 0) -> StreamAdjustment:
    """Return the entry of a player just before a game."""
    position = stream.versions[change.version].position
    return StreamAdjustment(game, player, units, change.version, position, change.instant, enters=True)


class PeriodCutoff(NamedTuple):
    """The cutoff for closed rating periods: those that end at the instant `until` or earlier.

    By default that is when the facts were recorded. With `now`, the periods of all games played up to it count as
    closed.
    """

    until: int | None = None
    now: bool = False


def close_periods(facts: Facts, stream: Stream, closing: PeriodCutoff) -> Stream:
    """Return the same stream with the games of its closed periods alone, period by period."""
    ruleset, rows = stream.versions[0].ruleset, arrays.as_numpy(stream.row)
    instants = arrays.as_numpy(facts.occurred_at)[rows]
    labels = _label_events(facts, rows, ruleset)
    all_periods = number_periods(instants, ruleset.period, ruleset.time_zone, labels)
    closed = all_periods.count_closed(facts.recorded_until if closing.until is None else closing.until)
    games, periods = all_periods.in_order(closed)
    waiting = np.sort(all_periods.games[all_periods.offsets[closed] :])
    if closing.now:
        played = waiting if closing.until is None else waiting[instants[waiting] <= closing.until]
        labels = None if labels is None else labels[played]
        open_periods = number_periods(instants[played], ruleset.period, ruleset.time_zone, labels)
        more, open_periods = open_periods.in_order(len(open_periods.begin))
        games, periods = np.concatenate([games, played[more]]), periods.followed_by(open_periods)
    offsets = arrays.as_numpy(stream.offsets)
    sizes = offsets[games + 1] - offsets[games]
    slots = arrays.as_numpy(arrays.span_indices(arrays.as_column(offsets[games]), arrays.as_column(sizes)))
    old, first = np.unique(arrays.as_numpy(stream.players)[slots], return_index=True)
    joined = old[np.argsort(first)]  # players are numbered as they join
    number = np.zeros(max(len(stream.names), 1), dtype=np.int32)
    number[joined] = np.arange(len(joined), dtype=np.int32)
    return replace(
        stream,
        names=[stream.names[player] for player in joined],
        persons=[stream.persons[player] for player in joined],
        offsets=arrays.as_column(np.concatenate([[0], np.cumsum(sizes)])),
        players=arrays.as_column(number[arrays.as_numpy(stream.players)[slots]]),
        columns=[arrays.as_column(arrays.as_numpy(column)[slots]) for column in stream.columns],
        version=arrays.as_column(_find_versions(stream, games, periods.begin, periods.of_game)),
        row=arrays.as_column(rows[games]),
        periods=periods,
        closes_now=closing.now,
        open_rows=arrays.as_column(rows[waiting]),
        open_from=None if closing.now else all_periods.open_from(closed),
    )


class ClosedPeriods(NamedTuple):
    """How far a ladder with rating periods is scored.

    until:      the last instant of the last closed period; None before the first
    open_games: the number of games played in open periods
    closes_at:  the last instant of the first of these, or of the last game of an event; None without such games
    closed_now: whether these games are scored as if their periods closed now
    """

    until: int | None
    open_games: int
    closes_at: int | None
    closed_now: bool


def find_open_period(facts: Facts, stream: Stream, row: int) -> tuple[int, int] | None:
    """Return the first and the last instant of the period of a game, by its row in the facts; None if it is closed.

    An event begins and ends with its games.
    """
    at, _, periods = _number_open(facts, stream)
    places = np.flatnonzero(at == row)
    if not len(places):
        return None
    period = int(periods.of_game[places[0]])
    return int(periods.begin[period]), int(periods.end[period]) - 1


def _number_open(facts: Facts, stream: Stream) -> tuple[Any, Any, Periods]:
    """Return the games in open periods, by the time they were played: rows, times, and periods."""
    ruleset, rows = stream.versions[0].ruleset, arrays.as_numpy(stream.open_rows)
    instants = arrays.as_numpy(facts.occurred_at)[rows]
    rows, instants = (column[np.lexsort((rows, instants))] for column in (rows, instants))
    labels = _label_events(facts, rows, ruleset)
    return rows, instants, number_periods(instants, ruleset.period, ruleset.time_zone, labels)


def describe_periods(facts: Facts, stream: Stream, as_of: int | None) -> ClosedPeriods | None:
    """Return how far a ladder is scored at `as_of`; None if every game is scored by itself."""
    if stream.periods is None:
        return None
    rows, instants, waiting = _number_open(facts, stream)
    played = len(rows) if as_of is None else int(np.searchsorted(instants, as_of, "right"))
    closed = stream.periods.count_with(len(stream.row) - (played if stream.closes_now else 0))
    closes_at = int(waiting.end[waiting.of_game[:played]].min()) - 1 if played else None
    return ClosedPeriods(stream.periods.closed_to(closed), played, closes_at, stream.closes_now)


def _find_versions(stream: Stream, games: Any, starts: Any, of_game: Any) -> Any:
    """Return the version that scores each game: the one in force when its period begins, or the first after that."""
    own = arrays.as_numpy(stream.version)[games]
    instants, indices = version_starts(stream.versions)
    at = np.array(indices, dtype=np.int16)[np.searchsorted(np.array(instants), starts, "right") - 1]
    first = np.searchsorted(of_game, np.arange(len(starts)))
    return np.where(at == NONE, own[first] if len(own) else at, at).astype(np.int16)[of_game]


def _label_events(facts: Facts, rows: Any, ruleset: Ruleset) -> Any:
    """Return the label of every game's event; a game without a label is an event of its own."""
    by = ruleset.period_by
    if by is None:
        return None
    if by in LABELS:
        labels = np.array([getattr(cell, by) for cell in facts.cells], dtype=np.int64)
        return label_events(labels[arrays.as_numpy(facts.cell)[rows]], NONE)
    return label_events(read_optional_column(facts, by, arrays.as_numpy(facts.start)[rows]))


def explain_not_replayed(versions: Sequence[Version]) -> str | None:
    """Return why no ladder of these versions can be replayed, or None."""
    ruleset, state_names = (
        versions[0].ruleset,
        {tuple(column.name for column in state_columns(version.rule)) for version in versions},
    )
    if len(state_names) > 1 and (ruleset.freeze != "none" or ruleset.period == "event"):
        numbers = "; ".join(map(", ".join, sorted(state_names)))
        return f"its versions take turns, but keep different numbers about a player: {numbers}"
    return None


def _first_failure(stream: Stream, failures: Mapping[int, Exception]) -> RuleFailure | None:
    """Return the first of these failures (by row) at a game of a stream, as the stream's own."""
    row = next((row for row in stream.row if row in failures), None)
    return None if row is None else RuleFailure(stream.ladder, str(failures[row]), row)


def _select_rows(facts: Facts, ruleset: Ruleset, only: tuple[str, ...] | None, as_of: int | None) -> Column:
    """Return the games that may be on the ladders, in order; for one of a month or year, those of that period."""
    period = None if only is None else find_period(ruleset, only)
    if period is None:
        return order_rows(facts, as_of)
    return order_rows(facts, period.end if as_of is None else min(as_of, period.end), period.start)


def _chain_seasons(streams_by_values: dict[tuple[str, ...], Stream], part: int) -> None:
    """Link each season's ladder to the previous one; seasons follow each other in the order of their ids."""
    latest: dict[tuple[str, ...], Stream] = {}
    for values in sorted(streams_by_values, key=lambda values: values[part]):
        other_values = values[:part] + values[part + 1 :]
        streams_by_values[values].previous = latest.get(other_values)
        latest[other_values] = streams_by_values[values]


def _add_adjustment(stream: Stream, facts: Facts, adjustment: Adjustment, instant: int) -> None:
    """Insert an adjustment into a stream.

    A new player enters with the start value of the version in force at `instant`, or of the first version after it.
    """
    if stream.open_from is not None and adjustment.occurred_at >= stream.open_from:
        return  # counted when the period closes
    if stream.periods is not None:
        # An adjustment within a period counts at its close. Events are in the order of their ends, and may overlap.
        begun = np.flatnonzero(stream.periods.begin <= adjustment.occurred_at)
        game = int(stream.periods.offsets[int(begun[-1]) + 1]) if len(begun) else 0
    else:
        game, _ = stream.place(facts, (adjustment.occurred_at, adjustment.position))
    units = int(Decimal(adjustment.points) * stream.rule.scale)
    version = in_force(stream.versions, instant) or oldest(stream.versions)
    index = next(index for index, other in enumerate(stream.versions) if other is version)
    number = stream.number(adjustment.player, facts.players[adjustment.player])
    stream.adjustments.append(StreamAdjustment(game, number, units, index, adjustment.position, adjustment.occurred_at))
