"""The players a ledger knows: those named by anything live."""

from __future__ import annotations

from array import array
from typing import Any

from projections import compiling
from projections.facts.columns import Facts


def known_players(facts: Facts) -> set[str]:
    """The ids named by live games, accounts, adjustments and renames: not those that only occurred by mistake."""
    gone = facts.recorded.withdrawn
    numbers = set(_participants(facts))
    numbers |= {adjustment.player for adjustment in facts.recorded.adjustments if adjustment.position not in gone}
    numbers |= {account.player for account in facts.recorded.accounts if account.position not in gone}
    for rename in facts.recorded.renames:
        if rename.position not in gone:
            numbers |= {rename.player, rename.new_player}
    return {facts.players[number] for number in numbers}


def _participants(facts: Facts) -> Any:
    """The numbers of those who took part in live games."""
    if not compiling.pays(len(facts.start)):
        live: set[int] = set()
        for row, (start, count) in enumerate(zip(facts.start, facts.count, strict=True)):
            if row not in facts.voided:
                live.update(facts.player[start : start + count])
        return live
    import numpy as np

    start, count, player = map(compiling.as_numpy, (facts.start, facts.count, facts.player))
    count = count.copy()
    count[array("q", facts.voided)] = 0
    # everybody between the start and the end of a game; these ranges never overlap
    inside = np.zeros(len(player) + 1, dtype=np.int8)
    inside[start[count > 0]] += 1
    inside[(start + count)[count > 0]] -= 1
    taking_part = np.cumsum(inside[:-1], dtype=np.int8).astype(bool)
    return np.flatnonzero(np.bincount(player[taking_part])).tolist()
