"""The names that somebody may type: those a ledger knows."""

from __future__ import annotations

from projections.facts.columns import Facts


def game_names(facts: Facts) -> set[str]:
    """What the games are called, such as catan."""
    return {facts.texts[cell.game] for cell in facts.cells}
