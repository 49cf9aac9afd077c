"""Find the ladders that a recorded event or a draft may affect, without replaying them.

Ladders are named in groups: `game:NAME` stands for the ladders that score a game such as catan, `ruleset:ID` for the
ladders of a ruleset, and `all` for all ladders. An event that affects no ladder affects no group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent
from ratings_ledger.ledger.events.types import TYPES, Draft, Ruleset
from ratings_ledger.ledger.store.log import read_events_of_type, read_known_events, read_matching_records, read_records
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.applying import apply, apply_event, settle_facts
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import extend_with_drafts
from ratings_ledger.projections.facts.lookups import find_game_row
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.streams import Stream, find_version_changes
from ratings_ledger.projections.rulesets.versions import Version, bind

ALL = "all"  # the group of all ladders


class LogEntry(NamedTuple):
    """An entry of the log; `event` is None if the record is invalid."""

    position: int
    record: str
    event: KnownEvent | None


def read_entries(connection: Connection, after: int, until: int) -> Iterator[LogEntry]:
    """Yield each entry of the log with `after` < position <= `until`."""
    for page in read_records(connection, after, until):
        for position, record in page:
            yield LogEntry(position, record, next(read_known_events([(position, record)]), None))


def find_affected_groups(facts: Facts, type_name: str, data: dict[str, Any]) -> set[str]:
    """Return the groups of ladders that an event may affect. The facts must have the row of the event's game."""
    names = _list_game_names(facts, data) if type_name in GAME_EVENTS else ()
    return list_affected_groups(type_name, data, names)


def apply_entries(facts: Facts, entries: Iterable[LogEntry]) -> set[str]:
    """Apply entries of the log to the facts, and settle the facts. Return the groups of ladders that may be affected.

    The facts must have the rows of the events' games.
    """
    affected = set[str]()
    for position, record, event in entries:
        if event is not None:
            affected |= find_affected_groups(facts, event.type, event.data)
        apply_event(facts, position, record)
    settle_facts(facts)
    return affected


def _list_game_names(facts: Facts, data: dict[str, Any]) -> Iterator[str]:
    """Yield the names of an event's game, such as `catan`: the name in the facts, and the name in the event."""
    if (row := facts.rows.get(data["game_id"], NONE)) != NONE:
        yield str(facts.label("game", row))
    if stated := data.get("game"):
        yield stated if isinstance(stated, str) else stated["game"]


def list_affected_groups(type_name: str, data: dict[str, Any], games: Iterable[str]) -> set[str]:
    """Return the groups of ladders that an event may affect.

    Args:
        type_name: the type of the event.
        data: the data of the event.
        games: the names of the event's game, before and after the event.
    """
    if type_name in GAME_EVENTS:
        return {f"game:{name}" for name in games}
    if type_name in ("points.adjusted", "player.seeded"):
        return {f"ruleset:{parse_name(data['ladder']).ruleset_id}"}
    if type_name == "ruleset.published":
        return {f"ruleset:{data['id']}"}
    return set() if TYPES[type_name].is_silent else {ALL}


def find_affected_between(connection: Connection, before: Facts, after: Facts, event: KnownEvent) -> set[str]:
    """Return the groups of ladders that an event may affect. The event is in `after`, but not in `before`."""
    games = set[str]()
    for facts in (before, after) if event.type in GAME_EVENTS else ():
        with suppress(Unknown):  # `before` does not have the game if the event is its first record
            games.add(str(facts.label("game", find_game_row(connection, facts, event.data["game_id"]))))
    return list_affected_groups(event.type, event.data, games)


class AppliedDrafts(NamedTuple):
    """The ladders after drafts, the groups that the drafts may affect, and (old id, new id) of each rename."""

    ladders: Ladders
    affected: set[str]
    renames: list[tuple[str, str]]


def apply_drafts(
    connection: Connection, before: Ladders, drafts: Iterable[Draft], recorded_at: int | None = None
) -> AppliedDrafts:
    """Apply drafts to a copy of the facts, as if the drafts were recorded.

    Close the rating periods that end by the instant `recorded_at`; by default, close no further period.
    """
    facts = before.facts.clone()
    affected: set[str] = set()
    renames: list[tuple[str, str]] = []

    def apply_draft(facts: Facts, position: int, draft: Draft) -> None:
        data = parse_object(draft.data.encode())
        if draft.type in GAME_EVENTS or draft.type == "clock.started":
            # the row is NONE until the game is recorded
            row = facts.rows.setdefault(data["game_id"], NONE)
            if row == NONE and draft.type != "game.recorded":
                with suppress(Unknown):
                    facts.rows[data["game_id"]] = find_game_row(connection, facts, data["game_id"])
        affected.update(find_affected_groups(facts, draft.type, data))
        apply(facts, position, KnownEvent(draft.event_id, draft.type, draft.occurred_at, data))
        if draft.type == "player.renamed":
            renames.append((data["player"], data["new_player"]))

    game_count = len(facts.cell)
    extend_with_drafts(facts, drafts, apply_draft)
    new_games = {facts.cells[cell].game for cell in arrays.distinct(facts.cell[game_count:])}
    affected |= {f"game:{facts.texts[game]}" for game in new_games}
    settle_facts(facts)
    if recorded_at is not None:
        facts.recorded_until = max(recorded_at, facts.recorded_until) if before.facts.position else recorded_at
    return AppliedDrafts(Ladders(facts, as_of=None, rules=before.rules), affected, renames)


def is_affected(version: Version, affected: Collection[str]) -> bool:
    """Tell whether a version's ladders may be affected."""
    ruleset, source_id = version.ruleset, getattr(version.params, "of", None)
    groups = {ALL, f"ruleset:{ruleset.id}", f"ruleset:{source_id}", *(f"game:{name}" for name in ruleset.scope.game)}
    return not groups.isdisjoint(affected)


def load_affected_streams(ladders: Ladders, affected: Collection[str]) -> dict[str, Stream]:
    """Load the streams of all ladders that may be affected, by ladder name.

    If the trace of a stream is known, the stream may lack games, so use the streams only for a replay.
    """
    rulesets = ladders.facts.rulesets
    streams: dict[str, Stream] = {}
    for ruleset_id, versions in rulesets.items():
        if ruleset_id in ladders.facts.unusable or not any(is_affected(version, affected) for version in versions):
            continue
        for source_id in {str(getattr(version.params, "of", "")) for version in versions} & rulesets.keys():
            ladders.streams(source_id)  # with all games, because the lists of the source are summed
        streams |= ladders.streams(ruleset_id, light=True)
    return streams


def pair_affected_streams(
    before: Ladders, after: Ladders, affected: Collection[str], only: Collection[str] = ()
) -> dict[str, tuple[Stream | None, Stream | None]]:
    """Return the streams (before, after) of each ladder that may be affected, by name; `only` limits the ladders."""
    old_streams, new_streams = load_affected_streams(before, affected), load_affected_streams(after, affected)
    names = sorted(old_streams.keys() | new_streams.keys())
    return {name: (old_streams.get(name), new_streams.get(name)) for name in names if not only or name in only}


def have_same_points(left: Stream | None, right: Stream | None) -> bool:
    """Tell whether two streams are certain to give the same points, so that no replay is needed."""
    if left is None or right is None:
        return left is right
    if left.ranking.sums_lists:
        return False  # the list also depends on accounts and on other lists
    if left.trace is not None and right.trace is not None:
        return bool(left.trace.has_same_results(right.trace))
    return (
        (left.names, left.offsets, left.players, [*left.columns], left.version_indices, left.versions)
        == (right.names, right.offsets, right.players, [*right.columns], right.version_indices, right.versions)
        and (left.adjustments, left.seeds) == (right.adjustments, right.seeds)
        and (left.until == right.until or not find_version_changes(left.versions))
        and _have_same_dates(left, right)
        and have_same_points(left.previous, right.previous)
    )


def _have_same_dates(left: Stream, right: Stream) -> bool:
    """Tell whether the games of two streams fall into the same days, seasons and rating periods."""
    pairs = ((left.calendar, right.calendar), (left.periods, right.periods))
    return all(
        left is right or (left is not None and right is not None and all(map(arrays.equal, left, right)))
        for left, right in pairs
    )


def find_first_version(connection: Connection, until: int, ladder: str) -> Version | None:
    """Return the first usable version of a ladder's ruleset up to a position, even if it was withdrawn."""
    subject = f"ruleset:{parse_name(ladder).ruleset_id}"
    published = read_events_of_type(
        "ruleset.published", read_matching_records(connection, until=until, subject=subject)
    )
    bound = (bind(Ruleset.model_validate(event.data), event.position or 0)[0] for event in published)
    return next((version for version in bound if version is not None), None)
