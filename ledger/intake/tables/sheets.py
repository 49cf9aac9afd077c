"""Read the sheets of spreadsheet files (.xlsx, .ods) as rows of text.

python-calamine reads the values of the cells; `sheet_markup` reads the rest, such as errors and hidden rows. Both run
in another process with limits on memory and time, because a malicious file may need too much of either.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.intake.tables.columns import TableOptions, is_doubtful
from ratings_ledger.ledger.intake.tables.recognition import CELLS_MAX, LISTED_MAX, Table, TableRead, recognise_games
from ratings_ledger.ledger.intake.tables.sheet_markup import (
    DAMAGE_REMEDY,
    PROTECTED_MESSAGE,
    SAVE_REMEDY,
    CellIndex,
    SheetMarkup,
    open_archive,
    read_markup,
    refuse_damaged,
)
from ratings_ledger.ledger.intake.tables.table_games import ReadGame
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.ledger.rejections import Refused, csv_item, quote

# the limits of the process that reads a spreadsheet
MEMORY_BYTES_MAX, SECONDS_MAX = 1 << 30, 60
ROWS_AT_ONCE = 500
MISSING = "reading spreadsheets needs an optional package: pip install 'ratings-ledger[spreadsheets]'"
LIMITS = f"more than {MEMORY_BYTES_MAX >> 30} GB of memory or {SECONDS_MAX} s"
Row = tuple[int, list[str]]


class Sheet(NamedTuple):
    """A sheet of a spreadsheet.

    name:         the name of the sheet
    rows:         the rows that are not empty, with their numbers from 1
    cell_errors:  a message for each invalid cell, by (row, column) from 0
    other_sheets: the names of the sheets that are not read
    hidden:       the numbers of the hidden rows, from 1
    doubtful:     the cells whose texts could be numbers with separated thousands
    """

    name: str
    rows: list[Row]
    cell_errors: dict[CellIndex, str]
    other_sheets: list[str]
    hidden: list[int]
    doubtful: frozenset[CellIndex]


def read_spreadsheet(path: str, options: TableOptions) -> Iterator[ReadGame | TableRead | TableOptions | str]:
    """Yield the interpretation of a spreadsheet and its games, in the order of `recognise_games`.

    Raises `Refused` if the file or the sheet cannot be read.
    """
    sheet = read_sheet(path, options.sheet)
    if not sheet.rows:
        raise Refused("empty-file", f"the sheet {quote(sheet.name)} is empty; fill it in, or name another with --sheet")
    sentences = list[str]()
    if sheet.other_sheets:
        sentences.append(f"read sheet {sheet.name}, not {', '.join(map(csv_item, sheet.other_sheets))}")
    if sheet.hidden:
        sentences.append(f"{_describe_lines(sheet.hidden)} hidden, and read like the others")
    table = Table(
        sheet.rows,
        blank=sheet.rows[-1][0] - sheet.rows[0][0] + 1 - len(sheet.rows),
        sheet=sheet.name,
        cell_errors=sheet.cell_errors,
        hidden=sheet.hidden,
        other_sheets=sheet.other_sheets,
        doubtful=sheet.doubtful,
        sentences=(*sentences,),
    )
    yield from recognise_games(table, options)


def _describe_lines(lines: list[int]) -> str:
    """Return the subject and verb of a sentence about lines, such as `lines 3, 7 are`; list only the first lines."""
    if len(lines) == 1:
        return f"line {lines[0]} is"
    more = "" if len(lines) <= LISTED_MAX else f" and {len(lines) - LISTED_MAX:,} more"
    return f"lines {', '.join(map(str, lines[:LISTED_MAX]))}{more} are"


def read_sheet(path: str, sheet_name: str | None) -> Sheet:
    """Read the sheet with a name or, if it is None, the only visible sheet with content. Raises `Refused`."""
    try:
        import python_calamine  # noqa: F401
    except ImportError:
        raise Refused("is-a-spreadsheet", f"{MISSING}; or save it as CSV UTF-8") from None
    messages: list[Any] = []
    try:
        content = map(_pack, _read_limited(path, sheet_name))
        with closing(run_ahead(content, seconds=SECONDS_MAX, closes_files=True)) as packed:
            messages.extend(map(json.loads, packed))
    except (WorkerLost, TimeLimitExceeded):
        raise Refused("bad-spreadsheet", f"reading it takes {LIMITS}, or crashes the reader; {SAVE_REMEDY}") from None
    first, rest = messages[0], messages[1:]
    if isinstance(first, str):
        code, _, message = first.partition(" ")
        raise Refused(code, message)
    name, cell_errors, other_sheets, hidden, doubtful = first
    shared: dict[str, str] = {}  # one object per text, because most texts occur in many cells
    rows = [(line, [shared.setdefault(text, text) for text in cells]) for part in rest for line, cells in part]
    errors_by_cell = {(row, column): message for row, column, message in cell_errors}
    return Sheet(name, rows, errors_by_cell, other_sheets, hidden, frozenset(map(tuple, doubtful)))


def _pack(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _read_limited(path: str, sheet_name: str | None) -> Iterator[Any]:
    """Limit this process, then yield the messages of `_read_content`, or the code and message of its refusal."""
    _limit_process()
    try:
        yield from _read_content(path, sheet_name)
    except Refused as problem:
        yield f"{problem.code} {problem.message}"


def _limit_process() -> None:
    """Limit the memory and time of this process, and discard what a failing library prints."""
    import resource

    with suppress(OSError, ValueError, AttributeError):  # some systems lack /proc, sysconf or this limit
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        used = int(pages) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES_MAX, used + MEMORY_BYTES_MAX))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _read_content(path: str, sheet_name: str | None) -> Iterator[Any]:
    """Yield a list of a sheet's name, cell errors, other sheets, hidden rows and doubtful cells, then rows in parts.

    Raises `Refused`.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    with open(path, "rb") as file:
        archive = open_archive(file)
        try:
            refuse_damaged(archive)
            file.seek(0)
            sheet, other_sheets = _choose_sheet(CalamineWorkbook.from_filelike(file), sheet_name)
            if sheet.end is not None and (sheet.end[0] + 1) * (sheet.end[1] + 1) > CELLS_MAX:
                message = f"the sheet {quote(sheet.name)} has more than {CELLS_MAX:,} cells; {SAVE_REMEDY}"
                raise Refused("bad-spreadsheet", message)
            columns = list(zip(*sheet.to_python(skip_empty_area=False), strict=True))
            markup = read_markup(archive, sheet.name, wants_times=any(date in map(type, cells) for cells in columns))
        except Refused:
            raise
        except PasswordError:
            raise Refused("bad-spreadsheet", PROTECTED_MESSAGE) from None
        except (LookupError, ValueError):
            raise Refused("bad-spreadsheet", f"it is damaged: its parts do not fit together; {DAMAGE_REMEDY}") from None
        except (CalamineError, BadZipFile, OSError, EOFError, NotImplementedError, zlib.error) as error:
            raise Refused("bad-spreadsheet", f"it is damaged: {error}; {DAMAGE_REMEDY}") from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of a library in Rust
                raise
            raise Refused("bad-spreadsheet", f"it is damaged: its reader failed; {DAMAGE_REMEDY}") from None
    rows = _list_rows(columns, markup)
    hidden = [line for line, _ in rows if any(first < line <= last + 1 for first, last in markup.hidden)]
    cell_errors = [[row, column, message] for (row, column), message in sorted(markup.cell_errors.items())]
    doubtful = [
        [row, column]
        for column, cells in enumerate(columns)
        for row, cell in enumerate(cells)
        if isinstance(cell, str) and is_doubtful(cell)
    ]
    yield [sheet.name, cell_errors, other_sheets, hidden, doubtful]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def _choose_sheet(book: Any, sheet_name: str | None) -> tuple[Any, list[str]]:
    """Return the sheet to read, and the names of the others.

    Raises `Refused` (bad-spreadsheet, which-sheet, empty-file).
    """
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    names = [sheet.name for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    if not names:
        raise Refused("bad-spreadsheet", f"it has no sheet; {DAMAGE_REMEDY}")
    if sheet_name is not None:
        matching = [name for name in names if name == sheet_name] or [
            name for name in names if name.strip().casefold() == sheet_name.strip().casefold()
        ]
        if not matching:
            listed = ", ".join(map(quote, names))
            raise Refused("which-sheet", f"there is no sheet {quote(sheet_name)}; name one of {listed}")
        return book.get_sheet_by_name(matching[0]), [name for name in names if name != matching[0]]
    visible = {sheet.name for sheet in book.sheets_metadata if sheet.visible == SheetVisibleEnum.Visible}
    full = [sheet for name in names if name in visible and (sheet := book.get_sheet_by_name(name)).end is not None]
    if len(full) > 1:
        listed = ", ".join(quote(sheet.name) for sheet in full)
        raise Refused("which-sheet", f"several sheets have content: {listed}; name one with --sheet")
    if not full:
        raise Refused("empty-file", "all visible sheets are empty; fill one in, or name a hidden one with --sheet")
    return full[0], [name for name in names if name != full[0].name]


def _list_rows(columns: list[tuple[Any, ...]], markup: SheetMarkup) -> list[Row]:
    """Return the rows that are not empty, as text. The content of a merged cell is repeated in each of its rows."""
    texts = [list(map(_format_cell, column)) for column in columns]
    for row, column in markup.timed:
        if column < len(columns) and row < len(columns[column]) and type(columns[column][row]) is date:
            texts[column][row] += " 00:00"
    for top, bottom, column in markup.merged:
        if column < len(texts) and top < len(texts[column]):
            cells = texts[column]
            for row in range(top + 1, min(bottom, len(cells) - 1) + 1):
                cells[row] = cells[row] or cells[top]
    faulty = {row for row, _ in markup.cell_errors}
    lines = enumerate(map(list, zip(*texts, strict=True)), 1)
    return [(line, cells) for line, cells in lines if any(cells) or line - 1 in faulty]


@lru_cache(maxsize=100_000, typed=True)  # most values occur in many cells
def _format_cell(value: Any) -> str:
    """Format a value as a spreadsheet displays it: times to the second, numbers with at most 15 digits."""
    if isinstance(value, str):
        return value
    return str(_FORMATS[type(value)](value))


def _format_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


def _format_datetime(value: datetime) -> str:
    value = (value + timedelta(milliseconds=500)).replace(microsecond=0)
    return f"{value:%Y-%m-%d %H:%M}" if value.second == 0 else f"{value:%Y-%m-%d %H:%M:%S}"


def _format_time(value: time) -> str:
    # always with seconds, so that a result such as 3:1 that became a time is not read as a result
    rounded = datetime.combine(date(2000, 1, 1), value) + timedelta(milliseconds=500)
    return f"{rounded:%H:%M:%S}"


def _format_duration(value: timedelta) -> str:
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


_FORMATS: dict[type, Any] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _format_number,
    datetime: _format_datetime,
    date: date.isoformat,
    time: _format_time,
    timedelta: _format_duration,
}
