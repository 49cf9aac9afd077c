"""Standings, trial balances, and the overview of a ladder, which shows beside each row what has moved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, overload

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import INSTANT_MIN
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment
from ratings_ledger.projections.queries.ladders_at import (
    Ladders,
    Ranking,
)
from ratings_ledger.projections.queries.published import Publication
from ratings_ledger.projections.queries.results import (
    ABSENT,
    DIGEST,
    HIDDEN,
    LAST_POINTS,
    Absent,
    LadderAnswer,
    Result,
    RowSequence,
)
from ratings_ledger.projections.queries.shown_states import StatesSeen, mark_rating
from ratings_ledger.projections.replay.ladders import ClosedPeriods, parse_name
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import is_running, month_start, period_of


@dataclass(frozen=True, slots=True)
class Standing(Result):
    """A row: the rank (None: not qualified), the exact points, and how many games count. Lists that pay gold have
    `gold`, annual lists the `places` that they add up. Rules that keep several numbers about a player have them in
    `state`, as decimals for people, and in `state_exact`, aged to the day of the standings; `provisional` says whether
    the rule finds them not reliable yet.
    """

    rank: int | None
    player: str
    points: Fraction
    games: int
    qualified: bool
    gold: int | Absent = ABSENT
    places: tuple[int, ...] | Absent = ABSENT
    state: dict[str, str] | Absent = ABSENT
    state_exact: dict[str, str] | Absent = ABSENT
    provisional: bool | Absent = ABSENT

    @property
    def rating(self) -> str | None:
        """Return the rating as people write it: with its deviation, and a question mark while it is not reliable; None
        under a rule that keeps the points alone.

        >>> Standing(1, "anna", Fraction(1638), 9, True, state={"rating": "1638", "deviation": "110"},
        ...     state_exact={}, provisional=True).rating
        '1638 ± 110?'
        """
        if self.state is ABSENT:
            return None
        rating = next(iter(self.state.values()), "")
        return mark_rating(rating, self.state, is_provisional=self.provisional is True)


@dataclass(frozen=True, slots=True)
class PeriodState(Result):
    """Up to when the rating periods of a ladder are closed, None before the first; how many games have been played in
    open ones; and whether these are scored as if they closed now. `closes_at` is when the first open one with a game
    ends, or the event's last game was.
    """

    closed_to: datetime | None
    open_games: int
    closed_now: bool
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Standings(LadderAnswer, RowSequence[Standing]):
    """Who stands where on a ladder, of which `ranking` has all rows, however many are asked for. `open` is True while
    the period of a list runs, of which `remark` tells; `period` says how far games are scored by rating periods.
    """

    ranking: Ranking = field(metadata=DIGEST, repr=False, hash=False)
    open: bool | Absent
    published: Publication | Absent
    rows: tuple[Standing, ...]
    period: PeriodState | Absent = ABSENT
    remark: str | None = field(default=None, metadata=HIDDEN, kw_only=True)

    @property
    def digest(self) -> str:
        """Return the hash of the ruleset and all rows."""
        return self.ranking.digest


@dataclass(frozen=True, slots=True)
class Account(Result):
    """What an account of a ladder holds, in points; below 0 where points came from."""

    account: str
    amount: Fraction


@dataclass(frozen=True, slots=True)
class Balance(LadderAnswer):
    """The trial balance of a ladder: its accounts, and their `sum`, which is 0 unless something is wrong; `period` says
    how far games are scored by rating periods.
    """

    players: int
    accounts: tuple[Account, ...]
    sum: Fraction
    period: PeriodState | Absent = ABSENT


def standings_answer(
    found: Ranking,
    rows: Iterable[RankedRow],
    at: Coordinates,
    times: Times,
    remark: str | None = None,
    published: Publication | Absent = ABSENT,
) -> Standings:
    """Standings with some of their rows, or all. The remark says that their period runs, or who published them."""
    still_open = True if remark and published is ABSENT else ABSENT
    shown_rows = tuple(standing_row(row, found.scale, found.shown) for row in rows)
    return Standings(
        found.ladder,
        found.ruleset,
        at,
        found.games,
        found,
        still_open,
        published,
        shown_rows,
        period_state(found.closed),
        remark=remark,
        times=times,
    )


def period_state(closed: ClosedPeriods | None) -> PeriodState | Absent:
    """Return how far games are scored by rating periods; `ABSENT` where every game is scored by itself."""
    if closed is None:
        return ABSENT
    until, closes_at = (None if instant is None else moment(instant) for instant in (closed.until, closed.closes_at))
    return PeriodState(until, closed.open_games, closed.closed_now, closes_at=closes_at)


def rows_shown(rows: Sequence[RankedRow], players: Collection[str], limit: int | None) -> Sequence[RankedRow]:
    """Return the rows of some players, by current ids, or of all if none are named: the first `limit` (0: all)."""
    return ([row for row in rows if row.player in players] if players else rows)[: limit or None]


def rows_of_players(rows: Sequence[RankedRow], players: Collection[str]) -> dict[str, RankedRow]:
    """Return the rows of some players, of those who have one, by player; of a long list no others are made."""
    found = rows.named(players) if isinstance(rows, RankedColumns) else (row for row in rows if row.player in players)
    return {row.player: row for row in found}


def standing_row(row: RankedRow, scale: int, shown: StatesSeen | None) -> Standing:
    """Return a row of a list as a result, with what is `shown` of the player's state, if the rule keeps one."""
    gold = ABSENT if row.gold is None else row.gold
    places = ABSENT if row.places is None else row.places
    plain = Standing(row.rank, row.player, row.value(scale), row.games, row.qualified, gold, places)
    if shown is None:
        return plain
    state = shown.of(row.player)
    return replace(plain, state=state.decimals, state_exact=state.exact, provisional=state.provisional)


def why_unfinished(ladders: Ladders, ladder: str) -> str | None:
    """Return a sentence if a list's period still runs or has not begun, else None."""
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is None:
        return None
    now = clock.now()
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list still runs."
    return "The period of this list still ran then." if is_running(period, now, ladders.as_of) else None


def balance_answer(found: Ranking, at: Coordinates, times: Times) -> Balance:
    """Return the trial balance of a ladder.

    What the players have in total was there at the start, minted by rules or adjusted by people, minus what was burned.
    """
    amounts = {
        "players": found.held,
        "start": -found.started,
        "minted": -found.minted,
        "burned": found.burned,
        "adjusted": -found.adjusted,
    }
    accounts = tuple(Account(name, ExactNumber(units, found.scale)) for name, units in amounts.items())
    total = ExactNumber(sum(amounts.values()), found.scale)
    period = period_state(found.closed)
    return Balance(found.ladder, found.ruleset, at, found.games, len(found.rows), accounts, total, period, times=times)


# of so many last games and adjustments the points are shown
LAST_STEPS = 40


class Wanted(NamedTuple):
    """Which rows: those of some players, or all; of those who played at an instant or later; so many behind the first.

    Without a limit, or with 0, all of them.
    """

    players: Collection[str] = ()
    active_since: int | None = None
    after: int = 0
    limit: int | None = None


def overview_of(
    ladders: Ladders, ladder: str, since: int | None, zone: str, wanted: Wanted, times: Times, remark: str | None
) -> Overview:
    """Return the overview with the rows that are wanted.

    Without an instant `since` the end of the month before that of the last game counts, in the zone. The remark says
    that the period of a list runs. Raises `UnknownLadder`, `RuleFailure`.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    since = _month_before(facts, trace, zone) if since is None else since
    found, _ = ladders.ranked(trace)
    every = rows_shown(found.rows, wanted.players, None)
    if wanted.active_since is not None:
        every = [*_active(facts, trace, every, wanted.active_since)]
    rows = every[wanted.after :][: wanted.limit or None]
    then = {} if since is None else _then(ladders, trace, since, {row.player for row in rows})
    moved = tuple(_row(facts, trace, row, then.get(row.player), found) for row in rows)
    shown = standings_answer(found, (), ladders.coordinates, times, remark)
    return Overview(
        shown.ladder,
        shown.ruleset,
        shown.at,
        shown.games,
        shown.ranking,
        shown.open,
        shown.published,
        moved,
        shown.period,
        since=None if since is None else moment(since),
        players=len(every),
        remark=remark,
        times=times,
    )


def _active(facts: Facts, trace: Trace, rows: Sequence[RankedRow], since: int) -> Iterator[RankedRow]:
    """Yield the rows of those who played at an instant or later."""
    for row in rows:
        last = _last_row(facts, trace, row)
        if last is not None and facts.occurred_at[last] >= since:
            yield row


def _last_row(facts: Facts, trace: Trace, row: RankedRow) -> int | None:
    """Return the row in the facts of somebody's last game; an annual list has no games of its own."""
    number = None if trace.stream.ranking.sums_lists else trace.stream.numbers.get(facts.player_numbers[row.player])
    return None if number is None else trace.last_row_of(number)


def _then(ladders: Ladders, trace: Trace, since: int, players: Collection[str]) -> dict[str, RankedRow]:
    """Return the rows of some players at an instant, if it is earlier than now."""
    instant = since if ladders.as_of is None else min(since, ladders.as_of)
    return rows_of_players(ladders.ranked_at(trace, instant).rows, players)


def _month_before(facts: Facts, trace: Trace, zone: str) -> int | None:
    """Return the end of the month before that of the last game; None without games."""
    if trace.last_row is None:
        return None
    last = local_time(facts.occurred_at[trace.last_row], zone)
    return max(INSTANT_MIN, month_start(last.year, last.month, zone) - 1)


def _row(facts: Facts, trace: Trace, row: RankedRow, then: RankedRow | None, found: Ranking) -> OverviewRow:
    """Return a row with what has moved since `then`; an annual list has no games of its own."""
    numbers = {} if trace.stream.ranking.sums_lists else trace.stream.numbers
    number = numbers.get(facts.player_numbers[row.player])
    last_points = [] if number is None else trace.last_points(number, LAST_STEPS)
    last = _last_row(facts, trace, row)
    scale, one = found.scale, standing_row(row, found.scale, found.shown)
    return OverviewRow(
        one.rank,
        one.player,
        one.points,
        one.games,
        one.qualified,
        one.gold,
        one.places,
        one.state,
        one.state_exact,
        one.provisional,
        change=None if then is None else one.points - then.value(scale),
        rank_change=None if then is None or then.rank is None or row.rank is None else then.rank - row.rank,
        last_played=None if last is None else moment(facts.occurred_at[last]),
        last_units=LastUnits(tuple(last_points), scale),
    )


class LastUnits(NamedTuple):
    """Somebody's last points, in units of 1/`scale`, of which fractions are made only when somebody reads them."""

    units: tuple[int, ...]
    scale: int


@dataclass(frozen=True, slots=True)
class OverviewRow(Standing):
    """A row of the standings with what has moved: by how much the points and the rank changed since `Overview.since`
    (a rank that got better is a change above 0), None for who had none then or has none now; when they last played; and
    their points after each of their last games and adjustments, at most 40.
    """

    change: Fraction | None = field(kw_only=True)
    rank_change: int | None = field(kw_only=True)
    last_played: datetime | None = field(kw_only=True)
    last_units: LastUnits = field(metadata=LAST_POINTS, kw_only=True)

    @property
    def last_points(self) -> tuple[Fraction, ...]:
        """Return the points, exactly."""
        return tuple(ExactNumber(units, self.last_units.scale) for units in self.last_units.units)


@dataclass(frozen=True, slots=True)
class Overview(Standings):
    """Standings with what has moved since the end of a day or month, None on a ladder without games.

    `players` is how many rows there are of what was asked for, of which `rows` may be a part.
    """

    rows: tuple[OverviewRow, ...]
    since: datetime | None = field(kw_only=True)
    players: int = field(kw_only=True)

    if TYPE_CHECKING:  # the rows of standings, known to be those of an overview

        def __iter__(self) -> Iterator[OverviewRow]: ...

        def __reversed__(self) -> Iterator[OverviewRow]: ...

        @overload
        def __getitem__(self, index: int) -> OverviewRow: ...

        @overload
        def __getitem__(self, index: slice) -> tuple[OverviewRow, ...]: ...

        def __getitem__(self, index: int | slice) -> OverviewRow | tuple[OverviewRow, ...]:
            return self.rows[index]
