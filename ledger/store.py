"""The log in its SQL store: opening it, appending to it, reading it. All SQL over `events` is here.

Appends are serialised by the store's own lock, taken before the head is read; a batch is one transaction. Reads are
short pages, each a transaction of its own, so that a long replay never holds up an append.
"""

import shlex
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Select, bindparam, func, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from ledger import postgres, sqlite
from ledger.canonical import format_instant, parse_object
from ledger.errors import ClockBehind, NotALedger, NotEmpty
from ledger.events import TYPES, Draft, Ruleset, meaning
from ledger.records import ZERO, Row, build, chain_hash, leaf_hash
from ledger.rejections import Refused, Rejection, shown
from ledger.schema import SCHEMA_REVISION, events, ledger_identity
from ledger.upcasting import check_chain, upcast

PAGE_EVENTS = 5_000
CLOCK_TOLERANCE = 5 * 60 * 1_000_000  # microseconds
_LOOKUP_SIZE = 400

Clock = Callable[[], int]


@dataclass(frozen=True)
class Ledger:
    """An opened store. `dialect` is the module `sqlite` or `postgres`; `location` names the store to people."""

    engine: Engine
    dialect: ModuleType
    location: str
    url: URL

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection whose statements are transactions of their own."""
        with self._translated(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in one transaction that commits at the end, or leaves nothing behind."""
        with (
            self._translated(),
            self.engine.connect().execution_options(writing=True) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            failure = self.dialect.failure(error.orig or error, self.location)
            if failure is None:
                raise
            raise failure from error


class Head(NamedTuple):
    """The last position of the log with its chain hash and time; position 0 before the first event."""

    position: int
    chain_hash: bytes
    recorded_at: int

    def __str__(self) -> str:
        return f"{self.position}:{self.chain_hash.hex()}"


class Appended(NamedTuple):
    """What an append did. With refusals nothing was appended; each stands with the index of its draft."""

    appended: int
    existing: int
    refused: list[tuple[int, Rejection]]
    head: Head


def parse_url(name: str) -> URL:
    """A SQLAlchemy URL or a file path. Raises `NotALedger` for what is neither."""
    name = name.replace("postgres://", "postgresql://", 1) if name.startswith("postgres://") else name
    try:
        url = make_url(name) if "://" in name else URL.create("sqlite", database=name)
    except (ArgumentError, ValueError):
        raise NotALedger(
            f"{shown(name)} is not a database URL; write sqlite:///ratings.db or postgresql://..."
        ) from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise NotALedger(f"{url.get_backend_name()} is not supported; a ledger lives in SQLite or PostgreSQL")
    return url


def connect(name: str, create: bool = False) -> Ledger:
    """The store of that name, without a look at what it holds."""
    url = parse_url(name)
    dialect = sqlite if url.get_backend_name() == "sqlite" else postgres
    location = str(url.database) if dialect is sqlite else url.render_as_string(hide_password=True)
    return Ledger(dialect.engine(url, create), dialect, location, url)


def open_ledger(name: str) -> Ledger:
    """The ledger of that name. Raises `StoreUnavailable`, `NotALedger`, `UnknownSchemaVersion`."""
    ledger = connect(name)
    with ledger.reading() as connection:
        found = schema_revision(connection)
        init = f"ratings --db {shlex.quote(ledger.location)} init"
        if found is None:
            raise NotALedger(f"{ledger.location} holds no ledger; make one there with: {init}")
        if found != SCHEMA_REVISION:
            remedy = f"upgrade it with: {init}" if found < SCHEMA_REVISION else "a newer ratings-ledger made it"
            raise NotALedger(f"{ledger.location} has schema {found}, this program needs {SCHEMA_REVISION}; {remedy}")
        check_chain(_stored_versions(connection), {name: kind.schema_version for name, kind in TYPES.items()})
    return ledger


def schema_revision(connection: Connection) -> str | None:
    """The migration that the store is at, or None if it holds no ledger."""
    tables = inspect(connection)
    if not (tables.has_table("alembic_version") and tables.has_table("ledger_identity")):
        return None
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar())


def _stored_versions(connection: Connection) -> set[tuple[str, int]]:
    """The (type, schema version) pairs of the log, each found by one step in the index."""
    found: set[tuple[str, int]] = set()
    columns = (events.c.type, events.c.schema_version)
    first = select(*columns).order_by(*columns).limit(1)
    row = connection.execute(first).one_or_none()
    while row is not None:
        found.add((row[0], row[1]))
        later = (events.c.type > row[0]) | ((events.c.type == row[0]) & (events.c.schema_version > row[1]))
        row = connection.execute(first.where(later)).one_or_none()
    return found


def ledger_id(connection: Connection) -> str:
    """The random id of this ledger."""
    return str(connection.execute(select(ledger_identity.c.ledger_id)).scalar_one())


def new_ledger_id() -> str:
    """An id for a ledger that is being made."""
    return str(uuid.uuid4())


# reading


def head(connection: Connection) -> Head:
    """The head of the log."""
    newest = select(events.c.position, events.c.chain_hash, events.c.recorded_at).order_by(events.c.position.desc())
    row = connection.execute(newest.limit(1)).one_or_none()
    return Head(0, ZERO, 0) if row is None else Head(row[0], bytes(row[1]), row[2])


def chain_hash_at(connection: Connection, position: int) -> bytes | None:
    """The chain hash at a position, or None beyond the head."""
    if position == 0:
        return ZERO
    found = connection.execute(select(events.c.chain_hash).where(events.c.position == position)).scalar()
    return None if found is None else bytes(found)


def position_known_at(connection: Connection, instant: int) -> int:
    """The last position recorded up to an instant (recorded times never decrease along the log)."""
    low, high = 0, head(connection).position
    while low < high:
        middle = (low + high + 1) // 2
        recorded = connection.execute(select(events.c.recorded_at).where(events.c.position == middle)).scalar_one()
        low, high = (middle, high) if recorded <= instant else (low, middle - 1)
    return low


_page = (
    select(events.c.position, events.c.record)
    .where(events.c.position > bindparam("after"), events.c.position <= bindparam("until"))
    .order_by(events.c.position)
    .limit(bindparam("size"))
)


def read_records(
    connection: Connection, after: int = 0, until: int | None = None, size: int = PAGE_EVENTS
) -> Iterator[Sequence[tuple[int, str]]]:
    """Pages of (position, record) in log order, from behind `after` up to and including `until` (default: the head)."""
    until = head(connection).position if until is None else until
    while after < until:
        page = connection.execute(_page, {"after": after, "until": until, "size": size}).all()
        if not page:
            return
        yield [(row[0], row[1]) for row in page]
        after = page[-1][0]


def read_where(
    connection: Connection, *, until: int, type_name: str | None = None, subject: str | None = None
) -> list[tuple[int, str]]:
    """(position, record) of the events of a type or about a subject, in log order up to a position."""
    query = select(events.c.position, events.c.record, events.c.type).where(events.c.position <= until)
    # one condition in SQL, the one that selects more: SQLite might take the other's index for both
    query = query.where(events.c.type == type_name if subject is None else events.c.subject == subject)
    found = connection.execute(query.order_by(events.c.position))
    return [(row.position, row.record) for row in found if type_name in (None, row.type)]


def read_records_at(connection: Connection, positions: Sequence[int]) -> dict[int, str]:
    """The records at these positions."""
    found: dict[int, str] = {}
    for start in range(0, len(positions), _LOOKUP_SIZE):
        wanted = events.c.position.in_(positions[start : start + _LOOKUP_SIZE])
        found.update(_pairs(connection, select(events.c.position, events.c.record).where(wanted)))
    return found


def _pairs(connection: Connection, query: Select[Any]) -> dict[Any, Any]:
    return {row[0]: row[1] for row in connection.execute(query)}


# appending


def lookup(connection: Connection, drafts: Sequence[Draft]) -> dict[int, Rejection | None]:
    """Those of the drafts, by index, that the log holds already: None for the same content, else the refusal."""
    by_id: dict[str, str] = {}
    game_subjects: dict[str, str] = {}
    for start in range(0, len(drafts), _LOOKUP_SIZE):
        part = drafts[start : start + _LOOKUP_SIZE]
        ids = events.c.event_id.in_([draft.event_id for draft in part])
        by_id.update(_pairs(connection, select(events.c.event_id, events.c.record).where(ids)))
        if subjects := [draft.subject for draft in part if draft.type == "game.recorded"]:
            # by subject alone: given the type too, SQLite would walk through all games by the index on types
            about = select(events.c.subject, events.c.event_id, events.c.type).where(events.c.subject.in_(subjects))
            for row in connection.execute(about):
                if row.type == "game.recorded":
                    game_subjects[row.subject] = row.event_id
    found: dict[int, Rejection | None] = {}
    for index, draft in enumerate(drafts):
        published, rejection = _published(connection, draft) if draft.type == "ruleset.published" else (False, None)
        if published:
            found[index] = rejection
        elif draft.event_id in by_id:
            found[index] = None if same_content(by_id[draft.event_id], draft) else id_conflict(draft)
        elif draft.type == "game.recorded" and draft.subject in game_subjects:
            found[index] = game_exists(draft, game_subjects[draft.subject])
    return found


def _published(connection: Connection, draft: Draft) -> tuple[bool, Rejection | None]:
    """Whether a ruleset's version is published, under whatever id and date, and the refusal if with other content."""
    given = Ruleset.model_validate(parse_object(draft.data.encode()))
    until = head(connection).position
    for _, record in read_where(connection, until=until, subject=draft.subject, type_name="ruleset.published"):
        other = Ruleset.model_validate(parse_object(record.encode())["data"])
        if other.version == given.version:
            return True, None if other == given else version_exists(given)
    return False, None


def version_exists(ruleset: Ruleset) -> Rejection:
    """The refusal of a version that is published with other content."""
    return Rejection(
        "version-exists", f"{ruleset.name} is published already with another content; a change needs a new version"
    )


def id_conflict(draft: Draft) -> Rejection:
    """The refusal of a draft whose id is taken by another content."""
    return Rejection(
        "id-conflict", f"an event with the id {shown(draft.event_id)} and another content is recorded already"
    )


def game_exists(draft: Draft, event_id: str) -> Rejection:
    """The refusal of a draft whose game is recorded under another event id."""
    return Rejection(
        "game-exists",
        f"{shown(draft.subject.removeprefix('game:'))} is recorded already, by the event {shown(event_id)}",
    )


def same_content(record: str, draft: Draft) -> bool:
    """Whether a record says what the draft says, defaults filled in."""
    event = parse_object(record.encode())
    if event["type"] != draft.type or event["occurred_at"] != format_instant(draft.occurred_at):
        return False
    data = upcast(draft.type, event["schema_version"], draft.schema_version, event["data"])
    given = parse_object(draft.data.encode())
    return data == given or (
        meaning(draft.type, draft.occurred_at, data) == meaning(draft.type, draft.occurred_at, given)
    )


def next_recorded_at(before: Head, clock: Clock, ignore_clock: bool) -> int:
    """The time of the next record: now, or the head's if that is a little later. Raises `ClockBehind`."""
    now = clock()
    if before.recorded_at - now > CLOCK_TOLERANCE and not ignore_clock:
        raise ClockBehind(
            f"the last event was recorded at {format_instant(before.recorded_at)}, but this machine's clock says "
            f"{format_instant(now)}; set the clock right, or append with the head's time by --ignore-clock"
        )
    return max(now, before.recorded_at)


def append(ledger: Ledger, drafts: Sequence[Draft], *, by: str, clock: Clock, ignore_clock: bool = False) -> Appended:
    """Append the drafts that are not in the log yet, in order, in one transaction; all of them or none.

    The ids and games of `drafts` are distinct. Raises `ClockBehind`, `StoreUnavailable`.
    """
    with ledger.writing() as connection:
        ledger.dialect.lock_appends(connection)
        before = head(connection)
        known = lookup(connection, drafts)
        refused = [(index, rejection) for index, rejection in known.items() if rejection is not None]
        fresh = [(index, draft) for index, draft in enumerate(drafts) if index not in known]
        rows: list[Row] = []
        if fresh and not refused:
            recorded_at = next_recorded_at(before, clock, ignore_clock)
            chain = before.chain_hash
            for position, (index, draft) in enumerate(fresh, before.position + 1):
                try:
                    row = _row(draft, position, recorded_at, draft.by or by, chain)
                except Refused as problem:
                    refused.append((index, problem.rejection()))
                    continue
                rows.append(row)
                chain = row.chain_hash
        if refused:
            return Appended(0, len(known) - len(refused), refused, before)
        insert_rows(connection, rows)
    after = Head(rows[-1].position, rows[-1].chain_hash, rows[-1].recorded_at) if rows else before
    return Appended(len(rows), len(known), [], after)


def _row(draft: Draft, position: int, recorded_at: int, by: str, before: bytes) -> Row:
    record = build(draft, position, recorded_at, by)
    leaf = leaf_hash(record)
    return Row(
        position, draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at, recorded_at, by,
        None, record, leaf, chain_hash(before, leaf),
    )  # fmt: skip


def insert_rows(connection: Connection, rows: Iterable[Row]) -> None:
    """Rows that continue the log, as they are; the append lock is held."""
    if values := [row._asdict() for row in rows]:
        connection.execute(insert(events), values)


def require_empty(ledger: Ledger) -> Head:
    """The head of a ledger without events. Raises `NotEmpty`."""
    with ledger.reading() as connection:
        latest = head(connection)
    if latest.position:
        raise NotEmpty(
            f"{ledger.location} holds {latest.position} events; --restore needs an empty ledger "
            "(make one with: ratings --db NEW init --no-rules)"
        )
    return latest


def append_restored(ledger: Ledger, batches: Iterable[list[Row]]) -> Head:
    """Rows of an export into a ledger without events, a transaction per batch. Raises `NotEmpty`."""
    latest = require_empty(ledger)
    for rows in batches:
        with ledger.writing() as connection:
            ledger.dialect.lock_appends(connection)
            if head(connection).position != latest.position:
                raise NotEmpty(
                    f"somebody else appended to {ledger.location} during the restore; start with a new ledger"
                )
            insert_rows(connection, rows)
        latest = Head(rows[-1].position, rows[-1].chain_hash, rows[-1].recorded_at)
    return latest


def count_by_type(connection: Connection) -> dict[str, int]:
    """How many events of each type the log holds."""
    return _pairs(connection, select(events.c.type, func.count()).group_by(events.c.type))
