"""What parts players with equal points, by the games of a list; more is better."""

from collections.abc import Mapping
from typing import Any

from ratings_ledger.projections.lists.contract import Results


def count_wins(results: Results) -> list[int]:
    """Return for every player the games in which nobody got more points, and somebody got less."""
    wins = [0] * len(results.names)
    for played in _games(results):
        most, least = max(change for _, change in played), min(change for _, change in played)
        for player, change in played:
            wins[player] += change == most > least
    return wins


def compare_tied(results: Results, tied: Mapping[int, Any]) -> list[int]:
    """Return for every player how often they got more points than others in the same game, minus how often those got
    more. Only others with an equal value in `tied` count.
    """
    scores = [0] * len(results.names)
    for played in _games(results):
        for player, change in played:
            scores[player] += sum(
                (change > theirs) - (change < theirs)
                for rival, theirs in played
                if player in tied and tied.get(rival) == tied[player]
            )
    return scores


def _games(results: Results) -> list[list[tuple[int, int]]]:
    """Return the games as pairs of a player and what the game gave them."""
    pairs = list(zip(results.players, results.changes, strict=True))
    offsets = results.offsets
    return [pairs[offsets[game] : offsets[game + 1]] for game in range(len(offsets) - 1)]
