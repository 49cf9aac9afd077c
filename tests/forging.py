"""Records that somebody puts into a ledger by SQL, with right hashes and columns, past the guards."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ledgers import writing
from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import dump, format_instant
from ratings_ledger.ledger.events.records import EventRow, chain_hash, leaf_hash
from ratings_ledger.ledger.store.guards import POSTGRES_TRIGGERS, SQLITE_TRIGGERS
from ratings_ledger.ledger.store.log import head

AT = 1_767_225_600_000_000  # 2026-01-01

GAME = {
    "game": "chess",
    "game_id": "forged",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def forge(
    url: str,
    data: dict[str, Any],
    subject: str = "game:forged",
    columns: Any = None,
    rewrite: Callable[[str], str] = str,
    **members: Any,
) -> int:
    """Append an event with these data; other members, and other columns, than those of a game; its text is rewritten.

    Gives its position.
    """
    with writing(url) as connection:
        before = head(connection)
        recorded_at = members.pop("recorded_at", before.recorded_at)
        event = {
            "by": "eve", "data": data, "id": "game:forged", "occurred_at": format_instant(AT),
            "position": before.position + 1, "recorded_at": format_instant(recorded_at), "schema_version": 1,
            "type": "game.recorded", **members,
        }  # fmt: skip
        record = rewrite(dump(event))
        leaf = leaf_hash(record)
        row = EventRow(
            before.position + 1, event["id"], event["type"], event["schema_version"], subject, AT, recorded_at,
            event["by"], event.get("supersedes"), record, leaf, chain_hash(before.chain_hash, leaf),
        )  # fmt: skip
        with past_the_guard(connection):
            insert(connection, row._replace(**(columns or {})))
    return before.position + 1


def insert(connection: Connection, row: tuple[Any, ...]) -> None:
    """What any program can do that may insert."""
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(f"INSERT INTO events VALUES ({', '.join([mark] * len(row))})", row)


@contextmanager
def past_the_guard(connection: Connection) -> Iterator[None]:
    """The owner of the database can take the guard away, and put it back so that nothing tells."""
    sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql("DROP TRIGGER events_guard_insert" + ("" if sqlite else " ON events"))
    yield
    triggers = SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS
    connection.exec_driver_sql(triggers["events_guard_insert"])


# games that nobody can have recorded


def seats(*participants: dict[str, Any]) -> dict[str, Any]:
    return {**GAME, "participants": list(participants)}


FORGED: dict[str, dict[str, Any]] = {
    "a place below 1": seats({"player": "anna", "place": -5}, {"player": "ben", "place": 2}),
    "a place of 2^40": seats({"player": "anna", "place": 2**40}, {"player": "ben", "place": 1}),
    "a gap": seats({"player": "anna", "place": 1}, {"player": "ben", "place": 9}),
    "somebody twice": seats({"player": "anna", "place": 1}, {"player": "anna", "place": 2}),
    "nobody": seats(),
    "one alone": seats({"player": "anna", "place": 1}),
    "no player": seats({"place": 1}, {"player": "ben", "place": 2}),
    "a long name": seats({"player": "x" * 100_000, "place": 1}, {"player": "ben", "place": 2}),
    "a name with control characters": seats({"player": "an\u0007na", "place": 1}, {"player": "ben", "place": 2}),
    "an empty name": seats({"player": "", "place": 1}, {"player": "ben", "place": 2}),
    "a place that is a text": seats({"player": "anna", "place": "1"}, {"player": "ben", "place": 2}),
    "a kind that there is not": {**GAME, "kind": "chess960"},
    "a member that there is not": {**GAME, "winner": "anna"},
    "a substitute of nobody": seats(
        {"player": "anna", "place": 1, "status": "substitute"}, {"player": "ben", "place": 2}
    ),
    "defaults written out": {**GAME, "rated": None},
    "participants that are none": {**GAME, "participants": {"anna": 1}},
    "a name that is not composed": seats({"player": "Jose\u0301", "place": 1}, {"player": "ben", "place": 2}),
    "a record that is too large": {**GAME, "extra": {"note": "x" * 65_536}},
}  # fmt: skip

# and other events
OTHERS: dict[str, dict[str, Any]] = {
    "an unknown type": {"type": "player.exiled"},
    "an unknown version": {"schema_version": 7},
    "a correction of nothing": {
        "type": "game.corrected", "data": {"game_id": "no", "game": {**GAME, "game_id": "no"}, "reason": "x"},
    },
    "a void of nothing": {"type": "event.voided", "data": {"id": "no", "reason": "x"}},
    "a void of itself": {"type": "event.voided", "data": {"id": "game:forged", "reason": "x"}},
    "a correction without a game": {"type": "game.corrected", "data": {"game_id": "g-1"}},
    "a ruleset that is none": {"type": "ruleset.published", "data": {"id": "elo-chess"}},
    "an adjustment by a text": {
        "type": "points.adjusted",
        "data": {"player": "anna", "ladder": "elo-chess/all", "points": "many", "reason": "x"},
    },
    "a zone that is none": {"type": "ledger.zone_set", "data": {"zone": "Mars/Phobos"}},
    "a list without rows": {"type": "list.published", "data": {"ladder": "elo-chess/all"}},
    "a clock that is none": {"type": "clock.started", "data": {"game_id": "g-1"}},
    "data that are none": {"data": [1]},
    "an id that is none": {"id": 5},
    "a name with a control character": {"by": "e\u007fve"},
    "nobody's name": {"by": ""},
}  # fmt: skip


def instead(old: str, new: str) -> Callable[[str], str]:
    """Write something else, once; the text has it."""

    def rewrite(record: str) -> str:
        assert old in record
        return record.replace(old, new, 1)

    return rewrite


# and games in a form in which no record is written
WRITTEN: dict[str, Callable[[str], str]] = {
    "a member twice": instead('"game":"chess"', '"game":"chess","game":"chess"'),
    "data twice": instead(',"id":', ',"data":{"game":"chess"},"id":'),
    "a space": instead(':"chess"', ': "chess"'),
    "a line end": instead(':"chess"', ':\n"chess"'),
    "a line end behind it": lambda record: f"{record}\n",
    "another record behind it": lambda record: f"{record}\n{record}",
    "an escape that is not needed": instead('"anna"', '"\\u0061nna"'),
    "members in another order": instead('"place":1,"player":"anna"', '"player":"anna","place":1'),
    "data in another order": instead('"game":"chess","game_id":"forged"', '"game_id":"forged","game":"chess"'),
    "a member more": instead(',"id":', ',"extra":1,"id":'),
    "a null": instead('"game":"chess"', '"city":null,"game":"chess"'),
    "no name of who recorded it": instead('"by":"eve",', ""),
    "no position": lambda record: re.sub(r'"position":\d+,', "", record),
    "another position": lambda record: re.sub(r'"position":\d+,', '"position":77,', record),
    "a version with a fraction": instead('"schema_version":1', '"schema_version":1.0'),
    "a score of minus zero": instead('"player":"anna"},{"place":2,"player":"ben"',
                                     '"player":"anna","score":5},{"place":2,"player":"ben","score":-0'),
    "a time of recording with another offset": lambda record: re.sub(
        r'("recorded_at":"[^"]*)Z"', r'\1+00:00"', record),
    "a time before all times": instead("2026-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000+23:00"),
}  # fmt: skip


def forged(what: str, url: str, **more: Any) -> int:
    """Append one of these by its name. Gives its position."""
    members = {"data": FORGED[what]} if what in FORGED else dict(OTHERS.get(what, {}))
    columns = ({"event_id": "5"} if members.get("id") == 5 else {}) | more.pop("columns", {})
    return forge(url, members.pop("data", GAME), columns=columns, rewrite=WRITTEN.get(what, str), **(members | more))
