"""A row for each game of up to six players, with the name and the score of each player.

Date        Player 1  Score 1  Player 2  Score 2  Player 3  Score 3
2024-11-22  anna      10       ben       7        cleo      8
2024-11-23  ben       9        cleo      11
"""

from functools import partial

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.pair import has_two_sides, read_player_as_first, refuse_without_result
from ratings_ledger.ledger.intake.tables.layouts.sides import PER_SIDE_COLUMNS, read_sides
from ratings_ledger.ledger.intake.tables.meanings import FIRST_SCORE, SIDES


def _matches(view: TableView) -> bool:
    if not has_two_sides(view) or {*SIDES[2:]}.isdisjoint(view.meanings):
        return False
    if FIRST_SCORE not in view.meanings:
        refuse_without_result(view)
    return True


SEATS = Layout(
    "seats",
    "a row per game, names with a score for each",
    _matches,
    examples=(
        Example(
            "Date,Player 1,Score 1,Player 2,Score 2,Player 3,Score 3\n2024-11-22,anna,10,ben,7,cleo,8\n"
            "2024-11-23,ben,9,cleo,11,,\n",
            ("anna =10 ben =7 cleo =8", "ben =9 cleo =11"),
        ),
        Example(
            "Datum;Spieler 1;Spieler 2;Spieler 3;Punkte 1;Punkte 2;Punkte 3\n22.11.2024;anna;ben;cleo;1,5;2;0\n",
            ("anna =1.5 ben =2 cleo =0",),
        ),
    ),
    read=partial(read_sides, SIDES),
    sides=SIDES,
    rename=read_player_as_first,
    additional_columns=PER_SIDE_COLUMNS,
)
