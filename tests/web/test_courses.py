"""Courses as lines, and the page of ranks: what each depends on, and what it does not."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from asking import Application, get
from club import LADDER, run_ok
from thresholds import set_thresholds

import ratings_ledger
from ratings_ledger.web.charts import Point
from ratings_ledger.web.course_charts import (
    build_points_line,
    build_rank_line,
    find_course_span,
    list_published_points,
    list_revision_marks,
)

Ratings = Callable[..., Any]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new events at every request."""
    set_thresholds(monkeypatch, head_us=0)


def load_course(url: str, player: str, as_of: str | None = None) -> Any:
    with ratings_ledger.open(url) as ledger:
        return ledger.at(as_of=as_of).profile(LADDER, player).steps


def test_line_has_every_step(url: str) -> None:
    """By date, steps are at their times, by number of games at 1, 2 ...; before them are the points at the start."""
    course = load_course(url, "anna")
    by_date = build_points_line("anna", course, "date", lambda row: "", lambda game_id: f"{game_id}.html").points
    by_games = build_points_line("anna", course, "games", lambda row: "").points
    values = [course[0].before, *(row.after for row in course)]
    assert [point.value for point in by_date] == [point.value for point in by_games] == values
    assert [point.x for point in by_date] == [course[0].occurred_at, *(row.occurred_at for row in course)]
    assert [point.x for point in by_games] == [0, 1, 2, 3, 4]
    links = [point.link() for point in by_date[1:] if callable(point.link)]
    assert links == ["g-1.html", "g-2.html", "g-3.html", "g-4.html"]


def test_published_points_are_at_the_end_of_their_list(url: str) -> None:
    """Points on the list of February are at its end; by number of games, at the number of games until then."""
    course = load_course(url, "anna")
    (published_point,) = list_published_points(course, lambda value: f"published {value}")
    assert published_point.x == datetime(2025, 2, 28, 22, 59, 59, 999999, UTC)
    assert published_point.value != course[-1].after
    by_games = build_points_line("anna", course, "games", lambda row: "", published=[published_point]).points
    assert [point.x for point in by_games if point.kind == "published"] == [4]


def test_corrected_games_are_marked(url: str, pages: Application) -> None:
    """Only the corrected game is marked, at the time or the number of the game."""
    course = load_course(url, "anna")
    assert [mark.x for mark in list_revision_marks(course, "date", lambda row: "")] == [course[0].occurred_at]
    assert [mark.x for mark in list_revision_marks(course, "games", lambda row: "")] == [1]
    for address in (f"/players/anna/{LADDER}", f"/players/anna/{LADDER}/_games"):
        assert get(pages, address).text.count("g-1 was changed later") == 2  # a chart, wide and narrow


def test_rank_line_has_the_last_rank_of_each_number_of_games() -> None:
    """By date, each rank is a point; by number of games, only the last rank at each number; the line has no gaps."""
    times = [datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    changes = zip(times, [3, None, 1, 2], [2, 2, 2, 3], strict=True)
    rows = [ratings_ledger.RankChange(None, at, rank, games) for at, rank, games in changes]
    assert build_rank_line("anna", rows, "date").points == [
        Point(times[0], Fraction(3), "start"),
        Point(times[2], Fraction(1), "start"),
        Point(times[3], Fraction(2), "start"),
    ]
    assert build_rank_line("anna", rows, "games").points == [
        Point(2, Fraction(1), "start"),
        Point(3, Fraction(2), "start"),
    ]


@pytest.mark.slow_cases
def test_page_of_ranks_is_the_same_at_its_position(pages: Application, url: str) -> None:
    """The page has the ranks of the library, and is the same when known at the position that it states."""
    for player in ("anna", "ben", "~e7~be~8e~e5~92~b2"):
        address = f"/players/{player}/{LADDER}/_ranks"
        output = json.loads(get(pages, f"{address}.json").text)
        with ratings_ledger.open(url) as ledger:
            expected = ledger.at().ranks(LADDER, output["player"]).model_dump()
        assert output["rows"] == expected["rows"]
        again = json.loads(get(pages, f"{address}.json?known_at={output['known_at']}").text)
        assert again == output
        assert "Rank of" in get(pages, address).text


@pytest.mark.slow
def test_games_of_others_change_a_page_only_with_its_ranks(pages: Application, url: str, ratings: Ratings) -> None:
    """A game of two others changes the page of anna's ranks only if it changes her ranks, otherwise neither page."""
    points, ranks = get(pages, f"/players/anna/{LADDER}").body, get(pages, f"/players/anna/{LADDER}/_ranks").body
    rows = json.loads(get(pages, f"/players/anna/{LADDER}/_ranks.json").text)["rows"]
    counts = {"same": 0, "changed": 0}
    for number in range(12):
        run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", f"late-{number}", "--at",
           f"2025-04-{number + 1:02d}T20:00Z", "美咲", "ben", db=url)  # fmt: skip
        new_rows = json.loads(get(pages, f"/players/anna/{LADDER}/_ranks.json").text)["rows"]
        after = get(pages, f"/players/anna/{LADDER}/_ranks").body
        assert (after == ranks) == (new_rows == rows), number
        counts["same" if new_rows == rows else "changed"] += 1
        if new_rows == rows:
            assert get(pages, f"/players/anna/{LADDER}").body == points
        rows, ranks, points = new_rows, after, get(pages, f"/players/anna/{LADDER}").body
    assert counts["same"] > 5


def test_strangers_have_no_page_of_ranks(pages: Application) -> None:
    """A player who is not on the ladder has no page of ranks; neither has a player without a ladder, or a game."""
    assert get(pages, f"/players/nobody/{LADDER}/_ranks").status == 404
    assert get(pages, "/players/anna/_ranks").status == 404
    assert get(pages, "/games/g-1/_ranks").status == 404


def test_ranks_are_drawn_as_far_as_the_points(pages: Application, url: str) -> None:
    """The axis of the rank chart reaches to the player's last game, even if the rank last changed before it."""
    course = load_course(url, "anna")
    assert find_course_span(course, "date") == (course[0].occurred_at, course[-1].occurred_at)
    assert find_course_span(course, "games") == (1, 4)
    assert find_course_span(load_course(url, "anna", "1999-12-31"), "date") is None
    assert "4 games" in get(pages, f"/players/anna/{LADDER}/_ranks").text
