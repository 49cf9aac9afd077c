"""Which ladders an event may affect, as far as one can tell before they are replayed: one of the log, or a draft."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent
from ratings_ledger.ledger.events.types import TYPES, Draft, Ruleset
from ratings_ledger.ledger.store.log import read_events_of_type, read_known_events, read_records, read_where
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import apply, settle_facts, take_drafts
from ratings_ledger.projections.queries.explain import row_of_game
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladders import Stream, find_changes, parse_name
from ratings_ledger.projections.rulesets.versions import Version, bind

ALL = "all"
LogEntry = tuple[int, str, KnownEvent | None]


def read_entries(connection: Connection, after: int, until: int) -> Iterator[LogEntry]:
    """Yield the entries of the log between two positions: position, record, and its event if it is one."""
    for page in read_records(connection, after, until):
        for position, record in page:
            yield position, record, next(read_known_events([(position, record)]), None)


def affected_by(facts: Facts, type_name: str, data: dict[str, Any]) -> set[str]:
    """Return what an event may affect at these facts; of one about a game, they must know the game's row."""
    return describe_affected(type_name, data, _names_of_games(facts, data) if type_name in GAME_EVENTS else ())


def _names_of_games(facts: Facts, data: dict[str, Any]) -> Iterator[str]:
    """Name the games that an event about a game concerns: as it stands in the facts, and as the event states it."""
    if (row := facts.rows.get(data["game_id"], NONE)) != NONE:
        yield str(facts.label("game", row))
    if stated := data.get("game"):
        yield stated if isinstance(stated, str) else stated["game"]


def describe_affected(type_name: str, data: dict[str, Any], games: Iterable[str]) -> set[str]:
    """Return what an event may affect: `game:NAME`, `ruleset:ID`, or all; nothing if it affects no ladder.

    Args:
        games: the names of the games that an event about a game concerns, before and after it.
    """
    if type_name in GAME_EVENTS:
        return {f"game:{name}" for name in games}
    if type_name in ("points.adjusted", "player.seeded"):
        return {f"ruleset:{parse_name(data['ladder']).ruleset_id}"}
    if type_name == "ruleset.published":
        return {f"ruleset:{data['id']}"}
    return set() if TYPES[type_name].is_silent else {ALL}


def affected_between(connection: Connection, before: Facts, after: Facts, event: KnownEvent) -> set[str]:
    """Return what an event that only the facts `after` know may affect."""
    games = set[str]()
    for facts in (before, after) if event.type in GAME_EVENTS else ():
        with suppress(Unknown):  # before its first record
            games.add(str(facts.label("game", row_of_game(connection, facts, event.data["game_id"]))))
    return describe_affected(event.type, event.data, games)


def with_drafts(
    connection: Connection, before: Ladders, drafts: Iterable[Draft], recorded_at: int | None = None
) -> tuple[Ladders, set[str], list[tuple[str, str]]]:
    """Return all ladders as they would be if drafts were recorded, what these may affect (see `describe_affected`), and
    the old and new ids of those that they rename.

    Rating periods close up to the instant `recorded_at`, by default no others than before.
    """
    facts = before.facts.copied()
    affected: set[str] = set()
    renames: list[tuple[str, str]] = []

    def take(facts: Facts, position: int, draft: Draft) -> None:
        data = parse_object(draft.data.encode())
        if draft.type in GAME_EVENTS or draft.type == "clock.started":
            # the row of its game; NONE before it is recorded
            row = facts.rows.setdefault(data["game_id"], NONE)
            if row == NONE and draft.type != "game.recorded":
                with suppress(Unknown):
                    facts.rows[data["game_id"]] = row_of_game(connection, facts, data["game_id"])
        affected.update(affected_by(facts, draft.type, data))
        apply(facts, position, KnownEvent(draft.event_id, draft.type, draft.occurred_at, data))
        if draft.type == "player.renamed":
            renames.append((data["player"], data["new_player"]))

    before_drafts = len(facts.cell)
    take_drafts(facts, drafts, take)
    games = {facts.cells[cell].game for cell in arrays.distinct(facts.cell[before_drafts:])}
    affected |= {f"game:{facts.texts[game]}" for game in games}
    settle_facts(facts)
    if recorded_at is not None:
        facts.recorded_until = max(recorded_at, facts.recorded_until) if before.facts.position else recorded_at
    return Ladders(facts, None, before.rules), affected, renames


def is_affected(version: Version, affected: Collection[str]) -> bool:
    """Tell whether the ladders of a version may be among what is affected."""
    ruleset, of = version.ruleset, getattr(version.params, "of", None)
    own = {ALL, f"ruleset:{ruleset.id}", f"ruleset:{of}", *(f"game:{name}" for name in ruleset.scope.game)}
    return not own.isdisjoint(affected)


def affected_streams(ladders: Ladders, affected: Collection[str]) -> dict[str, Stream]:
    """Return the streams of all ladders of the rulesets that may be affected, by name; only good for replaying them."""
    rulesets = ladders.facts.rulesets
    streams: dict[str, Stream] = {}
    for ruleset_id, versions in rulesets.items():
        if ruleset_id in ladders.facts.unusable or not any(is_affected(version, affected) for version in versions):
            continue
        for summed in {str(getattr(version.params, "of", "")) for version in versions} & rulesets.keys():
            ladders.streams(summed)
        streams |= ladders.streams(ruleset_id, light=True)
    return streams


def streams_beside(
    before: Ladders, after: Ladders, affected: Collection[str], only: Collection[str] = ()
) -> dict[str, tuple[Stream | None, Stream | None]]:
    """Return the streams before and after of the ladders that may be affected, or of `only` some, by name."""
    old, new = affected_streams(before, affected), affected_streams(after, affected)
    names = sorted(old.keys() | new.keys())
    return {name: (old.get(name), new.get(name)) for name in names if not only or name in only}


def have_same_points(left: Stream | None, right: Stream | None) -> bool:
    """Tell whether two streams certainly give the same points, so that neither needs to be replayed."""
    if left is None or right is None:
        return left is right
    if left.ranking.sums_lists:
        return False  # it also depends on accounts and on other lists
    if left.known is not None and right.known is not None:
        return bool(left.known.is_like(right.known))
    return (
        (left.names, left.offsets, left.players, [*left.columns], left.version, left.versions)
        == (right.names, right.offsets, right.players, [*right.columns], right.version, right.versions)
        and (left.adjustments, left.seeds) == (right.adjustments, right.seeds)
        and (left.until == right.until or not find_changes(left.versions))
        and _have_same_dates(left, right)
        and have_same_points(left.previous, right.previous)
    )


def _have_same_dates(left: Stream, right: Stream) -> bool:
    """Tell whether the games of two streams are in the same days, seasons and rating periods, if their rule asks."""
    pairs = ((left.calendar, right.calendar), (left.periods, right.periods))
    return all(
        left is right or (left is not None and right is not None and all(map(arrays.equal, left, right)))
        for left, right in pairs
    )


def find_first_version(connection: Connection, until: int, ruleset_id: str) -> Version | None:
    """Return the first version of a ruleset published up to a position that runs here, withdrawn or not."""
    published = read_events_of_type(
        "ruleset.published", read_where(connection, until=until, subject=f"ruleset:{ruleset_id}")
    )
    bound = (bind(Ruleset.model_validate(event.data), event.position or 0)[0] for event in published)
    return next((version for version in bound if version is not None), None)
