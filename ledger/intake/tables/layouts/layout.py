"""Define what a layout is: it recognises a form of table, and rewrites its rows in the usual form.

The usual form is a row per player, or a row per game with a column per place. Other modules of this package define
the layouts; the examples of each layout are tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ratings_ledger.ledger.intake.tables.columns import (
    GAME_COLUMNS,
    Cells,
    TableOptions,
    is_number,
    is_place,
    is_usual_meaning,
    strip_place_mark,
    write_column_letters,
)
from ratings_ledger.ledger.intake.tables.meanings import LOSER, PLAYER_PREFIX, SIDES, TIME, WINNER
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.validation.close_names import is_dash
from ratings_ledger.ledger.validation.new_names import TableForm

# the rows of a table with their line numbers: as lists of texts, and as texts by the meaning of their column
TextRows = list[tuple[int, list[str]]]
CellRows = Iterable[tuple[int, Cells | Refused]]


class TableView(NamedTuple):
    """A table as layouts see it.

    names:       the names of the columns
    meanings:    the meaning of each column; "" for a column without a name, None for a dropped or unknown column
    body:        the rows below the header
    header_line: the line number of the header
    sheet:       the name of the sheet; empty unless the file is a spreadsheet
    """

    names: list[str]
    meanings: list[str | None]
    body: TextRows
    header_line: int = 1
    sheet: str = ""

    def find_name(self, meaning: str) -> str:
        """Return the table's name for the column with a meaning; without such a column, the meaning."""
        return self.names[self.meanings.index(meaning)] if meaning in self.meanings else meaning

    def locate_cell(self, line: int, meaning: str) -> str:
        """Return the location of a cell, such as Results!D2 (Score); without such a column, that of the row."""
        if meaning not in self.meanings:
            return f"{self.sheet}!{line}" if self.sheet else f"line {line}"
        column = write_column_letters(self.meanings.index(meaning))
        return f"{self.sheet}{'!' * bool(self.sheet)}{column}{line} ({self.find_name(meaning)})"

    def list_texts(self, meaning: str) -> set[str]:
        """Return the distinct texts in the column with a meaning."""
        if meaning not in self.meanings:
            return set()
        column = self.meanings.index(meaning)
        return {text for _, row in self.body if (text := read_cell(row, column))}

    def count_cells(self, meaning: str, passes: Callable[[str], bool]) -> int:
        """Count the cells of the column with a meaning whose texts pass a test."""
        passing = {text for text in self.list_texts(meaning) if passes(text)}
        column = self.meanings.index(meaning) if passing else 0
        return sum(read_cell(row, column) in passing for _, row in self.body) if passing else 0


class Example(NamedTuple):
    """A table in a layout, as CSV, and a text for each of its games.

    The text has `PLAYER PLACE` or `PLAYER =SCORE` for each player, or `CODE: MESSAGE` for a refusal, where MESSAGE is
    part of the message.
    """

    table: str
    games: tuple[str, ...]


class Layout(NamedTuple):
    """A form of tables.

    name:         the name of the layout in `--layout`
    summary:      a short description of its rows and columns
    recognise:    tells whether a table has this layout; raises `Refused` if the table looks like it but lacks a column
                  or is contradictory
    examples:     tables in this layout; they are tests
    read:         rewrites rows with game ids in the usual form
    rename:       given the meanings of all columns, returns the new meanings that this layout gives, by old meaning
    additional_columns: the columns that this layout accepts in addition to those of the usual form
    is_usual:     whether the layout is the usual form
    is_row_whole: whether a row is a whole game
    has_player_columns: whether unknown columns are named after players
    sides:        the columns of the sides, if a row is a game between sides
    """

    name: str
    summary: str
    recognise: Callable[[TableView], bool]
    examples: tuple[Example, ...]
    read: Callable[[CellRows, TableView, TableOptions], CellRows] = lambda rows, view, options: rows
    rename: Callable[[Collection[str | None]], Mapping[str, str]] = lambda meanings: {}
    additional_columns: frozenset[str] = frozenset()
    is_usual: bool = False
    is_row_whole: bool = True
    has_player_columns: bool = False
    sides: tuple[str, ...] = ()

    @property
    def form(self) -> TableForm:
        """Return where tables in this layout have the names of players."""
        if self.is_usual:
            return "places" if self.is_row_whole else "rows"
        return "columns" if self.has_player_columns else "sides"

    def has_players(self, header: Collection[str | None]) -> bool:
        """Tell whether any column of a header contains or names the players of a game."""
        if self.is_usual:
            return "player" in header or any(name and is_place(name) for name in header)
        if self.has_player_columns:
            return any(name and name.startswith(PLAYER_PREFIX) for name in header)
        return {WINNER, LOSER} <= {*header} or {*SIDES[:2]} <= {*header}

    def accepts(self, meaning: str) -> bool:
        """Tell whether this layout reads a column with this meaning; the content of any other would be lost."""
        if self.is_usual:
            return meaning == TIME or is_usual_meaning(meaning)
        is_of_players = self.has_player_columns and meaning.startswith(PLAYER_PREFIX)
        is_of_game = meaning in GAME_COLUMNS or is_number(meaning)
        return meaning == TIME or is_of_game or is_of_players or meaning in self.additional_columns


def read_cell(row: list[str], column: int | None) -> str:
    """Return the text in a column of a row; an empty text if the row is too short or `column` is None."""
    return "" if column is None or column >= len(row) else row[column].strip()


def read_player_cell(row: list[str], column: int) -> str:
    """Return the text in a player's column of a row; an empty text for a dash."""
    return "" if is_dash(text := read_cell(row, column)) else text


def number_games(rows: CellRows, layout: Layout) -> Iterator[tuple[int, Cells | Refused]]:
    """Give each row a game id: its date and a number that counts the games of that day in row order.

    If each player has a row, a game begins at another date, at a better place than in the previous row, or after an
    empty line; a row without a date gets the date of the previous row.
    """
    days, game_id, previous_line, date = Counter[str](), "", 0, ""
    place = 0
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            previous_line = line
            continue
        own_date = cells.get("occurred_at", "" if layout.is_row_whole else date)
        if not own_date:
            yield line, Refused("missing-member", "the row has no date; fill it in")
            continue
        own_place = 0 if layout.is_row_whole else _read_place(cells)
        begins = own_date != date or line > previous_line + 1 or own_place < place or not game_id
        if layout.is_row_whole or begins:
            day = own_date[:10]
            days[day] += 1
            game_id = f"{day}-{days[day]}"
        date, place, previous_line = own_date, own_place, line
        yield line, {**cells, "game_id": game_id, "occurred_at": own_date}


def _read_place(cells: Cells) -> int:
    """Return a player's place, or 0 if the row has none."""
    text = strip_place_mark(cells.get("place", ""))
    return int(text) if text.isdecimal() else 0
