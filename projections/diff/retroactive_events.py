"""Find retroactive events, which may have changed the points of players who did not play."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.types import DECISIONS
from ratings_ledger.ledger.store.log import read_events_of_type, read_matching_records, read_newest
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo
from ratings_ledger.projections.rulesets.versions import list_games

_POSITIONS: Memo[str, frozenset[int]] = Memo()


def find_retroactive_positions(connection: Connection, ladders: Ladders) -> frozenset[int]:
    """Return the positions of all decisions, and of the games recorded too late for a published list."""
    return _POSITIONS.get(ladders, "", lambda: _search_positions(connection, ladders.facts))


def _search_positions(connection: Connection, facts: Facts) -> frozenset[int]:
    decisions, _ = read_newest(connection, facts.position, types=DECISIONS)
    return frozenset(position for position, _ in decisions) | frozenset(_find_late_games(connection, facts))


def _find_late_games(connection: Connection, facts: Facts) -> list[int]:
    """Return the first positions of late games: played by the time of a published list, but recorded after the list."""
    list_events = read_events_of_type(
        "list.published", read_matching_records(connection, until=facts.position, type_name="list.published")
    )
    lists_by_game = defaultdict[int | None, list[tuple[int, int]]](list)
    for published in list_events:
        versions = facts.versions_of(published.data["ladder"])
        for slug in list_games(versions):
            instant = parse_instant(published.data["as_of"]) if "as_of" in published.data else published.occurred_at
            lists_by_game[facts.text_numbers.get(slug)].append((published.position or 0, instant))
    late_games = []
    for game, game_lists in lists_by_game.items():
        positions = [position for position, _ in game_lists]
        latest_so_far = [*accumulate((instant for _, instant in game_lists), max)]
        for row in range(bisect_left(facts.first_position, positions[0]), len(facts.first_position)):
            if facts.cell_of(row).game == game:
                list_count = bisect_left(positions, facts.first_position[row])
                if list_count and facts.occurred_at[row] <= latest_so_far[list_count - 1]:
                    late_games.append(facts.first_position[row])
    return late_games
