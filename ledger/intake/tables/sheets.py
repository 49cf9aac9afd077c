"""The sheets of spreadsheet files (.xlsx, .ods), as rows of text.

python-calamine reads the values. It cannot tell an empty cell from one that shows an error or holds a formula that was
never worked out, so the XML of the sheet is looked through for those, and for cells that are merged. All of that
happens in another process with limits of memory and time: a file may be made to harm whoever reads it.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import product
from pathlib import Path
from posixpath import join, normpath
from typing import IO, Any, NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import BadZipFile, ZipFile

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.intake.tables.columns import PUT_RIGHT, TableOptions, is_doubtful
from ratings_ledger.ledger.intake.tables.recognition import CELLS_MAX, LISTED_MAX, Table, TableRead, recognise_games
from ratings_ledger.ledger.intake.tables.table_games import Found
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.ledger.rejections import Refused, csv_item, quote

EXPANDED_BYTES_MAX = 1 << 30
LOOKED_BYTES = 1 << 20
SAVE = "save the table alone as .xlsx or as CSV UTF-8"
PROTECTED = "it is protected by a password; save it without one"
DAMAGED = "open it in a spreadsheet program and save it again"
XLSX, ODS = "xl/workbook.xml", "content.xml"
# other kinds by a part that each has
OTHERS = {
    "xl/workbook.bin": "it has the binary format of Excel; save it as .xlsx",
    "Index/Document.iwa": "it is a document of Numbers, Pages or Keynote; export it as .xlsx",
    "word/document.xml": "it is a text, not a spreadsheet; copy its table into one",
    "ppt/presentation.xml": "it is a presentation, not a spreadsheet",
}


def opened_archive(file: IO[bytes]) -> ZipFile:
    """Return a spreadsheet as the archive that it is. Raises `Refused`."""
    try:
        archive = ZipFile(file)
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Refused("bad-spreadsheet", f"it is cut off or damaged: {error}; {DAMAGED}") from None
    parts = archive.infolist()
    if sum(part.file_size for part in parts) > EXPANDED_BYTES_MAX:
        raise Refused("bad-spreadsheet", f"it expands to more than {EXPANDED_BYTES_MAX >> 30} GB; {SAVE}")
    names = {part.filename for part in parts}
    if ODS in names:
        _refuse_other_odf(archive)
    elif XLSX not in names:
        raise _other(names)
    return archive


def _refuse_other_odf(archive: ZipFile) -> None:
    """Raises `Refused` for what is encrypted, and for texts and presentations, which have the same parts."""
    if b"encryption-data" in _start(archive, "META-INF/manifest.xml"):
        raise Refused("bad-spreadsheet", PROTECTED)
    kind = _start(archive, "mimetype")
    if b"opendocument" in kind and b"spreadsheet" not in kind:
        raise Refused("is-a-spreadsheet", "it is an OpenDocument, but no spreadsheet; copy its table into one")


def _start(archive: ZipFile, part: str) -> bytes:
    """Return how a part begins; nothing if there is none. Raises `Refused`."""
    try:
        with archive.open(part) as file:
            return file.read(LOOKED_BYTES)
    except KeyError:
        return b""
    except Exception as error:  # of any kind, as compressed bytes can be wrong in many ways
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; {DAMAGED}") from None


def _other(names: set[str]) -> Refused:
    """Return what an archive is said to be that is no spreadsheet."""
    if "encrypted-package" in names:
        return Refused("bad-spreadsheet", PROTECTED)
    for part, told in OTHERS.items():
        if part in names:
            return Refused("is-a-spreadsheet", told)
    if any(name.startswith("xl/") for name in names):
        return Refused("bad-spreadsheet", f"it is damaged: {XLSX} is missing; {DAMAGED}")
    such = f", such as {quote(min(names))}" if names else ""
    return Refused("is-a-spreadsheet", f"it is an archive of {len(names):,} files{such}; take the table out of it")


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
    """Tell whether the text of a part has what makes a closer look worth it."""
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
    """Return the cells of a worksheet of xlsx with one of these styles, if they are written as most programs do; else
    None.

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
    """Return the part of an xlsx file that holds the sheet of that name."""
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
    """Return the numbers of the styles of xlsx that show a time of day."""
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
    """Return the column, from 0, of a place such as C17."""
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
        """Return where the cell is, each time it is repeated."""
        rows, columns = min(self._rows, ROWS_MAX), min(self._cells, COLUMNS_MAX)
        return product(range(self._row, self._row + rows), range(self._column, self._column + columns))


MEMORY_BYTES, SECONDS = 1 << 30, 60
ROWS_AT_ONCE = 500
MISSING = "reading spreadsheets needs the extra spreadsheets: pip install 'ratings-ledger[spreadsheets]'"
LIMITS = f"more than {MEMORY_BYTES >> 30} GB of memory or {SECONDS} s"
Row = tuple[int, list[str]]


class Sheet(NamedTuple):
    """A sheet: its name, its rows that are not empty with their numbers, by row and column (from 0) what is wrong with
    a cell, the names of the sheets that were left out, the numbers of rows that are hidden, and where a text looks like
    a number with its thousands apart.
    """

    name: str
    rows: list[Row]
    faults: dict[tuple[int, int], str]
    left_out: list[str]
    hidden: list[int]
    doubtful: frozenset[tuple[int, int]]


def sheet_events(path: str, options: TableOptions) -> Iterator[Found | TableRead | TableOptions | str]:
    """Yield the games of the sheet that the options name, or the only one, after what was recognised.

    Raises `Refused`.
    """
    sheet = read_sheet(path, options.sheet)
    if not sheet.rows:
        raise Refused("empty-file", f"the sheet {quote(sheet.name)} has nothing in it")
    told = [f"sheet {sheet.name}, not {', '.join(map(csv_item, sheet.left_out))}"] if sheet.left_out else []
    if sheet.hidden:
        told.append(f"{_listed_rows(sheet.hidden)} hidden, and read like the others")
    blank = sheet.rows[-1][0] - sheet.rows[0][0] + 1 - len(sheet.rows)
    table = Table(
        sheet.rows, blank, sheet.name, sheet.faults, sheet.hidden, sheet.left_out, sheet.doubtful, told=(*told,)
    )  # fmt: skip
    yield from recognise_games(table, options)


def _listed_rows(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]} is"
    more = "" if len(lines) <= LISTED_MAX else f" and {len(lines) - LISTED_MAX:,} more"
    return f"lines {', '.join(map(str, lines[:LISTED_MAX]))}{more} are"


def read_sheet(path: str, wanted: str | None) -> Sheet:
    """Return the sheet of that name in a file, or its only one with content that is not hidden. Raises `Refused`."""
    try:
        import python_calamine  # noqa: F401
    except ImportError:
        raise Refused("is-a-spreadsheet", f"{MISSING}; or save it as CSV UTF-8") from None
    messages: list[Any] = []
    try:
        with closing(run_ahead(map(_packed, _told(path, wanted)), seconds=SECONDS, closes_files=True)) as packed:
            messages.extend(map(json.loads, packed))
    except (WorkerLost, TimeLimitExceeded):
        raise Refused("bad-spreadsheet", f"reading it takes {LIMITS}, or breaks the reader; {SAVE}") from None
    first, rest = messages[0], messages[1:]
    if isinstance(first, str):
        code, _, message = first.partition(" ")
        raise Refused(code, message)
    name, faults, left_out, hidden, doubtful = first
    known: dict[str, str] = {}  # most texts occur in many cells
    rows = [(line, [known.setdefault(text, text) for text in cells]) for part in rest for line, cells in part]
    there = {(row, column): told for row, column, told in faults}
    return Sheet(name, rows, there, left_out, hidden, frozenset(map(tuple, doubtful)))


def _packed(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _told(path: str, wanted: str | None) -> Iterator[Any]:
    """Yield what is in a file, from a process of its own: the sheet's name with what is odd in it, then its rows; or a
    code and a message.
    """
    _limit()
    try:
        yield from _content(path, wanted)
    except Refused as problem:
        yield f"{problem.code} {problem.message}"


def _limit() -> None:
    """Bound the memory of this process, and its time; what a library prints on its way down is nobody's business."""
    import resource

    with suppress(OSError, ValueError, AttributeError):  # not every system has each of these
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        held = int(pages) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)


def _content(path: str, wanted: str | None) -> Iterator[Any]:
    """Yield the same. Raises `Refused`."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    with open(path, "rb") as file:
        archive = opened_archive(file)
        try:
            refuse_damaged(archive)
            file.seek(0)
            sheet, left_out = _chosen(CalamineWorkbook.from_filelike(file), wanted)
            if sheet.end is not None and (sheet.end[0] + 1) * (sheet.end[1] + 1) > CELLS_MAX:
                told = f"the sheet {quote(sheet.name)} has more than {CELLS_MAX:,} cells; {SAVE}"
                raise Refused("bad-spreadsheet", told)
            columns = list(zip(*sheet.to_python(skip_empty_area=False), strict=True))
            odd = oddities(archive, sheet.name, any(date in map(type, column) for column in columns))
        except Refused:
            raise
        except PasswordError:
            raise Refused("bad-spreadsheet", PROTECTED) from None
        except (LookupError, ValueError):
            raise Refused("bad-spreadsheet", f"it is damaged: its parts do not fit together; {DAMAGED}") from None
        except (CalamineError, BadZipFile, OSError, EOFError, NotImplementedError, zlib.error) as error:
            raise Refused("bad-spreadsheet", f"it is damaged: {error}; {DAMAGED}") from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # which a library in another language raises
                raise
            raise Refused("bad-spreadsheet", f"it is damaged: its reader gave up; {DAMAGED}") from None
    rows = _rows(columns, odd)
    hidden = [line for line, _ in rows if any(first < line <= last + 1 for first, last in odd.hidden)]
    faults = [[row, column, told] for (row, column), told in sorted(odd.faults.items())]
    doubtful = [
        [row, column] for column, cells in enumerate(columns) for row, cell in enumerate(cells)
        if isinstance(cell, str) and is_doubtful(cell)
    ]  # fmt: skip
    yield [sheet.name, faults, left_out, hidden, doubtful]
    for at in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[at : at + ROWS_AT_ONCE]


def _chosen(book: Any, wanted: str | None) -> tuple[Any, list[str]]:
    """Return the sheet that is read, and the names of the others. Raises `Refused`."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    names = [one.name for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    if not names:
        raise Refused("bad-spreadsheet", f"it has no sheet; {DAMAGED}")
    if wanted is not None:
        found = [name for name in names if name == wanted] or [
            name for name in names if name.strip().casefold() == wanted.strip().casefold()
        ]
        if not found:
            listed = ", ".join(map(quote, names))
            raise Refused("which-sheet", f"there is no sheet {quote(wanted)}; there are {listed}")
        return book.get_sheet_by_name(found[0]), [name for name in names if name != found[0]]
    seen = {one.name for one in book.sheets_metadata if one.visible == SheetVisibleEnum.Visible}
    full = [sheet for name in names if name in seen and (sheet := book.get_sheet_by_name(name)).end is not None]
    if len(full) > 1:
        listed = ", ".join(quote(sheet.name) for sheet in full)
        raise Refused("which-sheet", f"there are several sheets: {listed}; name one with --sheet")
    if not full:
        raise Refused("empty-file", "no sheet that is not hidden has anything in it")
    return full[0], [name for name in names if name != full[0].name]


def _rows(columns: list[tuple[Any, ...]], odd: Oddities) -> list[Row]:
    """Return the rows that are not empty, as text, with what is merged in each of its rows."""
    texts = [list(map(_text, column)) for column in columns]
    for row, column in odd.timed:
        if column < len(columns) and row < len(columns[column]) and type(columns[column][row]) is date:
            texts[column][row] += " 00:00"
    for top, bottom, column in odd.merged:
        if column < len(texts) and top < len(texts[column]):
            cells = texts[column]
            for row in range(top + 1, min(bottom, len(cells) - 1) + 1):
                cells[row] = cells[row] or cells[top]
    faulty = {row for row, _ in odd.faults}
    found = enumerate(map(list, zip(*texts, strict=True)), 1)
    return [(line, cells) for line, cells in found if any(cells) or line - 1 in faulty]


@lru_cache(maxsize=100_000, typed=True)  # most values occur in many cells
def _text(value: Any) -> str:
    """Return a cell as people read it: times to the second, numbers with 15 digits as spreadsheets hold them."""
    if isinstance(value, str):
        return value
    return str(_WRITTEN[type(value)](value))


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


def _moment(value: datetime) -> str:
    value = (value + timedelta(milliseconds=500)).replace(microsecond=0)
    return f"{value:%Y-%m-%d %H:%M}" if value.second == 0 else f"{value:%Y-%m-%d %H:%M:%S}"


def _clock_time(value: time) -> str:
    # always with seconds, so that 3:1 which became a time is not taken for a result
    moment = datetime.combine(date(2000, 1, 1), value) + timedelta(milliseconds=500)
    return f"{moment:%H:%M:%S}"


def _duration(value: timedelta) -> str:
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


_WRITTEN: dict[type, Any] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _number,
    datetime: _moment,
    date: date.isoformat,
    time: _clock_time,
    timedelta: _duration,
}
