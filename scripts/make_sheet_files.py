"""Make real spreadsheet files with LibreOffice Calc: for the tests, in tests/intake/files, and for the examples.

The files are part of the repository, so the script runs only for a new kind of file. It needs Debian's libreoffice-calc
and python3-uno, and the system's Python, which can import the latter:

    /usr/bin/python3 scripts/make_sheet_files.py
"""

import csv
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import uno
from com.sun.star.beans import NamedValue, PropertyValue
from com.sun.star.connection import NoConnectException
from com.sun.star.lang import Locale
from com.sun.star.util import Date

ROOT = Path(__file__).parent.parent
FOLDER, EXAMPLES = ROOT / "tests" / "intake" / "files", ROOT / "examples"
START_SECONDS = 60
XLSX, ODS, XLS = "Calc MS Excel 2007 XML", "calc8", "MS Excel 97"
FILTERS = {".xlsx": XLSX, ".xlsm": "Calc MS Excel 2007 VBA XML", ".ods": ODS, ".xls": XLS}
CSV = "Text - txt - csv (StarCalc)"
# LibreOffice's numbers of encodings
UTF_8, UTF_16, CP1252, CP1250 = 76, 65_535, 1, 33
GERMAN, AMERICAN = Locale("de", "DE", ""), Locale("en", "US", "")
FORMATS = {
    "day": ("DD.MM.YYYY", GERMAN), "moment": ("DD.MM.YYYY HH:MM", GERMAN), "us day": ("MM/DD/YY", AMERICAN),
    "clock": ("HH:MM", GERMAN), "percent": ("0%", AMERICAN), "euro": ("#.##0,00 [$€-407]", GERMAN),
    "two digits": ("0,00", GERMAN),
}  # fmt: skip
EPOCH = datetime(1899, 12, 30)


def build_property(name: str, value: Any) -> Any:
    """Return a named argument in the form that LibreOffice expects."""
    argument = PropertyValue()
    argument.Name, argument.Value = name, value
    return argument


@contextmanager
def run_office() -> Iterator[Any]:
    """Start LibreOffice with its own profile, and provide its desktop."""
    folder = Path(tempfile.mkdtemp())
    pipe = f"sheets-{folder.name}"
    command = ["soffice", "--headless", "--norestore", "--nologo", f"-env:UserInstallation={(folder / 'p').as_uri()}"]
    running = subprocess.Popen([*command, f"--accept=pipe,name={pipe};urp;"])
    resolver = uno.getComponentContext().ServiceManager.createInstance("com.sun.star.bridge.UnoUrlResolver")
    end = time.monotonic() + START_SECONDS
    try:
        while True:
            try:
                context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
                break
            except NoConnectException:
                if time.monotonic() > end or running.poll() is not None:
                    raise
                time.sleep(0.2)
        desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        yield desktop
        desktop.terminate()
        running.wait(START_SECONDS)
    finally:
        running.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _build_password_arguments(password: str, suffix: str) -> list[Any]:
    """Return the arguments that protect a file with a password; they depend on the format."""
    if suffix == ".ods":
        return [build_property("Password", password)]
    values = NamedValue("OOXPassword", password), NamedValue("CryptoType", "Standard")
    return [build_property("EncryptionData", uno.Any("[]com.sun.star.beans.NamedValue", values))]


class Book:
    """A document with sheets to fill and save."""

    def __init__(self, desktop: Any, name: str = "Ergebnisse") -> None:
        self.document = desktop.loadComponentFromURL(
            "private:factory/scalc", "_blank", 0, (build_property("Hidden", True),)
        )
        self.epoch = EPOCH
        self.sheet = self.document.Sheets.getByIndex(0)
        self.sheet.Name = name

    def count_from_1904(self) -> None:
        """Count days from 1904 instead of 1899."""
        self.document.NullDate, self.epoch = Date(1, 1, 1904), datetime(1904, 1, 1)

    def add_sheet(self, name: str, rows: list[list[Any]], *, visible: bool = True) -> None:
        """Add a sheet after the other sheets, and fill it."""
        self.document.Sheets.insertNewByName(name, self.document.Sheets.Count)
        first, self.sheet = self.sheet, self.document.Sheets.getByName(name)
        self.fill(rows)
        self.sheet.IsVisible, self.sheet = visible, first

    def fill(self, rows: list[list[Any]], top: int = 0, formats: dict[int, str] | None = None) -> None:
        """Write rows of cells to the sheet, with formats by column; "=..." is a formula, and "'..." is text."""
        for row, cells in enumerate(rows, top):
            for column, value in enumerate(cells):
                cell = self.sheet.getCellByPosition(column, row)
                self._put(cell, value)
                if (format_name := (formats or {}).get(column)) and not isinstance(value, str):
                    cell.NumberFormat = self._find_format(format_name)

    def _put(self, cell: Any, value: Any) -> None:
        if isinstance(value, date):
            moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
            since = moment - self.epoch
            cell.Value = since.days + since.seconds / 86_400
            cell.NumberFormat = self._find_format("moment" if isinstance(value, datetime) else "day")
        elif isinstance(value, int | float):
            cell.Value = value
        elif isinstance(value, str) and value.startswith("="):
            cell.Formula = value
        elif isinstance(value, str):
            cell.String = value.removeprefix("'")

    def _find_format(self, name: str) -> int:
        code, locale = FORMATS[name]
        formats = self.document.NumberFormats
        key = formats.queryKey(code, locale, False)
        return int(key if key >= 0 else formats.addNew(code, locale))

    def merge(self, *ranges: str) -> None:
        """Merge ranges such as A1:D1."""
        for cell_range in ranges:
            self.sheet.getCellRangeByName(cell_range).merge(True)

    def hide(self, rows: list[int] = [], columns: list[int] = []) -> None:  # noqa: B006
        """Hide rows and columns, which are counted from 0."""
        for row in rows:
            self.sheet.Rows.getByIndex(row).IsVisible = False
        for column in columns:
            self.sheet.Columns.getByIndex(column).IsVisible = False

    def comment(self, cell: str, text: str) -> None:
        """Add a comment to a cell."""
        self.sheet.Annotations.insertNew(self.sheet.getCellRangeByName(cell).CellAddress, text)

    def save(self, *names: str, password: str = "", options: str = "") -> None:
        """Save the document under each name, in the format of its ending; with `options`, save it as CSV."""
        for name in names:
            properties = [build_property("FilterName", CSV if options else FILTERS[Path(name).suffix])]
            properties += [build_property("FilterOptions", options)] if options else []
            properties += _build_password_arguments(password, Path(name).suffix) if password else []
            self.document.storeToURL((FOLDER / name).as_uri(), tuple(properties))

    def save_text(self, name: str, delimiter: str, encoding: int, *, quoted: bool = False) -> None:
        """Save the sheet as CSV with the displayed texts; with `quoted`, put all texts in quotation marks."""
        marks = f"{str(quoted).lower()},false,true"
        self.save(name, options=f"{ord(delimiter)},34,{encoding},1,,0,{marks},false,false,0")

    def close(self) -> None:
        """Close the document."""
        self.document.close(True)


FIRST, SECOND, THIRD = date(2024, 11, 5), date(2024, 11, 12), date(2024, 11, 22)


def fill_club(book: Book) -> None:
    """Fill a typical club's sheet: merged title, two header rows, fees and shares, a total, hidden rows and columns."""
    book.fill([["Spieleabend Catan 2024"], [], [None, None, "Ergebnis", None, "Kasse"]])
    book.merge("A1:E1", "C3:D3")
    book.fill([["Datum", "Spieler", "Platz", "Punkte", "Beitrag", "Anteil"]], 3)
    book.fill(
        [
            [FIRST, "Anna", 1, 10, 2.5, 0.5], [None, "Jürgen", 2, 8, 2.5, 0.25], [None, "Łukasz", 2, 8, 2.5, 0.25],
            [SECOND, "Jürgen", 1, "=5+5", 2.5, 0.5], [None, "Anna", 2, 7, 2.5, 0.5],
            [THIRD, "Łukasz", 1, "'10", 2.5, 0.5], [None, "Anna", 2, 9, 2.5, 0.5],
        ], 4, formats={4: "euro", 5: "percent"},
    )  # fmt: skip
    book.fill([["Summe", None, None, "=SUM(D5:D11)", "=SUM(E5:E11)"]], 11, formats={4: "euro"})
    book.merge("A5:A7", "A8:A9", "A10:A11")
    book.hide(rows=[8], columns=[5])
    book.comment("B5", "Anna kam zu spät: 20:15")
    book.add_sheet("Alt", [["Datum", "Spieler"], [FIRST, "Ben"]], visible=False)
    book.save("club.xlsx", "club.ods", "club.xls", "club.xlsm")
    book.save("club-geheim.xlsx", "club-geheim.ods", password="catan")


def fill_moments(book: Book) -> None:
    """Fill a sheet with times, one of them at midnight, and again with days counted from 1904."""
    rows = [
        ["Date", "Winner", "Loser"],
        [datetime(2024, 11, 22, 20, 5), "anna", "ben"],
        [datetime(2024, 11, 23), "ben", "anna"],
    ]
    book.fill(rows)
    book.save("moments.xlsx", "moments.ods")
    book.count_from_1904()
    book.fill(rows)
    book.save("moments-1904.xlsx", "moments-1904.ods")


def fill_clocks(book: Book) -> None:
    """Fill a sheet with days, and with times of day in a separate column."""
    evening, noon = (20 * 60 + 5) / 1_440, 0.5
    rows = [["Datum", "Uhrzeit", "1.", "2."], [THIRD, evening, "anna", "ben"], [THIRD, noon, "ben", "anna"]]
    book.fill(rows, formats={1: "clock"})
    book.save("clocks.xlsx", "clocks.ods")


def fill_faults(book: Book) -> None:
    """Fill a sheet with formulas that show errors, in used columns and in an unused one."""
    book.fill(
        [
            ["Date", "Player", "Place", "Rating"], [THIRD, "anna", 1, "=1/0"], [THIRD, "ben", "=NA()", 2],
            [THIRD, '=VLOOKUP("x";A1:B2;2;0)', 3, "=SQRT(-1)"], [THIRD, "=#REF!+1", 4, 1],
        ]
    )  # fmt: skip
    book.save("faults.xlsx", "faults.ods")


def fill_members(book: Book) -> None:
    """Fill a sheet with a column per player, fractions, blanks, and notes beside the table."""
    book.fill(
        [["Datum", "Anna", "Jürgen", "Łukasz", None, "Bemerkung"], [FIRST, 10, 7.5, None], [SECOND, None, 8, 8.25],
         [THIRD, 6, 10, 9, None, "bei Anna"]], formats={1: "two digits", 2: "two digits", 3: "two digits"},
    )  # fmt: skip
    book.save("members.xlsx", "members.ods")
    book.save_text("members.csv", ";", UTF_8)
    book.save_text("members-cp1250.csv", ";", CP1250)


def fill_chess(book: Book) -> None:
    """Fill a sheet with two names and a result per row, with American dates, and add a second sheet."""
    book.sheet.Name = "Games"
    book.fill(
        [["Date", "White", "Black", "Result"], [FIRST, "Anna", "José", "'1-0"], [SECOND, "José", "Anna", "'½-½"],
         [THIRD, "Anna", "José", "'0-1"]], formats={0: "us day"},
    )  # fmt: skip
    book.save_text("chess.csv", ",", UTF_8, quoted=True)
    book.save_text("chess-cp1252.csv", ",", CP1252)
    book.save_text("chess-utf16.txt", "\t", UTF_16)
    book.add_sheet("Members", [["Name", "Phone"], ["Anna", "none"]])
    book.save("chess.xlsx", "chess.ods")


def fill_empty(book: Book) -> None:
    """Fill a sheet with formats only, down to its last row."""
    book.sheet.getCellRangeByName("A1:C1048576").CellBackColor = 0xFFFF99
    book.sheet.getCellRangeByName("A1048576").NumberFormat = 10
    book.save("empty.xlsx", "empty.ods")


def fill_winter(book: Book) -> None:
    """Fill a sheet with the season of the examples: a title, German headers, remarks, a typing error, a total."""
    rows = _read_season()
    (misspelt,) = (row for row in rows if row[0] == MISSPELT_GAME)
    misspelt[misspelt.index("Jürgen")] = "Jurgen"
    _fill_winter(book, rows)
    book.save(str(EXAMPLES / "winter-league.xlsx"))


def fill_spring(book: Book) -> None:
    """Fill the same sheet as edited in spring: with one row corrected, and a forgotten game inserted."""
    rows = _read_season()
    (wrong,) = (row for row in rows if row[0] == "wl-90")
    wrong[2:4] = wrong[3], wrong[2]
    first = next(number for number, row in enumerate(rows) if row[1] > LATE)
    _fill_winter(book, [*rows[:first], FORGOTTEN, *rows[first:]])
    book.save(str(EXAMPLES / "winter-league-spring.xlsx"))


def _read_season() -> list[list[Any]]:
    with (EXAMPLES / "winter-league.csv").open(encoding="utf-8") as file:
        _, *games = csv.reader(file)
    return [
        [game_id, datetime.fromisoformat(at), *(cell.replace("=", " / ") for cell in cells), REMARKS.get(game_id)]
        for game_id, at, *cells in games
    ]


REMARKS = {"wl-03": "bis nach Mitternacht", "wl-41": "letztes Spiel vor Neujahr", "wl-44": "anouk und 美咲 gleichauf"}
MISSPELT_GAME = "wl-27"
LATE = datetime(2024, 12, 10, 21, 10)
FORGOTTEN = ["wl-late", LATE, "Łukasz", "anouk / mira", None, "yusuf", None, None, "vergessen"]


def _fill_winter(book: Book, rows: list[list[Any]]) -> None:
    book.sheet.Name = "Winterrunde"
    book.fill([["Catan, Winterrunde 2024/25"], ["dienstags ab 19 Uhr"], []])
    book.fill([["Nr.", "Datum", "1.", "2.", "3.", "4.", "5.", "6.", "Bemerkung"], *rows], 3)
    book.fill([["Gesamt", None, f"=COUNTA(B5:B{4 + len(rows)})"]], 4 + len(rows))


KINDS: tuple[Callable[[Book], None], ...] = (
    fill_club,
    fill_moments,
    fill_clocks,
    fill_faults,
    fill_members,
    fill_chess,
    fill_empty,
    fill_winter,
    fill_spring,
)


def main() -> None:
    """Make all files."""
    FOLDER.mkdir(exist_ok=True)
    with run_office() as desktop:
        for fill in KINDS:
            book = Book(desktop)
            fill(book)
            book.close()
    sys.stdout.write("".join(f"{path.stat().st_size:8,} {path.name}\n" for path in sorted(FOLDER.iterdir())))


if __name__ == "__main__":
    main()
