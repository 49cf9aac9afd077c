"""The layouts of tables, in the order in which they are looked for."""

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


# what is taken of a table whose layout is unclear: every column that means something
UNCLEAR = ROWS._replace(is_usual=False, has_player_columns=True, besides=frozenset((*PLAYER_COLUMNS, *PAIR.besides)))


def recognise_layout(view: TableView) -> Layout:
    """Return the layout that the names and cells of a table say. Raises `Refused` (unclear-layout)."""
    return next((layout for layout in LAYOUTS.values() if layout.recognise(view)), ROWS)
