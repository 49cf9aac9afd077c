"""The ladder of running points: most points first."""

from fractions import Fraction

from projections.lists.contract import ExplainedLine, RankedRow, Results, ranked, too_few


def rank(results: Results) -> list[RankedRow]:
    """A row for everybody; players with too few games are not qualified."""
    rows = [
        RankedRow(None, name, points, games, games >= results.params.min_games)
        for name, points, games in zip(results.names, results.points, results.games, strict=True)
    ]
    return ranked(rows, key=lambda row: -row.points)


def explain(results: Results, name: str) -> list[ExplainedLine]:
    """The points after everything that led to them."""
    player = results.names.index(name)
    return [
        ExplainedLine("points", Fraction(results.points[player], results.scale), "after all games and adjustments"),
        *too_few(results.games[player], results.params.min_games),
    ]
