"""What cannot be read in one way is refused with its cell, and what the refusal advises works as it is typed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refused_sheets import SHEETS
from sheet_files import ods, xlsx

from ratings_ledger.ledger.intake.forfeits import describe_forfeits

Ratings = Callable[..., Any]


def make(ratings: Ratings, url: str) -> None:
    """An empty ledger at home in Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make)


@pytest.mark.parametrize("name", SHEETS)
@pytest.mark.parametrize("kind", ["xlsx", pytest.param("ods", marks=pytest.mark.slow)])
def test_refusal_names_its_cell_and_what_helps(
    name: str, kind: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A refused sheet records nothing; with the option or the cell that its refusal advises it is read."""
    sheet, path = SHEETS[name], tmp_path / f"club.{kind}"
    write = xlsx if kind == "xlsx" else ods
    path.write_bytes(write(sheet.rows))
    done = ratings("import", path, "--set", "game=catan", "--format", "json", db=one_db)
    told = json.loads(done.stdout)
    assert (done.exit_code, told["appended"]) == (1, 0)
    (problem,) = told["rejected"]
    assert problem["code"] == sheet.code
    assert sheet.message in problem["message"]
    if sheet.cell is not None:
        row, column, content = sheet.cell
        rows = [list(cells) for cells in sheet.rows]
        rows[row][column] = content
        path.write_bytes(write(rows))
    again = ratings("import", path, "--set", "game=catan", *sheet.options, db=one_db)
    assert again.exit_code == 0, again.stderr
    assert "1 appended" in again.stdout


FORFEITS = "Date,White,Black,Result\n2024-11-22,anna,ben,+:-\n2024-11-23,anna,ben,-/-\n2024-11-24,anna,ben,0-1F\n"


@pytest.mark.parametrize(("options", "rated"), [((), [False] * 3), (("--forfeits", "rated"), [None, False, None])])
def test_forfeits_are_counted_and_rated_on_request(
    options: tuple[str, ...], rated: list[bool | None], one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Games that were not played are recorded as such, and rated only on request, and only where somebody came."""
    path = tmp_path / "club.csv"
    path.write_text(FORFEITS, encoding="utf-8")
    done = ratings("import", path, "--set", "game=chess", *options, db=one_db)
    assert done.exit_code == 0, done.stderr
    assert describe_forfeits(3, options[-1] if options else None) in done.stderr
    games = json.loads(ratings("games", "--limit", 0, "--format", "json", db=one_db).stdout)["rows"]
    assert [one["extra"]["forfeit"] for one in games] == ["+:-", "-:-", "-:+"]
    assert [one.get("rated") for one in games] == rated
    assert [[seat["place"] for seat in one["participants"]] for one in games] == [[1, 2], [1, 1], [2, 1]]
