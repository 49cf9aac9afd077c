"""Pages that compare ladders or players: they agree with the commands, and refuse requests that make no sense."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import Application, get
from club import LADDER, LATE, run_ok
from thresholds import set_thresholds

Ratings = Callable[..., Any]


def test_comparison_equals_diff(pages: Application, url: str, ratings: Ratings) -> None:
    """For the coordinates of a `diff`, the page has its rows; the correction since the list caused gains and losses."""
    expected = json.loads(run_ok(ratings, "diff", "published", "now", LADDER, "--format", "json", db=url).stdout)
    output = json.loads(get(pages, f"/compare.json?a=published&b=now&ladder={LADDER}").text)
    for ladder in output["ladders"]:
        assert ladder.pop("quality")["before"] is None  # published lists predict nothing
    assert output == expected
    page = get(pages, f"/compare?a=published&b=now&ladder={LADDER}").text
    assert "<h3>Gains</h3>" in page
    assert "<h3>Losses</h3>" in page
    assert f"compare.json?a=published&amp;b=now&amp;ladder={LADDER.replace('/', '%2F')}" in page


@pytest.mark.slow_cases
def test_comparison_of_versions_equals_whatif(pages: Application, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """For two versions, the page shows who gains and loses and how well each version predicts, as `whatif` does."""
    text = run_ok(ratings, "rules", "show", "elo-catan", "--format", "toml", db=url).stdout
    later = tmp_path / "elo-catan-9.toml"
    text = re.sub(r"(?m)^version = .*$", 'version = "9"', text)
    text = re.sub(r"(?m)^effective_from = .*$", "effective_from = 2025-06-01", text)
    later.write_text(re.sub(r"(?m)^k_total = 32\b", "k_total = 64", text))
    expected = json.loads(run_ok(ratings, "whatif", str(later), "--ladder", LADDER, "--format", "json", db=url).stdout)[
        "variants"
    ][0]["ladders"][0]
    run_ok(ratings, "rules", "publish", str(later), "--by", "mira", db=url)
    address = f"?a=rules%3Delo-catan%401&b=rules%3Delo-catan%409&ladder={LADDER}"
    (ladder,) = json.loads(get(pages, f"/compare.json{address}").text)["ladders"]
    assert ladder["quality"] == expected["quality"]
    assert {row["player"]: row["after"] for row in ladder["rows"]} == {
        row["player"]: row["after"] for row in expected["changes"]
    }
    assert len(ladder["rows"]) > 2
    page = get(pages, f"/compare{address}").text
    for text in ("Log loss", "<h3>Gains</h3>", "<h3>Losses</h3>", "all games under elo-catan@9"):
        assert text in page
    assert "all games under elo-catan@1 against elo-catan@9" in get(pages, "/compare").text


REFUSALS = {
    "/compare?a=now": (400, "b is missing"),
    "/compare?a=whenever&b=now": (400, "whenever"),
    "/compare?a=now&b=rules%3Delo-catan%409": (404, "is published at position"),
    f"/compare?a=now&b=now&as_of=2025-01-01&ladder={LADDER}": (400, "a, b, ladder"),
    "/compare?a=now&b=now&ladder=elo-chess/all": (404, "no ruleset"),
    "/compare/games": (404, "/compare/players"),
    f"/compare/players?ladder={LADDER}&player=nobody": (404, "nobody"),
    f"/compare/players?ladder={LADDER}" + "&player=anna" * 7: (400, "at most 6"),
    "/compare/players?ladder=elo-chess/all&player=anna": (404, "no ruleset"),
    "/games/g-1?player=anna": (400, "player"),
}


@pytest.mark.parametrize("address", REFUSALS)
def test_refusals_tell_the_reason(pages: Application, address: str) -> None:
    """A request that cannot be answered has the right status and states the reason."""
    status, reason = REFUSALS[address]
    response = get(pages, address)
    assert (response.status, reason in response.text) == (status, True), response.text


def test_pages_without_a_query_are_forms(pages: Application) -> None:
    """Without a query, both pages are forms; the first one suggests comparisons, whose links lead to pages."""
    assert "Published lists against today’s" in get(pages, "/compare").text
    assert json.loads(get(pages, "/compare.json").text)["ladders"] == []
    assert get(pages, "/compare/players").text.count('name="player"') == 6
    suggestions = get(pages, "/compare").text.split('<ul class="story">')[1].split("</ul>")[0]
    links = re.findall('href="([^"]*)"', suggestions)
    assert links
    assert {get(pages, "/" + link.replace("&amp;", "&")).status for link in links} == {200}


def test_players_beside_each_other(pages: Application) -> None:
    """Each player is a single line, even if the query repeats them, with the points on the player's own page."""
    address = f"?ladder={LADDER}&player=anna&player=ben&player=anna"
    page, source = get(pages, f"/compare/players{address}").text, get(pages, f"/compare/players.json{address}").text
    output = json.loads(source)
    assert [player["player"] for player in output] == ["anna", "ben"]
    for player in output:
        assert player == json.loads(get(pages, f"/players/{player['player']}/{LADDER}.json").text)
    assert page.count('class="step"') >= 2 * 2 * 2  # by date and by games, wide and narrow, two lines
    assert get(pages, f"/compare/players.csv{address}").status == 404


def test_new_games_are_compared(
    pages: Application, url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison with now includes a game that is recorded while the server runs."""
    set_thresholds(monkeypatch, head_us=0)
    address = f"/compare.json?a=7&b=now&ladder={LADDER}"
    before = json.loads(get(pages, address).text)["ladders"][0]
    run_ok(ratings, *LATE, db=url)
    after = json.loads(get(pages, address).text)["ladders"][0]
    assert after["b"]["known_at"] > before["b"]["known_at"]
    assert after["rows"] != before["rows"]
