"""Write the games of a history as a table, in one of two forms, as a spreadsheet or as CSV.

usual   game_id, occurred_at, game, group, player, place
club    Date, Player, Place
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from benchmarks import ledgers
from benchmarks.histories import History

EPOCH = datetime(1899, 12, 30, tzinfo=UTC)
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType='
    '"application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
    '+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="{RELATIONS}/'
    'officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets><sheet name="Games" sheetId="1" r:id="rId1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/worksheet" Target="sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    f'<Relationship Id="rId3" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
    # the second format is for dates with times
    "xl/styles.xml": f'<styleSheet {MAIN}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    "</styleSheet>",
}


def table(history: History, form: str) -> Iterator[list[Any]]:
    """Yield the header and the rows of a table: texts, numbers and datetimes."""
    lines = (line.split(",") for line in ledgers.csv_lines(history))
    header = next(lines)
    if form == "usual":
        yield header
        yield from ([*row[:1], datetime.fromisoformat(row[1]), *row[2:5], int(row[5])] for row in lines)
        return
    yield ["Date", "Player", "Place"]
    for _, rows in groupby(lines, lambda row: row[0]):
        for row in sorted(rows, key=lambda row: int(row[5])):
            yield [datetime.fromisoformat(row[1]), row[4], int(row[5])]


def write_table(path: str, history: list[Any], form: str) -> dict[str, Any]:
    """Write a table to a path that ends in .xlsx or .csv. CSV has times in UTC without an offset."""
    rows = table(History(*history), form)
    if path.endswith(".xlsx"):
        _write_xlsx(path, rows)
        return {}
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            texts = (f"{cell:%Y-%m-%d %H:%M:%S}" if isinstance(cell, datetime) else str(cell) for cell in row)
            file.write(",".join(texts) + "\n")
    return {}


def _write_xlsx(path: str, rows: Iterator[list[Any]]) -> None:
    """Write an .xlsx file like spreadsheet programs do: each text once, and a style for every cell."""
    texts: dict[str, int] = {}

    def cell(column: int, row: int, value: Any) -> str:
        start = f'<c r="{chr(65 + column)}{row}"'
        if isinstance(value, datetime):
            since = value - EPOCH
            return f'{start} s="1"><v>{since.days + since.seconds / 86_400!r}</v></c>'
        if isinstance(value, int):
            return f'{start} s="0"><v>{value}</v></c>'
        return f'{start} s="0" t="s"><v>{texts.setdefault(value, len(texts))}</v></c>'

    row_elements = "".join(
        f'<row r="{number}">{"".join(cell(column, number, value) for column, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    sheet = f"<worksheet {MAIN}><sheetData>{row_elements}</sheetData></worksheet>"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for part, content in (
            PARTS | {"xl/sheet1.xml": sheet, "xl/sharedStrings.xml": f"<sst {MAIN}>{shared}</sst>"}
        ).items():
            archive.writestr(part, content)
