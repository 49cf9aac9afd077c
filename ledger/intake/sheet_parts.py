"""What the XML of a sheet says that its values do not: cells with errors, formulas without a value, merged cells, rows
that are hidden, and moments that fall on midnight.

A sheet is read closely only if its text has any of that; most have not.
"""

import re
from collections.abc import Callable, Iterator
from itertools import product
from posixpath import join, normpath
from typing import Any, NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZipFile

from ratings_ledger.ledger.intake.archives import DAMAGED, ODS, SAVE, XLSX
from ratings_ledger.ledger.intake.cell_errors import PUT_RIGHT
from ratings_ledger.ledger.rejections import Refused

PIECE_BYTES, OVERLAP_BYTES = 1 << 20, 256
FAULTS_MAX = 100_000
ROWS_MAX, COLUMNS_MAX = 1 << 20, 1 << 14  # of a sheet
UNWORKED = "a formula without a value; open the file in a spreadsheet program and save it"
# those that no format of a number shows, which old programs write as the number 0
SURE_ERRORS = re.compile(r"#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)|Err:\d{3}", re.ASCII)
ERRORS = re.compile(r"#[A-Z0-9/]+[!?]?|Err:\d+", re.ASCII)
# formats with a time of day that have no code of their own
TIMED_FORMATS = {str(number) for number in (18, 19, 20, 21, 22, 45, 46, 47)}

_WHOLE = re.compile(r"\d+(?:\.0*)?", re.ASCII)
_NO_CODE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_PLAIN = re.compile(rb'<(?!\?xml[^>]*encoding="(?!utf-8"))[?\w]', re.IGNORECASE)
# one after another, each beginning with a text that is found fast
_ODD_XLSX = [
    re.compile(text)
    for text in (
        rb"<f[\s/>]", rb":f[\s/>]", rb"""t\s*=\s*["']e["']""", rb"mergeCell", rb"""hidden\s*=\s*["'][1t]""", rb"<!D",
    )
]  # fmt: skip
_ODD_ODS = [
    re.compile(text)
    for text in (rb"table:formula", rb"""-type\s*=\s*["']error""", rb"rows-spanned", rb"table:visibility", rb"<!D")
]
_TIMED_ODS = re.compile(rb"""-type\s*=\s*["']date[^>]{0,200}>\s{0,20}<text:p[^>]{0,200}>[^<:]{0,80}:""")

Attributes = dict[str, str]
Place = tuple[int, int]


class Oddities(NamedTuple):
    """By row and column from 0: what is wrong with cells; columns of cells that are merged (first row, last row, and
    the column); the hidden rows (first and last); cells that show a time, the whole days among them at least.
    """

    faults: dict[Place, str]
    merged: list[tuple[int, int, int]]
    hidden: list[Place]
    timed: set[Place]


def oddities(archive: ZipFile, name: str, midnights: bool) -> Oddities:
    """Those of the sheet of that name in a file; of its days only if `midnights` are wanted.

    Raises `Refused`, `LookupError` and `ValueError` for a file whose parts do not fit together.
    """
    found = Oddities({}, [], [], set())
    if ODS in archive.namelist():
        if _may_be_odd(archive, ODS, [*_ODD_ODS, *([_TIMED_ODS] if midnights else [])]):
            _read(archive, ODS, _OdsTable(found, name))
        return found
    part, timed = _part_of(archive, name), _timed_styles(archive) if midnights else set()
    if _may_be_odd(archive, part, _ODD_XLSX):
        _read(archive, part, _XlsxSheet(found, timed))
    elif timed:
        cells = _timed_cells(archive, part, timed)
        if cells is None:
            _read(archive, part, _TimedCells(found, timed))
        else:
            found.timed.update(cells)
    return found


def _may_be_odd(archive: ZipFile, part: str, odd: list[re.Pattern[bytes]]) -> bool:
    """Whether the text of a part has what makes a closer look worth it."""
    before = b""
    with archive.open(part) as file:
        while piece := file.read(PIECE_BYTES):
            if not before and _PLAIN.match(piece.removeprefix(b"\xef\xbb\xbf")) is None:
                return True  # in an encoding that this cannot look through
            text = before + piece
            if any(one.search(text) for one in odd):
                return True
            before = piece[-OVERLAP_BYTES:]
    return False


def _timed_cells(archive: ZipFile, part: str, styles: set[str]) -> set[Place] | None:
    """The cells of a worksheet of xlsx with one of these styles, if they are written as most programs do; else None.

    It parses nothing, which would take ten times as long.
    """
    cell = re.compile(rb'<c r="([A-Z]{1,3})([1-9]\d{0,6})" s="(?:%s)"' % "|".join(sorted(styles)).encode())
    written = [f's="{style}"'.encode() for style in styles]
    found, columns, rest = set[Place](), dict[bytes, int](), b""
    with archive.open(part) as file:
        while piece := file.read(PIECE_BYTES):
            text, _, last = (rest + piece).rpartition(b"<")
            rest = b"<" + last
            cells = cell.findall(text)
            if len(cells) != sum(map(text.count, written)) or b"s='" in text or b"s =" in text:
                return None
            columns.update((name, _column(name.decode())) for name, _ in cells if name not in columns)
            found.update((int(row) - 1, columns[name]) for name, row in cells)
    return found if b"s=" not in rest else None


def refuse_damaged(archive: ZipFile) -> None:
    """Raises `Refused` for an ods file whose content is no XML: its reader may look for what is missing for ever."""
    if ODS in archive.namelist():
        _read(archive, ODS)


def _read(archive: ZipFile, part: str, handler: Any = None) -> None:
    """Give the elements of a part to a handler, if there is one. Raises `Refused`."""
    parser = ParserCreate()
    if handler is not None:
        parser.buffer_text = True
        parser.StartElementHandler = handler.start
        # what nobody looks at is not told, which takes a third of the time
        parser.EndElementHandler, parser.CharacterDataHandler = (
            getattr(handler, name, None) for name in ("end", "text")
        )
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        with archive.open(part) as file:
            while piece := file.read(PIECE_BYTES):
                parser.Parse(piece)
        parser.Parse(b"", True)
    except ExpatError as error:
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; {DAMAGED}") from None


def _refuse_doctype(*_: Any) -> None:
    raise Refused("bad-spreadsheet", "it declares a document type, which no spreadsheet program writes")


def _note(found: Oddities, place: Place, told: str) -> None:
    """Note what is wrong with a cell. Raises `Refused`."""
    if len(found.faults) == FAULTS_MAX:
        raise Refused("bad-spreadsheet", f"more than {FAULTS_MAX:,} cells show errors or have no value; {SAVE}")
    found.faults[place] = told


def _part_of(archive: ZipFile, name: str) -> str:
    """The part of an xlsx file that holds the sheet of that name."""
    ids, targets = dict[str, str](), dict[str, str]()

    def sheet(tag: str, attributes: Attributes) -> None:
        if tag == "sheet":
            ids[attributes.get("name", "")] = next(v for k, v in attributes.items() if k.rpartition(":")[2] == "id")

    def relation(tag: str, attributes: Attributes) -> None:
        if tag == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _read(archive, XLSX, _Starts(sheet))
    _read(archive, "xl/_rels/workbook.xml.rels", _Starts(relation))
    return normpath(join("/xl", targets[ids[name]])).lstrip("/")


def _timed_styles(archive: ZipFile) -> set[str]:
    """The numbers of the styles of xlsx that show a time of day."""
    formats, styles = set(TIMED_FORMATS), list[str]()
    of_cells = False

    def started(tag: str, attributes: Attributes) -> None:
        nonlocal of_cells
        if tag == "numFmt" and "h" in _NO_CODE.sub("", attributes.get("formatCode", "")).lower():
            formats.add(attributes.get("numFmtId", ""))
        elif tag in ("cellXfs", "cellStyles", "cellStyleXfs"):
            of_cells = tag == "cellXfs"
        elif tag == "xf" and of_cells:
            styles.append(attributes.get("numFmtId", ""))

    if "xl/styles.xml" in archive.namelist():
        _read(archive, "xl/styles.xml", _Starts(started))
    return {str(number) for number, style in enumerate(styles) if style in formats}


class _Starts:
    """A handler that looks at where elements start."""

    def __init__(self, started: Callable[[str, Attributes], None]) -> None:
        self._started = started

    def start(self, tag: str, attributes: Attributes) -> None:
        self._started(tag.rpartition(":")[2], attributes)


class _TimedCells:
    """A handler of a worksheet of xlsx that looks at nothing but which cells show a time."""

    def __init__(self, found: Oddities, timed_styles: set[str]) -> None:
        self._found, self._timed_styles = found, timed_styles
        self._row, self._column = -1, -1

    def start(self, tag: str, attributes: Attributes) -> None:
        tag = tag if ":" not in tag else tag.rpartition(":")[2]
        if tag == "c":
            place = attributes.get("r")
            self._column = _column(place) if place else self._column + 1
            if attributes.get("s") in self._timed_styles:
                self._found.timed.add((self._row, self._column))
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1


class _XlsxSheet:
    """The handler of a worksheet of xlsx: rows of <c r="A1" t="e"> with <f> for a formula and <v> for its value."""

    def __init__(self, found: Oddities, timed_styles: set[str]) -> None:
        self._found, self._timed_styles = found, timed_styles
        self._row, self._column = -1, -1
        self._kind, self._style, self._formula, self._value = "", "", False, ""
        self._in_value = False

    def start(self, tag: str, attributes: Attributes) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self._in_value = True
        elif tag == "c":
            place = attributes.get("r")
            self._column = _column(place) if place else self._column + 1
            self._kind, self._formula, self._value = attributes.get("t", ""), False, ""
            self._style = attributes.get("s", "")
        elif tag == "f":
            self._formula = True
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1
            if attributes.get("hidden") in ("1", "true"):
                self._found.hidden.append((self._row, self._row))
        elif tag == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            top, bottom = (int(place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) - 1 for place in (first, last or first))
            if bottom > top:
                self._found.merged.append((top, bottom, _column(first)))

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self._in_value = False
        elif tag == "c":
            place = self._row, self._column
            if self._kind == "e":
                _note(self._found, place, f"the error {self._value or '#'}{PUT_RIGHT}")
            elif self._formula and not self._value and self._kind != "str":
                _note(self._found, place, UNWORKED)
            elif self._style in self._timed_styles and _WHOLE.fullmatch(self._value):
                self._found.timed.add(place)

    def text(self, text: str) -> None:
        if self._in_value:
            self._value += text


def _column(place: str) -> int:
    """The column, from 0, of a place such as C17."""
    number = 0
    for letter in place:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number - 1


class _OdsTable:
    """The handler of the content of ods: tables of rows of cells, any of which may be repeated."""

    def __init__(self, found: Oddities, name: str) -> None:
        self._found, self._name = found, name
        self._inside, self._row, self._column = False, 0, 0
        self._rows, self._cells = 1, 1
        self._attributes: Attributes = {}
        self._value = ""
        self._in_value = self._in_comment = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "table:table":
            self._inside, self._row = attributes.get("table:name") == self._name, 0
        elif not self._inside:
            return
        elif tag == "table:table-row":
            self._column, self._rows = 0, int(attributes.get("table:number-rows-repeated", 1))
            if attributes.get("table:visibility") in ("collapse", "filter"):
                self._found.hidden.append((self._row, self._row + self._rows - 1))
        elif tag in ("table:table-cell", "table:covered-table-cell"):
            self._cells = int(attributes.get("table:number-columns-repeated", 1))
            self._attributes, self._value = attributes, ""
        elif tag == "office:annotation":
            self._in_comment = True
        elif tag == "text:p":
            self._in_value = not self._in_comment

    def end(self, tag: str) -> None:
        if tag == "table:table":
            self._inside = False
        elif not self._inside:
            return
        elif tag == "table:table-row":
            self._row += self._rows
        elif tag in ("table:table-cell", "table:covered-table-cell"):
            self._look()
            self._column += self._cells
        elif tag == "office:annotation":
            self._in_comment = False
        elif tag == "text:p":
            self._in_value = False

    def text(self, text: str) -> None:
        if self._inside and self._in_value:
            self._value += text

    def _look(self) -> None:
        """Note what is odd about the cell that ends."""
        own = self._attributes
        formula, kind = "table:formula" in own, own.get("office:value-type")
        errors = SURE_ERRORS if kind == "float" else ERRORS
        is_error = own.get("calcext:value-type") == "error" or (formula and errors.fullmatch(self._value))
        if is_error or (formula and kind is None):
            for place in self._places():
                _note(self._found, place, f"the error {self._value or '#'}{PUT_RIGHT}" if is_error else UNWORKED)
        elif kind == "date" and ":" in self._value:
            self._found.timed.update(self._places())
        if (spanned := int(own.get("table:number-rows-spanned", 1))) > 1:
            self._found.merged.append((self._row, self._row + spanned - 1, self._column))

    def _places(self) -> Iterator[Place]:
        """Where the cell is, each time it is repeated."""
        rows, columns = min(self._rows, ROWS_MAX), min(self._cells, COLUMNS_MAX)
        return product(range(self._row, self._row + rows), range(self._column, self._column + columns))
