"""A stranger with a phone, who knows no address, finds answers by tapping links from the first page on."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from club import LADDER, SHORT, run_ok
from page_checks import PHONE, Club, open_tab, parse_number
from playwright.sync_api import Browser, Locator, Page

Ratings = Callable[..., Any]


@pytest.fixture(params=["files", "server"])
def club(request: pytest.FixtureRequest, clubs: Callable[..., Club]) -> Club:
    """Return the pages of the small club, from each source in turn."""
    return clubs("small", request.param)


def read_output(ratings: Ratings, club: Club, *arguments: str) -> Any:
    """Return the JSON that a command prints about the club's ledger."""
    return json.loads(run_ok(ratings, *arguments, "--format", "json", db=club.ledger).stdout)


def read_table(page: Page | Locator, heading: str) -> list[list[str]]:
    """Return the visible cells of the table below a heading, row by row."""
    table = page.locator(f"xpath=//*[self::h1 or self::h2 or self::h3][contains(., '{heading}')]/following::table[1]")
    return [row.locator("td:visible").all_inner_texts() for row in table.first.locator("tbody tr").all()]


def tap(link: Locator) -> None:
    """Follow a link, and wait until the page has loaded completely."""
    with link.page.expect_navigation():
        link.click()


def test_who_leads(chromium: Browser, club: Club, ratings: Ratings) -> None:
    """One tap on the first page opens the ladder, with the leader in its first row."""
    leader = read_output(ratings, club, "standings", LADDER)["rows"][0]
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address("index"))
        tap(page.get_by_role("link", name=SHORT, exact=True).first)
        rank, name, points, *_ = read_table(page, SHORT)[0]
        assert (rank, name.split()[0]) == ("1", leader["player"])
        assert abs(parse_number(points) - float(leader["points_decimal"])) < 0.01
    assert faults == []


def test_why_somebody_lost_points(chromium: Browser, club: Club, ratings: Ratings) -> None:
    """Two taps open a player's page, which says line by line what changed their points; a third explains a game."""
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address("index"))
        tap(page.get_by_role("link", name=SHORT, exact=True).first)
        tap(page.get_by_role("link", name="anna", exact=True).first)
        first, *lines, last = read_table(page, "Changes")
        changes = [parse_number(line[2]) for line in lines]
        assert parse_number(last[2]) == pytest.approx(sum(changes), abs=0.05)
        assert parse_number(last[2]) < 0
        assert parse_number(last[3]) == pytest.approx(parse_number(first[3]) + sum(changes), abs=0.05)
        reason = next(line[1] for line in lines if parse_number(line[2]) < 0)
        assert "g-1" in reason
        assert "scores <read> wrong" in reason
        tap(page.get_by_role("link", name="g-1", exact=True).first)
        assert "Corrected on" in page.locator(".story").inner_text()
        terms = read_table(page, "anna")
        explanation = read_output(ratings, club, "explain", "g-1", LADDER)
        anna = next(player for player in explanation["players"] if player["player"] == "anna")
        assert sum(parse_number(term[-1]) for term in terms[:-1]) == pytest.approx(
            float(anna["change_decimal"]), abs=0.05
        )
    assert faults == []


def test_what_was_published_and_why_it_differs(chromium: Browser, club: Club, ratings: Ratings) -> None:
    """The first page links to the February list; a player's page shows their points on it, and why they changed."""
    published = read_output(ratings, club, "standings", LADDER, "--as-published")["rows"]
    current_rows = {row["player"]: row for row in read_output(ratings, club, "standings", LADDER)["rows"]}
    with open_tab(chromium, club, PHONE) as (page, faults):
        for row in published:
            page.goto(club.format_address("index"))
            section = page.locator("h2", has_text="Latest lists").locator("xpath=following-sibling::ul[1]")
            tap(section.get_by_role("link", name=SHORT, exact=True))
            tap(page.get_by_role("link", name=row["player"], exact=True).first)
            first, *lines, last = read_table(page, "since the published list")
            assert first[1] == "As published"
            assert parse_number(first[3]) == pytest.approx(float(row["points_decimal"]), abs=0.006)
            current = float(current_rows[row["player"]]["points_decimal"])
            assert parse_number(last[3]) == pytest.approx(current, abs=0.006)
            assert all(line[1] for line in lines)
    assert faults == []


def test_why_the_published_list_differs(chromium: Browser, club: Club, ratings: Ratings) -> None:
    """One tap shows the February list, today's, and the correction that sets them apart; another, its impact."""
    published = read_output(ratings, club, "standings", LADDER, "--as-published")["rows"]
    todays_rows = read_output(ratings, club, "standings", LADDER, "--as-of", "2025-02-28")["rows"]
    todays_points = {row["player"]: float(row["points_decimal"]) for row in todays_rows}
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address("index"))
        section = page.locator("h2", has_text="Latest lists").locator("xpath=following-sibling::ul[1]")
        tap(section.get_by_role("link", name=SHORT, exact=True))
        assert "would differ for" in page.locator("main").inner_text()
        rows = {row[1]: row for row in read_table(page, "Comparison with today’s list")}
        for row in published:
            before, difference, now = map(parse_number, rows[row["player"]][2:5])
            assert before == pytest.approx(float(row["points_decimal"]), abs=0.006)
            assert now == pytest.approx(todays_points[row["player"]], abs=0.006)
            assert difference == pytest.approx(now - before, abs=0.011)
        assert "scores <read> wrong" in page.locator(".story").inner_text()
        tap(page.locator(".story").get_by_role("link", name="impact").first)
        assert "g-1" in page.locator("h1").inner_text()
        assert "anna" in page.locator("main").inner_text()
    assert faults == []
