"""Build game timelines: the events of a game, and the explanation of its effect on each of its ladders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.ledger.store.log import (
    find_first_positions,
    read_games_by_position,
    read_known_events,
    read_matching_records,
    read_recorded_times,
    read_records_at,
)
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections.facts.columns import NONE
from ratings_ledger.projections.facts.lookups import find_game_row
from ratings_ledger.projections.queries.candidate_ladders import list_ladders_of_game
from ratings_ledger.projections.queries.coordinates import Coordinates, to_datetime
from ratings_ledger.projections.queries.game_explanations import GameExplanation, explain_game
from ratings_ledger.projections.queries.last_events import find_last_event_of_game, find_last_events_of_games
from ratings_ledger.projections.queries.results import AS_IS, HIDDEN, Answer, LastEvent, Result
from ratings_ledger.projections.queries.survey import Survey

CHUNK_GAMES = 1_000  # the number of games whose records are read at once
Event = dict[str, Any]


def load_timeline(survey: Survey, game_id: str) -> GameTimeline:
    """Return the timeline of a game. Raises `Unknown`."""
    row = find_game_row(survey.connection, survey.facts, game_id)
    (last,) = _load_last_events(survey, [row])
    identities = read_identities(survey.connection, survey.facts.position)
    return _build_timeline(survey, row, _read_events(survey, game_id), identities, last)


def load_timelines(survey: Survey, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameTimeline]:
    """Yield the timelines of games, one at a time, with explanations for one ladder or all. Raises `Unknown`."""
    facts, identities = survey.facts, read_identities(survey.connection, survey.facts.position)
    for begin in range(0, len(game_ids), CHUNK_GAMES):
        chunk = game_ids[begin : begin + CHUNK_GAMES]
        first_positions = find_first_positions(survey.connection, chunk)
        records = read_records_at(survey.connection, [*first_positions.values()])
        rows = [_find_row(survey, game_id, first_positions.get(game_id)) for game_id in chunk]
        for game_id, row, last in zip(chunk, rows, _load_last_events(survey, rows), strict=True):
            first_position = first_positions[game_id]
            is_unchanged = facts.live_position[row] == first_position
            events = [json.loads(records[first_position])] if is_unchanged else _read_events(survey, game_id)
            yield _build_timeline(survey, row, events, identities, last, ladder)


def _find_row(survey: Survey, game_id: str, first_position: int | None) -> int:
    """Return the row of a game. Raises `Unknown`, also for a game whose first record is invalid."""
    facts = survey.facts
    if first_position is not None and first_position <= facts.position:
        row = facts.row_of(first_position)
        if row != NONE:
            return row
    return find_game_row(survey.connection, facts, game_id)  # raises the error with its reason


def _load_last_events(survey: Survey, rows: Sequence[int]) -> list[LastEvent]:
    """Return the last event that each game depends on, in the order of the rows."""
    positions = [find_last_event_of_game(survey.connection, survey.undated, row) for row in rows]
    times = read_recorded_times(survey.connection, [*dict.fromkeys(positions)])
    return [LastEvent(position, to_datetime(times[position])) for position in positions]


def last_positions_of_games(survey: Survey) -> dict[str, int]:
    """Return the position of the last event that each game depends on, by id, in the order of first records."""
    facts = survey.facts
    game_ids = read_games_by_position(survey.connection, facts.position)
    rows = range(len(facts.first_position))
    positions = find_last_events_of_games(survey.connection, survey.undated, rows)
    return {game_ids[first]: last for first, last in zip(facts.first_position, positions, strict=True)}


def _read_events(survey: Survey, game_id: str) -> list[Event]:
    """Return the valid events about a game, as recorded."""
    rows = read_matching_records(survey.connection, until=survey.facts.position, subject=f"game:{game_id}")
    records = dict(rows)
    return [json.loads(records[event.position or 0]) for event in read_known_events(rows)]


def _build_timeline(
    survey: Survey,
    row: int,
    events: Sequence[Event],
    identities: Identities,
    last: LastEvent,
    only_ladder: str | None = None,
) -> GameTimeline:
    """Build the timeline of a game, given its row in the facts and all valid events about it, in order."""
    facts, entries, data = survey.facts, list[TimelineEntry](), dict[str, Any]()
    survey.failures = []  # drop the failures of the previous game
    for event in events:
        if event["type"] == "game.recorded":
            data = event["data"]
        elif event["type"] == "game.corrected":
            data = {"game_id": data["game_id"], **read_corrected_game(event["data"], 0)[0]}
        entries.append(_build_entry(event, _use_current_ids(identities, data)))
    game_id = data["game_id"]
    explanations = tuple(_explain_on_ladders(survey, game_id, row, only_ladder))
    return GameTimeline(
        game_id=game_id,
        at=survey.coordinates,
        occurred_at=to_datetime(facts.occurred_at[row]),
        voided=row in facts.voided,
        data=_use_current_ids(identities, data),
        story=tuple(entries),
        ladders=explanations,
        last=last,
        failed=tuple(survey.failures),
        times=survey.times,
    )


def _use_current_ids(identities: Identities, data: dict[str, Any]) -> dict[str, Any]:
    """Return a revision of a game with its players' current ids, unless two of the players have become one person.

    Two players can become one person only in a superseded revision or a voided game, because no player takes part in a
    live game twice.
    """
    current_data = identities.use_current_ids(data)
    players = {participant["player"] for participant in current_data["participants"]}
    return current_data if len(players) == len(data["participants"]) else data


def _build_entry(event: Event, data: dict[str, Any]) -> TimelineEntry:
    """Build the entry for an event, given the game's data after it."""
    result = None if event["type"] == "game.voided" else describe_result(data)
    return TimelineEntry(
        position=event["position"],
        type=event["type"],
        recorded_at=event["recorded_at"],
        by=event["by"],
        reason=event["data"].get("reason"),
        result=result,
    )


def _explain_on_ladders(survey: Survey, game_id: str, row: int, only_ladder: str | None) -> Iterator[GameExplanation]:
    """Explain a game on each of its ladders, or on only one. The survey records each failed replay."""
    for ladder in list_ladders_of_game(survey.facts, row):
        if only_ladder not in (None, ladder) or ladder.partition("/")[0] in survey.facts.unusable:
            continue
        ladders = survey.ladders(ladder)
        with survey.collect_failure():
            ladders.trace(ladder)  # keep the whole trace, from which any game can be explained
            yield explain_game(ladders, ladder, game_id, row, survey.times)


@dataclass(frozen=True, slots=True)
class TimelineEntry(Result):
    """An event about a game: its author, time and reason, and the game's result once the event applies."""

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    result: str | None


@dataclass(frozen=True, slots=True)
class GameTimeline(Answer):
    """A game's current state, its events (`story`), and the explanation of its effect on each of its `ladders`.

    `data` is the game as recorded or last corrected, with its players' current ids unless two of them have become one
    person. `last` is the last event that the answer depends on. `failed` has the reason for each ladder that cannot be
    replayed.
    """

    game_id: str
    at: Coordinates
    occurred_at: datetime
    voided: bool
    data: dict[str, Any] = field(metadata=AS_IS)
    story: tuple[TimelineEntry, ...]
    ladders: tuple[GameExplanation, ...]
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
