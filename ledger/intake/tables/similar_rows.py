"""Read rows that differ only in names, dates and ids faster: reuse the result of the first such row.

2024-11-22  anna  ben   3:1      is read: anna's score is 3, ben's is 1
2024-11-22  cleo  dora  3:1      is composed from the first row: cleo's score is 3, dora's is 1

A long table has few different results, so most of its games are composed. They pass the same checks as all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import Cells, CsvColumns, Header, TableOptions, normalise_instant
from ratings_ledger.ledger.intake.tables.layouts.layout import CellRows, Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.sides import create_reader
from ratings_ledger.ledger.intake.tables.meanings import LOSER, WINNER
from ratings_ledger.ledger.intake.tables.partners import split_team_cell
from ratings_ledger.ledger.intake.tables.table_games import ReadGame, read_row_games
from ratings_ledger.ledger.rejections import Refused

TEMPLATES_MAX = 10_000
_ID_AND_TIME = ("game_id", "occurred_at")


class _Template(NamedTuple):
    """A game from which similar games are composed.

    sides:        the columns of its sides
    data:         the data of its event
    participants: the participants in its data
    rows:         its rows in the usual form
    """

    sides: list[str]
    data: dict[str, Any]
    participants: list[dict[str, Any]]
    rows: list[Cells]


class _Templates:
    """The first games of a table with each combination of cells other than names, dates and ids."""

    def __init__(self, layout: Layout, header: Header, options: TableOptions) -> None:
        self._options, self._sides = options, layout.sides
        self._compared = tuple(name for name in header if name and name not in (*self._sides, *_ID_AND_TIME))
        self._has_teams = bool(options.partners or options.team_columns)
        self._templates: dict[tuple[Any, ...], _Template] = {}

    def compose(self, line: int, cells: Cells) -> ReadGame | None:
        """Compose the game of a row from the template of similar rows; return None if that is impossible."""
        template = self._templates.get(self._build_key(cells))
        if template is None or not self._has_single_players(cells, template.sides):
            return None
        try:
            at = normalise_instant(cells["occurred_at"], self._options.zone)
        except Refused:
            return None
        players, id_and_time = [cells[name] for name in template.sides], {name: cells[name] for name in _ID_AND_TIME}
        rows = [{**row, **id_and_time, "player": player} for row, player in zip(template.rows, players, strict=True)]
        pairs = zip(template.participants, players, strict=True)
        participants = [{**participant, "player": player} for participant, player in pairs]
        data = {**template.data, "game_id": cells["game_id"], "participants": participants}
        return line, {"type": "game.recorded", "occurred_at": at, "data": data}, rows, cells["game_id"]

    def add(self, cells: Cells, game: ReadGame) -> None:
        """Add the game of a row as a template, unless it was refused, has partners, or there are too many templates."""
        _, event, rows, _ = game
        if isinstance(event, Refused) or len(self._templates) >= TEMPLATES_MAX:
            return
        sides, data = [name for name in self._sides if name in cells], event["data"]
        if self._has_single_players(cells, sides):
            participants = [{**participant} for participant in data["participants"]]
            self._templates[self._build_key(cells)] = _Template(sides, {**data}, participants, rows)

    def _build_key(self, cells: Cells) -> tuple[Any, ...]:
        return (*map(cells.get, self._compared), *map(cells.__contains__, self._sides))

    def _has_single_players(self, cells: Cells, sides: list[str]) -> bool:
        return not self._has_teams or all(
            split_team_cell(name, cells[name], self._options) == [cells[name]] for name in sides
        )


def read_similar_games(
    rows: CellRows, layout: Layout, view: TableView, columns: CsvColumns, options: TableOptions
) -> Iterator[ReadGame]:
    """Yield the games of rows with game ids; each row is a game between sides."""
    reader, templates = create_reader(layout.sides, view, options), _Templates(layout, view.meanings, options)
    for line, cells in rows:
        game = None if isinstance(cells, Refused) else templates.compose(line, cells)
        if game is None:
            (game,) = read_row_games(reader.read_row(line, cells), columns, options, is_row_whole=True)
            if isinstance(cells, dict):
                templates.add(cells, game)
        yield game


def can_compose_games(layout: Layout, header: Header) -> bool:
    """Tell whether games can be composed: rows are games between sides, and names do not affect outcomes."""
    return bool(layout.sides) and (WINNER not in header or layout.sides == (WINNER, LOSER))
