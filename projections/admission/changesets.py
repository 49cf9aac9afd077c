"""Load changesets, which are the events that one command recorded, and find each author's last changeset.

The log does not name commands. A changeset is an import (the events of its files, with the events that record the
import), or the lists that one command published, or the events of one transaction, which are consecutive and have the
same author and time. Two transactions have the same time only while the clock is behind the log; then they are one
changeset.
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
    list_last_recorders,
    read_known_events,
    read_newest,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.batches import Batch, read_batches
from ratings_ledger.projections.rulesets.versions import SHIPPED_AT

# the types of events that are never undone, because a new event of the type replaces the setting
NEVER_UNDONE = frozenset({"ledger.zone_set"})
LIST_TYPES = frozenset({"list.rows", "list.published"})
UNDOABLE_TYPES = tuple(name for name in TYPES if name not in NEVER_UNDONE)
AUTHORS_MAX = 3  # a message names at most this many other authors
NEWEST_EVENTS = 50  # the number of newest events that are read at once
PAGE_EVENTS = 1_000  # the number of positions that are read at once


class Changeset(NamedTuple):
    """The events that one command recorded: ranges of positions, author, time of the last event, count by type."""

    ranges: list[list[int]]
    by: str
    recorded_at: str
    types: dict[str, int]

    @property
    def position(self) -> int:
        """Return the position of the last event."""
        return self.ranges[-1][1]

    @property
    def event_count(self) -> int:
        """Return the number of events."""
        return sum(self.types.values())

    def has(self, position: int | None) -> bool:
        """Tell whether the event at a position is part of the changeset."""
        return any(first <= (position or 0) <= last for first, last in self.ranges)


def load_last_changeset(connection: Connection, by: str) -> Changeset:
    """Return the last changeset of an author.

    Raises:
        Refused: (nothing-to-undo) the author recorded nothing; the message names other recent authors.
        Refused: (never-undone) the changeset cannot be undone; the message names the command to use instead, and the
            position of the author's previous changeset.
    """
    after = _find_end_of_init(connection)
    last = _find_newest_event(connection, by, after=after, until=head(connection).position)
    if last is not None:
        if (problem := _find_undo_problem(connection, last)) is None:
            return load_changeset(connection, last.position or 0, by)
        before_last = (last.position or 0) - 1
        previous = _find_newest_event(connection, by, after=after, until=before_last, only_undoable=True)
        if previous is None:
            raise problem
        end = load_changeset(connection, previous.position or 0, by).position
        hint = f"to undo what {quote(by)} recorded before that: ratings undo {end}"
        raise Refused(problem.code, f"{problem.message}; {hint}")
    message = f"{quote(by)} has recorded nothing that can be undone"
    if authors := [name for name in list_last_recorders(connection, AUTHORS_MAX) if name != by]:
        subject = "last author is" if len(authors) == 1 else "last authors are"
        message += f"; the {subject} {', '.join(map(quote, authors))}"
        message += f"; for example: ratings undo --by {shlex.quote(authors[0])}"
    raise Refused("nothing-to-undo", message)


def _find_newest_event(
    connection: Connection, by: str, *, after: int, until: int, only_undoable: bool = False
) -> KnownEvent | None:
    """Return the newest event of an author with `after` < position <= `until`, or None."""
    types = UNDOABLE_TYPES if only_undoable else ()
    while until > after:
        rows, older = read_newest(connection, until, after=after, by=by, types=types, limit=NEWEST_EVENTS)
        events = [event for event in read_known_events(rows) if not (only_undoable and _is_shipped(event))]
        if events:
            return events[-1]
        until = rows[0][0] - 1 if older else 0
    return None


def _find_end_of_init(connection: Connection) -> int:
    """Return the last position that `init` recorded: a home zone, and shipped rulesets in one transaction."""
    rows = next(read_records(connection, 0, PAGE_EVENTS), [])
    records = [json.loads(record) for _, record in rows]
    start = 1 if records and records[0]["type"] in NEVER_UNDONE else 0
    end = start
    for record in records[start:]:
        is_same = (record["by"], record["recorded_at"]) == (records[0]["by"], records[start]["recorded_at"])
        if record["type"] != "ruleset.published" or record["occurred_at"] != SHIPPED_AT or not is_same:
            break
        end += 1
    return end


def find_newer_event(connection: Connection, changeset: Changeset) -> tuple[int, str] | None:
    """Return the position and the author of the newest undoable event after a changeset, or None."""
    rows, _ = read_newest(
        connection, head(connection).position, after=changeset.position, types=UNDOABLE_TYPES, limit=NEWEST_EVENTS
    )
    positions = [event.position or 0 for event in read_known_events(rows) if not _is_shipped(event)]
    return (positions[-1], json.loads(dict(rows)[positions[-1]])["by"]) if positions else None


def load_undoable_changeset(connection: Connection, position: int) -> Changeset:
    """Return the changeset with the event at a position. Raises `Refused` (event-unknown, never-undone)."""
    event = next(read_known_events(read_records_at(connection, [position]).items()), None)
    if event is None:
        raise Refused("event-unknown", f"no event has the position {position}; see: ratings log")
    if (problem := _find_undo_problem(connection, event)) is not None:
        raise problem
    return load_changeset(connection, position)


def _find_undo_problem(connection: Connection, event: KnownEvent) -> Refused | None:
    """Return the error for an event that can never be undone, with the command to use instead, or None."""
    position = event.position or 0
    if event.type in NEVER_UNDONE:
        zone = home_zone(connection, position - 1) or "NAME"
        problem = f"the home zone {event.data['zone']} (position {position}) cannot be undone"
        return Refused("never-undone", f"{problem}; to set another: ratings zone {zone}")
    if _is_shipped(event):
        problem = f"the shipped ruleset {event.data['id']}@{event.data['version']} cannot be undone"
        return Refused("never-undone", f"{problem}; to withdraw it: ratings void --event {position} --reason TEXT")
    return None


def _is_shipped(event: KnownEvent) -> bool:
    """Tell whether an event publishes a shipped ruleset, as `ratings init` does."""
    return event.type == "ruleset.published" and event.occurred_at == parse_instant(SHIPPED_AT)


def load_changeset(connection: Connection, position: int, by: str | None = None) -> Changeset:
    """Return the changeset with the event at a position.

    If several imports contain the event, the changeset is the last of them or, with `by`, the last of that author.
    """
    batches = read_batches(connection, withdrawn=True)
    matching_batches = [batch for batch in batches if batch.has_position(position) and by in (None, batch.by)]
    if matching_batches:
        ranges = _find_import_ranges(connection, batches, matching_batches[-1])
    else:
        ranges = [[*_find_transaction(connection, position)]]
    types: Counter[str] = Counter()
    for first, last in ranges:
        for page in read_records(connection, first - 1, last):
            types.update(json.loads(record)["type"] for _, record in page)
    end = ranges[-1][1]
    last_record = json.loads(read_records_at(connection, [end])[end])
    return Changeset(ranges, last_record["by"], last_record["recorded_at"], dict(sorted(types.items())))


def _find_import_ranges(connection: Connection, batches: Iterable[Batch], batch: Batch) -> list[list[int]]:
    """Return the position ranges of an import: the events of its files, and the events that record the import."""
    first, last = _find_transaction(connection, batch.position, "import.recorded")
    import_batches = (candidate for candidate in batches if first <= candidate.position <= last)
    ranges = sorted([[first, last], *(file_range for file in import_batches for file_range in file.ranges)])
    merged = [ranges[0]]
    for start, end in ranges[1:]:
        if start > merged[-1][1] + 1:
            merged.append([start, end])
        merged[-1] = [merged[-1][0], max(merged[-1][1], end)]
    return merged


def _find_transaction(connection: Connection, position: int, type_name: str | None = None) -> tuple[int, int]:
    """Return the first and last position of the consecutive events that have the author and time of a given event.

    For published lists, `occurred_at` is compared instead of `recorded_at`, because `publish --due` records each list
    in a transaction of its own. With `type_name`, only events of this type count.
    """

    def is_part(record: str) -> bool:
        event = json.loads(record)
        are_lists = event["type"] in LIST_TYPES and reference["type"] in LIST_TYPES
        time_member = "occurred_at" if are_lists else "recorded_at"
        is_same = event[time_member] == reference[time_member] and event["by"] == reference["by"]
        return is_same and type_name in (None, event["type"])

    reference = json.loads(read_records_at(connection, [position])[position])
    first = last = position
    is_complete = False
    while first > 1 and not is_complete:
        page = next(read_records(connection, max(0, first - 1 - PAGE_EVENTS), first - 1))
        for record_position, record in reversed(page):
            if is_complete := not is_part(record):
                break
            first = record_position
    for page in read_records(connection, position):
        for record_position, record in page:
            if not is_part(record):
                return first, last
            last = record_position
    return first, last
