"""Read from the XML of spreadsheet files (.xlsx, .ods) what cell values omit: errors, merged cells, hidden rows, times.

The library that reads the values does not report errors, formulas without a value, merged cells or hidden rows, and
cannot tell a date from midnight of that date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from posixpath import join, normpath
from typing import IO, Any, NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import BadZipFile, ZipFile

from ratings_ledger.ledger.intake.tables.columns import CELL_REMEDY
from ratings_ledger.ledger.rejections import Refused, count, quote

EXPANDED_BYTES_MAX = 1 << 30
START_BYTES = 1 << 20
SAVE_REMEDY = "save only the table as .xlsx or as CSV UTF-8"
PROTECTED_MESSAGE = "it is protected by a password; save it without one"
DAMAGE_REMEDY = "open it in a spreadsheet program and save it again"
XLSX_PART, ODS_PART = "xl/workbook.xml", "content.xml"
# other kinds of archives: a part that each kind has, and the message with advice
OTHER_ARCHIVES = {
    "xl/workbook.bin": "it has the binary format of Excel; save it as .xlsx",
    "Index/Document.iwa": "it is a document of Numbers, Pages or Keynote; export it as .xlsx",
    "word/document.xml": "it is a text document; copy its table into a spreadsheet",
    "ppt/presentation.xml": "it is a presentation; copy its table into a spreadsheet",
}


def open_archive(file: IO[bytes]) -> ZipFile:
    """Open a spreadsheet file as a ZIP archive. Raises `Refused` (bad-spreadsheet, is-a-spreadsheet)."""
    try:
        archive = ZipFile(file)
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Refused("bad-spreadsheet", f"it is cut off or damaged: {error}; {DAMAGE_REMEDY}") from None
    parts = archive.infolist()
    if sum(part.file_size for part in parts) > EXPANDED_BYTES_MAX:
        raise Refused("bad-spreadsheet", f"it expands to more than {EXPANDED_BYTES_MAX >> 30} GB; {SAVE_REMEDY}")
    names = {part.filename for part in parts}
    if ODS_PART in names:
        _refuse_other_odf(archive)
    elif XLSX_PART not in names:
        raise _explain_other_archive(names)
    return archive


def _refuse_other_odf(archive: ZipFile) -> None:
    """Raise `Refused` for an OpenDocument file that is encrypted or no spreadsheet; all kinds have the same parts."""
    if b"encryption-data" in _read_start(archive, "META-INF/manifest.xml"):
        raise Refused("bad-spreadsheet", PROTECTED_MESSAGE)
    media_type = _read_start(archive, "mimetype")
    if b"opendocument" in media_type and b"spreadsheet" not in media_type:
        message = "it is an OpenDocument file, but not a spreadsheet; copy its table into a spreadsheet"
        raise Refused("is-a-spreadsheet", message)


def _read_start(archive: ZipFile, part: str) -> bytes:
    """Return the first bytes of a part; empty if the archive lacks the part. Raises `Refused` (bad-spreadsheet)."""
    try:
        with archive.open(part) as file:
            return file.read(START_BYTES)
    except KeyError:
        return b""
    except Exception as error:  # damaged compressed bytes raise errors of many types
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; {DAMAGE_REMEDY}") from None


def _explain_other_archive(names: set[str]) -> Refused:
    """Return the refusal of an archive that is not a spreadsheet, given the names of its parts."""
    if "encrypted-package" in names:
        return Refused("bad-spreadsheet", PROTECTED_MESSAGE)
    for part, advice in OTHER_ARCHIVES.items():
        if part in names:
            return Refused("is-a-spreadsheet", advice)
    if any(name.startswith("xl/") for name in names):
        return Refused("bad-spreadsheet", f"it is damaged: {XLSX_PART} is missing; {DAMAGE_REMEDY}")
    if not names:
        return Refused("is-a-spreadsheet", "it is an empty archive; pass the file that contains the table")
    files = f"{count(len(names), 'file')}, {'such as ' if len(names) > 1 else ''}{quote(min(names))}"
    return Refused("is-a-spreadsheet", f"it is an archive of {files}; extract the table first")


PIECE_BYTES, OVERLAP_BYTES = 1 << 20, 256
CELL_ERRORS_MAX = 100_000
ROWS_MAX, COLUMNS_MAX = 1 << 20, 1 << 14  # of a sheet
NOT_CALCULATED = "a formula without a value; open the file in a spreadsheet program and save it"
# Texts that are errors even in a cell with a number, because no number format displays them. Old programs store errors
# with the value 0.
UNMISTAKABLE_ERRORS = re.compile(r"#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)|Err:\d{3}", re.ASCII)
ERRORS = re.compile(r"#[A-Z0-9/]+[!?]?|Err:\d+", re.ASCII)
# ids of the built-in number formats with a time of day; files do not have their format codes
BUILT_IN_TIME_FORMATS = {str(number) for number in (18, 19, 20, 21, 22, 45, 46, 47)}
_WHOLE_NUMBER = re.compile(r"\d+(?:\.0*)?", re.ASCII)
_LITERALS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')  # in a format code
_UTF8_XML = re.compile(rb'<(?!\?xml[^>]*encoding="(?!utf-8"))[?\w]', re.IGNORECASE)
# separate patterns, because each begins with a literal text that is found fast
_XLSX_MARKS = [
    re.compile(pattern)
    for pattern in (
        rb"<f[\s/>]",
        rb":f[\s/>]",
        rb"""t\s*=\s*["']e["']""",
        rb"mergeCell",
        rb"""hidden\s*=\s*["'][1t]""",
        rb"<!D",
    )
]
_ODS_MARKS = [
    re.compile(pattern)
    for pattern in (rb"table:formula", rb"""-type\s*=\s*["']error""", rb"rows-spanned", rb"table:visibility", rb"<!D")
]
_ODS_TIMES = re.compile(rb"""-type\s*=\s*["']date[^>]{0,200}>\s{0,20}<text:p[^>]{0,200}>[^<:]{0,80}:""")
Attributes = dict[str, str]
CellIndex = tuple[int, int]  # row and column, from 0


class SheetMarkup(NamedTuple):
    """The markup of a sheet that cell values do not show; rows and columns count from 0.

    cell_errors: a message for each invalid cell
    merged:      (first row, last row, first column) of cells that are merged across rows
    hidden:      (first row, last row) of hidden ranges
    timed:       cells that display a time of day; complete only for cells whose value is a whole day
    """

    cell_errors: dict[CellIndex, str]
    merged: list[tuple[int, int, int]]
    hidden: list[tuple[int, int]]
    timed: set[CellIndex]


def read_markup(archive: ZipFile, sheet: str, wants_times: bool) -> SheetMarkup:
    """Return the markup of the sheet of this name; unless `wants_times`, its `timed` cells may be missing.

    Raises `Refused` (bad-spreadsheet), and `LookupError` or `ValueError` if the parts of the file do not fit together.
    """
    markup = SheetMarkup({}, [], [], set())
    if ODS_PART in archive.namelist():
        if _has_marks(archive, ODS_PART, [*_ODS_MARKS, *([_ODS_TIMES] if wants_times else [])]):
            _parse_part(archive, ODS_PART, _OdsHandler(markup, sheet))
        return markup
    part, time_styles = _find_part(archive, sheet), _find_time_styles(archive) if wants_times else set()
    if _has_marks(archive, part, _XLSX_MARKS):
        _parse_part(archive, part, _XlsxHandler(markup, time_styles))
    elif time_styles:
        timed = _search_timed_cells(archive, part, time_styles)
        if timed is None:
            _parse_part(archive, part, _TimedCellHandler(markup, time_styles))
        else:
            markup.timed.update(timed)
    return markup


def _has_marks(archive: ZipFile, part: str, marks: list[re.Pattern[bytes]]) -> bool:
    """Tell whether a part must be parsed: it contains one of the marks, or cannot be searched."""
    overlap = b""
    with archive.open(part) as file:
        while piece := file.read(PIECE_BYTES):
            if not overlap and _UTF8_XML.match(piece.removeprefix(b"\xef\xbb\xbf")) is None:
                return True
            text = overlap + piece
            if any(mark.search(text) for mark in marks):
                return True
            overlap = piece[-OVERLAP_BYTES:]
    return False


def _search_timed_cells(archive: ZipFile, part: str, styles: set[str]) -> set[CellIndex] | None:
    """Return the cells of an xlsx sheet that have one of the styles, by a search ten times as fast as parsing.

    Returns None if the cells are not written as most programs write them.
    """
    cell = re.compile(rb'<c r="([A-Z]{1,3})([1-9]\d{0,6})" s="(?:%s)"' % "|".join(sorted(styles)).encode())
    attributes = [f's="{style}"'.encode() for style in styles]
    timed, columns, rest = set[CellIndex](), dict[bytes, int](), b""
    with archive.open(part) as file:
        while piece := file.read(PIECE_BYTES):
            text, _, last = (rest + piece).rpartition(b"<")
            rest = b"<" + last
            cells = cell.findall(text)
            if len(cells) != sum(map(text.count, attributes)) or b"s='" in text or b"s =" in text:
                return None
            columns.update((letters, _parse_column(letters.decode())) for letters, _ in cells if letters not in columns)
            timed.update((int(row) - 1, columns[letters]) for letters, row in cells)
    return timed if b"s=" not in rest else None


def refuse_damaged(archive: ZipFile) -> None:
    """Raise `Refused` (bad-spreadsheet) for an ods file with invalid XML, because its reader might loop forever."""
    if ODS_PART in archive.namelist():
        _parse_part(archive, ODS_PART)


def _parse_part(archive: ZipFile, part: str, handler: Any = None) -> None:
    """Parse a part of a file, and call the methods `start`, `end` and `text` that a handler has.

    Raises `Refused` (bad-spreadsheet) for invalid XML.
    """
    parser = ParserCreate()
    if handler is not None:
        parser.buffer_text = True
        parser.StartElementHandler = handler.start
        # unused callbacks would take a third of the time
        parser.EndElementHandler, parser.CharacterDataHandler = (
            getattr(handler, name, None) for name in ("end", "text")
        )
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        with archive.open(part) as file:
            while piece := file.read(PIECE_BYTES):
                parser.Parse(piece)
        parser.Parse(b"", True)  # the end of the file
    except ExpatError as error:
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; {DAMAGE_REMEDY}") from None


def _refuse_doctype(*_: Any) -> None:
    raise Refused(
        "bad-spreadsheet", f"it declares a document type, which no spreadsheet program writes; {DAMAGE_REMEDY}"
    )


def _add_cell_error(markup: SheetMarkup, cell: CellIndex, message: str) -> None:
    """Add the error of a cell. Raises `Refused` (bad-spreadsheet) if too many cells have errors."""
    if len(markup.cell_errors) == CELL_ERRORS_MAX:
        raise Refused("bad-spreadsheet", f"more than {CELL_ERRORS_MAX:,} cells have errors or no value; {SAVE_REMEDY}")
    markup.cell_errors[cell] = message


def _find_part(archive: ZipFile, sheet: str) -> str:
    """Return the name of the part of an xlsx file that holds the sheet of this name. Raises `LookupError`."""
    ids, targets = dict[str, str](), dict[str, str]()

    def add_sheet(tag: str, attributes: Attributes) -> None:
        if tag == "sheet":
            sheet_ids = (value for name, value in attributes.items() if name.rpartition(":")[2] == "id")
            ids[attributes.get("name", "")] = next(sheet_ids, "")

    def add_target(tag: str, attributes: Attributes) -> None:
        if tag == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _parse_part(archive, XLSX_PART, _StartHandler(add_sheet))
    _parse_part(archive, "xl/_rels/workbook.xml.rels", _StartHandler(add_target))
    return normpath(join("/xl", targets[ids[sheet]])).lstrip("/")


def _find_time_styles(archive: ZipFile) -> set[str]:
    """Return the numbers of the cell styles of an xlsx file that show a time of day."""
    time_formats, format_of_style = set(BUILT_IN_TIME_FORMATS), list[str]()
    is_in_cell_styles = False

    def add_format_or_style(tag: str, attributes: Attributes) -> None:
        nonlocal is_in_cell_styles
        if tag == "numFmt" and "h" in _LITERALS.sub("", attributes.get("formatCode", "")).lower():
            time_formats.add(attributes.get("numFmtId", ""))
        elif tag in ("cellXfs", "cellStyles", "cellStyleXfs"):
            is_in_cell_styles = tag == "cellXfs"
        elif tag == "xf" and is_in_cell_styles:
            format_of_style.append(attributes.get("numFmtId", ""))

    if "xl/styles.xml" in archive.namelist():
        _parse_part(archive, "xl/styles.xml", _StartHandler(add_format_or_style))
    return {str(style) for style, number_format in enumerate(format_of_style) if number_format in time_formats}


class _StartHandler:
    """A handler that calls a function at the start of each element, with its name without the prefix."""

    def __init__(self, handle: Callable[[str, Attributes], None]) -> None:
        self._handle = handle

    def start(self, tag: str, attributes: Attributes) -> None:
        self._handle(tag.rpartition(":")[2], attributes)


class _TimedCellHandler:
    """The handler of an xlsx sheet that finds only cells with a time of day."""

    def __init__(self, markup: SheetMarkup, time_styles: set[str]) -> None:
        self._markup, self._time_styles = markup, time_styles
        self._row, self._column = -1, -1

    def start(self, tag: str, attributes: Attributes) -> None:
        tag = tag if ":" not in tag else tag.rpartition(":")[2]
        if tag == "c":
            reference = attributes.get("r")
            self._column = _parse_column(reference) if reference else self._column + 1
            if attributes.get("s") in self._time_styles:
                self._markup.timed.add((self._row, self._column))
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1


class _XlsxHandler:
    """The handler of an xlsx sheet: rows of <c r="A1" t="e"> with <f> for a formula and <v> for its value."""

    def __init__(self, markup: SheetMarkup, time_styles: set[str]) -> None:
        self._markup, self._time_styles = markup, time_styles
        self._row, self._column = -1, -1
        self._type, self._style, self._has_formula, self._value = "", "", False, ""
        self._is_in_value = False

    def start(self, tag: str, attributes: Attributes) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self._is_in_value = True
        elif tag == "c":
            reference = attributes.get("r")
            self._column = _parse_column(reference) if reference else self._column + 1
            self._type, self._has_formula, self._value = attributes.get("t", ""), False, ""
            self._style = attributes.get("s", "")
        elif tag == "f":
            self._has_formula = True
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1
            if attributes.get("hidden") in ("1", "true"):
                self._markup.hidden.append((self._row, self._row))
        elif tag == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            top, bottom = (int(cell.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) - 1 for cell in (first, last or first))
            if bottom > top:
                self._markup.merged.append((top, bottom, _parse_column(first)))

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self._is_in_value = False
        elif tag == "c":
            cell = self._row, self._column
            if self._type == "e":
                _add_cell_error(self._markup, cell, f"the error {self._value or '#'}{CELL_REMEDY}")
            elif self._has_formula and not self._value and self._type != "str":
                _add_cell_error(self._markup, cell, NOT_CALCULATED)
            elif self._style in self._time_styles and _WHOLE_NUMBER.fullmatch(self._value):
                self._markup.timed.add(cell)

    def text(self, text: str) -> None:
        if self._is_in_value:
            self._value += text


def _parse_column(reference: str) -> int:
    """Return the column, from 0, of a cell reference such as C17."""
    number = 0
    for letter in reference:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number - 1


class _OdsHandler:
    """The handler of the content of an ods file: tables of rows of cells, each row or cell possibly repeated."""

    def __init__(self, markup: SheetMarkup, sheet: str) -> None:
        self._markup, self._sheet = markup, sheet
        self._is_in_sheet, self._row, self._column = False, 0, 0
        self._repeated_rows, self._repeated_cells = 1, 1
        self._attributes: Attributes = {}
        self._value = ""
        self._is_in_value = self._is_in_comment = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "table:table":
            self._is_in_sheet, self._row = attributes.get("table:name") == self._sheet, 0
        elif not self._is_in_sheet:
            return
        elif tag == "table:table-row":
            self._column, self._repeated_rows = 0, int(attributes.get("table:number-rows-repeated", 1))
            if attributes.get("table:visibility") in ("collapse", "filter"):
                self._markup.hidden.append((self._row, self._row + self._repeated_rows - 1))
        elif tag in ("table:table-cell", "table:covered-table-cell"):
            self._repeated_cells = int(attributes.get("table:number-columns-repeated", 1))
            self._attributes, self._value = attributes, ""
        elif tag == "office:annotation":
            self._is_in_comment = True
        elif tag == "text:p":
            self._is_in_value = not self._is_in_comment

    def end(self, tag: str) -> None:
        if tag == "table:table":
            self._is_in_sheet = False
        elif not self._is_in_sheet:
            return
        elif tag == "table:table-row":
            self._row += self._repeated_rows
        elif tag in ("table:table-cell", "table:covered-table-cell"):
            self._add_cell()
            self._column += self._repeated_cells
        elif tag == "office:annotation":
            self._is_in_comment = False
        elif tag == "text:p":
            self._is_in_value = False

    def text(self, text: str) -> None:
        if self._is_in_sheet and self._is_in_value:
            self._value += text

    def _add_cell(self) -> None:
        """Add the error, the time or the merged rows of the cell that ends here."""
        attributes = self._attributes
        has_formula, value_type = "table:formula" in attributes, attributes.get("office:value-type")
        errors = UNMISTAKABLE_ERRORS if value_type == "float" else ERRORS
        is_error = attributes.get("calcext:value-type") == "error" or (has_formula and errors.fullmatch(self._value))
        if is_error or (has_formula and value_type is None):
            message = f"the error {self._value or '#'}{CELL_REMEDY}" if is_error else NOT_CALCULATED
            for cell in self._list_cells():
                _add_cell_error(self._markup, cell, message)
        elif value_type == "date" and ":" in self._value:
            self._markup.timed.update(self._list_cells())
        if (spanned := int(attributes.get("table:number-rows-spanned", 1))) > 1:
            self._markup.merged.append((self._row, self._row + spanned - 1, self._column))

    def _list_cells(self) -> Iterator[CellIndex]:
        """Return the indexes of the cell and of its repetitions, limited to the size of a sheet."""
        rows, columns = min(self._repeated_rows, ROWS_MAX), min(self._repeated_cells, COLUMNS_MAX)
        return product(range(self._row, self._row + rows), range(self._column, self._column + columns))
