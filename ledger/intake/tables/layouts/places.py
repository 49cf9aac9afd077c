"""A row for each game, with a column for each place.

Date        1st   2nd       3rd
2024-11-22  anna  ben=cleo
"""

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView


def _is_of_places(view: TableView) -> bool:
    return any(name and name[0].isdigit() for name in view.meanings)


PLACES = Layout(
    "places",
    "a row per game, a column per place",
    _is_of_places,
    examples=(
        Example("Date,1st,2nd,3rd\n2024-11-22,anna,ben=cleo,\n", ("anna 1 ben 2 cleo 2",)),
        Example("Datum;Platz 1;Platz 2\n22.11.2024;anna;ben\n", ("anna 1 ben 2",)),
        Example("Date,Winner,Loser\n2024-11-22,anna,ben\n", ("anna 1 ben 2",)),
    ),
    is_usual=True,
)
