"""Courses as lines of charts: somebody's points, or ranks, by date or by number of games."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import accumulate, repeat
from typing import Literal

from ratings_ledger.projections.queries.history import Change, Course, RankChange
from ratings_ledger.web.axes import number_of
from ratings_ledger.web.charts import Mark, Point, Series

By = Literal["date", "games"]


def points_line(
    label: str,
    course: Course,
    by: By,
    told: Callable[[Change], str],
    link: Callable[[str], str] = lambda _: "",
    published: Sequence[Point] = (),
) -> Series:
    """Points as a line: from what they were before the first step, to after every game and adjustment.

    `told` is the title of a step, `link` what a game's dot leads to; `published` are points at the times of lists.
    By number of games the first game is 1, and an adjustment is where the last game before it is.
    """
    if not course:
        return Series(label, ())
    places = _places(course, by)
    drawn = [Point(course.moments[0] if by == "date" else 0, course.start, "start")]
    steps = zip(places, course.values, course.is_game, course.deviations or repeat(None), strict=False)
    for index, (x, value, is_game, deviation) in enumerate(steps):
        title = partial(_title, told, course, index)
        if is_game:
            drawn.append(Point(x, value, "game", title, partial(_link, link, course, index), deviation))
        else:
            drawn.append(Point(x, value, "change", title, spread=deviation))
    if published:
        drawn += [one if by == "date" else one._replace(x=_games_by(course, one.x)) for one in published]
        drawn.sort(key=lambda point: number_of(point.x))
    return Series(label, drawn)


def _title(told: Callable[[Change], str], course: Course, index: int) -> str:
    return told(course[index])


def _link(link: Callable[[str], str], course: Course, index: int) -> str:
    return link(course[index].game_id or "")


def describe_band(course: Course, told: Callable[[Fraction], str]) -> str:
    """Describe the band around the line of a course: a clause, or nothing for a rule without a deviation."""
    if not course.deviations:
        return ""
    return f"; the band is the rating ± its deviation, {told(course.deviations[-1])} at the end"


def shown_otherwise(course: Course, told: Callable[[Fraction], str]) -> list[Point]:
    """Return what published lists showed where the points are others now, at the times of the lists, each once."""
    shown = [(one, index) for index, lists in course.published.items() for one in lists]
    found = [
        Point(one.as_of or course.moments[index], one.points, "published", told(one.points))
        for one, index in sorted(shown, key=lambda one: one[1]) if one.points is not None
    ]  # fmt: skip
    return [*dict.fromkeys(found)]


def revisions(course: Course, by: By, told: Callable[[Change], str]) -> list[Mark]:
    """Return a mark where a game was played that was corrected later, or voided and counted again."""
    places = _places(course, by)
    return [Mark(places[index], "corrected later", told(row)) for index, row in course.revised()]


def rank_line(label: str, rows: Sequence[RankChange], by: By) -> Series:
    """Ranks as a line without dots; where somebody lost their rank for a while the line goes on.

    By number of games it has the last rank that they had with so many.
    """
    ranked = [(row.occurred_at if by == "date" else row.games, row.rank) for row in rows if row.rank is not None]
    if by == "games":
        ranked = [*dict(ranked).items()]
    return Series(label, [Point(x, Fraction(rank), "start") for x, rank in ranked])


def span_of(course: Course, by: By) -> tuple[datetime, datetime] | tuple[int, int] | None:
    """From where to where a course reaches; None for one without steps."""
    if not course:
        return None
    if by == "date":
        return course.moments[0], course.moments[-1]
    games = sum(course.is_game)
    return min(1, games), games


def _places(course: Course, by: By) -> Sequence[datetime | int]:
    """Return where each step is on the axis across."""
    return course.moments if by == "date" else [*accumulate(map(int, course.is_game))]


def _games_by(course: Course, instant: object) -> int:
    """Return how many games had been played by an instant."""
    assert isinstance(instant, datetime)
    return sum(course.is_game[: bisect_right(course.moments, instant)])
