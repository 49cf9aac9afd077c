"""Verify the log: recompute every hash from the stored records, and compare every column with its record.

A run reports all damage, because reading continues after a damaged event. An unreadable event is one finding; the chain
hash of the event after it cannot be checked, but those of later events can.
"""

import marshal
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger.backups.backup_files import Renames
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_object
from ratings_ledger.ledger.events.records import (
    ZERO,
    EventRow,
    chain_hash,
    index_record,
    leaf_hash,
    refuse_invalid_record,
)
from ratings_ledger.ledger.events.revisions import SUPERSEDING, describe_wrong_supersedes, find_superseded
from ratings_ledger.ledger.processes.forking import UNITS_MAX, available_cores, run_forked
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store import catalogue
from ratings_ledger.ledger.store.exports import ChainHead
from ratings_ledger.ledger.store.log import Log, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.ledger.validation.validator import LadderChecksAt, find_misfits

PAGE_EVENTS = 1_000
# a log of at most this many events is checked by one process; a longer one is divided among several
PART_EVENTS = 20_000
_TEXT_COLUMNS = ("event_id", "type", "subject", "recorded_by", "supersedes", "record")
_SUPERSEDING = ", ".join(f"'{name}'" for name in sorted(SUPERSEDING))
CONTRADICTION = "the event contradicts earlier events"


class Finding(NamedTuple):
    """A defect found in the log or in data computed from it: its code, its position if known, and a message."""

    code: str
    position: int | None
    message: str

    def __str__(self) -> str:
        location = "" if self.position is None else f"position {self.position}: "
        return f"{self.code}: {location}{self.message}"


CODES = {
    "storage": "the database itself reports damage",
    "unreadable": "an event cannot be read from the store",
    "missing": "positions are absent",
    "not-a-record": "a record is not canonical JSON of an event",
    "column": "a column disagrees with the record that it indexes",
    "leaf-hash": "the record was changed: its hash differs",
    "chain-hash": "the history before this position or the chain hash itself was changed",
    "time-order": "recorded_at decreases",
    "supersedes": "an event breaks its chain of revisions: the superseded event is missing, later, or of another game",
    "twice": "an id, a game or a superseded event occurs twice",
    "guard": "a trigger that protects the events is missing or altered",
    "head": "the ledger does not contain the history of the expected head",
    "meaning": "a record holds an invalid event",
    "schema": "a table, an index, a view or a trigger is foreign, or differs from this program's definition",
    "standings": "stored standings differ from a replay",
    "trace": "a cached trace differs from a replay; the trace is deleted, and the message gives its path",
    "published": "a published list differs from the standings at its coordinates",
    "clock": "a result disagrees with the game's clock about a removal",
    "rule": "a rule failed at a game",
}


class VerifiedCounts(NamedTuple):
    """The numbers of checked items, by kind."""

    events: int = 0
    hashes: int = 0
    guards: int = 0
    objects: int = 0
    ladders: int = 0
    lists: int = 0


def verify_log(
    ledger: Ledger, connection: Connection, expected: ChainHead | None = None, since: ChainHead | None = None
) -> Generator[Finding, None, VerifiedCounts]:
    """Yield all findings about the log up to the head at the start; return the numbers of checked items.

    Raises errors that prevent a check, such as a lost connection, a lock or a missing permission.

    Args:
        ledger: The opened ledger.
        connection: A connection to it.
        expected: A head that the log must contain.
        since: Another head that the log must contain. Of the events, only those after it and all renames are
            checked; the storage is not checked.
    """
    after = 0 if since is None else since.position
    for message in ledger.dialect.find_storage_damage(connection) if since is None else ():
        yield Finding("storage", None, message)
    object_count, has_all_tables = yield from _check_schema(connection)
    if not has_all_tables:
        return VerifiedCounts(objects=object_count)
    for name in ledger.dialect.find_altered_guards(connection):
        yield Finding(
            "guard",
            None,
            f"the guard {name} is missing or altered, so the database no longer refuses changes to events",
        )
    until, count = _read_extent(ledger, connection, after)
    rows_read, is_gap_known = 0, False
    for rows, findings in _walk_log(ledger, connection, after=after, until=until, count=count):
        rows_read += rows
        is_gap_known |= any(finding.code in ("missing", "unreadable") for finding in findings)
        yield from findings
    if (count, rows_read) != (until - after, until - after) and not is_gap_known:
        range_note = f" after position {after}" * bool(after)
        numbers = f"the numbers of events read and counted{range_note} are {rows_read:,} and {count:,}"
        yield Finding("missing", None, f"{numbers}, but the last position is {until}")
    yield from _check_links(ledger, connection, after)
    for required in filter(None, (expected, since)):
        stored = _read_chain_hash(ledger, connection, required.position) if required.position else (ZERO, 0)
        if stored is None or stored[0] != required.chain_hash:
            message = f"the ledger does not contain the history with the chain hash {required.chain_hash.hex()}"
            yield Finding("head", required.position, message)
    return VerifiedCounts(rows_read, 2 * rows_read, len(ledger.dialect.GUARDS), object_count)


def _check_schema(connection: Connection) -> Generator[Finding, None, tuple[int, bool]]:
    """Yield the differences between the database's objects and those of this program.

    Return the number of objects that match, and whether all tables and columns are present.
    """
    object_count, has_all_tables = 0, True
    for message in catalogue.find_object_differences(connection):
        object_count += message is None
        if message is not None:
            has_all_tables &= not (message.startswith(("the table ", "the column ")) and " is missing" in message)
            yield Finding("schema", None, message)
    if not has_all_tables:
        return object_count, False
    try:
        ledger_id(connection)
    except NotALedger as problem:
        yield Finding("schema", None, str(problem))
    versions = list(connection.execute(text("SELECT version_num FROM alembic_version")).scalars())
    if versions != [SCHEMA_REVISION]:
        yield Finding(
            "schema", None, f"the table alembic_version holds {versions}, but must hold only {SCHEMA_REVISION}"
        )
    return object_count, True


def _read_extent(ledger: Ledger, connection: Connection, after: int) -> tuple[int, int]:
    """Return the last position, at least `after`, and the number of events after `after`.

    In a damaged log both may be too low.
    """
    last = _read_rows(ledger, connection, "SELECT coalesce(max(position), 0) FROM events")
    count_query = "SELECT count(*) FROM events WHERE position <= :until" + " AND position > :after" * bool(after)
    parameters = {"after": after} if after else {}
    count = _read_rows(ledger, connection, count_query, until=last[0][0], **parameters) if last else None
    if last and count:
        return max(int(last[0][0]), after), int(count[0][0])
    last_readable = max(_find_last_position(ledger, connection), after)
    return last_readable, last_readable - after


def _read_rows(ledger: Ledger, connection: Connection, query: str, **parameters: int) -> Sequence[Any] | None:
    """Return the rows of a query, or None if they are damaged. Raises other errors of the database."""
    try:
        return connection.execute(text(query), parameters).all()
    except DBAPIError as error:
        _raise_unless_damage(ledger, error)
        return None


# the result of checking a part of the log: the number of its rows, and the findings
PartResult = tuple[int, list[Finding]]


def _walk_log(ledger: Ledger, connection: Connection, *, after: int, until: int, count: int) -> Iterator[PartResult]:
    """Check the log after a position; yield the result of each part, in order.

    Several processes check the parts of a long log, unless positions are absent in it.
    """
    cores, events = available_cores(), until - after
    size = max(PART_EVENTS, -(-events // UNITS_MAX))
    if cores == 1 or events <= PART_EVENTS or count != events:
        yield _check_range(ledger, connection, after + 1, until)
        return
    ranges = [(first, min(first + size - 1, until)) for first in range(after + 1, until + 1, size)]

    def check_part(number: int) -> bytes:
        first, last = ranges[number]
        with ledger.reading() as own_connection:
            rows, findings = _check_range(ledger, own_connection, first, last)
        return marshal.dumps((number, rows, [tuple(finding) for finding in findings]))

    waiting: dict[int, PartResult] = {}
    next_number = 0
    with closing(run_forked(check_part, len(ranges), cores)) as messages:
        for message in messages:
            number, rows, findings = marshal.loads(message)
            waiting[number] = rows, [Finding(*finding) for finding in findings]
            while next_number in waiting:
                yield waiting.pop(next_number)
                next_number += 1


def _check_range(ledger: Ledger, connection: Connection, first: int, until: int) -> PartResult:
    """Return the number of rows and the findings in a range of positions; the range from 1 includes rows below 1."""
    findings: list[Finding] = []
    position, rows = first - 1, 0
    previous = None if first == 1 else _read_chain_hash(ledger, connection, position)
    chain: bytes | None = ZERO if first == 1 else previous and previous[0]
    recorded_at = -(2**63) if previous is None else previous[1]
    for row_position, row in _iterate_rows(ledger, connection, first - 1 if first > 1 else None, until):
        rows += 1
        if row is None:
            findings.append(Finding("unreadable", row_position, "the event cannot be read: its page is damaged"))
            position, chain = row_position, None
            continue
        if row_position != position + 1:
            findings.append(_describe_gap(position, row_position))
            chain = None
        findings += _check_row(row, chain)
        if isinstance(row["recorded_at"], int):
            if row["recorded_at"] < recorded_at:
                findings.append(
                    Finding("time-order", row_position, "this event was recorded earlier than the previous one")
                )
            recorded_at = row["recorded_at"]
        position, chain = max(row_position, 0), row["chain_hash"] if isinstance(row["chain_hash"], bytes) else None
        if row_position < 1:
            chain = ZERO  # the history begins after this row
    if position < until:
        findings.append(_describe_gap(position, until + 1))
    return rows, findings


def _read_chain_hash(ledger: Ledger, connection: Connection, position: int) -> tuple[bytes, int] | None:
    """Return the stored chain hash and time at a position; None if the row is missing or damaged."""
    query = "SELECT chain_hash, recorded_at FROM events WHERE position = :position"
    rows = _read_rows(ledger, connection, query, position=position)
    return (bytes(rows[0][0]), rows[0][1]) if rows and isinstance(rows[0][1], int) else None


def _raise_unless_damage(ledger: Ledger, error: DBAPIError) -> None:
    """Raise an error of the database, such as a lock or a lost connection, unless it reports damage."""
    if not ledger.dialect.is_damage(error.orig or error):
        raise error


def _describe_gap(position: int, next_position: int) -> Finding:
    """Return the finding about absent positions between two positions, about a wrong order, or a position below 1."""
    if next_position < 1:
        return Finding("missing", next_position, "this event has no valid position: the first position is 1")
    if next_position <= position:
        return Finding("missing", next_position, f"this event is out of order: it is stored after position {position}")
    is_single = next_position == position + 2
    absent = f"position {position + 1}" if is_single else f"positions {position + 1} to {next_position - 1}"
    return Finding("missing", position + 1, f"no event is stored at {absent}")


def _check_row(row: dict[str, Any], previous_chain_hash: bytes | None) -> Iterator[Finding]:
    """Yield the findings in one row; `previous_chain_hash` is the stored one, or None if it is unknown."""
    position = row["position"]
    record = row["record"]
    if not isinstance(record, bytes):
        yield Finding("not-a-record", position, f"the record is {quote(record)}, which is not text")
        return
    leaf = leaf_hash(record)
    if leaf != row["leaf_hash"]:
        yield Finding(
            "leaf-hash",
            position,
            f"the record does not match the stored leaf hash; the record is {_quote_record(record)}",
        )
    stored_leaf = row["leaf_hash"] if isinstance(row["leaf_hash"], bytes) else b""
    if previous_chain_hash is not None and chain_hash(previous_chain_hash, stored_leaf) != row["chain_hash"]:
        yield Finding("chain-hash", position, "the chain hash does not follow from the previous one")
    try:
        event = parse_object(record)
        record_text = record.decode()
        expected = index_record(record_text, event, ZERO)
        if dump(event) != record_text or format_instant(expected.occurred_at) != event["occurred_at"]:
            raise Refused("restore-mismatch", "the record is not in canonical form")
    except Refused as problem:
        yield Finding("not-a-record", position, f"{problem.message}; the record is {_quote_record(record)}")
        return
    column_findings = list(_check_columns(position, row, expected))
    yield from column_findings
    if not column_findings:
        try:
            refuse_invalid_record(expected, event)
        except Refused as problem:
            yield Finding("meaning", position, f"this event is invalid: {problem.message}")


def _check_columns(position: int, row: dict[str, Any], expected: EventRow) -> Iterator[Finding]:
    for name in EventRow._fields:
        if name in ("record", "leaf_hash", "chain_hash"):
            continue
        value = row[name]
        if name in _TEXT_COLUMNS and isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        expected_value = getattr(expected, name)
        if value != expected_value or type(value) is not type(expected_value):
            yield Finding("column", position, f"{name} is {quote(value)}, but the record says {quote(expected_value)}")


def _quote_record(record: bytes) -> str:
    return quote(record[:200].decode("utf-8", "backslashreplace"), 120)


def _iterate_rows(
    ledger: Ledger, connection: Connection, after: int | None, until: int
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (position, row) for `after` < position <= `until`, with texts as bytes.

    Without `after`, begin at the first row. The row is None if it is unreadable.
    """
    names = ", ".join(ledger.dialect.sql_as_bytes(name) if name in _TEXT_COLUMNS else name for name in EventRow._fields)
    page = f"SELECT {names} FROM events WHERE position > :after AND position <= :until ORDER BY position LIMIT :size"
    single = f"SELECT {names} FROM events WHERE position = :position"
    # starts below 1 to include rows at invalid positions
    last_read = -(2**63) if after is None else after
    while last_read < until:
        rows = _read_rows(ledger, connection, page, after=last_read, until=until, size=PAGE_EVENTS)
        if rows is None:
            # a row of the page is damaged, so each row is read by itself
            last_read, last = max(last_read, 0), min(until, _find_last_position(ledger, connection))
            for position in range(last_read + 1, min(last_read + PAGE_EVENTS, last) + 1):
                single_rows = _read_rows(ledger, connection, single, position=position)
                yield position, _to_stored_bytes(single_rows[0]) if single_rows else None
            last_read += PAGE_EVENTS
            if last_read >= last:
                return
            continue
        for row in rows:
            values = _to_stored_bytes(row)
            position = values["position"] if isinstance(values["position"], int) else last_read + 1
            yield position, values
        if len(rows) < PAGE_EVENTS:
            return
        last_read = max(last_read + 1, rows[-1][0])


def _to_stored_bytes(row: Any) -> dict[str, Any]:
    """Return the values of a row by column, with texts and blobs as bytes, so that they are the same for all stores."""
    values = dict(zip(EventRow._fields, row, strict=True))
    for name, value in values.items():
        if isinstance(value, memoryview) or (name in _TEXT_COLUMNS and isinstance(value, str)):
            values[name] = value.encode() if isinstance(value, str) else bytes(value)
    return values


def _find_last_position(ledger: Ledger, connection: Connection) -> int:
    """Return the last position that a damaged table still reveals."""
    for query in ledger.dialect.LAST_POSITION_QUERIES:
        rows = _read_rows(ledger, connection, query)
        if rows and isinstance(rows[0][0], int):
            return int(rows[0][0])
    return 0


def _check_revisions(ledger: Ledger, connection: Connection, after: int) -> Iterator[Finding]:
    """Yield a finding for each revision whose `supersedes` contradicts earlier events."""
    query = text(
        f"SELECT position, type, record, supersedes FROM events WHERE type IN ({_SUPERSEDING}) AND position > :after "
        "ORDER BY position"
    )
    try:
        for position, type_name, record, supersedes in connection.execute(query, {"after": after or -(2**63)}).all():
            try:
                data = parse_object(record.encode())["data"]
                expected, _ = find_superseded(Log(connection, until=position - 1), type_name, data)
            except Refused as problem:
                yield Finding("supersedes", position, problem.message)
                continue
            if supersedes != expected:
                message = f"the event {describe_wrong_supersedes(supersedes, expected)}"
                yield Finding("supersedes", position, message)
    except (DBAPIError, LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, DBAPIError):
            _raise_unless_damage(ledger, error)
        # `_walk_log` reports the unreadable event itself
        yield Finding("storage", None, f"the chains of revisions cannot be checked: {quote(str(error))}")


def _check_renames(ledger: Ledger, connection: Connection) -> Iterator[Finding]:
    """Yield a finding for each event after which the live renames would form a circle or rename an id twice."""
    renames = Renames()
    query = (
        f"SELECT {', '.join(EventRow._fields)} FROM events "
        "WHERE type IN ('player.renamed', 'event.voided') ORDER BY position"
    )
    for row in map(EventRow._make, _read_rows(ledger, connection, query) or []):
        try:
            renames.check(row)
        except Refused as problem:
            yield Finding("meaning", row.position, f"{CONTRADICTION}: {problem.message}")
        except (LookupError, ValueError, TypeError):
            continue  # `_walk_log` reports the unreadable event


def find_contradictions(
    connection: Connection, ladders: LadderChecksAt, reported: Container[int | None] = ()
) -> Generator[Finding, None, None]:
    """Yield a finding for each event that contradicts earlier events, except at `reported` positions.

    Invalid records are left out.
    """
    for position, problem in find_misfits(connection, head(connection).position, ladders):
        if position not in reported:
            yield Finding("meaning", position, f"{CONTRADICTION}: {problem.message}")


def _check_links(ledger: Ledger, connection: Connection, after: int) -> Iterator[Finding]:
    """Yield findings about `supersedes`, renames, and duplicates, which exist only if a unique index was missing."""

    def select_repeated(column: str, condition: str, problem: str) -> str:
        new = f" AND {column} IN (SELECT {column} FROM events WHERE position > :after)" * bool(after)
        return (
            f"SELECT max(position), {column}, '{problem}' FROM events WHERE {condition}{new} "
            f"GROUP BY {column} HAVING count(*) > 1"
        )

    queries = {
        "supersedes": "SELECT position, event_id, 'this event supersedes another, which its type does not allow' "
        "FROM events "
        f"WHERE supersedes IS NOT NULL AND type NOT IN ({_SUPERSEDING})" + " AND position > :after" * bool(after),
        "twice": " UNION ALL ".join(
            [
                select_repeated("event_id", "1 = 1", "this event id occurs twice"),
                select_repeated("subject", "type = 'game.recorded'", "this game is recorded twice"),
                select_repeated("supersedes", "supersedes IS NOT NULL", "this event is superseded twice"),
            ]
        ),
    }
    parameters = {"after": after} if after else {}
    yield from _check_revisions(ledger, connection, after)
    yield from _check_renames(ledger, connection)
    for code, query in queries.items():
        try:
            for position, value, problem in connection.execute(text(query), parameters):
                yield Finding(code, position, f"{quote(value)}: {problem}")
        except DBAPIError as error:
            _raise_unless_damage(ledger, error)
            yield Finding("storage", None, f"the links cannot be checked: {str(error.orig).splitlines()[0]}")
