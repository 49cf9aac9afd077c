"""Impact: what new events, or another version of a rule, would change on every ladder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from ratings_ledger.projections.diff.affected import (
    have_same_points,
    streams_beside,
    with_drafts,
)
from ratings_ledger.projections.diff.comparison import (
    DifferingList,
    Effect,
    ImpactSummary,
    ReplayedLadder,
    compare_states,
    rekey_by_current_id,
)
from ratings_ledger.projections.diff.period_impacts import PeriodImpact, compare_periods
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Times, load_times, moment
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, RowSequence
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure


@dataclass(frozen=True, slots=True)
class Impact(RowSequence[Effect]):
    """What something does: to whose points, how much on which ladders, which published lists would come out
    differently, and explanations for unexpected changes; `failed` tells which ladders cannot be replayed, and why.
    `periods` has the ladders whose rating periods are concerned. `times` knows how this ledger shows times, if a
    published list differs or games wait for a period to close.
    """

    _rows_member: ClassVar[str] = "changes"
    changes: tuple[Effect, ...] = ()
    ladders: tuple[ImpactSummary, ...] = ()
    published: tuple[DifferingList, ...] = ()
    reasons: tuple[str, ...] | Absent = ABSENT
    periods: tuple[PeriodImpact, ...] | Absent = ABSENT
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN)


def impact_of(connection: Connection, before: Ladders, drafts: Iterable[Draft]) -> Impact:
    """Return what events that are checked but not appended yet would change on the ladders as they are."""
    after, affected, renames = with_drafts(connection, before, drafts, clock.now())
    impact = impact_between(recorded_up_to(connection, before.facts.position), before, after, affected)
    reasons = tuple(
        why for player, new_player in renames for why in _why_rescored(before.facts, impact, player, new_player)
    )
    is_dated = impact.published or impact.periods is not ABSENT
    return replace(impact, reasons=reasons or ABSENT, times=load_times(connection) if is_dated else UTC_TIMES)


def _why_rescored(before: Facts, impact: Impact, player: str, new_player: str) -> Iterator[str]:
    """Yield why a rename changes points; most do not."""
    ladders = dict.fromkeys(effect.ladder for effect in impact.changes if effect.before != effect.after)
    if not ladders:
        return
    if before.knows(new_player):
        yield f"{player} and {new_player} become one person with the games of both; what follows them is rated anew."
        return
    for ruleset_id in dict.fromkeys(parse_name(ladder).ruleset_id for ladder in ladders):
        yield (
            f"The rule of {ruleset_id} walks through a player's opponents in the order of their ids, and a new id "
            "changes that order."
        )


class RecordedBeside(NamedTuple):
    """What a comparison looks up besides facts: the published lists, the rows of one, and how it is told why a
    ladder cannot be replayed.
    """

    lists: Callable[[], list[PublishedList]]
    rows: Callable[[PublishedList], Ranking]
    told: Callable[[RuleFailure, Facts], str]


def recorded_up_to(connection: Connection, position: int) -> RecordedBeside:
    """Return what was recorded up to a position."""
    return RecordedBeside(
        partial(published_lists, connection, position),
        lambda published: as_published(connection, published),
        lambda failure, facts: describe_failure(failure, facts, connection),
    )


def impact_between(
    recorded: RecordedBeside, before: Ladders, after: Ladders, affected: set[str], only: Collection[str] = ()
) -> Impact:
    """Compare two states of the ladders that may be among what is `affected`, or of `only` some of them."""
    failed = [problem.reason for side in (before, after) for problem in side.facts.unusable.values()]
    lists: dict[str, list[PublishedList]] = defaultdict(list)
    for entry in latest_lists(recorded.lists()):
        lists[entry.ladder].append(entry)
    effects, radii, differing_lists = list[Effect](), list[ImpactSummary](), list[DifferingList]()
    periods = list[PeriodImpact]()
    for name, (old, new) in streams_beside(before, after, affected, only).items():
        if (concerned := compare_periods(before.facts, after.facts, old, new)) is not None:
            periods.append(concerned)
        # a new date for a game may change what was played up to some time, even if nobody's points
        is_redated = name in lists and _instants(before, old) != _instants(after, new)
        if have_same_points(old, new) and not is_redated:
            continue
        # with running points, one change moves ranks all over
        with_ranks = any(stream and not stream.ranking.running for stream in (old, new))
        try:
            was, now = ReplayedLadder(before, old), ReplayedLadder(after, new)
            differing, reach = compare_states(Effect, name, was.at(), now.at(), with_ranks)
            differing_lists += _compare_lists(recorded, was, now, lists.get(name, ()))
        except RuleFailure as error:
            # a game that is only about to be recorded has no position yet
            failed.append(recorded.told(error, after.facts).replace(": the rule", " cannot be replayed: the rule", 1))
            continue
        effects += differing
        if differing or reach.ranks:
            radii.append(reach)
    return Impact(
        tuple(effects),
        tuple(radii),
        tuple(differing_lists),
        periods=tuple(periods) or ABSENT,
        failed=tuple(dict.fromkeys(failed)),
    )


def _instants(ladders: Ladders, stream: Stream | None) -> list[int]:
    """Return the times of a ladder's games and adjustments."""
    if stream is None:
        return []
    stream = ladders.stream(stream.ladder)  # all of it
    return [
        *(ladders.facts.occurred_at[row] for row in stream.row),
        *(adjustment.occurred_at for adjustment in stream.adjustments),
    ]


def _compare_lists(
    recorded: RecordedBeside, was: ReplayedLadder, now: ReplayedLadder, lists: Iterable[PublishedList]
) -> Iterator[DifferingList]:
    """Yield the lists that, as they would be today, differ between two states in more than ids, and from what was
    published. One that comes out as published again is not worth reporting.
    """
    stream = was.stream or now.stream
    facts = was.facts, now.facts
    for published in lists:
        as_of = published.as_of if stream is None else compared_at(published, stream.versions[0].ruleset)
        old, new = (_valued(side.at(as_of).ranking) for side in (was, now))
        if rekey_by_current_id(old, new, *facts) == new:
            continue
        rows = _valued(recorded.rows(published))
        if rekey_by_current_id(rows, new, *facts) != new:
            already = rekey_by_current_id(rows, old, was.facts, was.facts) != old
            played_until = None if published.as_of is None else moment(published.as_of)
            yield DifferingList(published.ladder, played_until, published.position, already)


def _valued(ranking: Ranking | None) -> dict[str, tuple[Any, ...]]:
    """Rows by player, their points as exact numbers."""
    rows, scale = ((), 1) if ranking is None else (ranking.rows, ranking.scale)
    return {row.player: (row.rank, row.value(scale), row.games, row.qualified, row.gold, row.places) for row in rows}
