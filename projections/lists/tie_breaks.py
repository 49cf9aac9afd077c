"""Compute tie-break values from the games of a list; a larger value is better."""

from collections.abc import Mapping
from typing import Any

from ratings_ledger.projections.lists.contract import RankingInput


def count_wins(inputs: RankingInput) -> list[int]:
    """Count for every player the games in which no player got more points, and at least one got fewer."""
    wins = [0] * len(inputs.names)
    for participants in _list_games(inputs):
        best, worst = max(change for _, change in participants), min(change for _, change in participants)
        for player, change in participants:
            wins[player] += change == best > worst
    return wins


def compare_tied(inputs: RankingInput, tied: Mapping[int, Any]) -> list[int]:
    """Return the number of wins over rivals minus the number of losses to rivals, for every player.

    A rival is a player with an equal value in `tied`. A player beats a rival in a game by getting more points from it.
    """
    scores = [0] * len(inputs.names)
    for participants in _list_games(inputs):
        for player, change in participants:
            scores[player] += sum(
                (change > rival_change) - (change < rival_change)
                for rival, rival_change in participants
                if player in tied and tied.get(rival) == tied[player]
            )
    return scores


def _list_games(inputs: RankingInput) -> list[list[tuple[int, int]]]:
    """Return each game as a list of (player, change of points)."""
    participants = list(zip(inputs.players, inputs.changes, strict=True))
    offsets = inputs.offsets
    return [participants[offsets[game] : offsets[game + 1]] for game in range(len(offsets) - 1)]
