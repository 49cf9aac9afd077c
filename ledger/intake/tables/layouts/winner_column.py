"""A row for each game, with the names of the players and a column for the winner's name.

Date        Player 1  Player 2  Winner        Date        Player 1  Player 2  Player 3  Winner
2024-11-22  anna      ben       anna          2024-11-22  anna      ben       cleo      ben
"""

from functools import partial

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.pair import has_two_sides, read_player_as_first
from ratings_ledger.ledger.intake.tables.layouts.sides import PER_SIDE_COLUMNS, read_sides
from ratings_ledger.ledger.intake.tables.meanings import SIDES, WINNER


def _matches(view: TableView) -> bool:
    return has_two_sides(view) and WINNER in view.meanings


WINNER_COLUMN = Layout(
    "winner",
    "a row per game, the names and who won",
    _matches,
    examples=(
        Example(
            "Date,Player 1,Player 2,Winner\n2024-11-22,anna,ben,ben\n2024-11-23,anna,ben,draw\n2024-11-24,anna,ben,\n",
            ("anna 2 ben 1", "anna 1 ben 1", "missing-member: D4 (Winner): the row has no winner"),
        ),
        Example(
            "Datum;Spieler 1;Spieler 2;Sieger\n22.11.2024;anna;ben;anne\n",
            ("winner-not-in-row: D2 (Sieger): 'anne' is not one of the row's players, 'anna' and 'ben'; write one",),
        ),
        Example("Date,White,Black,Winner\n2024-11-22,anna,ben,Black\n", ("anna 2 ben 1",)),
        Example(
            "Date,Player 1,Player 2,Player 3,Winner\n2024-11-22,anna,ben,,ben\n2024-11-23,anna,ben,cleo,ben\n",
            ("anna 2 ben 1", "others-unknown: E3 (Winner): one of 3 players won"),
        ),
    ),
    read=partial(read_sides, SIDES),
    sides=SIDES,
    rename=read_player_as_first,
    additional_columns=PER_SIDE_COLUMNS,
)
