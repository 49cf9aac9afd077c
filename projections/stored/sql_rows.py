"""Build the rows of the SQL history tables in blocks of a few thousand rows: ladder changes and current games.

A block stays the same in later rebuilds unless something in it or before it changes, so a nightly run writes only new
blocks. Blocks are plain data, compact enough to pass a long ladder between processes in one piece.
"""

import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import dump
from ratings_ledger.ledger.events.revisions import apply_revisions
from ratings_ledger.ledger.store.log import Log, read_known_event, read_records_at
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.trace import Trace

CHANGES_PER_BLOCK = 5_000
# the numbers of a change: position, occurred_at, place (0: none), points before, and the change, in units
NUMBERS_PER_CHANGE = 5

# (digest, players, ruleset names (empty for adjustments), numbers of all changes as bytes); a plain tuple, because
# `marshal` takes no named tuples
Block: TypeAlias = tuple[str, list[str], list[str], bytes]


def split_trace_into_blocks(facts: Facts, trace: Trace) -> list[Block]:
    """Return the changes of a trace in order, in blocks. The trace must hold the points before every game.

    An annual list has no changes, because it has no games of its own.
    """
    stream = trace.stream
    if stream.ranking.sums_lists:
        return []
    rows = _iterate_changes(facts, trace)
    blocks = []
    while batch := list(islice(rows, CHANGES_PER_BLOCK)):
        players, rulesets = [row[0] for row in batch], [row[1] for row in batch]
        numbers = array("q", [number for row in batch for number in row[2:]])
        blocks.append(
            (_compute_digest(stream.rule.scale, players, rulesets, numbers), players, rulesets, numbers.tobytes())
        )
    return blocks


def _iterate_changes(facts: Facts, trace: Trace) -> Iterator[tuple[Any, ...]]:
    """Yield (player, ruleset or "", position, occurred_at, place or 0, points before, change) for each step."""
    stream = trace.stream
    current_row = -1
    places: dict[int, int] = {}
    for player, step in trace.every_step():
        if step.cause and step.row is not None:
            position, occurred_at = facts.live_position[step.row], facts.occurred_at[step.row]
            yield stream.names[player], "", position, occurred_at, 0, step.points_before, step.change
            continue
        if step.row is None or step.version is None:
            yield stream.names[player], "", step.position, step.occurred_at, 0, step.points_before, step.change
            continue
        if (row := step.row) != current_row:
            current_row = row
            slots = range(facts.start[row], facts.start[row] + facts.count[row])
            places = {facts.person_of(slot): facts.place[slot] for slot in reversed(slots)}
        yield (
            stream.names[player],
            step.version.ruleset.name,
            facts.live_position[row],
            facts.occurred_at[row],
            places[stream.persons[player]],
            step.points_before,
            step.change,
        )


def _compute_digest(scale: int, players: Sequence[str], rulesets: Sequence[str], numbers: "array[int]") -> str:
    # line breaks can separate ids and names, because these contain none
    text = "\n".join([str(scale), *players, *rulesets])
    return sha256(text.encode() + b"\n" + to_little_endian(numbers)).hexdigest()


def to_little_endian(numbers: "array[int]") -> bytes:
    """Return the numbers as little-endian bytes, so that digests are equal on every machine."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def iterate_change_rows(block_index: int, block: Block) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each change of a block: the ordinal on the ladder, then the columns.

    `block_index` counts from 0.
    """
    _, players, rulesets, packed = block
    numbers = array("q", packed)
    columns = [numbers[first::NUMBERS_PER_CHANGE] for first in range(NUMBERS_PER_CHANGE)]
    ordinal = block_index * CHANGES_PER_BLOCK
    for player, ruleset, position, occurred_at, place, before, change in zip(players, rulesets, *columns, strict=True):
        ordinal += 1
        yield ordinal, player, position, occurred_at, place or None, before, change, ruleset or None


GAMES_PER_BLOCK = 1_000
# included in the digest, so that blocks written by other versions of this program are not reused
ROW_FORMAT = "games 1"
GAME_COLUMNS = ("group", "city", "league", "season")
PARTICIPANT_COLUMNS = ("status", "replaces", "seat", "seconds_played")

Rows = list[tuple[Any, ...]]


class GameBlock(NamedTuple):
    """A block of games: its digest, its row count (games plus participants), and a function that reads the rows."""

    digest: str
    row_count: int
    read: Callable[[], tuple[Rows, Rows]]


def split_games_into_blocks(connection: Connection, facts: Facts) -> Iterator[GameBlock]:
    """Yield the games that are not voided, in blocks. The rows of a block are read from the log on demand."""
    people = read_identities(connection, facts.position)
    for first in range(0, len(facts.first_position), GAMES_PER_BLOCK):
        rows = range(first, min(first + GAMES_PER_BLOCK, len(facts.first_position)))
        live_rows = [row for row in rows if row not in facts.voided]
        yield GameBlock(
            digest=_compute_games_digest(facts, live_rows),
            row_count=len(live_rows) + sum(facts.count[row] for row in live_rows),
            read=partial(_read_games, connection, facts, live_rows, people),
        )


def _compute_games_digest(facts: Facts, rows: list[int]) -> str:
    numbers = array("q")
    hashed_lines = [ROW_FORMAT]
    for row in rows:
        numbers.extend((facts.first_position[row], facts.live_position[row], facts.occurred_at[row]))
        if facts.renamed:
            start = facts.start[row]
            slots = range(start, start + facts.count[row])
            renamed = [slot for slot in slots if facts.person_of(slot) != facts.player[slot]]
            # the digest includes the renames of the block's players, because a rename changes the stored ids
            hashed_lines += [f"{row} {slot - start} {facts.name_of(slot)}" for slot in renamed]
    return sha256("\n".join(hashed_lines).encode() + b"\n" + to_little_endian(numbers)).hexdigest()


def _read_games(connection: Connection, facts: Facts, rows: list[int], people: Identities) -> tuple[Rows, Rows]:
    """Return the rows of games and of participants, each starting with the position column."""
    records = read_records_at(connection, [facts.first_position[row] for row in rows])
    games: Rows = []
    participants: Rows = []
    for row in rows:
        position = facts.first_position[row]
        data = read_known_event(position, records[position]).data
        if facts.live_position[row] != position:
            data = _load_current_data(connection, facts.position, data["game_id"])
        data = people.use_current_ids(data)
        games.append((position, *_list_game_columns(facts, row, data)))
        for number, participant in enumerate(data["participants"], 1):
            place = facts.place[facts.start[row] + number - 1] or None
            participants.append((position, number, data["game_id"], *_list_participant_columns(place, participant)))
    return games, participants


def _load_current_data(connection: Connection, until: int, game_id: str) -> dict[str, Any]:
    """Return the current data of a game that was corrected or reinstated."""
    game = apply_revisions(Log(connection, until).about(f"game:{game_id}"))
    assert game is not None
    return game.data


def _list_game_columns(facts: Facts, row: int, data: dict[str, Any]) -> tuple[Any, ...]:
    remaining = dict(data)
    participants = remaining.pop("participants")
    game_id, game, kind = remaining.pop("game_id"), remaining.pop("game"), remaining.pop("kind", "placing")
    labels = [remaining.pop(name, None) for name in GAME_COLUMNS]
    rated, aborted = remaining.pop("rated", True), remaining.pop("aborted", False)
    other_members = dump(remaining) if remaining else None
    return (
        game_id,
        facts.occurred_at[row],
        game,
        kind,
        *labels,
        len(participants),
        int(rated),
        int(aborted),
        other_members,
    )


def _list_participant_columns(place: int | None, participant: dict[str, Any]) -> tuple[Any, ...]:
    remaining = {name: value for name, value in participant.items() if name not in ("player", "place")}
    score = remaining.pop("score", None)
    remaining.setdefault("status", "finished")
    columns = [remaining.pop(name, None) for name in PARTICIPANT_COLUMNS]
    return (
        participant["player"],
        place,
        None if score is None else str(score),
        *columns,
        dump(remaining) if remaining else None,
    )
