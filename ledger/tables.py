"""Games from CSV, in the long form (a row per participant) and the wide form (a row per game).

    game_id,occurred_at,player,place        game_id,occurred_at,1st,2nd,3rd
    g-1,2010-03-05T19:30Z,anna,1            g-1,2010-03-05T19:30Z,anna,ben=cleo,
    g-1,2010-03-05T19:30Z,ben,2
    g-1,2010-03-05T19:30Z,cleo,2

The delimiter is found from the header. An empty cell is an absent member.
"""

import csv
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import IO, Any, NamedTuple

from ledger.canonical import INTEGER_MAX, format_instant, parse_instant
from ledger.rejections import Refused, shown
from ledger.zones import read_instant

GAME_COLUMNS = (
    "game_id",
    "occurred_at",
    "game",
    "group",
    "city",
    "league",
    "season",
    "rated",
    "aborted",
    "score_order",
)
PLAYER_COLUMNS = ("player", "place", "score", "status", "seat", "seconds_played", "replaces")
INTEGER_COLUMNS = frozenset({"place", "seat", "seconds_played"})
BOOLEAN_COLUMNS = frozenset({"rated", "aborted"})
READ_COLUMNS = INTEGER_COLUMNS | BOOLEAN_COLUMNS | {"score"}
ROWS_MAX = 4_096
DELIMITERS = ",;\t|"
TIE = "="

_ORDINAL = re.compile(r"([1-9]\d{0,3})(st|nd|rd|th)", re.ASCII | re.IGNORECASE)
_ODD = re.compile("[\udc80-\udcff\n\r]")
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

Header = list[str | None]
Cells = dict[str, str]
Found = tuple[int, dict[str, Any] | Refused, Any, str | None]


class _Columns(NamedTuple):
    """The columns that a table has: of the whole game, of a player, and those that hold the players of a place."""

    game: tuple[str, ...]
    player: tuple[str, ...]
    places: dict[str, int]


class TableOptions(NamedTuple):
    """How a table is read: the zone of times without an offset, columns renamed ("" drops one), values for all rows."""

    zone: str | None = None
    renamed: dict[str, str] = {}
    fixed: dict[str, str] = {}


def table_events(file: IO[bytes], options: TableOptions, line_bytes_max: int) -> Iterator[Found]:
    """(line, event or refusal, the rows as read, game id if put together from rows) for every game of a CSV file."""
    lines = _text_lines(file, line_bytes_max)
    number = 1
    try:
        number, header_line = next(((number, line) for number, line in enumerate(lines, 1) if line.strip()), (1, ""))
        if not header_line:
            return
        delimiter, header = _header(header_line, options)
    except Refused as problem:
        yield number, problem, None, None
        return
    rows = _rows(csv.reader(lines, delimiter=delimiter, strict=True), header, number + 1)
    columns = _columns(header)
    if columns.places:
        yield from (_wide_game(line, cells, columns, options) for line, cells in rows)
    else:
        yield from _long_games(rows, columns, options)


def _text_lines(file: IO[bytes], line_bytes_max: int) -> Iterator[str]:
    mark = "\ufeff"
    while line := file.readline(line_bytes_max + 2):
        if len(line) > line_bytes_max:
            raise Refused("line-too-long", f"a line has more than {line_bytes_max:,} bytes")
        # what is not UTF-8 is kept as lone surrogates, so that the row that holds it can be named
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix(mark) if mark else text
        mark = ""


def _header(line: str, options: TableOptions) -> tuple[str, Header]:
    """The delimiter and the columns' names in this program's words, None for those dropped. Raises `Refused`."""
    delimiter = max(DELIMITERS, key=line.count)
    if _not_utf8(line):
        raise Refused("bad-utf8", f"the header {shown(line.strip())} is not UTF-8; save the file as UTF-8")
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise Refused("bad-csv", f"the header cannot be split into columns: {error}") from None
    folded = {theirs.casefold(): ours for theirs, ours in options.renamed.items()}
    header: Header = [folded.get(name.casefold(), name.casefold()) for name in names]
    header = [None if name and not ours else ours for name, ours in zip(names, header, strict=True)]
    if missing := sorted(folded.keys() - {name.casefold() for name in names}):
        raise Refused("missing-column", f"--map names the column {shown(missing[0])}, which the file does not have")
    known = {*GAME_COLUMNS, *PLAYER_COLUMNS}
    unknown = [
        name
        for name, ours in zip(names, header, strict=True)
        if ours and ours not in known and not _ORDINAL.fullmatch(ours)
    ]
    if unknown:
        listed = ", ".join(map(shown, unknown))
        raise Refused(
            "unknown-column",
            f"not known: {listed}; rename a column with --map '{unknown[0]}=OURS', drop it with --map '{unknown[0]}=' "
            f"(known: {', '.join(GAME_COLUMNS + PLAYER_COLUMNS)}, 1st, 2nd ...)",
        )
    given = [name for name in header if name]
    ordinals = [match.group(1) for name in given if (match := _ORDINAL.fullmatch(name))]
    if twice := [name for name in (*given, *ordinals) if given.count(name) > 1 or ordinals.count(name) > 1]:
        raise Refused("bad-csv", f"two columns are called {shown(twice[0])}")
    wide = bool(ordinals)
    if wide and (odd := [name for name in given if name in PLAYER_COLUMNS]):
        raise Refused(
            "unknown-column",
            f"the column {shown(odd[0])} belongs to a row per player, but there are columns 1st, 2nd ...",
        )
    for needed in ("game_id", "occurred_at", "game", *(() if wide else ("player",))):
        if needed not in given and needed not in options.fixed:
            raise Refused(
                "missing-column", f"there is no column {needed!r}; rename yours with --map THEIRS={needed}"
                + (f", or give all rows one value with --set {needed}=..." if needed == "game" else "")
            )  # fmt: skip
    return delimiter, header


def _columns(header: Header) -> _Columns:
    game, player = (tuple(name for name in names if name in header) for names in (GAME_COLUMNS, PLAYER_COLUMNS))
    matches = {name: _ORDINAL.fullmatch(name) for name in header if name}
    return _Columns(game, player, {name: int(match.group(1)) for name, match in matches.items() if match})


def _not_utf8(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)


def _rows(reader: Any, header: Header, first_line: int) -> Iterator[tuple[int, Cells | Refused]]:
    """(line of the row's beginning, its non-empty cells by column); ends at a row that cannot be split into cells."""
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
            return Refused("unknown-column", f"{shown(text)} stands in a column without a name")
        if _not_utf8(text):
            return Refused("bad-utf8", f"{shown(text)} is not UTF-8; save the file as UTF-8")
        if "\n" in text or "\r" in text:
            # a quote that is not closed swallows the rows behind it, and with them players of other games
            return Refused("bad-csv", f"{name}: {shown(text)} runs over several lines; is a quotation mark missing?")
    return found


def _wide_game(line: int, cells: Cells | Refused, columns: _Columns, options: TableOptions) -> Found:
    """A game whose columns hold the players of a place."""
    if isinstance(cells, Refused):
        return line, cells, None, None
    try:
        event = _game(cells, columns, options)
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
    rows: Iterator[tuple[int, Cells | Refused]], columns: _Columns, options: TableOptions
) -> Iterator[Found]:
    def game_of(row: tuple[int, Cells | Refused]) -> str | int:
        line, cells = row
        game_id = None if isinstance(cells, Refused) else options.fixed.get("game_id", cells.get("game_id"))
        if not game_id:
            return line
        return game_id if game_id.isascii() else unicodedata.normalize("NFC", game_id)

    last_id: str | None = None
    unreadable: int | None = None
    for key, group in groupby(rows, game_of):
        # no more than a record can hold, so that a wrong game_id column does not fill the memory
        numbered = list(islice(group, ROWS_MAX + 1))
        line = numbered[0][0]
        if isinstance(key, int):
            problem = numbered[0][1]
            if not isinstance(problem, Refused):
                problem = Refused("missing-member", "the row has no game_id")
            # a row that cannot be read may belong to the game before it, which is then incomplete
            yield line, problem, numbered[0][1] if isinstance(numbered[0][1], dict) else None, last_id
            unreadable = line
            continue
        games = [cells for _, cells in numbered if isinstance(cells, dict)]
        if unreadable is not None:
            # ... or to the game behind it
            yield line, Refused("bad-csv", f"the row before it (line {unreadable}) may belong to this game"), games, key
        elif len(numbered) > ROWS_MAX:
            yield line, Refused("record-too-large", f"more than {ROWS_MAX:,} rows belong to one game"), None, key
        else:
            yield line, _long_game(games, columns, options), games, key
        last_id, unreadable = key, None


def _long_game(rows: list[Cells], columns: _Columns, options: TableOptions) -> dict[str, Any] | Refused:
    try:
        event = _game(_shared(rows, columns), columns, options)
        event["data"]["participants"] = [
            {
                name: _read_value(name, row[name]) if name in READ_COLUMNS else row[name]
                for name in columns.player
                if name in row
            }
            for row in rows
        ]
    except Refused as problem:
        return problem
    return event


def _shared(rows: list[Cells], columns: _Columns) -> Cells:
    """What the rows of a game say of the whole game, each of them or some. Raises `Refused` if they disagree."""
    if _agree(rows, columns):
        return rows[0]
    parts = [{name: row[name] for name in columns.game if name in row} for row in rows]
    shared = {name: value for part in reversed(parts) for name, value in part.items()}
    for part in parts:
        for name, value in part.items():
            if value != shared[name]:
                raise Refused(
                    "rows-disagree", f"{name} is {shown(shared[name])} and {shown(value)} in the rows of one game"
                )
    return shared


def _agree(rows: list[Cells], columns: _Columns) -> bool:
    """Whether all rows say the same of the whole game."""
    first = rows[0]
    for name in columns.game:
        said = first.get(name)
        for row in rows:
            if row.get(name) != said:
                return False
    return True


def _game(cells: Cells, columns: _Columns, options: TableOptions) -> dict[str, Any]:
    members = {**{name: cells[name] for name in columns.game if name in cells}, **options.fixed}
    for needed in ("game_id", "occurred_at"):
        if needed not in members:
            raise Refused("missing-member", f"the row has no {needed}")
    occurred_at = _instant(members.pop("occurred_at"), options.zone)
    data = {name: _value(name, text) for name, text in members.items()}
    return {"type": "game.recorded", "occurred_at": occurred_at, "data": data}


def _instant(text: str, zone: str | None) -> str:
    if text.endswith("Z"):
        # no zone matters; how it is written does neither, since it is read again
        parse_instant(text)
        return text
    return _local_instant(text, zone)


@lru_cache(maxsize=1_024)
def _local_instant(text: str, zone: str | None) -> str:
    return format_instant(read_instant(text, zone))


def _value(name: str, text: str) -> Any:
    return _read_value(name, text) if name in READ_COLUMNS else text


@lru_cache(maxsize=1_024)
def _read_value(name: str, text: str) -> Any:
    if name in BOOLEAN_COLUMNS:
        if text.casefold() not in _BOOLEANS:
            raise Refused("bad-value", f"{name}: {shown(text)} is neither true nor false")
        return _BOOLEANS[text.casefold()]
    whole = _WHOLE.fullmatch(text)
    if name in INTEGER_COLUMNS and not whole:
        raise Refused("not-an-integer", f"{name}: {shown(text)} is not a whole number")
    if name in INTEGER_COLUMNS or (name == "score" and whole):
        if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
            raise Refused("integer-too-large", f"{name}: {shown(text)} is outside +-(2^53 - 1)")
        return int(text)
    return text
