"""Format the state that a rule keeps for each player as columns of tables and CSV."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.history import Change
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Standing
from ratings_ledger.projections.queries.visible_states import DEVIATION

Rows = Sequence[Standing] | Sequence[Change]


def list_state_columns(rows: Rows) -> dict[str, Sequence[render.TableCell]]:
    """Return a column per number of the state, and `provisional`; no column if the rule keeps only points.

    A row without a state has empty cells.
    """
    columns: dict[str, Sequence[render.TableCell]] = {
        name: _build_state_column(rows, name) for name in _list_state_names(rows)
    }
    if any(row.provisional is not ABSENT for row in rows):
        columns["provisional"] = ["" if row.provisional is ABSENT else row.provisional for row in rows]
    return columns


def list_extra_columns(rows: Rows) -> dict[str, Sequence[render.TableCell]]:
    """Return the columns of text tables: all numbers of the state except the rating and its deviation."""
    return {name: _build_state_column(rows, name) for name in _list_state_names(rows)[1:] if name != DEVIATION}


def _list_state_names(rows: Rows) -> list[str]:
    # the versions of a ruleset can keep different numbers
    return [*dict.fromkeys(name for row in rows if row.state is not ABSENT for name in row.state)]


def _build_state_column(rows: Rows, name: str) -> list[render.TableCell]:
    return ["" if row.state is ABSENT else row.state.get(name, "") for row in rows]
