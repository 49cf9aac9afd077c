"""`verify` for the log: every hash recomputed from the stored records, every column compared with its record.

Findings are values. Reading goes on behind a damaged place, so that everything that is wrong is named at once; an event
that cannot be read is one finding, and the chain is taken up again behind it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ledger.canonical import dump, format_instant, parse_object
from ledger.lineage import SUPERSEDING, superseded
from ledger.records import ZERO, Row, chain_hash, columns, leaf_hash
from ledger.rejections import Refused, shown
from ledger.store import Ledger, Log

PAGE_EVENTS = 1_000
_TEXTS = ("event_id", "type", "subject", "recorded_by", "supersedes", "record")
# as bytes, because a damaged text may not be UTF-8; and no blob or number passes for the text that it would read as
_SQLITE_TEXT = (
    "CASE WHEN typeof({0}) IN ('text', 'null') THEN CAST({0} AS BLOB) ELSE 'a value of type ' || typeof({0}) END"
)


_SUPERSEDING = ", ".join(f"'{name}'" for name in sorted(SUPERSEDING))


class Finding(NamedTuple):
    """Something that is not as it was written: a code, the position if it can be told, and the message."""

    code: str
    position: int | None
    message: str


CODES = {
    "storage": "the database itself reports damage",
    "unreadable": "an event cannot be read from the store",
    "missing": "positions are absent",
    "not-a-record": "a record is not canonical JSON of an event",
    "column": "a column disagrees with the record that it indexes",
    "leaf-hash": "the record was changed: its hash is another",
    "chain-hash": "the history before this position was changed, or the hash itself",
    "time-order": "recorded_at decreases",
    "supersedes": "an event does not stand in line: what it supersedes is missing, later, or of another game",
    "twice": "an id, a game or a superseded event occurs twice",
    "guard": "a trigger that protects the events is gone or altered",
    "head": "the ledger does not contain the history that was asked for",
    "standings": "stored standings differ from a replay",
    "published": "a published list does not come out of its coordinates",
    "clock": "a result says of a removal something else than the game's clock",
    "rule": "a rule failed at a game",
}


def verify_log(
    ledger: Ledger, connection: Connection, expected_head: tuple[int, bytes] | None = None
) -> Iterator[Finding]:
    """All findings about the log, in order; `expected_head` is a position and chain hash that it must contain."""
    for message in ledger.dialect.storage_findings(connection):
        yield Finding("storage", None, message)
    for name in ledger.dialect.guards_missing(connection):
        yield Finding(
            "guard", None, f"the guard {name} is missing or altered; anybody could change events unnoticed by it"
        )
    position, recorded_at = 0, -(2**63)
    chain: bytes | None = ZERO
    asked, asked_chain = (0, ZERO) if expected_head is None else expected_head
    found_there = ZERO if asked == 0 else None
    for found, row in _rows(ledger, connection):
        if row is None:
            yield Finding("unreadable", found, "the event cannot be read: its page is damaged")
            position, chain = found, None
            continue
        if found != position + 1:
            yield _gap(position, found)
            chain = None
        yield from _row_findings(row, chain)
        if isinstance(row["recorded_at"], int):
            if row["recorded_at"] < recorded_at:
                yield Finding("time-order", found, "recorded before the event before it")
            recorded_at = row["recorded_at"]
        position, chain = found, row["chain_hash"] if isinstance(row["chain_hash"], bytes) else None
        found_there = chain if found == asked else found_there
    yield from _links(connection)
    if found_there != asked_chain:
        yield Finding("head", asked, f"no history with the chain hash {asked_chain.hex()} at position {asked}")


def _gap(position: int, found: int) -> Finding:
    """That the event at `found` does not follow the one at `position`."""
    if found <= position:
        return Finding("missing", found, f"stands behind position {position}")
    absent = f"position {position + 1}" if found == position + 2 else f"positions {position + 1} to {found - 1}"
    return Finding("missing", position + 1, f"{absent} absent")


def _row_findings(row: dict[str, Any], before: bytes | None) -> Iterator[Finding]:
    """What is wrong within one row. `before` is the stored chain hash of the position before, if it could be read."""
    position = row["position"]
    record = row["record"]
    if not isinstance(record, bytes):
        yield Finding("not-a-record", position, f"the record is {shown(record)}")
        return
    leaf = leaf_hash(record)
    if leaf != row["leaf_hash"]:
        yield Finding("leaf-hash", position, f"the record does not hash to its leaf hash; it reads {_excerpt(record)}")
    stored_leaf = row["leaf_hash"] if isinstance(row["leaf_hash"], bytes) else b""
    if before is not None and chain_hash(before, stored_leaf) != row["chain_hash"]:
        yield Finding("chain-hash", position, "the chain hash does not follow from the position before")
    try:
        event = parse_object(record)
        text_ = record.decode()
        expected = columns(text_, event, ZERO)
        if dump(event) != text_ or format_instant(expected.occurred_at) != event["occurred_at"]:
            raise Refused("restore-mismatch", "it is not in canonical form")
    except Refused as problem:
        yield Finding("not-a-record", position, f"{problem.message}; it reads {_excerpt(record)}")
        return
    for name in Row._fields:
        if name in ("record", "leaf_hash", "chain_hash"):
            continue
        value = row[name]
        if name in _TEXTS and isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        wanted = getattr(expected, name)
        if value != wanted or type(value) is not type(wanted):
            yield Finding("column", position, f"{name} is {shown(value)}, the record says {shown(wanted)}")


def _excerpt(record: bytes) -> str:
    return shown(record[:200].decode("utf-8", "backslashreplace"), 120)


def _rows(ledger: Ledger, connection: Connection) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(position, row) in order, texts as bytes; None for a row that cannot be read."""
    sqlite = ledger.engine.dialect.name == "sqlite"
    names = ", ".join(_SQLITE_TEXT.format(name) if sqlite and name in _TEXTS else name for name in Row._fields)
    page = text(f"SELECT {names} FROM events WHERE position > :after ORDER BY position LIMIT :size")
    single = text(f"SELECT {names} FROM events WHERE position = :position")
    after, last = 0, None
    while True:
        try:
            rows = connection.execute(page, {"after": after, "size": PAGE_EVENTS}).all()
        except DBAPIError:
            # a page of the file is damaged: position by position as far as the log is known to reach
            last = _last_position(connection) if last is None else last
            for position in range(after + 1, min(after + PAGE_EVENTS, last) + 1):
                yield position, _single(connection, single, position)
            after += PAGE_EVENTS
            if after >= last:
                return
            continue
        for row in rows:
            plain = _plain(row)
            position = plain["position"] if isinstance(plain["position"], int) else after + 1
            yield position, plain
        if len(rows) < PAGE_EVENTS:
            return
        after = max(after + 1, rows[-1][0])


def _plain(row: Any) -> dict[str, Any]:
    values = dict(zip(Row._fields, row, strict=True))
    for name, value in values.items():
        if isinstance(value, memoryview) or (name in _TEXTS and isinstance(value, str)):
            values[name] = value.encode() if isinstance(value, str) else bytes(value)
    return values


def _single(connection: Connection, query: Any, position: int) -> dict[str, Any] | None:
    try:
        row = connection.execute(query, {"position": position}).one_or_none()
    except DBAPIError:
        return None
    return None if row is None else _plain(row)


def _last_position(connection: Connection) -> int:
    """The last position, counted in an index if there is one to read: in a damaged table any number may stand last."""
    counted = "SELECT count(*) FROM events INDEXED BY {}"
    for query in (
        counted.format("events_by_type"),
        counted.format("events_by_subject"),
        "SELECT max(position) FROM events",
    ):
        try:
            found = connection.execute(text(query)).scalar()
        except DBAPIError:
            continue
        if isinstance(found, int):
            return found
    return 0


def _lines(connection: Connection) -> Iterator[Finding]:
    """Corrections, voids and reinstatements that do not stand in line with what was recorded before them."""
    found = text(
        f"SELECT position, type, record, supersedes FROM events WHERE type IN ({_SUPERSEDING}) ORDER BY position"
    )
    try:
        for position, type_name, record, supersedes in connection.execute(found).all():
            try:
                data = parse_object(record.encode())["data"]
                expected, _ = superseded(Log(connection, until=position - 1), type_name, data)
            except Refused as problem:
                yield Finding("supersedes", position, problem.message)
                continue
            if supersedes != expected:
                wrong = f"it supersedes {shown(supersedes)} where it can only supersede {shown(expected)}"
                yield Finding("supersedes", position, wrong)
    except (DBAPIError, LookupError, ValueError, TypeError, AttributeError) as error:
        # what cannot be read is a finding of its own
        yield Finding("storage", None, f"the lines of corrections cannot be checked: {shown(str(error))}")


def _links(connection: Connection) -> Iterator[Finding]:
    """Supersedes links and what must be unique, straight from the table (a dropped index protects nothing)."""
    queries = {
        "supersedes": "SELECT position, event_id FROM events "
        f"WHERE supersedes IS NOT NULL AND type NOT IN ({_SUPERSEDING})",
        "twice": "SELECT max(position), event_id FROM events GROUP BY event_id HAVING count(*) > 1 "
        "UNION ALL SELECT max(position), subject FROM events WHERE type = 'game.recorded' GROUP BY subject "
        "HAVING count(*) > 1 "
        "UNION ALL SELECT max(position), supersedes FROM events WHERE supersedes IS NOT NULL GROUP BY supersedes "
        "HAVING count(*) > 1",
    }
    yield from _lines(connection)
    for code, query in queries.items():
        try:
            for position, what in connection.execute(text(query)):
                yield Finding(code, position, f"{shown(what)}: {CODES[code]}")
        except DBAPIError as error:
            yield Finding("storage", None, f"the links cannot be checked: {str(error.orig).splitlines()[0]}")
