"""What became of games: their events, and on every ladder that they belong to why they gave what they gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.revisions import UNREADABLE
from ratings_ledger.ledger.events.types import corrected_game
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import (
    first_positions,
    games_by_position,
    read_records_at,
    read_where,
    recorded_times,
)
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.queries.coordinates import Coordinates, moment
from ratings_ledger.projections.queries.explain import (
    GameExplanation,
    explain_game,
    row_of_game,
)
from ratings_ledger.projections.queries.ladders_at import Ladders, require_player
from ratings_ledger.projections.queries.last_events import last_event_of_game, last_events_of_games
from ratings_ledger.projections.queries.results import (
    AS_IS,
    HIDDEN,
    Answer,
    LastEvent,
    Result,
)
from ratings_ledger.projections.queries.survey import LadderRow, Survey, all_ladders
from ratings_ledger.projections.replay.eligibility import explain_not_counted
from ratings_ledger.projections.replay.ladders import (
    Stream,
    drop_duplicate_ladders,
    list_partition_values,
    parse_name,
)
from ratings_ledger.projections.rulesets.versions import list_games

CHUNK_GAMES = 1_000  # whose records are read at once
Event = dict[str, Any]

LADDERS_OF_PLAYER = 6  # that are named where one of them has to be


def game_story(seen: Survey, game_id: str) -> GameTimeline:
    """Return a game as it stands, what became of it, and what it did on its ladders. Raises `Unknown`."""
    row = row_of_game(seen.connection, seen.facts, game_id)
    (last,) = _last_events(seen, [row])
    return _story(seen, row, _events(seen, game_id), identities(seen.connection, seen.facts.position), last)


def stories(seen: Survey, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameTimeline]:
    """Yield the stories of some games, one at a time; what they did on all ladders, or on one. Raises `Unknown`."""
    facts, people = seen.facts, identities(seen.connection, seen.facts.position)
    for begin in range(0, len(game_ids), CHUNK_GAMES):
        chunk = game_ids[begin : begin + CHUNK_GAMES]
        firsts = first_positions(seen.connection, chunk)
        records = read_records_at(seen.connection, [*firsts.values()])
        rows = [
            facts.row_of(firsts[game_id])
            if firsts.get(game_id, facts.position + 1) <= facts.position
            else row_of_game(seen.connection, facts, game_id)  # which refuses it
            for game_id in chunk
        ]
        for game_id, row, last in zip(chunk, rows, _last_events(seen, rows), strict=True):
            first = firsts[game_id]
            is_alone = facts.live_position[row] == first
            events = [json.loads(records[first])] if is_alone else _events(seen, game_id)
            yield _story(seen, row, events, people, last, ladder)


def _last_events(seen: Survey, rows: Sequence[int]) -> list[LastEvent]:
    """Return the last events that games depend on, by their rows."""
    lasts = [last_event_of_game(seen.connection, seen.everything, row) for row in rows]
    times = recorded_times(seen.connection, [*dict.fromkeys(lasts)])
    return [LastEvent(last, moment(times[last])) for last in lasts]


def last_positions_of_games(seen: Survey) -> dict[str, int]:
    """Return the positions of the last events that games depend on, by id, in the order of their first records."""
    facts = seen.facts
    ids = games_by_position(seen.connection, facts.position)
    rows = range(len(facts.first_position))
    lasts = last_events_of_games(seen.connection, seen.everything, rows)
    return {ids[first]: last for first, last in zip(facts.first_position, lasts, strict=True)}


def _events(seen: Survey, game_id: str) -> list[Event]:
    """Return the events about a game, as they were written."""
    found = read_where(seen.connection, until=seen.facts.position, subject=f"game:{game_id}")
    return [json.loads(text) for _, text in found]


def _story(
    seen: Survey, row: int, events: Sequence[Event], people: Identities, last: LastEvent, on: str | None = None
) -> GameTimeline:
    facts, told, data = seen.facts, list[TimelineEntry](), dict[str, Any]()
    seen.failures = []  # those of other games
    for event in events:
        if event["type"] == "game.recorded":
            data = event["data"]
        elif event["type"] == "game.corrected" and UNREADABLE not in event:
            data = {"game_id": data["game_id"], **corrected_game(event["data"], 0)[0]}
        told.append(_told(event, _told_now(people, data)))
    game_id = data["game_id"]
    explained = tuple(_explained(seen, game_id, row, on))
    return GameTimeline(
        game_id,
        seen.coordinates,
        moment(facts.occurred_at[row]),
        row in facts.voided,
        people.present(data) if people else data,
        tuple(told),
        explained,
        last=last,
        failed=tuple(seen.failures),
        times=seen.times,
    )


def _told_now(people: Identities, data: dict[str, Any]) -> dict[str, Any]:
    """Return a version of a game with its players' current ids; as it was written if two of them are one person by now.

    That can only be a version that was corrected: in a game as it stands nobody takes part twice.
    """
    now = people.present(data)
    names = {one["player"] for one in now["participants"]}
    return now if len(names) == len(data["participants"]) else data


def _told(event: Event, data: dict[str, Any]) -> TimelineEntry:
    result = None if event["type"] == "game.voided" or UNREADABLE in event else describe_result(data)
    return TimelineEntry(
        event["position"], event["type"], event["recorded_at"], event["by"], event["data"].get("reason"), result
    )


def _explained(seen: Survey, game_id: str, row: int, on: str | None) -> Iterator[GameExplanation]:
    """Yield what a game did on each of its ladders, or on one; what cannot be replayed is noted."""
    for ladder in ladders_of_game(seen.facts, row):
        if on not in (None, ladder) or ladder.partition("/")[0] in seen.facts.unusable:
            continue
        there = seen.ladders(ladder.partition("/")[0])
        with seen.collect_failure():
            there.trace(ladder)  # of which any game can be told
            yield explain_game(there, ladder, game_id, row, seen.times)


def ladders_of_game(facts: Facts, row: int) -> list[str]:
    """Return the ladders that a game belongs to by its labels, whether it counts or not. Lists that sum others have
    none.
    """
    found = []
    for ruleset_id, versions in sorted(facts.rulesets.items()):
        slugs = list_games(versions)
        if facts.label("game", row) in slugs and not versions[0].ranking.sums_lists:
            for values in list_partition_values(facts, row, versions[0].ruleset):
                found.append("/".join([ruleset_id, *values]))
    return found


@dataclass(frozen=True, slots=True)
class TimelineEntry(Result):
    """An event about a game: what became of it, who recorded that when and why, and the result from then on."""

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    result: str | None


@dataclass(frozen=True, slots=True)
class GameTimeline(Answer):
    """A game as it stands, with `data` as it was recorded or last corrected; its events, and on every ladder that it
    belongs to why it changed points; `last` is the last event that it depends on.
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


def ladders_counting(seen: Survey, game_id: str) -> list[str] | None:
    """Return the ladders on which a game counts or, if it counts on none, those it belongs to; None if unknown."""
    facts, firsts = seen.facts, first_positions(seen.connection, [game_id])
    row = facts.row_of(firsts[game_id]) if firsts else NONE
    if row == NONE:
        return None
    own = ladders_of_game(facts, row)
    return [name for name in own if _counts(seen.ladders(parse_name(name).ruleset_id), name, row)] or own


def _counts(ladders: Ladders, ladder: str, row: int) -> bool:
    """Tell whether the ruleset of a ladder counts a game."""
    return explain_not_counted(ladders.facts, row, ladders.facts.rulesets[parse_name(ladder).ruleset_id])[2] is None


def ladders_of_player(seen: Survey, player: str) -> list[str]:
    """Return the ladders that a player is on."""
    found = list[str]()
    for ladders, stream in seen.streams(seen.usable):
        with seen.collect_failure():
            names = stream.names
            if stream.ranking.sums_lists:
                names = [row.player for row in ladders.rank_stream(stream).rows]
            if ladders.facts.current(player) in names:
                found.append(stream.ladder)
    return found


def longest_first(there: Iterable[LadderRow], names: Sequence[str]) -> list[LadderRow]:
    """Return the rows of some ladders, the one with most games first, then in the order in which they are named."""
    place = {name: number for number, name in enumerate(names)}
    return sorted((row for row in there if row.ladder in place), key=lambda row: (-row.games, place[row.ladder]))


def _latest_first(seen: Survey, rows: Iterable[LadderRow], player: str) -> list[LadderRow]:
    """Return the rows of a player's ladders with the player's own games, the latest first."""
    # a ladder of clubs has facts of its own
    streams = {stream.ladder: (ladders.facts, stream) for ladders, stream in seen.streams(seen.usable)}
    own = [_count_own_games(*streams[row.ladder], row, player) for row in rows]
    return sorted(own, key=lambda row: (row.last_game is None, -(row.last_game.timestamp() if row.last_game else 0)))


def _count_own_games(facts: Facts, stream: Stream, row: LadderRow, player: str) -> LadderRow:
    """Return a row with the games of one player; that of a list that sums others stays as it is."""
    if stream.ranking.sums_lists or facts.current(player) not in stream.names:
        return row
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(facts.current(player)))
    if not len(slots):
        return replace(row, games=0, last_game=None)
    last = int(np.searchsorted(arrays.as_numpy(stream.offsets), slots[-1], side="right")) - 1
    return replace(row, games=len(slots), last_game=moment(int(facts.occurred_at[stream.row[last]])))


def ladders_meant(seen: Survey, one: str, is_player: bool) -> tuple[Sequence[LadderRow], Sequence[str]]:
    """Return which ladders may be meant with a player, or unless `is_player` a game, and those on which it counts as a
    game. Those of a player are the latest first, with the games of that player.

    Where there is one ladder in all, or nothing of that name, the first. Raises `BadArgument` for who is on none,
    `Unknown`.
    """
    every = all_ladders(seen).rows
    of_game = None if is_player else ladders_counting(seen, one)
    is_entrant = seen.facts.knows(one) or any(there.facts.knows(one) for there in map(seen.ladders, seen.usable))
    is_known = of_game is not None or is_entrant
    if len(every) < 2 or not (is_known or is_player):
        return every[:1], ()
    if not is_known:
        require_player(seen.facts, one)
    there = ladders_of_player(seen, one) if of_game is None else of_game
    own = drop_duplicate_ladders(longest_first(every, there))
    if of_game is None:
        own = _latest_first(seen, own, one)
    if not own and not there:
        raise BadArgument(f"{quote(one)} is on no ladder; see: ratings games", "player")
    return own, () if of_game is None else [row.ladder for row in own] or there


def same_on(found: Iterable[GameExplanation]) -> str | None:
    """Return the ladder on which a game is explained, if it did the same on all of them."""
    first, *others = found
    is_same = all(replace(explanation, ladder=first.ladder) == first for explanation in others)
    return first.ladder if is_same else None
