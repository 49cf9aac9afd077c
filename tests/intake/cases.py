"""What the cases of the corpus are made of: a file, with its games or its exact refusal; and rows for files."""

import struct
from datetime import date
from typing import Any, NamedTuple

from sheet_files import Raw, xlsx

PARTS = ("others", "merged", "epoch", "more", "name_of_sheet", "hidden_rows", "hidden_columns")
SET = ("--set", "game=catan")
NUMBERED = "numbered by day"


class Case(NamedTuple):
    """A file's content, under a name; the games in it, as `ID DATE PLAYER PLACE-OR-SCORE ...`, or what is refused, as
    `LINE CODE` with a part of the message; what is told about it; and the options of the import.
    """

    content: bytes
    games: list[str] = []
    refused: list[tuple[str, str]] = []
    told: list[str] = []
    options: tuple[str, ...] = SET
    name: str = "results.csv"


def sheet(*rows: list[Any], name: str = "results.xlsx", **more: Any) -> Case:
    """A case of an .xlsx file with these rows."""
    parts = {part: more.pop(part) for part in PARTS if part in more}
    others = parts.pop("others", ())
    if "name_of_sheet" in parts:
        parts["name"] = parts.pop("name_of_sheet")
    return Case(xlsx([*rows], *others, **parts), name=name, **more)


def csv(text: str, encoding: str = "utf-8", **more: Any) -> Case:
    """A case of a CSV file."""
    return Case(text.encode(encoding), **more)


def with_declared_size(content: bytes, size: int) -> bytes:
    """A spreadsheet whose list of parts says that its sheet has this many bytes."""
    at = content.rindex(b"xl/worksheets/sheet1.xml") - 22  # as section 4.3.12 of the format of zip files has it
    return content[:at] + struct.pack("<I", size) + content[at + 4 :]


# a worksheet, and rows for it, as text
MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
WORKSHEET = b"<worksheet " + MAIN + b"><sheetData>%s</sheetData></worksheet>"
SHEET_ROWS = b"".join(
    b"<row>" + b"".join(b'<c t="inlineStr"><is><t>' + cell + b"</t></is></c>" for cell in row.split()) + b"</row>"
    for row in (b"Date 1st 2nd", b"2024-11-22 anna ben")
)
D22, D23 = date(2024, 11, 22), date(2024, 11, 23)
ONE = ["2024-11-22-1 2024-11-22T11:00 anna 1 ben 2"]
TWO = [*ONE, "2024-11-23-1 2024-11-23T11:00 ben 1 anna 2"]
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
# what is said of the row after one that cannot be read, where a game has several
AFTER = ("3 game-incomplete", "the unreadable row in line 2 may belong to this game")
HEAD = ["Date", "1st", "2nd"]
