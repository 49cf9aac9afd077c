"""A row for each game, with the winner, the loser and their score.

Date        Winner  Loser  Score
2024-11-22  anna    ben    3-1
"""

from functools import partial

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.sides import PER_SIDE_COLUMNS, RESULTS, read_sides
from ratings_ledger.ledger.intake.tables.meanings import FIRST_SCORE, LOSER, SET_COLUMNS, WINNER


def _matches(view: TableView) -> bool:
    has_result_column = not {*RESULTS, FIRST_SCORE, *SET_COLUMNS}.isdisjoint(view.meanings)
    return WINNER in view.meanings and LOSER in view.meanings and has_result_column


WINNER_LOSER = Layout(
    "winner-loser",
    "a row per game, the winner and the loser with their result",
    _matches,
    examples=(
        Example(
            "Date,Winner,Loser,Score\n2024-11-22,anna,ben,3-1\n2024-11-23,ben,anna,1-0\n",
            ("anna =3 ben =1", "ben =1 anna =0"),
        ),
        Example("Datum;Sieger;Verlierer;Ergebnis\n22.11.2024;anna;ben;3:0 (11:7, 11:9, 11:3)\n", ("anna =3 ben =0",)),
        Example(
            "Date,Winner 1,Winner 2,Loser 1,Loser 2,Score\n2024-11-22,anna,ben,cleo,dora,3-1\n",
            ("anna =3 ben =3 cleo =1 dora =1",),
        ),
        Example(
            "Date,Winner,Loser,Score\n2024-11-22,anna,ben,1-3\n",
            ("results-disagree: D2 (Score) says that the second side won, but B2 (Winner) says that the first side",),
        ),
    ),
    read=partial(read_sides, (WINNER, LOSER)),
    sides=(WINNER, LOSER),
    additional_columns=PER_SIDE_COLUMNS,
)
