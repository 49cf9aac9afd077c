"""The overview of a ladder: its standings, and beside each row what has moved; for no more rows than are asked for."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ratings_ledger.ledger.events.canonical import INSTANT_MIN
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.answers_profiled import LastUnits, Overview, OverviewRow
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.standings import Ladders, rows_of, rows_shown, standing_row, standings_answer
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.periods import month_start

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
) -> Overview:  # fmt: skip
    """The overview with the rows that are wanted.

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
    moved = tuple(_row(facts, trace, row, then.get(row.player), found.scale) for row in rows)
    shown = standings_answer(found, (), ladders.coordinates, times, remark)
    return Overview(
        shown.ladder, shown.ruleset, shown.at, shown.games, shown.ranking, shown.open, shown.published, moved,
        since=None if since is None else moment(since), players=len(every), remark=remark, times=times,
    )  # fmt: skip


def _active(facts: Facts, trace: Trace, rows: Sequence[RankedRow], since: int) -> Iterator[RankedRow]:
    """The rows of those who played at an instant or later."""
    for row in rows:
        last = _last_row(facts, trace, row)
        if last is not None and facts.occurred_at[last] >= since:
            yield row


def _last_row(facts: Facts, trace: Trace, row: RankedRow) -> int | None:
    """The row in the facts of somebody's last game; an annual list has no games of its own."""
    number = None if trace.stream.ranking.sums_lists else trace.stream.numbers.get(facts.player_numbers[row.player])
    return None if number is None else trace.last_row_of(number)


def _then(ladders: Ladders, trace: Trace, since: int, players: Collection[str]) -> dict[str, RankedRow]:
    """The rows of some players at an instant, if it is earlier than now."""
    instant = since if ladders.as_of is None else min(since, ladders.as_of)
    return rows_of(ladders.ranked_at(trace, instant).rows, players)


def _month_before(facts: Facts, trace: Trace, zone: str) -> int | None:
    """The end of the month before that of the last game; None without games."""
    if trace.last_row is None:
        return None
    last = local_time(facts.occurred_at[trace.last_row], zone)
    return max(INSTANT_MIN, month_start(last.year, last.month, zone) - 1)


def _row(facts: Facts, trace: Trace, row: RankedRow, then: RankedRow | None, scale: int) -> OverviewRow:
    """A row with what has moved since `then`; an annual list has no games of its own."""
    numbers = {} if trace.stream.ranking.sums_lists else trace.stream.numbers
    number = numbers.get(facts.player_numbers[row.player])
    last_points = [] if number is None else trace.last_points(number, LAST_STEPS)
    last = _last_row(facts, trace, row)
    one = standing_row(row, scale)
    return OverviewRow(
        one.rank, one.player, one.points, one.games, one.qualified, one.gold, one.places,
        change=None if then is None else one.points - then.value(scale),
        rank_change=None if then is None or then.rank is None or row.rank is None else then.rank - row.rank,
        last_played=None if last is None else moment(facts.occurred_at[last]),
        last_units=LastUnits(tuple(last_points), scale),
    )  # fmt: skip
