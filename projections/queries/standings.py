"""Build standings, trial balances, and overviews, which add the recent changes of points and ranks to the standings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, overload

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import INSTANT_MIN
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections.contract import align_decimals
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import (
    ABSENT,
    AS_DIGEST,
    AS_LAST_POINTS,
    HIDDEN,
    Absent,
    LadderAnswer,
    Result,
    RowSequence,
)
from ratings_ledger.projections.queries.visible_states import DEVIATION, VisibleStates, format_rating
from ratings_ledger.projections.replay.streams import PeriodProgress
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import find_period, is_period_open, month_start


@dataclass(frozen=True, slots=True)
class Standing(Result):
    """A row of the standings.

    rank:        the player's rank, None for a player who is not qualified
    points:      the player's exact points
    games:       the number of the player's counted games
    qualified:   whether the player has enough games for a rank, and the list does not exclude the player from the ranks
    gold:        the player's pieces of gold, on a list that pays gold
    places:      the places that an annual list adds up
    state:       the player's numbers as decimals, aged to the day of the standings, if the rule keeps several
    state_exact: the same numbers exactly
    provisional: whether the rule considers these numbers unreliable
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
        """Return the rating as text, with its deviation, and with a question mark while the rating is provisional.

        It is None if the row has no `state`.

        >>> Standing(1, "anna", Fraction(1638), 9, True, state={"rating": "1638", "deviation": "110"},
        ...     state_exact={}, provisional=True).rating
        '1638 ± 110?'
        """
        if self.state is ABSENT:
            return None
        rating = next(iter(self.state.values()), "")
        return format_rating(rating, self.state, is_provisional=self.provisional is True)


def format_ratings(rows: Sequence[Standing]) -> list[str | None]:
    """Return the ratings of a table's rows in the form of `Standing.rating`, with the same number of decimals.

    >>> rows = [Standing(1, name, Fraction(1), 9, True, state={"rating": rating, "deviation": deviation})
    ...     for name, rating, deviation in (("anna", "39.15", "6.72"), ("ben", "26", "6.8"))]
    >>> format_ratings(rows)
    ['39.15 ± 6.72', '26.00 ± 6.80']
    """
    states = [{} if row.state is ABSENT else row.state for row in rows]
    ratings = align_decimals([next(iter(state.values()), "") for state in states])
    deviations = align_decimals([state.get(DEVIATION, "") for state in states])
    return [
        None
        if row.state is ABSENT
        else format_rating(rating, {DEVIATION: deviation}, is_provisional=row.provisional is True)
        for row, rating, deviation in zip(rows, ratings, deviations, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class PeriodState(Result):
    """The state of a ladder's rating periods.

    closed_to:  the last instant of the last closed period, None if no period is closed yet
    open_games: the number of games in open periods
    closed_now: whether these games are scored as if the periods closed now
    closes_at:  the last instant of the open period with games that ends first; a tournament ends with its last game
    """

    closed_to: datetime | None
    open_games: int
    closed_now: bool
    closes_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Standings(LadderAnswer, RowSequence[Standing]):
    """The standings of a ladder.

    `rows` has the requested rows, and `ranking` has all rows. `open` is True until the period of a list is over; the
    `remark` says so or, for a `published` list, who published it. `period` describes the ladder's rating periods.
    """

    ranking: Ranking = field(metadata=AS_DIGEST, repr=False, hash=False)
    open: bool | Absent
    published: Publication | Absent
    rows: tuple[Standing, ...]
    period: PeriodState | Absent = ABSENT
    remark: str | None = field(default=None, metadata=HIDDEN, kw_only=True)

    @property
    def digest(self) -> str:
        """Return the hash of the ruleset and all rows."""
        return self.ranking.digest

    @property
    def legend(self) -> str:
        """Explain the marks of the ratings and the value by which players are ranked; empty for plain points."""
        states = [row.state for row in self.rows if row.state is not ABSENT]
        marks = {
            "± is the uncertainty of a rating (its deviation)": any(DEVIATION in state for state in states),
            "? marks a provisional rating, not reliable yet": any(row.provisional is True for row in self.rows),
        }
        meaning = "; ".join(text for text, is_used in marks.items() if is_used)
        order = f"Ranked by {self.ranking.ranked_by}" if states and self.ranking.ranked_by else ""
        return " ".join(f"{sentence}." for sentence in (meaning, order) if sentence)


@dataclass(frozen=True, slots=True)
class Account(Result):
    """An account of a ladder with its amount in points; negative for a source of points."""

    account: str
    amount: Fraction


@dataclass(frozen=True, slots=True)
class Balance(LadderAnswer):
    """The trial balance of a ladder: its accounts and their `sum`, which is 0 unless the books are wrong.

    `period` describes the ladder's rating periods.
    """

    players: int
    accounts: tuple[Account, ...]
    sum: Fraction
    period: PeriodState | Absent = ABSENT


def build_standings(
    ranking: Ranking,
    rows: Iterable[RankedRow],
    at: Coordinates,
    times: TimeFormat,
    remark: str | None = None,
    published: Publication | Absent = ABSENT,
) -> Standings:
    """Build standings with some or all rows.

    The remark says that the period of a list is running or has not begun or, for a `published` list, who published it
    and when.
    """
    is_open = True if remark and published is ABSENT else ABSENT
    standings = tuple(build_standing(row, ranking.scale, ranking.visible_states) for row in rows)
    return Standings(
        ladder=ranking.ladder,
        ruleset=ranking.ruleset,
        at=at,
        games=ranking.games,
        ranking=ranking,
        open=is_open,
        published=published,
        rows=standings,
        period=build_period_state(ranking.period_progress),
        remark=remark,
        times=times,
    )


def build_period_state(progress: PeriodProgress | None) -> PeriodState | Absent:
    """Return the state of the rating periods; `ABSENT` if every game is scored separately."""
    if progress is None:
        return ABSENT
    until, closes_at = (
        None if instant is None else to_datetime(instant) for instant in (progress.until, progress.closes_at)
    )
    return PeriodState(until, progress.open_games, progress.closed_now, closes_at=closes_at)


def select_rows(rows: Sequence[RankedRow], players: Collection[str], limit: int | None) -> Sequence[RankedRow]:
    """Return the first `limit` rows (None or 0: all) of `players`, given by current id; without `players`, of all."""
    return ([row for row in rows if row.player in players] if players else rows)[: limit or None]


def find_rows_of_players(rows: Sequence[RankedRow], players: Collection[str]) -> dict[str, RankedRow]:
    """Return the rows of `players`, by player; on a long list, build no other rows."""
    if isinstance(rows, RankedColumns):
        return {row.player: row for row in rows.rows_named(players)}
    return {row.player: row for row in rows if row.player in players}


def build_standing(row: RankedRow, scale: int, states: VisibleStates | None) -> Standing:
    """Return a row of a list as a result, with the player's visible state, if the rule keeps one."""
    gold = ABSENT if row.gold is None else row.gold
    places = ABSENT if row.places is None else row.places
    standing = Standing(
        rank=row.rank,
        player=row.player,
        points=row.exact_points(scale),
        games=row.games,
        qualified=row.qualified,
        gold=gold,
        places=places,
    )
    if states is None:
        return standing
    state = states.of(row.player)
    return replace(standing, state=state.decimals, state_exact=state.exact, provisional=state.provisional)


def describe_open_period(ladders: Ladders, ladder: str) -> str | None:
    """Return a sentence about the period of a list that is not over, now or at `as_of`; None for other lists."""
    period = find_period(ladders.versions(ladder)[0].ruleset, ladder)
    if period is None:
        return None
    now = clock.now()
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list is still running."
    if ladders.as_of is not None and ladders.as_of < period.start:
        return "The period of this list had not begun then."
    return "The period of this list was still running then." if is_period_open(period, now, ladders.as_of) else None


def build_balance(ranking: Ranking, at: Coordinates, times: TimeFormat) -> Balance:
    """Return the trial balance of a ladder.

    The players' total equals the starting points plus minted points and adjustments, minus burned points.
    """
    amounts = {
        "players": ranking.held,
        "start": -ranking.start_total,
        "minted": -ranking.minted,
        "burned": ranking.burned,
        "adjusted": -ranking.adjusted,
    }
    accounts = tuple(Account(name, ExactNumber(units, ranking.scale)) for name, units in amounts.items())
    total = ExactNumber(sum(amounts.values()), ranking.scale)
    period = build_period_state(ranking.period_progress)
    return Balance(
        ladder=ranking.ladder,
        ruleset=ranking.ruleset,
        at=at,
        games=ranking.games,
        players=len(ranking.rows),
        accounts=accounts,
        sum=total,
        period=period,
        times=times,
    )


# an overview has the points after at most this many of a player's last games and adjustments
LAST_STEPS_MAX = 40


class RowFilter(NamedTuple):
    """A selection of rows.

    players:      the players whose rows are selected; empty for all
    active_since: select only players whose last game was at this instant or later
    after:        skip this many of the selected rows
    limit:        return at most this many rows; None or 0 for all
    """

    players: Collection[str] = ()
    active_since: int | None = None
    after: int = 0
    limit: int | None = None


def build_overview(
    ladders: Ladders,
    ladder: str,
    *,
    since: int | None,
    zone: str,
    selection: RowFilter,
    times: TimeFormat,
    remark: str | None,
) -> Overview:
    """Return the overview of a ladder with the selected rows.

    Args:
        ladders: the ladders at the coordinates.
        ladder: the name of the ladder.
        since: the instant after which changes count; by default, the end of the month that precedes the last game's.
        zone: the zone in which that month ends.
        selection: the selection of rows.
        times: the time format of the ledger.
        remark: a sentence that the period of a list is running or has not begun, or None.

    Raises the errors of `Ladders.trace`.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    since = _find_end_of_previous_month(facts, trace, zone) if since is None else since
    ranking, _ = ladders.rank(trace)
    matching = select_rows(ranking.rows, selection.players, None)
    if selection.active_since is not None:
        matching = [*_filter_active(facts, trace, matching, selection.active_since)]
    page = matching[selection.after :][: selection.limit or None]
    earlier_rows = {} if since is None else _find_earlier_rows(ladders, trace, since, {row.player for row in page})
    overview_rows = tuple(_build_overview_row(facts, trace, row, earlier_rows.get(row.player), ranking) for row in page)
    standings = build_standings(ranking, (), ladders.coordinates, times, remark)
    return Overview(
        ladder=standings.ladder,
        ruleset=standings.ruleset,
        at=standings.at,
        games=standings.games,
        ranking=standings.ranking,
        open=standings.open,
        published=standings.published,
        rows=overview_rows,
        period=standings.period,
        since=None if since is None else to_datetime(since),
        players=len(matching),
        remark=remark,
        times=times,
    )


def _filter_active(facts: Facts, trace: Trace, rows: Sequence[RankedRow], since: int) -> Iterator[RankedRow]:
    """Yield the rows of the players whose last game was at an instant or later."""
    for row in rows:
        last_game = _find_last_game(facts, trace, row)
        if last_game is not None and facts.occurred_at[last_game] >= since:
            yield row


def _find_last_game(facts: Facts, trace: Trace, row: RankedRow) -> int | None:
    """Return the row in the facts of a ranked player's last game; None on an annual list, which has no games itself."""
    number = None if trace.stream.ranking.sums_lists else trace.stream.numbers.get(facts.player_numbers[row.player])
    return None if number is None else trace.last_row_of(number)


def _find_earlier_rows(ladders: Ladders, trace: Trace, since: int, players: Collection[str]) -> dict[str, RankedRow]:
    """Return the rows of `players` at `since` or, if it is earlier, at `as_of`."""
    instant = since if ladders.as_of is None else min(since, ladders.as_of)
    return find_rows_of_players(ladders.rank_at(trace, instant).rows, players)


def _find_end_of_previous_month(facts: Facts, trace: Trace, zone: str) -> int | None:
    """Return the end of the month before the month of the last game; None without games."""
    if trace.last_row is None:
        return None
    last_played = local_time(facts.occurred_at[trace.last_row], zone)
    return max(INSTANT_MIN, month_start(last_played.year, last_played.month, zone) - 1)


def _build_overview_row(
    facts: Facts, trace: Trace, row: RankedRow, earlier: RankedRow | None, ranking: Ranking
) -> OverviewRow:
    """Return a row with the changes of points and rank since the `earlier` row of the same player."""
    # an annual list has no games of its own
    numbers = {} if trace.stream.ranking.sums_lists else trace.stream.numbers
    number = numbers.get(facts.player_numbers[row.player])
    last_points = [] if number is None else trace.last_points(number, LAST_STEPS_MAX)
    last_game = _find_last_game(facts, trace, row)
    scale, standing = ranking.scale, build_standing(row, ranking.scale, ranking.visible_states)
    return OverviewRow(
        rank=standing.rank,
        player=standing.player,
        points=standing.points,
        games=standing.games,
        qualified=standing.qualified,
        gold=standing.gold,
        places=standing.places,
        state=standing.state,
        state_exact=standing.state_exact,
        provisional=standing.provisional,
        change=None if earlier is None else standing.points - earlier.exact_points(scale),
        rank_change=None if earlier is None or earlier.rank is None or row.rank is None else earlier.rank - row.rank,
        last_played=None if last_game is None else to_datetime(facts.occurred_at[last_game]),
        last_units=LastUnits(tuple(last_points), scale),
    )


class LastUnits(NamedTuple):
    """A player's last points in units of 1/`scale`; `OverviewRow.last_points` converts them to fractions on demand."""

    units: tuple[int, ...]
    scale: int


@dataclass(frozen=True, slots=True)
class OverviewRow(Standing):
    """A row of the standings with the player's recent changes.

    `change` is the change of points since `Overview.since`, None for a player who was not on the ladder then.
    `rank_change` is the change of rank since then, positive for a better rank, None without a rank then or now.
    `last_units` has the points after each of the player's last games and adjustments, at most 40.
    """

    change: Fraction | None = field(kw_only=True)
    rank_change: int | None = field(kw_only=True)
    last_played: datetime | None = field(kw_only=True)
    last_units: LastUnits = field(metadata=AS_LAST_POINTS, kw_only=True)

    @property
    def last_points(self) -> tuple[Fraction, ...]:
        """Return the exact points after the last games and adjustments."""
        return tuple(ExactNumber(units, self.last_units.scale) for units in self.last_units.units)


@dataclass(frozen=True, slots=True)
class Overview(Standings):
    """Standings with the changes since an instant. By default, `since` is None on a ladder without games.

    `players` counts all rows that match the filter; `rows` can be a page of these rows.
    """

    rows: tuple[OverviewRow, ...]
    since: datetime | None = field(kw_only=True)
    players: int = field(kw_only=True)

    if TYPE_CHECKING:  # declare the more specific type of the rows

        def __iter__(self) -> Iterator[OverviewRow]: ...

        def __reversed__(self) -> Iterator[OverviewRow]: ...

        @overload
        def __getitem__(self, index: int) -> OverviewRow: ...

        @overload
        def __getitem__(self, index: slice) -> tuple[OverviewRow, ...]: ...

        def __getitem__(self, index: int | slice) -> OverviewRow | tuple[OverviewRow, ...]:
            return self.rows[index]


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """The event that published a list, with its author and time."""

    position: int
    event_id: str
    recorded_at: str
    by: str
