"""Read the contents of the log: games in their current state, and events as recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import dump_text
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, UNREADABLE, KnownEvent, apply_revisions, successors
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    Log,
    find_withdrawn_ids,
    head,
    read_events_naming,
    read_events_of_type,
    read_known_event,
    read_matching_records,
    read_newest,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.batches import Batch
from ratings_ledger.ledger.validation.identities import list_players, read_identities
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, INLINE, Absent, Answer, Result, RowSequence

# the end of each canonical record of a new game, whose members are sorted by name
GAME_RECORD_END = '"type":"game.recorded"}'
# while the last games are selected, earlier games are dropped once there are more than twice the limit plus this number
SPARE_GAMES = 10_000


def is_match(
    recorded: RecordedGame,
    *,
    first: datetime | None,
    last: datetime | None,
    game_id: str | None,
    game: str | None,
    ids: Collection[str] | None,
) -> bool:
    """Tell whether a game passes all filters that are not None.

    Args:
        recorded: the game.
        first: the earliest time of play.
        last: the latest time of play.
        game_id: the id of the game.
        game: the name of the game, such as catan.
        ids: all ids of a participant.
    """
    return (
        (first or recorded.occurred_at) <= recorded.occurred_at <= (last or recorded.occurred_at)
        and game_id in (None, recorded.data["game_id"])
        and game in (None, recorded.data["game"])
        and (ids is None or any(participant["player"] in ids for participant in recorded.data["participants"]))
    )


def load_current_games(
    connection: Connection, until: int, matches: Callable[[RecordedGame], bool], by: str | None, limit: int
) -> tuple[list[RecordedGame], int, dict[int, str]]:
    """Return the `limit` (0: all) matching games that were played last, in their current state and the order of play.

    Args:
        connection: the connection to the store.
        until: the last known position.
        matches: the filter.
        by: the author of the games' first records; None for any author.
        limit: the maximum number of games.

    Returns:
        The games, the total number of matching games, and the reason for each invalid record, by position.
    """
    record_start = "" if by is None else f'{{"by":{dump_text(by)},'
    games, total, invalid = list[RecordedGame](), 0, dict[int, str]()
    for page in read_game_pages(connection, until, invalid, record_start):
        matching = [game for game in page if matches(game)]
        games += matching
        total += len(matching)
        if limit and len(games) > 2 * limit + SPARE_GAMES:
            games = sorted(games, key=_build_replay_key)[-limit:]
    games.sort(key=_build_replay_key)
    return games[-limit:], total, invalid


def read_game_pages(
    connection: Connection, until: int, invalid: dict[int, str], record_start: str = "", after: int = 0
) -> Iterator[list[RecordedGame]]:
    """Yield the games in their current state, in the order of their first records, in pages of the log.

    Args:
        connection: the connection to the store.
        until: the last known position.
        invalid: a dictionary to which the reason for each invalid record is added, by position.
        record_start: the text with which a game's first record starts.
        after: the position after which the games were first recorded.
    """
    changed = _load_changed_games(connection, until)
    for page in read_records(connection, after, until):
        games = []
        for position, record in page:
            if not record.endswith(GAME_RECORD_END) or not record.startswith(record_start):
                continue
            try:
                event = read_known_event(position, record)
            except Refused as problem:
                invalid[position] = problem.message
                continue
            game = changed.get(event.data["game_id"])
            games.append(game or RecordedGame(position, to_datetime(event.occurred_at), event.data))
        yield games


def read_live_games(connection: Connection, until: int, last: int | None, after: int) -> Iterator[RecordedGame]:
    """Yield the games that are not voided, with their players' current ids, in the order of their first records.

    Games in which two participants have become one person are left out, because they count on no ladder, and another
    ledger would refuse them.

    Args:
        connection: the connection to the store.
        until: the last known position.
        last: the instant up to which the games were played; None for all.
        after: the position after which the games were first recorded.
    """
    identities = read_identities(connection, until)
    for game in chain.from_iterable(read_game_pages(connection, until, {}, after=after)):
        data = identities.use_current_ids(game.data)
        is_valid = len({participant["player"] for participant in data["participants"]}) == len(data["participants"])
        if game.voided is ABSENT and is_valid and (last is None or game.occurred_at <= to_datetime(last)):
            yield replace(game, data=data)


def _build_replay_key(game: RecordedGame) -> tuple[datetime, int]:
    """Return the key by which games are sorted for a replay."""
    return game.occurred_at, game.position


def _load_changed_games(connection: Connection, until: int) -> dict[str, RecordedGame]:
    """Return the corrected, voided and reinstated games in their current state, by game id."""
    games: dict[str, RecordedGame] = {}
    for type_name in sorted(GAME_EVENTS - {"game.recorded"}):
        for event in read_events_of_type(
            type_name, read_matching_records(connection, until=until, type_name=type_name)
        ):
            game_id = event.data["game_id"]
            history = [] if game_id in games else Log(connection, until).about(f"game:{game_id}")
            if (game := apply_revisions(history)) is not None:
                voided = True if game.voided else ABSENT
                games[game_id] = RecordedGame(
                    history[0].position or 0, to_datetime(game.occurred_at), game.data, voided
                )
    return games


class EventSelection(NamedTuple):
    """A selection of the newest events that pass every filter.

    subject: the game, event or player, by id, that the events are about
    after:   the position after which the events are
    by:      the author
    types:   the types of the events, empty for all
    batches: the batches that the events belong to
    limit:   the maximum number of events, 0 for all
    """

    subject: str | None = None
    after: int = 0
    by: str | None = None
    types: Collection[str] = ()
    batches: Sequence[Batch] | None = None
    limit: int = 0


def load_events(connection: Connection, until: int, selection: EventSelection) -> tuple[tuple[RecordedEvent, ...], int]:
    """Return the selected events up to a position, and the number of older events that match."""
    subject, after, by, types, batches, limit = selection
    if subject is None and batches is None:
        rows, older = read_newest(connection, until, after=after, by=by, types=types, limit=limit)
        events = [_parse_record(position, record) for position, record in rows]
    else:
        if subject is not None:
            records = _read_about(connection, until, subject)
        else:
            records = _read_batches(connection, batches or ())
        events = [
            _parse_record(position, record)
            for position, record in sorted(records.items())
            if position > after and (batches is None or any(batch.has_position(position) for batch in batches))
        ]
        events = [event for event in events if by in (None, event.get("by")) and (not types or event["type"] in types)]
        older = max(0, len(events) - limit) if limit else 0
        events = events[older:]
    return _build_events(connection, until, events), older


def read_forward(connection: Connection, after: int, limit: int, types: Collection[str]) -> RecordedEvents:
    """Return the first `limit` events (0: all) after a position, of these types or, without types, of any.

    Raises `BadArgument` for an unknown type.
    """
    refuse_unknown_types(types)
    until = head(connection).position
    events = (_parse_record(*row) for page in read_records(connection, after, until) for row in page)
    matching = (event for event in events if not types or event["type"] in types)
    return RecordedEvents(_build_events(connection, until, islice(matching, limit or None)))


def refuse_unknown_types(types: Iterable[str]) -> None:
    """Raise `BadArgument` for an unknown event type."""
    for name in types:
        if name not in TYPES:
            hint = did_you_mean(name, TYPES) or f"; the types are {', '.join(sorted(TYPES))}"
            raise BadArgument(f"{quote(name)} is not a type of event{hint}", "types")


def _build_events(connection: Connection, until: int, events: Iterable[dict[str, Any]]) -> tuple[RecordedEvent, ...]:
    """Return events with the events that they withdraw, and whether they are withdrawn themselves."""
    events = list(events)
    if not events:
        return ()
    withdrawn_ids, log = find_withdrawn_ids(connection, until), Log(connection)
    rows = []
    for event in events:
        is_void = event["type"] == "event.voided" and UNREADABLE not in event
        target = log.event(event["data"]["id"]) if is_void else None
        rows.append(RecordedEvent(event, withdrawn=event["id"] in withdrawn_ids, target=target))
    return tuple(rows)


def _read_about(connection: Connection, until: int, subject: str) -> dict[int, str]:
    """Return the records about a game, an event or a player, by position."""
    records = dict(
        [
            *read_matching_records(connection, until=until, subject=f"game:{subject}"),
            *read_matching_records(connection, until=until, subject=f"event:{subject}"),
        ]
    )
    ids = read_identities(connection, until).ids(subject)
    return records | read_records_at(connection, list(_find_player_positions(Log(connection, until), ids)))


def _read_batches(connection: Connection, batches: Iterable[Batch]) -> dict[int, str]:
    """Return the records of batches and of the events that record the batches, by position."""
    records = read_records_at(connection, [batch.position for batch in batches])
    for first, last in (position_range for batch in batches for position_range in batch.ranges):
        for page in read_records(connection, first - 1, last):
            records.update(page)
    return records


def _find_player_positions(log: Log, ids: set[str]) -> Iterator[int]:
    """Yield the positions of the events about a player, and of the events that withdraw these events."""
    for event in read_events_naming(log.connection, sorted(ids), log.until):
        if ids & list_players(event):
            yield event.position or 0
            if event.type not in GAME_EVENTS:
                yield from (later.position or 0 for later in successors(log, event))


def _parse_record(position: int, record: str) -> dict[str, Any]:
    """Return the event in a record; for an invalid record, only the position, id, type, text and error."""
    try:
        read_known_event(position, record)
        event: dict[str, Any] = json.loads(record)
        return event
    except Refused as problem:
        members = dict(re.findall(r'"(id|type)":"([^"\\]{1,64})"', record))
        return {"position": position, "type": "?", "id": "?", **members, UNREADABLE: problem.message, "record": record}


# the members that become the first columns of every table of games and of events
GAME_COLUMNS = INLINE | {"columns": {"game_id": str, "game": str}}
EVENT_COLUMNS = INLINE | {
    "columns": {
        "position": int,
        "type": str,
        "occurred_at": datetime,
        "recorded_at": datetime,
        "by": str,
        "id": str,
    }
}


@dataclass(frozen=True, slots=True)
class RecordedGame(Result):
    """A game in its current state: the position of its first record, its time and data, and whether it is voided."""

    position: int
    occurred_at: datetime
    data: dict[str, Any] = field(metadata=GAME_COLUMNS)
    voided: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RecordedGames(Answer, RowSequence[RecordedGame]):
    """Games by the time when they were played; `older` counts further matching games.

    `game_id` is the only requested game, if any; `narrowed` is True if any filter or coordinate was given; `hint` is a
    did-you-mean hint for an empty answer; `left_out` has the reason for each invalid record, by position.
    """

    rows: tuple[RecordedGame, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    game_id: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    narrowed: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvent(Result):
    """An event as recorded. `withdrawn` is True if the event is withdrawn.

    An invalid event has only its position, id and type, its text (`record`) and the error (`unreadable`). `target` is
    the event that an `event.voided` withdraws.
    """

    event: dict[str, Any] = field(metadata=EVENT_COLUMNS)
    withdrawn: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    target: KnownEvent | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvents(Answer, RowSequence[RecordedEvent]):
    """Events in log order; `older` counts further matching events.

    `subject` is the requested game, event or player; `narrowed` is True if there were other filters; `hint` is a
    did-you-mean hint for an empty answer.
    """

    rows: tuple[RecordedEvent, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    subject: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    narrowed: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
