"""`--map` accepts the words that people guess, and says which side of the = it did not understand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ledger(make=lambda ratings, url: ratings("init", "--no-rules", db=url))
Ratings = Callable[..., Any]
TABLE = "Wann,Wer,Gegen wen,Wie\n2024-11-22,anna,ben,3-1\n"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table whose column names the program does not know."""
    file = tmp_path / "club.csv"
    file.write_text(TABLE, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("date", "first", "second", "result", "scores"),
    [
        ("date", "player 1", "player 2", "result", [3, 1]),
        ("occurred_at", "Winner", "loser", "score", [3, 1]),
        ("Datum", "first player", "opponent", "Ergebnis", [3, 1]),
    ],
)
def test_guessed_words_are_understood(
    date: str, first: str, second: str, result: str, scores: list[int], table: str, one_db: str, ratings: Ratings
) -> None:
    """`--map` accepts header words, in several languages, and this program's own names of columns."""
    mappings = [f"--map=Wann={date}", f"--map=Wer={first}", f"--map=Gegen wen={second}", f"--map=Wie={result}"]
    outcome = ratings("import", table, "--set", "game=catan", "--zone", "UTC", *mappings, db=one_db)
    assert outcome.exit_code == 0, outcome.stderr
    (game,) = json.loads(ratings("games", "--limit", 1, "--format", "json", db=one_db).stdout)["rows"]
    assert [participant["score"] for participant in game["participants"]] == scores


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("Wer=plaier", "'Wer=plaier': right of the =, 'plaier' is not a word for a column; did you mean player?"),
        ("Wer=plaier", "(known: date, time, game, player, place, score, winner, loser, player 1 to 6,"),
        ("player=Wer", "write the table's own name left of the =: --map 'Wer=player'"),
        ("Wer", "'Wer' is not NAME=VALUE"),
    ],
)
def test_unknown_right_side_is_refused(mapping: str, message: str, table: str, one_db: str, ratings: Ratings) -> None:
    """An unknown word right of the = is refused with the known words and the word that was probably meant."""
    result = ratings("import", table, "--map", mapping, db=one_db)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_unknown_left_side_is_refused(table: str, one_db: str, ratings: Ratings) -> None:
    """An unknown column left of the = is refused with the table's columns and the one that was probably meant."""
    result = ratings("import", table, "--map", "Wehr=player", "--set", "game=catan", db=one_db)
    assert result.exit_code == 1
    message = "--map: left of the =, 'Wehr' is not a column of the table; did you mean Wer? (columns: 'Wann', 'Wer', "
    assert message in result.stderr


@pytest.mark.parametrize("word", ["status", "club", "1st", "place", "team"])
def test_right_side_that_the_layout_lacks_is_refused(word: str, tmp_path: Path, one_db: str, ratings: Ratings) -> None:
    """A known word for which the layout has no column is refused, because the table's column would be lost."""
    (file := tmp_path / "pairs.csv").write_text("Date,White,Black,Result,Note\n2024-11-22,anna,ben,1-0,x\n", "utf-8")
    result = ratings("import", file, "--map", f"Note={word}", "--set", "game=chess", "--layout", "pair", db=one_db)
    assert result.exit_code == 1
    assert f"--map: 'Note={word}': right of the =, '{word}' is not a column of this layout" in result.stderr
    assert "(known: date, time, game, score, winner, loser, player 1 to 6" in result.stderr


def test_header_that_the_layout_lacks_is_refused(tmp_path: Path, one_db: str, ratings: Ratings) -> None:
    """A column is also refused if its own header names something for which the layout has no column."""
    (file := tmp_path / "pairs.csv").write_text("Date,White,Black,Result,Club\n2024-11-22,anna,ben,1-0,x\n", "utf-8")
    result = ratings("import", file, "--set", "game=chess", db=one_db)
    assert result.exit_code == 1
    assert "unknown-column: unknown column: 'Club'" in result.stderr
