"""Rank the table of a league by the sum of the points of all games, or of a player's best games.

Tied players share a rank, unless `tie_break` decides. "more wins" counts the games in which no player got more points,
and at least one got fewer. "head-to-head" counts how often the player got more points than a tied rival in the same
game, minus how often the rival did.
"""

from collections.abc import Sequence

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, explain_too_few, rank_rows
from ratings_ledger.projections.lists.tie_breaks import compare_tied, count_wins


def rank(results: RankingInput) -> list[RankedRow]:
    """Return a row for every player, most points first."""
    params = results.params
    totals = _sum_points(results)
    rows = [
        RankedRow(rank=None, player=name, points=total, games=games, qualified=games >= params.min_games)
        for name, total, games in zip(results.names, totals, results.games, strict=True)
    ]
    if params.tie_break == "none":
        return rank_rows(rows, key=lambda row: -row.points)
    tie_values = _break_ties(results, rows)
    return rank_rows(rows, key=lambda row: (-row.points, -tie_values[row.player]))


def explain(results: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the sum of the games that count and of adjustments, and the tie-break."""
    player = results.names.index(name)
    games, best = results.games[player], results.params.best_of
    description = f"of the best {best} of {games} games" if find_left_out(results, player) else "of all games"
    adjusted = results.points[player] != sum(change for _, change in results.list_changes(player))
    total = ExactNumber(_sum_points(results)[player], results.scale)
    return [
        ExplainedLine(
            "sum",
            total,
            f"{description}, with adjustments" if adjusted else description,
            ("best_of",) if games > 1 else (),
        ),
        *_explain_tie(results, name),
        *explain_too_few(games, results.params.min_games),
    ]


def _explain_tie(results: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the tie-break between a player and others with the same sum, if there was one."""
    if results.params.tie_break == "none":
        return []
    rows = {row.player: row for row in rank(results) if row.qualified}
    tied = [row for row in rows.values() if name in rows and row.points == rows[name].points]
    if len(tied) < 2:
        return []
    tie_values = _break_ties(results, tied)
    rivals = ", ".join(f"{row.player} {tie_values[row.player]}" for row in tied if row.player != name)
    return [ExplainedLine("tie-break", ExactNumber(tie_values[name]), f"{results.params.tie_break}; {rivals}")]


def find_left_out(results: RankingInput, player: int) -> set[int]:
    """Return the games that are not among a player's best."""
    if results.params.best_of == "all":
        return set()
    games_by_change = sorted(results.list_changes(player), key=lambda game_and_change: -game_and_change[1])
    return {game for game, _ in games_by_change[results.params.best_of :]}


def _sum_points(results: RankingInput) -> Sequence[int]:
    """Return the points of every player; with `best_of` = N, the sum of the player's N best games and adjustments."""
    if results.params.best_of == "all":
        return results.points
    changes: list[list[int]] = [[] for _ in results.names]
    for slot, player in enumerate(results.players):
        changes[player].append(results.changes[slot])
    totals = []
    for player, player_changes in enumerate(changes):
        unused = sorted(player_changes, reverse=True)[results.params.best_of :]
        totals.append(results.points[player] - sum(unused))
    return totals


def _break_ties(results: RankingInput, rows: Sequence[RankedRow]) -> dict[str, int]:
    """Return the tie-break value of every player; a larger value is better."""
    if results.params.tie_break == "more wins":
        return dict(zip(results.names, count_wins(results), strict=True))
    index_by_name = {name: player for player, name in enumerate(results.names)}
    tied = {index_by_name[row.player]: row.points for row in rows if row.qualified}
    return dict(zip(results.names, compare_tied(results, tied), strict=True))
