"""Build cases for the corpus, each a file with its games or its exact rejections, and rows for such files."""

import struct
from datetime import date
from typing import Any, NamedTuple

from sheet_files import Raw, xlsx

XLSX_OPTIONS = ("others", "merged", "epoch", "more", "name_of_sheet", "hidden_rows", "hidden_columns")
SET = ("--set", "game=catan")
NUMBERED = "numbered by day"


class Case(NamedTuple):
    """A file with the expected result of its import.

    `games` are formatted as `ID DATE PLAYER PLACE-OR-SCORE ...`. `refused` has `LINE CODE` and a part of the message
    of each rejection, `notes` has parts of the printed notes.
    """

    content: bytes
    games: list[str] = []
    refused: list[tuple[str, str]] = []
    notes: list[str] = []
    options: tuple[str, ...] = SET
    name: str = "results.csv"


def sheet(*rows: list[Any], name: str = "results.xlsx", **case_members: Any) -> Case:
    """Return a case of an .xlsx file with these rows."""
    xlsx_options = {option: case_members.pop(option) for option in XLSX_OPTIONS if option in case_members}
    other_sheets = xlsx_options.pop("others", ())
    if "name_of_sheet" in xlsx_options:
        xlsx_options["name"] = xlsx_options.pop("name_of_sheet")
    return Case(xlsx([*rows], *other_sheets, **xlsx_options), name=name, **case_members)


def csv(text: str, encoding: str = "utf-8", **case_members: Any) -> Case:
    """Return a case of a CSV file."""
    return Case(text.encode(encoding), **case_members)


def declare_size(content: bytes, size: int) -> bytes:
    """Return a spreadsheet whose directory declares this size in bytes for its sheet."""
    offset = content.rindex(b"xl/worksheets/sheet1.xml") - 22  # section 4.3.12 of the specification of zip files
    return content[:offset] + struct.pack("<I", size) + content[offset + 4 :]


# a worksheet and rows for it, as XML
NAMESPACE = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
WORKSHEET = b"<worksheet " + NAMESPACE + b"><sheetData>%s</sheetData></worksheet>"
SHEET_ROWS = b"".join(
    b"<row>" + b"".join(b'<c t="inlineStr"><is><t>' + cell + b"</t></is></c>" for cell in row.split()) + b"</row>"
    for row in (b"Date 1st 2nd", b"2024-11-22 anna ben")
)
D22, D23 = date(2024, 11, 22), date(2024, 11, 23)
# the games of most files: the first of them, and both
ONE = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
TWO = [*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"]
# tables of these games, with a column per place and with a row per player
WIDE = [["Date", "1st", "2nd"], [D22, "anna", "ben"], [D23, "ben", "anna"]]
LONG = [["Datum", "Spieler", "Platz"], [D22, "anna", 1], [D22, "ben", 2], [D23, "ben", 1], [D23, "anna", 2]]
ODS_ERROR = Raw(
    ' table:formula="of:=1/0" office:value-type="string" calcext:value-type="error"', "<text:p>#DIV/0!</text:p>"
)
OLD_ERROR = Raw(' table:formula="of:=X" office:value-type="float" office:value="0"', "<text:p>Err:502</text:p>")
MERGED_DAY = Raw(
    ' office:value-type="date" office:date-value="2024-11-22" table:number-rows-spanned="2"',
    "<text:p>22.11.24</text:p>",
)
# the rejection of a row whose game may also have the unreadable row before it
AFTER = ("3 game-incomplete", "the unreadable row in line 2 may belong to this game")
HEAD = ["Date", "1st", "2nd"]
