"""Courses as lines of charts: somebody's points, or ranks, by date or by number of games."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Literal

from projections.queries.answers_explained import Change
from projections.queries.answers_profiled import RankChange
from projections.queries.results import ABSENT
from ratings_ledger.web.axes import number_of
from ratings_ledger.web.charts import Mark, Point, Series

By = Literal["date", "games"]


def points_line(
    label: str,
    course: Sequence[Change],
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
    drawn = [Point(course[0].occurred_at if by == "date" else 0, course[0].before, "start")]
    for x, row in zip(places, course, strict=True):
        if row.game_id is None:
            drawn.append(Point(x, row.after, "change", partial(told, row)))
        else:
            drawn.append(Point(x, row.after, "game", partial(told, row), partial(link, row.game_id)))
    for one in published:
        drawn.append(one if by == "date" else replace(one, x=_games_by(course, one.x)))
    return Series(label, sorted(drawn, key=lambda point: number_of(point.x)))


def shown_otherwise(course: Sequence[Change], told: Callable[[Fraction], str]) -> list[Point]:
    """What published lists showed where the points are others now, at the times of the lists, each once."""
    shown = [(one, row) for row in course for one in (() if row.published is ABSENT else row.published)]
    found = [
        Point(one.as_of or row.occurred_at, one.points, "published", told(one.points))
        for one, row in shown if one.points is not None
    ]  # fmt: skip
    return [*dict.fromkeys(found)]


def revisions(course: Sequence[Change], by: By, told: Callable[[Change], str]) -> list[Mark]:
    """A mark where a game was played that was corrected later, or voided and counted again."""
    rows = zip(_places(course, by), course, strict=True)
    return [Mark(x, "corrected later", told(row)) for x, row in rows if row.revised_at is not None]


def rank_line(label: str, rows: Sequence[RankChange], by: By) -> Series:
    """Ranks as a line without dots; where somebody lost their rank for a while the line goes on.

    By number of games it has the last rank that they had with so many.
    """
    ranked = [(row.occurred_at if by == "date" else row.games, row.rank) for row in rows if row.rank is not None]
    if by == "games":
        ranked = [*dict(ranked).items()]
    return Series(label, [Point(x, Fraction(rank), "start") for x, rank in ranked])


def span_of(course: Sequence[Change], by: By) -> tuple[datetime, datetime] | tuple[int, int] | None:
    """From where to where a course reaches; None for one without steps."""
    if not course:
        return None
    if by == "date":
        return course[0].occurred_at, course[-1].occurred_at
    games = sum(row.game_id is not None for row in course)
    return min(1, games), games


def _places(course: Sequence[Change], by: By) -> Sequence[datetime | int]:
    """Where each step is on the axis across."""
    if by == "date":
        return [row.occurred_at for row in course]
    return [*accumulate(int(row.game_id is not None) for row in course)]


def _games_by(course: Sequence[Change], instant: object) -> int:
    """How many games had been played by an instant."""
    assert isinstance(instant, datetime)
    return sum(row.game_id is not None and row.occurred_at <= instant for row in course)
