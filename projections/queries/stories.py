"""What became of games: their events, and on every ladder that they belong to why they gave what they gave."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ratings_ledger.ledger.events.revisions import UNREADABLE
from ratings_ledger.ledger.events.types import corrected_game
from ratings_ledger.ledger.store.log import (
    first_positions,
    games_by_position,
    read_records_at,
    read_where,
    recorded_times,
)
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import result_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers import LastEvent
from ratings_ledger.projections.queries.answers_explained import GameExplanation
from ratings_ledger.projections.queries.answers_told import GameStory, Told
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.explanation import explain_game, row_of_game
from ratings_ledger.projections.queries.last_events import last_event_of_game, last_events_of_games
from ratings_ledger.projections.queries.survey import Survey
from ratings_ledger.projections.replay.ladders import partition_values
from ratings_ledger.projections.rulesets.versions import games_of

CHUNK_GAMES = 1_000  # whose records are read at once

Event = dict[str, Any]


def game_story(seen: Survey, game_id: str) -> GameStory:
    """A game as it stands, what became of it, and what it did on its ladders. Raises `Unknown` (game-unknown)."""
    row = row_of_game(seen.connection, seen.facts, game_id)
    (last,) = _last_events(seen, [row])
    return _story(seen, row, _events(seen, game_id), identities(seen.connection, seen.facts.position), last)


def stories(seen: Survey, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameStory]:
    """The stories of some games, one at a time; what they did on all ladders, or on one. Raises `Unknown`."""
    facts, people = seen.facts, identities(seen.connection, seen.facts.position)
    for begin in range(0, len(game_ids), CHUNK_GAMES):
        chunk = game_ids[begin : begin + CHUNK_GAMES]
        firsts = first_positions(seen.connection, chunk)
        records = read_records_at(seen.connection, [*firsts.values()])
        rows = [
            facts.row_of(firsts[game_id]) if firsts.get(game_id, facts.position + 1) <= facts.position
            else row_of_game(seen.connection, facts, game_id)  # which refuses it
            for game_id in chunk
        ]  # fmt: skip
        for game_id, row, last in zip(chunk, rows, _last_events(seen, rows), strict=True):
            first = firsts[game_id]
            is_alone = facts.live_position[row] == first
            events = [json.loads(records[first])] if is_alone else _events(seen, game_id)
            yield _story(seen, row, events, people, last, ladder)


def _last_events(seen: Survey, rows: Sequence[int]) -> list[LastEvent]:
    """The last events that games depend on, by their rows."""
    lasts = [last_event_of_game(seen.connection, seen.everything, row) for row in rows]
    times = recorded_times(seen.connection, [*dict.fromkeys(lasts)])
    return [LastEvent(last, moment(times[last])) for last in lasts]


def last_positions_of_games(seen: Survey) -> dict[str, int]:
    """The positions of the last events that games depend on, by their ids, in the order of their first records."""
    facts = seen.facts
    ids = games_by_position(seen.connection, facts.position)
    rows = range(len(facts.first_position))
    lasts = last_events_of_games(seen.connection, seen.everything, rows)
    return {ids[first]: last for first, last in zip(facts.first_position, lasts, strict=True)}


def _events(seen: Survey, game_id: str) -> list[Event]:
    """The events about a game, as they were written."""
    found = read_where(seen.connection, until=seen.facts.position, subject=f"game:{game_id}")
    return [json.loads(text) for _, text in found]


def _story(
    seen: Survey, row: int, events: Sequence[Event], people: Identities, last: LastEvent, on: str | None = None
) -> GameStory:  # fmt: skip
    facts, told, data = seen.facts, list[Told](), dict[str, Any]()
    seen.failures = []  # those of other games
    for event in events:
        if event["type"] == "game.recorded":
            data = event["data"]
        elif event["type"] == "game.corrected" and UNREADABLE not in event:
            data = {"game_id": data["game_id"], **corrected_game(event["data"], 0)[0]}
        told.append(_told(event, _told_now(people, data)))
    game_id = data["game_id"]
    explained = tuple(_explained(seen, game_id, row, on))
    return GameStory(
        game_id, seen.coordinates, moment(facts.occurred_at[row]), row in facts.voided,
        people.present(data) if people else data, tuple(told), explained, last=last,
        failed=tuple(seen.failures), times=seen.times,
    )  # fmt: skip


def _told_now(people: Identities, data: dict[str, Any]) -> dict[str, Any]:
    """A version of a game with its players' current ids; as it was written if two of them are one person by now.

    That can only be a version that was corrected: in a game as it stands nobody takes part twice.
    """
    now = people.present(data)
    names = {one["player"] for one in now["participants"]}
    return now if len(names) == len(data["participants"]) else data


def _told(event: Event, data: dict[str, Any]) -> Told:
    result = None if event["type"] == "game.voided" or UNREADABLE in event else result_of(data)
    return Told(
        event["position"], event["type"], event["recorded_at"], event["by"], event["data"].get("reason"), result
    )


def _explained(seen: Survey, game_id: str, row: int, on: str | None) -> Iterator[GameExplanation]:
    """What a game did on each of its ladders, or on one; what cannot be replayed is noted."""
    for ladder in ladders_of_game(seen.facts, row):
        if on not in (None, ladder) or ladder.partition("/")[0] in seen.facts.unusable:
            continue
        there = seen.ladders(ladder.partition("/")[0])
        with seen.noting():
            there.trace(ladder)  # of which any game can be told
            yield explain_game(there, ladder, game_id, row, seen.times)


def ladders_of_game(facts: Facts, row: int) -> list[str]:
    """The ladders that a game belongs to by its labels, whether it counts or not. Lists that sum others have none."""
    found = []
    for ruleset_id, versions in sorted(facts.rulesets.items()):
        slugs = games_of(versions)
        if facts.label("game", row) in slugs and not versions[0].ranking.sums_lists:
            for values in partition_values(facts, row, versions[0].ruleset):
                found.append("/".join([ruleset_id, *values]))
    return found
