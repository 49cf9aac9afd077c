"""Tie-breaks by the games of a list; a larger value is better."""

from collections.abc import Mapping
from typing import Any

from ratings_ledger.projections.lists.contract import Results


def count_wins(results: Results) -> list[int]:
    """Count for every player the games in which no player got more points, and at least one got fewer."""
    wins = [0] * len(results.names)
    for participants in _list_games(results):
        best, worst = max(change for _, change in participants), min(change for _, change in participants)
        for player, change in participants:
            wins[player] += change == best > worst
    return wins


def compare_tied(results: Results, tied: Mapping[int, Any]) -> list[int]:
    """Return for every player how often they beat rivals in the same game, minus how often these beat them.

    A rival is a player with an equal value in `tied`; whoever gets more points from a game beats the other.
    """
    scores = [0] * len(results.names)
    for participants in _list_games(results):
        for player, change in participants:
            scores[player] += sum(
                (change > rival_change) - (change < rival_change)
                for rival, rival_change in participants
                if player in tied and tied.get(rival) == tied[player]
            )
    return scores


def _list_games(results: Results) -> list[list[tuple[int, int]]]:
    """Return each game as pairs of a player and their change of points."""
    participants = list(zip(results.players, results.changes, strict=True))
    offsets = results.offsets
    return [participants[offsets[game] : offsets[game + 1]] for game in range(len(offsets) - 1)]
