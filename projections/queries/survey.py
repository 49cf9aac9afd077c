"""All ladders at one set of coordinates: which there are, which lists are open, and who stands where."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.zones import day_start, local_time
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.ledger.validation.published_lists import published_lists
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment, parse_as_of
from ratings_ledger.projections.queries.ladders_at import (
    LADDERS_LISTED,
    Ladders,
    Memo,
)
from ratings_ledger.projections.queries.published import PublicationRow
from ratings_ledger.projections.queries.results import HIDDEN, Answer, Failed, Result, RowSequence
from ratings_ledger.projections.queries.standings import Standings, build_standings, describe_open_period
from ratings_ledger.projections.replay.ladders import Stream, drop_duplicate_ladders, parse_name, short_name
from ratings_ledger.projections.replay.partition import is_partitioned_by_time
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.rulesets.versions import find_period, is_running


def choose_only_ladder(there: Collection[LadderRow], which: str = "", as_of: str | None = None) -> str:
    """Return the ladder that is meant where none is named. Raises `BadArgument` with the ladders if there are several.

    `which` says what is special about them, behind the word "ladders"; `as_of` up to when they were played.
    """
    there = drop_duplicate_ladders(there)
    first, *others = sorted(there, key=lambda row: -row.games) or (None,)
    if first is None and as_of is not None:
        raise BadArgument(f"no ladder has a game played up to {as_of}", "as_of")
    if first is None:
        raise BadArgument("no ladder has a game yet; results go in with: ratings import FILE", "ladder")
    if not others:
        return first.ladder
    told = "".join(
        f"\n  {short_name(row.ladder)} ({count(row.games, 'game')})" for row in [first, *others][:LADDERS_LISTED]
    )
    more = len(there) - LADDERS_LISTED
    rest = f"\n  and {more:,} more; see: ratings ladders" if more > 0 else ""
    raise BadArgument(f"name one of the {len(there):,} ladders{which}:{told}{rest}", "ladder")


@dataclass(frozen=True, slots=True)
class ManyAnswers(Answer):
    """What is said of several ladders; `asked` is `as_of` as it was asked for.

    `failed` says of each that cannot be replayed, and is left out, why; `unusable` of each ruleset that does not run
    here.
    """

    asked: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    unusable: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderRow(Result):
    """A ladder that has games or adjustments; `as_of` differs where a date ends in each ruleset's own zone.

    `months` has how many games were played in each of the months up to that of the last game, at most 24 and from its
    first one on; empty for lists of months and years.
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
    """All ladders; `has_games` tells whether there are games at all, on ladders or not."""

    at: Coordinates
    rows: tuple[LadderRow, ...]
    has_games: bool = field(default=False, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListRow(Result):
    """A list of a month or a year: whether it is `open` or `closed`, and how many players and ranks it has."""

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
    """The lists of months and years, and those that were published, of ladders as well.

    `period` is the only one that was asked for. `has_timed` tells whether any ruleset makes lists of months or years.
    """

    at: Coordinates
    rows: tuple[ListRow, ...]
    published: tuple[PublicationRow, ...]
    period: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    has_timed: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PersonRow(Result):
    """Where somebody stands on a ladder; `rank` is None for who is not qualified."""

    player: str
    ladder: str
    rank: int | None
    points: Fraction
    games: int


@dataclass(frozen=True, slots=True)
class Everybody(ManyAnswers, RowSequence[PersonRow]):
    """Where everybody stands on every ladder, by ladder and then as they are ranked there; or where some do."""

    at: Coordinates
    rows: tuple[PersonRow, ...]


T = TypeVar("T")
# how many months of activity are counted
MONTHS = 24


# what several questions about all ladders share, by its name, beside what could not be replayed for it
_SHARED: Memo[str, tuple[Any, list[str]]] = Memo()


class Survey:
    """All ladders of some facts; a date `as_of` ends in the home zone or, without one, in each ruleset's own zone."""

    def __init__(self, connection: Connection, every: Ladders, as_of: str | None, times: Times) -> None:
        self.connection = connection
        self.facts = every.facts
        self.times = times
        self.failures: list[str] = []
        self.everything = every
        self.asked = as_of

    @property
    def usable(self) -> list[str]:
        """Return the ids of the rulesets that run here."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """Return the coordinates of anything that no ruleset decides: without a home zone a date ends in UTC."""
        return self._at("UTC").coordinates

    def ladders(self, ruleset_id: str) -> Ladders:
        """Return the ladders at a ruleset's coordinates; rulesets that share the instant share them."""
        return self._at(self.facts.rulesets[ruleset_id][0].ruleset.time_zone).for_ladder(ruleset_id)

    def _at(self, time_zone: str) -> Ladders:
        instant = parse_as_of(self.asked, self.times.home or time_zone)
        return self.everything.at(instant)

    def streams(self, ruleset_ids: Iterable[str]) -> Iterator[tuple[Ladders, Stream]]:
        """Yield every ladder of some rulesets, by name."""
        for ruleset_id in ruleset_ids:
            ladders = self.ladders(ruleset_id)
            for _, stream in sorted(ladders.streams(ruleset_id).items()):
                yield ladders, stream

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Provide a ladder that cannot be replayed is noted, and the others continue."""
        try:
            yield
        except RuleFailure as failure:
            self.failures.append(describe_failure(failure, self.facts, self.connection))

    def once(self, name: str, work: Callable[[Survey], T]) -> T:
        """Return what several questions about all that was played share, worked out for the first of them; what cannot
        be replayed is noted for all.
        """
        if self.asked is not None:
            return work(self)
        answer, failures = _SHARED.get(self.everything, name, lambda: self._collect_failures(work))
        self.failures += failures
        return cast("T", answer)

    def _collect_failures(self, work: Callable[[Survey], T]) -> tuple[T, list[str]]:
        """Return an answer beside what could not be replayed for it."""
        before, self.failures = self.failures, []
        answer = work(self)
        failures, self.failures = self.failures, before
        return answer, failures

    def told(self) -> dict[str, Any]:
        """Return the members that answers about many ladders share, once all ladders were asked."""
        unusable = tuple(ruleset.reason for ruleset in self.facts.unusable.values())
        return {
            "asked": self.asked,
            "unusable": unusable,
            "failed": tuple(dict.fromkeys(self.failures)),
            "times": self.times,
        }


def every_standings(seen: Survey, ladders: Collection[str]) -> Iterator[Standings | Failed]:
    """Yield the standings of the named ladders or, without names, of all, one at a time, and what fails."""
    for problem in seen.facts.unusable.values():
        yield Failed(None, problem.reason)
    every = (name for one in seen.usable for name in sorted(seen.ladders(one).streams(one)))
    for name in dict.fromkeys(ladders) or every:
        there = seen.ladders(parse_name(name).ruleset_id)
        try:
            found = there.standings(name)
        except RuleFailure as failure:
            yield Failed(name, describe_failure(failure, seen.facts, seen.connection))
            continue
        unfinished = describe_open_period(there, name)
        yield build_standings(found, found.rows, there.coordinates, seen.times, unfinished)


def all_ladders(seen: Survey) -> AllLadders:
    """Return the ladders that have games or adjustments."""
    facts, rows, months_shown = seen.facts, list[LadderRow](), dict[int, int]()
    for ladders, stream in seen.streams(sorted(facts.rulesets)):
        with seen.noting():
            if stream.broken is not None:
                raise stream.broken
            annual = stream.ranking.sums_lists
            players = len(ladders.rank_stream(stream).rows if annual else stream.names)
            games = len(stream.row)
            ruleset = stream.versions[stream.version[games - 1]].ruleset.name if games else ""
            last_game = moment(facts.occurred_at[stream.row[games - 1]]) if games else None
            months = (
                ()
                if not games or is_partitioned_by_time(stream.versions[0].ruleset)
                else _by_month(seen, stream, months_shown)
            )
            until = ladders.coordinates.until
            running = stream.ranking.running
            rows.append(
                LadderRow(stream.ladder, ruleset, players, games, last_game, until, months=months, running=running)
            )
    return AllLadders(seen.coordinates, tuple(rows), has_games=bool(facts.start), **seen.told())


def _by_month(seen: Survey, stream: Stream, known: dict[int, int]) -> tuple[int, ...]:
    """Return how many games of a stream were played in each of its last months; `known` are the beginnings of some, by
    number.

    The games come in the order of time.
    """
    played, zone = seen.facts.occurred_at, seen.times.zone
    last = _month_of(played[stream.row[len(stream.row) - 1]], zone)
    first = max(last - MONTHS + 1, _month_of(played[stream.row[0]], zone))
    begins = []
    for month in range(first, last + 1):
        if month not in known:
            known[month] = day_start(date(month // 12, month % 12 + 1, 1), zone)
        begins.append(bisect_left(stream.row, known[month], key=played.__getitem__))
    return tuple(end - begin for begin, end in pairwise([*begins, len(stream.row)]))


def _month_of(instant: int, zone: str) -> int:
    there = local_time(instant, zone)
    return there.year * 12 + there.month - 1


def everybody(seen: Survey) -> Everybody:
    """Return where everybody stands on every ladder."""
    return Everybody(seen.coordinates, seen.once("everybody", _everybody), **seen.told())


def _everybody(seen: Survey) -> tuple[PersonRow, ...]:
    rows = list[PersonRow]()
    for ladders, stream in seen.streams(seen.usable):
        with seen.noting():
            found = ladders.rank_stream(stream)
            rows += [
                PersonRow(row.player, found.ladder, row.rank, row.value(found.scale), row.games) for row in found.rows
            ]
    return tuple(rows)


def rows_by_player(seen: Survey) -> dict[str, list[PersonRow]]:
    """Return the same by player."""
    return grouped(seen.once("everybody", _everybody), "player")


def grouped(rows: Iterable[PersonRow], name: str) -> dict[str, list[PersonRow]]:
    """Rows by their player or ladder, in their order."""
    found = defaultdict[str, list[PersonRow]](list)
    for row in rows:
        found[getattr(row, name)].append(row)
    return dict(found)


def all_lists(seen: Survey, period: str | None) -> AllLists:
    """Return the lists of months and years, of one period, YYYY or YYYY-MM, or of all; and of it the published lists.

    Raises `BadArgument`.
    """
    from ratings_ledger.projections.queries.published import publication_rows

    if period is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", period, re.ASCII):
        raise BadArgument(f"{quote(period)} is not a year like 2010 or a month like 2010-03", "period")
    rows = list[ListRow]()
    for ladders, stream in seen.streams(timed := timed_rulesets(seen)):
        ruleset = stream.versions[0].ruleset
        parts = dict(zip(ruleset.partition.by, parse_name(stream.ladder).values, strict=True))
        value, span = parts.get("month") or parts["year"], find_period(ruleset, parse_name(stream.ladder).values)
        if not value.startswith(period or ""):
            continue
        with seen.noting():
            found = ladders.rank_stream(stream)
            state = "open" if span is not None and is_running(span, clock.now(), ladders.as_of) else "closed"
            ranked = sum(row.rank is not None for row in found.rows)
            rows.append(
                ListRow(
                    found.ladder,
                    value,
                    state,
                    len(found.rows),
                    ranked,
                    found.games,
                    found.ruleset,
                    ladders.coordinates.until,
                )
            )
    every, listed = publication_rows(seen.connection, seen.facts.position), {row.list for row in rows}
    published = tuple(one for one in every if period is None or one.ladder in listed or _ends_in(seen, one, period))
    return AllLists(seen.coordinates, tuple(rows), published, period=period, has_timed=bool(timed), **seen.told())


def timed_rulesets(seen: Survey) -> list[str]:
    """Return the ids of the rulesets that make lists of months or years."""
    return [one for one in seen.usable if is_partitioned_by_time(seen.facts.rulesets[one][0].ruleset)]


def _ends_in(seen: Survey, one: PublicationRow, period: str) -> bool:
    """Tell whether a published list shows what was played up to a time in a month or year."""
    return one.as_of is not None and seen.times.minute(one.as_of).startswith(period)


def due(seen: Survey, now: int) -> list[tuple[Ladders, Stream]]:
    """Return the lists whose period is over and that were never published, by the end of their period."""
    published = {one.ladder for one in published_lists(seen.connection, seen.facts.position)}
    found = []
    for ladders, stream in seen.streams(seen.usable):
        period = find_period(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        if period is not None and stream.ladder not in published and not is_running(period, now, None):
            found.append((period.end, stream.ladder, ladders, stream))
    return [(ladders, stream) for _, _, ladders, stream in sorted(found, key=lambda one: one[:2])]
