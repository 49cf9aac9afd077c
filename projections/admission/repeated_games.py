"""Describe imported games that repeat recorded games: voided games, and games that equal games from other sources.

If the games were voided by an undo, or by a changeset that consists of several voids, the note suggests `ratings undo`
for that changeset; otherwise, it suggests `ratings reinstate`.

Another source may be the same sheet under another name:

    club.csv      2024-11-22  1 anna, 2 ben      recorded as 2024-11-22-1
    evening.pgn   2024-11-22  1 anna, 2 ben      equal: the same day, game, players and places

Days are those of UTC. Two friends may play twice on one evening, so equal games are noted, not refused.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import make_batch_name
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.intake.intake import WaitingDraft, WaitingDrafts
from ratings_ledger.ledger.intake.matching import DAY_MICROSECONDS, ImportedRanges
from ratings_ledger.ledger.rejections import count, csv_item
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.ledger.validation.batches import Batch, find_imported_name, read_batches
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections import arrays
from ratings_ledger.projections.admission.changesets import Changeset, load_changeset
from ratings_ledger.projections.admission.undo import UNDO_PREFIX
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.lookups import look_up_games

CHANGESETS_MAX, IDS_MAX = 3, 3  # the maximum numbers of notes, and of game ids in a note
VOID_TYPES = frozenset({"game.voided", "event.voided"})
# the maximum number of games of an import, and of recorded games, that are compared
COMPARED_MAX = 20_000

# the day, the name of the game, and each person with their rank: equal games have equal keys
Key = tuple[int, str, frozenset[tuple[int, int]]]


def describe_voided_games(connection: Connection, voided: Mapping[str, KnownEvent]) -> list[str]:
    """Return a note for each changeset that voided any of the games, up to `CHANGESETS_MAX`.

    `voided` has the event that voids each game, by game id.
    """
    remaining, notes = dict(voided), list[str]()
    while remaining and len(notes) < CHANGESETS_MAX:
        void = next(iter(remaining.values()))
        changeset = load_changeset(connection, void.position or 0)
        game_ids = [game_id for game_id, event in remaining.items() if changeset.has(event.position)]
        for game_id in game_ids:
            del remaining[game_id]
        notes.append(f"{_describe_games(game_ids)}; {_suggest_reinstatement(changeset, void, game_ids)}")
    if remaining:
        more = f"{count(len(remaining), 'more game')} {'is' if len(remaining) == 1 else 'are'} voided"
        notes.append(f"{more}; to see who voided a game, and why: ratings log GAME")
    return notes


def _describe_games(game_ids: list[str]) -> str:
    if len(game_ids) == 1:
        return f"{csv_item(game_ids[0])} is voided, so it does not count"
    more = f" and {len(game_ids) - IDS_MAX:,} more" if len(game_ids) > IDS_MAX else ""
    ids = ", ".join(map(csv_item, game_ids[:IDS_MAX]))
    return f"{len(game_ids):,} games are voided, so they do not count: {ids}{more}"


def _suggest_reinstatement(changeset: Changeset, void: KnownEvent, game_ids: list[str]) -> str:
    """Return a hint with the command that makes the games of a note, or the first of them, count again."""
    is_undo = str(void.data["reason"]).startswith(UNDO_PREFIX)
    if is_undo or (changeset.types.keys() <= VOID_TYPES and changeset.event_count > 1):
        other_voids = changeset.types["game.voided"] - len(game_ids)
        command = f"ratings undo {changeset.position}"
        more = f" (this also reverts {count(other_voids, 'other void')})" if other_voids else ""
        pronoun = "it" if len(game_ids) == 1 else "them"
        return f"to make {pronoun} count again: {command}{more}"
    target = "it" if len(game_ids) == 1 else "the first"
    return f"to make {target} count again: ratings reinstate {shlex.quote(game_ids[0])} --reason TEXT"


class EqualGame(NamedTuple):
    """A proposed game, and the position of the recorded game that equals it."""

    waiting: WaitingDraft
    position: int


def describe_equal_games(connection: Connection, facts: Facts, drafts: WaitingDrafts) -> Iterator[str]:
    """Yield a note for each file with games that equal recorded games from other sources."""
    if not len(facts.occurred_at):
        return
    by_file: dict[str, list[EqualGame]] = defaultdict(list)
    batches = read_batches(connection)
    for equal in _find_equal_games(connection, facts, drafts, batches):
        by_file[equal.waiting.file].append(equal)
    for file, games in by_file.items():
        first, position = games[0]
        (record,) = read_records_at(connection, [position]).values()
        game_id = parse_object(record.encode())["data"]["game_id"]
        source = next((f" from {csv_item(batch.name)}" for batch in batches if batch.has_position(position)), "")
        result = describe_result(parse_object(first.draft.data.encode()))
        has_several = len(games) > 1
        verb = "games equal games" if has_several else "game equals a game"
        would_count = "they would count twice; the first," if has_several else "it would count twice; the game"
        same, pronoun = ("they are the same games", "them") if has_several else ("it is the same game", "it")
        yield (
            f"{file}: {len(games):,} {verb} of the same day from another source, so {would_count} in line "
            f"{first.line}, {result}, equals {csv_item(game_id)}{source}; if {same}, leave {pronoun} out of the file, "
            f"or void {pronoun} after the import: ratings void GAME --reason TEXT"
        )


def _find_equal_games(
    connection: Connection, facts: Facts, drafts: WaitingDrafts, batches: Sequence[Batch]
) -> Iterator[EqualGame]:
    """Yield the proposed games that equal recorded games, except those from earlier imports of the same file."""
    days = _list_days(facts)
    candidates = list[tuple[WaitingDraft, Key]]()
    for waiting in drafts:
        if waiting.draft.type == "game.recorded" and waiting.draft.occurred_at // DAY_MICROSECONDS in days:
            if (key := _make_key(facts, waiting)) is not None:
                candidates.append((waiting, key))
            if len(candidates) == COMPARED_MAX:
                break
    positions_by_key = _find_positions_by_key(facts, {key[0] for _, key in candidates})
    own_imports: dict[str, ImportedRanges] = {}
    for waiting, key in candidates:
        if waiting.file not in own_imports:
            name = find_imported_name(connection, make_batch_name(waiting.file))
            own_imports[waiting.file] = ImportedRanges(batch.ranges for batch in batches if batch.name == name)
        positions = positions_by_key.get(key, [])
        position = next(
            (position for position in positions if own_imports[waiting.file].find_import(position) is None), None
        )
        if position is not None:
            positions.remove(position)
            yield EqualGame(waiting, position)


def _list_days(facts: Facts) -> set[int]:
    """Return the days on which games were played."""
    if len(facts.occurred_at) < arrays.LONG_HISTORY:
        return {instant // DAY_MICROSECONDS for instant in facts.occurred_at}
    return {*(arrays.as_numpy(facts.occurred_at) // DAY_MICROSECONDS).tolist()}


def _make_key(facts: Facts, waiting: WaitingDraft) -> Key | None:
    """Return the key of a proposed game; None if a player is new, because then no recorded game can equal it."""
    data = parse_object(waiting.draft.data.encode())
    numbers = [facts.player_numbers.get(participant["player"]) for participant in data["participants"]]
    persons = [facts.person[number] for number in numbers if number is not None]
    if len(persons) < len(numbers):
        return None
    return waiting.draft.occurred_at // DAY_MICROSECONDS, data["game"], _rank_persons(persons, places(data))


def _find_positions_by_key(facts: Facts, days: set[int]) -> dict[Key, list[int]]:
    """Return the positions of the live games of some days, by key."""
    positions: dict[Key, list[int]] = defaultdict(list)
    rows = [row for row in _find_rows(facts, days) if row not in facts.voided][:COMPARED_MAX]
    for row, game in zip(rows, look_up_games(facts, rows), strict=True):
        name = facts.texts[facts.cells[facts.cell[row]].game]
        key = game.occurred_at // DAY_MICROSECONDS, name, _rank_persons(game.persons, game.places)
        positions[key].append(game.first_position)
    return positions


def _find_rows(facts: Facts, days: set[int]) -> list[int]:
    """Return the rows of the games of some days."""
    if not days:
        return []
    if len(facts.occurred_at) < arrays.LONG_HISTORY:
        return [row for row, instant in enumerate(facts.occurred_at) if instant // DAY_MICROSECONDS in days]
    np = arrays.np
    rows: list[int] = np.flatnonzero(np.isin(arrays.as_numpy(facts.occurred_at) // DAY_MICROSECONDS, [*days])).tolist()
    return rows


def _rank_persons(persons: Sequence[int], own_places: Sequence[int]) -> frozenset[tuple[int, int]]:
    """Return each person with the rank of their place; ranks do not depend on how ties are numbered."""
    rank_by_place = {place: rank for rank, place in enumerate(sorted({*own_places}))}
    return frozenset((int(person), rank_by_place[place]) for person, place in zip(persons, own_places, strict=True))
