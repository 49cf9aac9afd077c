"""What is kept for SQL, in blocks of a few thousand rows: the changes on every ladder, and the current games.

A block is the same after a later rebuild as long as nothing in it or before it changed, so a nightly run only writes
what is new. It is plain data, compact enough to pass a long ladder between processes in one piece.
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
from ratings_ledger.ledger.events.revisions import live_game
from ratings_ledger.ledger.store.log import Log, read_known_event, read_records_at
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.trace import Trace

BLOCK_CHANGES = 5_000
# for each change: position, occurred_at, place (0: none), units before, units of the change
NUMBERS = 5

# digest, players, names of rulesets (empty for adjustments), and the numbers of all changes, end to end
Block: TypeAlias = tuple[str, list[str], list[str], bytes]


def blocks_of(facts: Facts, trace: Trace) -> list[Block]:
    """Return the changes of a trace with the points before all games, in order.

    An annual list has none, since it has no games of its own.
    """
    stream = trace.stream
    if stream.ranking.sums_lists:
        return []
    rows = _rows(facts, trace)
    found = []
    while some := list(islice(rows, BLOCK_CHANGES)):
        players, rulesets = [row[0] for row in some], [row[1] for row in some]
        numbers = array("q", [number for row in some for number in row[2:]])
        found.append((_digest(stream.rule.scale, players, rulesets, numbers), players, rulesets, numbers.tobytes()))
    return found


def _rows(facts: Facts, trace: Trace) -> Iterator[tuple[Any, ...]]:
    stream = trace.stream
    last = -1
    places: dict[int, int] = {}
    for player, step in trace.every_step():
        if step.cause and step.row is not None:
            moment = facts.live_position[step.row], facts.occurred_at[step.row]
            yield stream.names[player], "", *moment, 0, step.before, step.change
            continue
        if step.row is None or step.version is None:
            yield stream.names[player], "", step.position, step.occurred_at, 0, step.before, step.change
            continue
        if (row := step.row) != last:
            last = row
            slots = range(facts.start[row], facts.start[row] + facts.count[row])
            places = {facts.person_of(slot): facts.place[slot] for slot in reversed(slots)}
        yield (
            stream.names[player],
            step.version.ruleset.name,
            facts.live_position[row],
            facts.occurred_at[row],
            places[stream.persons[player]],
            step.before,
            step.change,
        )


def _digest(scale: int, players: Sequence[str], rulesets: Sequence[str], numbers: "array[int]") -> str:
    # neither ids nor names contain line breaks
    text = "\n".join([str(scale), *players, *rulesets])
    return sha256(text.encode() + b"\n" + portable(numbers)).hexdigest()


def portable(numbers: "array[int]") -> bytes:
    """Numbers as bytes that are the same on every machine."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def change_rows(number: int, block: Block) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a ladder's block number `number`, from 0: the ordinal, then the columns of a change."""
    _, players, rulesets, packed = block
    numbers = array("q", packed)
    columns = [numbers[first::NUMBERS] for first in range(NUMBERS)]
    ordinal = number * BLOCK_CHANGES
    for player, ruleset, position, occurred_at, place, before, change in zip(players, rulesets, *columns, strict=True):
        ordinal += 1
        yield ordinal, player, position, occurred_at, place or None, before, change, ruleset or None


BLOCK_GAMES = 1_000
# distinguishes these rows from those of other versions of this program
FORM = "games 1"
GAME_COLUMNS = ("group", "city", "league", "season")
PARTICIPANT_COLUMNS = ("status", "replaces", "seat", "seconds_played")

Rows = list[tuple[Any, ...]]


class GameBlock(NamedTuple):
    """A block: its digest, how many rows games and participants have together, and both on demand."""

    digest: str
    rows: int
    read: Callable[[], tuple[Rows, Rows]]


def blocks_of_games(connection: Connection, facts: Facts) -> Iterator[GameBlock]:
    """Yield all games of some facts that are not voided, in blocks; each is read from the log on demand."""
    people = identities(connection, facts.position)
    for first in range(0, len(facts.first_position), BLOCK_GAMES):
        rows = range(first, min(first + BLOCK_GAMES, len(facts.first_position)))
        live = [row for row in rows if row not in facts.voided]
        count = len(live) + sum(facts.count[row] for row in live)
        yield GameBlock(_digest_of_games(facts, live), count, partial(_read, connection, facts, live, people))


def _digest_of_games(facts: Facts, rows: list[int]) -> str:
    numbers = array("q")
    names = [FORM]
    for row in rows:
        numbers.extend((facts.first_position[row], facts.live_position[row], facts.occurred_at[row]))
        if facts.renamed:
            start = facts.start[row]
            renamed = [p for p in range(start, start + facts.count[row]) if facts.person_of(p) != facts.player[p]]
            # each replaces the id in the record: for a block, only renames within it count
            names += [f"{row} {p - start} {facts.name_of(p)}" for p in renamed]
    return sha256("\n".join(names).encode() + b"\n" + portable(numbers)).hexdigest()


def _read(connection: Connection, facts: Facts, rows: list[int], people: Identities) -> tuple[Rows, Rows]:
    """Return the rows of games and of participants, each from its position on."""
    records = read_records_at(connection, [facts.first_position[row] for row in rows])
    games: Rows = []
    participants: Rows = []
    for row in rows:
        position = facts.first_position[row]
        data = read_known_event(position, records[position]).data
        if facts.live_position[row] != position:
            data = _live(connection, facts.position, data["game_id"])
        data = people.present(data)
        games.append((position, *_game(facts, row, data)))
        for number, participant in enumerate(data["participants"], 1):
            place = facts.place[facts.start[row] + number - 1] or None
            participants.append((position, number, data["game_id"], *_participant(place, participant)))
    return games, participants


def _live(connection: Connection, until: int, game_id: str) -> dict[str, Any]:
    """Return the data of a game with several recorded events."""
    game = live_game(Log(connection, until).about(f"game:{game_id}"))
    assert game is not None
    return game.data


def _game(facts: Facts, row: int, data: dict[str, Any]) -> tuple[Any, ...]:
    rest = dict(data)
    participants = rest.pop("participants")
    game_id, game, kind = rest.pop("game_id"), rest.pop("game"), rest.pop("kind", "placing")
    labels = [rest.pop(name, None) for name in GAME_COLUMNS]
    rated, aborted = rest.pop("rated", True), rest.pop("aborted", False)
    more = dump(rest) if rest else None
    return (game_id, facts.occurred_at[row], game, kind, *labels, len(participants), int(rated), int(aborted), more)


def _participant(place: int | None, told: dict[str, Any]) -> tuple[Any, ...]:
    rest = {name: value for name, value in told.items() if name not in ("player", "place")}
    score = rest.pop("score", None)
    rest.setdefault("status", "finished")
    columns = [rest.pop(name, None) for name in PARTICIPANT_COLUMNS]
    return told["player"], place, None if score is None else str(score), *columns, dump(rest) if rest else None
