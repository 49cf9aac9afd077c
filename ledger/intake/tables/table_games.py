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
from ratings_ledger.ledger.intake.tables.meanings import LOSER, OF_PLAYER, SIDES
from ratings_ledger.ledger.intake.tables.partners import refuse_tied_partners, split_team_cell
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.validation.names import is_dash

LENGTH_MAX = 64
# Latin letters that do not decompose into a letter and an accent
_LATIN = str.maketrans({"æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_MARKS = re.compile(r"[\W_]+")


@lru_cache(maxsize=1_024)  # most games of a table are the same
def make_slug(name: str) -> str:
    """Return a game's name in lower case, with hyphens and without accents. Raises `Refused` (bad-slug).

    >>> make_slug("Settlers of Catan"), make_slug("¡Sí, Señor!")
    ('settlers-of-catan', 'si-senor')
    """
    decomposed = unicodedata.normalize("NFKD", name.casefold().translate(_LATIN))
    slug = _MARKS.sub("-", "".join(letter for letter in decomposed if not unicodedata.combining(letter))).strip("-")
    if not slug or not slug.isascii() or len(slug) > LENGTH_MAX:
        reason = f"it has more than {LENGTH_MAX} characters" if slug.isascii() and slug else "it needs letters a to z"
        message = f"game: {quote(name)} is not a name like blue-max: {reason}; write such a name instead"
        raise Refused("bad-slug", message)
    return slug


def apply_slug(event: Any, slugs: dict[str, str]) -> Any:
    """Replace the name of a game in an event by its slug; add both to `slugs` if they differ.

    Return the event, or a `Refused` if the name cannot become a slug.
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
_NAMES = ("player", "replaces", LOSER, *SIDES)
_ODD = re.compile("[\udc80-\udcff\n\r]")
# (line, event or its refusal, rows from which it was read, game id if the game consists of several rows)
ReadGame = tuple[int, dict[str, Any] | Refused, Any, str | None]


def read_row_games(
    rows: Iterator[tuple[int, Cells | Refused]],
    columns: CsvColumns,
    options: TableOptions,
    last_id: str | None = None,
    is_row_whole: bool = False,
) -> Iterator[ReadGame]:
    """Yield the games of some rows, which follow a game with the id `last_id`.

    With `is_row_whole`, each line of the table is a game, so an unreadable row cannot belong to another game.
    """
    if columns.places:
        return (_read_wide_game(line, cells, columns, options) for line, cells in rows)
    return _read_long_games(rows, columns, options, last_id, is_row_whole)


def plain_cells(rows: Sequence[list[str]], header: Header) -> list[Cells] | None:
    """Return the cells of rows by column, if each column has a name and each cell a text without blanks around it.

    Return None for other rows. Several rows together take half the time of single rows.
    """
    texts = rows[0] if len(rows) == 1 else [*chain.from_iterable(rows)]
    text = "|".join(texts)
    is_trimmed = " " not in text or (text.strip() == text and "| " not in text and " |" not in text)
    if not is_trimmed or not text.isprintable() or may_hold_errors(text) or not all(texts):
        return None
    if None in header or "" in header or {*map(len, rows)} != {len(header)}:
        return None
    return [dict(zip(header, row, strict=True)) for row in rows]  # type: ignore[arg-type]  # no name is None


def read_row_cells(row: list[str], header: Header) -> Cells | Refused:
    """Return the non-empty cells of a row by column, without dropped columns, or a refusal of the row."""
    if (plain := plain_cells([row], header)) is not None:
        return plain[0]
    text = "|".join(row)
    if len(row) > len(header) and any(map(str.strip, row[len(header) :])):
        return Refused("row-length", f"the row has {len(row)} cells, the header {len(header)}")
    is_odd = (not text.isprintable() and _ODD.search(text)) or may_hold_errors(text)
    cells = {name: text for name, text in zip(header, map(str.strip, row), strict=False) if text and name is not None}
    if "" not in cells and not is_odd:
        return cells
    for column, (name, text) in enumerate(zip(header, map(str.strip, row), strict=False)):
        if not text or name is None:
            continue
        if problem := describe_cell_error(text):
            return Refused("bad-cell", f"column {write_column_letters(column)}: {problem}")
        if not name:
            return Refused("unknown-column", f"{quote(text)} is in a column without a name")
        if has_invalid_utf8(text):
            return Refused("bad-utf8", describe_invalid_utf8(text))
        if "\n" in text or "\r" in text:
            # after an unclosed quotation mark, the cell contains the rows of other games
            return Refused("line-break", f"{name}: {quote(text)} runs over several lines; is a quotation mark missing?")
    return cells


def find_name_columns(header: Header) -> tuple[int, ...]:
    """Return the indexes of the columns that contain players' names, or are named after a player."""
    return tuple(column for column, name in enumerate(header) if name and _names_players(name))


def _names_players(name: str) -> bool:
    return name in _NAMES or is_place(name) or name.startswith(OF_PLAYER)


def has_dashes(rows: Sequence[list[str]], columns: Iterable[int]) -> bool:
    """Tell whether one of the columns may contain a dash for an empty cell. The cells must not be empty."""
    return not "".join([row[column][0] for column in columns for row in rows]).isalnum()


def blank_dashes(row: list[str], columns: Iterable[int]) -> list[str]:
    """Return a row in which cells with only dashes are empty, in the given columns."""
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
                separator = (*options.ties, TIE)[0]
                message = f"{name}: {quote(text)} ties a player with an empty name; write {separator} between names"
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


def build_participants(sides: Iterable[tuple[int, list[str]]]) -> list[dict[str, Any]]:
    """Build the participants of a game from the place and the players of each side.

    If one side has several players, each side is a team.
    """
    numbered = list(enumerate(sides, 1))
    in_teams = any(len(players) > 1 for _, (_, players) in numbered)
    return [
        {"player": player, "place": place, **({"team": number} if in_teams else {})}
        for number, (place, players) in numbered
        for player in players
    ]


def _split_ties(text: str, options: TableOptions) -> list[str]:
    """Split a cell into the sides that share its place."""
    for separator in options.ties:
        text = text.replace(separator, TIE)
    return text.split(TIE)


def _read_long_games(
    rows: Iterator[tuple[int, Cells | Refused]],
    columns: CsvColumns,
    options: TableOptions,
    last_id: str | None,
    is_row_whole: bool,
) -> Iterator[ReadGame]:
    """Yield the games of rows in a table with a row per participant. The arguments are those of `read_row_games`."""

    fixed_id = options.fixed.get("game_id")

    def find_game(row: tuple[int, Cells | Refused]) -> str | int:
        """Return the id of a row's game, or the row's line if it has none."""
        line, cells = row
        game_id = None if isinstance(cells, Refused) else fixed_id or cells.get("game_id")
        if not game_id:
            return line
        return game_id if game_id.isascii() else unicodedata.normalize("NFC", game_id)

    unreadable: int | None = None
    for key, group in groupby(rows, find_game):
        # no more rows than a record can hold, so that a wrong column for game_id does not fill the memory
        numbered = list(islice(group, ROWS_MAX + 1))
        line = numbered[0][0]
        if isinstance(key, int):
            problem = numbered[0][1]
            if not isinstance(problem, Refused):
                problem = Refused("missing-member", "the row has no game_id")
            # an unreadable row may belong to the previous game, which is then incomplete
            source = numbered[0][1] if isinstance(numbered[0][1], dict) else None
            yield line, problem, source, None if is_row_whole else last_id
            unreadable = None if is_row_whole else line
            continue
        games = [cells for _, cells in numbered if isinstance(cells, dict)]
        if unreadable is not None:
            # ... or to the game after it
            message = f"the row before it (line {unreadable}) may belong to this game"
            yield line, Refused("game-incomplete", message), games, key
        elif len(numbered) > ROWS_MAX:
            yield line, Refused("record-too-large", f"more than {ROWS_MAX:,} rows belong to one game"), None, key
        else:
            event = _read_long_game(numbered, columns, options)
            yield (isinstance(event, Refused) and event.line) or line, event, games, key
        last_id, unreadable = key, None


def _read_long_game(
    numbered: list[tuple[int, Any]], columns: CsvColumns, options: TableOptions
) -> dict[str, Any] | Refused:
    """Return the game of some rows, or a refusal, which has the line if a single row is the cause.

    If the table has no columns about players, the game has no participants.
    """
    line, (others, has_numbers, read_others) = None, _split_player_columns(columns.player)
    try:
        event = read_game(_join_shared_cells([row for _, row in numbered], columns), columns, options)
        participants = event["data"]["participants"] = []
        for line, row in numbered if columns.player else ():  # noqa: B007
            if "player" not in row:
                raise Refused("missing-member", "the row has no player; name one, or leave the row out")
            participants.append({"player": row["player"], **read_others(others, tuple(map(row.get, others)))})
    except Refused as problem:
        return Refused(problem.code, problem.message, problem.line or line)
    if has_numbers:
        _share_numbers(event["data"])
    return event


@lru_cache(maxsize=10)  # of each table once
def _split_player_columns(
    names: tuple[str, ...],
) -> tuple[tuple[str, ...], bool, Callable[[tuple[str, ...], tuple[str | None, ...]], dict[str, Any]]]:
    """Return the columns about players besides their name, whether some hold numbers, and the function that reads
    their texts: from a cache, unless these hold objects, which participants must not share.
    """
    others = tuple(name for name in names if name != "player")
    has_numbers, has_extra = (any(name.startswith(prefix) for name in others) for prefix in (NUMBERS, EXTRA))
    read = _read_members_besides.__wrapped__ if has_numbers or has_extra else _read_members_besides
    return others, has_numbers, read


@lru_cache(maxsize=10_000)  # most players of a table have the place and the score of others
def _read_members_besides(names: tuple[str, ...], texts: tuple[str | None, ...]) -> dict[str, Any]:
    """Return a player's members besides the name, given their texts by column. Raises `Refused` as `read_members`."""
    return read_members({name: text for name, text in zip(names, texts, strict=True) if text is not None})


@lru_cache(maxsize=1)
def _pick(names: tuple[str, ...]) -> Callable[[Cells], tuple[str, ...]]:
    """Return a function that picks the cells of some columns; it is several times as fast as a loop."""
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
    """Return the cells about the whole game from its rows. Raises `Refused` (rows-disagree)."""
    try:
        values: list[tuple[str | None, ...]] = [*map(_pick(columns.game), rows)]
    except KeyError:  # a cell is empty
        values = [tuple(map(row.get, columns.game)) for row in rows]
    if values.count(values[0]) == len(values):
        return {name: value for name, value in zip(columns.game, values[0], strict=True) if value is not None}
    parts = [{name: row[name] for name in columns.game if name in row} for row in rows]
    shared = {name: value for part in reversed(parts) for name, value in part.items()}
    for part in parts:
        for name, value in part.items():
            if value != shared[name] and not (name == "game" and make_slug(value) == make_slug(shared[name])):
                raise Refused(
                    "rows-disagree", f"{name} is {quote(shared[name])} and {quote(value)} in the rows of one game"
                )
    return shared
