"""Append drafts to the log: skip drafts that the log already holds, and append all others or none.

Each append is one transaction. It takes the store's append lock before it reads the head, so appends never overlap.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from ratings_ledger.ledger.clock import Clock, choose_recorded_at
from ratings_ledger.ledger.errors import NOT_STORED, NotEmpty, StoreDamaged
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.records import (
    EventRow,
    build_record,
    chain_hash,
    fits_at_any_position,
    leaf_hash,
    matches_draft,
    split_at_position,
)
from ratings_ledger.ledger.events.revisions import (
    SUPERSEDING,
    CombinedEvents,
    DraftIndex,
    EventLookup,
    find_superseded,
    is_live,
    refuse_stale,
)
from ratings_ledger.ledger.events.rulesets import build_version_exists_rejection
from ratings_ledger.ledger.events.types import Draft, Ruleset, to_canonical_content
from ratings_ledger.ledger.processes.memory import collect_rarely, is_memory_limited
from ratings_ledger.ledger.rejections import Refused, Rejection, count, quote
from ratings_ledger.ledger.store.dialect import NamedEvent, dialect_of
from ratings_ledger.ledger.store.log import Head, Log, head, lock_and_read_head, open_driver_cursor, read_known_event
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.schema import events

# how many rows a thread builds ahead; one statement inserts as many in about the same time
ROWS_AHEAD = 160
# how many drafts one statement looks up
LOOKUP_SIZE = 1_000

# (index among all drafts of an append, draft) for each draft that the log does not hold
FreshDrafts = Sequence[tuple[int, Draft]]

# (position of the first fresh draft, indices of the fresh drafts, time) -> the drafts to append after all others
BuildLastDrafts = Callable[[int, Sequence[int], int], Sequence[Draft]]

# (connection, head, fresh drafts) -> (index, refusal) of each draft that a check under the lock refuses
Recheck = Callable[[Connection, Head, FreshDrafts], list[tuple[int, Rejection]]]


class AppendResult(NamedTuple):
    """The result of an append. If any draft was refused, nothing was appended.

    appended          the number of appended drafts
    existing          the number of drafts that the log already held
    refused           (index, refusal) of each refused draft
    head              the head of the log after the append
    existing_indices  the indices of the drafts that the log already held; empty if any draft was refused
    """

    appended: int
    existing: int
    refused: list[tuple[int, Rejection]]
    head: Head
    existing_indices: frozenset[int] = frozenset()


def find_existing(
    connection: Connection,
    drafts: Sequence[Draft],
    waiting: EventLookup | None = None,
    named_events: Iterable[NamedEvent] | None = None,
) -> dict[int, Rejection | None]:
    """Find the drafts whose id, game or version the log already holds.

    Args:
        connection: A connection to the ledger.
        drafts: The drafts to look up.
        waiting: Events that will be appended before the drafts.
        named_events: The events of the log with a name in `list_unique_names(drafts)`, if the caller has read them.

    Returns:
        An entry for each of these drafts, by index: None if the content is the same, else the refusal.
    """
    by_id: dict[str, str] = {}
    game_subjects: dict[str, str] = {}
    for event_id, subject, type_name, record in (
        _iterate_named_events(connection, drafts) if named_events is None else named_events
    ):
        by_id[event_id] = record
        if type_name == "game.recorded":
            game_subjects[subject] = event_id
    existing: dict[int, Rejection | None] = {}
    if not by_id and {draft.type for draft in drafts} == {"game.recorded"}:
        return existing
    log, earlier_drafts = Log(connection), DraftIndex()
    earlier_events = CombinedEvents(log if waiting is None else CombinedEvents(log, waiting), earlier_drafts)
    for index, draft in enumerate(drafts):
        if draft.type == "event.voided" and earlier_events.event(draft.event_id) is None:
            # an earlier draft may withdraw a version, and a later one publish it again
            with suppress(Refused):
                supersedes, _ = find_superseded(earlier_events, draft.type, parse_object(draft.data.encode()))
                earlier_drafts.add(draft, supersedes)
        is_published, rejection = False, None
        if draft.type == "ruleset.published":
            is_published, rejection = _find_published_version(log, earlier_events, draft)
        if is_published:
            existing[index] = rejection
        elif draft.event_id in by_id:
            existing[index] = (
                None if has_same_content(by_id[draft.event_id], draft) else build_id_conflict_rejection(draft)
            )
        elif draft.type == "game.recorded" and draft.subject in game_subjects:
            existing[index] = build_game_exists_rejection(draft, game_subjects[draft.subject])
    return existing


def list_unique_names(drafts: Sequence[Draft]) -> list[str]:
    """List the names of these drafts that only one event may have: event ids, and the subjects of recorded games."""
    game_subjects = (draft.subject for draft in drafts if draft.type == "game.recorded")
    return list({*(draft.event_id for draft in drafts), *game_subjects})


def _iterate_named_events(connection: Connection, drafts: Sequence[Draft]) -> Iterator[NamedEvent]:
    for start in range(0, len(drafts), LOOKUP_SIZE):
        with open_driver_cursor(connection) as cursor:
            yield from dialect_of(connection).find_events_named(
                cursor, list_unique_names(drafts[start : start + LOOKUP_SIZE])
            )


def _find_published_version(log: Log, earlier_events: EventLookup, draft: Draft) -> tuple[bool, Rejection | None]:
    """Tell whether the log holds the version that a draft publishes, and return the refusal if the contents differ.

    The event's id and date do not matter. `earlier_events` holds all events before the draft, because one of them may
    withdraw the version.
    """
    ruleset = Ruleset.model_validate(parse_object(draft.data.encode()))
    for event in log.about(draft.subject):
        if event.type != "ruleset.published" or not is_live(earlier_events, event):
            continue
        published = Ruleset.model_validate(event.data)
        if published.version == ruleset.version:
            return True, None if published == ruleset else build_version_exists_rejection(ruleset)
    return False, None


def build_id_conflict_rejection(draft: Draft) -> Rejection:
    """Build the refusal of a draft whose id belongs to an event with different content."""
    if draft.type == "game.recorded" and draft.event_id == draft.subject:
        game_id = quote(draft.subject.removeprefix("game:"))
        return Rejection(
            "id-conflict",
            f"the game {game_id} is already recorded with different content: to correct it, run: ratings correct; "
            "another game needs another game_id",
        )
    return Rejection(
        "id-conflict",
        f"an event with the id {quote(draft.event_id)} but different content is already recorded; give this event "
        "another id",
    )


def build_game_exists_rejection(draft: Draft, event_id: str) -> Rejection:
    """Build the refusal of a draft whose game is already recorded under another event id."""
    return Rejection(
        "game-exists",
        f"{quote(draft.subject.removeprefix('game:'))} is already recorded, by the event {quote(event_id)}; to correct "
        "the game, run: ratings correct",
    )


def has_same_content(record: str, draft: Draft) -> bool:
    """Tell whether a record and a draft have the same content after defaults are filled in."""
    if matches_draft(record, draft):
        return True
    try:
        event = read_known_event(parse_object(record.encode()).get("position", 0), record)
    except Refused:
        return False
    return event.type == draft.type and _has_equal_data(draft, event.occurred_at, event.data)


def are_equal_drafts(left: Draft, right: Draft) -> bool:
    """Tell whether two drafts have the same content after defaults are filled in."""
    return left.type == right.type and _has_equal_data(left, right.occurred_at, parse_object(right.data.encode()))


def _has_equal_data(draft: Draft, occurred_at: int, data: dict[str, Any]) -> bool:
    if draft.occurred_at != occurred_at:
        return False
    draft_data = parse_object(draft.data.encode())
    return data == draft_data or to_canonical_content(draft.type, occurred_at, data) == to_canonical_content(
        draft.type, occurred_at, draft_data
    )


# eight parameters: a caller passes only the checks that it needs
def append(
    ledger: Ledger,
    drafts: Sequence[Draft],
    *,
    by: str,
    clock: Clock,
    ignore_clock: bool = False,
    recheck: Recheck | None = None,
    absent_at: int | None = None,
    build_last: BuildLastDrafts | None = None,
) -> AppendResult:
    """Append the drafts that the log does not hold, in order, in one transaction; all of them or none.

    Args:
        ledger: The opened ledger.
        drafts: The drafts, with distinct ids and games.
        by: The recorder of the drafts that do not name one.
        clock: Returns the time in microseconds.
        ignore_clock: Use the head's time even if the clock is far behind it.
        recheck: A check to call under the lock.
        absent_at: A position of the head at which `find_existing` found none of the drafts. If the head is still at
            this position, the drafts are not looked up again.
        build_last: Builds drafts to append last in the same transaction. The result does not count them.

    Raises:
        ClockBehind: The clock is far behind the head's time.
        StoreDamaged: The store has unexpected objects, or did not keep the rows.
        StoreUnavailable: The store cannot be written.
    """
    clock = cache(clock)  # all records of a batch get the same time
    if len(drafts) == 1 and build_last is None and (recheck is None or absent_at is not None):
        checked_head = None if recheck is None else absent_at
        result = _append_one(ledger, drafts[0], by=by, clock=clock, checked_head=checked_head)
        if result is not None:
            return result
    with collect_rarely(), ledger.writing("writer", appends=True) as connection:
        # the query that reads the head also looks up the names of a small batch
        is_small = len(drafts) <= LOOKUP_SIZE
        previous_head, named_events = lock_and_read_head(connection, list_unique_names(drafts) if is_small else ())
        existing = (
            {}
            if previous_head.position == absent_at
            else find_existing(connection, drafts, named_events=named_events if is_small else None)
        )
        refused = [(index, rejection) for index, rejection in existing.items() if rejection is not None]
        fresh = [(index, draft) for index, draft in enumerate(drafts) if index not in existing]
        new_head = previous_head
        if fresh and not refused and recheck is not None:
            refused = recheck(connection, previous_head, fresh)
        if (fresh or build_last is not None) and not refused:
            recorded_at = choose_recorded_at(previous_head.recorded_at, clock, ignore_clock)
            supersedes, refused = _resolve_superseded(
                Log(connection), fresh, first_position=previous_head.position + 1, recorded_at=recorded_at, by=by
            )
        if refused:
            return AppendResult(0, [*existing.values()].count(None), refused, previous_head)
        last_drafts: list[tuple[int, Draft]] = []
        if build_last is not None:
            built = build_last(previous_head.position + 1, [index for index, _ in fresh], recorded_at)
            last_drafts = list(enumerate(built, len(drafts)))
        if new_drafts := [*fresh, *last_drafts]:
            rows = _build_rows(new_drafts, previous_head, recorded_at=recorded_at, by=by, supersedes=supersedes)
            new_head = insert_event_rows(connection, _build_ahead(rows), previous_head)
    return AppendResult(len(fresh), len(existing), [], new_head, frozenset(existing))


def _append_one(
    ledger: Ledger, draft: Draft, *, by: str, clock: Clock, checked_head: int | None
) -> AppendResult | None:
    """Append a draft that supersedes nothing, in the fewest steps.

    Append nothing and return None if only the full checks of `append` can decide. `checked_head` is the position of the
    head at the check of the draft, or None if no check depends on the head.
    """
    is_plain = draft.type not in SUPERSEDING and draft.type != "ruleset.published" and draft.supersedes is None
    if not is_plain or not fits_at_any_position(draft, by):
        return None
    recorded_by = draft.by or by

    def build_values() -> tuple[Any, ...]:
        now = clock()
        columns = (draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at)
        return (*columns, now, recorded_by, *split_at_position(draft, now, recorded_by), checked_head)

    new_head = ledger.dialect.append_one(ledger, build_values)
    return None if new_head is None else AppendResult(1, 0, [], Head(*new_head))


def _resolve_superseded(
    log: Log, fresh: FreshDrafts, *, first_position: int, recorded_at: int, by: str
) -> tuple[dict[int, str], list[tuple[int, Rejection]]]:
    """Return the ids of the events that the drafts supersede, by index, and (index, refusal) of each refused draft.

    `first_position` is the position that the first draft will get.
    """
    superseded: dict[int, str] = {}
    refused: list[tuple[int, Rejection]] = []
    earlier_drafts = DraftIndex() if any(draft.type in SUPERSEDING for _, draft in fresh) else None
    for position, (index, draft) in enumerate(fresh, first_position):
        try:
            supersedes = (
                None if earlier_drafts is None else _find_superseded_id(CombinedEvents(log, earlier_drafts), draft)
            )
            # before any row is stored
            refuse_large_record(draft, position, recorded_at, by, supersedes)
        except Refused as problem:
            refused.append((index, problem.to_rejection()))
            continue
        if supersedes is not None:
            superseded[index] = supersedes
        if earlier_drafts is not None:
            earlier_drafts.add(draft, supersedes)
    return superseded, refused


def refuse_large_record(draft: Draft, position: int, recorded_at: int, by: str, supersedes: str | None) -> None:
    """Raise `Refused` (record-too-large) if the record of a draft would be too large."""
    if not fits_at_any_position(draft, by):
        build_record(draft, position, recorded_at, draft.by or by, supersedes)


def _find_superseded_id(events: EventLookup, draft: Draft) -> str | None:
    """Return the id of the event that a draft supersedes, or None. Raises `Refused` if the draft is outdated."""
    refuse_stale(events, draft)
    return draft.supersedes or find_superseded(events, draft.type, parse_object(draft.data.encode()))[0]


def _build_rows(
    fresh: FreshDrafts, previous_head: Head, *, recorded_at: int, by: str, supersedes: Mapping[int, str]
) -> Iterator[EventRow]:
    """Yield the rows of the drafts, which follow the head `previous_head`."""
    chain = previous_head.chain_hash
    for position, (index, draft) in enumerate(fresh, previous_head.position + 1):
        recorded_by, superseded = draft.by or by, supersedes.get(index)
        record = build_record(draft, position, recorded_at, recorded_by, superseded)
        leaf = leaf_hash(record)
        chain = chain_hash(chain, leaf)
        yield EventRow(
            position=position,
            event_id=draft.event_id,
            type=draft.type,
            schema_version=draft.schema_version,
            subject=draft.subject,
            occurred_at=draft.occurred_at,
            recorded_at=recorded_at,
            recorded_by=recorded_by,
            supersedes=superseded,
            record=record,
            leaf_hash=leaf,
            chain_hash=chain,
        )


def _build_ahead(rows: Iterator[EventRow]) -> Iterator[EventRow]:
    """Yield the rows. If there are many, a thread builds the next rows while the store inserts the previous ones."""
    block = list(islice(rows, ROWS_AHEAD))
    if len(block) < ROWS_AHEAD or is_memory_limited():
        yield from block
        yield from rows
        return
    with ThreadPoolExecutor(1) as thread:
        while block:
            next_block = thread.submit(list, islice(rows, ROWS_AHEAD))
            yield from block
            block = next_block.result()


def insert_event_rows(connection: Connection, rows: Iterable[EventRow], previous_head: Head) -> Head:
    """Insert rows that follow the head `previous_head`, and return the new head. The caller holds the append lock.

    Raises `StoreDamaged` unless the store then holds all rows, so that only stored rows are acknowledged.
    """
    last = previous_head

    def track_last() -> Iterator[EventRow]:
        nonlocal last
        for row in rows:
            last = Head(row.position, row.chain_hash, row.recorded_at)
            yield row

    with open_driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, events.name, EventRow._fields, track_last())
    count_query = select(func.count()).where(events.c.position > previous_head.position)
    expected_count = last.position - previous_head.position
    if head(connection) != last or connection.execute(count_query).scalar_one() != expected_count:
        raise StoreDamaged(NOT_STORED)
    return last


def require_empty(ledger: Ledger) -> Head:
    """Return the head of a ledger without events. Raises `NotEmpty` if the ledger has events."""
    with ledger.reading() as connection:
        return _require_no_events(ledger, head(connection))


def _require_no_events(ledger: Ledger, latest: Head) -> Head:
    if latest.position:
        raise NotEmpty(
            f"{ledger.location} holds {count(latest.position, 'event')}; --restore needs an empty ledger "
            "(create one with: ratings --db NEW init --no-rules)"
        )
    return latest


def append_restored(
    ledger: Ledger, rows: Iterable[EventRow], check: Callable[[Connection, Head], None] = lambda *_: None
) -> Head:
    """Insert the rows of an export into an empty ledger, and return its head.

    One transaction inserts them, because a partial ledger would look complete. `check` may refuse the rows before the
    commit. Raises `NotEmpty`, `StoreDamaged`, `StoreUnavailable`, and the errors of `check`.
    """
    with ledger.writing("writer", appends=True) as connection:
        ledger.dialect.lock_appends(connection)
        latest = insert_event_rows(connection, rows, _require_no_events(ledger, head(connection)))
        check(connection, latest)
    return latest
