"""The ladders that are meant where none is named: those on which a game counts, or that a player is on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.store.log import first_positions
from projections.facts.columns import NONE
from projections.queries.answers_surveyed import LadderRow
from projections.queries.stories import ladders_of_game
from projections.queries.survey import Survey
from projections.replay.eligibility import why_not_counted
from projections.replay.ladders import parse_name
from projections.rulesets.versions import Version


def ladders_counting(seen: Survey, game_id: str) -> list[str] | None:
    """The ladders on which a game counts or, if it counts on none, those it belongs to; None if it is not known."""
    facts, firsts = seen.facts, first_positions(seen.connection, [game_id])
    row = facts.row_of(firsts[game_id]) if firsts else NONE
    if row == NONE:
        return None
    own = ladders_of_game(facts, row)
    counting = [name for name in own if why_not_counted(facts, row, _versions(seen, name))[2] is None]
    return counting or own


def _versions(seen: Survey, ladder: str) -> list[Version]:
    return seen.facts.rulesets[parse_name(ladder).ruleset_id]


def ladders_of_player(seen: Survey, player: str) -> list[str]:
    """The ladders that a player is on."""
    name, found = seen.facts.current(player), list[str]()
    for ladders, stream in seen.streams(seen.usable):
        with seen.noting():
            names = stream.names
            if stream.ranking.sums_lists:
                names = [row.player for row in ladders.of_stream(stream).rows]
            if name in names:
                found.append(stream.ladder)
    return found


def longest_first(there: Iterable[LadderRow], names: Sequence[str]) -> list[LadderRow]:
    """The rows of some ladders, the one with most games first, then in the order in which they are named."""
    place = {name: number for number, name in enumerate(names)}
    return sorted((row for row in there if row.ladder in place), key=lambda row: (-row.games, place[row.ladder]))
