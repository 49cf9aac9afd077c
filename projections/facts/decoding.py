"""Decode the log into facts: read them from the cache, or apply all events in order, in bulk if there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.canonical import INSTANT_MAX, parse_record_instant
from ratings_ledger.ledger.events.records import ZERO, build_record
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.processes.memory import collect_rarely, trim_heap
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    find_first_positions,
    head,
    read_chain_hash,
    read_known_event,
    read_live,
    read_records,
    read_records_at,
    read_valid_events,
)
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.applying import apply, apply_event, settle_facts, update_row
from ratings_ledger.projections.facts.columns import NONE, CacheSizes, Facts

if TYPE_CHECKING:
    from ratings_ledger.projections.facts import column_cache


# logs of at least CACHED_EVENTS are cached; the cache grows by DELTA_EVENTS at a time
CACHED_EVENTS = 20_000
DELTA_EVENTS = 1_000_000
TRIES_MAX = 8  # a cache that is damaged at this number of tries in a row is not used
# fewer events are decoded one by one, because loading the libraries for bulk decoding takes longer
BULK_EVENTS = 10_000
CHANGE_TYPES = ("game.corrected", "game.voided", "game.reinstated")


def decode(
    connection: Connection, known_at: int | None = None, *, ahead: int = 0, cached: bool = True, lazily: bool = False
) -> Facts:
    """Return the facts recorded up to a position. Raises `StoreDamaged`.

    Args:
        known_at: the position; by default the head of the log
        ahead: a later position up to which the caller may extend the facts
        cached: read a long log from the cache
        lazily: check columns of the cache only when they are read; if reading then raises `DamagedFile`, the caller
            must decode again
    """
    log_head = head(connection)
    last_position = log_head.position
    position = last_position if known_at is None else min(known_at, last_position)
    facts = None
    if cached and last_position >= CACHED_EVENTS:
        facts = _read_from_cache(connection, last_position, position, lazily)
    if facts is None:
        facts = Facts(0, ZERO)
        _request_game_rows(connection, facts, max(position, ahead))
        extend(facts, connection, position, log_head.chain_hash if position == last_position else None)
    else:
        _request_game_rows(connection, facts, ahead)
    return facts


def decode_to_store(connection: Connection, position: int | None = None) -> Facts:
    """Decode facts whose results will be stored.

    Raises `StoreUnavailable` if other accounts have any rights in the cache of a long log.
    """
    if head(connection).position >= CACHED_EVENTS:
        from ratings_ledger.projections.facts import column_cache

        column_cache.refuse_shared_cache(connection)
    return decode(connection, position)


def read_rulesets_at(connection: Connection, position: int) -> Facts:
    """Return facts with only the rulesets at a position. Reads no games, so this is fast for any log."""
    facts = Facts(position, read_chain_hash(connection, position) or ZERO)
    for event in read_live(connection, until=position, type_name="ruleset.published"):
        apply(facts, event.position or 0, event)
    settle_facts(facts)
    return facts


def _read_from_cache(connection: Connection, head_position: int, position: int, lazily: bool) -> Facts | None:
    """Return the facts at a position, mapped from the cache; None if the position is 0 or the cache cannot be used.

    Extends the cache to the head if necessary, and repairs a damaged cache.
    """
    from ratings_ledger.projections.facts import column_cache  # imported only for long logs
    from ratings_ledger.projections.facts.column_files import DamagedFile, UnreadableFile

    cache = column_cache.find_cache(connection, head_position)
    if cache is None:
        return None
    try:
        if 0 < position <= cache.position:
            with suppress(DamagedFile):
                return _complete_cached_facts(connection, cache, position, lazily)
        return _grow_cache(connection, cache.root, head_position, position, lazily)
    except (DamagedFile, UnreadableFile, StoreDamaged) as error:
        column_cache.logger.warning("ratings: the cache in %s is not used: %s", cache.root, str(error))
        return None


def _grow_cache(connection: Connection, root: Path, head_position: int, position: int, lazily: bool) -> Facts | None:
    """Extend the cache to the head. Return the facts at a position; None if this is 0 or the cache cannot be extended.

    Raises `DamagedFile` if the cache is damaged at each of `TRIES_MAX` tries, `UnreadableFile`, `StoreDamaged`.
    """
    from ratings_ledger.projections.facts import column_cache
    from ratings_ledger.projections.facts.column_files import DamagedFile

    with column_cache.lock_cache(root) as is_locked:
        for tries_left in reversed(range(TRIES_MAX)) if is_locked else ():
            # another process may have changed the cache in the meantime
            cache = column_cache.find_cache(connection, head_position, locked=True)
            try:
                while cache is not None and cache.position < head_position:
                    until = cache.position + DELTA_EVENTS
                    if head_position - until < DELTA_EVENTS // 8:  # the rest is too short for a segment of its own
                        until = head_position
                    # segments cannot cover absent positions, and billions of positions may be absent
                    if read_chain_hash(connection, until) is None or not cache.append(
                        _read_delta(connection, cache, until)
                    ):
                        return None
                if cache is None or not position:
                    return None
                cache.merge(column_cache.MERGE_RATIO)
                trim_heap()  # saves a sixth of the memory for a long history
                return _complete_cached_facts(connection, cache, position, lazily)
            except DamagedFile as error:
                error.discard()
                if not tries_left:
                    raise
    return None


def _read_delta(connection: Connection, cache: column_cache.Cache, until: int) -> Facts:
    """Return the facts recorded after the end of a cache, up to a position."""
    delta = cache.start_delta()
    _request_game_rows(connection, delta, until, cache.row_of)
    _apply_pages(delta, connection, until)
    delta.position, delta.chain_hash = until, read_chain_hash(connection, until) or ZERO
    return delta


def _complete_cached_facts(connection: Connection, cache: column_cache.Cache, position: int, lazily: bool) -> Facts:
    """Return the facts at a position from a cache, with the cached changes of games and other events applied."""
    from ratings_ledger.projections.facts.column_files import TRACES, DamagedFile, list_files

    facts = cache.read_facts(position)
    facts.chain_hash = read_chain_hash(connection, position) or ZERO
    try:
        for event_position, record in facts.other_records:
            apply_event(facts, event_position, record)
    except StoreDamaged as error:
        raise DamagedFile(str(error), cache.folder) from None
    unread_records = {
        event_position: record for event_position, record in facts.other_records if event_position in facts.unread
    }
    if unread_records != read_records_at(connection, list(unread_records)):
        raise DamagedFile("its events differ from the events in the log", cache.folder)
    clock_positions = find_first_positions(connection, facts.recorded.clocks)
    facts.rows.update(
        {
            name: facts.row_of(event_position) if event_position <= position else NONE
            for name, event_position in clock_positions.items()
        }
    )
    for change in facts.changes:
        update_row(facts, change)
    facts.other_records, facts.changes = [], []
    if not lazily:
        facts.check()
        facts.release_pages()
    settle_facts(facts)
    set_recorded_until(facts, connection)
    facts.cache, facts.has_later_events = cache.root, False
    for event_position, _ in list_files(cache.root / TRACES):
        # a trace beyond the end of the log belongs to the log before a restore
        if (chain_hash := read_chain_hash(connection, event_position)) is not None:
            facts.hashes[event_position] = chain_hash
    facts.hashes[position] = facts.chain_hash
    return facts


def _request_game_rows(
    connection: Connection, facts: Facts, until: int, row_of: Callable[[int], int] | None = None
) -> None:
    """Enter into `facts.rows` the games that events up to `until` refer to, because applying these needs the rows.

    `row_of` finds the row of a game by its first position; the default searches the facts.
    """
    names = _find_changed_games(connection, facts.position, until, (*CHANGE_TYPES, "clock.started"))
    facts.rows.update(dict.fromkeys(names - facts.rows.keys(), NONE))
    if facts.position:
        for name, first_position in find_first_positions(connection, names).items():
            if first_position <= facts.position:
                facts.rows[name] = (row_of or facts.row_of)(first_position)


def _find_changed_games(connection: Connection, after: int, until: int, types: Sequence[str]) -> set[str]:
    """Return the ids of the games to which events of some types refer, after the position `after` up to `until`."""
    return {event.data["game_id"] for event in read_valid_events(connection, types, until=until, after=after)}


def extend(facts: Facts, connection: Connection, until: int, chain_hash: bytes | None = None) -> None:
    """Apply the events recorded after the facts, up to a position. `chain_hash` is the hash there, if it is known."""
    _apply_pages(facts, connection, until)
    facts.position, facts.chain_hash = until, chain_hash or read_chain_hash(connection, until) or ZERO
    settle_facts(facts)
    set_recorded_until(facts, connection)


def set_recorded_until(facts: Facts, connection: Connection) -> None:
    """Set `recorded_until` to the time of the last record, if a ruleset has rating periods that it closes."""
    if any(version.ruleset.period != "game" for versions in facts.rulesets.values() for version in versions):
        record = read_records_at(connection, [facts.position]).get(facts.position)
        facts.recorded_until = INSTANT_MAX if record is None else parse_record_instant(from_json(record)["recorded_at"])


def follow_log(facts: Facts, connection: Connection, until: int) -> Facts:
    """Return a copy of the facts, extended up to a later position of the same log. Raises `StoreDamaged`.

    Results computed from the copy are not cached.
    """
    later = facts.clone()
    later.has_later_events = True
    catch_up(later, connection, until)
    return later


def catch_up(facts: Facts, connection: Connection, until: int, chain_hash: bytes | None = None) -> None:
    """Extend facts up to a position, in place. Results computed from the facts become outdated."""
    _request_game_rows(connection, facts, until)
    extend(facts, connection, until, chain_hash)


def decode_text(text: Any, after: int, until: int) -> Facts:
    """Decode the events after position `after`, up to `until`, from a text with one record per line.

    The facts hold games as first recorded, in rows from 0 on, and the records of all other events in `other_records`.
    Needs the extra `fast`. Raises `StoreDamaged`.
    """
    from ratings_ledger.projections.facts import bulk_decoding

    facts = Facts(after, b"", base=CacheSizes(0, 0, 0, 0, 0, dict.fromkeys(Facts(0, b"").of_kind, 0)))
    bulk_decoding.decode_lines(facts, text, apply_event)
    facts.position = until
    return facts


def extend_with_drafts(facts: Facts, drafts: Iterable[Draft], apply_draft: Callable[[Facts, int, Draft], None]) -> None:
    """Apply drafts in order, as if they were recorded after the facts. Many plain games are decoded in bulk.

    `apply_draft` applies a draft at a position, and enters the draft's game into `facts.rows`.
    """
    remaining = enumerate(drafts, facts.position + 1)
    first = [*islice(remaining, BULK_EVENTS)]
    if len(first) < BULK_EVENTS or not compiling.is_allowed():
        for position, draft in chain(first, remaining):
            apply_draft(facts, position, draft)
        return
    from ratings_ledger.projections.facts import bulk_decoding

    facts.has_later_events, page = True, dict[int, Draft]()

    def write_pages() -> Iterator[bytes]:
        unwritten = chain(first, remaining)
        while page_drafts := dict(islice(unwritten, bulk_decoding.PAGE_EVENTS)):
            page.clear()
            page.update(page_drafts)
            games = (
                draft.subject.removeprefix("game:") for draft in page_drafts.values() if draft.type == "game.recorded"
            )
            facts.rows.update((game_id, NONE) for game_id in games if game_id not in facts.rows)
            # facts do not contain the recorder and the time of recording, so any values will do
            yield "".join(
                f"{build_record(draft, position, 0, '-')}\n" for position, draft in page_drafts.items()
            ).encode()

    with collect_rarely():
        bulk_decoding.decode_contents(
            facts,
            write_pages(),
            facts.position,
            lambda facts, position, record: apply_draft(facts, position, page[position]),
        )


def decode_changes_after(
    connection: Connection, earlier: Sequence[tuple[int, str]], position: int, until: int
) -> Facts:
    """Return the facts up to `until`, without games recorded up to `position` that no event changed.

    `earlier` holds all events up to `position` except the first records of games. Later events are read from the log.
    Raises `StoreDamaged`.
    """
    facts = Facts(0, ZERO)
    changed_games = {event.data["game_id"] for event in _list_game_changes(earlier)}
    changed_games |= _find_changed_games(connection, position, until, CHANGE_TYPES)
    facts.rows = dict.fromkeys(changed_games, NONE)
    first_positions_of_games = find_first_positions(connection, changed_games)
    originals = read_records_at(
        connection,
        sorted(event_position for event_position in first_positions_of_games.values() if event_position <= position),
    )
    for event_position, record in sorted([*earlier, *originals.items()]):
        apply_event(facts, event_position, record)
    facts.position = position
    extend(facts, connection, until)
    return facts


def _list_game_changes(records: Sequence[tuple[int, str]]) -> Iterator[KnownEvent]:
    """Yield the events that change games, from some records."""
    for position, record in records:
        if any(name in record for name in CHANGE_TYPES):
            with suppress(Refused, LookupError):
                event = read_known_event(position, record)
                if event.type in CHANGE_TYPES:
                    yield event


def _apply_pages(facts: Facts, connection: Connection, until: int) -> None:
    decoded_to = facts.position
    if until - decoded_to >= BULK_EVENTS and compiling.is_allowed():
        from ratings_ledger.projections.facts import bulk_decoding

        decoded_to = bulk_decoding.decode_pages(facts, connection, until, apply_event)
    for page in read_records(connection, after=decoded_to, until=until):
        for position, record in page:
            apply_event(facts, position, record)
