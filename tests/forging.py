"""Records that somebody puts into a ledger by SQL, with right hashes and columns, past the guards."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from ledger.canonical import dump, format_instant
from ledger.guards import POSTGRES_TRIGGERS, SQLITE_TRIGGERS
from ledger.records import Row, chain_hash, leaf_hash
from ledger.store import connect, head

AT = 1_767_225_600_000_000  # 2026-01-01

GAME = {
    "game": "chess",
    "game_id": "forged",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def forge(url: str, data: dict[str, Any], subject: str = "game:forged", columns: Any = None, **members: Any) -> int:
    """Append an event with these data; other members, and other columns, than those of a game. Gives its position."""
    with connect(url).writing() as connection:
        before = head(connection)
        recorded_at = members.pop("recorded_at", before.recorded_at)
        event = {
            "by": "eve", "data": data, "id": "game:forged", "occurred_at": format_instant(AT),
            "position": before.position + 1, "recorded_at": format_instant(recorded_at), "schema_version": 1,
            "type": "game.recorded", **members,
        }  # fmt: skip
        record = dump(event)
        leaf = leaf_hash(record)
        row = Row(
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
}  # fmt: skip


def forged(what: str, url: str, **more: Any) -> int:
    """Append one of these by its name. Gives its position."""
    members = {"data": FORGED[what]} if what in FORGED else dict(OTHERS[what])
    columns = ({"event_id": "5"} if members.get("id") == 5 else {}) | more.pop("columns", {})
    return forge(url, members.pop("data", GAME), columns=columns, **(members | more))
