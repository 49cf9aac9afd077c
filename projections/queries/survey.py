"""Survey all ladders at one set of coordinates: the ladders, the lists of months and years, all players' standings."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from itertools import count as count_from
from itertools import pairwise
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.zones import day_start, local_time
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.published_lists import read_published_lists, read_scheduled_ladders
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment, parse_as_of
from ratings_ledger.projections.queries.ladders_at import (
    LADDERS_LISTED,
    Ladders,
    Memo,
)
from ratings_ledger.projections.queries.published_lists import PublicationRow, Schedule
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
from ratings_ledger.projections.replay.ladders import Stream, parse_name, short_name
from ratings_ledger.projections.replay.partition import is_partitioned_by_time
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.rulesets.versions import find_period, is_running, month_start


def describe_no_games(unscored: Sequence[str]) -> str:
    """Return a message that no ladder has a game, with the command that helps; no ruleset scores `unscored` games.

    >>> describe_no_games(["chess"])
    'no ruleset scores games of chess; to rate them: ratings rules publish --shipped elo --game chess'
    """
    if not unscored:
        return "no ladder has a game yet; results go in with: ratings import FILE"
    publish = f"ratings rules publish --shipped elo --game {unscored[0]}"
    return f"no ruleset scores games of {', '.join(unscored)}; to rate them: {publish}"


def choose_only_ladder(
    rows: Sequence[LadderRow],
    qualifier: str = "",
    as_of: str | None = None,
    unscored: Sequence[str] = (),
    limit: int = LADDERS_LISTED,
) -> str:
    """Return the only ladder, for a query without a ladder. Raises `BadArgument` if there are several, or none.

    All arguments besides `rows` are for messages.

    Args:
        rows: the candidates.
        qualifier: a relative clause for the word "ladders", such as " that anna is on".
        as_of: the `as_of` of the query.
        unscored: the recorded games that no ruleset scores.
        limit: the number of ladders that the message lists.
    """
    if not rows and as_of is not None:
        raise BadArgument(f"no ladder has a game played up to {as_of}", "as_of")
    if not rows:
        raise BadArgument(describe_no_games(unscored), "ladder")
    if len(rows) == 1:
        return rows[0].ladder
    names = "".join(f"\n  {short_name(row.ladder)} ({count(row.games, 'game')})" for row in rows[:limit])
    unlisted = len(rows) - limit
    more = f"\n  and {unlisted:,} more; see: ratings ladders" if unlisted > 0 else ""
    raise BadArgument(f"name one of the {len(rows):,} ladders{qualifier}:{names}{more}", "ladder")


@dataclass(frozen=True, slots=True)
class ManyAnswers(Answer):
    """An answer about several ladders, with the `as_of` as it was requested.

    `failed` has the reason for each ladder that cannot be replayed and is left out, and `unusable` the reason for each
    ruleset that does not run here.
    """

    requested_as_of: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    unusable: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderRow(Result):
    """A ladder that has games or adjustments. The `as_of` of ladders differ if a date ends in each ruleset's own zone.

    `months` has the numbers of games in the last months (at most 24), from the month of the first game to that of the
    last; it is empty for lists of months and years.
    """

    ladder: str
    ruleset: str
    players: int
    games: int
    last_game: datetime | None
    as_of: datetime | None
    months: tuple[int, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class AllLadders(ManyAnswers, RowSequence[LadderRow]):
    """All ladders that have games or adjustments, and `unscored`: the recorded games that no ruleset scores."""

    at: Coordinates
    rows: tuple[LadderRow, ...]
    unscored: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListRow(Result):
    """A list of a month or a year: its state (`open` or `closed`), and its numbers of players and of ranked players."""

    list: str
    period: str
    state: str
    players: int
    ranked: int
    games: int
    ruleset: str
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class AllLists(ManyAnswers, RowSequence[ListRow]):
    """The lists of months and years, and all published lists, including those of ladders.

    `period` is the requested period, None for all. `has_timed` says whether any ruleset makes lists of months or years.
    `schedules` has the ladders that are published every month, with the months that are due now; it is absent for a
    past time and for one period.
    """

    at: Coordinates
    rows: tuple[ListRow, ...]
    published: tuple[PublicationRow, ...]
    period: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    has_timed: bool = field(default=True, metadata=HIDDEN, kw_only=True)
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
class Everybody(ManyAnswers, RowSequence[PersonRow]):
    """The standings of all players on every ladder, by ladder and then by rank."""

    at: Coordinates
    rows: tuple[PersonRow, ...]


T = TypeVar("T")
# the maximum number of months in `LadderRow.months`
MONTHS_MAX = 24


# shared results of queries about all ladders, by name, with the failures that occurred
_SHARED: Memo[str, tuple[Any, list[str]]] = Memo()


class Survey:
    """All ladders at an `as_of`. A date ends in the home zone or, without one, in each ruleset's own zone.

    `undated` are the same ladders without `as_of`. `failures` collects a message for each ladder that fails.
    """

    def __init__(self, connection: Connection, undated: Ladders, as_of: str | None, times: Times) -> None:
        self.connection = connection
        self.facts = undated.facts
        self.times = times
        self.failures: list[str] = []
        self.undated = undated
        self.requested_as_of = as_of

    @property
    def usable(self) -> list[str]:
        """Return the ids of the usable rulesets."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """Return the coordinates of answers that belong to no ruleset. Without a home zone, a date ends in UTC."""
        return self._at("UTC").coordinates

    def ladders(self, ruleset_id: str) -> Ladders:
        """Return the ladders at a ruleset's coordinates; rulesets with the same instant share them."""
        return self._at(self.facts.rulesets[ruleset_id][0].ruleset.time_zone).for_ladder(ruleset_id)

    def _at(self, time_zone: str) -> Ladders:
        """Return the ladders at `as_of`, whose date ends in the home zone or, without one, in `time_zone`."""
        return self.undated.at(parse_as_of(self.requested_as_of, self.times.home or time_zone))

    def streams(self, ruleset_ids: Iterable[str]) -> Iterator[tuple[Ladders, Stream]]:
        """Yield the stream of every ladder of some rulesets, sorted by name, with the ladders it belongs to."""
        for ruleset_id in ruleset_ids:
            ladders = self.ladders(ruleset_id)
            for _, stream in sorted(ladders.streams(ruleset_id).items()):
                yield ladders, stream

    @contextmanager
    def collect_failure(self) -> Iterator[None]:
        """Record a failed replay in `failures`, and continue after this context."""
        try:
            yield
        except RuleFailure as failure:
            self.failures.append(describe_failure(failure, self.facts, self.connection))

    def share(self, name: str, compute: Callable[[Survey], T]) -> T:
        """Return a result that several queries share: it is computed once, and its failures are reported to each."""
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


def load_every_standings(survey: Survey, ladders: Collection[str]) -> Iterator[Standings | ReplayFailure]:
    """Yield the standings of the named ladders, or of all, one by one, or a failure in their place."""
    for problem in survey.facts.unusable.values():
        yield ReplayFailure(None, problem.reason)
    all_names = (
        name for ruleset_id in survey.usable for name in sorted(survey.ladders(ruleset_id).streams(ruleset_id))
    )
    for name in dict.fromkeys(ladders) or all_names:
        own_ladders = survey.ladders(parse_name(name).ruleset_id)
        try:
            ranking = own_ladders.standings(name)
        except RuleFailure as failure:
            yield ReplayFailure(name, describe_failure(failure, survey.facts, survey.connection))
            continue
        unfinished = describe_open_period(own_ladders, name)
        yield build_standings(ranking, ranking.rows, own_ladders.coordinates, survey.times, unfinished)


def load_all_ladders(survey: Survey) -> AllLadders:
    """Return the ladders that have games or adjustments."""
    facts, rows, month_starts = survey.facts, list[LadderRow](), dict[int, int]()
    for ladders, stream in survey.streams(sorted(facts.rulesets)):
        with survey.collect_failure():
            if stream.failure is not None:
                raise stream.failure
            annual = stream.ranking.sums_lists
            players = len(ladders.rank_stream(stream).rows if annual else stream.names)
            games = len(stream.row)
            ruleset = stream.versions[stream.version[games - 1]].ruleset.name if games else ""
            last_game = moment(facts.occurred_at[stream.row[games - 1]]) if games else None
            month_counts = (
                ()
                if not games or is_partitioned_by_time(stream.versions[0].ruleset)
                else _count_by_month(survey, stream, month_starts)
            )
            until = ladders.coordinates.until
            running = stream.ranking.running
            rows.append(
                LadderRow(
                    ladder=stream.ladder,
                    ruleset=ruleset,
                    players=players,
                    games=games,
                    last_game=last_game,
                    as_of=until,
                    months=month_counts,
                    running=running,
                )
            )
    scored = {
        game for versions in facts.rulesets.values() for version in versions for game in version.ruleset.scope.game
    }
    unscored = tuple(sorted({facts.texts[cell.game] for cell in facts.cells} - scored))
    return AllLadders(survey.coordinates, tuple(rows), unscored=unscored, **survey.shared_members())


def _count_by_month(survey: Survey, stream: Stream, month_starts: dict[int, int]) -> tuple[int, ...]:
    """Return the number of a stream's games in each of its last months. The games must be in the order of time.

    `month_starts` caches the instants at which months start, by the number of the month.
    """
    occurred_at, zone = survey.facts.occurred_at, survey.times.zone
    last = _number_month(occurred_at[stream.row[len(stream.row) - 1]], zone)
    first = max(last - MONTHS_MAX + 1, _number_month(occurred_at[stream.row[0]], zone))
    first_games = []
    for month in range(first, last + 1):
        if month not in month_starts:
            month_starts[month] = day_start(date(month // 12, month % 12 + 1, 1), zone)
        first_games.append(bisect_left(stream.row, month_starts[month], key=occurred_at.__getitem__))
    return tuple(end - begin for begin, end in pairwise([*first_games, len(stream.row)]))


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
    for ladders, stream in survey.streams(survey.usable):
        with survey.collect_failure():
            ranking = ladders.rank_stream(stream)
            rows += [
                PersonRow(
                    player=row.player,
                    ladder=ranking.ladder,
                    rank=row.rank,
                    points=row.value(ranking.scale),
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
    from ratings_ledger.projections.queries.published_lists import load_publication_rows

    if period is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", period, re.ASCII):
        raise BadArgument(f"{quote(period)} is not a year like 2010 or a month like 2010-03", "period")
    rows = list[ListRow]()
    for ladders, stream in survey.streams(timed_ids := list_timed_rulesets(survey)):
        ruleset = stream.versions[0].ruleset
        parts = dict(zip(ruleset.partition.by, parse_name(stream.ladder).values, strict=True))
        value, span = parts.get("month") or parts["year"], find_period(ruleset, parse_name(stream.ladder).values)
        if not value.startswith(period or ""):
            continue
        with survey.collect_failure():
            ranking = ladders.rank_stream(stream)
            state = "open" if span is not None and is_running(span, clock.now(), ladders.as_of) else "closed"
            ranked = sum(row.rank is not None for row in ranking.rows)
            rows.append(
                ListRow(
                    list=ranking.ladder,
                    period=value,
                    state=state,
                    players=len(ranking.rows),
                    ranked=ranked,
                    games=ranking.games,
                    ruleset=ranking.ruleset,
                    as_of=ladders.coordinates.until,
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
        has_timed=bool(timed_ids),
        schedules=(find_schedules(survey, clock.now()) if period is None and _is_present(survey) else ()) or ABSENT,
        **survey.shared_members(),
    )


def _is_present(survey: Survey) -> bool:
    """Tell whether the survey is of the present; only then schedules can be due."""
    at = survey.coordinates
    return at.as_of is None and at.rules is None and at.known_at == head(survey.connection).position


def list_timed_rulesets(survey: Survey) -> list[str]:
    """Return the ids of the rulesets that make lists of months or years."""
    return [
        ruleset_id
        for ruleset_id in survey.usable
        if is_partitioned_by_time(survey.facts.rulesets[ruleset_id][0].ruleset)
    ]


def _is_published_for(survey: Survey, publication: PublicationRow, period: str) -> bool:
    """Tell whether the `as_of` of a published list lies in a month or year."""
    return publication.as_of is not None and survey.times.format_minute(publication.as_of).startswith(period)


def list_due_streams(survey: Survey, now: int) -> list[tuple[Ladders, Stream]]:
    """Return the unpublished lists whose period is over, sorted by the end of the period."""
    published = {entry.ladder for entry in read_published_lists(survey.connection, survey.facts.position)}
    due = []
    for ladders, stream in survey.streams(survey.usable):
        period = find_period(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        if period is not None and stream.ladder not in published and not is_running(period, now, None):
            due.append((period.end, stream.ladder, ladders, stream))
    return [(ladders, stream) for _, _, ladders, stream in sorted(due, key=lambda entry: entry[:2])]


def find_missed_months(survey: Survey, scheduled: Iterable[str], now: int) -> list[tuple[int, Ladders, str]]:
    """Return the months for which scheduled ladders were never published, from the month of their first game on.

    Each entry is (end of the month, the ladders up to it, name of the ladder), oldest first.
    """
    published = {entry.key for entry in read_published_lists(survey.connection, survey.facts.position)}
    missed_months = []
    for ladder in scheduled:
        ruleset_id = parse_name(ladder).ruleset_id
        if ruleset_id not in survey.usable:
            continue
        ladders = survey.ladders(ruleset_id)
        for end in _find_month_ends(ladders, ladder, survey.times, now):
            if (ladder, end) not in published:
                missed_months.append((end, ladders.at(end), ladder))
    return sorted(missed_months, key=lambda entry: (entry[0], entry[2]))


def _find_month_ends(ladders: Ladders, ladder: str, times: Times, now: int) -> Iterator[int]:
    """Yield the ends of the months that are over, from the month of a ladder's first game on, in the ladder's zone."""
    zone = _find_zone(ladders, ladder, times)
    games = ladders.stream(ladder).row[:1]
    if not len(games):
        return
    first = local_time(ladders.facts.occurred_at[games[0]], zone)
    for month in count_from(first.year * 12 + first.month):
        end = month_start(month // 12, month % 12 + 1, zone) - 1
        if end >= now:
            return
        yield end


def _find_zone(ladders: Ladders, ladder: str, times: Times) -> str:
    """Return the home zone or, without one, the zone of the ladder's ruleset."""
    return times.home or ladders.versions(ladder)[0].ruleset.time_zone


def find_schedules(survey: Survey, now: int) -> tuple[Schedule, ...]:
    """Return the scheduled ladders, each with the months that are due, oldest first."""
    scheduled = read_scheduled_ladders(survey.connection, survey.facts.position)
    due: dict[str, list[str]] = {ladder: [] for ladder in scheduled}
    for end, ladders, ladder in find_missed_months(survey, scheduled, now):
        due[ladder].append(local_time(end, _find_zone(ladders, ladder, survey.times)).strftime("%Y-%m"))
    return tuple(Schedule(ladder, every, tuple(due[ladder])) for ladder, every in sorted(scheduled.items()))
