"""`chart` writes pictures of courses; tables on a wide terminal have small ones, and no other output has."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from terminals import run_on_terminal

Ratings = Callable[..., Any]
LADDER = "elo-catan/all"
SPARKS = "▁▂▃▄▅▆▇█"
EVIL = "<b>&amp; 'x' علي"


def make_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger of four games, a published list, and then a correction of one of the games."""
    steps = [["init", "--for", "catan", "--by", "mira"]]
    for number, players in enumerate((["anna", "ben", "cleo"], ["ben", "anna"], ["cleo", "ben"], [EVIL, "anna"]), 1):
        at = f"2025-01-{number:02d}T12:00Z"
        steps.append(["record", "-q", "--game", "catan", "--game-id", f"g-{number}", "--at", at,
                      "--new-names", "accept", *players])  # fmt: skip
    steps.append(["publish", LADDER, "--as-of", "2025-01-04"])
    steps.append(["correct", "g-2", "anna", "ben", "--reason", "wrong way round"])
    for step in steps:
        result = ratings(*step, db=url)
        assert result.exit_code == 0, result


pytestmark = pytest.mark.ledger(make=make_ledger)


def draw_chart(ratings: Ratings, db: str, output: Path, *arguments: str) -> str:
    result = ratings("chart", *arguments, "-o", output, db=db)
    assert (result.exit_code, result.stdout) == (0, ""), result
    text = output.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    return text


@pytest.mark.slow_cases
def test_picture_of_points(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """The picture of a player has a dot for each game, marks the corrected game, and shows the published points."""
    text = draw_chart(ratings, db, tmp_path / "anna.svg", "anna", LADDER)
    assert "Points of anna on elo-catan" in text
    assert text.count('class="dot"') == 3
    assert text.count("g-2 was changed later") == 1
    assert text.count("published: ") == 1
    assert draw_chart(ratings, db, tmp_path / "again.svg", LADDER, "anna") == text  # in either order, the same bytes


def test_several_players_and_ranks(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """A picture has one line for each player, even if named twice: of points or ranks, by date or number of games."""
    line_counts = {
        ("anna", "ben", "anna", LADDER): 2,
        ("anna", "ben", "cleo", LADDER, "--by", "games"): 3,
        ("anna", LADDER, "--rank"): 1,
        ("anna", "ben", LADDER, "--rank", "--by", "games"): 2,
    }
    for number, (arguments, count) in enumerate(line_counts.items()):
        text = draw_chart(ratings, db, tmp_path / f"{number}.svg", *arguments)
        legend = count if count > 1 else 0
        assert text.count('class="step"') == count + legend, arguments
        assert ("Ranks of" in text) == ("--rank" in arguments)
        assert ("3 games" in text) == ("--by" in arguments)  # the axis ends at the highest number of games


def test_player_named_twice_is_one(ratings: Ratings, one_db: str, tmp_path: Path) -> None:
    """A player who is named twice is counted once, and drawn like a player who is named once."""
    once = draw_chart(ratings, one_db, tmp_path / "once.svg", "anna", LADDER)
    result = ratings("chart", "anna", "anna", LADDER, "-o", tmp_path / "twice.svg", db=one_db)
    assert result.stderr.startswith("Points of 1 player in ")
    assert (tmp_path / "twice.svg").read_text(encoding="utf-8") == once


def test_picture_at_coordinates(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """Given coordinates, the picture shows what was known there, and states the coordinates."""
    text = draw_chart(ratings, db, tmp_path / "then.svg", "anna", LADDER, "--as-of", "2025-01-02", "--known-at", "5")
    assert text.count('class="dot"') == 2
    assert "Known at position 5, played up to 2025-01-02" in text
    assert "changed later" not in text


def test_hostile_names_are_text(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """A name full of markup stays text in the picture."""
    text = draw_chart(ratings, db, tmp_path / "evil.svg", EVIL, LADDER)
    assert "&lt;b&gt;&amp;amp;" in text
    assert "<b>" not in text


IMPOSSIBLE_CHARTS: dict[tuple[str, ...], tuple[int, str]] = {
    (LADDER,): (2, "name one to 6 players"),
    ("a", "b", "c", "d", "e", "f", "g", LADDER): (2, "name one to 6 players"),
    ("nobody", LADDER): (1, "nobody"),
    ("anna", "elo-chess/all"): (2, "elo-chess"),
    ("anna", LADDER, "--as-of", "2024-01-01"): (1, "has no game or adjustment"),
    ("anna", LADDER, "--rank", "--as-of", "2024-01-01"): (1, "never had a rank"),
    ("anna", LADDER, "--by", "luck"): (2, "luck"),
}


@pytest.mark.parametrize("arguments", IMPOSSIBLE_CHARTS)
def test_impossible_chart_is_refused(ratings: Ratings, one_db: str, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A chart that cannot be drawn is refused with the reason, and leaves no file."""
    code, reason = IMPOSSIBLE_CHARTS[arguments]
    result = ratings("chart", *arguments, "-o", tmp_path / "x.svg", db=one_db)
    assert result.exit_code == code, result
    assert reason in result.stderr
    assert list(tmp_path.glob("*.svg")) == []


def test_files_are_never_replaced(ratings: Ratings, one_db: str, tmp_path: Path) -> None:
    """An existing file, or a link that leads nowhere, stays as it is; a picture's name must end in .svg."""
    picture, link = tmp_path / "there.svg", tmp_path / "link.svg"
    picture.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere.svg")
    for path in (picture, link):
        result = ratings("chart", "anna", LADDER, "-o", path, db=one_db)
        assert (result.exit_code, "nothing was written" in result.stderr) == (2, True)
    assert picture.read_text() == "mine"
    assert not (tmp_path / "elsewhere.svg").exists()
    result = ratings("chart", "anna", LADDER, "-o", tmp_path / "x.png", db=one_db)
    assert (result.exit_code, "must end in .svg" in result.stderr) == (2, True)


def find_sparks(text: str) -> list[str]:
    return re.findall(f"[{SPARKS}]+", text)


@pytest.mark.slow
def test_terminals_show_courses(one_db: str) -> None:
    """On a terminal, each row of the standings has a course with a step for each game; a history has one course."""
    _, screen = run_on_terminal("--db", one_db, "standings", LADDER, columns=100)
    assert "course" in screen
    assert sorted(map(len, find_sparks(screen))) == [1, 2, 3, 3]
    _, screen = run_on_terminal("--db", one_db, "history", "anna", LADDER, columns=100)
    assert [len(sparks) for sparks in find_sparks(screen)] == [4]


@pytest.mark.slow
def test_others_show_none(one_db: str, ratings: Ratings) -> None:
    """A pipe, JSON, CSV, a published list, and a narrow terminal have no courses."""
    for command in (["standings", LADDER], ["history", "anna", LADDER]):
        piped, _ = run_on_terminal("--db", one_db, *command, columns=100, piped=True)
        assert find_sparks(piped) == []
        for options in (["--format", "json"], ["--format", "csv"]):
            _, screen = run_on_terminal("--db", one_db, *command, *options, columns=100)
            assert find_sparks(screen) == []
        _, screen = run_on_terminal("--db", one_db, *command, columns=50)
        assert find_sparks(screen) == []
    _, screen = run_on_terminal("--db", one_db, "standings", LADDER, "--as-published", columns=100)
    assert find_sparks(screen) == []
    result = ratings("standings", LADDER, db=one_db)
    assert (result.exit_code, find_sparks(result.stdout)) == (0, [])
