"""Define ranking lists: pure functions from points per game to ranked rows.

A rule names the list that ranks its points (`Rule.ranking`), and the rule's parameters include those of the list. A new
kind of list needs a module in this package and an entry in `LISTS`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ratings_ledger.projections.lists import annual, best_of, league_table, monthly, points
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput


class RankingList(NamedTuple):
    """A kind of ranking list.

    rank:    inputs -> rows in the order of the list
    explain: (inputs, player id) -> the computation of the player's value, and the reason if there is no rank
    find_left_out: (inputs, index of the player) -> the player's games that do not contribute to the value
    params:  the parameters that the list reads in addition to those of every rule
    model:   the name of the class that declares these parameters
    running: whether the list ranks running points, after all games, instead of the changes by single games
    adjustable: whether adjustments can add points
    sums_lists: whether the list has no games of its own, but sums the places on the lists of `params.of`
    pays_gold: whether a closed list pays gold for its first places
    reads_places: params -> whether the list needs `RankingInput.places`; if so, the rule must read the column `place`
    by_points: params -> whether players with enough games are ranked only by the input's `points` or `rank_values`
    version_note: a sentence that says which of several consecutive ruleset versions ranks the list
    """

    rank: Callable[[RankingInput], Sequence[RankedRow]]
    explain: Callable[[RankingInput, str], list[ExplainedLine]]
    find_left_out: Callable[[RankingInput, int], set[int]] = lambda inputs, player: set()
    params: tuple[str, ...] = ()
    model: str = "Params"
    running: bool = False
    adjustable: bool = True
    sums_lists: bool = False
    pays_gold: bool = False
    reads_places: Callable[[Any], bool] = lambda params: False
    by_points: Callable[[Any], bool] = lambda params: False
    version_note: str = "A list is ranked by the version that scored its last counted game."


LISTS = {
    "points": RankingList(
        points.rank,
        points.explain,
        running=True,
        by_points=lambda params: True,
        version_note="Running points carry over from one version to the next.",
    ),
    "table": RankingList(
        league_table.rank,
        league_table.explain,
        find_left_out=league_table.find_left_out,
        params=("best_of", "tie_break"),
        model="TableParams",
        by_points=lambda params: (params.best_of, params.tie_break) == ("all", "none"),
    ),
    "best-of": RankingList(
        best_of.rank,
        best_of.explain,
        find_left_out=best_of.find_left_out,
        params=("parts", "weights", "tie_breaks", "places_counted", "unranked"),
        model="BestOfParams",
        reads_places=best_of.reads_places,
        by_points=best_of.ranks_by_points,
    ),
    "period": RankingList(
        monthly.rank,
        monthly.explain,
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
        version_note="The list of a year is ranked by the version in force at its end.",
    ),
}
