"""Build game timelines: the events of a game, and the explanation of its effect on each of its ladders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.ledger.rejections import quote
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
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.queries.coordinates import Coordinates, to_datetime
from ratings_ledger.projections.queries.explain import GameExplanation, explain_game, find_game_row
from ratings_ledger.projections.queries.ladders_at import Ladders, require_player
from ratings_ledger.projections.queries.last_events import find_last_event_of_game, find_last_events_of_games
from ratings_ledger.projections.queries.results import AS_IS, HIDDEN, Answer, LastEvent, Result
from ratings_ledger.projections.queries.survey import LadderRow, Survey, load_all_ladders
from ratings_ledger.projections.replay.eligibility import decide_eligibility
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, parse_name
from ratings_ledger.projections.replay.streams import Stream, name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import list_games

CHUNK_GAMES = 1_000  # the number of games whose records are read at once
Event = dict[str, Any]

# an error that asks the user to name one of a player's ladders lists at most this many
PLAYER_LADDERS_LISTED = 6


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
        data=identities.use_current_ids(data),
        story=tuple(entries),
        ladders=explanations,
        last=last,
        failed=tuple(survey.failures),
        times=survey.times,
    )


def _use_current_ids(identities: Identities, data: dict[str, Any]) -> dict[str, Any]:
    """Return a revision of a game with its players' current ids, unless two of the players have become one person.

    Two players can become one person only in a superseded revision, because no player takes part in a live game twice.
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
        ladders = survey.ladders(ladder.partition("/")[0])
        with survey.collect_failure():
            ladders.trace(ladder)  # keep the whole trace, from which any game can be explained
            yield explain_game(ladders, ladder, game_id, row, survey.times)


def list_ladders_of_game(facts: Facts, row: int) -> list[str]:
    """Return the ladders that a game belongs to by its labels, whether it counts there or not.

    Annual lists are left out, because they have no games of their own.
    """
    ladders = list[str]()
    for _, versions in sorted(facts.rulesets.items()):
        scored_games = list_games(versions)
        if facts.label("game", row) in scored_games and not versions[0].ranking.sums_lists:
            ladders += name_ladders_of_game(facts, row, versions[0].ruleset)
    return ladders


@dataclass(frozen=True, slots=True)
class TimelineEntry(Result):
    """An event about a game: its author, time and reason, and the result of the game after it."""

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    result: str | None


@dataclass(frozen=True, slots=True)
class GameTimeline(Answer):
    """A game's current state, its events (`story`), and the explanation of its effect on each of its `ladders`.

    `data` is the game as recorded or last corrected. `last` is the last event that the answer depends on.
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


def list_counting_ladders(survey: Survey, game_id: str) -> list[str] | None:
    """Return the ladders on which a game counts or, without any, those that it belongs to; None for an unknown game.

    A game counts if the ladder's ruleset counts it.
    """
    facts, first_positions = survey.facts, find_first_positions(survey.connection, [game_id])
    row = facts.row_of(first_positions[game_id]) if first_positions else NONE
    if row == NONE:
        return None
    names = list_ladders_of_game(facts, row)
    return [name for name in names if _is_counted(survey.ladders(parse_name(name).ruleset_id), name, row)] or names


def _is_counted(ladders: Ladders, ladder: str, row: int) -> bool:
    """Tell whether the ruleset of a ladder counts a game."""
    return decide_eligibility(ladders.facts, row, ladders.facts.rulesets[parse_name(ladder).ruleset_id]).reason is None


def list_ladders_of_player(survey: Survey, player: str) -> list[str]:
    """Return the ladders that a player is on."""
    ladder_names = list[str]()
    for ladders, stream in survey.streams(survey.usable):
        with survey.collect_failure():
            names = stream.names
            if stream.ranking.sums_lists:
                names = [row.player for row in ladders.rank_stream(stream).rows]
            if ladders.facts.current(player) in names:
                ladder_names.append(stream.ladder)
    return ladder_names


def sort_by_games(rows: Iterable[LadderRow], names: Sequence[str]) -> list[LadderRow]:
    """Return the rows of the named ladders, those with the most games first, and ties in the order of `names`."""
    indexes = {name: index for index, name in enumerate(names)}
    return sorted((row for row in rows if row.ladder in indexes), key=lambda row: (-row.games, indexes[row.ladder]))


def _sort_by_last_game(survey: Survey, rows: Iterable[LadderRow], player: str) -> list[LadderRow]:
    """Return the rows of a player's ladders with the player's own games, the ladder of the latest game first."""
    # a ladder of clubs has separate facts
    streams = {stream.ladder: (ladders.facts, stream) for ladders, stream in survey.streams(survey.usable)}
    own_rows = [_count_own_games(*streams[row.ladder], row, player) for row in rows]
    return sorted(
        own_rows, key=lambda row: (row.last_game is None, -(row.last_game.timestamp() if row.last_game else 0))
    )


def _count_own_games(facts: Facts, stream: Stream, row: LadderRow, player: str) -> LadderRow:
    """Return a row that counts only the games of one player; return the row of an annual list unchanged."""
    if stream.ranking.sums_lists or facts.current(player) not in stream.names:
        return row
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(facts.current(player)))
    if not len(slots):
        return replace(row, games=0, last_game=None)
    last_game = int(np.searchsorted(arrays.as_numpy(stream.offsets), slots[-1], side="right")) - 1
    return replace(row, games=len(slots), last_game=to_datetime(int(facts.occurred_at[stream.rows[last_game]])))


def list_candidate_ladders(survey: Survey, name: str, is_player: bool) -> tuple[Sequence[LadderRow], Sequence[str]]:
    """Return the candidate ladders for a query about a player or, if a game has this id, about the game.

    With only one ladder in the ledger, or for a name that is neither a player nor a game, the first ladder is the only
    candidate.

    Args:
        survey: the survey of all ladders.
        name: the player or the game.
        is_player: if False, the name may also be the id of a game.

    Returns:
        The rows of the candidates: of a game, sorted by their number of games, most first; of a player, the ladder of
        the latest game first. Then the names of the ladders on which the game counts, or without any, of those that it
        belongs to; empty for a player.

    Raises:
        BadArgument: the player or game is not on any ladder.
        Unknown: (player-unknown) with `is_player`, the player is unknown.
    """
    rows = load_all_ladders(survey).rows
    ladders_of_game = None if is_player else list_counting_ladders(survey, name)
    is_player_or_club = survey.facts.knows(name) or any(
        ladders.facts.knows(name) for ladders in map(survey.ladders, survey.usable)
    )
    is_known = ladders_of_game is not None or is_player_or_club
    if len(rows) < 2 or not (is_known or is_player):
        return rows[:1], ()
    if not is_known:
        require_player(survey.facts, name)
    ladder_names = list_ladders_of_player(survey, name) if ladders_of_game is None else ladders_of_game
    candidates = drop_duplicate_ladders(sort_by_games(rows, ladder_names))
    if ladders_of_game is None:
        candidates = _sort_by_last_game(survey, candidates, name)
    if not candidates and not ladder_names:
        raise BadArgument(f"{quote(name)} is not on any ladder; see: ratings games", "player")
    return candidates, () if ladders_of_game is None else [row.ladder for row in candidates] or ladder_names


def pick_common_ladder(explanations: Iterable[GameExplanation]) -> str | None:
    """Return the first ladder if a game has the same explanation on all ladders, else None."""
    first, *others = explanations
    is_same = all(replace(explanation, ladder=first.ladder) == first for explanation in others)
    return first.ladder if is_same else None
