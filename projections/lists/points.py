"""Rank a ladder by running points, most points first."""

from collections.abc import Sequence

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import (
    ExplainedLine,
    RankedColumns,
    RankedRow,
    RankingInput,
    explain_too_few,
    rank_rows,
)


def rank(inputs: RankingInput) -> Sequence[RankedRow]:
    """Return a row for every player; players with too few games are not qualified."""
    if inputs.ids is not None:
        return _rank_columns(inputs)
    rows = [
        RankedRow(rank=None, player=name, points=points, games=games, qualified=games >= inputs.params.min_games)
        for name, points, games in zip(inputs.names, inputs.points, inputs.games, strict=True)
    ]
    if inputs.states:
        states = zip(*inputs.states, strict=True)
        rows = [row._replace(state=state) for row, state in zip(rows, states, strict=True)]
    if inputs.rank_values is None:
        return rank_rows(rows, key=lambda row: -row.points)
    rank_values = dict(zip(inputs.names, inputs.rank_values, strict=True))
    return rank_rows(rows, key=lambda row: -rank_values[row.player])


def _rank_columns(inputs: RankingInput) -> RankedColumns:
    """Return the rows of a long list as columns."""
    points, games = np.asarray(inputs.points), np.asarray(inputs.games)
    rank_values = points if inputs.rank_values is None else np.asarray(inputs.rank_values)
    unqualified = games < inputs.params.min_games
    order = np.lexsort((np.asarray(inputs.ids), -rank_values, unqualified))
    qualified, ranks = order[: len(order) - unqualified.sum()], np.zeros(len(order), dtype=np.int64)
    # a player with the same value as the player before shares that rank
    starts_rank = np.diff(rank_values[qualified], prepend=rank_values[qualified[:1]] + 1) != 0
    ranks[qualified] = np.maximum.accumulate(np.where(starts_rank, np.arange(1, len(qualified) + 1), 0))
    return RankedColumns(inputs.names, points, games, ranks, order, [*map(np.asarray, inputs.states)])


def explain(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the player's points, the value that ranks the player if it differs, and the reason for a missing rank."""
    player = inputs.names.index(name)
    points = ExactNumber(inputs.points[player], inputs.scale)
    lines = [ExplainedLine("points", points, "after all games and adjustments")]
    if inputs.rank_values is not None:
        rank_value = ExactNumber(inputs.rank_values[player], inputs.scale)
        lines.append(ExplainedLine("ranked by", rank_value, inputs.ranked_by or ""))
    return lines + explain_too_few(inputs.games[player], inputs.params.min_games)
