"""Rank a ladder by running points, most points first."""

from collections.abc import Sequence

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import (
    ExplainedLine,
    RankedColumns,
    RankedRow,
    Results,
    explain_too_few,
    rank_rows,
)


def rank(results: Results) -> Sequence[RankedRow]:
    """Return a row for every player; players with too few games are not qualified."""
    if results.ids is not None:
        return _rank_columns(results)
    rows = [
        RankedRow(rank=None, player=name, points=points, games=games, qualified=games >= results.params.min_games)
        for name, points, games in zip(results.names, results.points, results.games, strict=True)
    ]
    if results.states:
        states = zip(*results.states, strict=True)
        rows = [row._replace(state=state) for row, state in zip(rows, states, strict=True)]
    if results.ranked_by is None:
        return rank_rows(rows, key=lambda row: -row.points)
    rank_values = dict(zip(results.names, results.ranked_by, strict=True))
    return rank_rows(rows, key=lambda row: -rank_values[row.player])


def _rank_columns(results: Results) -> RankedColumns:
    """Return the rows of a long list as columns."""
    points, games = np.asarray(results.points), np.asarray(results.games)
    rank_values = points if results.ranked_by is None else np.asarray(results.ranked_by)
    unqualified = games < results.params.min_games
    order = np.lexsort((np.asarray(results.ids), -rank_values, unqualified))
    qualified, ranks = order[: len(order) - unqualified.sum()], np.zeros(len(order), dtype=np.int64)
    # a player with the same value as the player before shares that rank
    starts_rank = np.diff(rank_values[qualified], prepend=rank_values[qualified[:1]] + 1) != 0
    ranks[qualified] = np.maximum.accumulate(np.where(starts_rank, np.arange(1, len(qualified) + 1), 0))
    return RankedColumns(results.names, points, games, ranks, order, [*map(np.asarray, results.states)])


def _explain_ranked_by(results: Results, player: int) -> list[ExplainedLine]:
    """Explain the value that ranks a player, unless it is the points."""
    if results.ranked_by is None:
        return []
    return [ExplainedLine("ranked by", ExactNumber(results.ranked_by[player], results.scale), results.rank_words or "")]


def explain(results: Results, name: str) -> list[ExplainedLine]:
    """Explain the player's points, the value that ranks the player, and the reason if there is no rank."""
    player = results.names.index(name)
    return [
        ExplainedLine("points", ExactNumber(results.points[player], results.scale), "after all games and adjustments"),
        *_explain_ranked_by(results, player),
        *explain_too_few(results.games[player], results.params.min_games),
    ]
