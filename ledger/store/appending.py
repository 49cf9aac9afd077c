"""Appending to the log: events already there are recognised, the rest go in all or none.

Appends are serialised by the store's own lock, taken before the head is read; a batch is one transaction.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from ratings_ledger.ledger.clock import Clock, is_ahead
from ratings_ledger.ledger.errors import NOT_STORED, ClockBehind, NotEmpty, StoreDamaged
from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.records import (
    EventRow,
    build_record,
    chain_hash,
    has_same_data,
    is_surely_small,
    leaf_hash,
    split_at_position,
)
from ratings_ledger.ledger.events.revisions import (
    SUPERSEDING,
    CombinedEvents,
    DraftBatch,
    EventLookup,
    find_superseded,
    is_live,
    refuse_stale,
)
from ratings_ledger.ledger.events.types import Draft, Ruleset, meaning
from ratings_ledger.ledger.processes.memory import collect_rarely, is_memory_limited
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import Head, Log, driver_cursor, head, lock_and_read_head, read_known_event
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.schema import events

# as many as a statement inserts; building them takes as long, and the store must not wait for the interpreter longer
ROWS_AHEAD = 160
LOOKUP_SIZE = 1_000

# drafts that the log does not have, with their indices among the given ones
Fresh = Sequence[tuple[int, Draft]]

# what is appended after drafts, given the first position and the indices of those that take positions, and the time
Closing = Callable[[int, Sequence[int], int], Sequence[Draft]]

# checks drafts again under the lock, given the head before them: (index, refusal) of each refused one
Recheck = Callable[[Connection, Head, Fresh], list[tuple[int, Rejection]]]


class AppendResult(NamedTuple):
    """What an append did. With refusals nothing was appended; each comes with its draft's index. `known` are the
    indices of the drafts that were already there."""

    appended: int
    existing: int
    refused: list[tuple[int, Rejection]]
    head: Head
    known: frozenset[int] = frozenset()


def find_existing(
    connection: Connection,
    drafts: Sequence[Draft],
    waiting: EventLookup | None = None,
    named: Iterable[tuple[str, str, str, str]] | None = None,
) -> dict[int, Rejection | None]:
    """Return the drafts, by index, that the log already holds: None for the same content, else the refusal.

    `waiting` are the events that will be appended before them; `named` are the events of the log that have one of their
    unique names.
    """
    by_id: dict[str, str] = {}
    game_subjects: dict[str, str] = {}
    for event_id, subject, type_name, record in _named(connection, drafts) if named is None else named:
        by_id[event_id] = record
        if type_name == "game.recorded":
            game_subjects[subject] = event_id
    found: dict[int, Rejection | None] = {}
    if not by_id and {draft.type for draft in drafts} == {"game.recorded"}:
        return found
    log, batch = Log(connection), DraftBatch()
    before = CombinedEvents(log if waiting is None else CombinedEvents(log, waiting), batch)
    for index, draft in enumerate(drafts):
        if draft.type == "event.voided" and before.event(draft.event_id) is None:
            # a version that is withdrawn first may be published again
            with suppress(Refused):
                batch.add(draft, find_superseded(before, draft.type, parse_object(draft.data.encode()))[0])
        published, rejection = False, None
        if draft.type == "ruleset.published":
            published, rejection = _published(log, before, draft)
        if published:
            found[index] = rejection
        elif draft.event_id in by_id:
            found[index] = None if has_same_content(by_id[draft.event_id], draft) else id_conflict_rejection(draft)
        elif draft.type == "game.recorded" and draft.subject in game_subjects:
            found[index] = game_exists_rejection(draft, game_subjects[draft.subject])
    return found


def list_unique_names(drafts: Sequence[Draft]) -> list[str]:
    """Return the names that no other event may have: ids, and recorded games."""
    of_games = (draft.subject for draft in drafts if draft.type == "game.recorded")
    return list({*(draft.event_id for draft in drafts), *of_games})


def _named(connection: Connection, drafts: Sequence[Draft]) -> Iterator[tuple[str, str, str, str]]:
    for start in range(0, len(drafts), LOOKUP_SIZE):
        with driver_cursor(connection) as cursor:
            yield from dialect_of(connection).find_events_named(
                cursor, list_unique_names(drafts[start : start + LOOKUP_SIZE])
            )


def _published(log: Log, before: EventLookup, draft: Draft) -> tuple[bool, Rejection | None]:
    """Tell whether the log has a ruleset's version, under whatever id and date, and the refusal if its content differs.

    `before` is what will have been recorded by then: a version may have been withdrawn.
    """
    given = Ruleset.model_validate(parse_object(draft.data.encode()))
    for event in log.about(draft.subject):
        if event.type != "ruleset.published" or not is_live(before, event):
            continue
        other = Ruleset.model_validate(event.data)
        if other.version == given.version:
            return True, None if other == given else version_exists_rejection(given)
    return False, None


def version_exists_rejection(ruleset: Ruleset) -> Rejection:
    """Return the refusal of a version that is published with different content."""
    return Rejection(
        "version-exists", f"{ruleset.name} is already published with different content; a change needs a new version"
    )


def id_conflict_rejection(draft: Draft) -> Rejection:
    """Return the refusal of a draft whose id is taken by different content."""
    if draft.type == "game.recorded" and draft.event_id == draft.subject:
        game_id = quote(draft.subject.removeprefix("game:"))
        return Rejection(
            "id-conflict",
            f"the game {game_id} is recorded already with another content: ratings correct puts it right; another game "
            "needs another game_id",
        )
    return Rejection(
        "id-conflict", f"an event with the id {quote(draft.event_id)} but different content is already recorded"
    )


def game_exists_rejection(draft: Draft, event_id: str) -> Rejection:
    """Return the refusal of a draft whose game is recorded under a different event id."""
    return Rejection(
        "game-exists",
        f"{quote(draft.subject.removeprefix('game:'))} is already recorded, by the event {quote(event_id)}",
    )


def has_same_content(record: str, draft: Draft) -> bool:
    """Tell whether a record says what the draft says, defaults filled in."""
    if has_same_data(record, draft):
        return True
    try:
        event = read_known_event(parse_object(record.encode()).get("position", 0), record)
    except Refused:
        return False  # what no event can say is not an event
    return event.type == draft.type and _same_data(draft, event.occurred_at, event.data)


def are_same_drafts(one: Draft, other: Draft) -> bool:
    """Tell whether two drafts say the same, defaults filled in."""
    return one.type == other.type and _same_data(one, other.occurred_at, parse_object(other.data.encode()))


def _same_data(draft: Draft, occurred_at: int, data: dict[str, Any]) -> bool:
    if draft.occurred_at != occurred_at:
        return False
    given = parse_object(draft.data.encode())
    return data == given or meaning(draft.type, occurred_at, data) == meaning(draft.type, occurred_at, given)


def next_recorded_at(before: Head, clock: Clock, ignore_clock: bool) -> int:
    """Return the time of the next record: now, or the head's time if that is slightly later. Raises `ClockBehind`."""
    now = clock()
    if is_ahead(before.recorded_at, now) and not ignore_clock:
        raise ClockBehind(
            f"the last event was recorded at {format_instant(before.recorded_at)}, but this machine's clock says "
            f"{format_instant(now)}; set the clock right, or append with the head's time using --ignore-clock"
        )
    return max(now, before.recorded_at)


# who records what, by which clock, and what is checked and added under the lock: by keyword
def append(
    ledger: Ledger,
    drafts: Sequence[Draft],
    *,
    by: str,
    clock: Clock,
    ignore_clock: bool = False,
    recheck: Recheck | None = None,
    absent_at: int | None = None,
    closing: Closing | None = None,
) -> AppendResult:
    """Append the drafts that are not in the log yet, in order, in one transaction; all of them or none.

    The ids and games of `drafts` are distinct. `recheck` is called under the lock. If the log's head is still at
    `absent_at`, where `find_existing` did not find them, they are not looked up again. The drafts that `closing`
    returns are appended last in the same transaction, and are not counted. Raises `ClockBehind`, `StoreUnavailable`.
    """
    clock = cache(clock)  # read once
    if len(drafts) == 1 and closing is None and (recheck is None or absent_at is not None):
        done = _append_one(ledger, drafts[0], by, clock, None if recheck is None else absent_at)
        if done is not None:
            return done
    with collect_rarely(), ledger.writing("writer", appends=True) as connection:
        # a few are looked up along with the head
        few = len(drafts) <= LOOKUP_SIZE
        before, named = lock_and_read_head(connection, list_unique_names(drafts) if few else ())
        known = {} if before.position == absent_at else find_existing(connection, drafts, named=named if few else None)
        refused = [(index, rejection) for index, rejection in known.items() if rejection is not None]
        fresh = [(index, draft) for index, draft in enumerate(drafts) if index not in known]
        after = before
        if fresh and not refused and recheck is not None:
            refused = recheck(connection, before, fresh)
        if (fresh or closing is not None) and not refused:
            recorded_at = next_recorded_at(before, clock, ignore_clock)
            supersedes, refused = _superseding(Log(connection), fresh, before.position + 1, recorded_at, by)
        if refused:
            return AppendResult(0, len(known) - len(refused), refused, before)
        behind: list[tuple[int, Draft]] = []
        if closing is not None:
            closed = closing(before.position + 1, [index for index, _ in fresh], recorded_at)
            behind = list(enumerate(closed, len(drafts)))
        if rows := [*fresh, *behind]:
            after = insert_event_rows(connection, _ahead(_rows(rows, before, recorded_at, by, supersedes)), before)
    return AppendResult(len(fresh), len(known), [], after, frozenset(known))


def _append_one(ledger: Ledger, draft: Draft, by: str, clock: Clock, head_seen: int | None) -> AppendResult | None:
    """Append a draft in as few steps as the store can, if there is nothing to decide; else append nothing: None.

    `head_seen`: the position up to which it was checked against the log, or None if that does not matter.
    """
    plain = draft.type not in SUPERSEDING and draft.type != "ruleset.published" and draft.supersedes is None
    if not plain or not is_surely_small(draft, by):
        return None
    recorded_by = draft.by or by

    def values() -> tuple[Any, ...]:
        now = clock()
        return (
            draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at, now, recorded_by,
            *split_at_position(draft, now, recorded_by), head_seen,
        )  # fmt: skip

    done = ledger.dialect.append_one(ledger, values)
    return None if done is None else AppendResult(1, 0, [], Head(*done))


def _superseding(
    log: Log, fresh: Fresh, position: int, recorded_at: int, by: str
) -> tuple[dict[int, str], list[tuple[int, Rejection]]]:
    """Return what drafts at a position and after it now supersede, by index; and which of them cannot be appended."""
    found: dict[int, str] = {}
    refused: list[tuple[int, Rejection]] = []
    batch = DraftBatch() if any(draft.type in SUPERSEDING for _, draft in fresh) else None
    for place, (index, draft) in enumerate(fresh, position):
        try:
            supersedes = None if batch is None else _superseded(CombinedEvents(log, batch), draft)
            if supersedes is not None or not is_surely_small(draft, by):
                build_record(draft, place, recorded_at, draft.by or by, supersedes)
        except Refused as problem:
            refused.append((index, problem.rejection()))
            continue
        if supersedes is not None:
            found[index] = supersedes
        if batch is not None:
            batch.add(draft, supersedes)
    return found, refused


def _superseded(events: EventLookup, draft: Draft) -> str | None:
    """Return the event that a draft supersedes: the one it was checked against, if any. Raises `Refused`."""
    refuse_stale(events, draft)
    return draft.supersedes or find_superseded(events, draft.type, parse_object(draft.data.encode()))[0]


def _rows(fresh: Fresh, before: Head, recorded_at: int, by: str, supersedes: Mapping[int, str]) -> Iterator[EventRow]:
    """Yield the rows of drafts that continue the log."""
    chain = before.chain_hash
    for position, (index, draft) in enumerate(fresh, before.position + 1):
        recorded_by, superseding = draft.by or by, supersedes.get(index)
        record = build_record(draft, position, recorded_at, recorded_by, superseding)
        leaf = leaf_hash(record)
        chain = chain_hash(chain, leaf)
        yield EventRow(
            position, draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at, recorded_at,
            recorded_by, superseding, record, leaf, chain,
        )  # fmt: skip


def _ahead(rows: Iterator[EventRow]) -> Iterator[EventRow]:
    """Yield the rows; if there are many, a thread builds the next ones while the store inserts the previous ones."""
    few = list(islice(rows, ROWS_AHEAD))
    if len(few) < ROWS_AHEAD or is_memory_limited():
        yield from few
        yield from rows
        return
    with ThreadPoolExecutor(1) as thread:
        while few:
            coming = thread.submit(list, islice(rows, ROWS_AHEAD))
            yield from few
            few = coming.result()


def insert_event_rows(connection: Connection, rows: Iterable[EventRow], before: Head) -> Head:
    """Insert rows that continue the log, as they are, while holding the append lock. Returns the new head.

    Raises `StoreDamaged` unless all of them are then there: nothing is acknowledged that is not stored.
    """
    last = before

    def noted() -> Iterator[EventRow]:
        nonlocal last
        for row in rows:
            last = Head(row.position, row.chain_hash, row.recorded_at)
            yield row

    with driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, events.name, EventRow._fields, noted())
    behind = select(func.count()).where(events.c.position > before.position)
    if head(connection) != last or connection.execute(behind).scalar_one() != last.position - before.position:
        raise StoreDamaged(NOT_STORED)
    return last


def require_empty(ledger: Ledger) -> Head:
    """Return the head of a ledger without events. Raises `NotEmpty`."""
    with ledger.reading() as connection:
        return _empty(ledger, head(connection))


def _empty(ledger: Ledger, latest: Head) -> Head:
    if latest.position:
        raise NotEmpty(
            f"{ledger.location} holds {latest.position} events; --restore needs an empty ledger "
            "(make one with: ratings --db NEW init --no-rules)"
        )
    return latest


def append_restored(
    ledger: Ledger, rows: Iterable[EventRow], check: Callable[[Connection, Head], None] = lambda *_: None
) -> Head:
    """Insert the rows of an export into an empty ledger in one transaction: half a ledger would look like a whole one.
    `check` may still refuse them at the end.

    Raises `NotEmpty`, and what `check` raises.
    """
    with ledger.writing("writer", appends=True) as connection:
        ledger.dialect.lock_appends(connection)
        latest = insert_event_rows(connection, rows, _empty(ledger, head(connection)))
        check(connection, latest)
    return latest
