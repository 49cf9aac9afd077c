"""Ladders of several pages: every player is on one of them, and inactive players can be left out."""

import json
from pathlib import Path

import pytest
from asking import Application, get, write_pages
from club import LADDER
from thresholds import set_thresholds

import ratings_ledger

PLAYER_COUNT = 5


@pytest.fixture(autouse=True)
def _limit_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit each page to two rows."""
    set_thresholds(monkeypatch, page_rows=2, spread_players=2)


def test_every_player_is_on_a_page(pages: Application, url: str) -> None:
    """Together, the pages have the rows of the standings without gaps; each page links to the others."""
    with ratings_ledger.open(url) as ledger:
        expected = ledger.at().standings(LADDER)
    rows = []
    for address in (f"/ladders/{LADDER}", f"/ladders/{LADDER}/_2", f"/ladders/{LADDER}/_3"):
        output = json.loads(get(pages, f"{address}.json").text)
        assert (output["digest"], output["players"]) == (expected.digest, PLAYER_COUNT)
        rows += [(row["rank"], row["player"]) for row in output["rows"]]
        assert 'aria-label="Pages"' in get(pages, address).text
    assert rows == [(row.rank, row.player) for row in expected.rows]
    assert 'href="all/_2"' in get(pages, f"/ladders/{LADDER}").text
    assert 'href="../all"' in get(pages, f"/ladders/{LADDER}/_2").text


@pytest.mark.parametrize("number", ["_1", "_0", "_02", "_4", "_x", "_", "_99999999"])
def test_other_numbers_are_no_pages(pages: Application, number: str) -> None:
    """Each page has a single address: the first has no number, and no page comes after the last."""
    assert get(pages, f"/ladders/{LADDER}/{number}").status == 404


@pytest.mark.slow_cases
def test_folder_has_all_pages(url: str, tmp_path: Path) -> None:
    """A folder has a file for each page of a ladder, which together have a row for every player."""
    write_pages(url, tmp_path / "site", "The club", {})
    assert (tmp_path / "site" / "MANIFEST.json").exists()
    pages = [(tmp_path / "site" / "ladders" / f"{LADDER}{number}.html").read_text() for number in ("", "/_2", "/_3")]
    assert [page.count('<td class="n rank">') for page in pages] == [2, 2, 1]


def test_inactive_players_can_be_left_out(pages: Application, url: str) -> None:
    """With a date, a ladder has the players who played since then, ranked among all players, and the same digest."""
    with ratings_ledger.open(url) as ledger:
        standings = ledger.at().standings(LADDER)
    output = json.loads(get(pages, f"/ladders/{LADDER}.json?active_since=2025-02-21").text)
    rest = json.loads(get(pages, f"/ladders/{LADDER}/_2.json?active_since=2025-02-21").text)
    active_rows = [*output["rows"], *rest["rows"]]
    absent = {row.player for row in standings.rows} - {row["player"] for row in active_rows}
    assert absent == {"Łukasz"}
    assert [(row["player"], row["rank"]) for row in active_rows] == [
        (row.player, row.rank) for row in standings.rows if row.player not in absent
    ]
    assert (output["digest"], output["players"]) == (standings.digest, PLAYER_COUNT - 1)
    page = get(pages, f"/ladders/{LADDER}?active_since=2025-02-21").text
    assert "Show all players" in page
    assert "all/_2?active_since=2025-02-21" in page
    assert '"all.json?active_since=2025-02-21' in page


def test_filter_of_active_players_needs_a_date_and_a_ladder(pages: Application) -> None:
    """A filter that is no date is refused with the reason, and so is a filter on a game; an empty ladder says so."""
    response = get(pages, f"/ladders/{LADDER}?active_since=yesterday")
    assert (response.status, "yesterday" in response.text) == (400, True)
    assert get(pages, "/games/g-1?active_since=2025-01-01").status == 400
    assert get(pages, f"/ladders/{LADDER}?active_since=2030-01-01").text.count("No player has played since") == 1


def test_spread_of_points_is_on_the_first_page(pages: Application) -> None:
    """The first page shows how the points of all players are spread: the bars have as many players as the ladder."""
    page = get(pages, f"/ladders/{LADDER}").text
    bars = [int(text.rpartition(": ")[2].split()[0]) for text in page.split("</title></rect>")[:-1]]
    assert sum(bars) == 2 * PLAYER_COUNT  # drawn twice, wide and narrow
    assert "are spread" not in get(pages, f"/ladders/{LADDER}/_2").text
