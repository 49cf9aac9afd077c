"""Published lists in the log: which there are, what they say, and why a new one may be refused.

A list's rows are found by its digest: for each part, the last one recorded before the list. A list is a ladder's at an
`as_of`, or as it stood when it was published; of several, the last live one counts.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_instant, parse_object
from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, is_live
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import read_live, read_records_at

TYPES = frozenset({"list.rows", "list.published"})


class PublishedList(NamedTuple):
    """A `list.published`, with its place in the log, when and by whom it was recorded."""

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
    own: bool  # its as_of was not asked for: it has none, or that is the instant it was published

    @property
    def of(self) -> tuple[str, int | None]:
        """Return what it is a list of: its ladder, and the `as_of` asked for."""
        return self.ladder, None if self.own else self.as_of


def published_lists(connection: Connection, until: int, ladder: str | None = None) -> list[PublishedList]:
    """Return all live published lists up to a position, or those of one ladder, in log order."""
    subject = None if ladder is None else f"ladder:{ladder}"
    found = read_live(connection, until=until, type_name="list.published", subject=subject)
    records = read_records_at(connection, [event.position or 0 for event in found])
    return [
        _published(event, position, records[position]) for event, position in zip(found, sorted(records), strict=True)
    ]


def _published(event: KnownEvent, position: int, record: str) -> PublishedList:
    told, data = parse_object(record.encode()), event.data
    return PublishedList(
        position, event.event_id, told["recorded_at"], told["by"], data["ladder"], _as_of(data), data["known_at"],
        data["ruleset"], data["digest"], data["row_count"], data["parts"], data.get("games", 0),
        _own(data, event.occurred_at),
    )  # fmt: skip


def _as_of(data: dict[str, Any]) -> int | None:
    return parse_instant(data["as_of"]) if "as_of" in data else None


def _own(data: dict[str, Any], occurred_at: int) -> bool:
    """Tell whether a list's `as_of` was not asked for."""
    return _as_of(data) in (None, occurred_at)


def latest_lists(lists: Iterable[PublishedList]) -> list[PublishedList]:
    """Return the lists that count, of lists in log order: the last of each ladder and `as_of`, by both."""
    last = {one.of: one for one in lists}
    return sorted(last.values(), key=lambda one: (one.ladder, one.as_of is None, one.as_of or 0))


def published_rows(events: EventLookup, digest: str, parts: int, before: int = 2**62) -> list[dict[str, Any]]:
    """Return the rows of a list published at `before`, as JSON. Raises `Refused` (bad-list) if a part is missing."""
    by_part: dict[int, KnownEvent] = {}
    for event in events.about(f"list:{digest}"):
        earlier = event.position is None or event.position < before
        if earlier and event.type == "list.rows" and event.data["parts"] == parts:
            by_part[event.data["part"]] = event
    if len(by_part) < parts:
        raise Refused("bad-list", f"of {parts:,} parts with the rows of {digest} {len(by_part):,} are recorded")
    return [{"rank": None, **row} for part in range(1, parts + 1) for row in by_part[part].data["rows"]]


def refuse_list(events: EventLookup, data: dict[str, Any], occurred_at: int, position: int) -> None:
    """Raises `Refused` (bad-list, list-exists) if a list cannot be published at an instant and a position."""
    name = quote(data["ladder"])
    if data["known_at"] >= position:
        raise Refused("bad-list", f"{name} is known at {data['known_at']}, which is not before its own {position}")
    if data["ruleset"].partition("@")[0] != data["ladder"].partition("/")[0]:
        raise Refused("bad-list", f"{quote(data['ruleset'])} does not rank {name}")
    rows = published_rows(events, data["digest"], data["parts"])
    if len(rows) != data["row_count"] or compute_digest(data["ruleset"], rows) != data["digest"]:
        raise Refused("bad-list", f"the rows of {name} do not have the digest that the list names")
    if len({row["player"] for row in rows}) < len(rows):
        raise Refused("bad-list", f"somebody is on {name} twice")
    last, own = None, _own(data, occurred_at)
    for event in events.about(f"ladder:{data['ladder']}"):
        if event.type != "list.published" or _own(event.data, event.occurred_at) != own:
            continue
        if (own or _as_of(event.data) == _as_of(data)) and is_live(events, event):
            last = event
    if last is not None and last.data["digest"] == data["digest"]:
        where = "" if last.position is None else f" at position {last.position}"
        raise Refused("list-exists", f"{data['ladder']} is already published with the same content{where}")


def refuse_list_schedule(events: EventLookup, data: dict[str, Any]) -> None:
    """Raises `Refused` (schedule-exists) if a ladder is scheduled already."""
    for event in events.about(f"schedule:{data['ladder']}"):
        if event.type == "list.scheduled" and is_live(events, event):
            remedy = "" if event.position is None else f"; to end that: ratings undo {event.position}"
            told = f"{data['ladder']} is already published every {event.data['every']}{remedy}"
            raise Refused("schedule-exists", told)


def scheduled_ladders(connection: Connection, until: int) -> dict[str, str]:
    """Return the ladders that are published again and again, by name, with how often, as of a position."""
    found = read_live(connection, until=until, type_name="list.scheduled")
    return {event.data["ladder"]: event.data["every"] for event in found}


def refuse_rows_withdrawn(events: EventLookup, data: dict[str, Any]) -> None:
    """Raises `Refused` (still-needed) if rows belong to a live list."""
    for event in events.about(f"ladder:{data['ladder']}"):
        named = event.type == "list.published" and event.data["digest"] == data["digest"]
        if named and is_live(events, event):
            raise Refused("still-needed", f"the published list {quote(event.event_id)} consists of these rows; void it")
