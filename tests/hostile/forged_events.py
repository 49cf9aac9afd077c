"""Events that an attacker appends by SQL."""

from typing import Any

from sqlalchemy import Connection

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_instant
from ratings_ledger.ledger.events.records import chain_hash, leaf_hash
from ratings_ledger.ledger.events.revisions import find_superseded
from ratings_ledger.ledger.events.types import TYPES, make_default_id
from ratings_ledger.ledger.store.log import Log, head


def append_by_sql(
    connection: Connection, type_name: str, data: dict[str, Any], at: str, by: str = "eve", event_id: str = "forged"
) -> None:
    """Append an event by SQL with right hashes, superseding what its type does; a game gets its default id."""
    before = head(connection)
    event = {
        "by": by,
        "data": data,
        "id": event_id,
        "occurred_at": at,
        "position": before.position + 1,
        "recorded_at": format_instant(before.recorded_at),
        "schema_version": TYPES[type_name].schema_version,
        "type": type_name,
    }
    if type_name == "game.recorded":
        event["id"] = make_default_id(type_name, 0, data)
    try:
        supersedes, _ = find_superseded(Log(connection), type_name, data)
    except Refused:
        supersedes = None
    if supersedes is not None:
        event["supersedes"] = supersedes
    record = dump(event)
    leaf = leaf_hash(record)
    row = (
        event["position"], event["id"], type_name, event["schema_version"], TYPES[type_name].subject(data),
        parse_instant(at), parse_instant(event["recorded_at"]), by, supersedes, record, leaf,
        chain_hash(before.chain_hash, leaf),
    )  # fmt: skip
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(f"INSERT INTO events VALUES ({', '.join([mark] * len(row))})", row)
