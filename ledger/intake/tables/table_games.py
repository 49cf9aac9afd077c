"""Games from the rows of a table, in the long form (one row per participant) and the wide form (one row per game).

game_id,occurred_at,player,place        game_id,occurred_at,1st,2nd,3rd
g-1,2010-03-05T19:30Z,anna,1            g-1,2010-03-05T19:30Z,anna,ben=cleo,
g-1,2010-03-05T19:30Z,ben,2
g-1,2010-03-05T19:30Z,cleo,2

Games get the names that the ledger writes:

Catan                 catan
Settlers of Catan     settlers-of-catan
Dungeons & Dragons    dungeons-dragons
Brändi Dog            brandi-dog
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from ratings_ledger.ledger.intake.tables.columns import (
    NUMBERS,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    column_letters,
    error_told,
    is_place,
    may_hold_errors,
    not_utf8,
    read_game,
    read_members,
    told_not_utf8,
)
from ratings_ledger.ledger.intake.tables.meanings import LOSER, OF_PLAYER, SIDES
from ratings_ledger.ledger.intake.tables.partners import refuse_tied_partners, split_team_cell
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.validation.names import is_dash

LENGTH_MAX = 64
# letters of the Latin script that no accent was put on
_LATIN = str.maketrans({"æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_MARKS = re.compile(r"[\W_]+")


@lru_cache(maxsize=1_024)  # most games of a table are the same
def game_slug(name: str) -> str:
    """Return a game's name in lower case, with hyphens and without accents. Raises `Refused` (bad-slug).

    >>> game_slug("Settlers of Catan"), game_slug("¡Sí, Señor!")
    ('settlers-of-catan', 'si-senor')
    """
    apart = unicodedata.normalize("NFKD", name.casefold().translate(_LATIN))
    found = _MARKS.sub("-", "".join(one for one in apart if not unicodedata.combining(one))).strip("-")
    if not found or not found.isascii() or len(found) > LENGTH_MAX:
        why = f"it has more than {LENGTH_MAX} characters" if found.isascii() and found else "it needs letters a to z"
        raise Refused("bad-slug", f"game: {quote(name)} is not a name like blue-max: {why}; write such a name instead")
    return found


def under_slug(event: Any, used: dict[str, str]) -> Any:
    """Return an event of a table with its game's name as the ledger writes it; `used` gets those that are written
    otherwise.

    Is a `Refused` if there is no such name.
    """
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or not isinstance(written := data.get("game"), str):
        return event
    try:
        slug = game_slug(written)
    except Refused as problem:
        return problem
    if slug != written:
        data["game"] = used[written] = slug
    return event


ROWS_MAX = 4_096
TIE = "="
_NAMES = ("player", "replaces", LOSER, *SIDES)
_ODD = re.compile("[\udc80-\udcff\n\r]")
# line, event or refusal, the rows as read, game id if put together from rows
Found = tuple[int, dict[str, Any] | Refused, Any, str | None]


def games_of_rows(
    rows: Iterator[tuple[int, Cells | Refused]],
    columns: CsvColumns,
    options: TableOptions,
    last_id: str | None = None,
    is_row_whole: bool = False,
) -> Iterator[Found]:
    """Return the games of some rows, after one with the id `last_id`. With `is_row_whole` the rows of a game have one
    line, so that one that cannot be read belongs to no other.
    """
    if columns.places:
        return (_wide_game(line, cells, columns, options) for line, cells in rows)
    return _long_games(rows, columns, options, last_id, is_row_whole)


def plain_cells(rows: Sequence[list[str]], header: Header) -> list[Cells] | None:
    """Return the cells of rows by column if every column has a name, and every cell a text without blanks around it.

    Returns None for all other rows. Several rows at once take half the time of each row by itself.
    """
    texts = rows[0] if len(rows) == 1 else [*chain.from_iterable(rows)]
    text = "|".join(texts)
    is_trimmed = " " not in text or (text.strip() == text and "| " not in text and " |" not in text)
    if not is_trimmed or not text.isprintable() or may_hold_errors(text) or not all(texts):
        return None
    if None in header or "" in header or {*map(len, rows)} != {len(header)}:
        return None
    return [dict(zip(header, row, strict=True)) for row in rows]  # type: ignore[arg-type]  # no name is None


def cells_of(row: list[str], header: Header) -> Cells | Refused:
    """Return the non-empty cells of a row by column, without the columns that --map drops."""
    if (plain := plain_cells([row], header)) is not None:
        return plain[0]
    text = "|".join(row)
    if len(row) > len(header) and any(map(str.strip, row[len(header) :])):
        return Refused("row-length", f"the row has {len(row)} cells, the header {len(header)}")
    is_odd = (not text.isprintable() and _ODD.search(text)) or may_hold_errors(text)
    found = {name: text for name, text in zip(header, map(str.strip, row), strict=False) if text and name is not None}
    if "" not in found and not is_odd:
        return found
    for column, (name, text) in enumerate(zip(header, map(str.strip, row), strict=False)):
        if not text or name is None:
            continue
        if told := error_told(text):
            return Refused("bad-cell", f"column {column_letters(column)}: {told}")
        if not name:
            return Refused("unknown-column", f"{quote(text)} is in a column without a name")
        if not_utf8(text):
            return Refused("bad-utf8", told_not_utf8(text))
        if "\n" in text or "\r" in text:
            # an unclosed quote swallows the rows after it, and with them players of other games
            return Refused("line-break", f"{name}: {quote(text)} runs over several lines; is a quotation mark missing?")
    return found


def name_columns(header: Header) -> tuple[int, ...]:
    """Return which columns have names of players, or of whom it has a column what he got."""
    return tuple(column for column, name in enumerate(header) if name and _is_of_name(name))


def _is_of_name(name: str) -> bool:
    return name in _NAMES or is_place(name) or name.startswith(OF_PLAYER)


def has_dashes(rows: Sequence[list[str]], columns: Iterable[int]) -> bool:
    """Tell whether a dash may stand for an empty cell in one of the columns; the cells are not empty."""
    return not "".join([row[column][0] for column in columns for row in rows]).isalnum()


def without_dashes(row: list[str], columns: Iterable[int]) -> list[str]:
    """Return a row in whose columns of players a dash is an empty cell."""
    for column in columns:
        # most names begin with a letter
        if column < len(row) and not row[column][:1].isalnum() and is_dash(row[column].strip()):
            row = [*row[:column], "", *row[column + 1 :]]
    return row


def _wide_game(line: int, cells: Cells | Refused, columns: CsvColumns, options: TableOptions) -> Found:
    """Return a game from a row whose columns hold the players of each place."""
    if isinstance(cells, Refused):
        return line, cells, None, None
    try:
        event = read_game(cells, columns, options)
        for name, text in cells.items():
            if name in options.team_columns and len(_tied(text, options)) > 1:
                refuse_tied_partners(text)
            if name in columns.places and "" in map(str.strip, _tied(text, options)):
                joint = (*options.ties, TIE)[0]
                told = f"{name}: {quote(text)} ties somebody with nobody; {joint} stands between names"
                raise Refused("bad-identifier", told)
    except Refused as problem:
        return line, problem, cells, None
    try:
        sides = [
            (columns.places[name], split_team_cell(name, "" if is_dash(text.strip()) else text.strip(), options))
            for name, cell in cells.items()
            if name in columns.places
            for text in _tied(cell, options)
        ]
    except Refused as problem:
        return line, problem, cells, None
    event["data"]["participants"] = participants_of(sides)
    return line, event, cells, None


def participants_of(sides: Iterable[tuple[int, list[str]]]) -> list[dict[str, Any]]:
    """Return the participants of a game, given the place and the players of every side; where there are partners, each
    side is a team.
    """
    numbered = list(enumerate(sides, 1))
    in_teams = any(len(players) > 1 for _, (_, players) in numbered)
    return [
        {"player": player, "place": place, **({"team": number} if in_teams else {})}
        for number, (place, players) in numbered
        for player in players
    ]


def _tied(text: str, options: TableOptions) -> list[str]:
    """Return the names in a cell, of players who share a place."""
    for joint in options.ties:
        text = text.replace(joint, TIE)
    return text.split(TIE)


def _long_games(
    rows: Iterator[tuple[int, Cells | Refused]],
    columns: CsvColumns,
    options: TableOptions,
    last_id: str | None,
    is_row_whole: bool,
) -> Iterator[Found]:
    """Yield the games of the rows after the one with the id `last_id`."""

    fixed_id = options.fixed.get("game_id")

    def game_of(row: tuple[int, Cells | Refused]) -> str | int:
        line, cells = row
        game_id = None if isinstance(cells, Refused) else fixed_id or cells.get("game_id")
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
            source = numbered[0][1] if isinstance(numbered[0][1], dict) else None
            yield line, problem, source, None if is_row_whole else last_id
            unreadable = None if is_row_whole else line
            continue
        games = [cells for _, cells in numbered if isinstance(cells, dict)]
        if unreadable is not None:
            # ... or to the game after it
            told = f"the row before it (line {unreadable}) may belong to this game"
            yield line, Refused("game-incomplete", told), games, key
        elif len(numbered) > ROWS_MAX:
            yield line, Refused("record-too-large", f"more than {ROWS_MAX:,} rows belong to one game"), None, key
        else:
            event = _long_game(numbered, columns, options)
            yield (isinstance(event, Refused) and event.line) or line, event, games, key
        last_id, unreadable = key, None


def _long_game(
    numbered: list[tuple[int, Any]], columns: CsvColumns, options: TableOptions
) -> dict[str, Any] | Refused:  # fmt: skip
    """Return the game of some rows, or what is wrong: with one of them, then with its line. It may say nothing of
    players.
    """
    line = None
    try:
        event = read_game(_shared([row for _, row in numbered], columns), columns, options)
        participants = event["data"]["participants"] = []
        for line, row in numbered if columns.player else ():  # noqa: B007
            if "player" not in row:
                raise Refused("missing-member", "the row has no player; name one, or leave the row out")
            participants.append(read_members({name: row[name] for name in columns.player if name in row}))
    except Refused as problem:
        return Refused(problem.code, problem.message, problem.line or line)
    if any(name.startswith(NUMBERS) for name in columns.player):
        _share_numbers(event["data"])
    return event


@lru_cache(maxsize=1)
def _pick(names: tuple[str, ...]) -> Callable[[Cells], tuple[str, ...]]:
    """Return the function that gives the cells of a row in some columns, several times as fast as one by one."""
    return itemgetter(*names) if len(names) > 1 else lambda cells: tuple(cells[name] for name in names)


def _share_numbers(game: dict[str, Any]) -> None:
    """Give the game the numbers that are the same in all of its rows."""
    first, *others = (participant.get("numbers", {}) for participant in game["participants"])
    shared = {name: number for name, number in first.items() if all(other.get(name) == number for other in others)}
    if not shared:
        return
    game["numbers"] = game.get("numbers", {}) | shared
    for participant in game["participants"]:
        own = {name: number for name, number in participant.pop("numbers").items() if name not in shared}
        participant |= {"numbers": own} if own else {}


def _shared(rows: list[Cells], columns: CsvColumns) -> Cells:
    """Return what some or all rows of a game say about the whole game. Raises `Refused` if they disagree."""
    try:
        values: list[tuple[str | None, ...]] = [*map(_pick(columns.game), rows)]
    except KeyError:  # a row says nothing in one of them
        values = [tuple(map(row.get, columns.game)) for row in rows]
    if values.count(values[0]) == len(values):
        return {name: value for name, value in zip(columns.game, values[0], strict=True) if value is not None}
    parts = [{name: row[name] for name in columns.game if name in row} for row in rows]
    shared = {name: value for part in reversed(parts) for name, value in part.items()}
    for part in parts:
        for name, value in part.items():
            if value != shared[name] and not (name == "game" and game_slug(value) == game_slug(shared[name])):
                raise Refused(
                    "rows-disagree", f"{name} is {quote(shared[name])} and {quote(value)} in the rows of one game"
                )
    return shared
