"""What is recorded: the games as they now stand, and the events as they were written"""

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
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, UNREADABLE, KnownEvent, live_game, successors
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    Log,
    head,
    read_events_of_type,
    read_known_event,
    read_naming,
    read_newest,
    read_records,
    read_records_at,
    read_where,
    withdrawn_ids,
)
from ratings_ledger.ledger.validation.batches import Batch
from ratings_ledger.ledger.validation.identities import identities, players_of
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Answer, Result, RowSequence

GAME_RECORDED = '"type":"game.recorded"}'
# so many more games than are wanted are kept before the oldest of them are dropped
SPARE_GAMES = 10_000


def is_wanted(
    one: RecordedGame,
    first: datetime | None,
    last: datetime | None,
    game_id: str | None,
    game: str | None,
    ids: Collection[str] | None,
) -> bool:
    """Tell whether a game was played in a span, has an id, is of a name, and has a player of some ids; None is any."""
    return (
        (first or one.occurred_at) <= one.occurred_at <= (last or one.occurred_at)
        and game_id in (None, one.data["game_id"])
        and game in (None, one.data["game"])
        and (ids is None or any(there["player"] in ids for there in one.data["participants"]))
    )


def games_as_they_stand(
    connection: Connection, until: int, wanted: Callable[[RecordedGame], bool], by: str | None, limit: int
) -> tuple[list[RecordedGame], int, dict[int, str]]:
    """Return the games known at a position that are wanted, or the newest `limit` of them, by the time they were
    played.

    Besides how many there are in all, and the records that no event can have, by position, with the reason. `by` is who
    recorded them first.
    """
    recorded_by = "" if by is None else f'{{"by":{dump_text(by)},'
    found, count, left_out = list[RecordedGame](), 0, dict[int, str]()
    for page in games_by_page(connection, until, left_out, recorded_by):
        fitting = [game for game in page if wanted(game)]
        found += fitting
        count += len(fitting)
        if limit and len(found) > 2 * limit + SPARE_GAMES:
            found = sorted(found, key=_replay_order)[-limit:]
    found.sort(key=_replay_order)
    return found[-limit:], count, left_out


def games_by_page(
    connection: Connection, until: int, left_out: dict[int, str], beginning: str = "", after: int = 0
) -> Iterator[list[RecordedGame]]:
    """Yield the games known at a position as they now stand, in the order in which they were first recorded, by pages
    of the log; of those first recorded behind a position whose record has a beginning. Records that no event can have
    are told in `left_out`.
    """
    changed = _changed_games(connection, until)
    for page in read_records(connection, after, until):
        found = []
        for position, record in page:
            if not record.endswith(GAME_RECORDED) or not record.startswith(beginning):
                continue
            try:
                event = read_known_event(position, record)
            except Refused as problem:
                left_out[position] = problem.message
                continue
            game = changed.get(event.data["game_id"])
            found.append(game or RecordedGame(position, moment(event.occurred_at), event.data))
        yield found


def games_that_stand(connection: Connection, until: int, last: int | None, after: int) -> Iterator[RecordedGame]:
    """Yield the games known at a position, without voided ones, up to an instant, with the current ids of their
    players; of those first recorded behind another position.

    Not those in which somebody would meet themselves since a rename: they count on no ladder, and nobody records them.
    """
    people = identities(connection, until)
    for game in chain.from_iterable(games_by_page(connection, until, {}, after=after)):
        data = people.present(game.data)
        meet = len({one["player"] for one in data["participants"]}) == len(data["participants"])
        if game.voided is ABSENT and meet and (last is None or game.occurred_at <= moment(last)):
            yield replace(game, data=data)


def _replay_order(game: RecordedGame) -> Any:
    return game.occurred_at, game.position


def _changed_games(connection: Connection, until: int) -> dict[str, RecordedGame]:
    """Return the games that were corrected, voided or reinstated, by game_id, as they now stand."""
    found: dict[str, RecordedGame] = {}
    for type_name in sorted(GAME_EVENTS - {"game.recorded"}):
        for event in read_events_of_type(type_name, read_where(connection, until=until, type_name=type_name)):
            game_id = event.data["game_id"]
            history = [] if game_id in found else Log(connection, until).about(f"game:{game_id}")
            if (game := live_game(history)) is not None:
                voided = True if game.voided else ABSENT
                found[game_id] = RecordedGame(history[0].position or 0, moment(game.occurred_at), game.data, voided)
    return found


class EventSelection(NamedTuple):
    """Which events are meant: the newest `limit` (0: all) of those after a position.

    Of all, or of those about one game, event or player; of those that somebody recorded, of some types, or within some
    batches.
    """

    subject: str | None = None
    after: int = 0
    by: str | None = None
    types: Collection[str] = ()
    within: Sequence[Batch] | None = None
    limit: int = 0


def events_as_written(
    connection: Connection, until: int, selection: EventSelection
) -> tuple[tuple[RecordedEvent, ...], int]:
    """Return the selected events up to a position, and how many older ones there are."""
    subject, after, by, types, within, limit = selection
    if subject is None and within is None:
        records, older = read_newest(connection, until, after=after, by=by, types=types, limit=limit)
        events = [_as_written(*row) for row in records]
    else:
        found = _about(connection, until, subject) if subject is not None else _within(connection, within or ())
        events = [
            _as_written(*row)
            for row in sorted(found.items())
            if row[0] > after and (within is None or any(one.has(row[0]) for one in within))
        ]
        events = [event for event in events if by in (None, event.get("by")) and (not types or event["type"] in types)]
        older = max(0, len(events) - limit) if limit else 0
        events = events[older:]
    return _recorded(connection, until, events), older


def read_forward(connection: Connection, after: int, limit: int, types: Collection[str]) -> RecordedEvents:
    """Return the events behind a position, oldest first, at most `limit` (0: all), of some types or of any.

    Raises `BadArgument` for an unknown type.
    """
    refuse_unknown_types(types)
    until = head(connection).position
    written = (_as_written(*row) for page in read_records(connection, after, until) for row in page)
    wanted = (event for event in written if not types or event["type"] in types)
    return RecordedEvents(_recorded(connection, until, islice(wanted, limit or None)))


def refuse_unknown_types(types: Iterable[str]) -> None:
    """Raise `BadArgument` for what is no type of event."""
    for name in types:
        if name not in TYPES:
            raise BadArgument(f"{quote(name)} is not a type of event{did_you_mean(name, TYPES)}", "types")


def _recorded(connection: Connection, until: int, events: Iterable[dict[str, Any]]) -> tuple[RecordedEvent, ...]:
    """Return events with what became of them, and what they void."""
    events = list(events)
    if not events:
        return ()
    gone, log = withdrawn_ids(connection, until), Log(connection)
    rows = []
    for event in events:
        voids = event["type"] == "event.voided" and UNREADABLE not in event
        target = log.event(event["data"]["id"]) if voids else None
        rows.append(RecordedEvent(event, withdrawn=event["id"] in gone, target=target))
    return tuple(rows)


def _about(connection: Connection, until: int, subject: str) -> dict[int, str]:
    """Return the records about a game, an event or a player, by position."""
    found = dict(
        [
            *read_where(connection, until=until, subject=f"game:{subject}"),
            *read_where(connection, until=until, subject=f"event:{subject}"),
        ]
    )
    ids = identities(connection, until).ids(subject)
    return found | read_records_at(connection, list(_about_player(Log(connection, until), ids)))


def _within(connection: Connection, batches: Iterable[Batch]) -> dict[int, str]:
    """Return the records of batches, by position, with those that tell of them."""
    found = read_records_at(connection, [one.position for one in batches])
    for first, last in (there for one in batches for there in one.ranges):
        for page in read_records(connection, first - 1, last):
            found.update(page)
    return found


def _about_player(log: Log, ids: set[str]) -> Iterator[int]:
    """Yield the positions of the events about somebody, and of those that withdraw them."""
    for event in read_naming(log.connection, sorted(ids), log.until):
        if ids & players_of(event):
            yield event.position or 0
            if event.type not in GAME_EVENTS:
                yield from (later.position or 0 for later in successors(log, event))


def _as_written(position: int, record: str) -> dict[str, Any]:
    """Return an event as in its record; for an invalid record only its names, its text, and what is wrong."""
    try:
        read_known_event(position, record)
        event: dict[str, Any] = json.loads(record)
        return event
    except Refused as problem:
        names = dict(re.findall(r'"(id|type)":"([^"\\]{1,64})"', record))
        return {"position": position, "type": "?", "id": "?", **names, UNREADABLE: problem.message, "record": record}


# what every game and every event has, in the order in which people look for it
GAME_COLUMNS = SPREAD | {"columns": {"game_id": str, "game": str}}
EVENT_COLUMNS = SPREAD | {
    "columns": {
        "position": int, "type": str, "occurred_at": datetime, "recorded_at": datetime, "by": str, "id": str,
    }
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordedGame(Result):
    """A game as it now stands: the position of its first record, when it was played, its members, whether voided."""

    position: int
    occurred_at: datetime
    data: dict[str, Any] = field(metadata=GAME_COLUMNS)
    voided: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RecordedGames(Answer, RowSequence[RecordedGame]):
    """Games by the time they were played; there are so many `older` ones that match.

    `game_id` is the one game that was asked for, `hint` whom else may be meant if there is none of a player; `left_out`
    are the records that no event can have, by position, with the reason.
    """

    rows: tuple[RecordedGame, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    game_id: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvent(Result):
    """An event as in its record; of an invalid record only its names, its text as `record`, and in `unreadable` why.

    `withdrawn` tells whether it is, `target` is the event that an `event.voided` names.
    """

    event: dict[str, Any] = field(metadata=EVENT_COLUMNS)
    withdrawn: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    target: KnownEvent | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvents(Answer, RowSequence[RecordedEvent]):
    """Events in the order of the log; there are so many `older` ones that match.

    `subject` is what they are about, `narrowed` tells whether anything else was asked of them, `hint` what else may be
    meant if there is none.
    """

    rows: tuple[RecordedEvent, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    subject: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    narrowed: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
