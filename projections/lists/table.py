"""The table of a league: the sum of what the games gave, or of the best of them.

Who is tied shares a rank, unless `tie_break` decides: by more wins (nobody in the game got more), or head-to-head: by
how often he got more than the others who are tied with him, in games in which they met.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from projections.contract import exact
from projections.lists.contract import Results, Standing, ranked


def rank(results: Results) -> list[Standing]:
    """A row for everybody, the most points first."""
    params = results.params
    totals = _totals(results)
    rows = [
        Standing(None, name, total, games, games >= params.min_games)
        for name, total, games in zip(results.names, totals, results.games, strict=True)
    ]
    if params.tie_break == "none":
        return ranked(rows, key=lambda row: -row.points)
    broken = _broken(results, rows)
    return ranked(rows, key=lambda row: (-row.points, -broken[row.player]))


def explain(results: Results, name: str) -> list[tuple[str, str, str]]:
    """The sum, what an adjustment added, and how many games of a best-of are left out."""
    player = results.names.index(name)
    changes = sorted((change for _, change in results.of(player)), reverse=True)
    best = len(changes) if results.params.best_of == "all" else results.params.best_of
    told = "all games" if best >= len(changes) else f"the best {best} of {len(changes)} games"
    lines = [("sum", exact(sum(changes[:best]), results.scale), told)]
    if adjusted := results.points[player] - sum(changes):
        lines.append(("adjusted", exact(adjusted, results.scale), "added or taken by people, or begun with"))
    return lines


def _totals(results: Results) -> Sequence[int]:
    """The points of every player; with best_of = N only his N best games, and what was adjusted."""
    if results.params.best_of == "all":
        return results.points
    changes: list[list[int]] = [[] for _ in results.names]
    for slot, player in enumerate(results.players):
        changes[player].append(results.changes[slot])
    totals = []
    for player, mine in enumerate(changes):
        left_out = sorted(mine, reverse=True)[results.params.best_of :]
        totals.append(results.points[player] - sum(left_out))
    return totals


def _broken(results: Results, rows: Sequence[Standing]) -> dict[str, int]:
    """For each player what breaks a tie, the more the better."""
    if results.params.tie_break == "more wins":
        everybody = set(range(len(results.names)))
        return {name: _wins(results, player, everybody) for player, name in enumerate(results.names)}
    numbers = {name: player for player, name in enumerate(results.names)}
    found = dict.fromkeys(results.names, 0)
    qualified = sorted((row for row in rows if row.qualified), key=lambda row: row.points)
    by_points: Any = groupby(qualified, key=lambda row: row.points)
    for _, tied in by_points:
        group = {numbers[row.player] for row in tied}
        found |= {results.names[player]: _met(results, player, group) for player in group}
    return found


def _wins(results: Results, player: int, others: set[int]) -> int:
    """In how many of his games nobody of the others got more."""
    return sum(
        all(theirs <= change for other, theirs in _played(results, game) if other in others)
        for game, change in results.of(player)
    )


def _met(results: Results, player: int, group: set[int]) -> int:
    """How often a player got more than somebody of a group in the same game."""
    return sum(
        theirs < change
        for game, change in results.of(player)
        for other, theirs in _played(results, game)
        if other in group
    )


def _played(results: Results, game: int) -> list[tuple[int, int]]:
    slots = range(results.offsets[game], results.offsets[game + 1])
    return [(results.players[slot], results.changes[slot]) for slot in slots]
