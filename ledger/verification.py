"""`verify` for the log: every hash recomputed from the stored records, every column compared with its record.

Findings are values. Reading continues after a damaged place, so everything wrong is reported at once; an event that
cannot be read is one finding, and the chain is picked up again after it.
"""

import marshal
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger.backups.restoring import NOT_FOLLOWING, Renames
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_object
from ratings_ledger.ledger.events.records import ZERO, EventRow, build_row, chain_hash, leaf_hash, refuse_unwritable
from ratings_ledger.ledger.events.revisions import SUPERSEDING, find_superseded
from ratings_ledger.ledger.processes.forking import UNITS_MAX, available_cores, run_forked
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store import catalogue
from ratings_ledger.ledger.store.exports import Place
from ratings_ledger.ledger.store.log import Log, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.ledger.validation.validator import LadderChecksAt, misfits

PAGE_EVENTS = 1_000
# longer logs are walked by several processes
PART_EVENTS = 20_000
_TEXTS = ("event_id", "type", "subject", "recorded_by", "supersedes", "record")
_SUPERSEDING = ", ".join(f"'{name}'" for name in sorted(SUPERSEDING))


class Finding(NamedTuple):
    """Something that is not as it was written: a code, the position if it is known, and the message."""

    code: str
    position: int | None
    message: str

    def __str__(self) -> str:
        where = "" if self.position is None else f"position {self.position}: "
        return f"{self.code}: {where}{self.message}"


CODES = {
    "storage": "the database itself reports damage",
    "unreadable": "an event cannot be read from the store",
    "missing": "positions are absent",
    "not-a-record": "a record is not canonical JSON of an event",
    "column": "a column disagrees with the record that it indexes",
    "leaf-hash": "the record was changed: its hash differs",
    "chain-hash": "the history before this position was changed, or the hash itself",
    "time-order": "recorded_at decreases",
    "supersedes": "an event is not in its chain of revisions: what it supersedes is missing, later, or of another game",
    "twice": "an id, a game or a superseded event occurs twice",
    "guard": "a trigger that protects the events is gone or altered",
    "head": "the ledger does not contain the history that was asked for",
    "meaning": "a record says what no event can say",
    "schema": "a table, an index, a view or a trigger is not as this program makes it, or is not one of its own",
    "standings": "stored standings differ from a replay",
    "trace": "a trace kept in the cache is not what a replay leaves behind; it is deleted, and its folder named",
    "published": "a published list is not what its coordinates give",
    "clock": "a result disagrees with the game's clock about a removal",
    "rule": "a rule failed at a game",
}


class VerifiedCounts(NamedTuple):
    """How much of each kind was looked at."""

    events: int = 0
    hashes: int = 0
    guards: int = 0
    objects: int = 0
    ladders: int = 0
    lists: int = 0


def verify_log(
    ledger: Ledger, connection: Connection, expected: Place | None = None, since: Place | None = None
) -> Generator[Finding, None, VerifiedCounts]:
    """Yield all findings about the log, in order, or those about what was recorded `since` a place.

    Both places must be in the log. Returns how much it looked at. What keeps it from looking is raised: a connection
    error, a lock, a missing right. The walk ends at the head of the log as it was at the start.
    """
    after = 0 if since is None else since.position
    for message in ledger.dialect.storage_findings(connection) if since is None else ():
        yield Finding("storage", None, message)
    objects, whole = yield from _schema(connection)
    if not whole:
        return VerifiedCounts(objects=objects)
    for name in ledger.dialect.missing_guards(connection):
        yield Finding(
            "guard", None, f"the guard {name} is missing or altered; anybody could change events unnoticed by it"
        )
    until, count = _extent(ledger, connection, after)
    walked, explained = 0, False
    for rows, findings in _walk(ledger, connection, after, until, count):
        walked += rows
        explained |= any(finding.code in ("missing", "unreadable") for finding in findings)
        yield from findings
    if (count, walked) != (until - after, until - after) and not explained:
        behind = f" behind position {after}" * bool(after)
        numbers = f"{walked:,} events were read{behind} and {count:,} are counted"
        yield Finding("missing", None, f"{numbers}, but the last position is {until}")
    yield from _links(ledger, connection, after)
    for place in filter(None, (expected, since)):
        stored = _single_hash(ledger, connection, place.position) if place.position else (ZERO, 0)
        if stored is None or stored[0] != place.chain_hash:
            message = f"no history with the chain hash {place.chain_hash.hex()} at position {place.position}"
            yield Finding("head", place.position, message)
    return VerifiedCounts(walked, 2 * walked, len(ledger.dialect.GUARDS), objects)


def _schema(connection: Connection) -> Generator[Finding, None, tuple[int, bool]]:
    """Whatever the database holds besides the events that is not as this program makes it; returns how many objects
    are, and whether all tables are there, with all columns."""
    objects, whole = 0, True
    for message in catalogue.object_differences(connection):
        objects += message is None
        if message is not None:
            whole &= not (message.startswith(("the table ", "the column ")) and " is missing" in message)
            yield Finding("schema", None, message)
    if not whole:
        return objects, False
    try:
        ledger_id(connection)
    except NotALedger as problem:
        yield Finding("schema", None, str(problem))
    versions = list(connection.execute(text("SELECT version_num FROM alembic_version")).scalars())
    if versions != [SCHEMA_REVISION]:
        yield Finding("schema", None, f"the table alembic_version holds {versions}, not {SCHEMA_REVISION} alone")
    return objects, True


def _extent(ledger: Ledger, connection: Connection, after: int) -> tuple[int, int]:
    """Return the last position, at least `after`, and how many events there are behind that; a damaged table reports
    fewer."""
    last = _read(ledger, connection, "SELECT coalesce(max(position), 0) FROM events")
    counted = "SELECT count(*) FROM events WHERE position <= :until" + " AND position > :after" * bool(after)
    given = {"after": after} if after else {}
    count = _read(ledger, connection, counted, until=last[0][0], **given) if last else None
    if last and count:
        return max(int(last[0][0]), after), int(count[0][0])
    known = max(_last_position(ledger, connection), after)
    return known, known - after


def _read(ledger: Ledger, connection: Connection, query: str, **given: int) -> Sequence[Any] | None:
    """Return the rows of a query, None if damage keeps them from being read. Any other error is raised: it says nothing
    about what is stored, but about the connection, a lock, a right, an interrupt.
    """
    try:
        return connection.execute(text(query), given).all()
    except DBAPIError as error:
        _raise_unless_damage(ledger, error)
        return None


# the outcome of a range of positions: how many rows were read, and the findings
Part = tuple[int, list[Finding]]


def _walk(ledger: Ledger, connection: Connection, after: int, until: int, count: int) -> Iterator[Part]:
    """Yield the parts of the log behind a position, in order; a long log without gaps is walked by several processes at
    once.
    """
    cores, events = available_cores(), until - after
    size = max(PART_EVENTS, -(-events // UNITS_MAX))
    if cores == 1 or events <= PART_EVENTS or count != events:
        yield _range(ledger, connection, after + 1, until)
        return
    ranges = [(first, min(first + size - 1, until)) for first in range(after + 1, until + 1, size)]

    def work(number: int) -> bytes:
        first, last = ranges[number]
        with ledger.reading() as own:
            rows, findings = _range(ledger, own, first, last)
        return marshal.dumps((number, rows, [tuple(finding) for finding in findings]))

    done: dict[int, Part] = {}
    following = 0
    with closing(run_forked(work, len(ranges), cores)) as messages:
        for message in messages:
            number, rows, findings = marshal.loads(message)
            done[number] = rows, [Finding(*finding) for finding in findings]
            while following in done:
                yield done.pop(following)
                following += 1


def _range(ledger: Ledger, connection: Connection, first: int, until: int) -> Part:
    """Return the findings in a range of positions; the first range also looks at whatever comes before it."""
    findings: list[Finding] = []
    position, rows = first - 1, 0
    before = None if first == 1 else _single_hash(ledger, connection, position)
    chain: bytes | None = ZERO if first == 1 else before and before[0]
    recorded_at = -(2**63) if before is None else before[1]
    for found, row in _rows(ledger, connection, first - 1 if first > 1 else None, until):
        rows += 1
        if row is None:
            findings.append(Finding("unreadable", found, "the event cannot be read: its page is damaged"))
            position, chain = found, None
            continue
        if found != position + 1:
            findings.append(_gap(position, found))
            chain = None
        findings += _row_findings(row, chain)
        if isinstance(row["recorded_at"], int):
            if row["recorded_at"] < recorded_at:
                findings.append(Finding("time-order", found, "recorded earlier than the previous event"))
            recorded_at = row["recorded_at"]
        position, chain = found, row["chain_hash"] if isinstance(row["chain_hash"], bytes) else None
    if position < until:
        findings.append(_gap(position, until + 1))
    return rows, findings


def _single_hash(ledger: Ledger, connection: Connection, position: int) -> tuple[bytes, int] | None:
    """Return the chain hash and the time at a position, as they are stored."""
    query = "SELECT chain_hash, recorded_at FROM events WHERE position = :position"
    rows = _read(ledger, connection, query, position=position)
    return (bytes(rows[0][0]), rows[0][1]) if rows and isinstance(rows[0][1], int) else None


def _raise_unless_damage(ledger: Ledger, error: DBAPIError) -> None:
    """Raises an error that says nothing about what is stored: about the connection, a lock, a right, an interrupt."""
    if not ledger.dialect.is_damage(error.orig or error):
        raise error


def _gap(position: int, found: int) -> Finding:
    """Return the finding that the event at `found` does not follow the one at `position`."""
    if found <= position:
        return Finding("missing", found, f"stands behind position {position}")
    absent = f"position {position + 1}" if found == position + 2 else f"positions {position + 1} to {found - 1}"
    return Finding("missing", position + 1, f"{absent} absent")


def _row_findings(row: dict[str, Any], before: bytes | None) -> Iterator[Finding]:
    """Yield what is wrong within one row. `before` is the stored chain hash of the previous position, if it could be
    read.
    """
    position = row["position"]
    record = row["record"]
    if not isinstance(record, bytes):
        yield Finding("not-a-record", position, f"the record is {quote(record)}")
        return
    leaf = leaf_hash(record)
    if leaf != row["leaf_hash"]:
        yield Finding("leaf-hash", position, f"the record does not hash to its leaf hash; it reads {_excerpt(record)}")
    stored_leaf = row["leaf_hash"] if isinstance(row["leaf_hash"], bytes) else b""
    if before is not None and chain_hash(before, stored_leaf) != row["chain_hash"]:
        yield Finding("chain-hash", position, "the chain hash does not follow from the previous position")
    try:
        event = parse_object(record)
        text_ = record.decode()
        expected = build_row(text_, event, ZERO)
        if dump(event) != text_ or format_instant(expected.occurred_at) != event["occurred_at"]:
            raise Refused("restore-mismatch", "it is not in canonical form")
    except Refused as problem:
        yield Finding("not-a-record", position, f"{problem.message}; it reads {_excerpt(record)}")
        return
    named = list(_column_findings(position, row, expected))
    yield from named
    if not named:
        try:
            refuse_unwritable(expected, event)
        except Refused as problem:
            yield Finding("meaning", position, f"no event says this: {problem.message}")


def _column_findings(position: int, row: dict[str, Any], expected: EventRow) -> Iterator[Finding]:
    for name in EventRow._fields:
        if name in ("record", "leaf_hash", "chain_hash"):
            continue
        value = row[name]
        if name in _TEXTS and isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        wanted = getattr(expected, name)
        if value != wanted or type(value) is not type(wanted):
            yield Finding("column", position, f"{name} is {quote(value)}, the record says {quote(wanted)}")


def _excerpt(record: bytes) -> str:
    return quote(record[:200].decode("utf-8", "backslashreplace"), 120)


def _rows(
    ledger: Ledger, connection: Connection, after: int | None, until: int
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(position, row) in order, starting after `after` (None: from the very first), with texts as bytes; None for a row
    that cannot be read."""
    names = ", ".join(ledger.dialect.sql_as_bytes(name) if name in _TEXTS else name for name in EventRow._fields)
    page = f"SELECT {names} FROM events WHERE position > :after AND position <= :until ORDER BY position LIMIT :size"
    single = f"SELECT {names} FROM events WHERE position = :position"
    # includes whatever comes before the first position
    behind = -(2**63) if after is None else after
    while behind < until:
        rows = _read(ledger, connection, page, after=behind, until=until, size=PAGE_EVENTS)
        if rows is None:
            # a page of the file is damaged: go position by position as far as the log is known to reach
            behind, last = max(behind, 0), min(until, _last_position(ledger, connection))
            for position in range(behind + 1, min(behind + PAGE_EVENTS, last) + 1):
                found = _read(ledger, connection, single, position=position)
                yield position, _plain(found[0]) if found else None
            behind += PAGE_EVENTS
            if behind >= last:
                return
            continue
        for row in rows:
            plain = _plain(row)
            position = plain["position"] if isinstance(plain["position"], int) else behind + 1
            yield position, plain
        if len(rows) < PAGE_EVENTS:
            return
        behind = max(behind + 1, rows[-1][0])


def _plain(row: Any) -> dict[str, Any]:
    values = dict(zip(EventRow._fields, row, strict=True))
    for name, value in values.items():
        if isinstance(value, memoryview) or (name in _TEXTS and isinstance(value, str)):
            values[name] = value.encode() if isinstance(value, str) else bytes(value)
    return values


def _last_position(ledger: Ledger, connection: Connection) -> int:
    """Return the last position, as far as the damage lets it be known."""
    for query in ledger.dialect.LAST_POSITIONS:
        rows = _read(ledger, connection, query)
        if rows and isinstance(rows[0][0], int):
            return int(rows[0][0])
    return 0


def _lines(ledger: Ledger, connection: Connection, after: int) -> Iterator[Finding]:
    """Corrections, voids and reinstatements that do not fit the revisions recorded before them."""
    found = text(
        f"SELECT position, type, record, supersedes FROM events WHERE type IN ({_SUPERSEDING}) AND position > :after "
        "ORDER BY position"
    )
    try:
        for position, type_name, record, supersedes in connection.execute(found, {"after": after or -(2**63)}).all():
            try:
                data = parse_object(record.encode())["data"]
                expected, _ = find_superseded(Log(connection, until=position - 1), type_name, data)
            except Refused as problem:
                yield Finding("supersedes", position, problem.message)
                continue
            if supersedes != expected:
                wrong = f"it supersedes {quote(supersedes)} where it can only supersede {quote(expected)}"
                yield Finding("supersedes", position, wrong)
    except (DBAPIError, LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, DBAPIError):
            _raise_unless_damage(ledger, error)
        # what cannot be read is a finding of its own
        yield Finding("storage", None, f"the chains of revisions cannot be checked: {quote(str(error))}")


def _renames(ledger: Ledger, connection: Connection) -> Iterator[Finding]:
    """Renames that form a circle, or lead one id to two others."""
    renames = Renames()
    query = (
        f"SELECT {', '.join(EventRow._fields)} FROM events "
        "WHERE type IN ('player.renamed', 'event.voided') ORDER BY position"
    )
    for row in map(EventRow._make, _read(ledger, connection, query) or []):
        try:
            renames.check(row)
        except Refused as problem:
            yield Finding("meaning", row.position, f"position {row.position} {NOT_FOLLOWING}: {problem.message}")
        except (LookupError, ValueError, TypeError):
            continue  # what cannot be read is a finding of its own


def verify_order(
    connection: Connection, ladders: LadderChecksAt, told: Container[int | None] = ()
) -> Generator[Finding, None, None]:
    """Events that do not fit those before them, in a log of sound records, except at positions already `told`."""
    for position, problem in misfits(connection, head(connection).position, ladders):
        if position not in told:
            yield Finding("meaning", position, f"it does not fit the events before it: {problem.message}")


def _links(ledger: Ledger, connection: Connection, after: int) -> Iterator[Finding]:
    """Links by `supersedes` and what must be unique, straight from the table (a dropped index protects nothing)."""

    def twice(column: str, condition: str) -> str:
        new = f" AND {column} IN (SELECT {column} FROM events WHERE position > :after)" * bool(after)
        return (
            f"SELECT max(position), {column} FROM events WHERE {condition}{new} GROUP BY {column} HAVING count(*) > 1"
        )

    queries = {
        "supersedes": "SELECT position, event_id FROM events "
        f"WHERE supersedes IS NOT NULL AND type NOT IN ({_SUPERSEDING})" + " AND position > :after" * bool(after),
        "twice": " UNION ALL ".join(
            [twice("event_id", "1 = 1"), twice("subject", "type = 'game.recorded'"),
             twice("supersedes", "supersedes IS NOT NULL")]
        ),
    }  # fmt: skip
    given = {"after": after} if after else {}
    yield from _lines(ledger, connection, after)
    yield from _renames(ledger, connection)
    for code, query in queries.items():
        try:
            for position, what in connection.execute(text(query), given):
                yield Finding(code, position, f"{quote(what)}: {CODES[code]}")
        except DBAPIError as error:
            _raise_unless_damage(ledger, error)
            yield Finding("storage", None, f"the links cannot be checked: {str(error.orig).splitlines()[0]}")
