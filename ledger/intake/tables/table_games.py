"""Read games from the rows of a table, in the long form (one row per participant) or the wide form (one row per game).

game_id,occurred_at,player,place        game_id,occurred_at,1st,2nd,3rd
g-1,2010-03-05T19:30Z,anna,1            g-1,2010-03-05T19:30Z,anna,ben=cleo,
g-1,2010-03-05T19:30Z,ben,2
g-1,2010-03-05T19:30Z,cleo,2

The names of games become slugs:

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

from ratings_ledger.ledger.events.games import build_participants
from ratings_ledger.ledger.intake.tables.columns import (
    EXTRA,
    NUMBERS,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    describe_cell_error,
    describe_invalid_utf8,
    has_invalid_utf8,
    is_place,
    may_hold_errors,
    read_game,
    read_members,
    write_column_letters,
)
from ratings_ledger.ledger.intake.tables.meanings import LOSER, PLAYER_PREFIX, SIDES
from ratings_ledger.ledger.intake.tables.partners import refuse_tied_partners, split_team_cell
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.validation.close_names import is_dash

SLUG_LENGTH_MAX = 64
# Latin letters that do not decompose into a letter and an accent
_LATIN = str.maketrans({"æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_SEPARATORS = re.compile(r"[\W_]+")


@lru_cache(maxsize=1_024)  # most games of a table are the same
def make_slug(name: str) -> str:
    """Return the slug of a game's name: in lower case, with hyphens, without accents. Raises `Refused` (bad-slug).

    >>> make_slug("Settlers of Catan"), make_slug("¡Sí, Señor!")
    ('settlers-of-catan', 'si-senor')
    """
    decomposed = unicodedata.normalize("NFKD", name.casefold().translate(_LATIN))
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    slug = _SEPARATORS.sub("-", plain).strip("-")
    if not slug or not slug.isascii() or len(slug) > SLUG_LENGTH_MAX:
        limit = f"at most {SLUG_LENGTH_MAX} characters" if slug.isascii() and slug else "letters a to z"
        raise Refused("bad-slug", f"game: {quote(name)} is not a name like blue-max; write one with {limit}")
    return slug


def apply_slug(event: Any, slugs: dict[str, str]) -> Any:
    """Replace the name of the game in an event by its slug; if they differ, add the slug to `slugs` under the name.

    Returns the event, or a `Refused` if the name has no slug.
    """
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or not isinstance(name := data.get("game"), str):
        return event
    try:
        slug = make_slug(name)
    except Refused as problem:
        return problem
    if slug != name:
        data["game"] = slugs[name] = slug
    return event


ROWS_MAX = 4_096
TIE = "="
_NAME_COLUMNS = ("player", "replaces", LOSER, *SIDES)
# characters of cells that are refused: bytes that are not UTF-8, and line breaks
_INVALID = re.compile("[\udc80-\udcff\n\r]")
# (line, event or its refusal, rows from which it was read, game id if several rows may belong to the game)
ReadGame = tuple[int, dict[str, Any] | Refused, Any, str | None]


def read_row_games(
    rows: Iterator[tuple[int, Cells | Refused]],
    columns: CsvColumns,
    options: TableOptions,
    is_row_whole: bool = False,
) -> Iterator[ReadGame]:
    """Yield the games of rows.

    With `is_row_whole`, each row of the table is a game, so an unreadable row cannot belong to another game.
    """
    if columns.places:
        return (_read_wide_game(line, cells, columns, options) for line, cells in rows)
    return _read_long_games(rows, columns, options, is_row_whole)


def read_plain_cells(rows: Sequence[list[str]], header: Header) -> list[Cells] | None:
    """Return the cells of rows by column if they need no cleaning or checks; else None.

    Several rows together take half the time of single rows.
    """
    texts = rows[0] if len(rows) == 1 else [*chain.from_iterable(rows)]
    text = "|".join(texts)
    is_trimmed = " " not in text or (text.strip() == text and "| " not in text and " |" not in text)
    if not is_trimmed or not text.isprintable() or may_hold_errors(text) or not all(texts):
        return None
    if None in header or "" in header or {*map(len, rows)} != {len(header)}:
        return None
    return [dict(zip(header, row, strict=True)) for row in rows]  # type: ignore[arg-type]  # all names are texts


def read_row_cells(row: list[str], header: Header) -> Cells | Refused:
    """Return the non-empty cells of a row by meaning, without dropped columns, or a refusal of the row."""
    if (plain := read_plain_cells([row], header)) is not None:
        return plain[0]
    text = "|".join(row)
    if len(row) > len(header) and any(map(str.strip, row[len(header) :])):
        message = f"the row has {len(row)} cells, but the header only {len(header)}; delete the additional cells"
        return Refused("row-length", message)
    may_be_invalid = (not text.isprintable() and _INVALID.search(text)) or may_hold_errors(text)
    cells = {name: text for name, text in zip(header, map(str.strip, row), strict=False) if text and name is not None}
    if "" not in cells and not may_be_invalid:
        return cells
    for column, (name, text) in enumerate(zip(header, map(str.strip, row), strict=False)):
        if not text or name is None:
            continue
        if problem := describe_cell_error(text):
            return Refused("bad-cell", f"column {write_column_letters(column)}: {problem}")
        if not name:
            return Refused("unknown-column", f"{quote(text)} is in a column without a name; give the column a name")
        if has_invalid_utf8(text):
            return Refused("bad-utf8", describe_invalid_utf8(text))
        if "\n" in text or "\r" in text:
            # after an unclosed quotation mark, the cell contains the rows of other games
            message = (
                f"{name}: {quote(text)} contains a line break; add the missing quotation mark, or remove the break"
            )
            return Refused("line-break", message)
    return cells


def find_name_columns(header: Header) -> tuple[int, ...]:
    """Return the indexes of the columns that contain the names of players, or that are named after a player."""
    return tuple(column for column, name in enumerate(header) if name and _names_players(name))


def _names_players(name: str) -> bool:
    return name in _NAME_COLUMNS or is_place(name) or name.startswith(PLAYER_PREFIX)


def has_dashes(rows: Sequence[list[str]], columns: Iterable[int]) -> bool:
    """Tell whether a cell in one of the columns may be a dash. The cells must not be empty."""
    return not "".join([row[column][0] for column in columns for row in rows]).isalnum()


def blank_dashes(row: list[str], columns: Iterable[int]) -> list[str]:
    """Return a row in which the cells of the given columns are empty if they contained only dashes."""
    for column in columns:
        # fast for most names, which begin with a letter
        if column < len(row) and not row[column][:1].isalnum() and is_dash(row[column].strip()):
            row = [*row[:column], "", *row[column + 1 :]]
    return row


def _read_wide_game(line: int, cells: Cells | Refused, columns: CsvColumns, options: TableOptions) -> ReadGame:
    """Return the game of a row in a table with a column per place."""
    if isinstance(cells, Refused):
        return line, cells, None, None
    try:
        event = read_game(cells, columns, options)
        for name, text in cells.items():
            if name in options.team_columns and len(_split_ties(text, options)) > 1:
                refuse_tied_partners(text)
            if name in columns.places and "" in map(str.strip, _split_ties(text, options)):
                separator = next((mark for mark in (*options.ties, TIE) if mark in text), TIE)
                message = f"{name}: {quote(text)} contains an empty name; write names on both sides of {separator}"
                raise Refused("bad-identifier", message)
    except Refused as problem:
        return line, problem, cells, None
    try:
        sides = [
            (columns.places[name], split_team_cell(name, "" if is_dash(text.strip()) else text.strip(), options))
            for name, cell in cells.items()
            if name in columns.places
            for text in _split_ties(cell, options)
        ]
    except Refused as problem:
        return line, problem, cells, None
    event["data"]["participants"] = build_participants(sides)
    return line, event, cells, None


def _split_ties(text: str, options: TableOptions) -> list[str]:
    """Split a cell into the sides that share its place."""
    for separator in options.ties:
        text = text.replace(separator, TIE)
    return text.split(TIE)


def _read_long_games(
    rows: Iterator[tuple[int, Cells | Refused]], columns: CsvColumns, options: TableOptions, is_row_whole: bool
) -> Iterator[ReadGame]:
    """Yield the games of rows in a table with a row per participant, given the arguments of `read_row_games`."""
    fixed_id = options.fixed.get("game_id")

    def find_game(row: tuple[int, Cells | Refused]) -> str | int:
        """Return the id of a row's game, or the row's line if it has none."""
        line, cells = row
        game_id = None if isinstance(cells, Refused) else fixed_id or cells.get("game_id")
        if not game_id:
            return line
        return game_id if game_id.isascii() else unicodedata.normalize("NFC", game_id)

    last_id: str | None = None
    unreadable: int | None = None
    for key, group in groupby(rows, find_game):
        # no record holds ROWS_MAX rows; the limit keeps a wrong column for game_id from filling the memory
        numbered_rows = list(islice(group, ROWS_MAX + 1))
        line = numbered_rows[0][0]
        if isinstance(key, int):
            problem = numbered_rows[0][1]
            if not isinstance(problem, Refused):
                problem = Refused("missing-member", "the row has no game_id; fill in the cell")
            # an unreadable row may belong to the previous game, so that game may be incomplete
            source = numbered_rows[0][1] if isinstance(numbered_rows[0][1], dict) else None
            yield line, problem, source, None if is_row_whole else last_id
            unreadable = None if is_row_whole else line
            continue
        game_rows: list[Any] = [cells for _, cells in numbered_rows]  # a refusal has a line as its key, never an id
        if unreadable is not None:
            # ... or to the next game
            message = f"the unreadable row in line {unreadable} may belong to this game; correct that row"
            yield line, Refused("game-incomplete", message), game_rows, key
        elif len(numbered_rows) > ROWS_MAX:
            message = f"more than {ROWS_MAX:,} rows have the game_id {quote(key)}; give each game an id of its own"
            yield line, Refused("record-too-large", message), None, key
        else:
            event = _read_long_game(numbered_rows, game_rows, columns, options)
            yield (isinstance(event, Refused) and event.line) or line, event, game_rows, key
        last_id, unreadable = key, None


def _read_long_game(
    numbered_rows: list[tuple[int, Any]], rows: list[Cells], columns: CsvColumns, options: TableOptions
) -> dict[str, Any] | Refused:
    """Return the game of some rows, or a refusal; if a single row is the cause, the refusal has its line.

    If the table has no columns about players, the game has no participants.
    """
    line, (other_columns, has_numbers, read_others) = None, _split_player_columns(columns.player)
    try:
        event = read_game(_join_shared_cells(rows, columns), columns, options)
        participants = event["data"]["participants"] = []
        for line, row in numbered_rows if columns.player else ():  # noqa: B007
            if "player" not in row:
                raise Refused("missing-member", "the row has no player; fill in the name, or delete the row")
            participants.append(
                {"player": row["player"], **read_others(other_columns, tuple(map(row.get, other_columns)))}
            )
    except Refused as problem:
        return Refused(problem.code, problem.message, problem.line or line)
    if has_numbers:
        _share_numbers(event["data"])
    return event


@lru_cache(maxsize=10)  # all games of a table have the same columns
def _split_player_columns(
    names: tuple[str, ...],
) -> tuple[tuple[str, ...], bool, Callable[[tuple[str, ...], tuple[str | None, ...]], dict[str, Any]]]:
    """Split off the name from the columns about players.

    Returns the other columns, whether any has custom numbers, and the function that reads their texts. The function
    caches its results, unless they contain objects, because participants must not share objects.
    """
    others = tuple(name for name in names if name != "player")
    has_numbers, has_extra = (any(name.startswith(prefix) for name in others) for prefix in (NUMBERS, EXTRA))
    read = _read_other_members.__wrapped__ if has_numbers or has_extra else _read_other_members
    return others, has_numbers, read


@lru_cache(maxsize=10_000)  # most players of a table have the same place and score as others
def _read_other_members(names: tuple[str, ...], texts: tuple[str | None, ...]) -> dict[str, Any]:
    """Return a player's members other than the name from texts in the order of `names`.

    Raises the same `Refused` as `read_members`.
    """
    return read_members({name: text for name, text in zip(names, texts, strict=True) if text is not None})


@lru_cache(maxsize=1)
def _create_picker(names: tuple[str, ...]) -> Callable[[Cells], tuple[str, ...]]:
    """Create a function that returns the cells of some columns; it is several times as fast as a loop."""
    return itemgetter(*names) if len(names) > 1 else lambda cells: tuple(cells[name] for name in names)


def _share_numbers(game: dict[str, Any]) -> None:
    """Move numbers that are equal in all rows of a game from its participants to the game."""
    first, *others = (participant.get("numbers", {}) for participant in game["participants"])
    shared = {name: number for name, number in first.items() if all(other.get(name) == number for other in others)}
    if not shared:
        return
    game["numbers"] = game.get("numbers", {}) | shared
    for participant in game["participants"]:
        own = {name: number for name, number in participant.pop("numbers").items() if name not in shared}
        participant |= {"numbers": own} if own else {}


def _join_shared_cells(rows: list[Cells], columns: CsvColumns) -> Cells:
    """Return the cells about the whole game from all of its rows. Raises `Refused` (rows-disagree, bad-slug)."""
    try:
        values: list[tuple[str | None, ...]] = [*map(_create_picker(columns.game), rows)]
    except KeyError:  # a cell is empty
        values = [tuple(map(row.get, columns.game)) for row in rows]
    if values.count(values[0]) == len(values):
        return {name: value for name, value in zip(columns.game, values[0], strict=True) if value is not None}
    parts = [{name: row[name] for name in columns.game if name in row} for row in rows]
    shared = {name: value for part in reversed(parts) for name, value in part.items()}
    for part in parts:
        for name, value in part.items():
            if value != shared[name] and not (name == "game" and make_slug(value) == make_slug(shared[name])):
                message = f"{name} is {quote(shared[name])} and {quote(value)} in the rows of one game"
                raise Refused("rows-disagree", f"{message}; write the same in all of them")
    return shared
