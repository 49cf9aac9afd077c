"""Write small spreadsheet files part by part, so that a test can create each oddity of real files."""

import io
from collections.abc import Collection
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

EPOCH, EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
# the formats of cells by their index in `styles.xml`
PLAIN, DATE, DATETIME, PERCENT, CURRENCY, TIME = range(6)
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="#,##0.00 &quot;€&quot;"/>'
    "</numFmts>"
    '<cellXfs count="6"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="9"/><xf numFmtId="164"/>'
    '<xf numFmtId="20"/></cellXfs></styleSheet>'
)


class Raw(NamedTuple):
    """A cell as raw XML: the attributes and the content of its element."""

    attributes: str
    content: str


ERROR = Raw(' t="e"', "<v>#REF!</v>")
NO_VALUE = Raw("", "<f>A1+1</f>")
FORMULA = Raw("", "<f>A1+1</f><v>3</v>")

Sheet = list[list[Any]]


def format_column(column: int) -> str:
    """Return the letter of a column; column 0 is A, and Z is the last."""
    return chr(65 + column)


def _format_xlsx_cell(value: Any, reference: str, epoch: datetime) -> str:
    if isinstance(value, Raw):
        return f'<c r="{reference}"{value.attributes}>{value.content}</c>'
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        since = moment - epoch
        style = DATETIME if isinstance(value, datetime) else DATE
        return f'<c r="{reference}" s="{style}"><v>{since.days + since.seconds / 86_400}</v></c>'
    if isinstance(value, time):
        seconds = value.hour * 3_600 + value.minute * 60 + value.second
        return f'<c r="{reference}" s="{TIME}"><v>{seconds / 86_400}</v></c>'
    if isinstance(value, int | float | Decimal):
        return f'<c r="{reference}"><v>{value}</v></c>'
    return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def xlsx(
    rows: Sheet,
    *other_sheets: tuple[str, str, Sheet],
    name: str = "Results",
    merged: str = "",
    epoch: datetime = EPOCH,
    more: dict[str, bytes] | None = None,
    hidden_rows: Collection[int] = (),
    hidden_columns: Collection[int] = (),
) -> bytes:
    """Return an .xlsx file: a sheet, which may have hidden rows and columns, and others as (name, state, rows)."""
    sheets = [(name, "visible", rows), *other_sheets]
    sheet_elements = "".join(
        f'<sheet name="{escape(title)}" sheetId="{number}" state="{state}" r:id="rId{number}"/>'
        for number, (title, state, _) in enumerate(sheets, 1)
    )
    date_system = ' date1904="1"' if epoch is EPOCH_1904 else ""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType='
        '"application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
        '+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type='
        f'"{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><workbookPr{date_system}/>'
        f"<sheets>{sheet_elements}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="rId{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
            for number in range(1, len(sheets) + 1)
        )
        + f'<Relationship Id="rIdS" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
    }
    for number, (_, _, content) in enumerate(sheets, 1):
        row_elements = "".join(
            f'<row r="{row}"{_format_hidden(number == 1 and row in hidden_rows)}>'
            + "".join(
                _format_xlsx_cell(value, f"{format_column(column)}{row}", epoch) for column, value in enumerate(cells)
            )
            + "</row>"
            for row, cells in enumerate(content, 1)
        )
        hidden = "".join(f'<col min="{column}" max="{column}" hidden="1"/>' for column in hidden_columns if number == 1)
        spans = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged and number == 1 else ""
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><cols>{hidden}</cols><sheetData>{row_elements}</sheetData>{spans}</worksheet>'
        )
    return build_zip({part: text.encode() for part, text in parts.items()} | (more or {}))


def ods(rows: Sheet, name: str = "Results") -> bytes:
    """Return an .ods file with one sheet; repeated rows are written once, as programs do."""
    table_rows, first = [], 0
    while first < len(rows):
        repeats = next((later for later in range(first, len(rows)) if rows[later] != rows[first]), len(rows)) - first
        cells = "".join(map(_format_ods_cell, rows[first]))
        table_rows.append(f'<table:table-row table:number-rows-repeated="{repeats}">{cells}</table:table-row>')
        first += repeats
    spaces = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"'
        for short, full in (("office", "office"), ("table", "table"), ("text", "text"))
    )
    content = (
        f'<office:document-content{spaces} xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:'
        f'calcext:1.0"><office:body><office:spreadsheet><table:table table:name="{escape(name)}">{"".join(table_rows)}'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
        f'manifest:full-path="/" manifest:media-type="{ODS}"/></manifest:manifest>'
    )
    return build_zip(
        {"mimetype": ODS.encode(), "content.xml": content.encode(), "META-INF/manifest.xml": manifest.encode()}
    )


def _format_ods_cell(value: Any) -> str:
    if isinstance(value, Raw):
        return f"<table:table-cell{value.attributes}>{value.content}</table:table-cell>"
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, date):
        displayed_text = f"<text:p>{value:%d.%m.%y %H:%M}</text:p>" if isinstance(value, datetime) else ""
        return (
            f'<table:table-cell office:value-type="date" office:date-value="{value.isoformat()}">{displayed_text}'
            "</table:table-cell>"
        )
    if isinstance(value, time):
        return f'<table:table-cell office:value-type="time" office:time-value="{value:PT%HH%MM%SS}"/>'
    if isinstance(value, int | float | Decimal):
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'


def _format_hidden(is_hidden: bool) -> str:
    return ' hidden="1"' if is_hidden else ""


def build_zip(parts: dict[str, bytes]) -> bytes:
    """Return a zip file with these parts."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as zip_file:
        for part, content in parts.items():
            zip_file.writestr(part, content)
    return buffer.getvalue()
