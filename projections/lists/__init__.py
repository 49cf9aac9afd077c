"""The lists: pure functions from per-game points to ranked rows. A new kind of list is one small file and a line here.

A list is named by the rules whose points it ranks (`Rule.ranking`); its parameters stand among theirs.
"""

from collections.abc import Callable
from typing import NamedTuple

from projections.lists import annual, period, points, table
from projections.lists.contract import ExplainedLine, Results, Standing


class RankingList(NamedTuple):
    """A kind of list.

    rank:    results -> rows in the order of the list
    explain: (results, player) -> how his value comes about, and why he has no rank if he has none
    left_out: (results, index of the player) -> which of his games give nothing to his value
    params:  the parameters that it reads, beside those of every rule, and `model`, which brings them
    """

    rank: Callable[[Results], list[Standing]]
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
