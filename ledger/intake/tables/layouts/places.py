"""A row for each game, with a column for each place.

Date        1st   2nd       3rd
2024-11-22  anna  ben=cleo
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.meanings import LOSER, SIDES, WINNER


def _matches(view: TableView) -> bool:
    return WINNER in view.meanings or any(name and name[0].isdigit() for name in view.meanings)


def _name_places(meanings: Collection[str | None]) -> Mapping[str, str]:
    """Read a winner and a loser as 1st and 2nd; without columns of winners or places, number the players' columns."""
    if WINNER in meanings or any(name and name[0].isdigit() for name in meanings):
        return {WINNER: "1st", LOSER: "2nd"}
    return dict(zip(SIDES, ("1st", "2nd", "3rd", "4th", "5th", "6th"), strict=True))


PLACES = Layout(
    "places",
    "a row per game, a column per place",
    _matches,
    examples=(
        Example("Date,1st,2nd,3rd\n2024-11-22,anna,ben=cleo,\n", ("anna 1 ben 2 cleo 2",)),
        Example("Datum;Platz 1;Platz 2\n22.11.2024;anna;ben\n", ("anna 1 ben 2",)),
        Example("Date,Winner,Loser\n2024-11-22,anna,ben\n", ("anna 1 ben 2",)),
    ),
    rename=_name_places,
    is_usual=True,
)
