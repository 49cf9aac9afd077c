"""A player's statement: every change since the list that was published last, or since the start, with its cause.

What was learned since about games that the list covers is told by its causes (`attribution`); then come the games and
adjustments since, in the order of replay, of which one line may sum the earlier ones. The lines sum exactly, as both
parts do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar

from sqlalchemy import Connection

from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists, select_newest_list
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.diff.attribution import AttributedCause, with_events
from ratings_ledger.projections.diff.path import attribute
from ratings_ledger.projections.exact_numbers import NOTHING, ExactNumber
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment
from ratings_ledger.projections.queries.history import Change, Course, load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.replay.replay import find_starting_points
from ratings_ledger.projections.rulesets.versions import newest


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine(Result):
    """What changed a player's points: a game, or a cause that has no game of its own, and the points after it.

    `cause` is game, adjustment, or what `explain --change` calls it; then the line has the cause's event, and what it
    is about in `what`; `game` is as in `Change`. It is start where a player who was on the list joins again with other
    points, and earlier where one line sums games and adjustments, which `what` counts, up to the last of them. Its
    `own` and `ripple` sum to the change.
    """

    cause: str
    position: int | None = None
    game_id: str | None = None
    occurred_at: datetime | None = None
    recorded_at: datetime | None = None
    by: str | None = None
    reason: str | None = None
    place: int | None = None
    own: Fraction
    ripple: Fraction = NOTHING
    change: Fraction
    after: Fraction
    what: str = field(default="", metadata=HIDDEN)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, compare=False)


# what a line sums, in words, by cause
COUNTED = {
    "game": "game",
    "adjustment": "adjustment",
    "season": "new season",
    "period": "rating period",
    "version": "new version",
}
# what a line and a cause of a difference have in common
SHARED = ("cause", "position", "game_id", "occurred_at", "recorded_at", "by", "reason", "own", "ripple", "what")


@dataclass(frozen=True, slots=True)
class Statement(Answer, RowSequence[StatementLine]):
    """How a player's points on a ladder came about, since the list that was published last, or since their start.

    The `opening` and the changes of all lines sum to the `closing` points, exactly. `published` is the position of that
    list, and `since` what it was compared at; None without one.
    """

    _rows_member: ClassVar[str] = "lines"
    player: str
    ladder: str
    at: Coordinates
    published: int | None
    since: datetime | None
    opening: Fraction
    lines: tuple[StatementLine, ...]
    closing: Fraction


def statement_of(
    connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times, last: int | None = None
) -> Statement:
    """Return a player's statement on a ladder whose points run on; somebody who is not on it has their start, and no
    lines.

    `player` is a current id. Of more than `last` games and adjustments, one line sums those before the last ones.
    Causes that cancel each other are not looked for. Raises `UnknownLadder`, `RuleFailure`.
    """
    course = load_course(connection, ladders, ladder, player)
    trace = ladders.trace(ladder)
    units = find_starting_points(trace.stream, player, newest(trace.stream.versions), trace.joining)
    start = course.start if course else ExactNumber(units, trace.stream.rule.scale)
    published, then = _last_list(connection, ladders, ladder)
    covered = 0 if published is None else bisect_right(course.instants, then)
    known = course.values[covered - 1] if covered else start
    opening, lines = known, list[StatementLine]()
    shown = None if published is None else _shown(connection, published, ladders, player)
    if published is not None and shown != known and (shown is not None or covered):
        # what was learned since about what the list covers
        places = (Coordinates(then, published.known_at, None), Coordinates(then, ladders.facts.position, ladders.rules))
        attribution = attribute(connection, ladder, player, *places)
        opening = attribution.opening
        lines = lines_of_causes(with_events(connection, attribution), opening)
    if rest := known - (lines[-1].after if lines else opening):
        # who was on the list and is not now joins again later, with what another version begins with
        lines.append(StatementLine(cause="start", own=rest, change=rest, after=known))
    first = covered if last is None else max(covered, len(course) - last)
    if covered < first:
        lines.append(_summed(course, covered, first, known))
    lines += lines_of_changes(course[first:])
    closing = course.values[-1] if course else start
    return Statement(
        player,
        ladder,
        ladders.coordinates,
        None if published is None else published.position,
        None if published is None else moment(then),
        opening,
        tuple(lines),
        closing,
        times=times,
    )


def _last_list(connection: Connection, ladders: Ladders, ladder: str) -> tuple[PublishedList | None, int]:
    """Return the published list of the latest time up to `as_of`, and up to when it is compared."""
    ruleset = ladders.versions(ladder)[0].ruleset
    lists = {
        published: until
        for published in published_lists(connection, ladders.facts.position, ladder)
        if (until := compared_at(published, ruleset)) is not None and (ladders.as_of is None or until <= ladders.as_of)
    }
    if not lists:
        return None, 0
    newest = select_newest_list(lists)
    return newest, lists[newest]


def _shown(connection: Connection, published: PublishedList, ladders: Ladders, player: str) -> Fraction | None:
    """Return what a list showed of a person, under this id or else the first of their others; None for who was not on
    it.
    """
    listed = as_published(connection, published)
    shown = {row.player: row.value(listed.scale) for row in listed.rows if ladders.facts.current(row.player) == player}
    return shown.get(player, shown[min(shown)] if shown else None)


def lines_of_causes(causes: Iterable[AttributedCause], opening: Fraction) -> list[StatementLine]:
    """Return a line for each cause of a difference, with the points after it."""
    points, lines = opening, []
    for cause in causes:
        points += cause.amount
        shared: dict[str, Any] = {name: getattr(cause, name) for name in SHARED}
        lines.append(StatementLine(**shared, change=cause.amount, after=points))
    return lines


def lines_of_changes(rows: Iterable[Change]) -> list[StatementLine]:
    """Return a line for each game and adjustment of a course."""
    return [
        StatementLine(
            cause="game" if row.game_id is not None else "adjustment" if row.cause is ABSENT else row.cause,
            position=row.position,
            game_id=row.game_id,
            occurred_at=row.occurred_at,
            reason=None if row.reason is ABSENT else row.reason,
            place=row.place,
            own=row.change,
            change=row.change,
            after=row.after,
            game=row.game,
        )
        for row in rows
    ]


def _summed(course: Course, first: int, end: int, known: Fraction) -> StatementLine:
    """Return what games, adjustments and the like did together, from one up to another, to somebody who had so much
    before.
    """
    after, counts = course.values[end - 1], Counter(course.causes[first:end])
    # games and adjustments first; what else there is as often as it occurs
    causes = [cause for cause in dict.fromkeys([*COUNTED, *counts]) if counts[cause]]
    return StatementLine(
        cause="earlier",
        occurred_at=moment(course.instants[end - 1]),
        own=after - known,
        change=after - known,
        after=after,
        what=joined([count(counts[cause], COUNTED.get(cause, cause)) for cause in causes]),
    )
