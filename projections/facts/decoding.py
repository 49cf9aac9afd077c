"""Decode the log into facts: apply all events in order, in bulk if there are many, and settle withdrawals.

`settle_facts` drops withdrawn events, and merges the ids of one person. A new type of event is a line in
`APPLY`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.canonical import INSTANT_MAX, parse_record_instant
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.records import ZERO, build_record
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent
from ratings_ledger.ledger.events.types import TYPES, Draft, Ruleset
from ratings_ledger.ledger.processes.memory import collect_rarely, trim_heap
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    chain_hash_at,
    first_positions,
    head,
    read_known_event,
    read_live,
    read_records,
    read_records_at,
    read_types,
)
from ratings_ledger.ledger.validation.identities import resolve_renames
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import (
    NONE,
    AccountEntry,
    Adjustment,
    Base,
    ClubRename,
    Facts,
    LeagueFacts,
    Rename,
    Seed,
    UnusableVersion,
)
from ratings_ledger.projections.facts.games import (
    correct_game,
    note_change,
    number_player,
    number_text,
    record_game,
    reinstate_game,
    void_game,
)
from ratings_ledger.projections.rulesets.versions import bind

if TYPE_CHECKING:
    from ratings_ledger.projections.facts import column_cache
    from ratings_ledger.projections.game_clock import GameClock


# From CACHED_EVENTS on, the columns are cached. The cache grows by DELTA_EVENTS at a time.
CACHED_EVENTS = 20_000
DELTA_EVENTS = 1_000_000
TRIES = 8  # damaged places of a cache that are repaired at once
# From this many events on, they are decoded in bulk. Fewer are not worth loading the libraries.
BULK_EVENTS = 10_000
CHANGES = ("game.corrected", "game.voided", "game.reinstated")


def decode(
    connection: Connection, known_at: int | None = None, ahead: int = 0, cached: bool = True, lazily: bool = False
) -> Facts:
    """Return the facts recorded up to a position (default: the head); they may be extended up to the position `ahead`.

    For a long log they come from the cache unless `cached` is false. All of it is checked at once. With `lazily`, it is
    checked as it is read: reading may then raise `Damaged`, and the caller decodes again. Raises `StoreDamaged`.
    """
    last = head(connection)
    newest = last.position
    position = newest if known_at is None else min(known_at, newest)
    facts = None
    if cached and newest >= CACHED_EVENTS:
        facts = _read_from_cache(connection, newest, position, lazily)
    if facts is None:
        facts = Facts(0, ZERO)
        _name_games(connection, facts, max(position, ahead))
        extend(facts, connection, position, last.chain_hash if position == newest else None)
    else:
        _name_games(connection, facts, ahead)
    return facts


def decode_to_store(connection: Connection, position: int | None = None) -> Facts:
    """Decode facts whose results are stored, only from a cache that no other account can write.

    Raises `StoreUnavailable` for any other cache.
    """
    if head(connection).position >= CACHED_EVENTS:
        from ratings_ledger.projections.facts import column_cache

        column_cache.refuse_shared_cache(connection)
    return decode(connection, position)


def read_rulesets_at(connection: Connection, position: int) -> Facts:
    """Return facts with only the rulesets at a position, which is as fast for a long log as for a short one."""
    facts = Facts(position, chain_hash_at(connection, position) or ZERO)
    for event in read_live(connection, until=position, type_name="ruleset.published"):
        apply(facts, event.position or 0, event)
    settle_facts(facts)
    return facts


def _read_from_cache(connection: Connection, newest: int, position: int, lazily: bool) -> Facts | None:
    """Return the facts at a position, mapped from the cache; None without a cache.

    The cache is extended to the head if needed. A damaged cache is rebuilt once; if that fails, or if the cache cannot
    be read, the command works without it.
    """
    from ratings_ledger.projections.facts import column_cache  # only here, as a short log needs none
    from ratings_ledger.projections.facts.column_files import Damaged, Unreadable

    cache = column_cache.find_cache(connection, newest)
    if cache is None:
        return None
    try:
        if 0 < position <= cache.position:
            with suppress(Damaged):
                return _complete(connection, cache, position, lazily)
        return _grow_cache(connection, cache.root, newest, position, lazily)
    except (Damaged, Unreadable, StoreDamaged) as problem:
        column_cache.logger.warning("ratings: the cache in %s is not used: %s", cache.root, str(problem))
        return None


def _grow_cache(connection: Connection, root: Path, newest: int, position: int, lazily: bool) -> Facts | None:
    """Extend the cache to the head, and return the facts at a position; None if that is not possible.

    Raises `Damaged`, `Unreadable`, `StoreDamaged` if it is damaged even after it was rebuilt.
    """
    from ratings_ledger.projections.facts import column_cache
    from ratings_ledger.projections.facts.column_files import Damaged

    with column_cache.lock_cache(root) as locked:
        for tries_left in reversed(range(TRIES)) if locked else ():
            # Another process may have changed it meanwhile.
            cache = column_cache.find_cache(connection, newest, locked=True)
            try:
                while cache is not None and cache.position < newest:
                    until = cache.position + DELTA_EVENTS
                    if newest - until < DELTA_EVENTS // 8:  # few more are not worth a segment
                        until = newest
                    # Segments cannot follow each other across absent positions, of which there may be billions.
                    if chain_hash_at(connection, until) is None or not cache.append(
                        _read_delta(connection, cache, until)
                    ):
                        return None
                if cache is None or not position:
                    return None
                cache.merge(column_cache.MERGE_RATIO)
                trim_heap()  # otherwise a fifth more memory for a long history
                return _complete(connection, cache, position, lazily)
            except Damaged as problem:
                problem.discard()
                if not tries_left:
                    raise
    return None


def _read_delta(connection: Connection, cache: column_cache.Cache, until: int) -> Facts:
    """Return the facts recorded after a cache, up to a position."""
    delta = cache.delta()
    _name_games(connection, delta, until, cache.row_of)
    _take_pages(delta, connection, until)
    delta.position, delta.chain_hash = until, chain_hash_at(connection, until) or ZERO
    return delta


def _complete(connection: Connection, cache: column_cache.Cache, position: int, lazily: bool) -> Facts:
    """Return the facts from a cache, with the changes and other events that it passes on."""
    from ratings_ledger.projections.facts.column_files import TRACES, Damaged, files_in

    facts = cache.facts(position)
    facts.chain_hash = chain_hash_at(connection, position) or ZERO
    try:
        for at, record in facts.others:
            apply_event(facts, at, record)
    except StoreDamaged as problem:
        raise Damaged(str(problem), cache.folder) from None
    held = {at: record for at, record in facts.others if at in facts.unread}
    if held != read_records_at(connection, list(held)):
        raise Damaged("its events differ from the log's", cache.folder)
    positions = first_positions(connection, facts.recorded.clocks)
    facts.rows.update({name: facts.row_of(at) if at <= position else NONE for name, at in positions.items()})
    for change in facts.changes:
        note_change(facts, change)
    facts.others, facts.changes = [], []
    if not lazily:
        facts.check()
        facts.release_pages()
    settle_facts(facts)
    note_time(facts, connection)
    facts.cache, facts.proposed = cache.root, False
    for at, _ in files_in(cache.root / TRACES):
        # A trace beyond the end of the log belongs to another log, from before this one was restored.
        if (chain_hash := chain_hash_at(connection, at)) is not None:
            facts.hashes[at] = chain_hash
    facts.hashes[position] = facts.chain_hash
    return facts


def _name_games(connection: Connection, facts: Facts, until: int, row_of: Callable[[int], int] | None = None) -> None:
    """Note the games whose rows later events will need: those named by events after the facts, up to a position."""
    names = _find_changed_games(connection, facts.position, until, (*CHANGES, "clock.started"))
    facts.rows.update(dict.fromkeys(names - facts.rows.keys(), NONE))
    if facts.position:
        for name, at in first_positions(connection, names).items():
            if at <= facts.position:
                facts.rows[name] = (row_of or facts.row_of)(at)


def _find_changed_games(connection: Connection, after: int, until: int, types: Sequence[str]) -> set[str]:
    """Return the games that events of some types between two positions name."""
    return {event.data["game_id"] for event in read_types(connection, types, until=until, after=after)}


def extend(facts: Facts, connection: Connection, until: int, chain_hash: bytes | None = None) -> None:
    """Apply the events recorded after the facts, up to a position, whose chain hash may be given."""
    _take_pages(facts, connection, until)
    facts.position, facts.chain_hash = until, chain_hash or chain_hash_at(connection, until) or ZERO
    settle_facts(facts)
    note_time(facts, connection)


def note_time(facts: Facts, connection: Connection) -> None:
    """Note when the last record was written, if a ruleset closes rating periods by that."""
    if any(version.ruleset.period != "game" for versions in facts.rulesets.values() for version in versions):
        record = read_records_at(connection, [facts.position]).get(facts.position)
        facts.recorded_until = INSTANT_MAX if record is None else parse_record_instant(from_json(record)["recorded_at"])


def follow_log(facts: Facts, connection: Connection, until: int) -> Facts:
    """Return the facts at a later position of the same log: a copy of the given ones, extended by what is new.

    Results computed from them are not cached. Raises `StoreDamaged`.
    """
    later = facts.copied()
    later.proposed = True
    catch_up(later, connection, until)
    return later


def catch_up(facts: Facts, connection: Connection, until: int, chain_hash: bytes | None = None) -> None:
    """Extend facts up to a position, in place; results computed from them become outdated."""
    _name_games(connection, facts, until)
    extend(facts, connection, until, chain_hash)


def decode_text(text: Any, after: int, until: int) -> Facts:
    """Decode a text of records, one per line, with the events from `after` to `until`.

    Games are as first recorded, numbered from 0; the records of all other events are in `others`. Needs the extra
    `fast`. Raises `StoreDamaged`.
    """
    from ratings_ledger.projections.facts import bulk_decoding

    facts = Facts(after, b"", base=Base(0, 0, 0, 0, 0, dict.fromkeys(Facts(0, b"").of_kind, 0)))
    bulk_decoding.take_text(facts, text, apply_event)
    facts.position = until
    return facts


def take_drafts(facts: Facts, drafts: Iterable[Draft], take: Callable[[Facts, int, Draft], None]) -> None:
    """Take drafts as they would be recorded after the facts, in order, by `take`; of many, plain games are scanned.

    The facts know the rows of games that are scanned, as those of all drafted games.
    """
    waiting = enumerate(drafts, facts.position + 1)
    first = [*islice(waiting, BULK_EVENTS)]
    if len(first) < BULK_EVENTS or not compiling.is_allowed():
        for position, draft in chain(first, waiting):
            take(facts, position, draft)
        return
    from ratings_ledger.projections.facts import bulk_decoding

    facts.proposed, page = True, dict[int, Draft]()

    def write_pages() -> Iterator[bytes]:
        rest = chain(first, waiting)
        while some := dict(islice(rest, bulk_decoding.PAGE_EVENTS)):
            page.clear()
            page.update(some)
            games = (draft.subject.removeprefix("game:") for draft in some.values() if draft.type == "game.recorded")
            facts.rows.update((game_id, NONE) for game_id in games if game_id not in facts.rows)
            # who records them, and when, does not matter to the facts
            yield "".join(f"{build_record(draft, at, 0, '-')}\n" for at, draft in some.items()).encode()

    with collect_rarely():
        bulk_decoding.take_contents(
            facts, write_pages(), facts.position, lambda facts, at, record: take(facts, at, page[at])
        )


def decode_behind(connection: Connection, earlier: Sequence[tuple[int, str]], position: int, until: int) -> Facts:
    """Return the facts up to `until` without the games recorded up to a position that no later event changed.

    `earlier` holds all events up to that position except the first records of games; later events are read from the
    log. Raises `StoreDamaged`.
    """
    facts = Facts(0, ZERO)
    names = {event.data["game_id"] for event in _changes_among(earlier)}
    names |= _find_changed_games(connection, position, until, CHANGES)
    facts.rows = dict.fromkeys(names, NONE)
    positions = first_positions(connection, names)
    originals = read_records_at(connection, sorted(at for at in positions.values() if at <= position))
    for at, record in sorted([*earlier, *originals.items()]):
        apply_event(facts, at, record)
    facts.position = position
    extend(facts, connection, until)
    return facts


def _changes_among(records: Sequence[tuple[int, str]]) -> Iterator[KnownEvent]:
    """Yield the events among some records that change games."""
    for at, record in records:
        if any(name in record for name in CHANGES):
            with suppress(Refused, LookupError):
                event = read_known_event(at, record)
                if event.type in CHANGES:
                    yield event


def _take_pages(facts: Facts, connection: Connection, until: int) -> None:
    decoded_to = facts.position
    if until - decoded_to >= BULK_EVENTS and compiling.is_allowed():
        from ratings_ledger.projections.facts import bulk_decoding

        decoded_to = bulk_decoding.take_pages(facts, connection, until, apply_event)
    for page in read_records(connection, after=decoded_to, until=until):
        for position, record in page:
            apply_event(facts, position, record)


def apply_event(facts: Facts, position: int, record: str) -> None:
    """Apply a record. An invalid record, which can only come from direct SQL, is skipped and noted in `unread`."""
    try:
        event = read_known_event(position, record)
        if facts.base is not None and event.type not in GAME_EVENTS:
            facts.others.append((position, record))
            return
        apply(facts, position, event)
    except (Refused, LookupError) as problem:
        if facts.base is not None:
            facts.others.append((position, record))
            return
        facts.unread[position] = str(problem.args[0])
    if len(facts.players_at) < len(facts.players):
        facts.players_at.extend([position] * (len(facts.players) - len(facts.players_at)))


def apply(facts: Facts, position: int, event: KnownEvent) -> None:
    """Apply one event to the facts. Raises `LookupError` if it refers to something not recorded before it."""
    facts.proposed = True
    if event.type in CLOCK_TYPES:
        entry = (position, event.occurred_at, event.type, event.data)
        facts.recorded.clocks.setdefault(event.data["game_id"], []).append(entry)
    elif not TYPES[event.type].is_silent:
        APPLY[event.type](facts, position, event.occurred_at, event.data)
    if event.type not in GAME_EVENTS:
        facts.recorded.positions[event.event_id] = position


def settle_facts(facts: Facts) -> None:
    """Drop withdrawn events, and set the person of every id. May be called again after more events."""
    recorded = facts.recorded
    withdrawn = recorded.withdrawn
    facts.renamed = _identify(facts, [rename for rename in recorded.renames if rename.position not in withdrawn])
    facts.adjustments = [
        entry._replace(player=facts.person[entry.player])
        for entry in recorded.adjustments
        if entry.position not in withdrawn
    ]
    facts.seeds = {}
    for seed in recorded.seeds:
        if seed.position not in withdrawn:
            person = facts.person[seed.player]
            facts.seeds.setdefault(seed.ladder, {}).setdefault(person, seed._replace(player=person))
    facts.clubs = _follow_clubs(facts, [rename for rename in recorded.club_renames if rename.position not in withdrawn])
    facts.leagues = [league for league in recorded.leagues if league.position not in withdrawn]
    facts.accounts, facts.rulesets, facts.unusable, facts.league_starts = {}, {}, {}, {}
    for account in recorded.accounts:
        if account.position not in withdrawn:
            facts.accounts.setdefault(facts.person[account.player], []).append(account)
    for version in recorded.versions:
        if version.position not in withdrawn:
            facts.rulesets.setdefault(version.ruleset.id, []).append(version)
    for unusable in recorded.unusable:
        if unusable.position not in withdrawn:
            facts.unusable.setdefault(unusable.ruleset_id, unusable)
    facts.clock_seconds = _measure_played_seconds(facts)


def replay_clock_of(facts: Facts, game_id: str) -> GameClock | None:
    """Return the clock of a game after its live events; None if it has none, or one that contradicts itself."""
    from ratings_ledger.projections.game_clock import GameClock, replay_clock
    from ratings_ledger.projections.game_clock.logs import complete_timers

    withdrawn = facts.recorded.withdrawn
    load_clock_events = [event for event in facts.recorded.clocks.get(game_id, ()) if event[0] not in withdrawn]
    events = [
        {"type": name, "data": complete_timers(facts.rulesets, name, at, data)}
        for _, at, name, data in load_clock_events
    ]
    clock = replay_clock(events, facts.current)
    return clock if isinstance(clock, GameClock) else None


def _measure_played_seconds(facts: Facts) -> dict[int, int]:
    """Return the seconds that participants played by the clocks of their games, rounded up and without pauses."""
    played_ms: dict[int, int] = {}
    for game_id in facts.recorded.clocks:
        clock, row = replay_clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE:
            continue
        numbers = {facts.player_numbers.get(name, NONE): player_clock for name, player_clock in clock.players.items()}
        played = {
            facts.person[number]: player_clock.played_ms for number, player_clock in numbers.items() if number != NONE
        }
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.person_of(p) in played:
                played_ms[p] = -(-played[facts.person_of(p)] // 1000)
    return played_ms


def _identify(facts: Facts, renames: Sequence[Rename]) -> bool:
    """Set the person of every id, along chains of renames. Return whether there are any."""
    new_number, circular = resolve_renames((rename.player, rename.new_player) for rename in renames)
    problems = {
        renames[index]: f"{facts.players[renames[index].player]!r} is renamed in a circle" for index in circular
    }
    facts.circular = {rename.position: reason for rename, reason in problems.items()}
    facts.person = array("i", range(len(facts.players)))
    for player in new_number:
        person = player
        while person in new_number:
            person = new_number[person]
        facts.person[player] = person
    return bool(new_number)


def _follow_clubs(facts: Facts, renames: Sequence[ClubRename]) -> dict[str, str]:
    """Return the current name of every renamed club, along chains of renames."""
    new_name, circular = resolve_renames((rename.club, rename.new_club) for rename in renames)
    facts.circular |= {renames[index].position: f"{renames[index].club!r} is renamed in a circle" for index in circular}
    names_by_id: dict[str, str] = {}
    for club in new_name:
        name = club
        while name in new_name:
            name = new_name[name]
        names_by_id[club] = name
    return names_by_id


def _event_voided(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    if data["id"] not in facts.recorded.positions:
        raise LookupError(f"no event {data['id']!r} that could be withdrawn is recorded before it")
    target = facts.recorded.positions[data["id"]]
    root = facts.recorded.roots[position] = facts.recorded.roots.get(target, target)
    facts.recorded.withdrawn ^= {root}


def _player_renamed(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    rename = Rename(position, number_player(facts, data["player"]), number_player(facts, data["new_player"]))
    facts.recorded.renames.append(rename)


def _points_adjusted(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = number_player(facts, data["player"])
    facts.recorded.adjustments.append(Adjustment(occurred_at, position, data["ladder"], player, data["points"]))


def _player_seeded(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = number_player(facts, data["player"])
    facts.recorded.seeds.append(Seed(position, data["ladder"], player, data["state"], data.get("games", 0)))


def _club_renamed(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    facts.recorded.club_renames.append(ClubRename(position, data["club"], data["new_club"]))


def _account(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    account = AccountEntry(occurred_at, position, number_player(facts, data["player"]), data.get("account", "premium"))
    facts.recorded.accounts.append(account)


def _ruleset_published(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    version, problems = bind(Ruleset.model_validate(data), position)
    if version is None:
        reason = f"{data['id']}@{data['version']} cannot be used here: {problems[0].key}: {problems[0].message}"
        facts.recorded.unusable.append(UnusableVersion(position, data["id"], reason))
        return
    facts.recorded.versions.append(version)


def _league_created(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    league = LeagueFacts(occurred_at, position, number_text(facts, data["league"]), number_text(facts, data["game"]))
    facts.recorded.leagues.append(league)


APPLY: dict[str, Callable[[Facts, int, int, dict[str, Any]], None]] = {
    "player.registered": _account,
    "player.account_changed": _account,
    "player.renamed": _player_renamed,
    "game.recorded": record_game,
    "game.corrected": correct_game,
    "game.voided": void_game,
    "game.reinstated": reinstate_game,
    "event.voided": _event_voided,
    "points.adjusted": _points_adjusted,
    "player.seeded": _player_seeded,
    "club.renamed": _club_renamed,
    "ruleset.published": _ruleset_published,
    "league.created": _league_created,
}
