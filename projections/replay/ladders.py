"""Ladders: their names, which games are on which, and the stream of games and adjustments that each replays.

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
from ratings_ledger.projections.replay.eligibility import league_starts, rows_in_order, select, timeline
from ratings_ledger.projections.replay.gaps import Calendar, Gaps, Joining, read_calendar
from ratings_ledger.projections.replay.partition import (
    Numbered,
    Partitioned,
    by_time,
    cell_values,
    number_players,
    partition,
    values_when,
)
from ratings_ledger.projections.replay.periods import Periods, end_of_period, label_alone, number_periods
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.rule_inputs import GameSlots, padded, rule_columns
from ratings_ledger.projections.rulesets.versions import Version, in_force, oldest, period_of

# of so many participants, both of what they are numbered by and of what rules read are too much memory at once
LONG_SLOTS = 20_000_000


class Inserted(NamedTuple):
    """An adjustment at its place in a stream: `units` are added before the game at index `game`.

    `version` indexes the version whose start value a new player has at that moment. If it `enters`, that version takes
    effect then and changes what the player has; `units` are the points that gives, once it is replayed.
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
        """Return its place in the order of games and adjustments: a version is in force from its first instant on."""
        return self.occurred_at, NONE if self.enters else self.position


@dataclass
class LadderBatch:
    """The ladders of a ruleset, to be replayed together, whose games have at most so many participants; `outcomes` is
    the result, for `replay`."""

    shared: Partitioned
    participants: int
    numbered: Numbered
    columns: Sequence[Column]
    versions: Sequence[Version]
    outcomes: tuple[Any, ...] | None = None


class Fetched(Sequence[Any]):
    """Columns that are made when they are first read."""

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
    """What a ladder replays: its counted games in order, with their counted participants, and its adjustments.

    The players are numbered per ladder (`persons` by number); game `g` has participants `offsets[g]` up to
    `offsets[g + 1]`, sorted by id. `version[g]` indexes `versions`; `row[g]` leads back to the facts. `previous` is the
    same ladder in the previous season, if the ruleset carries points over. If compiled code pays for all ladders of the
    ruleset together, they are a `batch`, and this one has an `index` there. A `broken` stream cannot be replayed: its
    rule's check fails at one of its games. A `known` one has been replayed: that is its trace. A rule with state also
    needs the `calendar`; the replay leaves the `gaps` before all slots. `seeds` are what some players join with, by id.
    If games are scored by `periods`, these are the closed ones, and the games are theirs, period by period. `open_rows`
    lead to all games in periods that are not closed yet, the first of which begins at `open_from`; if it `closes_now`,
    those of them that have been played are scored at the end, as if their periods closed now. What changes points
    without a game happened up to the instant `until`, by default with the last game; a stream whose earlier part is
    left out says up to when versions have `entered` there.
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
    adjustments: list[Inserted] = field(default_factory=list)
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
    seeds: Mapping[str, Joining] = field(default_factory=dict)
    until: int | None = None
    entered: int = MISSING

    @property
    def width(self) -> int:
        """Return how many numbers about a player its versions keep at most."""
        return max(version.rule.width for version in self.versions)

    @cached_property
    def ranking(self) -> RankingList:
        """Return the kind of list that ranks its players."""
        return LISTS[self.rule.ranking]

    def number(self, person: int, name: str) -> int:
        """Return the person's number on this ladder, given on first use."""
        if person not in self.numbers:
            self.numbers[person] = len(self.names)
            self.persons.append(person)
            self.names.append(name)
        return self.numbers[person]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Return the numbers by person."""
        return {person: number for number, person in enumerate(self.persons)}

    def place(self, facts: Facts, moment: tuple[int, int], among: int | None = None) -> tuple[int, int]:
        """Return how many games and adjustments come before a (time, position); they share one order.

        Of the games, only `among` the first ones.
        """
        if self.periods is not None:
            return self._place_closed(self.periods, moment, among)
        return (
            bisect_left(
                self.row, moment, 0, among, key=lambda row: (facts.occurred_at[row], facts.first_position[row])
            ),
            bisect_left(self.adjustments, moment, key=lambda one: one.moment),
        )

    def _place_closed(self, periods: Periods, moment: tuple[int, int], among: int | None) -> tuple[int, int]:
        """Return how many games are in periods closed before a moment, and how many adjustments are counted by then."""
        games = int(periods.offsets[periods.count_closed(moment[0] - 1)])
        games = games if among is None else min(games, among)
        there = bisect_left(self.adjustments, moment, key=lambda one: one.moment)
        return games, bisect_right(self.adjustments, games, 0, there, key=lambda one: one.game)

    def first_moment(self, facts: Facts) -> tuple[int, str] | None:
        """Return when it begins, and whether with a `game` or an `adjustment`; None if it has neither."""
        games = [(facts.occurred_at[row], "game") for row in self.row[:1]]
        return min([*games, *((one.occurred_at, "adjustment") for one in self.adjustments)], default=None)

    def _first_of_columns(self, slots: int) -> Sequence[Column]:
        """Return the columns of the first slots."""
        if isinstance(self.columns, Fetched) and slots:
            return Fetched(lambda: [memoryview(column)[:slots] for column in self.columns])
        return [memoryview(column)[:slots] for column in self.columns if slots]

    def up_to(self, games: int, adjustments: int, joined: int | None = None) -> Stream:
        """Return the stream of the first `games` and `adjustments` alone; `joined` is how many players these games
        have.
        """
        slots = self.offsets[games]
        # numbers follow the order in which players join by their games, then by their adjustments
        joined = arrays.largest(self.players[:slots]) + 1 if joined is None else joined
        found = replace(
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
            found.periods = self.periods.first_with(games)
            found.open_rows = arrays.concatenated("q", [self.row[games:], self.open_rows])
            found.open_from = self.periods.open_from(len(found.periods.begin), self.open_from)
        for one in self.adjustments[:adjustments]:
            person = self.persons[one.player]
            found.adjustments.append(one._replace(player=found.number(person, self.names[one.player])))
        return found


class LadderName(NamedTuple):
    """A parsed ladder name."""

    ruleset_id: str
    values: tuple[str, ...]


def parse_name(name: str) -> LadderName:
    """Split a ladder's name; whether its ruleset exists is another question."""
    ruleset_id, *values = name.split("/")
    return LadderName(ruleset_id, tuple(values))


# the band of all games of a ruleset, and how its ladder is known: elo-chess is elo-chess/all
ALL = "all"


def short_name(ladder: str) -> str:
    """Return what people call a ladder; events, JSON, CSV and digests keep its whole name.

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
    """Return the ladders that people see in several tables: no table tells a double from the whole."""
    return {row.ladder for table in tables for row in drop_duplicate_ladders(table)}


_VALUE_FORMS = {"month": r"\d{4}-(0[1-9]|1[0-2])", "year": r"\d{4}", "players": r"[1-9]\d*"}


def refuse_name(name: LadderName, ruleset: Ruleset) -> str | None:
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


def partition_values(facts: Facts, row: int, ruleset: Ruleset) -> list[tuple[str, ...]]:
    """Return the partition values of the ladders a game is on: none, one, or several where bands overlap."""
    return values_when(facts, facts.cell_of(row), facts.occurred_at[row], ruleset)


def streams(
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

    They end with the instant `as_of`; `ordered` gives the rows up to it if somebody knows them. Of adjustments, only
    those after the (time, position) `after` are in them. With `close_now`, open rating periods are scored as if they
    closed now.
    """
    ruleset = versions[0].ruleset
    if only is not None and any(version.params.carry_over for version in versions):
        every = streams(facts, versions, as_of=as_of, ordered=ordered, close_now=close_now)
        return {name: stream for name, stream in every.items() if parse_name(name).values == only}
    rows = ordered or partial(_rows, facts, ruleset, only, as_of)
    if ruleset.period != "game":
        # when an event is over depends on its last game, whenever somebody asks
        rows = partial(_rows, facts, ruleset, only, None)
    found = _played(facts, versions, only, rows, Closing(as_of, close_now))
    _add_adjustments(facts, versions, found, only, as_of, after)
    if any(version.params.carry_over for version in versions):
        _chain_seasons(found, ruleset.partition.by.index("season"))
    for stream in found.values():
        stream.seeds, stream.until = find_seeded(facts, stream.ladder, versions), as_of
    return {stream.ladder: stream for stream in found.values()}


def find_seeded(facts: Facts, ladder: str, versions: Sequence[Version]) -> dict[str, Joining]:
    """Return with what seeded players join a ladder, by id: under each version, in the numbers that its rule keeps."""
    return {
        facts.players[person]: Joining(
            (), seed.games, seeded={one.ruleset.name: seeded_state(seed, one, versions) for one in versions}
        )
        for person, seed in seeds_of(facts, ladder).items()
    }


def _add_adjustments(
    facts: Facts,
    versions: Sequence[Version],
    found: dict[tuple[str, ...], Stream],
    only: tuple[str, ...] | None,
    as_of: int | None = None,
    after: tuple[int, int] | None = None,
) -> None:
    """Add adjustments to the streams by partition values, or to the one with the values `only`; see `streams`."""
    ruleset = versions[0].ruleset
    starts = league_starts(facts, versions) if ruleset.freeze == "league-start" else {}
    for adjustment in sorted(facts.adjustments):
        name = parse_name(adjustment.ladder)
        late = as_of is not None and adjustment.occurred_at > as_of
        early = after is not None and adjustment[:2] < after
        if name.ruleset_id == ruleset.id and not (late or early) and only in (None, name.values):
            league = dict(zip(ruleset.partition.by, name.values, strict=True)).get("league", "")
            instant = starts.get(facts.text_numbers.get(league, NONE), adjustment.occurred_at)
            if name.values not in found:
                found[name.values] = _begin_stream(facts, adjustment.ladder, versions)
            _add_adjustment(found[name.values], facts, adjustment, instant)


def _begin_stream(facts: Facts, ladder: str, versions: Sequence[Version]) -> Stream:
    """Return the stream of a ladder without games."""
    stream = Stream(ladder, versions[0].rule, list(versions))
    if any(version.rule.state for version in versions):
        stream.calendar = read_calendar(facts, stream.row, versions[0].ruleset)
    return stream


def seeds_of(facts: Facts, ladder: str) -> Mapping[int, Seed]:
    """Return the live seeds of a ladder by person, whenever they occurred: each replaces the start from the beginning
    of time.
    """
    return facts.seeds.get(ladder, {})


def state_columns(rule: Rule) -> tuple[State, ...]:
    """Return the columns of the state that a rule keeps; one of contract 1 keeps the `points` alone."""
    return rule.state or (State("points", rule.scale, 6),)


def seeded_state(seed: Seed, version: Version, versions: Sequence[Version]) -> StateValues:
    """Return the state with which a seeded player begins under one of the versions of a ruleset, in units.

    Columns that the seed does not name begin as usual. The first column takes the value of the first column of another
    version if the seed knows it by that name: a change of rule may rename it.
    """
    columns = state_columns(version.rule)
    firsts = [columns[0].name, *(state_columns(other.rule)[0].name for other in versions)]
    texts = [next((seed.state[name] for name in firsts if name in seed.state), None)]
    texts += [seed.state.get(column.name) for column in columns[1:]]
    return tuple(
        start if text is None else _within_64_bits(Decimal(text) * column.scale)
        for column, text, start in zip(columns, texts, version.start_state, strict=True)
    )


def _within_64_bits(units: Decimal) -> int:
    """Return whole units; a number that is out of the bounds of points stays so."""
    return max(-UNITS_MAX - 1, min(int(units), UNITS_MAX + 1))


def _played(
    facts: Facts,
    versions: Sequence[Version],
    only: tuple[str, ...] | None,
    rows: Callable[[], Column],
    closing: Closing,
) -> dict[tuple[str, ...], Stream]:
    """Return the streams of the games in some rows by partition values, without adjustments."""
    ruleset = versions[0].ruleset

    def asked(cell: Cell) -> bool:
        values = cell_values(facts, cell, ruleset)
        return bool(values) if only is None or by_time(ruleset) else only in values

    # of clubs it is known which games their players' rule cannot score
    failures: dict[int, Exception] = {} if facts.club_games is None else {**facts.club_games.failures}
    selected = select(facts, versions, rows, asked, failures)
    shared = partition(facts, ruleset, selected, only)
    del selected
    games = GameSlots(shared.row, shared.size, shared.slot)
    with ThreadPoolExecutor(1) as thread:
        numbering = thread.submit(number_players, facts, shared)
        if len(shared.slot) >= LONG_SLOTS:
            numbering.result()
            facts.let_go()
        columns = rule_columns(facts, versions, games, shared.version)
        numbered = numbering.result()
    if shared.compiled:
        facts.let_go()
    most = arrays.largest(shared.size) if shared.compiled else 0
    # who is who, and what rules read, is all that is needed of the participants from here on
    shared = shared._replace(slot=array("i"), size=array("i"))
    del games
    is_stateful = any(version.rule.state for version in versions)
    # a call for each ladder costs little beside the scoring of a rule with state
    batched = shared.compiled and not is_stateful
    batch = LadderBatch(shared, most, numbered, columns, versions) if batched else None
    found: dict[tuple[str, ...], Stream] = {}
    reason = why_not_replayed(versions)
    for ladder, values in enumerate(shared.ladders):
        low, high = shared.ladder_from[ladder], shared.ladder_from[ladder + 1]
        first, last = shared.slot_from[ladder], shared.slot_from[ladder + 1]
        persons = list(numbered.names[numbered.names_from[ladder] : numbered.names_from[ladder + 1]])
        found[values] = Stream(
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
            found[values] = close_periods(facts, found[values], closing)
        if is_stateful:
            found[values].calendar = read_calendar(facts, found[values].row, ruleset)
        if failures:
            found[values].broken = _first_failure(found[values], failures)
        if reason:
            found[values].broken = RuleFailure(found[values].ladder, reason, found[values].row[0])
    return found


class VersionStart(NamedTuple):
    """A version that takes effect and changes what players have.

    instant: when it does that; since: from when on it is in force, which may be within a period before
    before, version: the indices of the version in force until then, and its own
    """

    instant: int
    since: int
    before: int
    version: int


def find_changes(versions: Sequence[Version]) -> list[VersionStart]:
    """Return the changes of the version in force at which the new one changes what players have, in order.

    It does if its rule says so, or keeps other numbers about a player. The first version changes nothing, and none does
    where ladders keep the version of their league's start. What takes effect within a day, week or month that is scored
    as a whole changes ratings at its end.
    """
    ruleset = versions[0].ruleset
    if not any(version.rule.state for version in versions) or ruleset.freeze != "none":
        return []
    in_order = [one for one in zip(*timeline(versions), strict=True) if one[1] != NONE]
    return [
        VersionStart(end_of_period(since, ruleset.period, ruleset.time_zone), since, before, version)
        for (_, before), (since, version) in pairwise(in_order)
        if before != version
        and (versions[version].rule.enter is not None or not keep_the_same(versions[before], versions[version]))
    ]


def keep_the_same(one: Version, other: Version) -> bool:
    """Tell whether the rules of two versions keep the same numbers about a player."""
    return [column.name for column in state_columns(one.rule)] == [column.name for column in state_columns(other.rule)]


def carry_columns(columns: Sequence[Any], before: Version, after: Version) -> list[Any]:
    """Return what players have as the rule of another version keeps it: columns carry over by name, the first one under
    any, and new ones begin with its start.

    columns: the state columns of the version `before`, or one player's numbers in them
    """
    there = dict(zip((column.name for column in state_columns(before.rule)), columns, strict=False))
    others = zip(state_columns(after.rule)[1:], after.start_state[1:], strict=True)
    return [columns[0], *(there.get(column.name, start) for column, start in others)]


class Turnover:
    """What happens to the states of a stream where a version takes over whose rule keeps other numbers.

    version: the one whose numbers `states` are, None before the first
    """

    def __init__(self, stream: Stream, states: Any, adjusted_before: Any) -> None:
        self.version: Version | None = None
        self._stream, self._states, self._adjusted_before = stream, states, adjusted_before
        self._left: tuple[Any, Any] | None = None

    def begin(self, version: Version) -> int:
        """Carry the states over to a version; return how many numbers its rule keeps."""
        before, self.version, self._left = self.version, version, None
        if before is not None and not keep_the_same(before, version):
            entries = [
                at
                for at, one in enumerate(self._stream.adjustments)
                if one.enters and self._stream.versions[one.version] is version
            ]
            players = [self._stream.adjustments[at].player for at in entries]
            self._left = np.array(entries, dtype=np.int64), self._states[:, players].copy()
            carried = carry_columns([*self._states[: before.rule.width].copy()], before, version)
            for column, numbers in zip(self._states, carried, strict=False):
                column[:] = numbers
            self._states[version.rule.width :] = 0
        return version.rule.width

    def end(self) -> None:
        """Put down what everybody had before the version took over: the loop saw their states as carried over."""
        if self._left is not None:
            entries, states = self._left
            self._adjusted_before[:, entries] = states


def insert_entries(stream: Stream, people: int = 0, begun: int = MISSING) -> Stream:
    """Return the same stream with the entries before its last game or adjustment.

    An entry is a version that takes effect for somebody who is on the ladder. It is to a ladder what an adjustment is,
    and follows from the games before it, so nothing of it is stored. The stream's first `people` are there already, for
    whom versions in force since `begun` or before have taken effect. See `Trace.enter_until` for what comes after the
    last.
    """
    changes = [one for one in find_changes(stream.versions) if one.since > begun]
    if not changes:
        return stream
    adjustments = [one for one in stream.adjustments if not one.enters]
    since = _begin_of_games(stream)
    there = set(range(people))
    found = list(adjustments)
    for change in changes:
        later = np.flatnonzero(since >= change.since)
        game = int(later[0]) if len(later) else len(since)
        if not len(later) and not any(one.occurred_at >= change.instant for one in adjustments):
            break
        joined = np.unique(arrays.as_numpy(stream.players)[: stream.offsets[game]]).tolist()
        adjusted = {one.player for one in adjustments if (one.game, one.occurred_at) < (game, change.instant)}
        found += [make_entry(stream, player, game, change) for player in sorted({*there, *joined, *adjusted})]
    return replace(stream, adjustments=sorted(found, key=lambda one: (one.game, one.moment)))


def _begin_of_games(stream: Stream) -> Any:
    """Return for every game since when its version is in force; of a game in a rating period when the period begins,
    since a version may come into force within an earlier one.
    """
    if stream.periods is not None:
        return stream.periods.begin[stream.periods.of_game]
    in_force = np.array([version.effective_from or MISSING for version in stream.versions], dtype=np.int64)
    return in_force[arrays.as_numpy(stream.version)] if len(stream.version) else in_force[:0]


def make_entry(stream: Stream, player: int, game: int, change: VersionStart, units: int = 0) -> Inserted:
    """Return the entry of a player just before a game."""
    position = stream.versions[change.version].position
    return Inserted(game, player, units, change.version, position, change.instant, enters=True)


class Closing(NamedTuple):
    """Which rating periods are closed: those that end with the instant `until` or before, by default when the facts
    were recorded; and `now`, as if they closed then, those of all games played up to it.
    """

    until: int | None = None
    now: bool = False


def close_periods(facts: Facts, stream: Stream, closing: Closing) -> Stream:
    """Return the same stream with the games of its closed periods alone, period by period."""
    ruleset, rows = stream.versions[0].ruleset, arrays.as_numpy(stream.row)
    instants = arrays.as_numpy(facts.occurred_at)[rows]
    labels = _label_events(facts, rows, ruleset)
    every = number_periods(instants, ruleset.period, ruleset.time_zone, labels)
    closed = every.count_closed(facts.recorded_until if closing.until is None else closing.until)
    games, periods = every.in_order(closed)
    waiting = np.sort(every.games[every.offsets[closed] :])
    if closing.now:
        played = waiting if closing.until is None else waiting[instants[waiting] <= closing.until]
        labels = None if labels is None else labels[played]
        last = number_periods(instants[played], ruleset.period, ruleset.time_zone, labels)
        more, last = last.in_order(len(last.begin))
        games, periods = np.concatenate([games, played[more]]), periods.followed_by(last)
    offsets = arrays.as_numpy(stream.offsets)
    sizes = offsets[games + 1] - offsets[games]
    slots = arrays.as_numpy(arrays.span_indices(arrays.as_column(offsets[games]), arrays.as_column(sizes)))
    old, first = np.unique(arrays.as_numpy(stream.players)[slots], return_index=True)
    joined = old[np.argsort(first)]  # players are numbered in the order in which they join
    number = np.zeros(max(len(stream.names), 1), dtype=np.int32)
    number[joined] = np.arange(len(joined), dtype=np.int32)
    return replace(
        stream,
        names=[stream.names[one] for one in joined],
        persons=[stream.persons[one] for one in joined],
        offsets=arrays.as_column(np.concatenate([[0], np.cumsum(sizes)])),
        players=arrays.as_column(number[arrays.as_numpy(stream.players)[slots]]),
        columns=[arrays.as_column(arrays.as_numpy(column)[slots]) for column in stream.columns],
        version=arrays.as_column(_versions_at(stream, games, periods.begin, periods.of_game)),
        row=arrays.as_column(rows[games]),
        periods=periods,
        closes_now=closing.now,
        open_rows=arrays.as_column(rows[waiting]),
        open_from=None if closing.now else every.open_from(closed),
    )


class ClosedPeriods(NamedTuple):
    """How far a ladder is scored by rating periods.

    until:      the last instant of the last closed period; None before the first
    open_games: how many games have been played in periods that are not closed yet
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
    """Return the games in open periods by the time they were played: their rows, these times, and their periods."""
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


def _versions_at(stream: Stream, games: Any, starts: Any, of_game: Any) -> Any:
    """Return the version that scores each game: the one in force when its period begins, or the first after that."""
    own = arrays.as_numpy(stream.version)[games]
    instants, indices = timeline(stream.versions)
    at = np.array(indices, dtype=np.int16)[np.searchsorted(np.array(instants), starts, "right") - 1]
    first = np.searchsorted(of_game, np.arange(len(starts)))
    return np.where(at == NONE, own[first] if len(own) else at, at).astype(np.int16)[of_game]


def _label_events(facts: Facts, rows: Any, ruleset: Ruleset) -> Any:
    """Return what makes games one event, for every game; one without it is an event of its own."""
    by = ruleset.period_by
    if by is None:
        return None
    if by in LABELS:
        labels = np.array([getattr(cell, by) for cell in facts.cells], dtype=np.int64)
        return label_alone(labels[arrays.as_numpy(facts.cell)[rows]], NONE)
    return label_alone(padded(facts, by, arrays.as_numpy(facts.start)[rows]))


def why_not_replayed(versions: Sequence[Version]) -> str | None:
    """Return why no ladder of these versions can be replayed, or None."""
    ruleset, kept = versions[0].ruleset, {tuple(column.name for column in state_columns(one.rule)) for one in versions}
    if len(kept) > 1 and (ruleset.freeze != "none" or ruleset.period == "event"):
        numbers = "; ".join(map(", ".join, sorted(kept)))
        return f"its versions take turns, but keep different numbers about a player: {numbers}"
    return None


def _first_failure(stream: Stream, failures: Mapping[int, Exception]) -> RuleFailure | None:
    """Return the first of these failures (by row) at a game of a stream, as the stream's own."""
    row = next((row for row in stream.row if row in failures), None)
    return None if row is None else RuleFailure(stream.ladder, str(failures[row]), row)


def _rows(facts: Facts, ruleset: Ruleset, only: tuple[str, ...] | None, as_of: int | None) -> Column:
    """Return the games that may be on the ladders, in order; for one of a month or year, those of that period."""
    period = None if only is None else period_of(ruleset, only)
    if period is None:
        return rows_in_order(facts, as_of)
    return rows_in_order(facts, period.end if as_of is None else min(as_of, period.end), period.start)


def _chain_seasons(found: dict[tuple[str, ...], Stream], part: int) -> None:
    """Link each season's ladder to the previous one; seasons follow each other in the order of their ids."""
    before: dict[tuple[str, ...], Stream] = {}
    for values in sorted(found, key=lambda values: values[part]):
        others = values[:part] + values[part + 1 :]
        found[values].previous = before.get(others)
        before[others] = found[values]


def _add_adjustment(stream: Stream, facts: Facts, adjustment: Adjustment, instant: int) -> None:
    """Put an adjustment in its place; the version in force at `instant`, or the first to come into force after it, says
    what a new player begins with."""
    if stream.open_from is not None and adjustment.occurred_at >= stream.open_from:
        return  # it is counted when the period closes
    if stream.periods is not None:
        # within a period it is counted at its close
        # events are in the order of their ends, and may overlap
        begun = np.flatnonzero(stream.periods.begin <= adjustment.occurred_at)
        game = int(stream.periods.offsets[int(begun[-1]) + 1]) if len(begun) else 0
    else:
        game, _ = stream.place(facts, (adjustment.occurred_at, adjustment.position))
    units = int(Decimal(adjustment.points) * stream.rule.scale)
    version = in_force(stream.versions, instant) or oldest(stream.versions)
    index = next(index for index, other in enumerate(stream.versions) if other is version)
    number = stream.number(adjustment.player, facts.players[adjustment.player])
    stream.adjustments.append(Inserted(game, number, units, index, adjustment.position, adjustment.occurred_at))
