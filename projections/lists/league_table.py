"""Rank the table of a league by the sum of the points of all games, or of a player's best games.

Tied players share a rank, unless `tie_break` decides. "more wins" counts the games in which nobody got more points than
the player, and somebody got fewer. "head-to-head" counts how often the player got more points than a tied rival in the
same game, minus how often the rival did.
"""

from collections.abc import Sequence

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, explain_too_few, rank_rows
from ratings_ledger.projections.lists.tie_breaks import compare_tied, count_wins


def rank(inputs: RankingInput) -> list[RankedRow]:
    """Return a row for every player, most points first."""
    params = inputs.params
    totals = _sum_points(inputs)
    rows = [
        RankedRow(rank=None, player=name, points=total, games=games, qualified=games >= params.min_games)
        for name, total, games in zip(inputs.names, totals, inputs.games, strict=True)
    ]
    if params.tie_break == "none":
        return rank_rows(rows, key=lambda row: -row.points)
    tie_values = _break_ties(inputs, rows)
    return rank_rows(rows, key=lambda row: (-row.points, -tie_values[row.player]))


def explain(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the sum (with start points and adjustments), the tie-break, and a lack of games for a rank."""
    player = inputs.names.index(name)
    games, best = inputs.games[player], inputs.params.best_of
    description = f"of the best {best} of {games} games" if find_left_out(inputs, player) else "of all games"
    adjusted = inputs.points[player] != sum(change for _, change in inputs.list_changes(player))
    total = ExactNumber(_sum_points(inputs)[player], inputs.scale)
    return [
        ExplainedLine(
            "sum",
            total,
            f"{description}, with start points and adjustments" if adjusted else description,
            ("best_of",) if games > 1 else (),
        ),
        *_explain_tie(inputs, name),
        *explain_too_few(games, inputs.params.min_games),
    ]


def _explain_tie(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the tie-break between a player and others with the same sum, if there was one."""
    if inputs.params.tie_break == "none":
        return []
    rows = {row.player: row for row in rank(inputs) if row.qualified}
    tied = [row for row in rows.values() if name in rows and row.points == rows[name].points]
    if len(tied) < 2:
        return []
    tie_values = _break_ties(inputs, tied)
    rivals = ", ".join(f"{row.player} {tie_values[row.player]}" for row in tied if row.player != name)
    return [ExplainedLine("tie-break", ExactNumber(tie_values[name]), f"{inputs.params.tie_break}; {rivals}")]


def find_left_out(inputs: RankingInput, player: int) -> set[int]:
    """Return the games that are not among a player's best."""
    if inputs.params.best_of == "all":
        return set()
    games_by_change = sorted(inputs.list_changes(player), key=lambda game_and_change: -game_and_change[1])
    return {game for game, _ in games_by_change[inputs.params.best_of :]}


def _sum_points(inputs: RankingInput) -> Sequence[int]:
    """Return the points of every player; with `best_of` = N, without the games that are not among the N best."""
    if inputs.params.best_of == "all":
        return inputs.points
    changes: list[list[int]] = [[] for _ in inputs.names]
    for slot, player in enumerate(inputs.players):
        changes[player].append(inputs.changes[slot])
    totals = []
    for player, player_changes in enumerate(changes):
        unused = sorted(player_changes, reverse=True)[inputs.params.best_of :]
        totals.append(inputs.points[player] - sum(unused))
    return totals


def _break_ties(inputs: RankingInput, rows: Sequence[RankedRow]) -> dict[str, int]:
    """Return the tie-break value of every player; a larger value is better."""
    if inputs.params.tie_break == "more wins":
        return dict(zip(inputs.names, count_wins(inputs), strict=True))
    index_by_name = {name: player for player, name in enumerate(inputs.names)}
    tied = {index_by_name[row.player]: row.points for row in rows if row.qualified}
    return dict(zip(inputs.names, compare_tied(inputs, tied), strict=True))
