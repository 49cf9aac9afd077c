"""An append is not acknowledged if the database does not store it, or could lose it in a crash."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from ledgers import open_for_reading
from sqlalchemy import text

Ratings = Callable[..., Any]
SQLITE_OBSTRUCTIONS = {
    "ignored": "CREATE TRIGGER zz BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
    "changed afterwards": "DROP TRIGGER events_refuse_update; CREATE TRIGGER zz AFTER INSERT ON events BEGIN "
    "UPDATE events SET recorded_by = 'eve' WHERE position = NEW.position; END",
    "deleted afterwards": "DROP TRIGGER events_refuse_delete; CREATE TRIGGER zz AFTER INSERT ON events BEGIN "
    "DELETE FROM events WHERE position = NEW.position; END",
}
CREATE_NULL_FUNCTION = "CREATE FUNCTION {0}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
POSTGRES_OBSTRUCTIONS = {
    "returned as nothing": CREATE_NULL_FUNCTION.format("nothing")
    + "; CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION nothing()",
    "done instead": "CREATE RULE zz AS ON INSERT TO events DO INSTEAD NOTHING",
    "deleted afterwards": "DROP TRIGGER events_refuse_delete ON events; CREATE FUNCTION gone() RETURNS trigger "
    "LANGUAGE plpgsql AS $$ BEGIN DELETE FROM events WHERE position = NEW.position; RETURN NULL; END $$; "
    "CREATE TRIGGER zz AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION gone()",
}
UNSAFE_SETTINGS = {
    "unlogged": ("ALTER TABLE events SET UNLOGGED", "events = unlogged"),
    "inherited": ("CREATE TABLE more () INHERITS (events)", "events = inherited by another table"),
    "not flushed": ("ALTER DATABASE {0} SET synchronous_commit = off", "synchronous_commit = off"),
    "without guards": ("ALTER DATABASE {0} SET session_replication_role = replica", "session_replication_role"),
}


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """Return a ledger with one game, of each kind of store."""
    assert ratings("init", "--for", "chess", db=store).exit_code == 0
    assert record(ratings, store, 1).exit_code == 0
    return store


def record(ratings: Ratings, db: str, number: int) -> Any:
    game = ("--game", "chess", "--game-id", f"g-{number}", "--at", "2024-01-01T20:00Z")
    return ratings("record", "-q", *game, "anna", "ben", db=db)


def import_games(ratings: Ratings, db: str, numbers: range) -> Any:
    games = [
        {
            "type": "game.recorded",
            "occurred_at": "2024-01-01T20:00:00Z",
            "data": {
                "game_id": f"i-{number}",
                "game": "chess",
                "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
            },
        }
        for number in numbers
    ]
    return ratings("import", "-", db=db, input="\n".join(map(json.dumps, games)))


def execute(db: str, statements: str) -> None:
    with open_for_reading(db) as connection:
        parts = [statements] if "$$" in statements or "BEGIN" in statements else statements.split("; ")
        if connection.dialect.name == "sqlite":
            connection.connection.driver_connection.executescript(statements)  # type: ignore[union-attr]
            return
        for statement in parts:
            connection.execute(text(statement.format(connection.engine.url.database)))


def count_events(db: str) -> int:
    with open_for_reading(db) as connection:
        return int(connection.execute(text("SELECT count(*) FROM events")).scalar_one())


@pytest.mark.slow_cases
@pytest.mark.parametrize("how", [*SQLITE_OBSTRUCTIONS, *(f"postgres: {how}" for how in POSTGRES_OBSTRUCTIONS)])
def test_obstructed_append_is_refused(
    how: str, ratings: Ratings, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    """An append is refused, not acknowledged, if the database discards or alters its rows.

    This holds for one event and for many. The database reports success, but the ledger checks what is stored.
    """
    kind, _, name = how.partition(": ")
    db = request.getfixturevalue("postgres_url") if name else f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    assert record(ratings, db, 1).exit_code == 0
    execute(db, POSTGRES_OBSTRUCTIONS[name] if name else SQLITE_OBSTRUCTIONS[kind])
    before = count_events(db)
    result = record(ratings, db, 2)
    assert (result.exit_code, result.stdout, count_events(db)) == (1, "", before), result
    assert "run: ratings verify" in result.stderr
    for numbers in (range(1), range(1, 6)):
        result = import_games(ratings, db, numbers)
        assert (result.exit_code, count_events(db)) == (1, before), result
        assert ("run: ratings verify" in result.stderr, "bug" in result.stderr) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("how", UNSAFE_SETTINGS)
def test_setting_that_loses_data_is_named(how: str, ratings: Ratings, postgres_url: str) -> None:
    """On a server that could lose acknowledged events, an append fails and names the setting."""
    statement, message = UNSAFE_SETTINGS[how]
    assert ratings("init", "--for", "chess", db=postgres_url).exit_code == 0
    assert record(ratings, postgres_url, 1).exit_code == 0
    execute(postgres_url, statement)
    before = count_events(postgres_url)
    for result in (record(ratings, postgres_url, 2), import_games(ratings, postgres_url, range(5))):
        assert (result.exit_code, message in result.stderr) == (3, True), result
    assert count_events(postgres_url) == before


@pytest.mark.slow_cases
def test_unobstructed_append_stores_all(ratings: Ratings, db: str) -> None:
    """Without an obstruction, all events are stored, and `verify` finds nothing."""
    assert record(ratings, db, 2).exit_code == 0
    assert import_games(ratings, db, range(300)).exit_code == 0
    assert count_events(db) == 304  # a ruleset, 302 games, and the record of the import
    assert ratings("verify", db=db) == (0, "", "")
