"""An import warns of games that equal games already recorded from another source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thresholds import set_thresholds

Ratings = Callable[..., Any]
pytestmark = pytest.mark.ledger(make=lambda ratings, url: ratings("init", "--for", "chess", db=url))
CLUB = "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n2024-11-23,ben,cleo,½-½\n"
PGN = '[Event "Club"]\n[Site "https://lichess.org/{}"]\n[Date "{}"]\n[White "{}"]\n[Black "{}"]\n[Result "{}"]\n\n*\n\n'


@pytest.fixture
def club(one_db: str, ratings: Ratings, tmp_path: Path) -> str:
    """Return a ledger with the games of a sheet."""
    (sheet := tmp_path / "club.csv").write_text(CLUB, encoding="utf-8")
    result = ratings("import", sheet, db=one_db)
    assert (result.exit_code, "from another source" in result.stderr) == (0, False)
    return one_db


def write_games(tmp_path: Path, *rows: tuple[str, str, str, str, str]) -> Path:
    """Write games to a PGN file and return its path."""
    (path := tmp_path / "evening.pgn").write_text("".join(PGN.format(*row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("thresholds", [{}, {"numpy_games": 0}], ids=["one by one", "by numpy"])
def test_equal_games_of_another_source_are_counted(
    club: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thresholds: dict[str, float]
) -> None:
    """Games with equal day, game, players and places are counted in a note that names the first; none is refused."""
    set_thresholds(monkeypatch, **thresholds)
    path = write_games(
        tmp_path,
        ("aaaaaaaa", "2024.11.23", "cleo", "ben", "1/2-1/2"),
        ("aaaaaaab", "2024.11.22", "ben", "anna", "0-1"),
        ("aaaaaaac", "2024.11.22", "anna", "ben", "1-0"),
    )
    message = (
        "2 games equal games of the same day from another source, so they would count twice; the first, in line 1, "
        "1 ben, 1 cleo, equals 2024-11-23-1 from club.csv; if they are the same games, leave them out of the file, or "
        "void them after the import: ratings void GAME --reason TEXT"
    )
    assert message in " ".join(ratings("import", path, "--preview", db=club).stdout.split())
    result = ratings("import", path, db=club)
    assert (result.exit_code, f"note: {path}: {message}\n" in result.stderr) == (0, True), result.stderr
    again = ratings("import", path, db=club)
    assert (again.stdout.split(",")[0], "from another source" in again.stderr) == ("0 appended", False)


def test_other_results_players_and_days_are_not_equal(club: str, ratings: Ratings, tmp_path: Path) -> None:
    """Another result, a new player or another day is another game."""
    path = write_games(
        tmp_path,
        ("aaaaaaaa", "2024.11.22", "anna", "ben", "0-1"),
        ("aaaaaaab", "2024.11.22", "anna", "zoe", "1-0"),
        ("aaaaaaac", "2024.11.24", "anna", "ben", "1-0"),
    )
    assert "from another source" not in ratings("import", path, db=club).stderr


def test_rematches_in_the_same_sheet_are_no_news(club: str, ratings: Ratings, tmp_path: Path) -> None:
    """There is no warning if a sheet grows by a second game of the same two players with the same result."""
    sheet = tmp_path / "club.csv"
    sheet.write_text(f"{CLUB}2024-11-22,anna,ben,1-0\n", encoding="utf-8")
    result = ratings("import", sheet, db=club)
    assert (result.stdout.split(",")[0], "from another source" in result.stderr) == ("1 appended", False)
