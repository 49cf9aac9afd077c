"""Look up games in the facts: one by its id, or many at once, many times faster than reading numbers one by one."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import find_first_positions, read_matching_records
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


def find_game_row(connection: Connection, facts: Facts, game_id: str) -> int:
    """Return the row of a game in the facts.

    Raises `Unknown` (game-unknown), also for a game whose record is invalid.
    """
    recorded = read_matching_records(
        connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded"
    )
    row = facts.row_of(recorded[0][0]) if recorded else NONE
    if row != NONE:
        return row
    if recorded:
        message = f"the record of {quote(game_id)} at position {recorded[0][0]} is invalid, so it does not count"
        raise Unknown("game-unknown", f"{message}; run: ratings verify")
    later = find_first_positions(connection, [game_id])
    hint = "".join(f" up to position {facts.position}; it was recorded at position {first}" for first in later.values())
    raise Unknown("game-unknown", f"no game {quote(game_id)} is recorded{hint}")
