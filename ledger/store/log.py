"""Read the log from its SQL store.

Each page is a short transaction of its own, so a long replay never delays an append.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, or_, select

from ratings_ledger.ledger.errors import NotALedger, StoreDamaged
from ratings_ledger.ledger.events.canonical import dump, format_instant
from ratings_ledger.ledger.events.records import ZERO, is_valid_head, read_record
from ratings_ledger.ledger.events.revisions import (
    GAME_EVENTS,
    UNREADABLE,
    Column,
    EventLookup,
    KnownEvent,
    find_withdrawing_voids,
)
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.dialect import NamedEvent, dialect_of
from ratings_ledger.ledger.store.schema import HEAD_QUERY, events, ledger_identity

# the maximum number of events of a page
PAGE_EVENTS = 5_000
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
# how many positions one statement searches for a name
SEARCH_POSITIONS = 50_000
# how many of the newest games or leagues are searched for a name to suggest
NEWEST_GAMES = 2_000
# how many unknown names get a suggestion
SUGGESTIONS_MAX = 20
# how many values one statement looks up
LOOKUP_SIZE = 400
# built once, because every read after a write runs it
_CHAIN_HASH_QUERY = select(events.c.chain_hash).where(events.c.position == bindparam("position"))


class Head(NamedTuple):
    """The last position of a log, its chain hash, and its time in microseconds; an empty log has position 0."""

    position: int
    chain_hash: bytes
    recorded_at: int

    def __str__(self) -> str:
        return f"{self.position}:{self.chain_hash.hex()}"

    def __repr__(self) -> str:
        """Return the position, the time, and the beginning of the chain hash."""
        if not self.position:
            return f"{type(self).__name__}(position=0)"
        recorded_at, chain_hash = format_instant(self.recorded_at), self.chain_hash.hex()
        members = f"position={self.position}, recorded_at='{recorded_at}', chain_hash='{chain_hash[:12]}…'"
        return f"{type(self).__name__}({members})"


def ledger_id(connection: Connection) -> str:
    """Return the random id of this ledger. Raises `NotALedger` unless the ledger has exactly one id, a UUID.

    The check matters because folders are named after the id, and an untrusted file might hold a path instead of it.
    """
    ids = connection.execute(select(ledger_identity.c.ledger_id)).scalars().all()
    if len(ids) != 1 or not isinstance(ids[0], str) or not _UUID.fullmatch(ids[0]):
        content = quote(str(ids[0])) if len(ids) == 1 else f"{len(ids)} ids"
        raise NotALedger(f"the ledger's table ledger_identity holds {content}, not one UUID; restore the ledger")
    return ids[0]


def home_zone(connection: Connection, until: int | None = None) -> str | None:
    """Return the name of the ledger's home zone at a position (default: the head), or None if it has none."""
    zones = home_zones(connection, until)
    return str(zones[-1].data["zone"]) if zones else None


def home_zones(connection: Connection, until: int | None = None) -> list[KnownEvent]:
    """Return the events that set the ledger's home zone up to a position (default: the head), in log order."""
    return read_live(connection, until=until, type_name="ledger.zone_set")


def has_games_before(connection: Connection, position: int) -> bool:
    """Tell whether a game was recorded before a position."""
    if position <= 1:
        return False
    earlier = select(events.c.position).where(events.c.type == "game.recorded", events.c.position < position).limit(1)
    return connection.execute(earlier).first() is not None


def head(connection: Connection) -> Head:
    """Return the head of the log. Raises `StoreDamaged` if its row is invalid."""
    with open_driver_cursor(connection) as cursor:
        return _check_head(cursor.execute(HEAD_QUERY).fetchone())


def lock_and_read_head(connection: Connection, names: Sequence[str] = ()) -> tuple[Head, list[NamedEvent]]:
    """Take the append lock; return the head, and the events whose id or subject is one of these names."""
    row, named_events = dialect_of(connection).lock_and_read_head(connection, names)
    return _check_head(row), named_events


def _check_head(row: tuple[int, bytes, int] | None) -> Head:
    if row is None:
        return Head(0, ZERO, 0)
    if not is_valid_head(*row):
        raise StoreDamaged(f"the last event, at position {row[0]}, is invalid; run: ratings verify")
    return Head(row[0], bytes(row[1]), row[2])


@contextmanager
def open_driver_cursor(connection: Connection) -> Iterator[Any]:
    """Provide the driver's own cursor, because SQLAlchemy's would slow down the few statements of every append."""
    cursor = connection.connection.cursor()
    try:
        yield cursor
    finally:
        cursor.close()


def read_chain_hash(connection: Connection, position: int) -> bytes | None:
    """Return the chain hash at a position (0: that of an empty log), or None if the log has no event there."""
    if position == 0:
        return ZERO
    stored_hash = connection.execute(_CHAIN_HASH_QUERY, {"position": position}).scalar()
    return None if stored_hash is None else bytes(stored_hash)


def find_position_known_at(connection: Connection, instant: int) -> int:
    """Return the last position recorded up to an instant."""
    # a binary search, since recorded times never decrease along the log
    low, high = 0, head(connection).position
    last = select(events.c.position, events.c.recorded_at).order_by(events.c.position.desc()).limit(1)
    while low < high:
        middle = (low + high + 1) // 2
        # positions may be absent in a damaged log
        row = connection.execute(last.where(events.c.position <= middle)).first()
        low, high = (middle, high) if row is None or row.recorded_at <= instant else (low, row.position - 1)
    return low


def read_recorded_at(connection: Connection, position: int) -> int:
    """Return when the event at a position was recorded, in microseconds."""
    query = select(events.c.recorded_at).where(events.c.position == position)
    return int(connection.execute(query).scalar_one())


def _to_text(record: object) -> str:
    """Return a stored record. SQLite accepts values that are not text; they become `null`, an invalid record."""
    return record if isinstance(record, str) else "null"


_PAGE_QUERY = (
    select(events.c.position, events.c.record)
    .where(events.c.position > bindparam("after"), events.c.position <= bindparam("until"))
    .order_by(events.c.position)
    .limit(bindparam("size"))
)


def read_records(
    connection: Connection, after: int = 0, until: int | None = None, size: int = PAGE_EVENTS
) -> Iterator[Sequence[tuple[int, str]]]:
    """Yield pages of (position, record) in log order, for `after` < position <= `until` (default: the head)."""
    until = head(connection).position if until is None else until
    while after < until:
        page = connection.execute(_PAGE_QUERY, {"after": after, "until": until, "size": size}).all()
        if not page:
            return
        yield [(row[0], _to_text(row[1])) for row in page]
        after = page[-1][0]


def read_page(connection: Connection, after: int, until: int) -> bytes:
    """Return the records at `after` < position <= `until` as one text in UTF-8, each ending in a newline.

    The text is empty if a record is missing.
    """
    return dialect_of(connection).join_records(connection, after, until) or b""


def _select_rows_with(
    connection: Connection, column: ColumnElement[Any], values: Iterable[Any], *further_columns: ColumnElement[Any]
) -> Iterator[Any]:
    """Yield (column, *further_columns) of each event whose column has one of these values."""
    all_values, query = list(values), select(column, *further_columns)
    for start in range(0, len(all_values), LOOKUP_SIZE):
        yield from connection.execute(query.where(column.in_(all_values[start : start + LOOKUP_SIZE])))


def find_first_positions(connection: Connection, game_ids: Iterable[str]) -> dict[str, int]:
    """Return the position at which each of these games was recorded, by game id, leaving out unrecorded games."""
    subjects = (f"game:{game_id}" for game_id in game_ids)
    rows = _select_rows_with(connection, events.c.subject, subjects, events.c.position, events.c.type)
    return {
        subject.removeprefix("game:"): position for subject, position, type_name in rows if type_name == "game.recorded"
    }


def find_recorded_games(connection: Connection, subjects: Sequence[str]) -> list[str]:
    """Return the subjects among these that are recorded games."""
    with open_driver_cursor(connection) as cursor:
        named_events = dialect_of(connection).find_events_named(cursor, subjects) if subjects else ()
    requested = {*subjects}
    return [event.subject for event in named_events if event.type == "game.recorded" and event.subject in requested]


def read_games_by_position(connection: Connection, until: int) -> dict[int, str]:
    """Return the ids of the games recorded up to a position, by the position of their `game.recorded`, in log order."""
    recorded = (events.c.type == "game.recorded") & (events.c.position <= until)
    query = select(events.c.position, events.c.subject).where(recorded).order_by(events.c.position)
    return {position: subject.removeprefix("game:") for position, subject in connection.execute(query)}


def find_changed_games(connection: Connection, after: int) -> set[str]:
    """Return the subjects of the games that were corrected, voided or reinstated after a position."""
    later = events.c.type.in_(sorted(GAME_EVENTS - {"game.recorded"})) & (events.c.position > after)
    return set(connection.execute(select(events.c.subject).where(later).distinct()).scalars())


def list_last_recorders(connection: Connection, limit: int) -> list[str]:
    """Return the names of those who recorded the latest events, the latest first."""
    newest = func.max(events.c.position)
    query = select(events.c.recorded_by).group_by(events.c.recorded_by).order_by(newest.desc()).limit(limit)
    return list(connection.execute(query).scalars())


def find_positions(connection: Connection, event_ids: Iterable[str]) -> dict[str, int]:
    """Return the positions of these events, by event id, leaving out unknown ids."""
    return {row[0]: row[1] for row in _select_rows_with(connection, events.c.event_id, event_ids, events.c.position)}


def read_matching_records(
    connection: Connection,
    *,
    until: int | None,
    after: int = 0,
    type_name: str | None = None,
    subject: str | None = None,
) -> list[tuple[int, str]]:
    """Return (position, record) of the events of a type, about a subject or both, in log order.

    Only events at `after` < position <= `until` (None: the head) are included.
    """
    query = select(events.c.position, events.c.record, events.c.type)
    if until is not None:
        query = query.where(events.c.position <= until)
    if after:
        query = query.where(events.c.position > after)
    # SQL gets only the more selective condition: with both, SQLite might use the index of the other one
    query = query.where(events.c.type == type_name if subject is None else events.c.subject == subject)
    rows = connection.execute(query.order_by(events.c.position))
    return [(row.position, _to_text(row.record)) for row in rows if type_name in (None, row.type)]


def read_valid_events(
    connection: Connection, types: Collection[str], *, until: int | None, after: int = 0
) -> list[KnownEvent]:
    """Return the valid events of some types at `after` < position <= `until` (None: the head), in log order."""
    query = _build_types_query(tuple(types), ends=until is not None, begins=after > 0)
    rows = connection.execute(query, {"until": until, "after": after})
    records = ((position, _to_text(record)) for position, record in rows)
    return [event for event in read_known_events(records) if event.type in types]


# built once, because every read after a write runs two such queries
@lru_cache(64)
def _build_types_query(types: tuple[str, ...], *, ends: bool, begins: bool) -> Select[Any]:
    """Build the query of the events of some types.

    With `begins` it starts after the parameter `after`; with `ends` it stops at the parameter `until`.
    """
    query = select(events.c.position, events.c.record).where(events.c.type.in_(types))
    if ends:
        query = query.where(events.c.position <= bindparam("until"))
    if begins:
        query = query.where(events.c.position > bindparam("after"))
    return query.order_by(events.c.position)


def read_newest(
    connection: Connection,
    until: int,
    *,
    after: int = 0,
    by: str | None = None,
    types: Collection[str] = (),
    limit: int = 0,
) -> tuple[list[tuple[int, str]], int]:
    """Return (position, record) of the newest `limit` events (0: all) in log order, and the number of older ones.

    Only events at `after` < position <= `until` count. `by` selects the events of one recorder, `types` those of some
    types.
    """
    condition = (events.c.position > after) & (events.c.position <= until)
    if by is not None:
        condition &= events.c.recorded_by == by
    if types:
        condition &= events.c.type.in_(list(types))
    query = select(events.c.position, events.c.record).where(condition).order_by(events.c.position.desc())
    rows = [(row[0], _to_text(row[1])) for row in connection.execute(query.limit(limit) if limit else query)]
    count = connection.execute(select(func.count()).select_from(events).where(condition)).scalar_one() if limit else 0
    return rows[::-1], max(0, count - len(rows))


def list_newest_subject_ids(connection: Connection, until: int, type_name: str = "game.recorded") -> list[str]:
    """Return the ids of the newest games up to a position, in log order, at most `NEWEST_GAMES`.

    With another `type_name`, return the ids in the subjects of the newest events of this type.
    """
    condition = (events.c.type == type_name) & (events.c.position <= until)
    query = select(events.c.subject).where(condition).order_by(events.c.position.desc()).limit(NEWEST_GAMES)
    return [subject.partition(":")[2] for subject in connection.execute(query).scalars()][::-1]


def read_live(
    connection: Connection, *, until: int | None, type_name: str, subject: str | None = None
) -> list[KnownEvent]:
    """Return the live events of a type, in log order; with `subject` only the events about that subject.

    Only events up to the position `until` count (None: all). An event is live unless a later event withdraws it.
    """
    if subject is None:  # reading the few voids as well takes less time than a second statement
        events_read = read_valid_events(connection, (type_name, "event.voided"), until=until)
        matching = [event for event in events_read if event.type == type_name]
        voids = [event for event in events_read if event.type == "event.voided"]
    else:
        matching = read_events_of_type(
            type_name, read_matching_records(connection, until=until, type_name=type_name, subject=subject)
        )
        voids = read_valid_events(connection, ("event.voided",), until=until) if matching else []
    withdrawn = _resolve_voids(connection, voids) if matching and voids else {}
    return [event for event in matching if event.event_id not in withdrawn] if withdrawn else matching


def find_withdrawn_ids(connection: Connection, until: int) -> dict[str, int]:
    """Return the ids of the events withdrawn as of a position, each with the position of the withdrawing event."""
    return _resolve_voids(connection, read_valid_events(connection, ("event.voided",), until=until))


def _resolve_voids(connection: Connection, voids: Sequence[KnownEvent]) -> dict[str, int]:
    """Return the ids of the events that these voids withdraw, each with the position of the withdrawing event."""
    targets = sorted({void.data["id"] for void in voids})
    rows = _select_rows_with(connection, events.c.event_id, targets, events.c.position, events.c.type)
    target_rows = {event_id: (position, type_name) for event_id, position, type_name in rows}
    # a void counts only if its target precedes it; a void of a void counts only if the target counts
    target_by_void: dict[str, str] = {}
    for void in voids:
        target = void.data["id"]
        target_position, type_name = target_rows.get(target, (None, ""))
        if target_position is None or target_position >= (void.position or 0) or type_name in GAME_EVENTS:
            continue
        if type_name != "event.voided" or target in target_by_void:
            target_by_void[void.event_id] = target
    positions = {void.event_id: void.position or 0 for void in voids}
    return {target: positions[void] for target, void in find_withdrawing_voids(target_by_void.items()).items()}


def read_known_event(position: int, record: str) -> KnownEvent:
    """Read the event of a record, with its data in the newest schema version. Raises `Refused` for an invalid record.

    Only SQL can insert an invalid record. Replays ignore it, and `verify` reports it.
    """
    event, instant, data = read_record(record, position)
    return KnownEvent(event["id"], event["type"], instant, data, position)


def read_known_events(rows: Iterable[tuple[int, str]]) -> Iterator[KnownEvent]:
    """Yield the events of (position, record) pairs, leaving out invalid records."""
    for position, record in rows:
        with suppress(Refused):
            yield read_known_event(position, record)


def read_events_of_type(type_name: str, rows: Iterable[tuple[int, str]]) -> list[KnownEvent]:
    """Return the events whose record states this type; the SQL column is not trusted."""
    return [event for event in read_known_events(rows) if event.type == type_name]


@dataclass
class Log(EventLookup):
    """The log up to a position, as a `revisions.EventLookup` that looks up single events.

    An invalid record becomes an event of type `UNREADABLE` without data, so that it keeps its place in a chain.
    """

    connection: Connection
    until: int = 2**62
    # the names that may be suggested, by kind
    _suggestible: dict[str, set[str]] = field(default_factory=dict, repr=False)
    # the number of unknown names so far
    _unknown_count: int = 0

    def find_by_column(self, column: Column, value: str) -> list[KnownEvent]:
        """Return the events with this value in a column, in log order."""
        query = select(events.c.position, events.c.record, events.c.event_id)
        query = query.where(events.c[column] == value, events.c.position <= self.until).order_by("position")
        return [_read_event_or_unreadable(*row) for row in self.connection.execute(query)]

    def find_event_id(self, position: int) -> str | None:
        """Return the id of the event at a position, or None."""
        query = select(events.c.event_id).where(events.c.position == position, events.c.position <= self.until)
        return self.connection.execute(query).scalar()

    def suggest_similar(self, kind: str, name: str, to_current_id: Callable[[str], str] = str) -> str:
        """Suggest a recent game, league or player with a similar name, as the end of a message; empty if none is close.

        `to_current_id` maps a player's id to their id after renames. Only the first `SUGGESTIONS_MAX` unknown names get
        a suggestion, because each one takes a while.
        """
        self._unknown_count += 1
        if self._unknown_count > SUGGESTIONS_MAX:
            return ""
        if kind not in self._suggestible and kind == "player":
            records, _ = read_newest(self.connection, self.until, types=["game.recorded"], limit=NEWEST_GAMES)
            self._suggestible[kind] = {
                player
                for event in read_known_events(records)
                for player in TYPES[event.type].list_named_players(event.data)
            }
        elif kind not in self._suggestible:
            type_name = "league.created" if kind == "league" else "game.recorded"
            self._suggestible[kind] = {*list_newest_subject_ids(self.connection, self.until, type_name)}
        return did_you_mean(name, sorted(self._suggestible[kind]), to_current_id)

    def list_league_names(self) -> list[str]:
        """Return the names of the live leagues, in order of their creation."""
        created = read_live(self.connection, until=self.until, type_name="league.created")
        return [event.data["league"] for event in created]


def _read_event_or_unreadable(position: int, record: object, event_id: str) -> KnownEvent:
    try:
        return read_known_event(position, _to_text(record))
    except Refused:
        return KnownEvent(event_id, UNREADABLE, 0, {}, position)


def has_events_after(connection: Connection, after: int, types: Iterable[str]) -> bool:
    """Tell whether the log has an event of one of these types after a position."""
    later = select(events.c.position).where(events.c.position > after, events.c.type.in_(list(types))).limit(1)
    return connection.execute(later).first() is not None


def read_events_naming(connection: Connection, names: Iterable[str], until: int | None = None) -> Iterator[KnownEvent]:
    """Yield the events up to a position (default: the head) whose record contains one of these names as a string.

    The events come in log order. SQLite ignores the case of ASCII letters, so the caller must compare the names.
    """
    after, until = 0, head(connection).position if until is None else until
    has_name = or_(*(events.c.record.contains(dump(name), autoescape=True) for name in names))
    position = events.c.position
    next_position = select(func.min(position)).where(position > bindparam("after"))
    # positions may be absent in a damaged log, perhaps billions of them
    while after < until and (first := connection.execute(next_position, {"after": after}).scalar()) is not None:
        after = first - 1
        page = (position > after) & (position <= after + SEARCH_POSITIONS) & (position <= until)
        rows = connection.execute(select(position, events.c.record).where(page, has_name).order_by(position)).all()
        yield from read_known_events((row.position, _to_text(row.record)) for row in rows)
        after += SEARCH_POSITIONS


def read_records_at(connection: Connection, positions: Sequence[int]) -> dict[int, str]:
    """Return the records at these positions, by position."""
    return {position: _to_text(record) for position, record in _read_column(connection, "record", positions)}


def read_recorded_times(connection: Connection, positions: Sequence[int]) -> dict[int, int]:
    """Return the recording time of the event at each of these positions, in microseconds, by position."""
    return {position: int(instant) for position, instant in _read_column(connection, "recorded_at", positions)}


def _read_column(connection: Connection, column: str, positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield (position, value of a column) of the events at these positions."""
    for start in range(0, len(positions), LOOKUP_SIZE):
        # the SQL text lists the positions, because binding a parameter for each takes longer than the query
        listed = ",".join(str(int(position)) for position in positions[start : start + LOOKUP_SIZE])
        query = f"SELECT position, {column} FROM events WHERE position IN ({listed})"
        yield from (tuple(row) for row in connection.exec_driver_sql(query).all())


def read_types_after(connection: Connection, position: int) -> set[str]:
    """Return the types of the events after a position."""
    return set(connection.execute(select(events.c.type).where(events.c.position > position).distinct()).scalars())


def count_by_type(connection: Connection) -> dict[str, int]:
    """Count the events of each type in the log."""
    query = select(events.c.type, func.count()).group_by(events.c.type)
    return {row[0]: row[1] for row in connection.execute(query)}
