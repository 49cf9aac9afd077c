"""Convert a player's course to lines of a chart: points or ranks, by date or by number of games."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import accumulate, repeat
from typing import Literal

from ratings_ledger.projections.queries.history import Change, Course
from ratings_ledger.projections.queries.rank_history import RankChange
from ratings_ledger.web.axes import to_number
from ratings_ledger.web.charts import Point, Series, VerticalLine

HorizontalAxis = Literal["date", "games"]


def build_points_line(
    label: str,
    course: Course,
    by: HorizontalAxis,
    describe: Callable[[Change], str],
    link: Callable[[str], str] = lambda _: "",
    published: Sequence[Point] = (),
) -> Series:
    """Return a player's points as a line, from the start to the last step.

    `describe` gives the title of a step and `link` the target of a game's dot; `published` are points of published
    lists, by date. By number of games, the first game is 1, and any other step has the number of the game before it.
    """
    if not course:
        return Series(label, ())
    xs = _list_x_values(course, by)
    points = [Point(course.datetimes[0] if by == "date" else 0, course.start, "start")]
    steps = zip(xs, course.values, course.is_game, course.deviations or repeat(None), strict=False)
    for index, (x, value, is_game, deviation) in enumerate(steps):
        title = partial(_describe_step, describe, course, index)
        if is_game:
            points.append(Point(x, value, "game", title, partial(_link_step, link, course, index), deviation))
        else:
            points.append(Point(x, value, "change", title, deviation=deviation))
    if published:
        points += [
            point if by == "date" else point._replace(x=_count_games_until(course, point.x)) for point in published
        ]
        points.sort(key=lambda point: to_number(point.x))
    return Series(label, points)


def _describe_step(describe: Callable[[Change], str], course: Course, index: int) -> str:
    return describe(course[index])


def _link_step(link: Callable[[str], str], course: Course, index: int) -> str:
    return link(course[index].game_id or "")


def describe_band(course: Course, format_points: Callable[[Fraction], str]) -> str:
    """Describe the deviation band around a course in a clause; return an empty string if the rule has no deviation."""
    if not course.deviations:
        return ""
    return f"; the band is the rating ± its deviation, {format_points(course.deviations[-1])} at the end"


def list_published_points(course: Course, describe: Callable[[Fraction], str]) -> list[Point]:
    """Return the points on published lists that differ from today's, at the dates of the lists, without duplicates."""
    listings = [(listing, index) for index, lists in course.published.items() for listing in lists]
    points = [
        Point(listing.as_of or course.datetimes[index], listing.points, "published", describe(listing.points))
        for listing, index in sorted(listings, key=lambda pair: pair[1])
        if listing.points is not None
    ]
    return [*dict.fromkeys(points)]


def list_revision_marks(course: Course, by: HorizontalAxis, describe: Callable[[Change], str]) -> list[VerticalLine]:
    """Return a mark at every game that was changed later: corrected, or voided and reinstated."""
    xs = _list_x_values(course, by)
    return [VerticalLine(xs[index], "changed later", describe(row)) for index, row in course.list_revised()]


def build_rank_line(label: str, rows: Sequence[RankChange], by: HorizontalAxis) -> Series:
    """Return a player's ranks as a line without dots. The line continues where the player has no rank for a while.

    By number of games, the line has the last rank at each number.
    """
    ranks = [(row.occurred_at if by == "date" else row.games, row.rank) for row in rows if row.rank is not None]
    if by == "games":
        ranks = [*dict(ranks).items()]
    return Series(label, [Point(x, Fraction(rank), "start") for x, rank in ranks])


def find_course_span(course: Course, by: HorizontalAxis) -> tuple[datetime, datetime] | tuple[int, int] | None:
    """Return the dates of the first and last step, or the numbers of the first and last game (0 without games).

    Return None for a course without steps.
    """
    if not course:
        return None
    if by == "date":
        return course.datetimes[0], course.datetimes[-1]
    games = sum(course.is_game)
    return min(1, games), games


def _list_x_values(course: Course, by: HorizontalAxis) -> Sequence[datetime | int]:
    return course.datetimes if by == "date" else [*accumulate(map(int, course.is_game))]


def _count_games_until(course: Course, instant: object) -> int:
    """Return the number of games played up to an instant."""
    assert isinstance(instant, datetime)
    return sum(course.is_game[: bisect_right(course.datetimes, instant)])
