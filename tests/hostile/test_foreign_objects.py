"""Whatever could run, refuse or hide something on our tables is compared under the lock, and nothing is written."""

import json
import threading
from collections.abc import Callable
from typing import Any

import make_catalogue
import pytest
from ledgers import open_for_reading, open_for_writing
from stores import create_postgres_database, make_empty_ledger
from test_verify import create_published_ledger, run_statements

from ratings_ledger import StoreDamaged
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.guards import POSTGRES_APPEND_LOCK
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

Ratings = Callable[..., Any]
STATE = (
    "SELECT position, record FROM events ORDER BY 1", "SELECT * FROM generation_standings ORDER BY 1, 2, 3",
    "SELECT * FROM live_generation",
)  # fmt: skip
CHANGE = "UPDATE generation_standings SET points = 999"
SQLITE = {
    "a trigger on events": (f"CREATE TRIGGER zz AFTER INSERT ON events BEGIN {CHANGE}; END",),
    "a trigger on standings": (f"CREATE TRIGGER zz AFTER INSERT ON generation_standings BEGIN {CHANGE}; END",),
    "a trigger on runs": (f"CREATE TRIGGER zz AFTER INSERT ON runs BEGIN {CHANGE}; END",),
    "a trigger elsewhere that names ours": (
        "CREATE TABLE mine (x)", f"CREATE TRIGGER zz AFTER INSERT ON mine BEGIN {CHANGE}; END"),
    "a unique index": ("CREATE UNIQUE INDEX zz ON events (recorded_at, recorded_by, subject)",),
    "an index on an expression": ("CREATE INDEX zz ON events (upper(subject))",),
    "an index on some rows": ("CREATE INDEX zz ON events (subject) WHERE recorded_by = 'eve'",),
    "a referencing action": ("CREATE TABLE zz (g REFERENCES generations (generation) ON DELETE CASCADE)",),
    "a column": ("ALTER TABLE generation_standings ADD COLUMN zz DEFAULT 'x'",),
    "a guard altered": (
        "DROP TRIGGER events_refuse_update",
        "CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT 1; END"),
    "a guard gone": ("DROP TRIGGER events_refuse_delete",),
}  # fmt: skip
FUNCTION = (
    f"CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN {CHANGE}; RETURN NEW; END $$"
)
POSTGRES = {
    "a trigger on events": (
        FUNCTION, "CREATE TRIGGER zz AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION zz()"),
    "a trigger on standings": (
        FUNCTION, "CREATE TRIGGER zz AFTER INSERT ON generation_standings FOR EACH STATEMENT EXECUTE FUNCTION zz()"),
    "a trigger on runs": (FUNCTION, "CREATE TRIGGER zz AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION zz()"),
    "a rule": (f"CREATE RULE zz AS ON INSERT TO events DO ALSO {CHANGE}",),
    "a policy": ("CREATE POLICY zz ON generation_standings USING (player <> 'anna')",),
    "row security": ("ALTER TABLE generation_standings ENABLE ROW LEVEL SECURITY",),
    "a unique index": ("CREATE UNIQUE INDEX zz ON events (recorded_at, recorded_by, subject)",),
    "an index on an expression": ("CREATE INDEX zz ON events (upper(subject))",),
    "a default": ("ALTER TABLE events ALTER COLUMN supersedes SET DEFAULT 'zz'",),
    "a column": ("ALTER TABLE generation_standings ADD COLUMN zz text DEFAULT 'x'",),
    "a constraint": ("ALTER TABLE events ADD CONSTRAINT zz CHECK (subject <> 'eve')",),
    "a referencing action": ("CREATE TABLE zz (g int REFERENCES generations (generation) ON DELETE CASCADE)",),
    "a guard altered": (
        "CREATE OR REPLACE FUNCTION events_guard_insert() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NEW; END $$",),
    "a guard switched off": ("ALTER TABLE events DISABLE TRIGGER events_refuse_delete",),
    "an append with more rights": (
        "ALTER FUNCTION events_append_one(text, text, smallint, text, bigint, bigint, text, text, text, bigint) "
        "SECURITY DEFINER",),
    "a function with our name": (
        "CREATE FUNCTION events_append_one(zz inet) RETURNS int LANGUAGE sql AS 'SELECT 1'",),
}  # fmt: skip
NAMED = {
    "a guard altered": "events_",
    "a guard gone": "events_refuse_delete",
    "a guard switched off": "events_refuse_delete",
    "an append with more rights": "events_append_one",
    "a function with our name": "events_append_one",
    "a column": "generation_standings",
    "row security": "generation_standings",
    "a default": "events",
}
OWN = {
    "an index": ("CREATE INDEX mine ON events (recorded_at, recorded_by)",),
    "a view": ("CREATE VIEW mine AS SELECT position, recorded_by FROM events",),
    "a table that refers to events": ("CREATE TABLE mine (event_id TEXT REFERENCES events (event_id))",),
    "a view that is gone": ("DROP VIEW live_ladders",),
}


def state(db: str) -> list[Any]:
    with open_for_reading(db) as connection:
        return [connection.exec_driver_sql(query).all() for query in STATE]


def writes(ratings: Ratings, db: str) -> dict[str, Any]:
    """Try everything that writes."""
    game = ("--game", "chess", "--new-names", "accept", "--at", "2024-02-01T20:00Z")
    imported = [
        {"type": "game.recorded", "occurred_at": "2024-02-02T20:00:00Z", "data": {
            "game_id": f"i-{number}", "game": "chess",
            "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]}}
        for number in range(3)
    ]  # fmt: skip
    return {
        "record": ratings("record", "-q", *game, "--game-id", "g-new", "anna", "ben", db=db),
        "import": ratings("import", "-", db=db, input="\n".join(map(json.dumps, imported))),
        "correct": ratings("void", "g-1", "--reason", "twice", db=db),
        "rebuild": ratings("rebuild", db=db),
        "publish": ratings("publish", "elo-chess/all", "--as-of", "2024-01-02T23:00Z", db=db),
        "rollback": ratings("rebuild", "--rollback", db=db),
    }


@pytest.mark.slow
@pytest.mark.parametrize("what", [*SQLITE, *(f"postgres: {what}" for what in POSTGRES)])
def test_foreign_object_refuses_every_write(what: str, ratings: Ratings, request: pytest.FixtureRequest) -> None:
    """While a foreign object is there nothing is appended, rebuilt, published or promoted, and it does not run."""
    _, _, name = what.rpartition("postgres: ")
    statements = POSTGRES[name] if what.startswith("postgres: ") else SQLITE[name]
    db = request.getfixturevalue("postgres_db" if what.startswith("postgres: ") else "sqlite_db")
    assert ratings("rebuild", db=db).exit_code == 0
    run_statements(db, *statements)
    before = state(db)
    for command, told in writes(ratings, db).items():
        assert (told.exit_code, "bug" in told.stderr) == (1, False), (command, told)
        assert NAMED.get(name, "zz") in told.stderr, (command, told)
        assert "run: ratings verify" in told.stderr, (command, told)
    assert state(db) == before
    told = ratings("verify", db=db)
    assert (told.exit_code, NAMED.get(name, "zz") in told.stdout) == (1, True), told


@pytest.fixture
def sqlite_db(copied_file: Callable[..., str]) -> str:
    return f"sqlite:///{copied_file(create_published_ledger)}"


@pytest.fixture
def postgres_db(server: str, original_databases: Callable[..., str]) -> Any:
    with create_postgres_database(server, original_databases(create_published_ledger)) as url:
        yield url


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", OWN)
def test_own_object_lets_everything_be_written(what: str, copied: Callable[..., str], ratings: Ratings) -> None:
    """An operator's views, tables and plain indexes are allowed, and a view that is gone stands in nobody's way."""
    db = copied(create_published_ledger)
    run_statements(db, *OWN[what])
    for command, told in writes(ratings, db).items():
        assert told.exit_code == 0, (command, told)


def draft(name: str) -> Draft:
    return Draft(f"player:{name}", "player.registered", 1, f"player:{name}", 0, f'{{"player":"{name}"}}')


def add(ledger: Ledger, name: str) -> int:
    return append(ledger, [draft(name)], by="referee", clock=lambda: 5).head.position


def trigger(db: str, drop: bool = False) -> None:
    """Put a trigger on events, or take it away again."""
    sqlite = db.startswith("sqlite")
    if drop:
        run_statements(db, "DROP TRIGGER zz" if sqlite else "DROP TRIGGER zz ON events")
    else:
        run_statements(db, *(SQLITE if sqlite else POSTGRES)["a trigger on events"])


def test_ledger_that_stays_open_notices(ledger_url: str) -> None:
    """A program that keeps its ledger open appends nothing from the moment something foreign is there until it is gone.

    What an operator may add, it goes on with.
    """
    ledger = open_ledger(ledger_url, keep_open=True)
    assert [add(ledger, name) for name in "abcdefgh"] == [1, 2, 3, 4, 5, 6, 7, 8]
    run_statements(ledger_url, "CREATE INDEX mine ON events (recorded_at)")
    assert [add(ledger, name) for name in "ij"] == [9, 10]
    trigger(ledger_url)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="trigger zz on events"):
            add(ledger, "k")
    trigger(ledger_url, drop=True)
    assert add(ledger, "k") == 11
    ledger.close()


def test_comparison_is_under_the_append_lock(ledger_url: str) -> None:
    """An append that waited for the lock sees what was put on the table meanwhile."""
    ledger = open_ledger(ledger_url, keep_open=True)
    sqlite = ledger_url.startswith("sqlite")
    assert [add(ledger, name) for name in "abcdefgh"][-1] == 8
    refused = []

    def wait() -> None:
        try:
            add(ledger, "i")
        except StoreDamaged as problem:
            refused.append(str(problem))

    thread = threading.Thread(target=wait)
    with open_for_writing(ledger_url) as connection:
        if not sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_APPEND_LOCK})")
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        for statement in (SQLITE if sqlite else POSTGRES)["a trigger on events"]:
            connection.exec_driver_sql(statement)
    thread.join()
    assert ["trigger zz on events" in message for message in refused] == [True]
    ledger.close()


def test_append_one_after_the_function_was_replaced(server: str, original_databases: Callable[..., str]) -> None:
    """A guard's function that is replaced by another while the ledger is open is noticed."""
    with create_postgres_database(server, original_databases(make_empty_ledger)) as url:
        ledger = open_ledger(url, keep_open=True)
        assert add(ledger, "a") == 1
        run_statements(url, *POSTGRES["a guard altered"])
        with pytest.raises(StoreDamaged, match="events_guard_insert"):
            add(ledger, "b")
        ledger.close()


def test_generated_catalogue_is_current(postgres_url: str) -> None:
    """The constant that every write compares with is what the migrations make."""
    assert make_catalogue.build_catalogue(postgres_url) == make_catalogue.PATH.read_text(), (
        "run scripts/make_catalogue.py"
    )
