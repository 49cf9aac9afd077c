"""Ladders of several pages: each player is on one of them, and inactive players can be left out."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest
from asking import Application, get, write_pages
from club import LADDER
from thresholds import set_thresholds

import ratings_ledger

PLAYERS = 5


@pytest.fixture(autouse=True)
def _limit_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit each page to two rows."""
    set_thresholds(monkeypatch, page_rows=2, spread_players=2)


def test_each_player_is_on_a_page(pages: Application, url: str) -> None:
    """Pages follow each other without gaps: together they have the rows of the standings, each with its links."""
    with ratings_ledger.open(url) as ledger:
        expected = ledger.at().standings(LADDER)
    rows = []
    for address in (f"/ladders/{LADDER}", f"/ladders/{LADDER}/_2", f"/ladders/{LADDER}/_3"):
        output = json.loads(get(pages, f"{address}.json").text)
        assert (output["digest"], output["players"]) == (expected.digest, PLAYERS)
        rows += [(row["rank"], row["player"]) for row in output["rows"]]
        assert 'aria-label="Pages"' in get(pages, address).text
    assert rows == [(row.rank, row.player) for row in expected.rows]
    assert 'href="all/_2"' in get(pages, f"/ladders/{LADDER}").text
    assert 'href="../all"' in get(pages, f"/ladders/{LADDER}/_2").text


@pytest.mark.parametrize("number", ["_1", "_0", "_02", "_4", "_x", "_", "_99999999"])
def test_other_numbers_are_not_pages(pages: Application, number: str) -> None:
    """Each page has one address: the first page has no number, and there is no page after the last."""
    assert get(pages, f"/ladders/{LADDER}/{number}").status == 404


@pytest.mark.slow_cases
def test_folder_has_all_pages(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site in a folder has a file for each page of a ladder, and each player is in one of these files."""
    set_thresholds(monkeypatch, page_rows=2)
    write_pages(url, tmp_path / "site", "The club", {})
    assert (tmp_path / "site" / "MANIFEST.json").exists()
    texts = [(tmp_path / "site" / "ladders" / f"{LADDER}{number}.html").read_text() for number in ("", "/_2", "/_3")]
    names_by_page = [re.findall(r'<td class="n rank">.*?<bdi>(.*?)</bdi>', text) for text in texts]
    assert [len(names) for names in names_by_page] == [2, 2, 1]
    assert len({*chain.from_iterable(names_by_page)}) == PLAYERS


def test_inactive_players_can_be_left_out(pages: Application, url: str) -> None:
    """With a date, a ladder lists only players who have played since the start of that day, with their ranks among all
    players and the digest of the whole ladder.
    """
    with ratings_ledger.open(url) as ledger:
        full_standings = ledger.at().standings(LADDER)
    output = json.loads(get(pages, f"/ladders/{LADDER}.json?active_since=2025-02-21").text)
    rest = json.loads(get(pages, f"/ladders/{LADDER}/_2.json?active_since=2025-02-21").text)
    active_rows = [*output["rows"], *rest["rows"]]
    absent = {row.player for row in full_standings.rows} - {row["player"] for row in active_rows}
    assert absent == {"Łukasz"}
    assert [(row["player"], row["rank"]) for row in active_rows] == [
        (row.player, row.rank) for row in full_standings.rows if row.player not in absent
    ]
    assert (output["digest"], output["players"]) == (full_standings.digest, PLAYERS - 1)
    page = get(pages, f"/ladders/{LADDER}?active_since=2025-02-21").text
    assert "Show all players" in page
    assert "all/_2?active_since=2025-02-21" in page
    assert '"all.json?active_since=2025-02-21' in page


def test_active_since_needs_a_date_and_a_ladder(pages: Application) -> None:
    """A value that is not a date is refused with the reason; on a page other than a ladder's, the filter is refused.

    After a date in the future, the ladder says that no player has played.
    """
    response = get(pages, f"/ladders/{LADDER}?active_since=yesterday")
    assert (response.status, "yesterday" in response.text) == (400, True)
    assert get(pages, "/games/g-1?active_since=2025-01-01").status == 400
    assert get(pages, f"/ladders/{LADDER}?active_since=2030-01-01").text.count("No player has played since") == 1


def test_rating_distribution_is_on_the_first_page(pages: Application) -> None:
    """Only the first page shows the rating distribution; its bars together count every player of the ladder."""
    page = get(pages, f"/ladders/{LADDER}").text
    bars = [int(text.rpartition(": ")[2].split()[0]) for text in page.split("</title></rect>")[:-1]]
    assert sum(bars) == 2 * PLAYERS  # drawn twice, wide and narrow
    assert "Rating distribution" in page
    assert "Rating distribution" not in get(pages, f"/ladders/{LADDER}/_2").text
