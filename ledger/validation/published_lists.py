"""Read published lists in the log and their rows, select the latest lists, and refuse invalid lists.

A list names the digest of its rows. Each part of its rows is in an event; the last event with that part before the list
counts. A list shows a ladder at an `as_of`, or at its publication. Of several live lists of a ladder with the same
`as_of`, the last counts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_instant, parse_object, parse_record_instant
from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, is_live
from ratings_ledger.ledger.rejections import Refused, count, quote
from ratings_ledger.ledger.store.log import read_live, read_records_at
from ratings_ledger.ledger.validation.identities import Identities, read_club_identities, read_identities

TYPES = frozenset({"list.rows", "list.published"})


class PublishedList(NamedTuple):
    """A `list.published`, with its position, time and recorder."""

    position: int
    event_id: str
    recorded_at: str
    by: str
    ladder: str
    as_of: int | None
    known_at: int
    ruleset: str
    digest: str
    row_count: int
    parts: int
    games: int
    has_default_as_of: bool  # whether `as_of` is None or the instant of publication

    @property
    def key(self) -> tuple[str, int | None]:
        """Return the ladder, and the `as_of` that the publisher gave, or None."""
        return self.ladder, None if self.has_default_as_of else self.as_of


def read_published_lists(connection: Connection, until: int, ladder: str | None = None) -> list[PublishedList]:
    """Return the live published lists up to a position, in log order; `ladder` selects the lists of one ladder."""
    subject = None if ladder is None else f"ladder:{ladder}"
    list_events = read_live(connection, until=until, type_name="list.published", subject=subject)
    records = read_records_at(connection, [event.position or 0 for event in list_events])
    return [
        _build_list(event, position, records[position])
        for event, position in zip(list_events, sorted(records), strict=True)
    ]


def _build_list(event: KnownEvent, position: int, record: str) -> PublishedList:
    members, data = parse_object(record.encode()), event.data
    return PublishedList(
        position=position,
        event_id=event.event_id,
        recorded_at=members["recorded_at"],
        by=members["by"],
        ladder=data["ladder"],
        as_of=_parse_as_of(data),
        known_at=data["known_at"],
        ruleset=data["ruleset"],
        digest=data["digest"],
        row_count=data["row_count"],
        parts=data["parts"],
        games=data.get("games", 0),
        has_default_as_of=_has_default_as_of(data, event.occurred_at),
    )


def _parse_as_of(data: dict[str, Any]) -> int | None:
    return parse_instant(data["as_of"]) if "as_of" in data else None


def _has_default_as_of(data: dict[str, Any], occurred_at: int) -> bool:
    """Tell whether the publisher of a list gave no `as_of`: it is absent, or the instant of publication."""
    return _parse_as_of(data) in (None, occurred_at)


def select_latest_lists(lists: Iterable[PublishedList]) -> list[PublishedList]:
    """Return the last list for each ladder and `as_of`, sorted by both; `lists` must be in log order."""
    last_by_key = {published.key: published for published in lists}
    return sorted(
        last_by_key.values(), key=lambda published: (published.ladder, published.as_of is None, published.as_of or 0)
    )


def select_newest_list(lists: Iterable[PublishedList]) -> PublishedList:
    """Return the list with the latest `as_of`; of several such lists, the last that was published.

    So an older list that is published again does not become the newest. For a list of a ladder of one month or year,
    which has no `as_of`, the time of publication counts.
    """

    def find_time(published: PublishedList) -> int:
        return parse_record_instant(published.recorded_at) if published.as_of is None else published.as_of

    return max(lists, key=lambda published: (find_time(published), published.position))


def find_listed_id(
    read_people: Callable[[int], Identities],
    published: PublishedList,
    listed_ids: Collection[str],
    player: str,
    until: int,
) -> str | None:
    """Return the id under which a person or club is on a list; None if it is not on the list.

    Args:
        read_people: Returns the identities as known at a position, of players or of clubs.
        published: The list.
        listed_ids: All ids on the list.
        player: An id of the person, as known at `until`. If several ids of the person are on the list, the one for
            which this id stood at the time of the list counts.
        until: The position.
    """
    then = read_people(published.known_at).current(player)
    if then in listed_ids:
        return then
    return next((name for name in sorted(read_people(until).ids(player)) if name in listed_ids), None)


def read_entrants(connection: Connection, entrant: str, until: int) -> Identities:
    """Return the identities, as known at a position, of the entrants of a ladder: "player" or "club"."""
    return read_club_identities(connection, until) if entrant == "club" else read_identities(connection, until)


def read_published_rows(events: EventLookup, digest: str, parts: int, before: int = 2**62) -> list[dict[str, Any]]:
    """Return the rows, as JSON objects, of the list with this digest that was published at the position `before`.

    Raises `Refused` (bad-list) if one of its `parts` is missing.
    """
    by_part: dict[int, KnownEvent] = {}
    for event in events.about(f"list:{digest}"):
        is_earlier = event.position is None or event.position < before
        if is_earlier and event.type == "list.rows" and event.data["parts"] == parts:
            by_part[event.data["part"]] = event
    if len(by_part) < parts:
        problem = f"the list {digest} consists of {count(parts, 'part')}, but the events before it have only"
        raise Refused("bad-list", f"{problem} {len(by_part):,}")
    return [{"rank": None, **row} for part in range(1, parts + 1) for row in by_part[part].data["rows"]]


def refuse_list(events: EventLookup, data: dict[str, Any], occurred_at: int, position: int) -> None:
    """Raise `Refused` (bad-list, list-exists) if a list cannot be published at this instant and position."""
    name = quote(data["ladder"])
    if data["known_at"] >= position:
        message = f"the list of {name} at position {position} has known_at {data['known_at']}; it must be an earlier"
        raise Refused("bad-list", f"{message} position")
    if data["ruleset"].partition("@")[0] != data["ladder"].partition("/")[0]:
        raise Refused("bad-list", f"the ruleset {quote(data['ruleset'])} does not rank the ladder {name}")
    rows = read_published_rows(events, data["digest"], data["parts"])
    if len(rows) != data["row_count"] or compute_digest(data["ruleset"], rows) != data["digest"]:
        raise Refused("bad-list", f"the rows of the list of {name} do not have the number and digest that it states")
    if len({row["player"] for row in rows}) < len(rows):
        raise Refused("bad-list", f"a player is on the list of {name} twice")
    refuse_unequal_states(data["ladder"], rows)
    last, has_default_as_of = None, _has_default_as_of(data, occurred_at)
    for event in events.about(f"ladder:{data['ladder']}"):
        if event.type != "list.published" or _has_default_as_of(event.data, event.occurred_at) != has_default_as_of:
            continue
        if (has_default_as_of or _parse_as_of(event.data) == _parse_as_of(data)) and is_live(events, event):
            last = event
    if last is not None and last.data["digest"] == data["digest"]:
        position_note = "" if last.position is None else f" at position {last.position}"
        raise Refused("list-exists", f"{data['ladder']} is already published with the same content{position_note}")


def refuse_unequal_states(ladder: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise `Refused` (bad-list) unless all rows of a list have a `state` with the same columns, or none has one."""
    first_columns = {*rows[0].get("state", ())} if rows else set()
    for row in rows:
        columns = {*row.get("state", ())}
        if columns != first_columns:
            left, right = (", ".join(sorted(names)) or "none" for names in (columns, first_columns))
            raise Refused(
                "bad-list",
                f"the list of {quote(ladder)} has different state columns for {quote(row['player'])} ({left}) and "
                f"{quote(rows[0]['player'])} ({right})",
            )


def refuse_list_schedule(events: EventLookup, data: dict[str, Any]) -> None:
    """Raise `Refused` (schedule-exists) if the ladder already has a schedule."""
    for event in events.about(f"schedule:{data['ladder']}"):
        if event.type == "list.scheduled" and is_live(events, event):
            remedy = "" if event.position is None else f"; to end this, run: ratings undo {event.position}"
            message = f"{data['ladder']} is already published every {event.data['every']}{remedy}"
            raise Refused("schedule-exists", message)


def read_scheduled_ladders(connection: Connection, until: int) -> dict[str, str]:
    """Return the period of each ladder with a schedule as of a position, such as month, by the ladder's name."""
    schedules = read_live(connection, until=until, type_name="list.scheduled")
    return {event.data["ladder"]: event.data["every"] for event in schedules}


def refuse_rows_withdrawal(events: EventLookup, data: dict[str, Any]) -> None:
    """Raise `Refused` (still-needed) if the rows in the data of a `list.rows` belong to a live list."""
    for event in events.about(f"ladder:{data['ladder']}"):
        has_rows = event.type == "list.published" and event.data["digest"] == data["digest"]
        if has_rows and is_live(events, event):
            message = f"the published list {quote(event.event_id)} consists of these rows; void that list first"
            raise Refused("still-needed", message)
