"""How two standings are set beside each other, against counts that look at every pair."""

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
from ratings_ledger.projections.queries.ladders_at import Ranking

Ranks = dict[str, int | None]
NAMES = [f"p{number}" for number in range(16)]
RANKS = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), st.integers(1, 14)), max_size=len(NAMES))


def had(ranks: Ranks) -> dict[str, RankedPoints]:
    """Standings with these ranks; the points follow from them."""
    return {player: RankedPoints(1000 - (rank or 900), 1, rank, None) for player, rank in ranks.items()}


def ranking(ranks: Ranks) -> Ranking:
    """The same as a ladder."""
    rows = [RankedRow(row.rank, name, row.numerator, 1, row.rank is not None) for name, row in had(ranks).items()]
    return Ranking("x", "x@1", 1, rows, 1, 0, 0, 0, 0, 0)


@given(RANKS, RANKS)
@example({"a": 1, "b": 2}, {"a": 2, "b": 1})
@example({"a": 1, "b": 1}, {"a": 2, "b": 1})
def test_swapped_pairs_are_counted_once(old: Ranks, new: Ranks) -> None:
    """Each pair of players whose order is reversed counts once as swapped."""
    both = [(was, now) for name, was in old.items() if was is not None and (now := new.get(name)) is not None]
    count = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(both, 2))
    event(f"swapped: {min(count, 3)}")

    assert count_swapped(had(old), had(new)) == count_swapped(had(new), had(old)) == count


@given(RANKS, RANKS)
def test_radius_matches_naive_count(old: Ranks, new: Ranks) -> None:
    """The radius of a comparison counts what a look at every player counts."""
    facts, was, now = Facts(1, b""), had(old), had(new)
    effects, found = compare_states(Effect, "x", RankedState(facts, ranking(old)), RankedState(facts, ranking(new)))

    names = old.keys() | new.keys()
    assert {effect.player for effect in effects} == {name for name in names if was.get(name) != now.get(name)}
    assert found.ranks == sum(old.get(name) != new.get(name) for name in names)
    moved = {name: now[name].points - was[name].points for name in old.keys() & new.keys()}
    largest, smallest = max(moved.values(), default=0), min(moved.values(), default=0)
    assert (found.up.change if found.up else 0, found.down.change if found.down else 0) == (
        max(largest, 0), min(smallest, 0),
    )  # fmt: skip
    top = [{name for name, rank in ranks.items() if rank is not None and rank <= TOP_RANKS} for ranks in (old, new)]
    assert (found.entering, found.leaving) == (tuple(sorted(top[1] - top[0])), tuple(sorted(top[0] - top[1])))
