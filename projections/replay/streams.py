"""Build the input of replays: for each ladder, a stream of its games and adjustments."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Rule, State, StateValues
from ratings_ledger.projections.facts.columns import LABELS, NONE, Adjustment, Cell, Column, Facts, Seed
from ratings_ledger.projections.lists import LISTS, RankingList
from ratings_ledger.projections.replay.eligibility import find_league_starts, order_rows, select_games, version_starts
from ratings_ledger.projections.replay.gaps import Calendar, Gaps, read_calendar
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.partition import (
    LadderGames,
    PlayerNumbers,
    list_cell_values,
    list_values_at,
    number_players,
    partition_games,
)
from ratings_ledger.projections.replay.periods import Periods, divide_into_periods, find_period_end, number_tournaments
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.rule_inputs import GameSlots, read_columns_of_rules, read_optional_column
from ratings_ledger.projections.replay.seasons import EntryState, find_entry_versions, find_previous_seasons
from ratings_ledger.projections.rulesets.versions import Version, find_period, in_force, oldest

# from this number of slots on, reading the rules' columns while numbering the players takes too much memory
PARALLEL_SLOTS_LIMIT = 20_000_000


class StreamAdjustment(NamedTuple):
    """An adjustment in a stream: `units` are added to a player's points before the game at index `game`.

    version: the index of the version whose start value a new player gets, if this adjustment puts them on the ladder
    is_version_entry: whether the adjustment only marks that this version takes effect for the player; the replay then
             sets `units` to the change of points
    """

    game: int
    player: int
    units: int
    version: int
    position: int
    occurred_at: int
    is_version_entry: bool = False

    @property
    def moment(self) -> tuple[int, int]:
        """Return the (time, position) to sort by. A version entry comes before all events of its instant."""
        return self.occurred_at, NONE if self.is_version_entry else self.position


@dataclass
class LadderBatch:
    """The ladders of a ruleset, to be replayed together.

    participants_max: the largest number of participants in a game
    columns:          the columns that the rules read, by slot
    outcomes:         None, until `replay` stores the `BatchOutcomes`; empty if the ladders must be replayed one by one
    """

    ladder_games: LadderGames
    participants_max: int
    player_numbers: PlayerNumbers
    columns: Sequence[Column]
    versions: Sequence[Version]
    outcomes: Any = None


class LazyColumns(Sequence[Any]):
    """Columns that are built on first use."""

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

    rule:      the rule of the first version; the rules of all versions have the same scale and ranking
    names, persons: by player number on this ladder, the id and the number of the person
    offsets:   the slots of game g are offsets[g] to offsets[g + 1] - 1, in the order of the player ids
    players, columns: by slot, the player's number, and the columns that rules read
    version_indices, rows: by game, the index in `versions` of the version that scores it, and its row in the facts
    batch, index: the ladders that compiled code replays together with this one, and the index of this one among them
    previous:  the same ladder in the previous season, if the ruleset carries points over
    failure:   why the stream cannot be replayed
    trace:     the trace, if the stream has been replayed
    calendar, gaps: for rules with state: the days and seasons of games, and the gaps that the replay measures
    periods:   the closed rating periods; the stream then has only their games, sorted by period
    open_rows, open_from: the rows of the games in open periods, and the start of the first open period
    closes_now: whether open periods are scored as if they closed now
    seeds:     by player id, the states with which seeded players enter
    until:     the instant up to which versions that take effect after the last game are applied; None to apply none
    latest_version_start: the start of the latest version that took effect in the earlier trace that this stream
               continues; `MISSING` without an earlier trace
    """

    ladder: str
    rule: Rule
    versions: list[Version]
    names: list[str] = field(default_factory=list)
    offsets: Column = field(default_factory=lambda: array("q", [0]))
    players: Column = field(default_factory=lambda: array("i"))
    columns: Sequence[Column] = ()
    version_indices: Column = field(default_factory=lambda: array("h"))
    rows: Column = field(default_factory=lambda: array("q"))
    adjustments: list[StreamAdjustment] = field(default_factory=list)
    persons: list[int] = field(default_factory=list)
    batch: LadderBatch | None = None
    index: int = 0
    previous: Stream | None = None
    failure: RuleFailure | None = None
    trace: Any = None
    calendar: Calendar | None = None
    gaps: Gaps | None = None
    periods: Periods | None = None
    open_rows: Column = field(default_factory=lambda: array("q"))
    open_from: int | None = None
    closes_now: bool = False
    seeds: Mapping[str, EntryState] = field(default_factory=dict)
    until: int | None = None
    latest_version_start: int = MISSING

    @property
    def width(self) -> int:
        """Return the largest number of state columns among the versions."""
        return max(version.rule.width for version in self.versions)

    @cached_property
    def ranking(self) -> RankingList:
        """Return the list that ranks the players."""
        return LISTS[self.rule.ranking]

    def number_player(self, person: int, player_id: str) -> int:
        """Return the number of a person on this ladder. A new person gets the next number."""
        if person not in self.numbers:
            self.numbers[person] = len(self.names)
            self.persons.append(person)
            self.names.append(player_id)
        return self.numbers[person]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Return the number on this ladder by person."""
        return {person: number for number, person in enumerate(self.persons)}

    @cached_property
    def _entry_versions(self) -> dict[int, int]:
        """Return the index of the version under which each player enters; empty if all carry over, or none does."""
        if len({version.params.carry_over for version in self.versions}) == 1:
            return {}
        adjustments = [(adjustment.game, adjustment.player, adjustment.version) for adjustment in self.adjustments]
        return find_entry_versions(self.players, self.offsets, self.version_indices, adjustments)

    def find_entry(self, number: int, entry: EntryState | None) -> EntryState | None:
        """Return the entry state that counts under the version under which a player on the ladder entered."""
        return None if entry is None else entry.under(self.versions[self._entry_versions.get(number, 0)])

    def find_entries(self, entry_states: Mapping[str, EntryState]) -> dict[int, EntryState]:
        """Return, by player number, the entry states that count."""
        numbered = enumerate(self.names if entry_states else ())
        entries = ((number, self.find_entry(number, entry_states.get(name))) for number, name in numbered)
        return {number: entry for number, entry in entries if entry is not None}

    def count_before(self, facts: Facts, moment: tuple[int, int], limit: int | None = None) -> tuple[int, int]:
        """Count the games and adjustments that come before a moment; at most `limit` games."""
        if self.periods is not None:
            return self._count_closed_before(self.periods, moment, limit)
        return (
            bisect_left(
                self.rows, moment, 0, limit, key=lambda row: (facts.occurred_at[row], facts.first_position[row])
            ),
            bisect_left(self.adjustments, moment, key=lambda adjustment: adjustment.moment),
        )

    def _count_closed_before(self, periods: Periods, moment: tuple[int, int], limit: int | None) -> tuple[int, int]:
        """Count the games and adjustments of the periods that closed before a moment."""
        games = int(periods.offsets[periods.count_closed(moment[0] - 1)])
        games = games if limit is None else min(games, limit)
        adjustments = bisect_left(self.adjustments, moment, key=lambda adjustment: adjustment.moment)
        return games, bisect_right(self.adjustments, games, 0, adjustments, key=lambda adjustment: adjustment.game)

    def find_start(self, facts: Facts) -> tuple[int, str] | None:
        """Return the time and kind ("game" or "adjustment") of the earliest entry; None for an empty stream.

        Games of tournaments that overlap are not in the order of their times.
        """
        first_rows = self.rows[:1]
        if self.versions[0].ruleset.period == "event" and len(self.rows):
            times = arrays.as_numpy(arrays.take(facts.occurred_at, self.rows))
            first_rows = self.rows[(index := int(times.argmin())) : index + 1]
        games = [(facts.occurred_at[row], "game") for row in first_rows]
        return min([*games, *((adjustment.occurred_at, "adjustment") for adjustment in self.adjustments)], default=None)

    def _take_first_slots(self, slots: int) -> Sequence[Column]:
        """Return the columns for only the first `slots` slots."""
        if isinstance(self.columns, LazyColumns) and slots:
            return LazyColumns(lambda: [memoryview(column)[:slots] for column in self.columns])
        return [memoryview(column)[:slots] for column in self.columns if slots]

    def truncate(self, games: int, adjustments: int, player_count: int | None = None) -> Stream:
        """Return the stream of only the first `games` and `adjustments`.

        Keeps the first `player_count` players (by default, those of these games) and the players of these adjustments.
        """
        slots = self.offsets[games]
        # players are numbered by their first games; players who have only adjustments come last
        if player_count is None:
            player_count = arrays.largest(self.players[:slots]) + 1
        shortened = replace(
            self,
            names=self.names[:player_count],
            offsets=self.offsets[: games + 1],
            players=self.players[:slots],
            columns=self._take_first_slots(slots),
            version_indices=self.version_indices[:games],
            rows=self.rows[:games],
            persons=self.persons[:player_count],
            adjustments=[],
            batch=None,
            trace=None,
            gaps=None,
            calendar=self.calendar.take_first(games) if self.calendar else None,
            until=None,
        )
        if self.periods is not None:
            shortened.periods = self.periods.take_first(games)
            shortened.open_rows = arrays.concatenate("q", [self.rows[games:], self.open_rows])
            shortened.open_from = self.periods.find_first_instant(len(shortened.periods.begin), self.open_from)
        for adjustment in self.adjustments[:adjustments]:
            person = self.persons[adjustment.player]
            shortened.adjustments.append(
                adjustment._replace(player=shortened.number_player(person, self.names[adjustment.player]))
            )
        return shortened


def name_ladders_of_game(facts: Facts, row: int, ruleset: Ruleset) -> list[str]:
    """Return the ladders of a ruleset to which a game belongs by its labels, size and date, whether it counts or not.

    There are several if bands overlap.
    """
    values_by_ladder = list_values_at(facts, facts.cell_of(row), facts.occurred_at[row], ruleset)
    return ["/".join([ruleset.id, *values]) for values in values_by_ladder]


def build_streams(
    facts: Facts,
    versions: Sequence[Version],
    *,
    only: tuple[str, ...] | None = None,
    as_of: int | None = None,
    load_rows: Callable[[], Column] | None = None,
    after: tuple[int, int] | None = None,
    close_now: bool = False,
) -> dict[str, Stream]:
    """Return the streams of all ladders of a ruleset, by name.

    Args:
        only: the partition values of the only ladder to build
        as_of: the last instant of the games and adjustments to include
        load_rows: returns the rows of the games up to `as_of` in replay order, for callers that cache them
        after: a moment; only later adjustments are included
        close_now: score open rating periods as if they closed now
    """
    ruleset = versions[0].ruleset
    if only is not None and any(version.params.carry_over for version in versions):
        all_streams = build_streams(facts, versions, as_of=as_of, load_rows=load_rows, close_now=close_now)
        return {name: stream for name, stream in all_streams.items() if parse_name(name).values == only}
    select_rows = load_rows or partial(_select_rows, facts, ruleset, only, as_of)
    if ruleset.period != "game":
        # games after `as_of` are needed, too, because a tournament ends with its last game
        select_rows = partial(_select_rows, facts, ruleset, only, None)
    streams_by_values = _build_game_streams(facts, versions, only, select_rows, PeriodCutoff(as_of, close_now))
    _add_adjustments(facts, versions, streams_by_values, only, as_of, after)
    if any(version.params.carry_over for version in versions):
        previous_seasons = find_previous_seasons(streams_by_values, ruleset.partition.by.index("season"))
        for values, previous in previous_seasons.items():
            streams_by_values[values].previous = None if previous is None else streams_by_values[previous]
    for stream in streams_by_values.values():
        stream.seeds, stream.until = find_seeded_states(facts, stream.ladder, versions), as_of
    return {stream.ladder: stream for stream in streams_by_values.values()}


def build_stream(
    facts: Facts,
    versions: Sequence[Version],
    ladder: str,
    *,
    as_of: int | None = None,
    after: tuple[int, int] | None = None,
    close_now: bool = False,
) -> Stream | None:
    """Return the stream of one ladder; None if it has no games or adjustments. See `build_streams`."""
    _, *values = ladder.split("/")
    streams = build_streams(facts, versions, only=tuple(values), as_of=as_of, after=after, close_now=close_now)
    return streams.get(ladder)


def find_seeded_states(facts: Facts, ladder: str, versions: Sequence[Version]) -> dict[str, EntryState]:
    """Return, by player id, the states with which seeded players enter a ladder under each of its versions."""
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
    """Add adjustments to the streams of their ladders. `only`, `as_of` and `after` are as in `build_streams`."""
    ruleset = versions[0].ruleset
    starts = find_league_starts(facts, versions) if ruleset.freeze == "league-start" else {}
    for adjustment in sorted(facts.adjustments):
        ladder_name = parse_name(adjustment.ladder)
        is_too_late = as_of is not None and adjustment.occurred_at > as_of
        is_too_early = after is not None and adjustment[:2] < after
        if (
            ladder_name.ruleset_id == ruleset.id
            and not (is_too_late or is_too_early)
            and only in (None, ladder_name.values)
        ):
            league = dict(zip(ruleset.partition.by, ladder_name.values, strict=True)).get("league", "")
            instant = starts.get(facts.text_numbers.get(league, NONE), adjustment.occurred_at)
            if ladder_name.values not in streams_by_values:
                streams_by_values[ladder_name.values] = _create_stream(facts, adjustment.ladder, versions)
            _add_adjustment(streams_by_values[ladder_name.values], facts, adjustment, instant)


def _create_stream(facts: Facts, ladder: str, versions: Sequence[Version]) -> Stream:
    """Return the stream of a ladder without games."""
    stream = Stream(ladder, versions[0].rule, list(versions))
    if any(version.rule.state for version in versions):
        stream.calendar = read_calendar(facts, stream.rows, versions[0].ruleset)
    return stream


def find_seeds(facts: Facts, ladder: str) -> Mapping[int, Seed]:
    """Return the live seeds of a ladder by person. A seed applies even if it was recorded after the player's games."""
    return facts.seeds.get(ladder, {})


def state_columns(rule: Rule) -> tuple[State, ...]:
    """Return the state columns of a rule. A rule of contract 1 has only `points`."""
    return rule.state or (State("points", rule.scale, 6),)


def compute_seeded_state(seed: Seed, version: Version, versions: Sequence[Version]) -> StateValues:
    """Return the state, in units, with which a seeded player starts under a version of a ruleset.

    Columns that the seed does not name have their start value. The seed may give the first column the name that it has
    in any version, because the rules of versions may name their first columns differently.
    """
    columns = state_columns(version.rule)
    first_names = [columns[0].name, *(state_columns(other_version.rule)[0].name for other_version in versions)]
    texts = [next((seed.state[name] for name in first_names if name in seed.state), None)]
    texts += [seed.state.get(column.name) for column in columns[1:]]
    return tuple(
        start if text is None else _clamp_units(Decimal(text) * column.scale)
        for column, text, start in zip(columns, texts, version.start_state, strict=True)
    )


def _clamp_units(units: Decimal) -> int:
    """Convert to whole units within 64 bits. A number beyond `UNITS_MAX` stays beyond it."""
    return max(-UNITS_MAX - 1, min(int(units), UNITS_MAX + 1))


def _read_players_and_columns(
    facts: Facts, versions: Sequence[Version], ladder_games: LadderGames
) -> tuple[PlayerNumbers, Sequence[Column]]:
    """Return the players' numbers and the columns of the rules, read at the same time if that saves time."""
    games = GameSlots(ladder_games.row, ladder_games.size, ladder_games.slot)
    # for a short ladder, starting a thread takes longer than the work
    if ladder_games.compiled and len(ladder_games.slot) < PARALLEL_SLOTS_LIMIT:
        with ThreadPoolExecutor(1) as thread:
            numbering_task = thread.submit(number_players, facts, ladder_games)
            columns = read_columns_of_rules(facts, versions, games, ladder_games.version)
            return numbering_task.result(), columns
    player_numbers = number_players(facts, ladder_games)
    if ladder_games.compiled:
        facts.release_pages()
    return player_numbers, read_columns_of_rules(facts, versions, games, ladder_games.version)


# large columns are read and freed in this order to limit memory
def _build_game_streams(
    facts: Facts,
    versions: Sequence[Version],
    only: tuple[str, ...] | None,
    select_rows: Callable[[], Column],
    cutoff: PeriodCutoff,
) -> dict[tuple[str, ...], Stream]:
    """Return the streams by partition values, without adjustments. `select_rows` returns the rows of the games."""
    ruleset = versions[0].ruleset

    def is_requested(cell: Cell) -> bool:
        values = list_cell_values(facts, cell, ruleset)
        return bool(values) if only is None or ruleset.partition.is_by_time else only in values

    # a game that cannot be scored among players makes the ladders of their clubs fail, too
    failures: dict[int, Exception] = {} if facts.club_games is None else {**facts.club_games.failures}
    selected = select_games(facts, versions, select_rows, is_requested, failures)
    ladder_games = partition_games(facts, ruleset, selected, only)
    del selected
    player_numbers, columns = _read_players_and_columns(facts, versions, ladder_games)
    if ladder_games.compiled:
        facts.release_pages()
    participants_max = arrays.largest(ladder_games.size) if ladder_games.compiled else 0
    # free the participants: from here on, the players' numbers and the rules' columns are enough
    ladder_games = ladder_games._replace(slot=array("i"), size=array("i"))
    is_stateful = any(version.rule.state for version in versions)
    # rules with state take so long to score that a call for each ladder costs nothing in comparison
    is_batched = ladder_games.compiled and not is_stateful
    batch = LadderBatch(ladder_games, participants_max, player_numbers, columns, versions) if is_batched else None
    streams_by_values: dict[tuple[str, ...], Stream] = {}
    replay_problem = find_replay_problem(versions)
    for index, values in enumerate(ladder_games.ladders):
        first_game, end_game = ladder_games.ladder_from[index], ladder_games.ladder_from[index + 1]
        first_slot, end_slot = ladder_games.slot_from[index], ladder_games.slot_from[index + 1]
        first_person, end_person = player_numbers.persons_from[index], player_numbers.persons_from[index + 1]
        persons = list(player_numbers.persons[first_person:end_person])
        stream = Stream(
            ladder="/".join([ruleset.id, *values]),
            rule=versions[0].rule,
            versions=list(versions),
            names=[facts.players[person] for person in persons],
            offsets=ladder_games.offset[first_game + index : end_game + index + 1],
            players=player_numbers.number[first_slot:end_slot],
            columns=[memoryview(column)[first_slot:end_slot] for column in columns],
            version_indices=ladder_games.version[first_game:end_game],
            rows=ladder_games.row[first_game:end_game],
            persons=persons,
            batch=batch,
            index=index,
        )
        if ruleset.period != "game":
            stream = close_periods(facts, stream, cutoff)
        if is_stateful:
            stream.calendar = read_calendar(facts, stream.rows, ruleset)
        if failures:
            stream.failure = _find_first_failure(stream, failures)
        if replay_problem:
            stream.failure = RuleFailure(stream.ladder, replay_problem, next(iter(stream.rows), None))
        streams_by_values[values] = stream
    return streams_by_values


class VersionChange(NamedTuple):
    """A version that changes the states of players when it takes effect.

    instant: when the states change
    since:   when the version starts; within a rating period, the states change later, at the end of the period
    previous, version: the indices of the version in force before, and of this version
    """

    instant: int
    since: int
    previous: int
    version: int


def find_version_changes(versions: Sequence[Version]) -> list[VersionChange]:
    """Return the versions that change the states of players, in the order of their starts.

    A version changes states if its rule has `enter`, or if its state columns differ from the previous version's. The
    first version changes nothing. If leagues keep the version of their start (`freeze`), no version changes states.
    """
    ruleset = versions[0].ruleset
    if not any(version.rule.state for version in versions) or ruleset.freeze != "none":
        return []
    starts = [start for start in zip(*version_starts(versions), strict=True) if start[1] != NONE]
    return [
        VersionChange(
            find_period_end(since, ruleset.period, ruleset.time_zone), since, previous=previous, version=version
        )
        for (_, previous), (since, version) in pairwise(starts)
        if previous != version
        and (
            versions[version].rule.enter is not None
            or not have_same_state_columns(versions[previous], versions[version])
        )
    ]


def have_same_state_columns(left: Version, right: Version) -> bool:
    """Tell whether the rules of two versions have the same state columns."""
    return [column.name for column in state_columns(left.rule)] == [column.name for column in state_columns(right.rule)]


def carry_columns(columns: Sequence[Any], previous: Version, version: Version) -> list[Any]:
    """Convert states from the state columns of the previous version to those of a version.

    The first column is kept, whatever its name. Other columns are kept by name; new columns get their start value.

    Args:
        columns: the state columns of the previous version, or a single player's numbers in these columns
    """
    columns_by_name = dict(zip((column.name for column in state_columns(previous.rule)), columns, strict=False))
    new_columns = zip(state_columns(version.rule)[1:], version.start_state[1:], strict=True)
    return [columns[0], *(columns_by_name.get(column.name, start) for column, start in new_columns)]


def insert_version_entries(stream: Stream, player_count: int = 0, latest_version_start: int = MISSING) -> Stream:
    """Return the stream with the version entries that come before its last game or adjustment.

    A version entry marks that a version takes effect for a player. It is replayed like an adjustment, but never stored,
    because it follows from earlier games. `Trace.apply_versions_until` adds the later entries.

    Args:
        player_count: how many players of the stream are already on the ladder at its beginning
        latest_version_start: versions that started at this instant or earlier have already taken effect for these
            players
    """
    changes = [change for change in find_version_changes(stream.versions) if change.since > latest_version_start]
    if not changes:
        return stream
    adjustments = [adjustment for adjustment in stream.adjustments if not adjustment.is_version_entry]
    starts_by_game = _find_version_starts(stream)
    known_players = set(range(player_count))
    all_adjustments = list(adjustments)
    for change in changes:
        later_games = np.flatnonzero(starts_by_game >= change.since)
        game = int(later_games[0]) if len(later_games) else len(starts_by_game)
        if not len(later_games) and not any(adjustment.occurred_at >= change.instant for adjustment in adjustments):
            break
        joined_players = np.unique(arrays.as_numpy(stream.players)[: stream.offsets[game]]).tolist()
        adjusted_players = {
            adjustment.player
            for adjustment in adjustments
            if (adjustment.game, adjustment.occurred_at) < (game, change.instant)
        }
        all_adjustments += [
            make_version_entry(stream, player, game, change)
            for player in sorted({*known_players, *joined_players, *adjusted_players})
        ]
    return replace(
        stream, adjustments=sorted(all_adjustments, key=lambda adjustment: (adjustment.game, adjustment.moment))
    )


def _find_version_starts(stream: Stream) -> Any:
    """Return the start of each game's version; with rating periods, the start of the game's period.

    The start of the period decides, because a version that starts within a period does not score its games.
    """
    if stream.periods is not None:
        return stream.periods.begin[stream.periods.of_game]
    starts = np.array([version.effective_from or MISSING for version in stream.versions], dtype=np.int64)
    return starts[arrays.as_numpy(stream.version_indices)] if len(stream.version_indices) else starts[:0]


def make_version_entry(
    stream: Stream, player: int, game: int, change: VersionChange, units: int = 0
) -> StreamAdjustment:
    """Return the adjustment by which a version takes effect for a player just before a game."""
    position = stream.versions[change.version].position
    return StreamAdjustment(
        game=game,
        player=player,
        units=units,
        version=change.version,
        position=position,
        occurred_at=change.instant,
        is_version_entry=True,
    )


class PeriodCutoff(NamedTuple):
    """The condition for a rating period to count as closed: it ends at the instant `until` or earlier.

    Without `until`, a period is closed if it ends when the last event was recorded, or earlier. With `close_now`, the
    periods of all games played up to `until` count as closed, too.
    """

    until: int | None = None
    close_now: bool = False


def close_periods(facts: Facts, stream: Stream, cutoff: PeriodCutoff) -> Stream:
    """Return the stream with only the games of its closed periods, sorted by period."""
    ruleset, rows = stream.versions[0].ruleset, arrays.as_numpy(stream.rows)
    instants = arrays.as_numpy(facts.occurred_at)[rows]
    labels = _number_tournaments_of_games(facts, rows, ruleset)
    all_periods = divide_into_periods(instants, ruleset.period, ruleset.time_zone, labels)
    closed_count = all_periods.count_closed(facts.recorded_until if cutoff.until is None else cutoff.until)
    games, periods = all_periods.order_games(closed_count)
    open_games = np.sort(all_periods.games[all_periods.offsets[closed_count] :])
    if cutoff.close_now:
        played_games = open_games if cutoff.until is None else open_games[instants[open_games] <= cutoff.until]
        labels = None if labels is None else labels[played_games]
        open_periods = divide_into_periods(instants[played_games], ruleset.period, ruleset.time_zone, labels)
        ordered, open_periods = open_periods.order_games(len(open_periods.begin))
        games, periods = np.concatenate([games, played_games[ordered]]), periods.append(open_periods)
    offsets = arrays.as_numpy(stream.offsets)
    sizes = offsets[games + 1] - offsets[games]
    slots = arrays.as_numpy(arrays.span_indices(arrays.as_column(offsets[games]), arrays.as_column(sizes)))
    old_numbers, first_slots = np.unique(arrays.as_numpy(stream.players)[slots], return_index=True)
    joined_players = old_numbers[np.argsort(first_slots)]  # players are numbered by their first games
    new_numbers = np.zeros(max(len(stream.names), 1), dtype=np.int32)
    new_numbers[joined_players] = np.arange(len(joined_players), dtype=np.int32)
    return replace(
        stream,
        names=[stream.names[player] for player in joined_players],
        persons=[stream.persons[player] for player in joined_players],
        offsets=arrays.as_column(np.concatenate([[0], np.cumsum(sizes)])),
        players=arrays.as_column(new_numbers[arrays.as_numpy(stream.players)[slots]]),
        columns=[arrays.as_column(arrays.as_numpy(column)[slots]) for column in stream.columns],
        version_indices=arrays.as_column(_find_versions(stream, games, periods.begin, periods.of_game)),
        rows=arrays.as_column(rows[games]),
        periods=periods,
        closes_now=cutoff.close_now,
        open_rows=arrays.as_column(rows[open_games]),
        open_from=None if cutoff.close_now else all_periods.find_first_instant(closed_count),
    )


class PeriodProgress(NamedTuple):
    """The progress of scoring on a ladder with rating periods.

    until:      the last instant of the last closed period; None before the first
    open_games: the number of games played in open periods
    closes_at:  the last instant of the open period that ends first, among those with games; None without open games. A
                tournament ends with its last game
    closed_now: whether open games are scored as if their periods closed now
    """

    until: int | None
    open_games: int
    closes_at: int | None
    closed_now: bool


def find_open_period(facts: Facts, stream: Stream, row: int) -> tuple[int, int] | None:
    """Return the first and last instant of the open period of the game at `row`; None if the game's period is closed.

    A tournament lasts from its first game to its last.
    """
    open_rows, _, periods = _divide_open_games(facts, stream)
    indices = np.flatnonzero(open_rows == row)
    if not len(indices):
        return None
    period = int(periods.of_game[indices[0]])
    return int(periods.begin[period]), int(periods.end[period]) - 1


def _divide_open_games(facts: Facts, stream: Stream) -> tuple[Any, Any, Periods]:
    """Return the rows and times of the games in open periods, sorted by time, and their periods."""
    ruleset, rows = stream.versions[0].ruleset, arrays.as_numpy(stream.open_rows)
    instants = arrays.as_numpy(facts.occurred_at)[rows]
    rows, instants = (column[np.lexsort((rows, instants))] for column in (rows, instants))
    labels = _number_tournaments_of_games(facts, rows, ruleset)
    return rows, instants, divide_into_periods(instants, ruleset.period, ruleset.time_zone, labels)


def describe_periods(facts: Facts, stream: Stream, as_of: int | None) -> PeriodProgress | None:
    """Return the progress of scoring on a ladder at `as_of`; None for a ladder without rating periods."""
    if stream.periods is None:
        return None
    rows, instants, open_periods = _divide_open_games(facts, stream)
    played_count = len(rows) if as_of is None else int(np.searchsorted(instants, as_of, "right"))
    closed_count = stream.periods.count_complete(len(stream.rows) - (played_count if stream.closes_now else 0))
    closes_at = int(open_periods.end[open_periods.of_game[:played_count]].min()) - 1 if played_count else None
    return PeriodProgress(stream.periods.find_last_instant(closed_count), played_count, closes_at, stream.closes_now)


def _find_versions(stream: Stream, games: Any, starts: Any, of_game: Any) -> Any:
    """Return, by game, the index of the version that scores it.

    It is the version in force when the game's period starts, or if there is none, at the period's first game. With
    `freeze`, a league keeps the version of its start.
    """
    game_versions = arrays.as_numpy(stream.version_indices)[games]
    if stream.versions[0].ruleset.freeze != "none":
        return game_versions
    instants, indices = version_starts(stream.versions)
    versions_at_start = np.array(indices, dtype=np.int16)[np.searchsorted(np.array(instants), starts, "right") - 1]
    first_games = np.searchsorted(of_game, np.arange(len(starts)))
    return np.where(
        versions_at_start == NONE,
        game_versions[first_games] if len(game_versions) else versions_at_start,
        versions_at_start,
    ).astype(np.int16)[of_game]


def _number_tournaments_of_games(facts: Facts, rows: Any, ruleset: Ruleset) -> Any:
    """Return the number of every game's tournament; None if the rating periods of the ruleset are not tournaments."""
    label = ruleset.period_by
    if label is None:
        return None
    if label in LABELS:
        labels = np.array([getattr(cell, label) for cell in facts.cells], dtype=np.int64)
        return number_tournaments(labels[arrays.as_numpy(facts.cell)[rows]], NONE)
    return number_tournaments(read_optional_column(facts, label, arrays.as_numpy(facts.start)[rows]))


def find_replay_problem(versions: Sequence[Version]) -> str | None:
    """Return a message if no ladder of these versions can be replayed; None if ladders can be replayed."""
    ruleset = versions[0].ruleset
    state_names = {tuple(column.name for column in state_columns(version.rule)) for version in versions}
    if len(state_names) > 1 and (ruleset.freeze != "none" or ruleset.period == "event"):
        column_names = "; ".join(map(", ".join, sorted(state_names)))
        return (
            'with `freeze = "league-start"` or `period = "event"`, all versions of a ruleset need the same state '
            f"columns, but those of {ruleset.id} have different ones ({column_names}); withdraw versions until the "
            "columns are the same: ratings void --event POSITION --reason TEXT"
        )
    return None


def _find_first_failure(stream: Stream, failures: Mapping[int, Exception]) -> RuleFailure | None:
    """Return the failure of the stream's ladder at its first failed game; None if none of its games failed.

    `failures` has the error of each failed game by its row in the facts.
    """
    row = next((row for row in stream.rows if row in failures), None)
    return None if row is None else RuleFailure(stream.ladder, str(failures[row]), row)


def _select_rows(facts: Facts, ruleset: Ruleset, only: tuple[str, ...] | None, as_of: int | None) -> Column:
    """Return the rows of the games that may be on the ladders, in replay order.

    If `only` names a month or a year, return only its games.
    """
    own_period = None if only is None else find_period(ruleset, "/".join([ruleset.id, *only]))
    if own_period is None:
        return order_rows(facts, as_of)
    return order_rows(facts, own_period.end if as_of is None else min(as_of, own_period.end), own_period.start)


def _add_adjustment(stream: Stream, facts: Facts, adjustment: Adjustment, instant: int) -> None:
    """Insert an adjustment into a stream.

    A new player enters with the start value of the version in force at `instant`, or else of the oldest version.
    """
    if stream.open_from is not None and adjustment.occurred_at >= stream.open_from:
        return  # the adjustment counts when the period closes
    if stream.periods is not None:
        # an adjustment counts when its period closes; within overlapping tournaments, when the last one ends
        begun_periods = np.flatnonzero(stream.periods.begin <= adjustment.occurred_at)
        game = int(stream.periods.offsets[int(begun_periods[-1]) + 1]) if len(begun_periods) else 0
    else:
        game, _ = stream.count_before(facts, (adjustment.occurred_at, adjustment.position))
    units = int(Decimal(adjustment.points) * stream.rule.scale)
    version = in_force(stream.versions, instant) or oldest(stream.versions)
    index = next(index for index, candidate in enumerate(stream.versions) if candidate is version)
    number = stream.number_player(adjustment.player, facts.players[adjustment.player])
    stream.adjustments.append(
        StreamAdjustment(
            game, number, units, version=index, position=adjustment.position, occurred_at=adjustment.occurred_at
        )
    )
