"""The short way through a table with one row per participant: many rows at once, as long as all have the usual form.

Each row is on a line of its own, has all its cells, with nothing around them, and says the same about its game as the
rows next to it. It ends at the first lines for which that is not true, and the rest is read row by row: so this need
not know everything that is valid, and has no messages of its own.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import chain, compress, count, islice, pairwise
from operator import ne
from typing import Any, NamedTuple

from ledger.intake.csv_cells import READ_COLUMNS, Cells, CsvColumns, Header, TableOptions, read_game, read_value
from ledger.rejections import Refused

LINES = 1_000
ROWS_MAX = 4_096

# line, event, a function that gives the rows as read, game id
PlainGame = tuple[int, dict[str, Any], Callable[[], list[Cells]], str]


class Rest(NamedTuple):
    """What is left to be read row by row: lines, the number of the first, and the id of the previous game."""

    lines: Iterator[str]
    first: int
    last_id: str | None


class _Games(NamedTuple):
    """Games put together from some lines: where each begins and the last ends, their events, and all cells."""

    firsts: list[int]
    events: list[dict[str, Any]]
    cells: list[str]


def plain_games(
    lines: Iterator[str], first: int, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> Generator[PlainGame, None, Rest]:
    """The games of the lines after the header, given the number of the first line; returns what is left."""
    last_id: str | None = None
    if "" in header or "game_id" not in header or "game_id" in options.fixed:
        return Rest(lines, first, last_id)
    some: list[str] = []
    while True:
        wanted = len(some) + LINES
        try:
            for line in islice(lines, LINES):
                some.append(line)
        except Refused as problem:
            return Rest(chain(some, _refused(problem)), first, last_id)
        ended = len(some) < wanted
        found = _games(some, ended, delimiter, header, columns, options)
        if found is None:
            return Rest(chain(some, lines), first, last_id)
        for (begin, end), event in zip(pairwise(found.firsts), found.events, strict=True):
            last_id = event["data"]["game_id"]
            yield first + begin, event, partial(_told, header, found.cells, begin, end), last_id
        first += found.firsts[-1]
        del some[: found.firsts[-1]]
        if ended:
            return Rest(iter(some), first, last_id)


def _games(
    lines: list[str], ended: bool, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> _Games | None:
    """The games of some lines, except the last unless the file has ended; None if they need a closer look."""
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
    return _Games(firsts, events, cells)


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
