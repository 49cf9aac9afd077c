"""Opponents and scores are shown in `history`, `explain PLAYER`, `games` and on the pages, also after voids,
corrections and renames."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from asking import write_pages
from stores import make_empty_ledger

Ratings = Callable[..., Any]

GAMES = """game_id,occurred_at,game,player,place,score
g-1,2024-01-01T20:00Z,catan,anna,1,10
g-1,2024-01-01T20:00Z,catan,ben,2,8
g-1,2024-01-01T20:00Z,catan,cleo,3,7
g-2,2024-01-02T20:00Z,catan,ben,1,10
g-2,2024-01-02T20:00Z,catan,anna,2,6
g-3,2024-01-03T20:00Z,catan,anna,1,
g-3,2024-01-03T20:00Z,catan,cleo,2,
"""
# anna's games: her place, her score, and her opponents with their scores
ANNAS_GAMES = {
    "g-1": ("1", "10", "benno (8), cleo (7)"),
    "g-2": ("2", "6", "benno (10)"),
    "g-3": ("1", "", "cleo"),
    "g-4": ("2", "8", "cleo (9)"),
}


pytestmark = pytest.mark.ledger(make=make_empty_ledger)


@pytest.fixture
def club(db: str, ratings: Ratings, tmp_path: Path) -> str:
    """Return a ledger where g-2 was voided and reinstated, g-4 was corrected, and ben was renamed to benno."""
    (tmp_path / "games.csv").write_text(GAMES)
    game_options = ("--game", "catan", "--game-id", "g-4", "--at", "2024-01-04T20:00Z")
    for command in (
        ("init", "--for", "catan"),
        ("import", str(tmp_path / "games.csv")),
        ("void", "g-2", "--reason", "unsure"),
        ("reinstate", "g-2", "--reason", "sure"),
        ("record", "-q", *game_options, "anna", "cleo"),
        ("player", "rename", "ben", "benno"),
    ):
        result = ratings(*command, db=db)
        assert result.exit_code == 0, (command, result.stderr)
    correction = '{"game_id": "g-4", "game": "catan", "participants": [' + (
        '{"player": "cleo", "place": 1, "score": 9}, {"player": "anna", "place": 2, "score": 8}]}'
    )
    result = ratings("correct", "g-4", "--reason", "from the sheet", db=db, input=correction)
    assert result.exit_code == 0, result.stderr
    return db


@pytest.mark.slow_cases
def test_history_names_opponents_and_scores(club: str, ratings: Ratings) -> None:
    """Each line of a history has the player's own score and the opponents by place with theirs."""
    lines = ratings("history", "anna", "elo-catan/all", db=club).stdout.splitlines()
    for line, (place, score, against) in zip(lines[3:], ANNAS_GAMES.values(), strict=True):
        assert f"  {place} ({score})  " in line if score else f"  {place}  " in line
        assert line.endswith("  " + against)


@pytest.mark.slow_cases
def test_opponents_who_do_not_fit_are_counted(db: str, ratings: Ratings) -> None:
    """Opponents who do not fit into 80 columns are counted."""
    players = [f"player-{number:02}" for number in range(9)]
    assert ratings("init", "--for", "catan", db=db).exit_code == 0
    game = ("--game", "catan", "--game-id", "g", "--at", "2024-01-01T20:00Z")
    assert ratings("record", "-q", *game, *players[:6], db=db).exit_code == 0
    lines = ratings("history", players[0], "elo-catan/all", db=db).stdout.splitlines()
    assert lines[3].endswith("  player-01 and 4 more")
    assert max(map(len, lines)) <= 80


@pytest.mark.slow_cases
def test_explanation_of_a_player_names_opponents(club: str, ratings: Ratings) -> None:
    """The explanation of a player's points names the opponents of each game."""
    stdout = ratings("explain", "--player", "anna", "elo-catan/all", db=club).stdout
    for game_id, (_, score, against) in ANNAS_GAMES.items():
        line = next(line for line in stdout.splitlines() if line.startswith(game_id))
        assert line.endswith((f", scored {score}" if score else "") + f", against {against}")


@pytest.mark.slow_cases
def test_explanation_names_the_opponents_of_a_voided_game(club: str, ratings: Ratings) -> None:
    """The explanation of a player's points also names the opponents of a voided game."""
    assert ratings("void", "g-1", "--reason", "a friendly", db=club).exit_code == 0
    stdout = ratings("explain", "--player", "anna", "elo-catan/all", db=club).stdout
    line = next(line for line in stdout.splitlines() if line.startswith("g-1"))
    assert ", scored 10, against benno (8), cleo (7), not counted: " in line


@pytest.mark.slow_cases
def test_games_show_scores(club: str, ratings: Ratings) -> None:
    """The results in `games` have the recorded scores; as CSV they have only places."""
    stdout = ratings("games", "--player", "anna", db=club).stdout
    results = [line.rpartition("  ")[2] for line in stdout.splitlines()[1:]]
    assert results == [
        "1 anna (10), 2 benno (8), 3 cleo (7)",
        "1 benno (10), 2 anna (6)",
        "1 anna, 2 cleo",
        "1 cleo (9), 2 anna (8)",
    ]
    assert '"1 anna, 2 benno, 3 cleo"' in ratings("games", "--player", "anna", "--format", "csv", db=club).stdout


DOUBLES = """date,game,player,place,score,team
2024-01-01,tennis,anna,1,6,1
2024-01-01,tennis,ben,1,6,1
2024-01-01,tennis,cleo,2,3,2
2024-01-01,tennis,dora,2,3,2
"""
SIDES = ("with ben", "against cleo & dora (3)")


@pytest.fixture
def doubles(db: str, ratings: Ratings, tmp_path: Path) -> str:
    """Return a ledger with a game of doubles."""
    (tmp_path / "doubles.csv").write_text(DOUBLES)
    assert ratings("init", "--for", "tennis", "--system", "weng-lin", db=db).exit_code == 0
    result = ratings("import", str(tmp_path / "doubles.csv"), db=db)
    assert result.exit_code == 0, result.stderr
    return db


@pytest.mark.slow_cases
def test_partners_are_no_opponents(doubles: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation and a history say with whom a player played, and against whom; a narrow history counts them."""
    stdout = ratings("explain", "--player", "anna", "weng-lin-tennis", db=doubles).stdout
    assert ", ".join(("2024-01-01, scored 6", *SIDES)) in stdout
    monkeypatch.setenv("COLUMNS", "100")
    header, line = ratings("history", "anna", "weng-lin-tennis", db=doubles).stdout.splitlines()[2:4]
    assert header.split()[-2:] == ["with", "against"]
    assert line.endswith("  ben   cleo & dora (3)")
    monkeypatch.setenv("COLUMNS", "72")
    assert ratings("history", "anna", "weng-lin-tennis", db=doubles).stdout.endswith("  2 players\n")


@pytest.mark.slow
def test_pages_name_partners(doubles: str, tmp_path: Path) -> None:
    """A player's page names the partners and the opponents of a game."""
    write_pages(doubles, tmp_path / "site")
    page = (tmp_path / "site/players/anna/weng-lin-tennis/all.html").read_text()
    texts = [unescape(re.sub("<[^>]*>", "", row)) for row in re.findall("<small>(place .*?)</small>", page)]
    assert texts == [" ".join(("place 1, scored 6", *SIDES))]


@pytest.mark.slow
def test_pages_name_opponents_and_scores(club: str, tmp_path: Path) -> None:
    """A player's page names the opponents of each game, and a game's page has the score of each player."""
    write_pages(club, tmp_path / "site")
    page = (tmp_path / "site/players/anna/elo-catan/all.html").read_text()
    texts = [" ".join(re.sub("<[^>]*>", "", row).split()) for row in re.findall("<small>(place .*?)</small>", page)]
    assert texts == [
        f"place {place}" + (f", scored {score}" if score else "") + f" against {against}"
        for place, score, against in ANNAS_GAMES.values()
    ]
    game = (tmp_path / "site/games/g-4.html").read_text()
    assert [re.sub("<[^>]*>", "", head) for head in re.findall("<h3>(.*?)</h3>", game)][:2] == [
        "1. cleo scored 9",
        "2. anna scored 8",
    ]
