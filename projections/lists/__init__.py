"""The lists: pure functions from per-game points to ranked rows. A new kind of list is one small file and a line here.

A list is named by the rules whose points it ranks (`Rule.ranking`); its parameters stand among theirs.
"""

from collections.abc import Callable
from typing import NamedTuple

from projections.lists import annual, period, points, table
from projections.lists.contract import Results, Standing


class RankingList(NamedTuple):
    """A kind of list.

    rank:    results -> rows in the order of the list
    explain: (results, player) -> how his value comes about, as (what, amount, detail) with exact amounts
    """

    rank: Callable[[Results], list[Standing]]
    explain: Callable[[Results, str], list[tuple[str, str, str]]]


LISTS = {
    "points": RankingList(points.rank, points.explain),
    "table": RankingList(table.rank, table.explain),
    "period": RankingList(period.rank, period.explain),
    "annual": RankingList(annual.rank, annual.explain),
}
