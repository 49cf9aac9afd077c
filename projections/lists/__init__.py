"""The lists: pure functions from per-game points to ranked rows. A new kind of list is one small file and a line here.

Rules name the list that ranks their points (`Rule.ranking`); its parameters are among theirs.
"""

from collections.abc import Callable
from typing import NamedTuple

from projections.lists import annual, period, points, table
from projections.lists.contract import ExplainedLine, RankedRow, Results


class RankingList(NamedTuple):
    """A kind of list.

    rank:    results -> rows in the order of the list
    explain: (results, player) -> how their value comes about, and why they have no rank if they have none
    left_out: (results, index of the player) -> which of their games contribute nothing to their value
    params:  the parameters it reads besides those of every rule, and `model`, which provides them
    """

    rank: Callable[[Results], list[RankedRow]]
    explain: Callable[[Results, str], list[ExplainedLine]]
    left_out: Callable[[Results, int], set[int]] = lambda results, player: set()
    params: tuple[str, ...] = ()
    model: str = "Params"


LISTS = {
    "points": RankingList(points.rank, points.explain),
    "table": RankingList(table.rank, table.explain, table.left_out, ("best_of", "tie_break"), "TableParams"),
    "period": RankingList(period.rank, period.explain, params=("score", "gold", "gold_ties"), model="PeriodParams"),
    "annual": RankingList(
        annual.rank,
        annual.explain,
        params=("of", "months", "missing", "cap_at_missing", "account", "any_account"),
        model="the params of annual-places/1",
    ),
}
