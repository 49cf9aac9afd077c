"""What the XML of a sheet says that its values do not: cells with errors, formulas without a value, merged cells."""

import re
from collections.abc import Callable
from posixpath import join, normpath
from typing import Any, NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZipFile

from ledger.rejections import Refused

PIECE_BYTES = 1 << 20
FAULTS_MAX = 1_000
UNWORKED = "a formula without a value; open the file in a spreadsheet program and save it"
ERRORS = re.compile(r"#[A-Z0-9/]+[!?]?|Err:\d+", re.ASCII)

Attributes = dict[str, str]


class Oddities(NamedTuple):
    """What is wrong with cells, by row and column from 0, and columns of cells that are merged: first and last row, and
    the column.
    """

    faults: dict[tuple[int, int], str]
    merged: list[tuple[int, int, int]]


def oddities(archive: ZipFile, name: str) -> Oddities:
    """Those of the sheet of that name in a file. Raises `Refused`, `KeyError` for a file without its parts."""
    found = Oddities({}, [])
    if "content.xml" in archive.namelist():
        _read(archive, "content.xml", _OdsTable(found, name))
    else:
        _read(archive, _part_of(archive, name), _XlsxSheet(found))
    return found


def _read(archive: ZipFile, part: str, handler: Any) -> None:
    """Give the elements of a part to a handler. Raises `Refused`."""
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = handler.start, handler.end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        with archive.open(part) as file:
            while piece := file.read(PIECE_BYTES):
                parser.Parse(piece)
        parser.Parse(b"", True)
    except ExpatError as error:
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; open and save it again") from None


def _refuse_doctype(*_: Any) -> None:
    raise Refused("bad-spreadsheet", "it declares a document type, which no spreadsheet program writes")


def _part_of(archive: ZipFile, name: str) -> str:
    """The part of an xlsx file that holds the sheet of that name."""
    ids, targets = dict[str, str](), dict[str, str]()

    def sheet(tag: str, attributes: Attributes) -> None:
        if tag == "sheet":
            ids[attributes.get("name", "")] = next(v for k, v in attributes.items() if k.rpartition(":")[2] == "id")

    def relation(tag: str, attributes: Attributes) -> None:
        if tag == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _read(archive, "xl/workbook.xml", _Starts(sheet))
    _read(archive, "xl/_rels/workbook.xml.rels", _Starts(relation))
    return normpath(join("/xl", targets[ids[name]])).lstrip("/")


class _Starts:
    """A handler that looks at where elements start."""

    def __init__(self, started: Callable[[str, Attributes], None]) -> None:
        self._started = started

    def start(self, tag: str, attributes: Attributes) -> None:
        self._started(tag.rpartition(":")[2], attributes)

    def end(self, tag: str) -> None: ...

    def text(self, text: str) -> None: ...


class _XlsxSheet:
    """The handler of a worksheet of xlsx: rows of <c r="A1" t="e"> with <f> for a formula and <v> for its value."""

    def __init__(self, found: Oddities) -> None:
        self._found = found
        self._row, self._column = -1, -1
        self._kind, self._formula, self._value = "", False, ""
        self._in_value = False

    def start(self, tag: str, attributes: Attributes) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self._in_value = True
        elif tag == "c":
            place = attributes.get("r")
            self._column = _column(place) if place else self._column + 1
            self._kind, self._formula, self._value = attributes.get("t", ""), False, ""
        elif tag == "f":
            self._formula = True
        elif tag == "row":
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1
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
            if self._kind == "e":
                self._note(f"the error {self._value or '#'}")
            elif self._formula and not self._value and self._kind != "str":
                self._note(UNWORKED)

    def text(self, text: str) -> None:
        if self._in_value:
            self._value += text

    def _note(self, told: str) -> None:
        if len(self._found.faults) < FAULTS_MAX:
            self._found.faults[self._row, self._column] = told


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
        self._in_value = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "table:table":
            self._inside, self._row = attributes.get("table:name") == self._name, 0
        elif not self._inside:
            return
        elif tag == "table:table-row":
            self._column, self._rows = 0, int(attributes.get("table:number-rows-repeated", 1))
        elif tag in ("table:table-cell", "table:covered-table-cell"):
            self._cells = int(attributes.get("table:number-columns-repeated", 1))
            self._attributes, self._value = attributes, ""
        elif tag == "text:p":
            self._in_value = True

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
        elif tag == "text:p":
            self._in_value = False

    def text(self, text: str) -> None:
        if self._inside and self._in_value:
            self._value += text

    def _look(self) -> None:
        """Note what is odd about the cell that ends."""
        own, told = self._attributes, ""
        if own.get("calcext:value-type") == "error" or (
            "table:formula" in own and own.get("office:value-type") != "float" and ERRORS.fullmatch(self._value)
        ):
            told = f"the error {self._value or '#'}"
        elif "table:formula" in own and "office:value-type" not in own:
            told = UNWORKED
        if told and len(self._found.faults) < FAULTS_MAX:
            self._found.faults[self._row, self._column] = told
        if (spanned := int(own.get("table:number-rows-spanned", 1))) > 1:
            self._found.merged.append((self._row, self._row + spanned - 1, self._column))
