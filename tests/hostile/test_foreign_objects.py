"""Nothing is written while a foreign object could run code, refuse rows or hide rows on the ledger's tables."""

import json
import threading
from collections.abc import Callable, Iterator
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
STATE_QUERIES = (
    "SELECT position, record FROM events ORDER BY 1",
    "SELECT * FROM generation_standings ORDER BY 1, 2, 3",
    "SELECT * FROM live_generation",
)
CHANGE_POINTS = "UPDATE generation_standings SET points = 999"
SQLITE_OBJECTS = {
    "a trigger on events": (f"CREATE TRIGGER zz AFTER INSERT ON events BEGIN {CHANGE_POINTS}; END",),
    "a trigger on standings": (f"CREATE TRIGGER zz AFTER INSERT ON generation_standings BEGIN {CHANGE_POINTS}; END",),
    "a trigger on runs": (f"CREATE TRIGGER zz AFTER INSERT ON runs BEGIN {CHANGE_POINTS}; END",),
    "a trigger elsewhere that names ours": (
        "CREATE TABLE mine (x)",
        f"CREATE TRIGGER zz AFTER INSERT ON mine BEGIN {CHANGE_POINTS}; END",
    ),
    "a unique index": ("CREATE UNIQUE INDEX zz ON events (recorded_at, recorded_by, subject)",),
    "an index on an expression": ("CREATE INDEX zz ON events (upper(subject))",),
    "an index on some rows": ("CREATE INDEX zz ON events (subject) WHERE recorded_by = 'eve'",),
    "a referencing action": ("CREATE TABLE zz (g REFERENCES generations (generation) ON DELETE CASCADE)",),
    "a column": ("ALTER TABLE generation_standings ADD COLUMN zz DEFAULT 'x'",),
    "a guard altered": (
        "DROP TRIGGER events_refuse_update",
        "CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT 1; END",
    ),
    "a guard gone": ("DROP TRIGGER events_refuse_delete",),
}
CREATE_FUNCTION = (
    "CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
    f"$$ BEGIN {CHANGE_POINTS}; RETURN NEW; END $$"
)
POSTGRES_OBJECTS = {
    "a trigger on events": (
        CREATE_FUNCTION,
        "CREATE TRIGGER zz AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION zz()",
    ),
    "a trigger on standings": (
        CREATE_FUNCTION,
        "CREATE TRIGGER zz AFTER INSERT ON generation_standings FOR EACH STATEMENT EXECUTE FUNCTION zz()",
    ),
    "a trigger on runs": (CREATE_FUNCTION, "CREATE TRIGGER zz AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION zz()"),
    "a rule": (f"CREATE RULE zz AS ON INSERT TO events DO ALSO {CHANGE_POINTS}",),
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
        "$$ BEGIN RETURN NEW; END $$",
    ),
    "a guard switched off": ("ALTER TABLE events DISABLE TRIGGER events_refuse_delete",),
    "an append with more rights": (
        "ALTER FUNCTION events_append_one(text, text, smallint, text, bigint, bigint, text, text, text, bigint) "
        "SECURITY DEFINER",
    ),
    "a function with our name": ("CREATE FUNCTION events_append_one(zz inet) RETURNS int LANGUAGE sql AS 'SELECT 1'",),
}
REPORTED_NAMES = {
    "a guard altered": "events_",
    "a guard gone": "events_refuse_delete",
    "a guard switched off": "events_refuse_delete",
    "an append with more rights": "events_append_one",
    "a function with our name": "events_append_one",
    "a column": "generation_standings",
    "row security": "generation_standings",
    "a default": "events",
}
ALLOWED_CHANGES = {
    "an index": ("CREATE INDEX mine ON events (recorded_at, recorded_by)",),
    "a view": ("CREATE VIEW mine AS SELECT position, recorded_by FROM events",),
    "a table that refers to events": ("CREATE TABLE mine (event_id TEXT REFERENCES events (event_id))",),
    "a view that is gone": ("DROP VIEW live_ladders",),
}


def read_state(db: str) -> list[Any]:
    """Return the events, the stored standings and the live generation."""
    with open_for_reading(db) as connection:
        return [connection.exec_driver_sql(query).all() for query in STATE_QUERIES]


def try_every_write(ratings: Ratings, db: str) -> dict[str, Any]:
    """Run a command of every kind that writes, and return the results by kind."""
    game = ("--game", "chess", "--new-names", "accept", "--at", "2024-02-01T20:00Z")
    imported = [
        {
            "type": "game.recorded",
            "occurred_at": "2024-02-02T20:00:00Z",
            "data": {
                "game_id": f"i-{number}",
                "game": "chess",
                "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
            },
        }
        for number in range(3)
    ]
    return {
        "record": ratings("record", "-q", *game, "--game-id", "g-new", "anna", "ben", db=db),
        "import": ratings("import", "-", db=db, input="\n".join(map(json.dumps, imported))),
        "correct": ratings("void", "g-1", "--reason", "twice", db=db),
        "rebuild": ratings("rebuild", db=db),
        "publish": ratings("publish", "elo-chess/all", "--as-of", "2024-01-02T23:00Z", db=db),
        "rollback": ratings("rebuild", "--rollback", db=db),
    }


@pytest.mark.slow
@pytest.mark.parametrize("what", [*SQLITE_OBJECTS, *(f"postgres: {what}" for what in POSTGRES_OBJECTS)])
def test_foreign_object_refuses_every_write(what: str, ratings: Ratings, request: pytest.FixtureRequest) -> None:
    """While a foreign object exists, nothing is appended, rebuilt, published or promoted, and it does not run."""
    _, _, name = what.rpartition("postgres: ")
    statements = POSTGRES_OBJECTS[name] if what.startswith("postgres: ") else SQLITE_OBJECTS[name]
    db = request.getfixturevalue("postgres_db" if what.startswith("postgres: ") else "sqlite_db")
    assert ratings("rebuild", db=db).exit_code == 0
    run_statements(db, *statements)
    before = read_state(db)
    for command, result in try_every_write(ratings, db).items():
        assert (result.exit_code, "bug" in result.stderr) == (1, False), (command, result)
        assert REPORTED_NAMES.get(name, "zz") in result.stderr, (command, result)
        assert "run: ratings verify" in result.stderr, (command, result)
    assert read_state(db) == before
    result = ratings("verify", db=db)
    assert (result.exit_code, REPORTED_NAMES.get(name, "zz") in result.stdout) == (1, True), result


@pytest.fixture
def sqlite_db(copy_ledger_file: Callable[..., str]) -> str:
    """Return the URL of a ledger with a published list in SQLite."""
    return f"sqlite:///{copy_ledger_file(create_published_ledger)}"


@pytest.fixture
def postgres_db(server: str, original_databases: Callable[..., str]) -> Iterator[str]:
    """Yield the URL of a ledger with a published list in PostgreSQL."""
    with create_postgres_database(server, original_databases(create_published_ledger)) as url:
        yield url


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", ALLOWED_CHANGES)
def test_allowed_change_refuses_no_write(what: str, copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """An operator may add views, tables and plain indexes and drop a view, and every command still writes."""
    db = copy_ledger(create_published_ledger)
    run_statements(db, *ALLOWED_CHANGES[what])
    for command, result in try_every_write(ratings, db).items():
        assert result.exit_code == 0, (command, result)


def build_player_draft(name: str) -> Draft:
    """Return the draft of a player's registration."""
    return Draft(f"player:{name}", "player.registered", 1, f"player:{name}", 0, f'{{"player":"{name}"}}')


def append_player(ledger: Ledger, name: str) -> int:
    """Append a player's registration and return its position."""
    return append(ledger, [build_player_draft(name)], by="referee", clock=lambda: 5).head.position


def create_trigger(db: str) -> None:
    """Create a foreign trigger on events."""
    objects = SQLITE_OBJECTS if db.startswith("sqlite") else POSTGRES_OBJECTS
    run_statements(db, *objects["a trigger on events"])


def drop_trigger(db: str) -> None:
    """Drop the foreign trigger on events."""
    run_statements(db, "DROP TRIGGER zz" if db.startswith("sqlite") else "DROP TRIGGER zz ON events")


def test_open_ledger_notices_foreign_trigger(ledger_url: str) -> None:
    """A program that keeps its ledger open appends nothing while a foreign trigger exists.

    It continues to append after an operator added an index.
    """
    ledger = open_ledger(ledger_url, keep_open=True)
    assert [append_player(ledger, name) for name in "abcdefgh"] == [1, 2, 3, 4, 5, 6, 7, 8]
    run_statements(ledger_url, "CREATE INDEX mine ON events (recorded_at)")
    assert [append_player(ledger, name) for name in "ij"] == [9, 10]
    create_trigger(ledger_url)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="trigger zz on events"):
            append_player(ledger, "k")
    drop_trigger(ledger_url)
    assert append_player(ledger, "k") == 11
    ledger.close()


def test_objects_are_compared_under_the_append_lock(ledger_url: str) -> None:
    """An append that waited for the lock notices a trigger that was created meanwhile."""
    ledger = open_ledger(ledger_url, keep_open=True)
    sqlite = ledger_url.startswith("sqlite")
    assert [append_player(ledger, name) for name in "abcdefgh"][-1] == 8
    messages = []

    def append_while_locked() -> None:
        try:
            append_player(ledger, "i")
        except StoreDamaged as error:
            messages.append(str(error))

    thread = threading.Thread(target=append_while_locked)
    with open_for_writing(ledger_url) as connection:
        if not sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRES_APPEND_LOCK})")
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        for statement in (SQLITE_OBJECTS if sqlite else POSTGRES_OBJECTS)["a trigger on events"]:
            connection.exec_driver_sql(statement)
    thread.join()
    assert ["trigger zz on events" in message for message in messages] == [True]
    ledger.close()


def test_open_ledger_notices_replaced_guard(server: str, original_databases: Callable[..., str]) -> None:
    """An append to an open ledger in PostgreSQL notices that the guard's function was replaced."""
    with create_postgres_database(server, original_databases(make_empty_ledger)) as url:
        ledger = open_ledger(url, keep_open=True)
        assert append_player(ledger, "a") == 1
        run_statements(url, *POSTGRES_OBJECTS["a guard altered"])
        with pytest.raises(StoreDamaged, match="events_guard_insert"):
            append_player(ledger, "b")
        ledger.close()


def test_generated_catalogue_is_current(postgres_url: str) -> None:
    """The catalogue that every write compares with is the one that the migrations create."""
    assert make_catalogue.build_catalogue(postgres_url) == make_catalogue.PATH.read_text(), (
        "run scripts/make_catalogue.py"
    )
