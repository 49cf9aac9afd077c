"""Look up games in the facts in bulk, which is many times faster than reading their numbers one by one."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.columns import NONE, Facts


class GameRecord(NamedTuple):
    """A game in the facts.

    first_position, live_position: the positions of the game's first and current record
    persons:  by participant, the number of the player's current id
    places:   by participant, the place
    replaced: by participant, whether a substitute took the seat over
    sides:    by participant, the number of the team; a participant without a team has a negative number of their own
    """

    first_position: int
    live_position: int
    occurred_at: int
    persons: list[int]
    places: list[int]
    replaced: list[int]
    sides: list[int]


def look_up_games(facts: Facts, rows: Iterable[int]) -> Iterator[GameRecord]:
    """Yield the games in some rows, in the order of the rows."""
    indices, take = array("q", rows), arrays.take
    start, count = take(facts.start, indices), take(facts.count, indices)
    slots, ends = arrays.span_indices(start, count), [0]
    for size in count:
        ends.append(ends[-1] + size)
    persons = take(facts.person, take(facts.player, slots)).tolist()
    places, replaced = take(facts.place, slots).tolist(), take(facts.replaced, slots).tolist()
    teams = facts.optional.get("team", ())  # this column may end early, after the last participant with a team
    in_team = ((slot, teams[slot] if slot < len(teams) else NONE) for slot in slots)
    sides = [-1 - slot if team == NONE else team for slot, team in in_team]
    columns = (take(column, indices) for column in (facts.first_position, facts.live_position, facts.occurred_at))
    for first, live, occurred_at, (low, high) in zip(*columns, pairwise(ends), strict=True):
        own = slice(low, high)
        yield GameRecord(first, live, occurred_at, persons[own], places[own], replaced[own], sides[own])
