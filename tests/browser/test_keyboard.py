"""With the keyboard alone, links and controls are reached in order and seen, and the skip link and the form work."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from club import LADDER
from page_checks import DESK, PHONE, Club, count_stops, open_tab, read_focus
from playwright.sync_api import Browser


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_every_stop_is_reached_and_seen(chromium: Browser, club: Club, width: int) -> None:
    """Tab goes to every link and control in the order of the page, and the focused one is visible and marked."""
    problems = []
    with open_tab(chromium, club, width) as (page, _):
        for path in club.list_sample_paths():
            page.goto(club.format_address(path))
            for expected in range(count_stops(page)):
                page.keyboard.press("Tab")
                focus = read_focus(page)
                if focus["number"] != expected or not focus["visible"] or not focus["marked"] or focus["covered"]:
                    problems.append(f"{path}, stop {expected}: {focus}")
    assert problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_focus_changes_the_picture(chromium: Browser, clubs: Callable[..., Club], scheme: str) -> None:
    """The first page looks different at each stop."""
    screenshots = set()
    with open_tab(chromium, clubs("small", "files"), DESK, scheme) as (page, _):
        page.goto(clubs("small", "files").format_address("index"))
        count = count_stops(page)
        for _ in range(count):
            page.keyboard.press("Tab")
            screenshots.add(page.screenshot())
        assert len(screenshots) == count > 5


def test_navigation_is_skipped(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """The link at the first stop skips the navigation: the next stop is the first link of the content."""
    club = clubs("small", "files")
    with open_tab(chromium, club) as (page, _):
        page.goto(club.format_address("index"))
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.querySelector('main a')")


def test_form_for_another_time_works_with_the_keyboard(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """The form is opened, filled in and sent with keys, and leads to the page at the other time."""
    club = clubs("small", "server")
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address(f"ladders/{LADDER}"))
        page.get_by_text("View at another time").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type("2025-01-31")
        page.keyboard.press("Enter")
        page.wait_for_url("**as_of=2025-01-31**")
        assert parse_qs(urlsplit(page.url).query) == {"as_of": ["2025-01-31"]}
        assert page.locator("table").first.locator("tbody tr").count() == 3
        assert page.locator("details[open]").count() == 1
    assert faults == []
