"""Build a player's statement: every change since the latest published list, or since the start, with its cause.

The first lines are the causes (see `attribution`) of changes to the points on the list. Then come the later games and
adjustments, in the order of replay; the first of these lines may sum several. The lines add up exactly.
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
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists, select_newest_list
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.diff.attribution import attribute_difference
from ratings_ledger.projections.diff.change_explanations import AttributedCause, describe_causes
from ratings_ledger.projections.exact_numbers import ZERO, ExactNumber
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.history import Change, Course, load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import find_comparison_time, load_published_list
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.replay.replay import find_starting_points
from ratings_ledger.projections.rulesets.versions import newest


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine(Result):
    """A change in a player's points, with its cause and the points after it; `own` and `ripple` sum to the change.

    `cause` is one of:
    - game, adjustment, season, period or version: a change of the course; the member `game` is that of the `Change`
    - a cause of `explain --change`; the line then has the cause's event, and `what` is the event's subject
    - start: the player was on the list, drops off it, and enters the ladder again later with other starting points
    - earlier: the line sums games and adjustments, and `what` says how many
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
    ripple: Fraction = ZERO
    change: Fraction
    after: Fraction
    what: str = field(default="", metadata=HIDDEN)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, compare=False)


# the names of causes in a line that sums changes
CAUSE_NOUNS = {
    "game": "game",
    "adjustment": "adjustment",
    "season": "new season",
    "period": "rating period",
    "version": "new version",
}
# the members that a line copies from an attributed cause
SHARED_MEMBERS = ("cause", "position", "game_id", "occurred_at", "recorded_at", "by", "reason", "own", "ripple", "what")


@dataclass(frozen=True, slots=True)
class Statement(Answer, RowSequence[StatementLine]):
    """The changes in a player's points on a ladder since the latest published list, or since the player's start.

    The `opening` points and the changes of all lines sum exactly to the `closing` points. `published` is the position
    of the list, and `since` is the time up to which the list counts games; both are None without a list.
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


def build_statement(
    connection: Connection, ladders: Ladders, ladder: str, player: str, times: TimeFormat, last: int | None = None
) -> Statement:
    """Build a player's statement on a ladder with running points.

    A player who is on neither the ladder nor the list has their starting points and no lines. Changes to the games that
    the list covers are attributed only if the points on the list differ now, so causes that cancel each other out do
    not appear.

    Args:
        connection: the connection to the store.
        ladders: the ladders at the coordinates.
        ladder: the name of the ladder.
        player: the player's current id.
        times: the time format of the ledger.
        last: the maximum number of games and adjustments that get a line each; one line sums all earlier ones.

    Raises:
        RuleFailure: the rule failed.
        UnknownLadder: the ladder's ruleset is unknown.
    """
    course = load_course(connection, ladders, ladder, player)
    trace = ladders.trace(ladder)
    units = find_starting_points(trace.stream, player, newest(trace.stream.versions), trace.entry_states)
    start = course.start if course else ExactNumber(units, trace.stream.rule.scale)
    published, compared_until = _find_last_list(connection, ladders, ladder)
    covered_count = 0 if published is None else bisect_right(course.instants, compared_until)
    covered_points = course.values[covered_count - 1] if covered_count else start
    opening, lines = covered_points, list[StatementLine]()
    listed_points = None if published is None else _find_listed_points(connection, published, ladders, player)
    if published is not None and listed_points != covered_points and (listed_points is not None or covered_count):
        coordinates = (
            Coordinates(compared_until, published.known_at, None),
            Coordinates(compared_until, ladders.facts.position, ladders.rules),
        )
        attribution = attribute_difference(connection, ladder, player, *coordinates)
        opening = attribution.opening
        lines = build_cause_lines(describe_causes(connection, attribution), opening)
    if difference := covered_points - (lines[-1].after if lines else opening):
        # the player is no longer on the list, and joins again later with the starting points of another version
        lines.append(StatementLine(cause="start", own=difference, change=difference, after=covered_points))
    first_listed = covered_count if last is None else max(covered_count, len(course) - last)
    if covered_count < first_listed:
        lines.append(_sum_changes(course, covered_count, first_listed, covered_points))
    lines += build_change_lines(course[first_listed:])
    closing = course.values[-1] if course else start
    return Statement(
        player=player,
        ladder=ladder,
        at=ladders.coordinates,
        published=None if published is None else published.position,
        since=None if published is None else to_datetime(compared_until),
        opening=opening,
        lines=tuple(lines),
        closing=closing,
        times=times,
    )


def _find_last_list(connection: Connection, ladders: Ladders, ladder: str) -> tuple[PublishedList | None, int]:
    """Return the latest published list up to `as_of`, and the time up to which it counts games."""
    ruleset = ladders.versions(ladder)[0].ruleset
    until_by_list = {
        published: until
        for published in read_published_lists(connection, ladders.facts.position, ladder)
        if (until := find_comparison_time(published, ruleset)) is not None
        and (ladders.as_of is None or until <= ladders.as_of)
    }
    if not until_by_list:
        return None, 0
    newest_list = select_newest_list(until_by_list)
    return newest_list, until_by_list[newest_list]


def _find_listed_points(
    connection: Connection, published: PublishedList, ladders: Ladders, player: str
) -> Fraction | None:
    """Return a player's points on a published list, under this id or another id of the player; None if not listed."""
    ranking = load_published_list(connection, published)
    points = {
        row.player: row.exact_points(ranking.scale)
        for row in ranking.rows
        if ladders.facts.current(row.player) == player
    }
    return points.get(player, points[min(points)] if points else None)


def build_cause_lines(causes: Iterable[AttributedCause], opening: Fraction) -> list[StatementLine]:
    """Build a line for each cause, with the points after it."""
    points, lines = opening, []
    for cause in causes:
        points += cause.amount
        members: dict[str, Any] = {name: getattr(cause, name) for name in SHARED_MEMBERS}
        lines.append(StatementLine(**members, change=cause.amount, after=points))
    return lines


def build_change_lines(rows: Iterable[Change]) -> list[StatementLine]:
    """Build a line for each change of a course."""
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


def _sum_changes(course: Course, first: int, end: int, before: Fraction) -> StatementLine:
    """Build the line that sums changes of a course, given the points before them.

    The changes are those from index `first` up to, but not including, `end`.
    """
    after, counts = course.values[end - 1], Counter(course.causes[first:end])
    # causes in the order of CAUSE_NOUNS, then any others in the order of the course
    causes = [cause for cause in dict.fromkeys([*CAUSE_NOUNS, *counts]) if counts[cause]]
    return StatementLine(
        cause="earlier",
        occurred_at=to_datetime(course.instants[end - 1]),
        own=after - before,
        change=after - before,
        after=after,
        what=joined([count(counts[cause], CAUSE_NOUNS.get(cause, cause)) for cause in causes]),
    )
