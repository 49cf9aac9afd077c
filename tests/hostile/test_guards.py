"""The guard accepts a row only if its columns match its record, and none that is days ahead of the clock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import GAME, OCCURRED_AT, insert_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledgers import read_all_records
from sqlalchemy.exc import DBAPIError
from test_verify import create_published_ledger, list_findings

from ratings_ledger import LedgerError
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN, dump, format_instant
from ratings_ledger.ledger.events.records import EventRow, chain_hash, leaf_hash
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, connect

Ratings = Callable[..., Any]
DAY = 86_400_000_000


pytestmark = pytest.mark.ledger(make=create_published_ledger)


def build_row(ledger: Ledger, subject: str = "game:forged", **members: Any) -> EventRow:
    """Return the row of a game at the end of the log; `members` replace members of its record and columns."""
    with ledger.reading() as connection:
        last = head(connection)
    occurred_at, recorded_at = members.pop("occurred_at", OCCURRED_AT), members.pop("recorded_at", last.recorded_at)
    event = {
        "by": "eve",
        "data": GAME,
        "id": "game:forged",
        "position": last.position + 1,
        "schema_version": 1,
        "type": "game.recorded",
        **members,
        "occurred_at": format_instant(occurred_at),
        "recorded_at": format_instant(recorded_at),
    }
    record = dump(event)
    leaf = leaf_hash(record)
    return EventRow(
        event["position"], event["id"], event["type"], event["schema_version"], subject, occurred_at, recorded_at,
        event["by"], event.get("supersedes"), record, leaf, chain_hash(last.chain_hash, leaf),
    )  # fmt: skip


def try_insert(ledger: Ledger, values: EventRow, preparation: str = "SELECT 1") -> str:
    """Insert a row after a preparing statement, roll back, and return the error, empty if the row was accepted."""
    try:
        with ledger.writing() as connection:
            connection.exec_driver_sql(preparation)
            insert_row(connection, values)
            raise RollBack
    except RollBack:
        return ""
    except (DBAPIError, LedgerError) as error:
        return str(error)


class RollBack(Exception):
    """Raised to roll an accepted row back."""


OTHER_VALUES = {
    "event_id": "game:other",
    "type": "game.voided",
    "schema_version": 2,
    "subject": "game:other",
    "occurred_at": OCCURRED_AT + 1,
    "recorded_by": "zoe",
    "supersedes": "game:g-1",
}


@pytest.mark.parametrize("column", OTHER_VALUES)
def test_column_unlike_its_record_is_refused(column: str, db: str) -> None:
    """The guard refuses a row with a column that differs from its record."""
    ledger = connect(db)
    assert try_insert(ledger, build_row(ledger)) == ""
    assert "the columns do not fit the record" in try_insert(
        ledger, build_row(ledger)._replace(**{column: OTHER_VALUES[column]})
    )


@pytest.mark.parametrize(
    ("subject", "data"),
    [
        ("league:g-1", {}),
        ("game:soon", {"group": "soon"}),
        ("game:soon", {"extra": {"game_id": "soon"}}),
        ("game:soon", {"extra": {"game": "chess", "game_id": "soon", "note": '},"game":"chess","game_id":"g-1"'}}),
        ("game:anna", {}),
        ("player:anna", {}),
        ("g-1", {}),
    ],
)
def test_row_about_another_subject_is_refused(subject: str, data: dict[str, Any], db: str) -> None:
    """The guard refuses the row of a game with another subject.

    It would count a second time, or take the place of a game that is not yet recorded.
    """
    ledger = connect(db)
    forged = {**GAME, "game_id": "g-1", **data}
    assert "the columns do not fit the record" in try_insert(ledger, build_row(ledger, subject, data=forged, id="x"))
    assert try_insert(ledger, build_row(ledger, "game:new", data={**forged, "game_id": "new"}, id="x")) == ""


def test_correction_with_extra_passes_the_guard(db: str) -> None:
    """The guard accepts a correction of a game, with or without extra members."""
    ledger = connect(db)
    for extra in ({}, {"extra": {"game": "chess", "game_id": "no"}}):
        data = {"game": {**GAME, **extra, "game_id": "g-1"}, "game_id": "g-1", "reason": "x"}
        members = {"type": "game.corrected", "id": "x", "supersedes": "game:g-1", "data": data}
        assert try_insert(ledger, build_row(ledger, "game:g-1", **members)) == ""


TYPED_COLUMNS = [*(name for name in EventRow._fields if name != "position")]


@pytest.mark.parametrize("column", TYPED_COLUMNS)
def test_wrong_type_is_refused_in_sqlite(column: str, tmp_path: Path, ratings: Ratings) -> None:
    """SQLite's guard refuses a value of another type than its column's.

    SQLite would store it, but an index would not find it, and the program would not expect it.
    """
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    create_published_ledger(ratings, db)
    ledger = connect(db)
    values = build_row(ledger)
    value = getattr(values, column)
    other_value = "x" * 32 if isinstance(value, bytes) else b"game:g-1" if value is None else str(value).encode()
    assert "another type" in try_insert(ledger, values._replace(**{column: other_value}))


def test_record_with_two_endings_is_refused(db: str) -> None:
    """The guard refuses a record with two endings that are separated by a line end.

    Its columns would match the first ending, and its event the second.
    """
    ledger = connect(db)
    values = build_row(ledger)
    ending = values.record[values.record.index(',"id":') :]
    second_ending = ending.replace("game:forged", "game:other")
    record = f'{{"by":"eve","data":{{"rated":{{"a":1{ending}\n,"rated":true,{dump(GAME)[1:]}{second_ending}'
    leaf = leaf_hash(record)
    with ledger.reading() as connection:
        chain = chain_hash(head(connection).chain_hash, leaf)
    message = try_insert(ledger, values._replace(record=record, leaf_hash=leaf, chain_hash=chain))
    assert "the columns do not fit the record" in message


@pytest.mark.slow
def test_guard_ignores_own_functions(postgres_url: str, ratings: Ratings) -> None:
    """The guard in PostgreSQL uses the built-in functions and operators, not the writer's own."""
    create_published_ledger(ratings, postgres_url)
    ledger = connect(postgres_url)
    junk = build_row(ledger)._replace(record="junk", leaf_hash=b"x" * 32, chain_hash=b"x" * 32)
    own_objects = """CREATE SCHEMA own;
      CREATE FUNCTION own.starts_with(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
      CREATE FUNCTION own.strpos(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
      CREATE FUNCTION own.length(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
      CREATE FUNCTION own.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS 'SELECT';
      CREATE FUNCTION own.sha256(bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
        $$SELECT pg_catalog.decode(pg_catalog.repeat('78', 32), 'hex')$$;
      CREATE FUNCTION own.different(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
      CREATE OPERATOR own.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = own.different);
      SET search_path = own, pg_catalog, public"""
    assert "the columns do not fit the record" in try_insert(ledger, junk, preparation=own_objects)
    assert list_findings(ratings, postgres_url) == []


@pytest.mark.parametrize(
    "record",
    [
        "{}",
        "",
        "null",
        '{"by":"eve"}',
        '{"data":{},"by":"eve"}',
        ' {"by":"eve","data":{}',
    ],
)
def test_malformed_record_is_refused(record: str, db: str) -> None:
    """The guard refuses a row whose record is not a canonical event."""
    ledger = connect(db)
    values = build_row(ledger)
    leaf = leaf_hash(record)
    with ledger.reading() as connection:
        chain = chain_hash(head(connection).chain_hash, leaf)
    message = try_insert(ledger, values._replace(record=record, leaf_hash=leaf, chain_hash=chain))
    assert "the columns do not fit the record" in message
    assert "the columns do not fit the record" in try_insert(ledger, values._replace(record=values.record + " "))


def test_far_future_event_is_refused(db: str, ratings: Ratings) -> None:
    """The guard refuses an event recorded in the year 3000 and accepts one half a day ahead; games can be recorded."""
    ledger = connect(db)
    message = try_insert(ledger, build_row(ledger, recorded_at=32_503_680_000_000_000))
    assert "recorded more than a day ahead of the database's clock" in message
    assert try_insert(ledger, build_row(ledger, recorded_at=clock.now() + DAY // 2)) == ""
    game = ("--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "ben")
    assert ratings("record", *game, db=db).exit_code == 0


def test_clock_a_year_ahead_is_reported(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`record` with a clock that is a year ahead fails with a message about the clock, and records nothing."""
    records, now = read_all_records(db), clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + 366 * DAY)
    game = ("--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "ben")
    result = ratings("record", *game, db=db)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "ahead of the database's clock" in result.stderr
    monkeypatch.undo()
    assert read_all_records(db) == records
    assert list_findings(ratings, db) == []


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40) | st.text(
    st.sampled_from('"\\ab\u00e9n/{}:,'), min_size=1, max_size=12
)


def test_guard_accepts_any_names_and_times(db: str, at_length: bool) -> None:
    """The guard accepts events with any valid names and times.

    Names have quotes, backslashes and letters of every script; a recorder's name may also have line ends and tabs.
    """
    ledger = connect(db, keep_open=True)

    @settings(max_examples=500 if at_length else 60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        name=NAMES,
        by=NAMES | st.sampled_from(["a\nb", "\t", "\\n", '"']),
        game_id=NAMES,
        supersedes=st.none() | NAMES,
        at=st.integers(INSTANT_MIN, INSTANT_MAX) | st.sampled_from([INSTANT_MIN, INSTANT_MAX, -1, 0, 999_999, 10**6]),
    )
    def check_accepted(name: str, by: str, game_id: str, supersedes: str | None, at: int) -> None:
        members = {"id": name, "by": by, "data": {**GAME, "game_id": game_id}, "occurred_at": at}
        superseding = {} if supersedes is None else {"supersedes": supersedes}
        message = try_insert(ledger, build_row(ledger, f"game:{game_id}", **members, **superseding))
        # the guard has passed if only the superseded event is missing
        assert message == "" or "FOREIGN KEY" in message or "foreign key" in message

    check_accepted()
    ledger.close()


@pytest.mark.slow
def test_wrong_hashes_are_refused_in_postgresql(postgres_url: str, ratings: Ratings) -> None:
    """PostgreSQL's guard refuses a row whose hashes do not match its record."""
    create_published_ledger(ratings, postgres_url)
    ledger = connect(postgres_url)
    for name in ("leaf_hash", "chain_hash"):
        assert "the hashes do not fit the record" in try_insert(ledger, build_row(ledger)._replace(**{name: bytes(32)}))
