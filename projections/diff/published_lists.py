"""A published list beside the same list as known now, with what made the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.diff.comparison import (
    RankedPoints,
    RankedState,
    SideLoader,
    rekey_by_current_id,
)
from ratings_ledger.projections.diff.decisions import (
    Decision,
    decided,
)
from ratings_ledger.projections.queries.coordinates import Coordinates, Times
from ratings_ledger.projections.queries.last_events import last_event, last_event_at
from ratings_ledger.projections.queries.published import Publication
from ratings_ledger.projections.queries.results import (
    HIDDEN,
    Answer,
    LastEvent,
    Result,
    RowSequence,
)
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure


@dataclass(frozen=True, slots=True)
class ListCause(Result):
    """A part of a difference: by the index of a decision, or None for games that were recorded later."""

    decision: int | None
    amount: Fraction


@dataclass(frozen=True, slots=True)
class PublishedRowDiff(Result):
    """What a player had on a published list and has on the same list as known now, None where they are not on it; and
    what made the difference, exactly.
    """

    player: str
    rank: tuple[int | None, int | None]
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    causes: tuple[ListCause, ...]

    @property
    def differs(self) -> bool:
        """Tell whether the player has other points or another rank now."""
        return self.before != self.after or self.rank[0] != self.rank[1]


@dataclass(frozen=True, slots=True)
class PublishedListDiff(Answer, RowSequence[PublishedRowDiff]):
    """A published list beside the same list as known now: its rows as they were published, then who came since.

    `ruleset` and `ruleset_now` are the versions that rank it; `decisions` what was decided since that changed points
    on it; `differing` counts the rows that differ. `last` is the last event that it depends on.
    """

    ladder: str
    at: Coordinates
    published: Publication
    published_known_at: int
    ruleset: str
    ruleset_now: str | None
    differing: int
    decisions: tuple[Decision, ...]
    rows: tuple[PublishedRowDiff, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)


def list_beside(loader: SideLoader, known_at: int, published: PublishedList, times: Times) -> PublishedListDiff:
    """Return a published list beside the same one as known at a position, under the rulesets' timelines.

    One that cannot be replayed is told in `failed`. Raises `UnknownLadder`, `RulesetUnusable`.
    """
    connection, as_of, failed = loader.connection, loader.find_as_of(published), tuple[str, ...]()
    then, at = loader.load_published(published).state, Coordinates(as_of, known_at, None)
    facts = loader.facts(known_at)
    try:
        now = loader.load_computed(published.ladder, at).state
    except RuleFailure as problem:
        now, failed = RankedState(facts, None), (describe_failure(problem, facts, connection),)
    has = now.points_by_player()
    was = rekey_by_current_id(then.points_by_player(), has, then.facts, facts)
    found = (
        decided(connection, published.known_at, known_at, times, as_of, published.ladder)
        if published.known_at < known_at
        else None
    )
    causes = {share.player: share.amounts for share in found.shares} if found else {}
    concerned = sorted({cause for amounts in causes.values() for cause in amounts if cause is not None})
    numbers = {cause: number for number, cause in enumerate(concerned)}
    rows = [
        _row(player, was.get(player), has.get(player), causes.get(player, {}), numbers)
        for player in dict.fromkeys([*was, *has])
    ]
    position = last_event(connection, loader.ladders(at), published.ladder)
    return PublishedListDiff(
        published.ladder,
        Coordinates(published.as_of, known_at, None),
        Publication(published.position, published.event_id, published.recorded_at, published.by),
        published.known_at,
        published.ruleset,
        None if now.ranking is None else now.ranking.ruleset,
        sum(row.differs for row in rows),
        tuple(found.decisions[cause] for cause in concerned) if found else (),
        tuple(rows),
        failed=failed,
        last=last_event_at(connection, position),
        times=times,
    )


def _row(
    player: str,
    was: RankedPoints | None,
    now: RankedPoints | None,
    amounts: Mapping[int | None, Fraction],
    numbers: Mapping[int, int],
) -> PublishedRowDiff:
    before, after = was and was.points, now and now.points
    causes = (ListCause(None if cause is None else numbers[cause], amount) for cause, amount in amounts.items())
    change = None if before is None or after is None else after - before
    return PublishedRowDiff(player, (was and was.rank, now and now.rank), before, change, after, tuple(causes))
