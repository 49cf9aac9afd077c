"""Edits from a plain connection are refused by the database, or found by `verify` where the owner can make them."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from fault_helpers import (
    COLUMNS,
    append_games,
    build_decision,
    build_next_row,
    build_numbered_game,
    execute_plainly,
    list_findings,
    open_plain_connection,
)
from ledgers import create_ledger, read_all_records, read_head

EVENTS = 5
REFUSALS = (sqlite3.IntegrityError, psycopg.errors.RestrictViolation)
UPDATE_ON_CONFLICT = "ON CONFLICT (event_id) DO UPDATE SET recorded_by = 'mallory'"


def create_attacked_ledger(_: object, url: str) -> None:
    """Create a ledger with four games and an event that supersedes the second."""
    create_ledger(url)
    append_games(url, [build_numbered_game(number) for number in range(1, EVENTS)])
    result = append_games(url, [build_decision("game.voided", game_id="g-2")])
    assert (result.refused, result.head.position, list_findings(url)) == ([], EVENTS, [])


@pytest.fixture
def attacked_url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of a ledger with four games and an event that supersedes the second, in each kind of store."""
    return copy_ledger(create_attacked_ledger)


def assert_refused(url: str, statement: str, row: dict[str, Any] | None = None) -> None:
    """Assert that the store refuses a statement and is unchanged."""
    before = read_all_records(url)
    with pytest.raises(REFUSALS):
        execute_plainly(url, statement, row)
    assert read_all_records(url) == before
    assert list_findings(url) == []


@pytest.mark.slow_cases
def test_valid_row_is_accepted(attacked_url: str) -> None:
    """A valid row is accepted, so the refusals in the other tests are meaningful."""
    assert execute_plainly(attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url)) == 1
    assert (
        execute_plainly(
            attacked_url, f"INSERT INTO events VALUES {UPDATE_ON_CONFLICT}", build_next_row(attacked_url, 99)
        )
        == 1
    )
    assert list_findings(attacked_url) == []


@pytest.mark.slow_cases
def test_update_and_delete_are_refused(attacked_url: str) -> None:
    """The store refuses every UPDATE and DELETE of events and of the ledger's identity."""
    assert_refused(attacked_url, "UPDATE events SET recorded_by = 'mallory' WHERE position = 2")
    assert_refused(attacked_url, "UPDATE events SET position = position + 100")
    assert_refused(attacked_url, "UPDATE events SET position = position")
    assert_refused(attacked_url, "DELETE FROM events")
    assert_refused(attacked_url, "DELETE FROM events WHERE position = (SELECT max(position) FROM events)")
    assert_refused(attacked_url, "UPDATE ledger_identity SET ledger_id = 'mallory'")
    assert_refused(attacked_url, "DELETE FROM ledger_identity")


INVALID_ROWS = {
    "gap": {"position": EVENTS + 2},
    "taken position": {"position": 3},
    "position zero": {"position": 0},
    "negative position": {"position": -1},
    "largest position": {"position": 2**63 - 1},
    "taken event id": {"event_id": "game:g-2"},
    "second game.recorded of a game": {"subject": "game:g-2"},
    "recorded before the head": {"recorded_at": 0},
    "no hash": {"leaf_hash": b"short"},
}


@pytest.mark.parametrize("conflict", ["", "ON CONFLICT DO NOTHING", UPDATE_ON_CONFLICT])
def test_rows_that_do_not_continue_the_log_are_refused(attacked_url: str, conflict: str) -> None:
    """Rows that do not continue the log are not inserted, whatever the conflict clause."""
    before = read_all_records(attacked_url)
    for what, changes in INVALID_ROWS.items():
        row = build_next_row(attacked_url, **changes)
        try:
            inserted = execute_plainly(attacked_url, f"INSERT INTO events VALUES {conflict}", row)
        except (*REFUSALS, psycopg.IntegrityError):
            inserted = 0
        assert inserted == 0, what
        assert read_all_records(attacked_url) == before, what
    assert list_findings(attacked_url) == []


def test_second_superseding_event_is_refused(attacked_url: str) -> None:
    """The store refuses a second event that supersedes the same one."""
    second_void = build_decision("game.voided", game_id="g-2", reason="once more")
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.UniqueViolation)):
        execute_plainly(
            attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url, second_void, supersedes="game:g-2")
        )
    assert list_findings(attacked_url) == []


OVERWRITING_COLUMNS = {
    "position": {"position": 3},
    "no position": {"position": None},
    "event_id": {"event_id": "game:g-2"},
    "supersedes": {"supersedes": "game:g-2"},
    "game": {"subject": "game:g-2"},
    "gap": {"position": EVENTS + 2},
    "negative position": {"position": -1},
}


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("by", OVERWRITING_COLUMNS)
def test_insert_or_replace_overwrites_nothing(attacked_url: str, by: str) -> None:
    """In SQLite, no form of INSERT OR REPLACE overwrites an event."""
    row = {**build_next_row(attacked_url), **OVERWRITING_COLUMNS[by]}
    for verb in ("INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL", "INSERT OR ROLLBACK"):
        assert_refused(attacked_url, f"{verb} INTO events VALUES", row)


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
def test_update_or_replace_is_refused(attacked_url: str) -> None:
    """In SQLite, no form of UPDATE OR REPLACE changes an event or the ledger's identity."""
    assert_refused(attacked_url, "UPDATE OR REPLACE events SET position = 2 WHERE position = 3")
    assert_refused(attacked_url, "UPDATE OR REPLACE events SET event_id = 'game:g-2' WHERE position = 3")
    assert_refused(attacked_url, "UPDATE OR REPLACE events SET supersedes = 'game:g-2' WHERE position = 3")
    assert_refused(attacked_url, "UPDATE OR IGNORE events SET recorded_by = 'mallory'")
    assert_refused(attacked_url, "UPDATE events SET rowid = 77 WHERE rowid = 3")
    assert_refused(attacked_url, "INSERT OR REPLACE INTO ledger_identity (singleton, ledger_id) SELECT 1, 'mallory'")


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_truncate_is_refused(attacked_url: str) -> None:
    """PostgreSQL refuses to truncate the events or the ledger's identity."""
    for statement in ("TRUNCATE events", "TRUNCATE events CASCADE", "TRUNCATE ledger_identity"):
        assert_refused(attacked_url, statement)


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "hide",
    [
        "CREATE TEMPORARY TABLE events AS SELECT * FROM public.events",
        "CREATE SCHEMA other; CREATE TABLE other.events AS SELECT * FROM public.events; SET search_path = other",
    ],
    ids=["temporary", "in another schema"],
)
def test_decoy_table_cannot_replace_the_log(attacked_url: str, hide: str) -> None:
    """A decoy table `events` cannot stand in for the log.

    The guard reads the log even for a row that continues a false head in another `events`, whether or not the guard
    has run before on the same connection.
    """
    row = build_next_row(attacked_url, position=1_000)
    marks = ", ".join(["%s"] * len(COLUMNS.split(", ")))
    insert = f"INSERT INTO public.events ({COLUMNS}) VALUES ({marks})"
    for rows_before in (0, 10):
        with closing(open_plain_connection(attacked_url)) as connection:
            for _ in range(rows_before):
                with pytest.raises(REFUSALS):
                    connection.execute(insert, tuple(row.values()))
            connection.execute(hide)
            connection.execute("UPDATE events SET position = 999 WHERE position = (SELECT max(position) FROM events)")
            with pytest.raises(REFUSALS):
                connection.execute(insert, tuple(row.values()))
            connection.execute("DROP TABLE IF EXISTS events CASCADE; DROP SCHEMA IF EXISTS other")
    assert list_findings(attacked_url) == []


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_valid_row_is_accepted_beside_a_decoy(attacked_url: str) -> None:
    """In PostgreSQL, a valid row is accepted even beside a temporary table named like the log."""
    row = build_next_row(attacked_url)
    with closing(open_plain_connection(attacked_url)) as connection:
        connection.execute("CREATE TEMPORARY TABLE events (n integer)")
        marks = ", ".join(["%s"] * len(COLUMNS.split(", ")))
        connection.execute(f"INSERT INTO public.events ({COLUMNS}) VALUES ({marks})", tuple(row.values()))
    assert list_findings(attacked_url) == []


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_merge_and_wrong_hashes_are_refused(attacked_url: str) -> None:
    """PostgreSQL refuses MERGE and rows whose hashes do not fit."""
    assert_refused(attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url, chain_hash=bytes(32)))
    assert_refused(attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url, record='{"by":"mallory"}'))
    assert_refused(
        attacked_url,
        "MERGE INTO events e USING (SELECT 2 AS position) s ON e.position = s.position "
        "WHEN MATCHED THEN UPDATE SET recorded_by = 'mallory'",
    )


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
def test_wrong_hash_is_found_in_sqlite(attacked_url: str) -> None:
    """In SQLite, `verify` finds a row with a wrong hash."""
    execute_plainly(attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url, chain_hash=bytes(32)))
    assert [(finding.code, finding.position) for finding in list_findings(attacked_url)] == [("chain-hash", EVENTS + 1)]


def drop_trigger(url: str, name: str) -> str:
    """Drop a trigger of `events` as the owner can, and return its definition."""
    with closing(open_plain_connection(url)) as connection:
        if isinstance(connection, sqlite3.Connection):
            definition = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
            connection.execute(f"DROP TRIGGER {name}")
        else:
            query = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = %s"
            definition = connection.execute(query, (name,)).fetchone()[0]
            connection.execute(f"DROP TRIGGER {name} ON events")
    return str(definition)


def test_dropped_trigger_is_found(attacked_url: str) -> None:
    """A dropped trigger is found before anything is edited."""
    for name in ("events_refuse_update", "events_refuse_delete", "events_guard_insert"):
        definition = drop_trigger(attacked_url, name)
        assert [(finding.code, name in finding.message) for finding in list_findings(attacked_url)] == [("guard", True)]
        execute_plainly(attacked_url, definition)
        assert list_findings(attacked_url) == []


EDITS = {
    "UPDATE events SET record = replace(record, 'anna', 'zora') WHERE position = 2": {("leaf-hash", 2)},
    "UPDATE events SET subject = 'game:other' WHERE position = 2": {("column", 2), ("supersedes", EVENTS)},
    "UPDATE events SET recorded_by = 'mallory' WHERE position = 4": {("column", 4)},
    "UPDATE events SET occurred_at = occurred_at + 1 WHERE position = 4": {("column", 4)},
    "UPDATE events SET chain_hash = leaf_hash WHERE position = 3": {("chain-hash", 3), ("chain-hash", 4)},
    "UPDATE events SET recorded_at = recorded_at + 1000000 WHERE position = 3": {("column", 3), ("time-order", 4)},
    "UPDATE events SET position = 50 WHERE position = 5": {("missing", 5), ("column", 50)},
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("restored", [False, True], ids=["trigger gone", "trigger restored"])
def test_edit_without_trigger_is_found(
    attacked_url: str, ratings: Callable[..., Any], edit: str, restored: bool
) -> None:
    """An edit after dropping a trigger is found, whether or not the trigger was restored."""
    definition = drop_trigger(attacked_url, "events_refuse_update")
    assert execute_plainly(attacked_url, edit) == 1
    if restored:
        execute_plainly(attacked_url, definition)
    expected = EDITS[edit] | (set() if restored else {("guard", None)})
    assert {(finding.code, finding.position) for finding in list_findings(attacked_url)} == expected
    result = ratings("verify", db=attacked_url)
    assert (result.exit_code, result.stderr) == (1, "")
    assert all(f"position {position}: " in result.stdout for _, position in EDITS[edit])


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
def test_position_below_one_is_found_in_sqlite(attacked_url: str) -> None:
    """An event moved to a position below 1 is found there, and missing at its old position; none between them is."""
    definition = drop_trigger(attacked_url, "events_refuse_update")
    with closing(open_plain_connection(attacked_url)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE events SET position = -4 WHERE position = 3")
    execute_plainly(attacked_url, definition)
    findings = [(finding.code, finding.position) for finding in list_findings(attacked_url)]
    assert [finding for finding in findings if finding[0] in ("missing", "chain-hash")] == [
        ("missing", -4),
        ("missing", 3),
    ]


def test_deleted_event_is_found(attacked_url: str) -> None:
    """A deleted event is found as missing at its position."""
    definition = drop_trigger(attacked_url, "events_refuse_delete")
    execute_plainly(attacked_url, "DELETE FROM events WHERE position = 3")
    execute_plainly(attacked_url, definition)
    assert [(finding.code, finding.position) for finding in list_findings(attacked_url)] == [("missing", 3)]


def test_rewritten_history_is_found_by_head(attacked_url: str, ratings: Callable[..., Any]) -> None:
    """A rewritten history is found only by comparison with a head that was kept.

    The owner can cut off the log and continue it with another history; a kept head proves that.
    """
    kept_head = read_head(attacked_url)
    definition = drop_trigger(attacked_url, "events_refuse_delete")
    execute_plainly(attacked_url, f"DELETE FROM events WHERE position = {EVENTS}")
    execute_plainly(attacked_url, definition)
    execute_plainly(attacked_url, "INSERT INTO events VALUES", build_next_row(attacked_url))
    assert list_findings(attacked_url) == []
    result = ratings("verify", "--head", kept_head, db=attacked_url)
    assert result.exit_code == 1
    assert result.stdout.startswith("head: ")


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
def test_blob_record_is_found(attacked_url: str, ratings: Callable[..., Any]) -> None:
    """In SQLite, a record turned into a BLOB is found, and so is the event about it; `ratings log` lists all events."""
    drop_trigger(attacked_url, "events_refuse_update")
    execute_plainly(attacked_url, "UPDATE events SET record = CAST(record AS BLOB) WHERE position = 2")
    # a BLOB is not an event, so the event at 5 supersedes nothing
    assert {finding.position for finding in list_findings(attacked_url)} == {None, 2, 5}
    log = ratings("log", "--format", "json", db=attacked_url)
    assert [event["position"] for event in json.loads(log.stdout)["rows"]] == [*range(1, EVENTS + 1)]


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
def test_guards_deleted_from_schema_are_found(attacked_url: str) -> None:
    """In SQLite, triggers deleted from the schema table are reported as missing."""
    with closing(open_plain_connection(attacked_url)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'trigger'")
    assert {finding.code for finding in list_findings(attacked_url)} >= {"guard"}


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "weakening",
    [
        "ALTER TABLE events DISABLE TRIGGER events_refuse_update",
        "ALTER TABLE events ENABLE REPLICA TRIGGER events_refuse_update",
        "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "DROP TRIGGER events_refuse_update ON events; CREATE TABLE decoy (LIKE events); "
        "CREATE TRIGGER events_refuse_update BEFORE UPDATE ON decoy FOR EACH ROW EXECUTE FUNCTION ledger_refuse()",
        "DROP TRIGGER events_refuse_update ON events; CREATE SCHEMA decoy; CREATE TABLE decoy.events (position int); "
        "CREATE TRIGGER events_refuse_update BEFORE UPDATE ON decoy.events FOR EACH ROW EXECUTE FUNCTION "
        "ledger_refuse()",
    ],
)
def test_weakened_guard_is_found(attacked_url: str, weakening: str) -> None:
    """In PostgreSQL, a weakened guard is found, however it was weakened."""
    execute_plainly(attacked_url, weakening)
    assert {finding.code for finding in list_findings(attacked_url)} == {"guard"}
