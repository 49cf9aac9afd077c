"""The ladders that are meant where none is named: those on which a game counts, or that a player is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import shown
from ratings_ledger.ledger.store.log import first_positions
from ratings_ledger.projections.facts.columns import NONE
from ratings_ledger.projections.queries.answers_explained import GameExplanation
from ratings_ledger.projections.queries.answers_surveyed import LadderRow
from ratings_ledger.projections.queries.asking import refuse_unknown
from ratings_ledger.projections.queries.stories import ladders_of_game
from ratings_ledger.projections.queries.survey import Survey, all_ladders
from ratings_ledger.projections.replay.eligibility import why_not_counted
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.versions import Version


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


def ladders_meant(seen: Survey, one: str, is_player: bool) -> tuple[Sequence[LadderRow], Sequence[str]]:
    """Which ladders may be meant with a player, or unless `is_player` a game, and those on which it counts as a game.

    Where there is one ladder in all, or nothing of that name, the first. Raises `BadArgument` for who is on none,
    `Unknown`.
    """
    every = all_ladders(seen).rows
    of_game = None if is_player else ladders_counting(seen, one)
    is_known = of_game is not None or seen.facts.knows(one)
    if len(every) < 2 or not (is_known or is_player):
        return every[:1], ()
    if of_game is None:
        refuse_unknown(seen.facts, one)
    there = ladders_of_player(seen, one) if of_game is None else of_game
    own = longest_first(every, there)
    if not own and not there:
        raise BadArgument(f"{shown(one)} is on no ladder; see: ratings games", "player")
    return own, () if of_game is None else [row.ladder for row in own] or there


def same_on(found: Sequence[GameExplanation], note: Callable[[str], None]) -> str | None:
    """The first of the ladders on which a game is explained, if it did the same on all of them, which is noted."""
    first, *others = found
    if any(replace(one, ladder=first.ladder) != first for one in others):
        return None
    if others:
        note(f"it is the same on {' and '.join(one.ladder for one in others)}")
    return first.ladder
