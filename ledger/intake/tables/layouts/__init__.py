"""The layouts of tables, in the order in which they are tried."""

from ratings_ledger.ledger.intake.tables.columns import PLAYER_COLUMNS
from ratings_ledger.ledger.intake.tables.layouts.layout import Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.pair import PAIR
from ratings_ledger.ledger.intake.tables.layouts.places import PLACES
from ratings_ledger.ledger.intake.tables.layouts.player_columns import PLAYER_PLACES, PLAYER_SCORES
from ratings_ledger.ledger.intake.tables.layouts.rows import ROWS
from ratings_ledger.ledger.intake.tables.layouts.seats import SEATS
from ratings_ledger.ledger.intake.tables.layouts.winner_column import WINNER_COLUMN
from ratings_ledger.ledger.intake.tables.layouts.winner_loser import WINNER_LOSER

LAYOUTS = {
    layout.name: layout
    for layout in (ROWS, WINNER_LOSER, WINNER_COLUMN, SEATS, PAIR, PLACES, PLAYER_PLACES, PLAYER_SCORES)
}

# for a table whose layout is unclear: it accepts every column with a known meaning
UNCLEAR = ROWS._replace(
    is_usual=False, has_player_columns=True, additional_columns=frozenset((*PLAYER_COLUMNS, *PAIR.additional_columns))
)


def recognise_layout(view: TableView) -> Layout:
    """Return the first layout that matches the column names and cells of a table, else `ROWS`.

    Raises `Refused` if a layout nearly matches: the table lacks a column or is contradictory.
    """
    return next((layout for layout in LAYOUTS.values() if layout.recognise(view)), ROWS)
