"""A row for each game, with two names and their result.

Date        White  Black  Result        Date        Player 1  Score 1  Player 2  Score 2
2024-11-22  anna   ben    1-0           2024-11-22  anna      11       ben       9
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ratings_ledger.ledger.intake.tables.columns import Cells, with_point
from ratings_ledger.ledger.intake.tables.layouts.layout import CellRows, Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.meanings import FIRST, FIRST_SCORE, OF_PAIR, RESULT, SECOND, SECOND_SCORE
from ratings_ledger.ledger.rejections import Refused, shown

_HALF = {"½": "0.5", "1/2": "0.5"}
_NUMBER = r"\d+(?:[.,]\d+)?|½|1/2"
_RESULT = re.compile(rf"({_NUMBER})\s*[-–—:]\s*({_NUMBER})", re.ASCII)
_DRAWN = (
    "½",
    "1/2",
    "draw",
    "drawn",
    "tie",
    "remis",
    "unentschieden",
    "nulle",
    "tablas",
    "empate",
    "patta",
    "gelijk",
    "=",
)


def _read(rows: CellRows) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield two rows for each: with places for 1-0, 0-1, a draw; with scores for anything else."""
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if name not in OF_PAIR}
        try:
            found = _sides(cells)
        except Refused as problem:
            yield line, problem
            continue
        for name, outcome in zip((FIRST, SECOND), found, strict=True):
            yield line, {**shared, "player": cells[name], **outcome}


def _sides(cells: Cells) -> tuple[Cells, Cells]:
    """Return what two players got. Raises `Refused`."""
    for name in (FIRST, SECOND):
        if name not in cells:
            raise Refused("missing-member", f"the row has no {name}")
    if FIRST_SCORE in cells and SECOND_SCORE in cells:
        return {"score": cells[FIRST_SCORE]}, {"score": cells[SECOND_SCORE]}
    text = cells.get(RESULT)
    if text is None:
        raise Refused("missing-member", "the row has no result")
    if text.casefold() in _DRAWN:
        return {"place": "1"}, {"place": "1"}
    match = _RESULT.fullmatch(text)
    if match is None:
        raise Refused("bad-value", f"result: {shown(text)} is no result such as 1-0, 3:2 or draw")
    one, other = (_HALF.get(part) or with_point(RESULT, part) for part in match.groups())
    if (one, other) in (("1", "0"), ("0", "1"), ("0.5", "0.5")):
        places = {"1": "1", "0": "2", "0.5": "1"}
        return {"place": places[one]}, {"place": places[other]}
    if "0.5" in (one, other) and not {one, other}.isdisjoint(("0", "1")):
        raise Refused("bad-value", f"result: {shown(text)} gives one player half a point alone; write ½-½, 1-0 or 0-1")
    return {"score": one}, {"score": other}


def _is_of_pairs(view: TableView) -> bool:
    return FIRST in view.meanings and SECOND in view.meanings


PAIR = Layout(
    "pair",
    "a row per game, two names with their result",
    _is_of_pairs,
    examples=(
        Example(
            "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n2024-11-23,ben,anna,½-½\n",
            ("anna 1 ben 2", "ben 1 anna 1"),
        ),
        Example("Tag,Heim,Gast,Ergebnis\n2024-11-22,anna,ben,3:1\n", ("anna =3 ben =1",)),
        Example("Date,Player 1,Score 1,Player 2,Score 2\n2024-11-22,anna,11,ben,9\n", ("anna =11 ben =9",)),
    ),
    read=_read,
    besides=frozenset(OF_PAIR),
)
