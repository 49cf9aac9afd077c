"""The sheets of spreadsheet files (.xlsx, .ods), as rows of text.

python-calamine reads the values. It cannot tell an empty cell from one that shows an error or holds a formula that was
never worked out, so the XML of the sheet is looked through for those, and for cells that are merged. All of that
happens in another process with limits of memory and time: a file may be made to harm whoever reads it.
"""

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
from ratings_ledger.ledger.intake.archives import DAMAGED, PROTECTED, SAVE, opened_archive
from ratings_ledger.ledger.intake.columns import TableOptions
from ratings_ledger.ledger.intake.decimals import is_doubtful
from ratings_ledger.ledger.intake.recognition import CELLS_MAX, Table, recognised_games
from ratings_ledger.ledger.intake.sheet_parts import Oddities, oddities, refuse_damaged
from ratings_ledger.ledger.intake.table_games import Found
from ratings_ledger.ledger.intake.tables_read import LISTED_MAX, TableRead
from ratings_ledger.ledger.processes.forking import TooSlow, ahead
from ratings_ledger.ledger.rejections import Refused, in_list, shown

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
    """The games of the sheet that the options name, or the only one, after what was recognised.

    Raises `Refused`.
    """
    sheet = read_sheet(path, options.sheet)
    if not sheet.rows:
        raise Refused("empty-file", f"the sheet {shown(sheet.name)} has nothing in it")
    told = [f"sheet {sheet.name}, not {', '.join(map(in_list, sheet.left_out))}"] if sheet.left_out else []
    if sheet.hidden:
        told.append(f"{_listed_rows(sheet.hidden)} hidden, and read like the others")
    blank = sheet.rows[-1][0] - sheet.rows[0][0] + 1 - len(sheet.rows)
    table = Table(
        sheet.rows, blank, sheet.name, sheet.faults, sheet.hidden, sheet.left_out, sheet.doubtful, told=(*told,)
    )  # fmt: skip
    yield from recognised_games(table, options)


def _listed_rows(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]} is"
    more = "" if len(lines) <= LISTED_MAX else f" and {len(lines) - LISTED_MAX:,} more"
    return f"lines {', '.join(map(str, lines[:LISTED_MAX]))}{more} are"


def read_sheet(path: str, wanted: str | None) -> Sheet:
    """The sheet of that name in a file, or its only one with content that is not hidden. Raises `Refused`."""
    try:
        import python_calamine  # noqa: F401
    except ImportError:
        raise Refused("is-a-spreadsheet", f"{MISSING}; or save it as CSV UTF-8") from None
    messages: list[Any] = []
    try:
        with closing(ahead(map(_packed, _told(path, wanted)), seconds=SECONDS, apart=True)) as packed:
            messages.extend(map(json.loads, packed))
    except (WorkerLost, TooSlow):
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
    """What is in a file, from a process of its own: the sheet's name with what is odd in it, then its rows; or a code
    and a message.
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
    """The same. Raises `Refused`."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    with open(path, "rb") as file:
        archive = opened_archive(file)
        try:
            refuse_damaged(archive)
            file.seek(0)
            sheet, left_out = _chosen(CalamineWorkbook.from_filelike(file), wanted)
            if sheet.end is not None and (sheet.end[0] + 1) * (sheet.end[1] + 1) > CELLS_MAX:
                told = f"the sheet {shown(sheet.name)} has more than {CELLS_MAX:,} cells; {SAVE}"
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
    """The sheet that is read, and the names of the others. Raises `Refused`."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    names = [one.name for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    if not names:
        raise Refused("bad-spreadsheet", f"it has no sheet; {DAMAGED}")
    if wanted is not None:
        found = [name for name in names if name == wanted] or [
            name for name in names if name.strip().casefold() == wanted.strip().casefold()
        ]
        if not found:
            listed = ", ".join(map(shown, names))
            raise Refused("which-sheet", f"there is no sheet {shown(wanted)}; there are {listed}")
        return book.get_sheet_by_name(found[0]), [name for name in names if name != found[0]]
    seen = {one.name for one in book.sheets_metadata if one.visible == SheetVisibleEnum.Visible}
    full = [sheet for name in names if name in seen and (sheet := book.get_sheet_by_name(name)).end is not None]
    if len(full) > 1:
        listed = ", ".join(shown(sheet.name) for sheet in full)
        raise Refused("which-sheet", f"there are several sheets: {listed}; name one with --sheet")
    if not full:
        raise Refused("empty-file", "no sheet that is not hidden has anything in it")
    return full[0], [name for name in names if name != full[0].name]


def _rows(columns: list[tuple[Any, ...]], odd: Oddities) -> list[Row]:
    """The rows that are not empty, as text, with what is merged in each of its rows."""
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
    """A cell as people read it: times to the second, numbers with 15 digits as spreadsheets hold them."""
    if isinstance(value, str):
        return value
    return str(_WRITTEN[type(value)](value))


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


def _moment(value: datetime) -> str:
    value = (value + timedelta(milliseconds=500)).replace(microsecond=0)
    return f"{value:%Y-%m-%d %H:%M}" if value.second == 0 else f"{value:%Y-%m-%d %H:%M:%S}"


def _clock_time(value: time) -> str:
    return _moment(datetime.combine(date(2000, 1, 1), value)).partition(" ")[2]


def _duration(value: timedelta) -> str:
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02d}" + (f":{seconds:02d}" if seconds else "")


_WRITTEN: dict[type, Any] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _number,
    datetime: _moment,
    date: date.isoformat,
    time: _clock_time,
    timedelta: _duration,
}
