"""Acts: what one command recorded, as far as the log tells, and which one somebody did last.

An act is an import, that is what its files brought with the events that say so; or the lists that one command
published; or the events of one transaction: those that follow one another, recorded by the same at the same time. Two
transactions have the same time only while a clock runs behind the log; then they are one act.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import (
    head,
    home_zone,
    last_recorders,
    read_known_events,
    read_newest,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.batches import Batch, recorded_batches
from ratings_ledger.projections.rulesets.versions import SHIPPED_AT

# what is set anew is not taken back; nor are shipped rulesets
NEVER = frozenset({"ledger.zone_set"})
LISTS = frozenset({"list.rows", "list.published"})
OF_ACTS = tuple(name for name in TYPES if name not in NEVER)
NAMES_TOLD = 3
NEWEST = 50
PAGE_EVENTS = 1_000


class Act(NamedTuple):
    """What one command recorded: ranges of positions with their ends, by whom and when, and how many of which type."""

    ranges: list[list[int]]
    by: str
    recorded_at: str
    types: dict[str, int]

    @property
    def position(self) -> int:
        """Return where it ends."""
        return self.ranges[-1][1]

    @property
    def events(self) -> int:
        """Return how many events it is."""
        return sum(self.types.values())

    def has(self, position: int | None) -> bool:
        """Tell whether the event at a position is part of it."""
        return any(first <= (position or 0) <= last for first, last in self.ranges)


def last_act(connection: Connection, by: str) -> Act:
    """Return what somebody did last. Raises `Refused`: nothing-to-undo, with who did something; never-undone, with the
    way that there is, and where what they did before ends.
    """
    after = _end_of_init(connection)
    last = _newest_of(connection, by, after, head(connection).position)
    if last is not None:
        if (problem := _never_undone(connection, last)) is None:
            return act_of(connection, last.position or 0, by)
        before = _newest_of(connection, by, after, (last.position or 0) - 1, of_acts=True)
        if before is None:
            raise problem
        end = act_of(connection, before.position or 0, by).position
        told = f"what {quote(by)} recorded before that ends at position {end}: ratings undo {end} takes it back"
        raise Refused(problem.code, f"{problem.message}; {told}")
    names = [name for name in last_recorders(connection, NAMES_TOLD) if name != by]
    there = f"; the last to record something: {', '.join(map(quote, names))}" if names else ""
    command = f"; such as: ratings undo --by {shlex.quote(names[0])}" if names else ""
    raise Refused("nothing-to-undo", f"{quote(by)} recorded nothing that can be taken back{there}{command}")


def _newest_of(
    connection: Connection, by: str, after: int, until: int, of_acts: bool = False
) -> KnownEvent | None:  # fmt: skip
    """Return the newest event that somebody recorded after a position up to another one, or of those that may be
    undone.
    """
    types = OF_ACTS if of_acts else ()
    while until > after:
        rows, older = read_newest(connection, until, after=after, by=by, types=types, limit=NEWEST)
        found = [event for event in read_known_events(rows) if not (of_acts and _is_shipped(event))]
        if found:
            return found[-1]
        until = rows[0][0] - 1 if older else 0
    return None


def _end_of_init(connection: Connection) -> int:
    """Return where that ends which `init` recorded in the new ledger: a home zone, and shipped rulesets in one
    transaction.
    """
    rows = next(read_records(connection, 0, PAGE_EVENTS), [])
    told = [json.loads(record) for _, record in rows]
    start = 1 if told and told[0]["type"] in NEVER else 0
    end = start
    for one in told[start:]:
        same = (one["by"], one["recorded_at"]) == (told[0]["by"], told[start]["recorded_at"])
        if one["type"] != "ruleset.published" or one["occurred_at"] != SHIPPED_AT or not same:
            break
        end += 1
    return end


def newer_than(connection: Connection, act: Act) -> tuple[int, str] | None:
    """Return the position of the newest event behind an act that `undo` could take back, and its author, if any."""
    rows, _ = read_newest(connection, head(connection).position, after=act.position, types=OF_ACTS, limit=NEWEST)
    newer = [event.position or 0 for event in read_known_events(rows) if not _is_shipped(event)]
    return (newer[-1], json.loads(dict(rows)[newer[-1]])["by"]) if newer else None


def act_at(connection: Connection, position: int) -> Act:
    """Return the act that the event at a position is part of. Raises `Refused` (event-unknown, never-undone)."""
    event = next(read_known_events(read_records_at(connection, [position]).items()), None)
    if event is None:
        raise Refused("event-unknown", f"no event has the position {position}; see: ratings log")
    if (problem := _never_undone(connection, event)) is not None:
        raise problem
    return act_of(connection, position)


def _never_undone(connection: Connection, event: KnownEvent) -> Refused | None:
    """Return why an event is not taken back, whoever recorded it, and what there is instead; None if it may be."""
    position = event.position or 0
    if event.type in NEVER:
        zone = home_zone(connection, position - 1) or "NAME"
        told = f"the home zone {event.data['zone']} (position {position}) is not taken back; set it anew"
        return Refused("never-undone", f"{told}: ratings zone {zone}")
    if _is_shipped(event):
        told = f"the shipped ruleset {event.data['id']}@{event.data['version']} is not taken back"
        return Refused("never-undone", f"{told}; ratings void --event {position} --reason TEXT withdraws it")
    return None


def _is_shipped(event: KnownEvent) -> bool:
    """Tell whether an event publishes a ruleset as `init` does."""
    return event.type == "ruleset.published" and event.occurred_at == parse_instant(SHIPPED_AT)


def act_of(connection: Connection, position: int, by: str | None = None) -> Act:
    """Return the act that an event is part of; of imports the last one, if it was recorded by the same."""
    every = recorded_batches(connection, withdrawn=True)
    of_event = [one for one in every if one.has(position) and by in (None, one.by)]
    ranges = [[*_transaction(connection, position)]] if not of_event else _import(connection, every, of_event[-1])
    types: Counter[str] = Counter()
    for first, last in ranges:
        for page in read_records(connection, first - 1, last):
            types.update(json.loads(record)["type"] for _, record in page)
    told = json.loads(read_records_at(connection, [ranges[-1][1]])[ranges[-1][1]])
    return Act(ranges, told["by"], told["recorded_at"], dict(sorted(types.items())))


def _import(connection: Connection, every: Iterable[Batch], batch: Batch) -> list[list[int]]:
    """Return the ranges of an import: what its files brought, and the events that say so, which stand together."""
    first, last = _transaction(connection, batch.position, "import.recorded")
    brought = [one for one in every if first <= one.position <= last]
    ranges = sorted([[first, last], *(there for one in brought for there in one.ranges)])
    found = [ranges[0]]
    for start, end in ranges[1:]:
        if start > found[-1][1] + 1:
            found.append([start, end])
        found[-1] = [found[-1][0], max(found[-1][1], end)]
    return found


def _transaction(connection: Connection, position: int, type_name: str | None = None) -> tuple[int, int]:
    """Return the first and the last of the events around a position that were recorded by the same at the same time.

    Of lists those are together that were published as of the same moment: `publish --due` needs a transaction for each.
    """

    def is_part(record: str) -> bool:
        told = json.loads(record)
        same = "occurred_at" if told["type"] in LISTS and wanted["type"] in LISTS else "recorded_at"
        return told[same] == wanted[same] and told["by"] == wanted["by"] and type_name in (None, told["type"])

    wanted = json.loads(read_records_at(connection, [position])[position])
    first = last = position
    is_whole = False
    while first > 1 and not is_whole:
        page = next(read_records(connection, max(0, first - 1 - PAGE_EVENTS), first - 1))
        for at, record in reversed(page):
            if is_whole := not is_part(record):
                break
            first = at
    for page in read_records(connection, position):
        for at, record in page:
            if not is_part(record):
                return first, last
            last = at
    return first, last
