"""What a layout is: how a table is recognised as one, how its rows become the usual form, and examples of it.

A layout is one file beside this one: a `Layout`, whose examples are tests. The usual form is a row per player, or a row
per game with a column per place.
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
    is_usual,
    strip_place_mark,
    write_column_letters,
)
from ratings_ledger.ledger.intake.tables.meanings import LOSER, OF_PLAYER, SIDES, TIME, WINNER
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.validation.names import is_dash
from ratings_ledger.ledger.validation.new_names import TableForm

# the rows of a table with their lines: as they stand there, and by column
TextRows = list[tuple[int, list[str]]]
CellRows = Iterable[tuple[int, Cells | Refused]]


class TableView(NamedTuple):
    """A table as layouts look at it: the names of its columns, what each holds as far as that is known ("" for a column
    that is dropped or has no name), its rows, the line of its header, and of a spreadsheet the name of the sheet.
    """

    names: list[str]
    meanings: list[str | None]
    body: TextRows
    header_line: int = 1
    sheet: str = ""

    def name_of(self, meaning: str) -> str:
        """Return how the table calls the column that holds something."""
        return self.names[self.meanings.index(meaning)] if meaning in self.meanings else meaning

    def cell(self, line: int, meaning: str) -> str:
        """Return where something stands in a row, as in Results!D2 (Score)."""
        if meaning not in self.meanings:
            return f"{self.sheet}!{line}" if self.sheet else f"line {line}"
        column = write_column_letters(self.meanings.index(meaning))
        return f"{self.sheet}{'!' * bool(self.sheet)}{column}{line} ({self.name_of(meaning)})"

    def texts(self, meaning: str) -> set[str]:
        """Return what stands in the column that holds something."""
        if meaning not in self.meanings:
            return set()
        column = self.meanings.index(meaning)
        return {text for _, row in self.body if (text := cell_at(row, column))}

    def count_cells(self, meaning: str, is_so: Callable[[str], bool]) -> int:
        """Return how many cells of a column say something of a kind."""
        wanted = {text for text in self.texts(meaning) if is_so(text)}
        column = self.meanings.index(meaning) if wanted else 0
        return sum(cell_at(row, column) in wanted for _, row in self.body) if wanted else 0


class Example(NamedTuple):
    """A table in a layout, as CSV, and its games: `PLAYER PLACE` or `PLAYER =SCORE` for each player, or the refusal as
    `CODE: part of its message`.
    """

    table: str
    games: tuple[str, ...]


class Layout(NamedTuple):
    """A form of tables.

    name:         how `--layout` calls it
    summary:      what it has in its rows and columns
    recognise:    tells whether a table has this form; raises `Refused` (unclear-layout) if that is doubtful
    examples:     tables in this form, which tests read
    read:         rewrites the rows of a table, which have ids, in the usual form
    rename:       says what columns hold in this layout that hold something else by their names, given all these
    besides:      which columns it has that the usual form has not
    is_usual:     whether it is the usual form already
    is_row_whole: whether a row is a game
    has_player_columns: whether columns that are not known are called for players
    sides:        the columns of the sides, if rows are games between sides
    """

    name: str
    summary: str
    recognise: Callable[[TableView], bool]
    examples: tuple[Example, ...]
    read: Callable[[CellRows, TableView, TableOptions], CellRows] = lambda rows, view, options: rows
    rename: Callable[[Collection[str | None]], Mapping[str, str]] = lambda meanings: {}
    besides: frozenset[str] = frozenset()
    is_usual: bool = False
    is_row_whole: bool = True
    has_player_columns: bool = False
    sides: tuple[str, ...] = ()

    @property
    def form(self) -> TableForm:
        """Return what a player's name stands in."""
        if self.is_usual:
            return "places" if self.is_row_whole else "rows"
        return "columns" if self.has_player_columns else "sides"

    def has_players(self, header: Collection[str | None]) -> bool:
        """Tell whether columns name the players of a game."""
        if self.is_usual:
            return "player" in header or any(name and is_place(name) for name in header)
        if self.has_player_columns:
            return any(name and name.startswith(OF_PLAYER) for name in header)
        return {WINNER, LOSER} <= {*header} or {*SIDES[:2]} <= {*header}

    def holds(self, meaning: str) -> bool:
        """Tell whether a table of this layout may have a column that holds this; any other would be lost."""
        if self.is_usual:
            return meaning == TIME or is_usual(meaning)
        is_of_players = self.has_player_columns and meaning.startswith(OF_PLAYER)
        is_of_game = meaning in GAME_COLUMNS or is_number(meaning)
        return meaning == TIME or is_of_game or is_of_players or meaning in self.besides


def cell_at(row: list[str], column: int | None) -> str:
    """Return what stands in a column of a row, if it has the column."""
    return "" if column is None or column >= len(row) else row[column].strip()


def filled_cell(row: list[str], column: int) -> str:
    """Return what a player got, if the column is a player's: a dash is nothing."""
    return "" if is_dash(text := cell_at(row, column)) else text


def number_games(rows: CellRows, layout: Layout) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield rows without numbers of games with those: date and number of the day, in the order of the rows.

    Where a player has a row, a game begins where there is another date, a better place than in the row before, or an
    empty line in between; a row without a date has that of the row before.
    """
    days, game_id, before, date = Counter[str](), "", 0, ""
    place = 0
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            before = line
            continue
        given = cells.get("occurred_at", "" if layout.is_row_whole else date)
        if not given:
            yield line, Refused("missing-member", "the row has no date")
            continue
        own = 0 if layout.is_row_whole else _place(cells)
        if layout.is_row_whole or given != date or line > before + 1 or own < place or not game_id:
            day = given[:10]
            days[day] += 1
            game_id = f"{day}-{days[day]}"
        date, place, before = given, own, line
        yield line, {**cells, "game_id": game_id, "occurred_at": given}


def _place(cells: Cells) -> int:
    """Return a player's place, or 0 if the row has none."""
    text = strip_place_mark(cells.get("place", ""))
    return int(text) if text.isdecimal() else 0
