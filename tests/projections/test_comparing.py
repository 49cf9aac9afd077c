"""Comparisons of two standings, against counts over all pairs."""

from itertools import combinations

from hypothesis import event, example, given
from hypothesis import strategies as st

from ratings_ledger import Effect
from ratings_ledger.projections.diff.comparison import (
    TOP_RANKS,
    RankedPoints,
    RankedState,
    compare_states,
    count_swapped,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.rankings import Ranking

Ranks = dict[str, int | None]
NAMES = [f"p{number}" for number in range(16)]
RANKS = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), st.integers(1, 14)), max_size=len(NAMES))


def build_points(ranks: Ranks) -> dict[str, RankedPoints]:
    """Return points that follow from these ranks."""
    return {player: RankedPoints(1000 - (rank or 900), 1, rank, None) for player, rank in ranks.items()}


def build_ranking(ranks: Ranks) -> Ranking:
    """Return the ranking of a ladder with these ranks."""
    rows = [
        RankedRow(row.rank, name, row.numerator, 1, row.rank is not None) for name, row in build_points(ranks).items()
    ]
    return Ranking("x", "x@1", 1, rows, 1, 0, 0, 0, 0, 0)


@given(RANKS, RANKS)
@example({"a": 1, "b": 2}, {"a": 2, "b": 1})
@example({"a": 1, "b": 1}, {"a": 2, "b": 1})
def test_swapped_pairs_are_counted_once(old: Ranks, new: Ranks) -> None:
    """Each pair of players in reversed order counts once as swapped."""
    ranks_of_common = [
        (old_rank, new_rank)
        for name, old_rank in old.items()
        if old_rank is not None and (new_rank := new.get(name)) is not None
    ]
    count = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ranks_of_common, 2))
    event(f"swapped: {min(count, 3)}")

    assert (
        count_swapped(build_points(old), build_points(new))
        == count_swapped(build_points(new), build_points(old))
        == count
    )


@given(RANKS, RANKS)
def test_summary_of_a_comparison_matches_naive_count(old: Ranks, new: Ranks) -> None:
    """The effects and the summary of a comparison equal those of a look at every player."""
    facts, old_points, new_points = Facts(1, b""), build_points(old), build_points(new)
    effects, summary = compare_states(
        Effect, "x", RankedState(facts, build_ranking(old)), RankedState(facts, build_ranking(new))
    )

    names = old.keys() | new.keys()
    assert {effect.player for effect in effects} == {
        name for name in names if old_points.get(name) != new_points.get(name)
    }
    assert summary.ranks == sum(old.get(name) != new.get(name) for name in names)
    moved = {name: new_points[name].points - old_points[name].points for name in old.keys() & new.keys()}
    largest, smallest = max(moved.values(), default=0), min(moved.values(), default=0)
    assert (summary.up.change if summary.up else 0, summary.down.change if summary.down else 0) == (
        max(largest, 0), min(smallest, 0),
    )  # fmt: skip
    top = [{name for name, rank in ranks.items() if rank is not None and rank <= TOP_RANKS} for ranks in (old, new)]
    assert (summary.entering, summary.leaving) == (tuple(sorted(top[1] - top[0])), tuple(sorted(top[0] - top[1])))
