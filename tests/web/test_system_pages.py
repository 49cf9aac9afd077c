"""Pages of rules with state: seasons, rating periods, partners and championships, each with its words and links."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from asking import get, serve, write_pages
from systems import LADDERS, create_systems

import ratings_ledger
from ratings_ledger import Absent
from ratings_ledger.web.addresses import GAME_PAGES_MAX
from ratings_ledger.web.page import format_change, format_percent
from tests.builders import build_game_draft
from tests.ledgers import append_drafts

Ratings = Callable[..., Any]
# what no page should show: values of Python, and numbers of nine or more digits, which are in the units of a state
ODD = re.compile(r"\b(None|nan|inf|NaN|Infinity|ABSENT|Fraction|Absent)\b|(?<![\w.:-])-?\d{9,}(?![\w:-])")


@pytest.fixture
def systems(copy_ledger_file: Callable[..., str]) -> str:
    """Return the ledger of all systems."""
    return copy_ledger_file(create_systems)


def extract_text(page: str) -> str:
    """Return the words of a page, including those in the titles of charts."""
    body = re.sub(r"<style.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    return unescape(body)


def find_odd(text: str) -> Iterator[tuple[str, str]]:
    """Yield each match of `ODD` in a text, and the text around it."""
    for match in ODD.finditer(text):
        yield match[0], text[max(0, match.start() - 40) : match.end() + 20]


def refuse_constant(constant: str) -> None:
    """Refuse NaN and the like in JSON."""
    raise AssertionError(constant)


def find_broken_links(folder: Path, file: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to a missing fragment of one."""
    page = file.read_text(encoding="utf-8")
    for link in {*re.findall(r'href="([^"]*)"', page)}:
        parts = urlsplit(unescape(link))
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if (
            not target.is_relative_to(folder)
            or not target.is_file()
            or (parts.fragment and f'id="{parts.fragment}"' not in target.read_text(encoding="utf-8"))
        ):
            yield link


@pytest.mark.parametrize("game_pages", [GAME_PAGES_MAX, 0], ids=["pages", "lines"])
def test_every_page_has_words_and_links(systems: str, tmp_path: Path, game_pages: int) -> None:
    """No page says None, nan or raw units, and every link leads somewhere, with pages of games and without."""
    folder = tmp_path / "site"
    write_pages(systems, folder, title="The club", names={}, game_pages_max=game_pages)
    odd, broken = [], []
    for file in sorted(folder.rglob("*")):
        name, content = file.name, file.read_text(encoding="utf-8") if file.is_file() else ""
        if file.suffix == ".html":
            odd += [(name, *around) for around in find_odd(extract_text(content))]
            broken += [(name, link) for link in find_broken_links(folder, file)]
        elif file.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
            odd += [(name, cell, "") for cell in cells if cell in ("None", "nan", "inf")]
        elif file.suffix == ".json":
            # the constants are NaN, Infinity and -Infinity
            json.loads(content, parse_constant=refuse_constant)
    assert odd == []
    assert broken == []


def test_pages_at_other_coordinates_have_words(systems: str) -> None:
    """Pages of a server show nothing odd, also in the middle of a season or of a rating period."""
    pages, odd = serve(systems, "The club", hosts=["localhost"]), []
    for ladder in LADDERS.values():
        player = "city" if "football" in ladder else "anna"
        for path in (
            f"ladders/{ladder}",
            f"players/{player}/{ladder}",
            f"players/{player}/{ladder}/_games",
            f"players/{player}/{ladder}/_ranks",
        ):
            for query in ("", "?as_of=2022-05-15", "?as_of=2024-02-15", "?known_at=60"):
                response = get(pages, f"/{path}{query}")
                assert response.status in (200, 404), (path, query, response.text)
                odd += [(path, query, *around) for around in find_odd(extract_text(response.text))]
    for game in ("chess-7", "football-13", "padel-4", "cup-1", "football-5"):
        response = get(pages, f"/games/{game}")
        assert response.status == 200
        odd += [(game, "", *around) for around in find_odd(extract_text(response.text))]
    assert odd == []


def test_changes_without_a_game_have_their_own_words(systems: str) -> None:
    """The account and the page of all games have a new season and a closed period, but not as adjustments."""
    pages = serve(systems, "The club", hosts=["localhost"])
    for ladder, player, words in (
        (LADDERS["season"], "city", "a new season"),
        (LADDERS["month"], "anna", "the rating period closed"),
    ):
        for path in (f"/players/{player}/{ladder}", f"/players/{player}/{ladder}/_games"):
            text = " ".join(extract_text(get(pages, path).text).split())
            assert words in text
            assert f"“{words}”" not in text
            assert f"adjustment “{words}" not in text
            assert f"{words} place" not in text
    assert "None was changed later" not in get(pages, f"/players/anna/{LADDERS['month']}").text


def test_commands_print_nothing_odd(ratings: Ratings, systems: str) -> None:
    """Histories and explanations of every ladder print no values of Python and no numbers in the units of a state."""
    odd = []
    for ladder in LADDERS.values():
        for player in ("city", "rovers") if "football" in ladder else ("anna", "emil"):
            for arguments in (("history", player, ladder), ("explain", player, ladder)):
                for output_format in ("table", "csv"):
                    result = ratings(*arguments, "--format", output_format, db=systems)
                    assert result.exit_code == 0, result
                    odd += [(arguments, output_format, *around) for around in find_odd(result.stdout)]
    for game, ladder in (("chess-7", "month"), ("chess-7", "game"), ("football-13", "season"), ("padel-4", "doubles")):
        result = ratings("explain", game, LADDERS[ladder], db=systems)
        assert result.exit_code == 0, result
        odd += [(game, ladder, *around) for around in find_odd(result.stdout)]
    assert odd == []


def test_ladders_predict_games_of_neighbours(systems: str) -> None:
    """A ladder predicts games of neighbours as the library does; without chances or games of two, it has none."""
    pages = serve(systems, "The club", hosts=["localhost"])
    for ladder in (LADDERS["month"], LADDERS["game"], LADDERS["season"], LADDERS["doubles"]):
        page = get(pages, f"/ladders/{ladder}").text
        outcomes = ["win", "draw", "loss"] if "If they draw" in page else ["win", "loss"]
        text = " ".join(extract_text(page).split())
        with ratings_ledger.open(systems) as ledger:
            view = ledger.at()
            players = [row.player for row in view.standings(ladder).rows]
            for pair in pairwise(players):
                prediction = view.predict(ladder, pair)
                for side, opponent in (prediction.sides, prediction.sides[::-1]):
                    phrases = [
                        format_percent(side.chance),
                        *(format_change(getattr(side.stakes, name)) for name in outcomes),
                    ]
                    assert f"{side.players[0]} against {opponent.players[0]} {' '.join(phrases)}" in text
        assert (">a draw</td>" in page) == bool(prediction.draw)
        assert ("If they draw" in page) == (ladder == LADDERS["season"])
    for ladder in (LADDERS["championship"], "weng-lin-padel/3-4"):
        assert "Predictions for neighbours" not in get(pages, f"/ladders/{ladder}").text
    beside = get(pages, f"/compare/players?ladder={LADDERS['game']}&player=anna&player=emil&player=ben").text
    text = " ".join(extract_text(beside).split())
    for pair in ("anna against emil", "emil against anna", "anna against ben", "emil against ben"):
        assert pair in text
    then = get(pages, f"/ladders/{LADDERS['game']}?as_of=2021-06-30").text
    assert "Predictions for neighbours" in then
    assert then != get(pages, f"/ladders/{LADDERS['game']}").text


def test_games_are_explained_with_the_state_and_the_period(systems: str) -> None:
    """A game's page shows how the game changed the deviation, and with which period it was scored."""
    text = " ".join(extract_text(get(serve(systems, "The club", hosts=["localhost"]), "/games/chess-7").text).split())
    with ratings_ledger.open(systems) as ledger:
        state = ledger.at().explain(LADDERS["game"], "chess-7").players[0].state
        assert not isinstance(state, Absent)
        assert f"deviation {state.before['deviation']} → {state.after['deviation']}" in text
    assert "scored with all games of its rating period, from 1 Aug 2021 to 31 Aug 2021" in text


@pytest.mark.slow_cases
def test_updated_site_equals_new_site(systems: str, tmp_path: Path) -> None:
    """After a game of two players, an updated site equals a new one, also where deviations of other players grew."""
    old, new = tmp_path / "old", tmp_path / "new"
    write_pages(systems, old, title="The club", names={}, game_pages_max=0)
    append_drafts(systems, build_game_draft("chess-later", "ben", "cleo", at="2024-03-20T20:00:00Z", game="chess"))
    for folder in (old, new):
        write_pages(systems, folder, title="The club", names={}, game_pages_max=0)
    for file in sorted(new.rglob("*.html")):
        assert (old / file.relative_to(new)).read_bytes() == file.read_bytes(), file


def test_game_page_follows_later_games_of_its_period(systems: str, tmp_path: Path) -> None:
    """A later game of the same rating period changes the page of an earlier game, also on an existing site."""
    old, new = tmp_path / "old", tmp_path / "new"
    pages = []
    for game_id, day in (("chess-early", 20), ("chess-later", 25)):
        append_drafts(systems, build_game_draft(game_id, "ben", "cleo", at=f"2024-03-{day}T20:00:00Z", game="chess"))
        write_pages(systems, old, title="The club", names={}, game_pages_max=1_000)
        pages.append((old / "games" / "chess-early.html").read_text(encoding="utf-8"))
    write_pages(systems, new, title="The club", names={}, game_pages_max=1_000)
    assert pages[0] != pages[1]
    for file in sorted(new.rglob("*.html")):
        assert (old / file.relative_to(new)).read_bytes() == file.read_bytes(), file


def test_chart_has_a_band_that_its_text_describes(ratings: Ratings, systems: str, tmp_path: Path) -> None:
    """On pages and in files, a rating with a deviation has a band, and the text says how wide it is at the end."""
    with ratings_ledger.open(systems) as ledger:
        last = ledger.at().history(LADDERS["game"], "anna").rows[-1]
    assert isinstance(last.state, dict)
    page = get(serve(systems, "The club", hosts=["localhost"]), f"/players/anna/{LADDERS['game']}").text
    assert page.count('class="band" d="M0') == 4  # the legend of two charts, drawn twice each
    assert page.count('class="band"') == 8
    description = unescape(re.findall(r"<desc[^>]*>([^<]*)</desc>", page)[0])
    match = re.search(r"the band is the rating ± its deviation, ([\d.]+) at the end", description)
    assert match is not None, description
    assert round(float(match[1])) == int(last.state["deviation"])
    assert f"{last.state['deviation']}?</title>" in page
    file = tmp_path / "chart.svg"
    assert ratings("chart", "anna", LADDERS["game"], "-o", file, db=systems).exit_code == 0
    chart = file.read_text()
    assert chart.count('class="band"') == 2
    assert f"the band is the rating ± its deviation, {match[1]}" in chart
    both = tmp_path / "both.svg"
    assert ratings("chart", "anna", "ben", LADDERS["game"], "-o", both, db=systems).exit_code == 0
    assert 'class="band"' not in both.read_text()
    assert "deviation" not in both.read_text()
