"""Tie-breaks by the games of a list; a larger value is better."""

from collections.abc import Mapping
from typing import Any

from ratings_ledger.projections.lists.contract import Results


def count_wins(results: Results) -> list[int]:
    """Count for every player the games in which no player got more points, and at least one got fewer."""
    wins = [0] * len(results.names)
    for played in _list_games(results):
        most, least = max(change for _, change in played), min(change for _, change in played)
        for player, change in played:
            wins[player] += change == most > least
    return wins


def compare_tied(results: Results, tied: Mapping[int, Any]) -> list[int]:
    """Return for every player how often they beat rivals in the same game, minus how often these beat them.

    A rival is a player with an equal value in `tied`; the one with more points from the game beats the other.
    """
    scores = [0] * len(results.names)
    for played in _list_games(results):
        for player, change in played:
            scores[player] += sum(
                (change > theirs) - (change < theirs)
                for rival, theirs in played
                if player in tied and tied.get(rival) == tied[player]
            )
    return scores


def _list_games(results: Results) -> list[list[tuple[int, int]]]:
    """Return each game as pairs of a player and their change of points."""
    pairs = list(zip(results.players, results.changes, strict=True))
    offsets = results.offsets
    return [pairs[offsets[game] : offsets[game + 1]] for game in range(len(offsets) - 1)]
