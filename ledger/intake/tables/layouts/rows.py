"""A row for each player of a game.

Date        Player  Place
2024-11-22  anna    1
2024-11-22  ben     2
"""

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.meanings import RESULT, SECOND
from ratings_ledger.ledger.rejections import Refused


def _matches(view: TableView) -> bool:
    if "player" not in view.meanings or (SECOND in view.meanings and "place" not in view.meanings):
        return False
    if RESULT in view.meanings and {"place", "score"}.isdisjoint(view.meanings):
        message = f"{view.find_name(RESULT)} says who won, but no column is called opponent"
        advice = "name the opponent's column: --map 'THEIRS=player 2'"
        raise Refused("missing-column", f"{message}; {advice}", view.header_line)
    return True


ROWS = Layout(
    "rows",
    "a row per player",
    _matches,
    examples=(
        Example(
            "Date,Player,Place\n22.11.2024,anna,1\n22.11.2024,ben,2\n22.11.2024,ben,1\n22.11.2024,anna,2\n",
            ("anna 1 ben 2", "ben 1 anna 2"),
        ),
        Example(
            "Date,First name,Last name,Place\n2024-11-22,Anna,Adler,1\n2024-11-22,Ben,Berg,2\n",
            ("Anna Adler 1 Ben Berg 2",),
        ),
        Example("Datum;Spieler;Punkte\n22.11.2024;anna;9,5\n22.11.2024;ben;8\n", ("anna =9.5 ben =8",)),
    ),
    is_usual=True,
    is_row_whole=False,
)
