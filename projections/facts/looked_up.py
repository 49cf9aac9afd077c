"""Some games of the facts, looked up all at once, which is many times as fast as one number after another."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.columns import Facts


class LookedUp(NamedTuple):
    """A game: the positions of its first record and of that which stands, when it was played; and of every seat who is
    there, by the number of their current id, their place, and whether somebody took it over.
    """

    first_position: int
    live_position: int
    occurred_at: int
    persons: list[int]
    places: list[int]
    replaced: list[int]


def games_at(facts: Facts, rows: Iterable[int]) -> Iterator[LookedUp]:
    """Yield the games of some rows, in their order."""
    some, taken = array("q", rows), arrays.taken
    start, count = taken(facts.start, some), taken(facts.count, some)
    slots, ends = arrays.span_indices(start, count), [0]
    for size in count:
        ends.append(ends[-1] + size)
    persons = taken(facts.person, taken(facts.player, slots)).tolist()
    places, replaced = taken(facts.place, slots).tolist(), taken(facts.replaced, slots).tolist()
    columns = (taken(column, some) for column in (facts.first_position, facts.live_position, facts.occurred_at))
    for first, live, occurred_at, (low, high) in zip(*columns, pairwise(ends), strict=True):
        yield LookedUp(first, live, occurred_at, persons[low:high], places[low:high], replaced[low:high])
