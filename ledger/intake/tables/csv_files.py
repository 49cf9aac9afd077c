"""Read tables in CSV: recognise their encoding, and split their lines into rows of cells.

Excel saves CSV as Windows-1252 in Western Europe. A file is read as Windows-1252 only if it is not UTF-8, and all of
its characters are in use in Western Europe. UTF-16 is recognised by its mark; any other encoding has to be named.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import (
    COMMA_DELIMITERS,
    DELIMITERS,
    SPLIT_ADVICE,
    Cells,
    Header,
    TableOptions,
    describe_invalid_utf8,
    describe_only_game,
    group_columns,
    has_invalid_utf8,
    resolve_columns,
    split_header,
)
from ratings_ledger.ledger.intake.tables.dates import is_spreadsheet_date
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
    ReadGame,
    blank_dashes,
    find_name_columns,
    has_dashes,
    read_plain_cells,
    read_row_cells,
    read_row_games,
)
from ratings_ledger.ledger.rejections import Refused

# Files of START_BYTES or more are read as UTF-8 unless they have a UTF-16 mark or their encoding is named.
START_BYTES, RECODED_BYTES_MAX = 4 << 20, 100_000_000
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8, WESTERN = "utf-8", "cp1252"
_WESTERN = re.compile(r"[\x00-\x7fÀ-ÖØ-öø-þŒœŠšŽžŸ€‚„“”‘’‹›«»–—…·°ºª½¼¾²³§´`\xa0¡¿]*")
_UTF8 = re.compile(rb"[\xc3-\xf4][\x80-\xbf]")
_NON_ASCII_WORD = re.compile(r"[^\W\d_]{0,30}[^\x00-\x7f][^\W\d_]{0,30}")


def convert_to_utf8(file: IO[bytes], encoding: str | None) -> tuple[IO[bytes], str, str]:
    """Convert a file to UTF-8, and the line ends of old Macs to line feeds.

    A file of `START_BYTES` or more is read unchanged, unless its encoding is named or the file has a UTF-16 mark.

    Returns the converted file, the original encoding, and a sentence about the encoding if Windows-1252 was recognised,
    else an empty text. A UTF-8 file with some invalid bytes keeps them, so that messages can name their lines.
    Raises `Refused` (bad-utf8).
    """
    start = file.read(START_BYTES)
    if encoding is None and start.startswith(UTF16_MARKS):
        encoding = "utf-16"
    if encoding is not None:
        return _end_lines_with_feeds(_decode(start + file.read(RECODED_BYTES_MAX), encoding).encode()), encoding, ""
    if len(start) == START_BYTES:
        first = io.BytesIO(start)
        return io.BufferedReader(PieceReader(lambda size: first.read(size) or file.read(size)), 1 << 18), UTF8, ""
    try:
        start.decode()
    except UnicodeDecodeError:
        if (text := _decode_western(start)) is not None:
            examples = ", ".join(dict.fromkeys(word[0] for word in islice(_NON_ASCII_WORD.finditer(text), 3)))
            advice = "if their letters are wrong, pass --encoding"
            message = f"read as {WESTERN} (Western Europe), with texts such as {examples}; {advice}"
            return _end_lines_with_feeds(text.encode()), WESTERN, message
    return _end_lines_with_feeds(start), UTF8, ""


def _end_lines_with_feeds(content: bytes) -> IO[bytes]:
    """Return a file with the content, with line feeds in place of the carriage returns of old Macs."""
    if b"\r" in content.replace(b"\r\n", b""):
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return io.BytesIO(content)


def _decode(raw: bytes, encoding: str) -> str:
    """Decode a file in a named encoding. Raises `Refused` (bad-utf8) if it is too large or in another encoding."""
    if len(raw) > RECODED_BYTES_MAX:
        limit = f"a file that is converted from {encoding} may have at most {RECODED_BYTES_MAX:,} bytes"
        raise Refused("bad-utf8", f"{limit}; save it as UTF-8, and name no encoding")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"byte {error.start + 1:,} is not {encoding}; name another encoding with --encoding"
        raise Refused("bad-utf8", message, line) from None


def _decode_western(raw: bytes) -> str | None:
    """Decode a file as Windows-1252; return None if it has UTF-8 characters, or ones not used in Western Europe."""
    if _UTF8.search(raw):
        return None
    try:
        text = raw.decode(WESTERN)
    except UnicodeDecodeError:
        return None
    return text if _WESTERN.fullmatch(text) else None


class PieceReader(io.RawIOBase):
    """A readable file that gets its content from a function. The function returns at most a given number of bytes."""

    def __init__(self, read_piece: Callable[[int], bytes]) -> None:
        self._read_piece = read_piece

    def readable(self) -> bool:
        """Return True, because the content can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy the next piece into a buffer; return its number of bytes, 0 at the end."""
        piece = self._read_piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


BLANK_LINES_MAX = 100_000
ROWS_AT_ONCE = 64
DELIMITER_LINES = 1_000  # the delimiter is recognised in the first 1,000 lines
CELL_TOO_LONG = f"a cell has more than {csv.field_size_limit():,} characters"


def read_csv_table(
    file: IO[bytes], options: TableOptions, line_bytes_max: int
) -> Iterator[ReadGame | TableRead | TableOptions | str]:
    """Yield the interpretation of a CSV file, then its games and sentences for the user.

    A table in the usual form is read row by row; any other is recognised as a whole. If blank lines were left out among
    the rows, the interpretation is yielded again at the end, with the number of blank lines.
    """
    head, filled, number = list[str](), 0, 1
    try:
        file, encoding, message = convert_to_utf8(file, options.encoding)
        lines = _decode_lines(file, line_bytes_max)
        # the header and the first row
        while filled < 2 and (line := next(lines, None)) is not None:
            head.append(line)
            filled += not line.isspace()
        blank_lines = next((index for index, line in enumerate(head) if line.strip()), None)
        if blank_lines is None:
            return
        number = blank_lines + 1
        delimiter, names = split_header(head[blank_lines])
    except Refused as problem:
        yield problem.line or number, problem, None, None
        return
    sentences: tuple[str, ...] = (message,) if message else ()
    header, problems = resolve_columns(names, options)
    if problems or _needs_recognition(options) or not _has_usual_dates(head[number:], delimiter, header):
        yield from _recognise_table(chain(head, lines), options, encoding, sentences)
        return
    columns = group_columns(header)
    sentences = (*sentences, *describe_only_game(header, options))
    used = {name: ours for name, ours in zip(names, header, strict=True) if ours}
    replaced = {ours: name for name, ours in used.items() if ours in options.fixed}
    layout = PLACES if columns.places else ROWS
    table_read = TableRead(
        layout.name,
        {name: ours for name, ours in used.items() if ours not in replaced},
        number,
        blank=blank_lines,
        dropped=tuple(name for name, ours in zip(names, header, strict=True) if ours is None),
        delimiter=delimiter,
        encoding=encoding,
        sentences=sentences,
    )
    yield table_read
    if options.on_columns is not None:
        options.on_columns(columns)
    blank = [blank_lines]
    rows = _read_rows(chain(head[number:], lines), delimiter, header, number + 1, partial(blank.append, 1))
    games = read_row_games(rows, group_columns(header), options)
    replaced_texts: dict[str, dict[str, None]] = {ours: {} for ours in replaced}
    yield from _collect_texts(games, replaced_texts) if replaced_texts else games
    if blank != [blank_lines]:
        yield table_read._replace(blank=sum(blank), sentences=())
    for ours, texts in replaced_texts.items():
        if texts:
            yield describe_replaced_column(replaced[ours], texts, ours, options.fixed[ours])


class SimpleTable(NamedTuple):
    """A table that does not contain games.

    line:      the line of the header
    header:    the names of the columns in lower case
    rows:      (line, non-empty cells by column) of each row
    delimiter: the separator of cells
    """

    line: int
    header: list[str]
    rows: list[tuple[int, Cells]]
    delimiter: str


def parse_simple_table(file: IO[bytes], line_bytes_max: int) -> SimpleTable | None:
    """Parse a table that does not contain games, in UTF-8, UTF-16 or Windows-1252, with the delimiter of its header.

    Returns None for an empty file. Raises `Refused` for the first problem, with its line if it has one.
    """
    lines = _require_utf8(_decode_lines(convert_to_utf8(file, None)[0], line_bytes_max))
    header_line, text = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), (0, ""))
    if not header_line:
        return None
    try:
        delimiter, names = split_header(text)
    except Refused as problem:
        raise Refused(problem.code, problem.message, header_line) from None
    header: Header = [name.casefold() for name in names]
    rows = list[tuple[int, Cells]]()
    for line, cells in _read_rows(lines, delimiter, header, header_line + 1, lambda: None):
        if isinstance(cells, Refused):
            raise Refused(cells.code, cells.message, line)
        rows.append((line, cells))
    return SimpleTable(header_line, [*map(str, header)], rows, delimiter)


def _require_utf8(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines. Raises `Refused` (bad-utf8), with the line, at the first line with invalid UTF-8."""
    for number, line in enumerate(lines, 1):
        if has_invalid_utf8(line):
            raise Refused("bad-utf8", describe_invalid_utf8(line.strip(), "save the file as UTF-8"), number)
        yield line


def _collect_texts(games: Iterator[ReadGame], texts_by_column: dict[str, dict[str, None]]) -> Iterator[ReadGame]:
    """Yield games, and collect the first distinct texts that their rows have in some columns."""
    for game in games:
        rows = game[2]
        for row in rows if isinstance(rows, list) else [rows or {}]:
            for ours, texts in texts_by_column.items():
                if len(texts) <= LISTED_MAX and (text := row.get(ours)):
                    texts[text] = None
        yield game


def _needs_recognition(options: TableOptions) -> bool:
    """Tell whether options require recognition of the whole table even if it is in the usual form."""
    # only recognition reports known ids that contain a separator
    has_whole_ids = any(separator in name for separator in options.partners for name in options.unsplit_ids)
    return bool(has_whole_ids or options.layout or options.dates)


def _has_usual_dates(lines: list[str], delimiter: str, header: Header) -> bool:
    """Tell whether the first row has no date or a date in the usual form, not one as spreadsheets write it."""
    if not lines or "occurred_at" not in header:
        return True
    with suppress(csv.Error, IndexError):
        row = next(csv.reader(lines[-1:], delimiter=delimiter))
        return not is_spreadsheet_date(row[header.index("occurred_at")].strip())
    return True


def _recognise_table(
    lines: Iterator[str], options: TableOptions, encoding: str, sentences: tuple[str, ...]
) -> Iterator[ReadGame | TableRead | TableOptions | str]:
    """Yield the interpretation of a table of any form, then its games.

    All rows are held in memory, unless the first rows contain no header.
    """
    first_lines, cell_count, blank, problem = list[str](), 0, 0, None
    try:
        for line in islice(lines, DELIMITER_LINES):
            first_lines.append(line)
    except Refused as refused:
        lines = _raise_when_read(refused)
    # the delimiter that occurs in most lines; of several, the most frequent
    counts = {mark: [line.count(mark) for line in first_lines] for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: (sum(map(bool, counts[mark])), sum(counts[mark])))
    table = Table([], delimiter=delimiter, encoding=encoding, sentences=sentences)
    for number, row in _split_rows(chain(first_lines, lines), delimiter, 1):
        cell_count += len(row) if isinstance(row, list) else 0
        if cell_count > CELLS_MAX:
            message = (
                f"the table has more than {CELLS_MAX:,} cells; import it in parts, or with the columns game, game_id, "
            )
            row = Refused("bad-csv", f"{message}occurred_at, player and place, because such a table is read row by row")
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


def _raise_when_read(problem: Refused) -> Iterator[str]:
    """Raise a refusal when the first line is read."""
    raise problem
    yield


def _decode_lines(file: IO[bytes], line_bytes_max: int) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as text, with lone surrogates for invalid bytes.

    Raises `Refused` for a line that is too long, with this line, and for too many blank lines.
    """
    byte_order_mark, blank, number = "\ufeff", 0, 0
    while line := file.readline(line_bytes_max + 2):
        number += 1
        if len(line) > line_bytes_max:
            message = f"line {number:,} has more than {line_bytes_max:,} bytes; write each row on a line of its own"
            raise Refused("line-too-long", message, number)
        blank += line.isspace()
        if blank > BLANK_LINES_MAX:
            raise Refused("too-many-blank-lines", f"more than {BLANK_LINES_MAX:,} lines are blank; delete them")
        text = line.decode("utf-8", "surrogateescape")  # so that messages can name the row with invalid bytes
        yield text.removeprefix(byte_order_mark) if byte_order_mark else text
        byte_order_mark = ""


def _read_rows(
    lines: Iterator[str], delimiter: str, header: Header, first_line: int, count_blank: Callable[[], None]
) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield the first line of each row and its non-empty cells by column; call `count_blank` for each blank row.

    A row that cannot be split into cells ends the table; its refusal is the last element.
    """
    name_columns, has_commas = find_name_columns(header), delimiter in COMMA_DELIMITERS
    numbered_rows = _split_rows(lines, delimiter, first_line)
    while batch := [*islice(numbered_rows, ROWS_AT_ONCE)]:
        rows = [row for _, row in batch if isinstance(row, list)]
        all_cells: Iterable[Cells | Refused]
        if len(rows) == len(batch) and (plain := read_plain_cells(rows, header)) and not has_dashes(rows, name_columns):
            all_cells = plain
        else:
            all_cells = (
                row if isinstance(row, Refused) else read_row_cells(blank_dashes(row, name_columns), header)
                for _, row in batch
            )
        if has_commas:
            all_cells = (convert_commas(cells) if isinstance(cells, dict) else cells for cells in all_cells)
        for (line, _), cells in zip(batch, all_cells, strict=True):
            if cells:
                yield line, cells
            else:
                count_blank()


def _split_rows(lines: Iterator[str], delimiter: str, first_line: int) -> Iterator[tuple[int, list[str] | Refused]]:
    """Yield the first line of each row and its cells; if a row cannot be read, yield its refusal and stop."""
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), first_line
    try:
        for row in reader:
            yield line, row
            line = first_line + reader.line_num
    except csv.Error as error:
        message = CELL_TOO_LONG if "field limit" in str(error) else str(error)
        problem = f"the row cannot be split into cells: {message}; {SPLIT_ADVICE}"
        yield line, Refused("bad-csv", f"{problem}; the rest was not read")
    except Refused as problem:
        yield line, Refused(problem.code, f"{problem.message}; the rest was not read")
