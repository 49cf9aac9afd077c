"""The lists: pure functions from per-game points to ranked rows. A new kind of list is one small file and a line here.

Rules name the list that ranks their points (`Rule.ranking`); its parameters are among theirs.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ratings_ledger.projections.lists import annual, best_of, league_table, period, points
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, Results


class RankingList(NamedTuple):
    """A kind of list.

    rank:    results -> rows in the order of the list
    explain: (results, player) -> how their value comes about, and why they have no rank if they have none
    left_out: (results, index of the player) -> which of their games contribute nothing to their value
    params:  the parameters it reads besides those of every rule, and `model`, which provides them
    running: whether it ranks the points that players have after all games, not what single games gave them
    adjustable: whether people can add points
    sums_lists: whether it has no games of its own, but sums the places on the lists of `params.of`
    pays_gold: whether ranks of a closed list are paid
    reads_places: whether, by these parameters, it needs `Results.places`; the rule then has to read `place`
    by_points: whether, by these parameters, whoever has enough games is ranked by `Results.points` and nothing else
    by:      which version ranks it when several follow each other
    """

    rank: Callable[[Results], Sequence[RankedRow]]
    explain: Callable[[Results, str], list[ExplainedLine]]
    left_out: Callable[[Results, int], set[int]] = lambda results, player: set()
    params: tuple[str, ...] = ()
    model: str = "Params"
    running: bool = False
    adjustable: bool = True
    sums_lists: bool = False
    pays_gold: bool = False
    reads_places: Callable[[Any], bool] = lambda params: False
    by_points: Callable[[Any], bool] = lambda params: False
    by: str = "A list is ranked by the version that scored its last counted game."


LISTS = {
    "points": RankingList(
        points.rank,
        points.explain,
        running=True,
        by_points=lambda params: True,
        by="Running points carry over from one version to the next.",
    ),
    "table": RankingList(
        league_table.rank,
        league_table.explain,
        league_table.left_out,
        ("best_of", "tie_break"),
        "TableParams",
        by_points=lambda params: (params.best_of, params.tie_break) == ("all", "none"),
    ),
    "best-of": RankingList(
        best_of.rank,
        best_of.explain,
        best_of.left_out,
        ("parts", "weights", "tie_breaks", "places_counted", "unranked"),
        "BestOfParams",
        reads_places=best_of.reads_places,
        by_points=best_of.ranks_by_points,
    ),
    "period": RankingList(
        period.rank,
        period.explain,
        params=("score", "gold", "gold_ties"),
        model="PeriodParams",
        adjustable=False,
        pays_gold=True,
        by_points=lambda params: params.score == "sum",
    ),
    "annual": RankingList(
        annual.rank,
        annual.explain,
        params=("of", "months", "missing", "cap_at_missing", "account", "any_account"),
        model="the params of annual-places/1",
        adjustable=False,
        sums_lists=True,
        by="The list of a year is ranked by the version in force at its end.",
    ),
}
