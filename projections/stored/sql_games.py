"""The games as they stand, as they are kept for SQL: in blocks, in the order in which they were first recorded.

A block is known by what its games come from: the positions of their events, which never change, and renames. So one in
which nothing changed is neither read nor written again.
"""

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.events.canonical import dump
from ledger.events.revisions import live_game
from ledger.store.log import Log, known_event, read_records_at
from ledger.validation.identities import Identities, identities
from projections.facts.columns import Facts
from projections.stored.sql_changes import portable

BLOCK_GAMES = 1_000
# what tells these rows from those of another version of this program
FORM = "games 1"
GAME_COLUMNS = ("group", "city", "league", "season")
PARTICIPANT_COLUMNS = ("status", "replaces", "seat", "seconds_played")

Rows = list[tuple[Any, ...]]


class Games(NamedTuple):
    """A block: what it is known by, how many rows games and participants have together, and both when asked for."""

    digest: str
    rows: int
    read: Callable[[], tuple[Rows, Rows]]


def blocks_of_games(connection: Connection, facts: Facts) -> Iterator[Games]:
    """All games of some facts that are not voided, in blocks; each is read from the log when it is asked for."""
    people = identities(connection, facts.position)
    for first in range(0, len(facts.first_position), BLOCK_GAMES):
        rows = range(first, min(first + BLOCK_GAMES, len(facts.first_position)))
        live = [row for row in rows if row not in facts.voided]
        count = len(live) + sum(facts.count[row] for row in live)
        yield Games(_digest(facts, live), count, partial(_read, connection, facts, live, people))


def _digest(facts: Facts, rows: list[int]) -> str:
    numbers = array("q")
    names = [FORM]
    for row in rows:
        numbers.extend((facts.first_position[row], facts.live_position[row], facts.occurred_at[row]))
        if facts.renamed:
            start = facts.start[row]
            renamed = [p for p in range(start, start + facts.count[row]) if facts.person_of(p) != facts.player[p]]
            # each stands for the id in the record: of a block only what is renamed in it counts
            names += [f"{row} {p - start} {facts.name_of(p)}" for p in renamed]
    return sha256("\n".join(names).encode() + b"\n" + portable(numbers)).hexdigest()


def _read(connection: Connection, facts: Facts, rows: list[int], people: Identities) -> tuple[Rows, Rows]:
    """The rows of games and of participants, each from its position on."""
    records = read_records_at(connection, [facts.first_position[row] for row in rows])
    games: Rows = []
    participants: Rows = []
    for row in rows:
        position = facts.first_position[row]
        data = known_event(position, records[position]).data
        if facts.live_position[row] != position:
            data = _live(connection, facts.position, data["game_id"])
        data = people.present(data)
        games.append((position, *_game(facts, row, data)))
        for number, participant in enumerate(data["participants"], 1):
            place = facts.place[facts.start[row] + number - 1] or None
            participants.append((position, number, data["game_id"], *_participant(place, participant)))
    return games, participants


def _live(connection: Connection, until: int, game_id: str) -> dict[str, Any]:
    """The data of a game about which several events are recorded."""
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
    return (
        game_id, facts.occurred_at[row], game, kind, *labels, len(participants), int(rated), int(aborted), more
    )  # fmt: skip


def _participant(place: int | None, told: dict[str, Any]) -> tuple[Any, ...]:
    rest = {name: value for name, value in told.items() if name not in ("player", "place")}
    score = rest.pop("score", None)
    rest.setdefault("status", "finished")
    columns = [rest.pop(name, None) for name in PARTICIPANT_COLUMNS]
    return told["player"], place, None if score is None else str(score), *columns, dump(rest) if rest else None
