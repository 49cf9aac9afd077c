"""Published lists: which there are, and each beside the same list as known now, with what made the difference."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import recorded_at
from ratings_ledger.ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.answers import LastEvent, Publication
from ratings_ledger.projections.queries.answers_beside import (
    ListBeside,
    ListCause,
    PublicationRow,
    Publications,
    RowBeside,
)
from ratings_ledger.projections.queries.answers_compared import ComparedSide
from ratings_ledger.projections.queries.comparison import Side, Sides
from ratings_ledger.projections.queries.coordinates import Coordinates, Note, Times, moment
from ratings_ledger.projections.queries.decisions import decided
from ratings_ledger.projections.queries.impact import Had, had, under_present_ids
from ratings_ledger.projections.queries.last_events import last_event
from ratings_ledger.projections.queries.standings import Ladders
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game


def publications(connection: Connection, until: int, times: Times) -> Publications:
    """The lists published up to a position, the last one of each ladder and time."""
    return Publications(publication_rows(connection, until), times=times)


def publication_rows(connection: Connection, until: int) -> tuple[PublicationRow, ...]:
    """The same without how times are shown."""
    return tuple(
        PublicationRow(
            one.ladder, None if one.as_of is None else moment(one.as_of), one.known_at, one.ruleset, one.row_count,
            one.games, one.position, one.recorded_at, one.by,
        )
        for one in latest_lists(published_lists(connection, until))
    )  # fmt: skip


def list_beside(
    connection: Connection, ladders: Ladders, one: PublishedList, note: Note, times: Times
) -> ListBeside:  # fmt: skip
    """A published list beside the same one as known at the position of these ladders, under the rulesets' timelines.

    One that cannot be replayed is told in `failed`. Raises `UnknownLadder`, `RulesetUnusable`.
    """
    known_at = ladders.facts.position
    sides = Sides(connection, note, decode)
    as_of = sides.compared_at(one)
    then, facts, failed = sides.published(one), sides.facts(known_at), tuple[str, ...]()
    try:
        now = sides.computed(one.ladder, Coordinates(as_of, known_at, None))
    except RuleFailure as problem:
        now, failed = Side(ComparedSide(), None, facts), (told_with_game(problem, facts, connection),)
    was, has = ({} if side.found is None else had(side.found.rows, side.found.scale) for side in (then, now))
    was = under_present_ids(was, has, then.facts, facts)
    found = decided(connection, one.known_at, known_at, times, as_of, one.ladder) if one.known_at < known_at else None
    causes = {share.player: share.amounts for share in found.shares} if found else {}
    concerned = sorted({cause for amounts in causes.values() for cause in amounts if cause is not None})
    numbers = {cause: number for number, cause in enumerate(concerned)}
    rows = [
        _row(player, was.get(player), has.get(player), causes.get(player, {}), numbers)
        for player in dict.fromkeys([*was, *has])
    ]
    position = last_event(connection, ladders.at(as_of), one.ladder)
    return ListBeside(
        one.ladder, Coordinates(one.as_of, known_at, None),
        Publication(one.position, one.event_id, one.recorded_at, one.by), one.known_at, one.ruleset,
        None if now.found is None else now.found.ruleset, sum(row.differs for row in rows),
        tuple(found.decisions[cause] for cause in concerned) if found else (), tuple(rows), failed=failed,
        last=LastEvent(position, moment(recorded_at(connection, position))), times=times,
    )  # fmt: skip


def _row(
    player: str, was: Had | None, now: Had | None, amounts: Mapping[int | None, Fraction], numbers: Mapping[int, int]
) -> RowBeside:  # fmt: skip
    before, after = was and was.points, now and now.points
    causes = (ListCause(None if cause is None else numbers[cause], amount) for cause, amount in amounts.items())
    change = None if before is None or after is None else after - before
    return RowBeside(player, (was and was.rank, now and now.rank), before, change, after, tuple(causes))
