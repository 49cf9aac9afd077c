"""The ladder of running points: the most points first."""

from projections.contract import exact
from projections.lists.contract import Results, Standing, ranked


def rank(results: Results) -> list[Standing]:
    """A row for everybody; who has too few games is not qualified."""
    rows = [
        Standing(None, name, points, games, games >= results.params.min_games)
        for name, points, games in zip(results.names, results.points, results.games, strict=True)
    ]
    return ranked(rows, key=lambda row: -row.points)


def explain(results: Results, name: str) -> list[tuple[str, str, str]]:
    """The points; what led to them is the player's history."""
    player = results.names.index(name)
    return [("points", exact(results.points[player], results.scale), "after all games and adjustments")]
