"""Midnight in a sheet is read as the time 00:00, however the cell is written in XML."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

pytest.importorskip("python_calamine")

from sheet_files import xlsx

from ratings_ledger.ledger.intake.tables import sheet_markup
from ratings_ledger.ledger.intake.tables.sheets import read_sheet

ROWS = [
    ["Date", "1st", "2nd"],
    [datetime(2024, 11, 22, 0, 0), "anna", "ben"],
    [datetime(2024, 11, 22, 20, 5), "ben", "anna"],
]
PART = "xl/worksheets/sheet1.xml"
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as usual": lambda text: text,
    "with single quotes": lambda text: text.replace('"', "'"),
    "with blanks": lambda text: text.replace(" s=", " s = "),
    "with the style first": lambda text: text.replace('r="A2" s="2"', 's="2" r="A2"'),
    "with a text that looks like a style": lambda text: text.replace("anna", 's="2"'),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("piece_bytes", [40, sheet_markup.PIECE_BYTES])
def test_midnight_is_read(spelling: str, piece_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell with a date at midnight keeps its time of 00:00, in every spelling and in pieces of any size."""
    monkeypatch.setattr(sheet_markup, "PIECE_BYTES", piece_bytes)
    path, buffer = tmp_path / "t.xlsx", BytesIO()
    with ZipFile(BytesIO(xlsx(ROWS))) as old, ZipFile(buffer, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            new.writestr(name, SPELLINGS[spelling](text) if name == PART else text)
    path.write_bytes(buffer.getvalue())
    rows = read_sheet(str(path), None).rows
    assert [cells[0] for _, cells in rows] == ["Date", "2024-11-22 00:00", "2024-11-22 20:05"]
