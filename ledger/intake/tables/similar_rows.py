"""Rows that differ only in names, dates and ids: the first of a kind is read, and the others are composed like it.

2024-11-22  anna  ben   3:1      is read: anna's score is 3, ben's is 1
2024-11-22  cleo  dora  3:1      is like it: cleo's score is 3, dora's is 1

A long table has few results, so most of its games are composed. They are checked like all others.
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

KINDS_MAX = 10_000
_OWN = ("game_id", "occurred_at")


class _Kind(NamedTuple):
    """The first game of a kind: the columns of its sides, its data, its participants, its rows in the usual form."""

    sides: list[str]
    data: dict[str, Any]
    participants: list[dict[str, Any]]
    rows: list[Cells]


class _Kinds:
    """The kinds of games that occurred in a table."""

    def __init__(self, layout: Layout, header: Header, options: TableOptions) -> None:
        self._options, self._sides = options, layout.sides
        self._others = tuple(name for name in header if name and name not in (*self._sides, *_OWN))
        self._has_teams = bool(options.partners or options.team_columns)
        self._kinds: dict[tuple[Any, ...], _Kind] = {}

    def compose(self, line: int, cells: Cells) -> ReadGame | None:
        """Return the game of a row that is like an earlier one, or None."""
        kind = self._kinds.get(self._key(cells))
        if kind is None or not self._is_of_single_players(cells, kind.sides):
            return None
        try:
            at = normalise_instant(cells["occurred_at"], self._options.zone)
        except Refused:
            return None
        players, own = [cells[name] for name in kind.sides], {name: cells[name] for name in _OWN}
        rows = [{**row, **own, "player": player} for row, player in zip(kind.rows, players, strict=True)]
        pairs = zip(kind.participants, players, strict=True)
        participants = [{**participant, "player": player} for participant, player in pairs]
        data = {**kind.data, "game_id": cells["game_id"], "participants": participants}
        return line, {"type": "game.recorded", "occurred_at": at, "data": data}, rows, cells["game_id"]

    def add(self, cells: Cells, game: ReadGame) -> None:
        """Add the game of a row as the first of its kind, if games like it can be composed."""
        _, event, rows, _ = game
        if isinstance(event, Refused) or len(self._kinds) >= KINDS_MAX:
            return
        sides, data = [name for name in self._sides if name in cells], event["data"]
        if self._is_of_single_players(cells, sides):
            participants = [{**participant} for participant in data["participants"]]
            self._kinds[self._key(cells)] = _Kind(sides, {**data}, participants, rows)

    def _key(self, cells: Cells) -> tuple[Any, ...]:
        return (*map(cells.get, self._others), *map(cells.__contains__, self._sides))

    def _is_of_single_players(self, cells: Cells, sides: list[str]) -> bool:
        return not self._has_teams or all(
            split_team_cell(name, cells[name], self._options) == [cells[name]] for name in sides
        )


def read_similar_games(
    rows: CellRows, layout: Layout, view: TableView, columns: CsvColumns, options: TableOptions
) -> Iterator[ReadGame]:
    """Yield the games of rows with ids, where each row is a game between sides."""
    reader, kinds = create_reader(layout.sides, view, options), _Kinds(layout, view.meanings, options)
    for line, cells in rows:
        game = None if isinstance(cells, Refused) else kinds.compose(line, cells)
        if game is None:
            (game,) = read_row_games(reader.read_row(line, cells), columns, options, is_row_whole=True)
            if isinstance(cells, dict):
                kinds.add(cells, game)
        yield game


def has_similar_games(layout: Layout, header: Header) -> bool:
    """Tell whether rows of a table are games between sides whose outcome does not depend on the names."""
    return bool(layout.sides) and (WINNER not in header or layout.sides == (WINNER, LOSER))
