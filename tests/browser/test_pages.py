"""Every kind of page in a real browser: nothing is cut off, inaccessible or fetched from elsewhere."""

from collections.abc import Callable

import pytest
from club import HOSTILE, LADDER, SHORT
from page_checks import DESK, ODD_NAMES, PHONE, Club, list_cut_off, list_violations, open_tab
from playwright.sync_api import Browser

from ratings_ledger.web.addresses import encode_segment, player_ladder

# a server's pages are those of the files plus a form, so the two sources share the combinations of width and scheme
LOOKS = [
    ("files", PHONE, "light"),
    ("files", DESK, "dark"),
    ("server", PHONE, "dark"),
    ("server", DESK, "light"),
]
# pages that only a server has: at other coordinates, and refusals
PAGES_AT_COORDINATES = [f"ladders/{LADDER}?as_of=2025-01-31&known_at=7", f"players/anna/{LADDER}?as_of=2025-02-28"]
REFUSED_PAGES = ["nothing", f"ladders/{LADDER}?as_of=yesterday", "players/nobody"]


@pytest.mark.parametrize(("source", "width", "scheme"), LOOKS)
def test_pages_fit_and_load_nothing_else(
    chromium: Browser, clubs: Callable[..., Club], name: str, source: str, width: int, scheme: str
) -> None:
    """Without scripts every kind of page fits its width, loads nothing but its style, and causes no fault."""
    problems, club = [], clubs(name, source)
    with open_tab(chromium, club, width, scheme) as (page, faults):
        for path in club.list_sample_paths():
            page.goto(club.format_address(path))
            problems += [f"{path}: {problem}" for problem in list_cut_off(page)]
            assert page.locator("script, img, iframe, object, embed").count() == 0, path
            assert page.locator("h1").inner_text().strip(), path
    assert problems + faults == []


@pytest.mark.parametrize(("source", "width", "scheme"), LOOKS)
def test_axe_finds_nothing(
    chromium: Browser, clubs: Callable[..., Club], name: str, source: str, width: int, scheme: str
) -> None:
    """axe finds no violation on any kind of page."""
    problems, club = [], clubs(name, source)
    with open_tab(chromium, club, width, scheme, scripts=True) as (page, _):
        for path in club.list_sample_paths():
            page.goto(club.format_address(path))
            problems += [f"{path}: {problem}" for problem in list_violations(page)]
    assert problems == []


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_pages_of_rules_with_state(chromium: Browser, clubs: Callable[..., Club], width: int, scheme: str) -> None:
    """Pages with bands, deviations and predictions fit their width, describe the band in text, and pass axe."""
    problems, club = [], clubs("systems", "files")
    with open_tab(chromium, club, width, scheme, scripts=True) as (page, _):
        for path in club.list_sample_paths():
            page.goto(club.format_address(path))
            problems += [f"{path}: {problem}" for problem in list_cut_off(page) + list_violations(page)]
        page.goto(club.format_address("players/anna/glicko-chess/all"))
        chart = page.locator(".chart").first
        assert chart.locator(".band:visible").count() == 2  # of the legend and of the line
        picture = chart.locator("svg:visible [role=img]")
        assert "the band is the rating ± its deviation" in str(picture.locator("desc").text_content())
        colours = [
            chart.locator(f"{shape}:visible").last.evaluate(f"element => getComputedStyle(element).{style}")
            for shape, style in ((".band", "fill"), (".step", "stroke"))
        ]
        assert colours[0] == colours[1]
    assert problems == []


def test_axe_finds_what_is_wrong(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """axe reports colours with too little contrast and a field without a label, so it does run."""
    with open_tab(chromium, clubs("small", "files"), scripts=True) as (page, _):
        page.set_content('<p style="color: #999; background: #fff">grey</p><input>')
        violations = " ".join(list_violations(page))
    assert "color-contrast: " in violations
    assert "label: " in violations


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_pages_at_coordinates_and_refusals(chromium: Browser, clubs: Callable[..., Club], width: int) -> None:
    """Pages at other coordinates and refusals fit their width and pass axe."""
    club = clubs("small", "server")
    problems = []
    for scripts in (False, True):
        with open_tab(chromium, club, width, scripts=scripts) as (page, faults):
            for path in (*PAGES_AT_COORDINATES, *REFUSED_PAGES):
                response = page.goto(club.base + path)
                assert response is not None
                assert (response.status == 200) == (path in PAGES_AT_COORDINATES)
                problems += [
                    f"{path}: {problem}" for problem in list_cut_off(page) + (list_violations(page) if scripts else [])
                ]
            # Chromium logs the status of a refusal on the console
            assert [fault for fault in faults if "Failed to load resource" not in fault] == []
    assert problems == []


def test_wide_page_and_foreign_request_are_noticed(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """A page that is too wide is listed as cut off, and a request to another host is a fault."""
    club = clubs("small", "files")
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address("index"))
        page.set_content(
            '<p style="white-space: nowrap">' + "wide " * 200 + '</p><img src="http://elsewhere.example/x.png">'
        )
        assert list_cut_off(page)
    assert any("elsewhere.example" in fault for fault in faults)


@pytest.mark.parametrize("source", ["files", "server"])
@pytest.mark.parametrize("player", [HOSTILE, *ODD_NAMES])
def test_odd_names_are_text(chromium: Browser, clubs: Callable[..., Club], player: str, source: str) -> None:
    """An odd name is the heading and in the title of its page, is a link in the ladder, and fits a phone."""
    club = clubs("small", source)
    with open_tab(chromium, club, PHONE) as (page, faults):
        page.goto(club.format_address("/".join(player_ladder(player, LADDER))))
        assert page.locator("h1").inner_text() == player
        assert player in page.title()
        assert list_cut_off(page) == []
        page.get_by_role("link", name=SHORT, exact=True).first.click()
        page.get_by_role("link", name=player, exact=True).first.click()
        # closing the tab before the page is loaded would abort its requests
        page.wait_for_url(lambda url: encode_segment(player) in url)
    assert faults == []
