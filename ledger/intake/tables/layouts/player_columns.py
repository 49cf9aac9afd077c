"""A row for each game, with a column for each player, which contains the player's place or score.

Date        anna  ben  cleo        Date        anna  ben  cleo
2024-11-22  1     3    2           2024-11-22  10    7    8
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise

from ratings_ledger.ledger.intake.tables.columns import Cells, TableOptions, strip_place_mark
from ratings_ledger.ledger.intake.tables.layouts.layout import (
    CellRows,
    Example,
    Layout,
    TableView,
    TextRows,
    read_player_cell,
)
from ratings_ledger.ledger.intake.tables.meanings import PLAYER_PREFIX, is_total
from ratings_ledger.ledger.rejections import Refused

NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?", re.ASCII)


def may_be_player_column(name: str, body: TextRows, column: int) -> bool:
    """Tell whether an unknown column may belong to a player: it is not a total, and it is empty or mostly numbers."""
    if is_total([name]):
        return False
    are_numbers = [
        NUMBER.fullmatch(strip_place_mark(text)) is not None
        for _, row in body
        if (text := read_player_cell(row, column))
    ]
    return not are_numbers or sum(are_numbers) * 2 > len(are_numbers)


def are_places(rows: Iterable[list[str]]) -> bool:
    """Tell whether the numbers of each row are places: they begin with 1, and have no gaps except after ties."""
    for row in rows:
        places = sorted(int(text) for text in map(strip_place_mark, row) if text.isdecimal())
        if len(places) != len(row) or not places or places[0] != 1:
            return False
        for index, (better, place) in enumerate(pairwise(places), 1):
            if place not in (better, better + 1, index + 1):
                return False
    return True


def _list_game_rows(view: TableView) -> TextRows:
    """Return the line and the players' non-empty cells of each row in which at least two players have one."""
    players = [
        column
        for column, name in enumerate(view.names)
        if view.meanings[column] is None and may_be_player_column(name, view.body, column)
    ]
    cells = [(line, [text for column in players if (text := read_player_cell(row, column))]) for line, row in view.body]
    return [(line, row) for line, row in cells if len(row) > 1]


def _refuse_mixed(game_rows: TextRows) -> None:
    """Raise `Refused` (unclear-layout) if most games of three or more players have places, but some have other numbers.

    Games of two are ignored, because their scores often look like places.
    """
    several = [(line, row) for line, row in game_rows if len(row) > 2]
    lines_without_places = [line for line, row in several if not are_places([row])]
    if lines_without_places and len(lines_without_places) * 2 < len(several):
        message = "most rows have places, but this row has other numbers; correct it, or pass"
        advice = f"--layout {PLAYER_PLACES.name} or --layout {PLAYER_SCORES.name}"
        raise Refused("unclear-layout", f"{message} {advice}", lines_without_places[0])


def _matches_places(view: TableView) -> bool:
    game_rows = _list_game_rows(view)
    _refuse_mixed(game_rows)
    return bool(game_rows) and are_places(row for _, row in game_rows)


def _matches_scores(view: TableView) -> bool:
    return bool(_list_game_rows(view))


def _read(member: str, rows: CellRows, view: TableView, options: TableOptions) -> Iterator[tuple[int, Cells | Refused]]:
    """Split the row of each game: yield a row for each player with a cell in it.

    The cell becomes the `member`: the place or the score.
    """
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if not name.startswith(PLAYER_PREFIX)}
        for name, text in cells.items():
            if name.startswith(PLAYER_PREFIX):
                yield line, {**shared, "player": name.removeprefix(PLAYER_PREFIX), member: text}


PLAYER_PLACES = Layout(
    "player-places",
    "a row per game, a column per player with the place in it",
    _matches_places,
    examples=(
        Example("Date,anna,ben,cleo\n2024-11-22,1,3,2\n2024-11-23,,1,2\n", ("anna 1 ben 3 cleo 2", "ben 1 cleo 2")),
    ),
    read=partial(_read, "place"),
    has_player_columns=True,
)
PLAYER_SCORES = Layout(
    "player-scores",
    "a row per game, a column per player with the score in it",
    _matches_scores,
    examples=(
        Example(
            "Date,anna,ben,cleo\n2024-11-22,10,7,-\n2024-11-23,4,8,8\n", ("anna =10 ben =7", "anna =4 ben =8 cleo =8")
        ),
    ),
    read=partial(_read, "score"),
    has_player_columns=True,
)
