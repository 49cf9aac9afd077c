"""Ambiguous sheets are refused with their cell, and the remedies in the messages work."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refused_sheets import SHEETS
from sheet_files import ods, xlsx

from ratings_ledger.ledger.intake.forfeits import describe_forfeits

Ratings = Callable[..., Any]


def make_berlin_ledger(ratings: Ratings, url: str) -> None:
    """Make an empty ledger with the home zone of Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_berlin_ledger)


@pytest.mark.parametrize("name", SHEETS)
@pytest.mark.parametrize("kind", ["xlsx", pytest.param("ods", marks=pytest.mark.slow)])
def test_refusal_names_its_cell_and_a_remedy(
    name: str, kind: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A refused sheet records nothing, and is imported with the option or the cell that the message suggests."""
    sheet, path = SHEETS[name], tmp_path / f"club.{kind}"
    write = xlsx if kind == "xlsx" else ods
    path.write_bytes(write(sheet.rows))
    result = ratings("import", path, "--set", "game=catan", "--format", "json", db=one_db)
    summary = json.loads(result.stdout)
    assert (result.exit_code, summary["appended"]) == (1, 0)
    (rejection,) = summary["rejected"]
    assert rejection["code"] == sheet.code
    assert sheet.message in rejection["message"]
    if sheet.cell is not None:
        row, column, content = sheet.cell
        rows = [list(cells) for cells in sheet.rows]
        rows[row][column] = content
        path.write_bytes(write(rows))
    second_import = ratings("import", path, "--set", "game=catan", *sheet.options, db=one_db)
    assert second_import.exit_code == 0, second_import.stderr
    assert "1 appended" in second_import.stdout


FORFEITS = "Date,White,Black,Result\n2024-11-22,anna,ben,+:-\n2024-11-23,anna,ben,-/-\n2024-11-24,anna,ben,0-1F\n"


@pytest.mark.parametrize(("options", "rated"), [((), [False] * 3), (("--forfeits", "rated"), [None, False, None])])
def test_forfeits_are_counted_and_rated_on_request(
    options: tuple[str, ...], rated: list[bool | None], one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Forfeits are recorded as such, and rated only on request and only if one player was present."""
    path = tmp_path / "club.csv"
    path.write_text(FORFEITS, encoding="utf-8")
    result = ratings("import", path, "--set", "game=chess", *options, db=one_db)
    assert result.exit_code == 0, result.stderr
    assert describe_forfeits(3, options[-1] if options else None, [2, 3, 4]) in result.stderr
    games = json.loads(ratings("games", "--limit", 0, "--format", "json", db=one_db).stdout)["rows"]
    assert [game["extra"]["forfeit"] for game in games] == ["+:-", "-:-", "-:+"]
    assert [game.get("rated") for game in games] == rated
    assert [[seat["place"] for seat in game["participants"]] for game in games] == [[1, 2], [1, 1], [2, 1]]
