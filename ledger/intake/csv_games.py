"""Games from CSV, in the long form (one row per participant) and the wide form (one row per game).

    game_id,occurred_at,player,place        game_id,occurred_at,1st,2nd,3rd
    g-1,2010-03-05T19:30Z,anna,1            g-1,2010-03-05T19:30Z,anna,ben=cleo,
    g-1,2010-03-05T19:30Z,ben,2
    g-1,2010-03-05T19:30Z,cleo,2

`csv_cells` knows what the columns are called. Rows of the usual form are read many at a time by
`plain_games`.
"""

import csv
import re
import unicodedata
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import chain, compress, count, groupby, islice, pairwise
from operator import ne
from typing import IO, Any

from ledger.intake.csv_cells import (
    READ_COLUMNS,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    header_columns,
    legible,
    not_utf8,
    read_game,
    read_header,
    read_value,
)
from ledger.rejections import Refused, shown

LINES = 1_000
ROWS_MAX = 4_096
TIE = "="
BLANK_LINES_MAX = 100_000

_ODD = re.compile("[\udc80-\udcff\n\r]")

# line, event, a function that gives the rows as read, game id
PlainGame = tuple[int, dict[str, Any], Callable[[], list[Cells]], str]
Found = tuple[int, dict[str, Any] | Refused, Any, str | None]


def table_events(file: IO[bytes], options: TableOptions, line_bytes_max: int) -> Iterator[Found]:
    """(line, event or refusal, the rows as read, game id if put together from rows) for every game in a CSV file."""
    lines = _text_lines(file, line_bytes_max)
    number = 1
    try:
        number, header_line = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), (1, ""))
        if not header_line:
            return
        delimiter, header, problems = read_header(header_line, options)
    except Refused as problem:
        problems = [problem]
    if problems:
        yield from ((number, problem, None, None) for problem in problems)
        return
    columns = header_columns(header)
    if options.found is not None:
        options.found(columns)
    if columns.places:
        rows = _rows(lines, delimiter, header, number + 1)
        yield from (_wide_game(line, cells, columns, options) for line, cells in rows)
    else:
        lines, first, last_id = yield from plain_games(lines, number + 1, delimiter, header, columns, options)
        yield from _long_games(_rows(lines, delimiter, header, first), columns, options, last_id)


def _text_lines(file: IO[bytes], line_bytes_max: int) -> Iterator[str]:
    mark, blank = "\ufeff", 0
    while line := file.readline(line_bytes_max + 2):
        if len(line) > line_bytes_max:
            raise Refused("line-too-long", f"a line has more than {line_bytes_max:,} bytes")
        blank += line.isspace()
        if blank > BLANK_LINES_MAX:
            raise Refused("too-many-blank-lines", f"more than {BLANK_LINES_MAX:,} lines are blank")
        # anything that is not UTF-8 is kept as lone surrogates, so that the row with it can be named
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix(mark) if mark else text
        mark = ""


def _rows(
    lines: Iterator[str], delimiter: str, header: Header, first_line: int
) -> Iterator[tuple[int, Cells | Refused]]:
    """(line where the row begins, its non-empty cells by column); ends at a row that cannot be split into cells."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = first_line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, Refused("bad-csv", f"the row cannot be split into cells: {error}; the rest was not read")
            return
        except Refused as problem:
            yield line, Refused(problem.code, f"{problem.message}; the rest was not read")
            return
        cells = _cells(row, header)
        if cells:
            yield line, cells


def _cells(row: list[str], header: Header) -> Cells | Refused:
    """The non-empty cells of a row by column, without the columns that --map drops."""
    if len(row) > len(header) and any(map(str.strip, row[len(header) :])):
        return Refused("row-length", f"the row has {len(row)} cells, the header {len(header)}")
    stripped = dict(zip(header, map(str.strip, row), strict=False))
    text = "".join(row)
    odd = not text.isprintable() and _ODD.search(text)
    if not odd and all(stripped) and all(stripped.values()):
        return stripped  # type: ignore[return-value]  # no name is None
    found = {name: text for name, text in zip(header, map(str.strip, row), strict=False) if text and name is not None}
    if "" not in found and not odd:
        return found
    for name, text in found.items():
        if not name:
            return Refused("unknown-column", f"{shown(text)} is in a column without a name")
        if not_utf8(text):
            return Refused("bad-utf8", f"{shown(legible(text))} is not UTF-8; save the file as UTF-8")
        if "\n" in text or "\r" in text:
            # an unclosed quote swallows the rows after it, and with them players of other games
            return Refused("bad-csv", f"{name}: {shown(text)} runs over several lines; is a quotation mark missing?")
    return found


def _wide_game(line: int, cells: Cells | Refused, columns: CsvColumns, options: TableOptions) -> Found:
    """A game from a row whose columns hold the players of each place."""
    if isinstance(cells, Refused):
        return line, cells, None, None
    try:
        event = read_game(cells, columns, options)
    except Refused as problem:
        return line, problem, cells, None
    event["data"]["participants"] = [
        {"player": player.strip(), "place": columns.places[name]}
        for name, text in cells.items()
        if name in columns.places
        for player in text.split(TIE)
    ]
    return line, event, cells, None


def _long_games(
    rows: Iterator[tuple[int, Cells | Refused]], columns: CsvColumns, options: TableOptions, last_id: str | None
) -> Iterator[Found]:
    """The games of the rows after the one with the id `last_id`."""

    def game_of(row: tuple[int, Cells | Refused]) -> str | int:
        line, cells = row
        game_id = None if isinstance(cells, Refused) else options.fixed.get("game_id", cells.get("game_id"))
        if not game_id:
            return line
        return game_id if game_id.isascii() else unicodedata.normalize("NFC", game_id)

    unreadable: int | None = None
    for key, group in groupby(rows, game_of):
        # no more than a record can hold, so that a wrong game_id column does not fill memory
        numbered = list(islice(group, ROWS_MAX + 1))
        line = numbered[0][0]
        if isinstance(key, int):
            problem = numbered[0][1]
            if not isinstance(problem, Refused):
                problem = Refused("missing-member", "the row has no game_id")
            # a row that cannot be read may belong to the previous game, which is then incomplete
            yield line, problem, numbered[0][1] if isinstance(numbered[0][1], dict) else None, last_id
            unreadable = line
            continue
        games = [cells for _, cells in numbered if isinstance(cells, dict)]
        if unreadable is not None:
            # ... or to the game after it
            yield line, Refused("bad-csv", f"the row before it (line {unreadable}) may belong to this game"), games, key
        elif len(numbered) > ROWS_MAX:
            yield line, Refused("record-too-large", f"more than {ROWS_MAX:,} rows belong to one game"), None, key
        else:
            yield line, _long_game(games, columns, options), games, key
        last_id, unreadable = key, None


def _long_game(rows: list[Cells], columns: CsvColumns, options: TableOptions) -> dict[str, Any] | Refused:
    try:
        event = read_game(_shared(rows, columns), columns, options)
        event["data"]["participants"] = [
            {
                name: read_value(name, row[name]) if name in READ_COLUMNS else row[name]
                for name in columns.player
                if name in row
            }
            for row in rows
        ]
    except Refused as problem:
        return problem
    return event


def _shared(rows: list[Cells], columns: CsvColumns) -> Cells:
    """What some or all rows of a game say about the whole game. Raises `Refused` if they disagree."""
    parts = [{name: row[name] for name in columns.game if name in row} for row in rows]
    shared = {name: value for part in reversed(parts) for name, value in part.items()}
    for part in parts:
        for name, value in part.items():
            if value != shared[name]:
                raise Refused(
                    "rows-disagree", f"{name} is {shown(shared[name])} and {shown(value)} in the rows of one game"
                )
    return shared


# The short way through a table with one row per participant: many rows at once, as long as all have the usual form.
# Each row is on a line of its own, has all its cells, with nothing around them, and says the same about its game as the
# rows next to it. It ends at the first lines for which that is not true, and the rest is read row by row: so this need
# not know everything that is valid, and has no messages of its own.


# what is left to be read row by row: lines, the number of the first, and the id of the previous game
Rest = tuple[Iterator[str], int, str | None]


def plain_games(
    lines: Iterator[str], first: int, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> Generator[PlainGame, None, Rest]:
    """The games of the lines after the header, given the number of the first line; returns what is left."""
    last_id: str | None = None
    if "" in header or "game_id" not in header or "game_id" in options.fixed:
        return (lines, first, last_id)
    some: list[str] = []
    while True:
        wanted = len(some) + LINES
        try:
            for line in islice(lines, LINES):
                some.append(line)
        except Refused as problem:
            return (chain(some, _refused(problem)), first, last_id)
        ended = len(some) < wanted
        found = _games(some, ended, delimiter, header, columns, options)
        if found is None:
            return (chain(some, lines), first, last_id)
        firsts, events, cells = found
        for (begin, end), event in zip(pairwise(firsts), events, strict=True):
            last_id = event["data"]["game_id"]
            yield first + begin, event, partial(_told, header, cells, begin, end), last_id
        first += firsts[-1]
        del some[: firsts[-1]]
        if ended:
            return (iter(some), first, last_id)


def _games(
    lines: list[str], ended: bool, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> tuple[list[int], list[dict[str, Any]], list[str]] | None:
    """The games of some lines, except the last unless the file has ended: where each begins and the last ends, their
    events, and all cells. None if they need a closer look."""
    text, width = "".join(lines).replace("\r\n", "\n"), len(header)
    text += "" if text.endswith("\n") else "\n"
    edges = (f" {delimiter}", f"{delimiter} ", " \n", "\n ")
    odd = '"' in text or any(edge in text for edge in edges) or text.startswith(" ")
    if odd or any(line.count(delimiter) != width - 1 for line in lines):
        return None
    cells = text.replace("\n", delimiter).split(delimiter)[:-1]
    if len(cells) != len(lines) * width or not "".join(cells).isprintable():
        return None
    of = {name: cells[column::width] for column, name in enumerate(header)}
    ids = of["game_id"]
    said = list(zip(*(of[name] for name in columns.game), strict=True))
    firsts = [0, *compress(count(1), map(ne, said[1:], said)), *([len(lines)] if ended else [])]
    ascii_ids = all(ids) and "".join(ids).isascii()
    if not ascii_ids or any(ids[begin] == ids[end] for begin, end in pairwise(firsts) if end < len(ids)):
        return None
    try:
        participants = _participants(of, columns)
        events = [
            read_game(
                {name: text for name, text in zip(columns.game, said[begin], strict=True) if text}, columns, options
            )
            for begin in firsts[:-1]
        ]
    except Refused:
        return None
    for event, (begin, end) in zip(events, pairwise(firsts), strict=True):
        if end - begin > ROWS_MAX:
            return None
        event["data"]["participants"] = participants[begin:end]
    return firsts, events, cells


def _participants(of: dict[str | None, list[str]], columns: CsvColumns) -> list[dict[str, Any]]:
    """A participant for every row. Raises `Refused`."""
    names = columns.player
    values = [_values(name, of[name]) if name in READ_COLUMNS or "" in of[name] else of[name] for name in names]
    found = [dict(zip(names, own, strict=True)) for own in zip(*values, strict=True)]
    if all(all(of[name]) for name in names):
        return found
    return [{name: value for name, value in one.items() if value is not None} for one in found]


def _values(name: str, texts: list[str]) -> list[Any]:
    """The values in the cells of a column, None for empty ones. Raises `Refused`."""
    held = {text: read_value(name, text) if name in READ_COLUMNS else text for text in set(texts) if text}
    return list(map(held.get, texts))


def _told(header: Header, cells: list[str], begin: int, end: int) -> list[Cells]:
    """Some rows as shown to people: their non-empty cells by column."""
    rows = (cells[row * len(header) : (row + 1) * len(header)] for row in range(begin, end))
    return [{name: text for name, text in zip(header, row, strict=True) if name and text} for row in rows]


def _refused(problem: Refused) -> Iterator[str]:
    """Lines that cannot be read."""
    raise problem
    yield
