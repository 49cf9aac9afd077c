"""Rank the list of a month: players with enough games, by the mean or sum of the points of their games, with gold.

Means are compared as fractions. Equal scores share a place, and the following places are skipped. Tied players get the
gold of the shared place, or, with `gold_ties = pool`, an equal part of the gold of the tied places.
"""

from math import lcm

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, explain_too_few, rank_rows


def rank(inputs: RankingInput) -> list[RankedRow]:
    """Return a row for every player with a counted game in the period."""
    params = inputs.params
    rows = []
    for name, points, games in zip(inputs.names, inputs.points, inputs.games, strict=True):
        divisor = max(games, 1) if params.score == "mean" else 1
        rows.append(
            RankedRow(
                rank=None,
                player=name,
                points=points,
                games=games,
                qualified=games >= params.min_games,
                divisor=divisor,
            )
        )
    # with a common denominator, fractions can be compared as whole numbers
    denominator = lcm(*{row.divisor for row in rows})
    rows_by_rank = rank_rows(rows, key=lambda row: -row.points * (denominator // row.divisor))
    if not params.gold:
        return rows_by_rank
    sizes: dict[int | None, int] = {}
    for row in rows_by_rank:
        sizes[row.rank] = sizes.get(row.rank, 0) + 1
    return [row._replace(gold=_compute_gold(inputs, row.rank, sizes[row.rank])) for row in rows_by_rank]


def _compute_gold(inputs: RankingInput, place: int | None, tied: int) -> int:
    """Return the gold of one of `tied` players who share a place."""
    gold = inputs.params.gold
    if place is None:
        return 0
    if inputs.params.gold_ties == "pool":
        return int(sum(gold[place - 1 : place - 1 + tied]) // tied)
    return int(gold[place - 1]) if place <= len(gold) else 0


def explain(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the sum of the games' points, the score, and how many more games a rank needs."""
    player = inputs.names.index(name)
    params, games = inputs.params, inputs.games[player]
    total = ExactNumber(inputs.points[player], inputs.scale)
    lines = [ExplainedLine("sum", total, f"the points of {games} game{'s' * (games != 1)}", ("points",))]
    if params.score == "mean":
        lines.append(ExplainedLine("mean", total / max(games, 1), f"{total} divided by {games}", ("score",)))
    return lines + explain_too_few(games, params.min_games)
