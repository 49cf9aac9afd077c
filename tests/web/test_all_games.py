"""Long accounts: one line sums the earlier games, and a page of its own has every game, by month."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from asking import Application, get
from club import LADDER, LATE, run_ok
from test_sites import Links, write_site
from thresholds import set_thresholds

Ratings = Callable[..., Any]
BEN = f"/players/ben/{LADDER}"


@pytest.fixture(autouse=True)
def _limit_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit accounts to one game, and look for new events at every request."""
    set_thresholds(monkeypatch, page_lines=1)
    set_thresholds(monkeypatch, head_us=0)


def read_account(page: str) -> list[list[str]]:
    """Return the rows of a page's account, as texts."""
    table = page.partition('<table class="account">')[2].partition("</table>")[0]
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    return [
        [" ".join(re.sub(r"<[^>]*>", "", cell).split()) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]
        for row in rows
    ]


def parse_number(text: str) -> float:
    return float(text.replace("−", "-").replace("±", "").replace(",", ""))


@pytest.mark.slow
def test_one_line_sums_earlier_games(pages: Application, url: str, ratings: Ratings) -> None:
    """After a list, a correction and two games, the account has the correction, the last game, and the sum.

    One line sums the earlier games, here a single one, and links to all games.
    """
    run_ok(ratings, *LATE, db=url)
    page = get(pages, BEN).text
    _, opening, corrected, earlier, last, end = read_account(page)
    assert opening[1] == "As published"
    assert corrected[1].startswith("g-1: corrected")
    assert earlier[:2] == ["7 Mar 2025", "1 game until then"]
    assert last[1].startswith("g-6")
    assert parse_number(opening[3]) + sum(parse_number(row[2]) for row in (corrected, earlier, last)) == pytest.approx(
        parse_number(end[3]), abs=0.02
    )
    assert '<a href="all/_games">1 game until then</a>' in page
    assert '<a href="all/_games">All 5 games</a>' in page


def test_page_of_all_games_has_every_one(pages: Application, url: str, ratings: Ratings) -> None:
    """The page has each game below its month, whose change is the sum of its games; its JSON has the course."""
    run_ok(ratings, *LATE, db=url)
    rows = read_account(get(pages, f"{BEN}/_games").text)[1:]
    course = json.loads(get(pages, f"{BEN}.json").text)["course"]
    assert json.loads(get(pages, f"{BEN}/_games.json").text)["rows"] == course
    assert get(pages, f"{BEN}/_games.csv").text == get(pages, f"{BEN}.csv").text
    games = [row[1].split()[0] for row in rows if len(row) == 4][1:-1]
    assert games == [entry["game_id"] for entry in course] == ["g-1", "g-2", "g-3", "g-5", "g-6"]
    months = {row[0]: parse_number(row[1]) for row in rows if len(row) == 3}
    assert [*months] == ["January 2025 · 2 games", "February 2025 · 1 game", "March 2025 · 2 games"]
    changes = [parse_number(entry["change_decimal"]) for entry in course]
    assert [*months.values()] == pytest.approx([sum(changes[:2]), changes[2], sum(changes[3:])], abs=0.01)
    assert parse_number(rows[0][3]) + sum(months.values()) == pytest.approx(parse_number(rows[-1][3]), abs=0.02)


@pytest.mark.slow_cases
def test_all_games_are_the_same_at_their_position(pages: Application, url: str, ratings: Ratings) -> None:
    """Known at the position that it states, the page is the same; a game of other players changes no byte of it."""
    before = get(pages, f"{BEN}/_games")
    output = json.loads(get(pages, f"{BEN}/_games.json").text)
    assert json.loads(get(pages, f"{BEN}/_games.json?known_at={output['known_at']}").text) == output
    run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-9", "--at", "2025-04-14T20:00Z", "anna", "美咲",
       db=url)  # fmt: skip
    assert get(pages, f"{BEN}/_games").body == before.body
    run_ok(ratings, *LATE, db=url)
    assert get(pages, f"{BEN}/_games").body != before.body


def test_strangers_have_no_games(pages: Application) -> None:
    """A player who is not on the ladder has no page of all games, and neither has the ladder itself."""
    assert get(pages, f"/players/nobody/{LADDER}/_games").status == 404
    assert get(pages, f"/ladders/{LADDER}/_games").status == 404


@pytest.mark.slow
def test_charts_lead_to_lines_of_earlier_games(url: str, ratings: Ratings, tmp_path: Path) -> None:
    """Where games have no pages, the chart links to each game's line, on the same page or on the page of all games."""
    run_ok(ratings, *LATE, db=url)
    files = write_site(url, tmp_path / "site", 1)
    name = f"players/ben/{LADDER}.html"
    targets = {urlsplit(urljoin(f"http://site/{name}", link)) for link in Links(files[name]).links if "#game-" in link}
    assert {(target.path[1:], target.fragment) for target in targets} == {
        (name, "game-g-6"),
        *((f"players/ben/{LADDER}/_games.html", f"game-g-{n}") for n in (1, 2, 3, 5)),
    }
    for target in targets:
        assert target.fragment in Links(files[target.path[1:]]).ids
