"""Format the state that a rule keeps of each player, as columns of tables and CSV."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.history import Change
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Standing
from ratings_ledger.projections.queries.visible_states import DEVIATION

Rows = Sequence[Standing] | Sequence[Change]


def list_state_columns(rows: Rows) -> dict[str, Sequence[render.Cell]]:
    """Return a column per member of the state, and `provisional`; nothing if the rule keeps points alone.

    A row without a state has empty cells.
    """
    columns: dict[str, Sequence[render.Cell]] = {name: _state_column(rows, name) for name in _state_names(rows)}
    if any(row.provisional is not ABSENT for row in rows):
        columns["provisional"] = ["" if row.provisional is ABSENT else row.provisional for row in rows]
    return columns


def list_extra_columns(rows: Rows) -> dict[str, Sequence[render.Cell]]:
    """Return the extra columns of text tables: all members of the state but the rating and its deviation."""
    return {name: _state_column(rows, name) for name in _state_names(rows)[1:] if name != DEVIATION}


def _state_names(rows: Rows) -> list[str]:
    # versions of a ruleset may keep different numbers
    return [*dict.fromkeys(name for row in rows if row.state is not ABSENT for name in row.state)]


def _state_column(rows: Rows, name: str) -> list[render.Cell]:
    return ["" if row.state is ABSENT else row.state.get(name, "") for row in rows]
