"""Survey all ladders at one set of coordinates: the ladders, the lists of months and years, all players' standings."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from itertools import count as count_from
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.zones import day_start, local_time
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.published_lists import read_published_lists, read_scheduled_ladders
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, parse_as_of, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo
from ratings_ledger.projections.queries.published_lists import PublicationRow, Schedule, load_publication_rows
from ratings_ledger.projections.queries.results import (
    ABSENT,
    HIDDEN,
    Absent,
    Answer,
    ReplayFailure,
    Result,
    RowSequence,
)
from ratings_ledger.projections.queries.standings import Standings, build_standings, describe_open_period
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.versions import (
    Period,
    find_period,
    is_period_open,
    month_start,
    split_ladder_name,
)


def describe_no_games(unscored: Sequence[str]) -> str:
    """Return the message for a ledger whose ladders are all empty, with the command that helps.

    `unscored` has the names of the recorded games, such as chess, that no ruleset scores.

    >>> describe_no_games(["chess"])
    'no ruleset scores games of chess; to rate them: ratings rules publish --shipped elo --game chess'
    >>> describe_no_games(["chess", "go"])
    'no ruleset scores games of chess, go; to rate chess: ratings rules publish --shipped elo --game chess'
    """
    if not unscored:
        return "no ladder has a game yet; to import results: ratings import FILE"
    names, rated = ", ".join(unscored), "them" if len(unscored) == 1 else unscored[0]
    publish = f"ratings rules publish --shipped elo --game {shlex.quote(unscored[0])}"
    return f"no ruleset scores games of {names}; to rate {rated}: {publish}"


@dataclass(frozen=True, slots=True)
class MultiLadderAnswer(Answer):
    """An answer about several ladders, with the `as_of` of the query as text.

    `failed` has the reason for each ladder that is left out because it cannot be replayed. `unusable` has the reason
    for each ruleset that does not run here.
    """

    requested_as_of: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    unusable: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderRow(Result):
    """A ladder that has games or adjustments. Without a home zone, `as_of` can differ between rulesets.

    `ruleset` is the version that scored the last game, or an empty string without games, as on annual lists.
    `months` has the number of games in each of the last 24 months, up to the month of the last game; months before the
    first game are left out. It is empty for lists of months and years. `has_running_points` is False if the points are
    those of a list, which are not sums of changes.
    """

    ladder: str
    ruleset: str
    players: int
    games: int
    last_game: datetime | None
    as_of: datetime | None
    months: tuple[int, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    has_running_points: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class AllLadders(MultiLadderAnswer, RowSequence[LadderRow]):
    """All ladders that have games or adjustments. `unscored` names the recorded games that no ruleset scores."""

    at: Coordinates
    rows: tuple[LadderRow, ...]
    unscored: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListRow(Result):
    """A list of a month or a year, its state (`open` or `closed`), and how many of its players have a rank."""

    list: str
    period: str
    state: str
    players: int
    ranked: int
    games: int
    ruleset: str
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class AllLists(MultiLadderAnswer, RowSequence[ListRow]):
    """The lists of months and years, and all published lists, including those of ladders with running points.

    `period` is the requested period, None for all. `has_list_rulesets` says whether any ruleset makes lists of months
    or years. `schedules` has the ladders that are published every month, with the months that are due now. It is absent
    without such ladders, for a single period, and at coordinates other than the present.
    """

    at: Coordinates
    rows: tuple[ListRow, ...]
    published: tuple[PublicationRow, ...]
    period: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    has_list_rulesets: bool = field(default=True, metadata=HIDDEN, kw_only=True)
    schedules: tuple[Schedule, ...] | Absent = field(default=ABSENT, kw_only=True)


@dataclass(frozen=True, slots=True)
class PersonRow(Result):
    """A player's standing on one ladder; `rank` is None for a player who is not qualified."""

    player: str
    ladder: str
    rank: int | None
    points: Fraction
    games: int


@dataclass(frozen=True, slots=True)
class Everybody(MultiLadderAnswer, RowSequence[PersonRow]):
    """The standings of all players on every ladder, by ladder and then by rank."""

    at: Coordinates
    rows: tuple[PersonRow, ...]


T = TypeVar("T")
# the maximum number of months in `LadderRow.months`
MONTHS_MAX = 24


# results that several queries about all ladders share, by name, with the messages of the failures
_SHARED: Memo[str, tuple[Any, list[str]]] = Memo()


class Survey:
    """All ladders at an `as_of`. A date ends in the home zone or, without one, in each ruleset's own zone.

    `undated` holds the same ladders without `as_of`. `failures` collects a message for each failed replay.
    """

    def __init__(self, connection: Connection, undated: Ladders, as_of: str | None, times: TimeFormat) -> None:
        self.connection = connection
        self.facts = undated.facts
        self.times = times
        self.failures: list[str] = []
        self.undated = undated
        self.requested_as_of = as_of

    @property
    def usable_ids(self) -> list[str]:
        """Return the ids of the usable rulesets."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """Return the coordinates of answers that belong to no ruleset. Without a home zone, a date ends in UTC."""
        return self._at("UTC").coordinates

    def ladders(self, ladder: str) -> Ladders:
        """Return the ladders at the coordinates of a ruleset, given by its id or the name of a ladder.

        Rulesets with the same instant share them.
        """
        return self._at(self.facts.versions_of(ladder)[0].ruleset.time_zone).for_ladder(ladder)

    def _at(self, time_zone: str) -> Ladders:
        """Return the ladders at `as_of`, whose date ends in the home zone or, without one, in `time_zone`."""
        return self.undated.at(parse_as_of(self.requested_as_of, self.times.home or time_zone))

    def streams(self, ruleset_ids: Iterable[str]) -> Iterator[tuple[Ladders, Stream]]:
        """Yield the stream of every ladder of these rulesets, with the ladders at the ruleset's coordinates.

        The rulesets are in the given order, and the ladders of each by name.
        """
        for ruleset_id in ruleset_ids:
            ladders = self.ladders(ruleset_id)
            for _, stream in sorted(ladders.streams(ruleset_id).items()):
                yield ladders, stream

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why rulesets do not run here, and why the ladders that were read so far cannot be replayed."""
        return (*(ruleset.reason for ruleset in self.facts.unusable.values()), *dict.fromkeys(self.failures))

    @contextmanager
    def collect_failure(self) -> Iterator[None]:
        """Record a failed replay in `failures` and continue after the `with` block."""
        try:
            yield
        except RuleFailure as failure:
            self.failures.append(describe_failure(failure, self.facts, self.connection))

    def is_open(self, period: Period | None, as_of: int | None) -> bool:
        """Tell whether the period of a list at `as_of` is still open; False for a list without a period."""
        return period is not None and is_period_open(period, clock.now(), as_of)

    def share(self, name: str, compute: Callable[[Survey], T]) -> T:
        """Return a result; without `as_of`, compute it once for several queries, each of which gets its failures."""
        if self.requested_as_of is not None:
            return compute(self)
        answer, failures = _SHARED.get(self.undated, name, lambda: self._collect_failures(compute))
        self.failures += failures
        return cast("T", answer)

    def _collect_failures(self, compute: Callable[[Survey], T]) -> tuple[T, list[str]]:
        """Return a result together with the failures that occurred while it was computed."""
        earlier_failures, self.failures = self.failures, []
        answer = compute(self)
        failures, self.failures = self.failures, earlier_failures
        return answer, failures

    def shared_members(self) -> dict[str, Any]:
        """Return the common members of answers about many ladders. Call this after reading all ladders."""
        unusable = tuple(ruleset.reason for ruleset in self.facts.unusable.values())
        return {
            "requested_as_of": self.requested_as_of,
            "unusable": unusable,
            "failed": tuple(dict.fromkeys(self.failures)),
            "times": self.times,
        }


def load_standings_by_ladder(survey: Survey, ladders: Collection[str]) -> Iterator[Standings | ReplayFailure]:
    """Yield a failure for each unusable ruleset, and then the standings, or a failure, for each of the ladders.

    Without `ladders`, all ladders follow.
    """
    for problem in survey.facts.unusable.values():
        yield ReplayFailure(None, problem.reason)
    all_names = (
        name for ruleset_id in survey.usable_ids for name in sorted(survey.ladders(ruleset_id).streams(ruleset_id))
    )
    for name in dict.fromkeys(ladders) or all_names:
        own_ladders = survey.ladders(name)
        try:
            ranking = own_ladders.standings(name)
        except RuleFailure as failure:
            yield ReplayFailure(name, describe_failure(failure, survey.facts, survey.connection))
            continue
        remark = describe_open_period(own_ladders, name)
        yield build_standings(ranking, ranking.rows, own_ladders.coordinates, survey.times, remark)


def load_all_ladders(survey: Survey) -> AllLadders:
    """Return the ladders that have games or adjustments."""
    facts, rows, month_starts = survey.facts, list[LadderRow](), dict[int, int]()
    for ladders, stream in survey.streams(sorted(facts.rulesets)):
        with survey.collect_failure():
            if stream.failure is not None:
                raise stream.failure
            players = len(ladders.rank_stream(stream).rows if stream.ranking.sums_lists else stream.names)
            games = len(stream.rows)
            ruleset = stream.versions[stream.version_indices[games - 1]].ruleset.name if games else ""
            last_game = to_datetime(facts.occurred_at[stream.rows[games - 1]]) if games else None
            month_counts = (
                ()
                if not games or stream.versions[0].ruleset.partition.is_by_time
                else _count_by_month(survey, stream, month_starts)
            )
            rows.append(
                LadderRow(
                    ladder=stream.ladder,
                    ruleset=ruleset,
                    players=players,
                    games=games,
                    last_game=last_game,
                    as_of=ladders.coordinates.as_of_datetime,
                    months=month_counts,
                    has_running_points=stream.ranking.running,
                )
            )
    scored_games = {
        game for versions in facts.rulesets.values() for version in versions for game in version.ruleset.scope.game
    }
    unscored = tuple(sorted({facts.texts[cell.game] for cell in facts.cells} - scored_games))
    return AllLadders(survey.coordinates, tuple(rows), unscored=unscored, **survey.shared_members())


def _count_by_month(survey: Survey, stream: Stream, month_starts: dict[int, int]) -> tuple[int, ...]:
    """Return the number of a stream's games in each of its last months.

    `month_starts` caches the instant at which each month starts, by the number of the month.
    """
    occurred_at, zone, rows = survey.facts.occurred_at, survey.times.zone, stream.rows
    if stream.versions[0].ruleset.period == "event":  # the games of events that overlap are not in the order of time
        rows = sorted(rows, key=occurred_at.__getitem__)
    last = _number_month(occurred_at[rows[len(rows) - 1]], zone)
    first = max(last - MONTHS_MAX + 1, _number_month(occurred_at[rows[0]], zone))
    bounds = []
    for month in range(first, last + 1):
        if month not in month_starts:
            month_starts[month] = day_start(date(month // 12, month % 12 + 1, 1), zone)
        bounds.append(bisect_left(rows, month_starts[month], key=occurred_at.__getitem__))
    return tuple(end - begin for begin, end in pairwise([*bounds, len(rows)]))


def _number_month(instant: int, zone: str) -> int:
    """Return the number of the month of an instant, counted from the year 0."""
    local = local_time(instant, zone)
    return local.year * 12 + local.month - 1


def load_everybody(survey: Survey) -> Everybody:
    """Return the standings of all players on every ladder."""
    return Everybody(survey.coordinates, survey.share("everybody", _load_person_rows), **survey.shared_members())


def _load_person_rows(survey: Survey) -> tuple[PersonRow, ...]:
    """Return the rows of all standings, by ladder and then by rank."""
    rows = list[PersonRow]()
    for ladders, stream in survey.streams(survey.usable_ids):
        with survey.collect_failure():
            ranking = ladders.rank_stream(stream)
            rows += [
                PersonRow(
                    player=row.player,
                    ladder=ranking.ladder,
                    rank=row.rank,
                    points=row.exact_points(ranking.scale),
                    games=row.games,
                )
                for row in ranking.rows
            ]
    return tuple(rows)


def group_rows_by_player(survey: Survey) -> dict[str, list[PersonRow]]:
    """Return the standings of all players on every ladder, by player."""
    return group_rows(survey.share("everybody", _load_person_rows), "player")


def group_rows(rows: Iterable[PersonRow], member: str) -> dict[str, list[PersonRow]]:
    """Group rows by the member `player` or `ladder`, preserving their order."""
    groups = defaultdict[str, list[PersonRow]](list)
    for row in rows:
        groups[getattr(row, member)].append(row)
    return dict(groups)


def load_all_lists(survey: Survey, period: str | None) -> AllLists:
    """Return the lists of months and years, and the published lists, of one period (YYYY or YYYY-MM) or of all.

    Raises `BadArgument`.
    """
    if period is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", period, re.ASCII):
        raise BadArgument(f"{quote(period)} is not a year like 2010 or a month like 2010-03", "period")
    rows = list[ListRow]()
    for ladders, stream in survey.streams(ruleset_ids := find_list_rulesets(survey)):
        ruleset = stream.versions[0].ruleset
        parts = split_ladder_name(stream.ladder, ruleset)
        month_or_year = parts.get("month") or parts["year"]
        list_period = find_period(ruleset, stream.ladder)
        if not month_or_year.startswith(period or ""):
            continue
        with survey.collect_failure():
            ranking = ladders.rank_stream(stream)
            ranked = sum(row.rank is not None for row in ranking.rows)
            rows.append(
                ListRow(
                    list=ranking.ladder,
                    period=month_or_year,
                    state="open" if survey.is_open(list_period, ladders.as_of) else "closed",
                    players=len(ranking.rows),
                    ranked=ranked,
                    games=ranking.games,
                    ruleset=ranking.ruleset,
                    as_of=ladders.coordinates.as_of_datetime,
                )
            )
    list_names = {row.list for row in rows}
    published = tuple(
        row
        for row in load_publication_rows(survey.connection, survey.facts.position)
        if period is None or row.ladder in list_names or _is_published_for(survey, row, period)
    )
    return AllLists(
        survey.coordinates,
        tuple(rows),
        published,
        period=period,
        has_list_rulesets=bool(ruleset_ids),
        schedules=(find_schedules(survey, clock.now()) if period is None and _is_present(survey) else ()) or ABSENT,
        **survey.shared_members(),
    )


def _is_present(survey: Survey) -> bool:
    """Tell whether the survey shows the present; otherwise no schedule can be due."""
    coordinates = survey.coordinates
    is_at_head = coordinates.known_at == head(survey.connection).position
    return coordinates.as_of is None and coordinates.rules is None and is_at_head


def find_list_rulesets(survey: Survey) -> list[str]:
    """Return the ids of the rulesets that make lists of months or years."""
    return [
        ruleset_id
        for ruleset_id in survey.usable_ids
        if survey.facts.rulesets[ruleset_id][0].ruleset.partition.is_by_time
    ]


def _is_published_for(survey: Survey, publication: PublicationRow, period: str) -> bool:
    """Tell whether the `as_of` of a published list lies in a month or year."""
    return publication.as_of is not None and survey.times.format_minute(publication.as_of).startswith(period)


def list_due_streams(survey: Survey, now: int) -> list[tuple[Ladders, Stream]]:
    """Return the streams of the lists that are due, each with its ladders, sorted by the end of the period."""
    published = {entry.ladder for entry in read_published_lists(survey.connection, survey.facts.position)}
    due = []
    for ladders, stream in survey.streams(survey.usable_ids):
        period = find_period(stream.versions[0].ruleset, stream.ladder)
        if period is not None and stream.ladder not in published and not is_period_open(period, now, None):
            due.append((period.end, stream.ladder, ladders, stream))
    return [(ladders, stream) for _, _, ladders, stream in sorted(due, key=lambda entry: entry[:2])]


class MissedMonth(NamedTuple):
    """A month that is over and for which a scheduled ladder was not published, with all ladders at its end."""

    end: int
    ladder: str
    ladders: Ladders


def find_missed_months(survey: Survey, scheduled: Iterable[str], now: int) -> list[MissedMonth]:
    """Return the months for which scheduled ladders were not published, oldest first.

    A ladder is due from the month of its first game on.
    """
    published = {entry.key for entry in read_published_lists(survey.connection, survey.facts.position)}
    missed_months = []
    for ladder in scheduled:
        ruleset_id = parse_name(ladder).ruleset_id
        if ruleset_id not in survey.usable_ids:
            continue
        ladders = survey.ladders(ruleset_id)
        for end in _find_month_ends(ladders, ladder, survey.times, now):
            if (ladder, end) not in published:
                missed_months.append(MissedMonth(end, ladder, ladders.at(end)))
    return sorted(missed_months, key=lambda month: (month.end, month.ladder))


def _find_month_ends(ladders: Ladders, ladder: str, times: TimeFormat, now: int) -> Iterator[int]:
    """Yield the end of each month that is over, from the month of a ladder's first game on."""
    zone = _find_zone(ladders, ladder, times)
    games = ladders.stream(ladder).rows[:1]
    if not len(games):
        return
    first = local_time(ladders.facts.occurred_at[games[0]], zone)
    for month in count_from(first.year * 12 + first.month):
        end = month_start(month // 12, month % 12 + 1, zone) - 1
        if end >= now:
            return
        yield end


def _find_zone(ladders: Ladders, ladder: str, times: TimeFormat) -> str:
    """Return the home zone or, without one, the zone of the ladder's ruleset."""
    return times.home or ladders.versions(ladder)[0].ruleset.time_zone


def find_schedules(survey: Survey, now: int) -> tuple[Schedule, ...]:
    """Return the scheduled ladders, each with the months that are due, oldest first."""
    scheduled = read_scheduled_ladders(survey.connection, survey.facts.position)
    due: dict[str, list[str]] = {ladder: [] for ladder in scheduled}
    for month in find_missed_months(survey, scheduled, now):
        zone = _find_zone(month.ladders, month.ladder, survey.times)
        due[month.ladder].append(local_time(month.end, zone).strftime("%Y-%m"))
    return tuple(Schedule(ladder, every, tuple(due[ladder])) for ladder, every in sorted(scheduled.items()))
