"""Tables in CSV: lines are split into rows of cells.

Excel saves CSV as Windows-1252 in Western Europe. A file is taken for that only if it is not UTF-8 and all of its other
characters are letters and marks that people there use; anything else has to be named.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import (
    COMMA_DELIMITERS,
    DELIMITERS,
    Cells,
    Header,
    TableOptions,
    header_columns,
    not_utf8,
    only_game_told,
    resolve_columns,
    split_header,
    told_not_utf8,
)
from ratings_ledger.ledger.intake.tables.dates import is_other_date
from ratings_ledger.ledger.intake.tables.layouts.places import PLACES
from ratings_ledger.ledger.intake.tables.layouts.rows import ROWS
from ratings_ledger.ledger.intake.tables.recognition import (
    CELLS_MAX,
    HEADER_ROWS,
    LISTED_MAX,
    Table,
    TableRead,
    convert_commas,
    describe_replaced_column,
    find_header,
    recognise_games,
)
from ratings_ledger.ledger.intake.tables.table_games import (
    Found,
    cells_of,
    games_of_rows,
    has_dashes,
    name_columns,
    plain_cells,
    without_dashes,
)
from ratings_ledger.ledger.rejections import Refused

# so much of a file is looked at; what is longer is UTF-8, or has its encoding named
LOOKED_BYTES, RECODED_BYTES_MAX = 4 << 20, 100_000_000
MARKS = (b"\xff\xfe", b"\xfe\xff")  # how UTF-16 begins
UTF8, WESTERN = "utf-8", "cp1252"
_WESTERN = re.compile(r"[\x00-\x7fÀ-ÖØ-öø-þŒœŠšŽžŸ€‚„“”‘’‹›«»–—…·°ºª½¼¾²³§´`\xa0¡¿]*")
_UTF8 = re.compile(rb"[\xc3-\xf4][\x80-\xbf]")
_ODD_WORD = re.compile(r"[^\W\d_]{0,30}[^\x00-\x7f][^\W\d_]{0,30}")


def as_utf8(file: IO[bytes], encoding: str | None) -> tuple[IO[bytes], str, str]:
    """Return a file as UTF-8, with line feeds; its encoding, and a sentence that says so if it was taken for another
    one.

    What is UTF-8 but for some bytes stays as it is, so that the lines with those can be named. Raises `Refused`.
    """
    head = file.read(LOOKED_BYTES)
    if encoding is None and head.startswith(MARKS):
        encoding = "utf-16"
    if encoding is not None:
        return _lines(_decoded(head + file.read(RECODED_BYTES_MAX), encoding).encode()), encoding, ""
    if len(head) == LOOKED_BYTES:
        start = io.BytesIO(head)
        return io.BufferedReader(Pieces(lambda size: start.read(size) or file.read(size)), 1 << 18), UTF8, ""
    try:
        head.decode()
    except UnicodeDecodeError:
        if (text := _western(head)) is not None:
            odd = ", ".join(dict.fromkeys(one[0] for one in islice(_ODD_WORD.finditer(text), 3)))
            message = f"read as {WESTERN} (Western Europe), such as {odd}; --encoding names another"
            return _lines(text.encode()), WESTERN, message
    return _lines(head), UTF8, ""


def _lines(content: bytes) -> IO[bytes]:
    """Return a content whose lines end with line feeds, not with carriage returns alone, as old Macs write them."""
    if b"\r" in content.replace(b"\r\n", b""):
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return io.BytesIO(content)


def _decoded(raw: bytes, encoding: str) -> str:
    """Raises `Refused` (bad-utf8)."""
    if len(raw) > RECODED_BYTES_MAX:
        raise Refused("bad-utf8", f"a file of more than {RECODED_BYTES_MAX:,} bytes has to be UTF-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"byte {error.start + 1:,} is not {encoding}; name another encoding with --encoding"
        raise Refused("bad-utf8", message, line) from None


def _western(raw: bytes) -> str | None:
    """Return the text, if all of it is as people in Western Europe write, and no character of it was UTF-8."""
    if _UTF8.search(raw):
        return None
    try:
        text = raw.decode(WESTERN)
    except UnicodeDecodeError:
        return None
    return text if _WESTERN.fullmatch(text) else None


class Pieces(io.RawIOBase):
    """A file whose pieces are given by a function of their size at the most."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        self._piece = piece

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the next piece does; the number of bytes, 0 at the end."""
        found = self._piece(len(buffer))
        buffer[: len(found)] = found
        return len(found)


BLANK_LINES_MAX = 100_000
ROWS_AT_ONCE = 64
RECOGNISED_LINES = 1_000  # from which the delimiter is taken
CELL_TOO_LONG = f"a cell has more than {csv.field_size_limit():,} characters, perhaps for want of a quotation mark"


def table_events(
    file: IO[bytes], options: TableOptions, line_bytes_max: int
) -> Iterator[Found | TableRead | TableOptions | str]:
    """(line, event or refusal, the rows as read, game id if put together from rows) for every game in a CSV file.

    A table that has not the usual form is taken for what it is. How it is read comes first, and if that is known only
    in the end, once more; sentences say what else matters.
    """
    head, full, number = list[str](), 0, 1
    try:
        file, encoding, message = as_utf8(file, options.encoding)
        lines = _text_lines(file, line_bytes_max)
        # the header and the first row
        while full < 2 and (line := next(lines, None)) is not None:
            head.append(line)
            full += not line.isspace()
        at = next((at for at, line in enumerate(head) if line.strip()), None)
        if at is None:
            return
        number = at + 1
        delimiter, names = split_header(head[at])
    except Refused as problem:
        yield problem.line or number, problem, None, None
        return
    sentences: tuple[str, ...] = (message,) if message else ()
    header, problems = resolve_columns(names, options)
    # which known ids are not taken apart is told of recognised tables
    has_whole = any(joint in name for joint in options.partners for name in options.whole)
    if (
        problems
        or has_whole
        or options.layout
        or options.dates
        or not _has_usual_dates(head[at + 1 :], delimiter, header)
    ):
        yield from _recognised(chain(head, lines), options, encoding, sentences)
        return
    columns = header_columns(header)
    sentences = (*sentences, *only_game_told(header, options))
    used = {name: ours for name, ours in zip(names, header, strict=True) if ours}
    replaced = {ours: name for name, ours in used.items() if ours in options.fixed}
    layout = PLACES if columns.places else ROWS
    read = TableRead(
        layout.name, {name: ours for name, ours in used.items() if ours not in replaced},
        number, blank=at, dropped=tuple(name for name, ours in zip(names, header, strict=True) if ours is None),
        delimiter=delimiter, encoding=encoding, told=sentences,
    )  # fmt: skip
    yield read
    if options.found is not None:
        options.found(columns)
    blank = [at]
    found = _usual_games(chain(head[at + 1 :], lines), at + 2, delimiter, header, options, blank)
    texts: dict[str, dict[str, None]] = {ours: {} for ours in replaced}
    yield from _noting(found, texts) if texts else found
    if blank != [at]:
        yield read._replace(blank=sum(blank), told=())
    for ours, seen in texts.items():
        if seen:
            yield describe_replaced_column(replaced[ours], seen, ours, options.fixed[ours])


class SimpleTable(NamedTuple):
    """A table of anything but games: its columns without capitals, with their line; the cells of its rows that are not
    empty, with theirs; and what separates cells.
    """

    line: int
    header: list[str]
    rows: list[tuple[int, Cells]]
    delimiter: str


def simple_table(file: IO[bytes], line_bytes_max: int) -> SimpleTable | None:
    """Return a table of anything but games, encoded and delimited as those of games may be; None for one without a
    header.

    Raises `Refused`, with the line, for the first thing that is wrong with it.
    """
    lines = _utf8_lines(_text_lines(as_utf8(file, None)[0], line_bytes_max))
    at, text = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), (0, ""))
    if not at:
        return None
    try:
        delimiter, names = split_header(text)
    except Refused as problem:
        raise Refused(problem.code, problem.message, at) from None
    header: Header = [name.casefold() for name in names]
    rows = list[tuple[int, Cells]]()
    for line, cells in _rows(lines, delimiter, header, at + 1, lambda: None):
        if isinstance(cells, Refused):
            raise Refused(cells.code, cells.message, line)
        rows.append((line, cells))
    return SimpleTable(at, [*map(str, header)], rows, delimiter)


def _utf8_lines(lines: Iterator[str]) -> Iterator[str]:
    """Lines that are UTF-8. Raises `Refused` (bad-utf8) at the first that is not."""
    for number, line in enumerate(lines, 1):
        if not_utf8(line):
            raise Refused("bad-utf8", told_not_utf8(line.strip(), "save the file as UTF-8"), number)
        yield line


def _usual_games(
    lines: Iterator[str], first: int, delimiter: str, header: Header, options: TableOptions, blank: list[int]
) -> Iterator[Found]:
    """Return the games of the lines after a header; for a line that is blank a 1 is added to `blank`."""
    rows = _rows(lines, delimiter, header, first, partial(blank.append, 1))
    return games_of_rows(rows, header_columns(header), options)


def _noting(found: Iterator[Found], texts: dict[str, dict[str, None]]) -> Iterator[Found]:
    """Some games; by column, what their rows have there is kept in `texts`, as far as it will be told."""
    for one in found:
        rows = one[2]
        for row in rows if isinstance(rows, list) else [rows or {}]:
            for ours, seen in texts.items():
                if len(seen) <= LISTED_MAX and (text := row.get(ours)):
                    seen[text] = None
        yield one


def _has_usual_dates(lines: list[str], delimiter: str, header: Header) -> bool:
    """Tell whether the date of the first row, if it has one, is not written as only spreadsheets write it."""
    if not lines or "occurred_at" not in header:
        return True
    with suppress(csv.Error, IndexError):
        row = next(csv.reader(lines[-1:], delimiter=delimiter))
        return not is_other_date(row[header.index("occurred_at")].strip())
    return True


def _recognised(
    lines: Iterator[str], options: TableOptions, encoding: str, message: tuple[str, ...]
) -> Iterator[Found | TableRead | TableOptions | str]:
    """Yield the games of a table of any form, all of whose rows are held in memory if there is a header among the
    first.
    """
    some, cells, blank, problem = list[str](), 0, 0, None
    try:
        for line in islice(lines, RECOGNISED_LINES):
            some.append(line)
    except Refused as stopped:
        lines = _refused_lines(stopped)
    # that which most lines have, and most often
    counts = {mark: [line.count(mark) for line in some] for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: (sum(map(bool, counts[mark])), sum(counts[mark])))
    table = Table([], delimiter=delimiter, encoding=encoding, told=message)
    for number, row in _split_rows(chain(some, lines), delimiter, 1):
        cells += len(row) if isinstance(row, list) else 0
        if cells > CELLS_MAX:
            row = Refused("bad-csv", f"such a table has at most {CELLS_MAX:,} cells; give it the usual form")
        if isinstance(row, Refused):
            problem = number, row, None, None
            break
        if any(map(str.strip, row)):
            table.rows.append((number, row))
        else:
            blank += 1
        if len(table.rows) == HEADER_ROWS and find_header(table.rows, options) is None:
            break
    if table.rows:
        yield from recognise_games(table._replace(blank=blank), options)
    if problem is not None:
        yield problem


def _refused_lines(problem: Refused) -> Iterator[str]:
    """Raise what is wrong with the next line when it is read."""
    raise problem
    yield


def _text_lines(file: IO[bytes], line_bytes_max: int) -> Iterator[str]:
    mark, blank, number = "\ufeff", 0, 0
    while line := file.readline(line_bytes_max + 2):
        number += 1
        if len(line) > line_bytes_max:
            message = f"line {number:,} has more than {line_bytes_max:,} bytes; a table has a line per row"
            raise Refused("line-too-long", message, number)
        blank += line.isspace()
        if blank > BLANK_LINES_MAX:
            raise Refused("too-many-blank-lines", f"more than {BLANK_LINES_MAX:,} lines are blank")
        # anything that is not UTF-8 is kept as lone surrogates, so that the row with it can be named
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix(mark) if mark else text
        mark = ""


def _rows(
    lines: Iterator[str], delimiter: str, header: Header, first_line: int, skip: Callable[[], None]
) -> Iterator[tuple[int, Cells | Refused]]:
    """(line where the row begins, its non-empty cells by column), `skip` being called for a row without any; ends at a
    row that cannot be split into cells.
    """
    named, has_commas = name_columns(header), delimiter in COMMA_DELIMITERS
    numbered_rows = _split_rows(lines, delimiter, first_line)
    while some := [*islice(numbered_rows, ROWS_AT_ONCE)]:
        for line, cells in _read_cells(some, header, named):
            if has_commas and isinstance(cells, dict):
                cells = convert_commas(cells)
            if cells:
                yield line, cells
            else:
                skip()


def _read_cells(
    numbered_rows: list[tuple[int, list[str] | Refused]], header: Header, named: tuple[int, ...]
) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield the non-empty cells of rows by column, `named` being the columns of players."""
    rows = [row for _, row in numbered_rows if isinstance(row, list)]
    if len(rows) == len(numbered_rows) and (plain := plain_cells(rows, header)) and not has_dashes(rows, named):
        yield from zip([line for line, _ in numbered_rows], plain, strict=True)
        return
    for line, row in numbered_rows:
        yield line, row if isinstance(row, Refused) else cells_of(without_dashes(row, named), header)


def _split_rows(lines: Iterator[str], delimiter: str, first_line: int) -> Iterator[tuple[int, list[str] | Refused]]:
    """(line where the row begins, its cells), as far as rows can be read and split; and why not further."""
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), first_line
    try:
        for row in reader:
            yield line, row
            line = first_line + reader.line_num
    except csv.Error as error:
        message = CELL_TOO_LONG if "field limit" in str(error) else str(error)
        yield line, Refused("bad-csv", f"the row cannot be split into cells: {message}; the rest was not read")
    except Refused as problem:
        yield line, Refused(problem.code, f"{problem.message}; the rest was not read")
