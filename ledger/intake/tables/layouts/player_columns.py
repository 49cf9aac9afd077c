"""A row for each game, with a column for each player: the table that clubs keep.

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
from ratings_ledger.ledger.intake.tables.meanings import OF_PLAYER, is_total
from ratings_ledger.ledger.rejections import Refused

NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?", re.ASCII)


def may_be_player(name: str, body: TextRows, column: int) -> bool:
    """Tell whether a column that is not known may be a player's: most of it is numbers, if anything, and no totals."""
    if is_total([name]):
        return False
    found = [
        NUMBER.fullmatch(strip_place_mark(text)) is not None
        for _, row in body
        if (text := read_player_cell(row, column))
    ]
    return not found or sum(found) * 2 > len(found)


def are_places(rows: Iterable[list[str]]) -> bool:
    """Tell whether the numbers of each row are places: 1 is there, and after it none is left out but for ties."""
    for row in rows:
        found = sorted(int(text) for text in map(strip_place_mark, row) if text.isdecimal())
        if len(found) != len(row) or not found or found[0] != 1:
            return False
        for index, (before, place) in enumerate(pairwise(found), 1):
            if place not in (before, before + 1, index + 1):
                return False
    return True


def _games(view: TableView) -> TextRows:
    """Return what players got, for each row in which at least two got something."""
    players = [
        column
        for column, name in enumerate(view.names)
        if view.meanings[column] is None and may_be_player(name, view.body, column)
    ]
    cells = [(line, [text for column in players if (text := read_player_cell(row, column))]) for line, row in view.body]
    return [(line, row) for line, row in cells if len(row) > 1]


def _refuse_mixed(played: TextRows) -> None:
    """Raises `Refused` (unclear-layout) if most games of three and more have places, and others do not.

    Scores of two look like places too often to tell.
    """
    several = [(line, row) for line, row in played if len(row) > 2]
    odd = [line for line, row in several if not are_places([row])]
    if odd and len(odd) * 2 < len(several):
        message = "here are other numbers than places, which most lines have; put them right, or say what all are"
        raise Refused("unclear-layout", f"{message}: --layout {PLAYER_PLACES.name} or {PLAYER_SCORES.name}", odd[0])


def _is_of_places(view: TableView) -> bool:
    played = _games(view)
    _refuse_mixed(played)
    return bool(played) and are_places(row for _, row in played)


def _is_of_scores(view: TableView) -> bool:
    return bool(_games(view))


def _read(member: str, rows: CellRows, view: TableView, options: TableOptions) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield a row for each player whose column is filled in a row, with the place or score in it."""
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if not name.startswith(OF_PLAYER)}
        for name, text in cells.items():
            if name.startswith(OF_PLAYER):
                yield line, {**shared, "player": name.removeprefix(OF_PLAYER), member: text}


PLAYER_PLACES = Layout(
    "player-places",
    "a row per game, a column per player with the place in it",
    _is_of_places,
    examples=(
        Example("Date,anna,ben,cleo\n2024-11-22,1,3,2\n2024-11-23,,1,2\n", ("anna 1 ben 3 cleo 2", "ben 1 cleo 2")),
    ),
    read=partial(_read, "place"),
    has_player_columns=True,
)
PLAYER_SCORES = Layout(
    "player-scores",
    "a row per game, a column per player with the score in it",
    _is_of_scores,
    examples=(
        Example(
            "Date,anna,ben,cleo\n2024-11-22,10,7,-\n2024-11-23,4,8,8\n", ("anna =10 ben =7", "anna =4 ben =8 cleo =8")
        ),
    ),
    read=partial(_read, "score"),
    has_player_columns=True,
)
