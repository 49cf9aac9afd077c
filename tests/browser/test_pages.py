"""Every kind of page in a real browser: nothing is cut off, nobody is shut out, nothing comes from elsewhere."""

from collections.abc import Callable

import pytest
from club import HOSTILE, LADDER, SHORT
from looking import DESK, ODD, PHONE, Club, list_cut_off, list_violations, open_tab
from playwright.sync_api import Browser

from ratings_ledger.web.addresses import encode_segment, player_ladder

# a server's pages are those of the files, with a form more; so each width is seen in both schemes, once
LOOKS = [
    ("files", PHONE, "light"), ("files", DESK, "dark"), ("server", PHONE, "dark"), ("server", DESK, "light"),
]  # fmt: skip
# what only a server has: other coordinates, and refusals
ASKED = [f"ladders/{LADDER}?as_of=2025-01-31&known_at=7", f"players/anna/{LADDER}?as_of=2025-02-28"]
REFUSED = ["nothing", f"ladders/{LADDER}?as_of=yesterday", "players/nobody"]


@pytest.mark.parametrize(("source", "width", "scheme"), LOOKS)
def test_pages_fit_and_load_nothing_else(
    chromium: Browser, clubs: Callable[..., Club], name: str, source: str, width: int, scheme: str
) -> None:
    """Without scripts every kind of page fits its width, asks for its style alone, and has nothing to complain of."""
    found, club = [], clubs(name, source)
    with open_tab(chromium, club, width, scheme) as (page, wrong):
        for path in club.list_kinds():
            page.goto(club.format_address(path))
            found += [f"{path}: {one}" for one in list_cut_off(page)]
            assert page.locator("script, img, iframe, object, embed").count() == 0, path
            assert page.locator("h1").inner_text().strip(), path
    assert found + wrong == []


@pytest.mark.parametrize(("source", "width", "scheme"), LOOKS)
def test_axe_finds_nothing(
    chromium: Browser, clubs: Callable[..., Club], name: str, source: str, width: int, scheme: str
) -> None:
    """No rule of axe is broken on any kind of page."""
    found, club = [], clubs(name, source)
    with open_tab(chromium, club, width, scheme, scripts=True) as (page, _):
        for path in club.list_kinds():
            page.goto(club.format_address(path))
            found += [f"{path}: {one}" for one in list_violations(page)]
    assert found == []


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_pages_of_rules_with_state(chromium: Browser, clubs: Callable[..., Club], width: int, scheme: str) -> None:
    """Bands, deviations and predictions fit a phone, are read by those who do not see, and break no rule of axe."""
    found, club = [], clubs("systems", "files")
    with open_tab(chromium, club, width, scheme, scripts=True) as (page, _):
        for path in club.list_kinds():
            page.goto(club.format_address(path))
            found += [f"{path}: {one}" for one in list_cut_off(page) + list_violations(page)]
        page.goto(club.format_address("players/anna/glicko-chess/all"))
        chart = page.locator(".chart").first
        assert chart.locator(".band:visible").count() == 2  # of the legend and of the line
        picture = chart.locator("svg:visible [role=img]")
        assert "the band is the rating ± its deviation" in str(picture.locator("desc").text_content())
        colours = [
            chart.locator(f"{shape}:visible").last.evaluate(f"one => getComputedStyle(one).{style}")
            for shape, style in ((".band", "fill"), (".step", "stroke"))
        ]
        assert colours[0] == colours[1]
    assert found == []


def test_axe_finds_what_is_wrong(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """Where colours are too close and a field has no name, axe says so: it runs."""
    with open_tab(chromium, clubs("small", "files"), scripts=True) as (page, _):
        page.set_content('<p style="color: #999; background: #fff">grey</p><input>')
        told = " ".join(list_violations(page))
    assert "color-contrast" in told
    assert "label" in told


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_pages_at_coordinates_and_refusals(chromium: Browser, clubs: Callable[..., Club], width: int) -> None:
    """Pages at other coordinates, with their form open, and refusals are as fit as the others."""
    club = clubs("small", "server")
    found = []
    for scripts in (False, True):
        with open_tab(chromium, club, width, scripts=scripts) as (page, wrong):
            for path in (*ASKED, *REFUSED):
                told = page.goto(club.base + path)
                assert told is not None
                assert (told.status == 200) == (path in ASKED)
                found += [f"{path}: {one}" for one in list_cut_off(page) + (list_violations(page) if scripts else [])]
            # a refusal's status is told on the console, too
            assert [one for one in wrong if "Failed to load resource" not in one] == []
    assert found == []


def test_too_wide_and_foreign_things_are_seen(chromium: Browser, clubs: Callable[..., Club]) -> None:
    """A page that does not fit, or asks another host for something, does not pass for one that is well."""
    club = clubs("small", "files")
    with open_tab(chromium, club, PHONE) as (page, wrong):
        page.goto(club.format_address("index"))
        page.set_content(
            '<p style="white-space: nowrap">' + "wide " * 200 + '</p><img src="http://elsewhere.example/x.png">'
        )
        assert list_cut_off(page)
    assert any("elsewhere.example" in one for one in wrong)


@pytest.mark.parametrize("source", ["files", "server"])
@pytest.mark.parametrize("player", [HOSTILE, *ODD])
def test_odd_names_are_text(chromium: Browser, clubs: Callable[..., Club], player: str, source: str) -> None:
    """However odd a name, it is the heading and the title of its page, is read in the ladder, and fits a phone."""
    club = clubs("small", source)
    with open_tab(chromium, club, PHONE) as (page, wrong):
        page.goto(club.format_address("/".join(player_ladder(player, LADDER))))
        assert page.locator("h1").inner_text() == player
        assert player in page.title()
        assert list_cut_off(page) == []
        page.get_by_role("link", name=SHORT, exact=True).first.click()
        page.get_by_role("link", name=player, exact=True).first.click()
        page.wait_for_url(
            lambda url: encode_segment(player) in url
        )  # until it is loaded: to close a page sooner aborts that
    assert wrong == []
