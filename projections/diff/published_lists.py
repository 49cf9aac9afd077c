"""Compare a published list with the same list as known now, and attribute the differences to decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists, select_latest_lists
from ratings_ledger.projections.diff.comparison import RankedPoints, RankedState, rekey_by_current_id
from ratings_ledger.projections.diff.decisions import Decision, find_decisions
from ratings_ledger.projections.diff.differences import SideLoader
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.last_events import find_last_event, load_last_event
from ratings_ledger.projections.queries.results import HIDDEN, Answer, LastEvent, Result, RowSequence
from ratings_ledger.projections.queries.standings import Publication
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure


@dataclass(frozen=True, slots=True)
class ListCause(Result):
    """A part of a difference, and the index of the decision that caused it; None for games recorded later."""

    decision: int | None
    amount: Fraction


@dataclass(frozen=True, slots=True)
class PublishedRowDiff(Result):
    """A player's rank and points on a published list and on the same list as known now, and the causes of the change.

    `before` and `after` are None where the player is not on the list. The causes sum exactly to the change. `games` is
    the player's number of games on the published list. `since_previous` is the change in points since the previous
    list, and `previous_rank` the rank on it; both are None if the player was not on it.
    """

    player: str
    rank: tuple[int | None, int | None]
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    causes: tuple[ListCause, ...]
    games: int | None = None
    since_previous: Fraction | None = None
    previous_rank: int | None = None

    @property
    def climbed(self) -> int:
        """Return the number of ranks by which the player is better than on the previous list; negative if worse."""
        return 0 if self.previous_rank is None or self.rank[0] is None else self.previous_rank - self.rank[0]

    @property
    def differs(self) -> bool:
        """Tell whether the player has other points or another rank now."""
        return self.before != self.after or self.rank[0] != self.rank[1]


@dataclass(frozen=True, slots=True)
class PublishedListDiff(Answer, RowSequence[PublishedRowDiff]):
    """A published list compared with the same list as known now: its rows as published, then the players new on it.

    ruleset, ruleset_now: the versions that ranked the list and rank it now
    decisions: the decisions after `published_known_at` that changed points on the list
    differing: the number of rows that differ
    previous:  the `as_of` of the previous list of the ladder
    last:      the last event that the answer depends on
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
    previous: datetime | None = None
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)


def compare_published_list(
    loader: SideLoader, known_at: int, published: PublishedList, times: TimeFormat
) -> PublishedListDiff:
    """Compare a published list with the same list as known at a position, under the rulesets' timelines.

    If the ladder cannot be replayed, `failed` says why. Raises `UnknownLadder`, `RulesetUnusable`.
    """
    connection, as_of, failed = loader.connection, loader.find_as_of(published), tuple[str, ...]()
    published_state, at = loader.load_published(published).state, Coordinates(as_of, known_at, None)
    facts = loader.facts(known_at)
    try:
        current_state = loader.load_computed(published.ladder, at).state
    except RuleFailure as problem:
        current_state, failed = RankedState(facts, None), (describe_failure(problem, facts, connection),)
    current_points = current_state.index_points()
    published_points = rekey_by_current_id(published_state.index_points(), current_points, published_state.facts, facts)
    decisions = (
        find_decisions(connection, published.known_at, known_at, times, as_of=as_of, ladder=published.ladder)
        if published.known_at < known_at
        else None
    )
    amounts_by_player = {share.player: share.amounts for share in decisions.shares} if decisions else {}
    decision_indices = sorted(
        {index for amounts in amounts_by_player.values() for index in amounts if index is not None}
    )
    number_by_index = {index: number for number, index in enumerate(decision_indices)}
    rows = [
        _build_row(
            player,
            published_points.get(player),
            current_points.get(player),
            amounts_by_player.get(player, {}),
            number_by_index,
        )
        for player in dict.fromkeys([*published_points, *current_points])
    ]
    previous = _find_previous(connection, known_at, published)
    rows = _extend_rows(loader, rows, published_state, previous=previous, points=published_points)
    position = find_last_event(connection, loader.ladders(at), published.ladder)
    return PublishedListDiff(
        ladder=published.ladder,
        at=Coordinates(published.as_of, known_at, None),
        published=Publication(published.position, published.event_id, published.recorded_at, published.by),
        published_known_at=published.known_at,
        ruleset=published.ruleset,
        ruleset_now=None if current_state.ranking is None else current_state.ranking.ruleset,
        differing=sum(row.differs for row in rows),
        decisions=tuple(decisions.decisions[index] for index in decision_indices) if decisions else (),
        rows=tuple(rows),
        previous=None if previous is None or previous.as_of is None else to_datetime(previous.as_of),
        failed=failed,
        last=load_last_event(connection, position),
        times=times,
    )


def _build_row(
    player: str,
    old: RankedPoints | None,
    new: RankedPoints | None,
    amounts: Mapping[int | None, Fraction],
    number_by_index: Mapping[int, int],
) -> PublishedRowDiff:
    before, after = old and old.points, new and new.points
    causes = (ListCause(None if index is None else number_by_index[index], amount) for index, amount in amounts.items())
    change = None if before is None or after is None else after - before
    return PublishedRowDiff(
        player=player,
        rank=(old and old.rank, new and new.rank),
        before=before,
        change=change,
        after=after,
        causes=tuple(causes),
    )


def _find_previous(connection: Connection, known_at: int, published: PublishedList) -> PublishedList | None:
    """Return the ladder's published list with the latest `as_of` before that of `published`, or None."""
    if published.as_of is None:
        return None
    lists = select_latest_lists(read_published_lists(connection, known_at, published.ladder))
    earlier = [entry for entry in lists if entry.as_of is not None and entry.as_of < published.as_of]
    return earlier[-1] if earlier else None


def _extend_rows(
    loader: SideLoader,
    rows: Sequence[PublishedRowDiff],
    state: RankedState,
    *,
    previous: PublishedList | None,
    points: Mapping[str, RankedPoints],
) -> list[PublishedRowDiff]:
    """Return the rows with the games on the published list, the previous rank, and the change since the previous list.

    `points` has the published points by current id.
    """
    games_by_published_id = {} if state.ranking is None else {row.player: row.games for row in state.ranking.rows}
    games_by_id: dict[str, Any] = rekey_by_current_id(games_by_published_id, points, state.facts, loader.latest_facts)
    previous_points = dict[str, Any]()
    if previous is not None:
        earlier_state = loader.load_published(previous).state
        previous_points = rekey_by_current_id(
            earlier_state.index_points(), points, earlier_state.facts, loader.latest_facts
        )
    return [_extend_row(row, games_by_id.get(row.player), previous_points.get(row.player)) for row in rows]


def _extend_row(row: PublishedRowDiff, games: int | None, earlier: RankedPoints | None) -> PublishedRowDiff:
    change = None if earlier is None or row.before is None else row.before - earlier.points
    return replace(row, games=games, since_previous=change, previous_rank=earlier and earlier.rank)
