"""Forged records: inserted into a ledger by SQL, with valid hashes and columns, past the guards."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ledgers import open_for_writing
from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import dump, format_instant
from ratings_ledger.ledger.events.records import EventRow, chain_hash, leaf_hash
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.guards import POSTGRES_TRIGGERS, SQLITE_TRIGGERS
from ratings_ledger.ledger.store.log import head

OCCURRED_AT = 1_767_225_600_000_000  # 2026-01-01

GAME = {
    "game": "chess",
    "game_id": "forged",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def append_forged(
    url: str,
    data: dict[str, Any],
    subject: str = "game:forged",
    columns: Any = None,
    rewrite: Callable[[str], str] = str,
    **members: Any,
) -> int:
    """Append an event with these data and return its position.

    `members` and `columns` replace those of a game; `rewrite` changes the text of the record.
    """
    with open_for_writing(url) as connection:
        last_head = head(connection)
        recorded_at = members.pop("recorded_at", last_head.recorded_at)
        event = {
            "by": "eve",
            "data": data,
            "id": "game:forged",
            "occurred_at": format_instant(OCCURRED_AT),
            "position": last_head.position + 1,
            "recorded_at": format_instant(recorded_at),
            "schema_version": 1,
            "type": "game.recorded",
            **members,
        }
        record = rewrite(dump(event))
        leaf = leaf_hash(record)
        row = EventRow(
            last_head.position + 1, event["id"], event["type"], event["schema_version"], subject, OCCURRED_AT,
            recorded_at, event["by"], event.get("supersedes"), record, leaf, chain_hash(last_head.chain_hash, leaf),
        )  # fmt: skip
        with without_insert_guard(connection):
            insert_row(connection, row._replace(**(columns or {})))
    return last_head.position + 1


def insert_row(connection: Connection, row: tuple[Any, ...]) -> None:
    """Insert a row, as any program with the right to insert can."""
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(f"INSERT INTO events VALUES ({', '.join([mark] * len(row))})", row)


@contextmanager
def without_insert_guard(connection: Connection) -> Iterator[None]:
    """Drop the guard of inserts and create it again, which leaves no trace; the owner of the database can do that."""
    sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql("DROP TRIGGER events_guard_insert" + ("" if sqlite else " ON events"))
    yield
    triggers = SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS
    connection.exec_driver_sql(triggers["events_guard_insert"])


# games that the program never records


def build_forged_game(*participants: dict[str, Any]) -> dict[str, Any]:
    return {**GAME, "participants": list(participants)}


INVALID_GAMES: dict[str, dict[str, Any]] = {
    "a place below 1": build_forged_game({"player": "anna", "place": -5}, {"player": "ben", "place": 2}),
    "a place of 2^40": build_forged_game({"player": "anna", "place": 2**40}, {"player": "ben", "place": 1}),
    "a gap": build_forged_game({"player": "anna", "place": 1}, {"player": "ben", "place": 9}),
    "a player twice": build_forged_game({"player": "anna", "place": 1}, {"player": "anna", "place": 2}),
    "no participant": build_forged_game(),
    "a single participant": build_forged_game({"player": "anna", "place": 1}),
    "no player": build_forged_game({"place": 1}, {"player": "ben", "place": 2}),
    "a long name": build_forged_game({"player": "x" * 100_000, "place": 1}, {"player": "ben", "place": 2}),
    "a name with control characters": build_forged_game(
        {"player": "an\u0007na", "place": 1}, {"player": "ben", "place": 2}
    ),
    "an empty name": build_forged_game({"player": "", "place": 1}, {"player": "ben", "place": 2}),
    "a place that is a text": build_forged_game({"player": "anna", "place": "1"}, {"player": "ben", "place": 2}),
    "an unknown kind": {**GAME, "kind": "chess960"},
    "an unknown member": {**GAME, "winner": "anna"},
    "a substitute without a leaver": build_forged_game(
        {"player": "anna", "place": 1, "status": "substitute"}, {"player": "ben", "place": 2}
    ),
    "defaults written out": {**GAME, "rated": None},
    "malformed participants": {**GAME, "participants": {"anna": 1}},
    "a decomposed name": build_forged_game({"player": "Jose\u0301", "place": 1}, {"player": "ben", "place": 2}),
    "a record that is too large": {**GAME, "extra": {"note": "x" * 65_536}},
}

# other events that the program never records
INVALID_EVENTS: dict[str, dict[str, Any]] = {
    "an unknown type": {"type": "player.exiled"},
    "an unknown version": {"schema_version": 7},
    "a correction of an unknown game": {
        "type": "game.corrected",
        "data": {"game_id": "no", "game": {**GAME, "game_id": "no"}, "reason": "x"},
    },
    "a void of an unknown event": {"type": "event.voided", "data": {"id": "no", "reason": "x"}},
    "a void of itself": {"type": "event.voided", "data": {"id": "game:forged", "reason": "x"}},
    "a correction without a game": {"type": "game.corrected", "data": {"game_id": "g-1"}},
    "a malformed ruleset": {"type": "ruleset.published", "data": {"id": "elo-chess"}},
    "an adjustment by a word": {
        "type": "points.adjusted",
        "data": {"player": "anna", "ladder": "elo-chess/all", "points": "many", "reason": "x"},
    },
    "an unknown zone": {"type": "ledger.zone_set", "data": {"zone": "Mars/Phobos"}},
    "a list without rows": {"type": "list.published", "data": {"ladder": "elo-chess/all"}},
    "a malformed clock": {"type": "clock.started", "data": {"game_id": "g-1"}},
    "malformed data": {"data": [1]},
    "an id that is a number": {"id": 5},
    "a name with a control character": {"by": "e\u007fve"},
    "an empty recorder": {"by": ""},
}


def replace_once(old: str, new: str) -> Callable[[str], str]:
    """Return a function that replaces the first `old`, which must occur, by `new`."""

    def rewrite(record: str) -> str:
        assert old in record
        return record.replace(old, new, 1)

    return rewrite


# records of valid games in a form that the program never writes
UNCANONICAL_RECORDS: dict[str, Callable[[str], str]] = {
    "a member twice": replace_once('"game":"chess"', '"game":"chess","game":"chess"'),
    "data twice": replace_once(',"id":', ',"data":{"game":"chess"},"id":'),
    "a space": replace_once(':"chess"', ': "chess"'),
    "a line end": replace_once(':"chess"', ':\n"chess"'),
    "a line end after the record": lambda record: f"{record}\n",
    "another record after the record": lambda record: f"{record}\n{record}",
    "a needless escape": replace_once('"anna"', '"\\u0061nna"'),
    "members in another order": replace_once('"place":1,"player":"anna"', '"player":"anna","place":1'),
    "data in another order": replace_once('"game":"chess","game_id":"forged"', '"game_id":"forged","game":"chess"'),
    "an additional member": replace_once(',"id":', ',"extra":1,"id":'),
    "a null": replace_once('"game":"chess"', '"city":null,"game":"chess"'),
    "no recorder": replace_once('"by":"eve",', ""),
    "no position": lambda record: re.sub(r'"position":\d+,', "", record),
    "another position": lambda record: re.sub(r'"position":\d+,', '"position":77,', record),
    "a version with a fraction": replace_once('"schema_version":1', '"schema_version":1.0'),
    "a score of minus zero": replace_once(
        '"player":"anna"},{"place":2,"player":"ben"', '"player":"anna","score":5},{"place":2,"player":"ben","score":-0'
    ),
    "a time of recording with another offset": lambda record: re.sub(r'("recorded_at":"[^"]*)Z"', r'\1+00:00"', record),
    "a time before the year 1": replace_once("2026-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000+23:00"),
}


def append_named_forgery(name: str, url: str, **more: Any) -> int:
    """Append the forgery with this name in one of the tables above, with its own subject, and return its position."""
    assert name in INVALID_GAMES | INVALID_EVENTS | UNCANONICAL_RECORDS
    members = {"data": INVALID_GAMES[name]} if name in INVALID_GAMES else dict(INVALID_EVENTS.get(name, {}))
    data, subject = members.pop("data", GAME), "game:forged"
    with suppress(KeyError, TypeError):  # a forgery may have an unknown type or malformed data
        subject = TYPES[members.get("type", "game.recorded")].subject(data)
    columns = ({"event_id": "5"} if members.get("id") == 5 else {}) | more.pop("columns", {})
    rewrite = UNCANONICAL_RECORDS.get(name, str)
    return append_forged(url, data, subject, columns=columns, rewrite=rewrite, **(members | more))
