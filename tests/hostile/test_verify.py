"""`verify` is silent only when it has proven something: whatever was done to a sound ledger is named, or is exit 3."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, make_url, text

from ledger import catalogue, integrity
from ledger.canonical import dump
from ledger.records import chain_hash, leaf_hash
from ledger.store import connect, head, open_ledger

Ratings = Callable[..., Any]


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """A ledger with games, a stored generation and a published list, of each kind of store; `verify` is silent."""
    made(ratings, store)
    return store


def made(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(3):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0
    assert ratings("publish", "elo-chess/all", db=url).exit_code == 0
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")


def verified(ratings: Ratings, url: str) -> list[str]:
    """The codes and messages of all findings."""
    done = ratings("verify", "--format", "json", db=url)
    assert done.stderr == ""
    found = [f"{one['code']}: {one['message']}" for one in json.loads(done.stdout)["findings"]]
    assert done.exit_code == int(bool(found))
    return found


def do(url: str, *statements: str) -> None:
    """Somebody with all rights over the database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(url).database), isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with connect(url).reading() as connection:
        for statement in statements:
            connection.execute(text(statement))


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite")


STORED = {
    "a scale": "UPDATE generation_ladders SET scale = 1000",
    "games": "UPDATE generation_ladders SET games = games + 1",
    "players": "UPDATE generation_ladders SET players = players + 1",
    "a ruleset": "UPDATE generation_ladders SET ruleset = 'elo-chess@9'",
    "a digest": "UPDATE generation_ladders SET digest = 'x'",
    "points": "UPDATE generation_standings SET points = points + 1 WHERE ordinal = 1",
    "a rank": "UPDATE generation_standings SET rank = 2 WHERE ordinal = 1",
    "a name": "UPDATE generation_standings SET player = 'eve' WHERE ordinal = 1",
    "who is qualified": "UPDATE generation_standings SET qualified = (1 = 0) WHERE ordinal = 1",
    "a divisor": "UPDATE generation_standings SET divisor = 2 WHERE ordinal = 1",
    "a row less": "DELETE FROM generation_standings WHERE ordinal = 1",
    "a ladder less": "DELETE FROM generation_ladders WHERE ladder = 'elo-chess/all'",
    "a position": "UPDATE generations SET position = position - 1",
    "when it ended": "UPDATE generations SET finished_at = NULL",
    "no pointer": "DELETE FROM live_generation",
}  # fmt: skip


@pytest.mark.parametrize("what", STORED)
def test_given_something_stored_that_was_changed_when_verified_then_it_is_named(
    what: str, db: str, ratings: Ratings
) -> None:
    do(db, STORED[what])
    found = verified(ratings, db)
    assert found
    assert all(one.startswith("standings: ") for one in found), found


def test_given_a_ladder_that_names_an_older_build_with_the_same_standings_when_verified_then_it_is_named(
    db: str, ratings: Ratings
) -> None:
    """Given two generations and between them a game of another ladder, when one serves the rows of the other."""
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "go", db=db).exit_code == 0
    game = ("--game", "go", "--game-id", "other", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0
    assert verified(ratings, db) == []
    do(db, "UPDATE generation_ladders SET build = 1 WHERE generation = 2 AND ladder = 'elo-chess/all'")
    assert verified(ratings, db) == [
        "standings: elo-chess/all: another generation built it, and says something else of it"
    ]
    do(db, "UPDATE generation_ladders SET build = 3 WHERE generation = 2 AND ladder = 'elo-chess/all'")
    assert "standings: elo-chess/all: the stored standings differ from a replay" in verified(ratings, db)


def test_given_a_ladder_left_as_it_was_by_a_rebuild_of_others_when_verified_then_it_is_no_alarm(
    db: str, ratings: Ratings
) -> None:
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", "elo-chess/all", db=db).exit_code == 0
    assert verified(ratings, db) == []


def test_given_a_pointer_without_its_constraints_when_it_leads_nowhere_or_to_two_then_it_is_named(
    db: str, ratings: Ratings
) -> None:
    if is_sqlite(db):
        with closing(sqlite3.connect(str(make_url(db).database))) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("UPDATE live_generation SET generation = 99")
            connection.commit()
    else:
        do(db, "ALTER TABLE live_generation DROP CONSTRAINT live_generation_generation_exists",
           "ALTER TABLE live_generation DROP CONSTRAINT live_generation_one_row",
           "UPDATE live_generation SET generation = 99", "INSERT INTO live_generation VALUES (2, 1)")  # fmt: skip
    assert "standings: the live pointer leads to generation 99, which there is not" in verified(ratings, db)


@pytest.mark.parametrize("statement", ["DELETE FROM ledger_identity", "UPDATE ledger_identity SET ledger_id = 'mine'"])
def test_given_an_id_that_is_gone_or_none_when_verified_then_it_is_named(
    statement: str, db: str, ratings: Ratings
) -> None:
    for verb in ("update", "delete"):
        do(db, f"DROP TRIGGER ledger_identity_refuse_{verb}" + ("" if is_sqlite(db) else " ON ledger_identity"))
    do(db, statement)
    found = verified(ratings, db)
    assert any("the ledger has no id of its own" in one for one in found), found


def test_given_a_second_schema_version_when_verified_then_it_is_named(db: str, ratings: Ratings) -> None:
    do(db, "INSERT INTO alembic_version VALUES ('0001')")
    found = verified(ratings, db)
    assert any("the table alembic_version holds" in one for one in found), found


# records that somebody appends by SQL, with right hashes and columns

GAME = {
    "game": "chess",
    "game_id": "forged",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def seats(*participants: dict[str, Any]) -> dict[str, Any]:
    return {**GAME, "participants": list(participants)}


FORGED: dict[str, dict[str, Any]] = {
    "a place below 1": seats({"player": "anna", "place": -5}, {"player": "ben", "place": 2}),
    "a place of 2^40": seats({"player": "anna", "place": 2**40}, {"player": "ben", "place": 1}),
    "a gap": seats({"player": "anna", "place": 1}, {"player": "ben", "place": 9}),
    "somebody twice": seats({"player": "anna", "place": 1}, {"player": "anna", "place": 2}),
    "nobody": seats(),
    "one alone": seats({"player": "anna", "place": 1}),
    "no player": seats({"place": 1}, {"player": "ben", "place": 2}),
    "a long name": seats({"player": "x" * 100_000, "place": 1}, {"player": "ben", "place": 2}),
    "a name with control characters": seats({"player": "an\u0007na", "place": 1}, {"player": "ben", "place": 2}),
    "an empty name": seats({"player": "", "place": 1}, {"player": "ben", "place": 2}),
    "a place that is a text": seats({"player": "anna", "place": "1"}, {"player": "ben", "place": 2}),
    "a kind that there is not": {**GAME, "kind": "chess960"},
    "a member that there is not": {**GAME, "winner": "anna"},
    "a substitute of nobody": seats(
        {"player": "anna", "place": 1, "status": "substitute"}, {"player": "ben", "place": 2}
    ),
    "defaults written out": {**GAME, "rated": None},
    "participants that are none": {**GAME, "participants": {"anna": 1}},
}  # fmt: skip


def forge(url: str, data: dict[str, Any], **members: Any) -> None:
    """Append a record with right hashes behind the guards' backs."""
    with open_ledger(url).writing() as connection:
        before = head(connection)
        at = "2026-01-01T00:00:00.000000Z"
        event = {
            "by": "eve", "data": data, "id": "game:forged", "occurred_at": at, "position": before.position + 1,
            "recorded_at": "2029-01-01T00:00:00.000000Z", "schema_version": 1, "type": "game.recorded", **members,
        }  # fmt: skip
        record = dump(event)
        leaf = leaf_hash(record)
        insert(connection, (
            before.position + 1, event["id"], event["type"], event["schema_version"], "game:forged",
            1_767_225_600_000_000, 1_861_920_000_000_000, event["by"], None, record, leaf,
            chain_hash(before.chain_hash, leaf),
        ))  # fmt: skip


def insert(connection: Connection, row: tuple[Any, ...]) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(f"INSERT INTO events VALUES ({', '.join([mark] * len(row))})", row)


@pytest.mark.parametrize("what", FORGED)
def test_given_a_record_that_nobody_can_have_written_when_verified_then_it_is_named(
    what: str, db: str, ratings: Ratings
) -> None:
    """Given right hashes, columns and guards that are content, then what the record says is looked at."""
    forge(db, FORGED[what])
    found = verified(ratings, db)
    assert [one.partition(":")[0] for one in found] in (["meaning"], ["not-a-record"]), found


@pytest.mark.parametrize("members", [{"type": "player.exiled"}, {"schema_version": 7}, {"by": "x\u0000y"}])
def test_given_an_event_that_this_program_does_not_know_when_verified_then_it_is_a_finding_and_the_log_can_be_exported(
    members: dict[str, Any], db: str, ratings: Ratings
) -> None:
    if "by" in members and not is_sqlite(db):
        pytest.skip("PostgreSQL holds no such text")
    forge(db, GAME, **members)
    found = verified(ratings, db)
    assert len(found) == 1, found
    exported = ratings("export", "events", db=db)
    assert (exported.exit_code, "forged" in exported.stdout) == (0, True)


def test_given_forged_hashes_when_the_output_is_closed_early_then_the_exit_code_tells_all_the_same(
    tmp_path: Path, ratings: Ratings
) -> None:
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    made(ratings, db)
    do(db, "DROP TRIGGER events_refuse_update", "UPDATE events SET recorded_by = 'eve'")
    script = "from cli.main import run; run()"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", script, "--db", db, "verify"], stdout=writing, check=False)
    os.close(writing)
    assert done.returncode == 1


@pytest.mark.parametrize("timeout", ["0", "0.2"])
def test_given_a_lock_on_the_events_when_verified_then_it_is_no_success_and_no_damage(
    timeout: str, postgres_url: str, ratings: Ratings
) -> None:
    """Given a forged record under the lock, then exit 3, and not a word of damage."""
    made(ratings, postgres_url)
    forge(postgres_url, FORGED["nobody"])
    with connect(postgres_url).writing() as connection:
        connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
        told = ratings("verify", db=f"{postgres_url}&timeout={timeout}")
    assert (told.exit_code, told.stdout) == (3, ""), told
    assert "busy" in told.stderr


def test_given_row_security_when_read_then_no_part_is_taken_for_the_whole(postgres_url: str, ratings: Ratings) -> None:
    """Given a policy that hides rows from a role, then the role gets an error, and the owner's `verify` names it."""
    made(ratings, postgres_url)
    name = f"reader_{make_url(postgres_url).database}"
    do(postgres_url, f"CREATE ROLE {name} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
       "ALTER TABLE events ENABLE ROW LEVEL SECURITY", "CREATE POLICY few ON events USING (position < 3)")  # fmt: skip
    try:
        theirs = make_url(postgres_url).set(username=name).render_as_string(hide_password=False)
        for command in (("verify",), ("standings", "elo-chess/all"), ("export", "events")):
            told = ratings(*command, db=theirs)
            assert told.exit_code == 3, told
            assert command[0] == "verify" or told.stdout == ""
            assert "row-level security" in told.stderr
        found = verified(ratings, postgres_url)
        assert "schema: row security is switched on for events, and may hide rows" in found
        assert "schema: the policy few may hide rows" in found
    finally:
        do(postgres_url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


POSTGRES = {
    "a trigger": ["CREATE FUNCTION z() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
                  "CREATE TRIGGER z BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION z()"],
    "a rule": ["CREATE RULE z AS ON INSERT TO generations DO ALSO NOTHING"],
    "an inheriting table": ["CREATE TABLE z () INHERITS (events)"],
    "an unlogged table": ["ALTER TABLE generation_standings SET UNLOGGED"],
    "a function's setting": ["ALTER FUNCTION events_append_one SET synchronous_commit = off"],
    "an overload": ["CREATE FUNCTION ledger_refuse(x int) RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    "a unique index": ["CREATE UNIQUE INDEX z ON generations (generation)"],
    "a table less": ["DROP TABLE generation_standings CASCADE"],
    "a view less": ["DROP VIEW live_standings"],
    "a lying view": [
        "CREATE OR REPLACE VIEW live_ladders AS SELECT l.ladder, l.ruleset, l.games + 1 AS games, l.players, "
        "l.position, l.digest FROM generation_ladders l JOIN live_generation g ON l.generation = g.generation"
    ],
    "a view that leaves out": ["CREATE OR REPLACE VIEW events_readable AS SELECT position, event_id, type, subject, "
                               "TIMESTAMPTZ 'epoch' + occurred_at * INTERVAL '1 microsecond' AS occurred_at, "
                               "TIMESTAMPTZ 'epoch' + recorded_at * INTERVAL '1 microsecond' AS recorded_at, "
                               "recorded_by, supersedes, record FROM events WHERE position > 1"],
    "a type": ["DROP VIEW live_standings", "ALTER TABLE generation_standings ALTER gold TYPE bigint"],
    "a default": ["ALTER TABLE generation_standings ALTER divisor SET DEFAULT 2"],
    "a column more": ["ALTER TABLE events ADD COLUMN note text"],
    "a column that may be empty": ["ALTER TABLE events ALTER recorded_by DROP NOT NULL"],
    "an index less": ["DROP INDEX events_by_subject"],
    "a unique index less": ["DROP INDEX events_game_recorded_once"],
    "a key less": ["ALTER TABLE events DROP CONSTRAINT events_supersedes_once"],
    "a reference less": ["ALTER TABLE live_generation DROP CONSTRAINT live_generation_generation_exists"],
    "a condition less": ["ALTER TABLE events DROP CONSTRAINT events_hashes_have_32_bytes"],
    "a condition that is not checked": [
        "ALTER TABLE events DROP CONSTRAINT events_position_counts_from_1",
        "ALTER TABLE events ADD CONSTRAINT events_position_counts_from_1 CHECK (position >= -1)"],
    "a function run by its owner": ["ALTER FUNCTION events_append_one SECURITY DEFINER"],
    "a function that is pure": ["ALTER FUNCTION ledger_refuse IMMUTABLE"],
    "a trigger switched off": ["ALTER TABLE events DISABLE TRIGGER events_guard_insert"],
    "a body": ["CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
               "$$ BEGIN RETURN NEW; END $$"],
}  # fmt: skip


@pytest.mark.parametrize("what", POSTGRES)
def test_given_something_that_can_run_on_our_tables_when_verified_then_it_is_named(
    what: str, postgres_url: str, ratings: Ratings
) -> None:
    made(ratings, postgres_url)
    do(postgres_url, *POSTGRES[what])
    assert verified(ratings, postgres_url)


def test_given_another_owner_of_a_table_when_verified_then_it_is_named(postgres_url: str, ratings: Ratings) -> None:
    made(ratings, postgres_url)
    name = f"owner_{make_url(postgres_url).database}"
    do(postgres_url, f"CREATE ROLE {name}", f"ALTER TABLE generation_standings OWNER TO {name}")
    try:
        assert "schema: generation_standings belongs to another role than the table events" in verified(
            ratings, postgres_url
        )
    finally:
        do(postgres_url, "ALTER TABLE generation_standings OWNER TO CURRENT_USER", f"DROP ROLE {name}")


def test_given_a_guard_that_always_runs_when_verified_then_it_is_no_alarm(postgres_url: str, ratings: Ratings) -> None:
    made(ratings, postgres_url)
    do(postgres_url, "ALTER TABLE events ENABLE ALWAYS TRIGGER events_guard_insert")
    assert verified(ratings, postgres_url) == []


@pytest.mark.parametrize("statement", ["CREATE INDEX mine ON events (recorded_by)", "CREATE TABLE mine (x integer)",
                                       "CREATE VIEW mine AS SELECT 1 AS x"])  # fmt: skip
def test_given_an_operators_own_index_table_or_view_when_verified_then_it_is_no_alarm(
    statement: str, db: str, ratings: Ratings
) -> None:
    do(db, statement)
    assert verified(ratings, db) == []


def sqlite_objects() -> list[tuple[str, str]]:
    return [key for key, (_, sql) in catalogue._wanted().items() if sql is not None]


@pytest.mark.parametrize("how", ["dropped", "altered", "duplicated", "renamed"])
@pytest.mark.parametrize(("kind", "name"), sqlite_objects())
def test_given_any_object_of_a_ledger_in_sqlite_when_it_is_changed_then_it_is_named_once(
    kind: str, name: str, how: str, tmp_path: Path, ratings: Ratings, at_length: bool
) -> None:
    """Given every table, index, trigger and view, when its definition is another, then one finding names it."""
    if not at_length and how not in ("dropped", "altered"):
        pytest.skip("at length")
    path = tmp_path / "ratings.db"
    db = f"sqlite:///{path}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        if how == "dropped":
            connection.execute("DELETE FROM sqlite_master WHERE name = ?", (name,))
        elif how == "altered":
            connection.execute("UPDATE sqlite_master SET sql = sql || ' /* x */' WHERE name = ?", (name,))
        elif how == "renamed":
            connection.execute(
                "UPDATE sqlite_master SET name = 'zz', sql = replace(sql, ?, 'zz') WHERE name = ?", (name, name)
            )
        else:
            if kind != "trigger":
                pytest.skip("two of a name cannot be")
            copying = "SELECT type, 'zz', tbl_name, rootpage, replace(sql, ?, 'zz') FROM sqlite_master WHERE name = ?"
            connection.execute(f"INSERT INTO sqlite_master {copying}", (name, name))
        connection.execute("PRAGMA writable_schema = OFF")
    done = ratings("verify", db=db)
    assert done.exit_code in (1, 2), done
    said = done.stdout + done.stderr
    assert name in said or "zz" in said or "holds no ledger" in said or "damaged" in said, done
    told = [
        line for line in done.stdout.splitlines() if f" {name} " in f"{line} ".replace(":", " ") and "schema" in line
    ]
    assert len(told) <= 1


def test_given_a_long_log_when_walked_by_several_processes_then_the_findings_are_the_same(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    games = [
        {"type": "game.recorded", "occurred_at": "2024-01-01T20:00:00Z", "data": {**GAME, "game_id": f"i-{number}"}}
        for number in range(200)
    ]
    assert ratings("import", "-", db=db, input="\n".join(map(json.dumps, games))).exit_code == 0
    monkeypatch.setattr(integrity, "PART_EVENTS", 7)
    assert ratings("verify", db=db) == (0, "", "")
    do(db, "DROP TRIGGER events_refuse_update",
       "UPDATE events SET recorded_by = 'eve' WHERE position IN (7, 8, 14, 15, 150, 201)")  # fmt: skip
    together = verified(ratings, db)
    monkeypatch.setattr(integrity, "PART_EVENTS", 10**6)
    assert verified(ratings, db) == together
    assert sum(one.startswith("column: ") for one in together) == 6


@pytest.mark.parametrize("on", ["EVENTS", "GENERATION_STANDINGS", "other"])
def test_given_a_trigger_on_a_table_in_capitals_or_on_another_when_it_reaches_ours_then_it_is_named(
    on: str, tmp_path: Path, ratings: Ratings
) -> None:
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    made(ratings, db)
    do(db, "CREATE TABLE other (x)", f"CREATE TRIGGER z AFTER INSERT ON {on} BEGIN "
       "UPDATE generation_standings SET points = points + 1000000; END")  # fmt: skip
    assert verified(ratings, db) == [f"schema: the trigger z on {on} is none of this program's"]


def test_given_a_kept_generation_that_was_changed_when_rolled_back_to_then_it_is_not_served(
    db: str, ratings: Ratings
) -> None:
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0
    do(db, "UPDATE generation_standings SET points = points + 1 WHERE build = 1 AND ordinal = 1")
    told = ratings("rebuild", "--rollback", db=db)
    assert (told.exit_code, told.stdout) == (1, "")
    assert "nothing was rolled back" in told.stderr
    assert verified(ratings, db) == []


def test_given_renames_in_a_circle_when_verified_then_it_is_named(db: str, ratings: Ratings) -> None:
    for number, (player, new) in enumerate((("anna", "xa"), ("xa", "anna"))):
        rename(db, number, player, new)
    found = verified(ratings, db)
    assert len(found) == 1, found
    assert found[0].startswith("meaning: position ")


def rename(url: str, number: int, player: str, new_player: str) -> None:
    """A rename by SQL, with right hashes."""
    with open_ledger(url).writing() as connection:
        before = head(connection)
        data = {"player": player, "new_player": new_player}
        event = {
            "by": "eve", "data": data, "id": f"r-{number}", "occurred_at": "2026-01-01T00:00:00.000000Z",
            "position": before.position + 1, "recorded_at": "2029-01-01T00:00:00.000000Z", "schema_version": 1,
            "type": "player.renamed",
        }  # fmt: skip
        record = dump(event)
        leaf = leaf_hash(record)
        insert(connection, (
            before.position + 1, event["id"], event["type"], 1, f"player:{player}", 1_767_225_600_000_000,
            1_861_920_000_000_000, "eve", None, record, leaf, chain_hash(before.chain_hash, leaf),
        ))  # fmt: skip


@pytest.mark.parametrize("statement", [
    "UPDATE generation_ladders SET position = 'abc'", "UPDATE generation_ladders SET chain_hash = 'abc'",
    "UPDATE generation_ladders SET chain_hash = 500000000000", "UPDATE generation_standings SET places = 'a,b'",
    "UPDATE generation_standings SET qualified = 2", "UPDATE generation_standings SET qualified = 'yes'",
    "UPDATE generation_standings SET points = points + 0.5", "UPDATE generation_standings SET points = 'abc'",
    "UPDATE generation_standings SET points = 9e999", "UPDATE generation_standings SET points = x'00'",
    "UPDATE generation_standings SET rank = -1", "UPDATE generation_standings SET rank = 1.5",
    "UPDATE generation_standings SET player = x'616e6e61' WHERE player = 'anna'",
    "UPDATE generation_standings SET player = CAST(x'ff' AS TEXT) WHERE ordinal = 1",
    "UPDATE generation_standings SET games = '3 '||'x'", "UPDATE generation_standings SET divisor = 0",
    "UPDATE generation_standings SET gold = 0", "UPDATE generation_standings SET places = ''",
    "UPDATE generation_standings SET ordinal = ordinal + 10",
    "UPDATE generation_standings SET ordinal = 0.5 WHERE ordinal = 1",
    "UPDATE generation_ladders SET digest = CAST(x'ff' AS TEXT)", "UPDATE generation_ladders SET ruleset = 5",
    "UPDATE generations SET finished_at = 'abc'", "UPDATE generations SET finished_at = -9223372036854775808",
])  # fmt: skip
def test_given_stored_tables_with_other_types_when_verified_then_it_is_a_finding_and_no_bug(
    statement: str, tmp_path: Path, ratings: Ratings
) -> None:
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    made(ratings, db)
    do(db, statement)
    found = verified(ratings, db)
    assert found
    assert all(one.startswith("standings: ") for one in found), found


STANDING_IN = {
    "an operator": [
        "CREATE FUNCTION public.cc(text, bigint) RETURNS text LANGUAGE sql AS $$ SELECT $1 $$",
        "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.cc)"],
    "a function of another schema": [
        "CREATE SCHEMA evil", "CREATE FUNCTION evil.ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN OLD; END $$", "DROP TRIGGER events_refuse_delete ON events",
        "CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events FOR EACH ROW "
        "EXECUTE FUNCTION evil.ledger_refuse()"],
    "a trigger of our name on another table": [
        "CREATE TRIGGER events_refuse_update BEFORE INSERT ON generations FOR EACH ROW "
        "EXECUTE FUNCTION ledger_refuse()"],
    "a condition": ["ALTER TABLE events ADD CONSTRAINT zz CHECK (recorded_by <> 'zoe')"],
    "a condition of our name elsewhere": [
        "ALTER TABLE live_generation DROP CONSTRAINT live_generation_one_row",
        "CREATE TABLE my (singleton smallint CONSTRAINT live_generation_one_row CHECK (singleton = 1))"],
    "an index that computes": ["CREATE INDEX ix ON events (lower(recorded_by))"],
    "an index that leaves out": [
        "DROP INDEX events_game_recorded_once",
        "CREATE UNIQUE INDEX events_game_recorded_once ON events (subject) WHERE type = 'game.recordedx'"],
    "a key that waits": [
        "ALTER TABLE events DROP CONSTRAINT events_supersedes_once",
        "ALTER TABLE events ADD CONSTRAINT events_supersedes_once UNIQUE (supersedes) DEFERRABLE INITIALLY DEFERRED"],
    "references switched off": ["ALTER TABLE live_generation DISABLE TRIGGER ALL"],
}  # fmt: skip


@pytest.mark.parametrize("what", STANDING_IN)
def test_given_something_that_stands_in_for_ours_when_verified_then_it_is_named(
    what: str, postgres_url: str, ratings: Ratings
) -> None:
    made(ratings, postgres_url)
    do(postgres_url, *STANDING_IN[what])
    assert verified(ratings, postgres_url)


def test_given_an_operator_that_stands_in_when_appended_then_the_game_is_what_was_given(
    postgres_url: str, ratings: Ratings
) -> None:
    made(ratings, postgres_url)
    do(postgres_url, "CREATE FUNCTION public.cc(text, bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN "
       "pg_catalog.replace($1, 'anna', 'eve') OPERATOR(pg_catalog.||) $2::text; END $$",
       "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.cc)")  # fmt: skip
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=postgres_url).exit_code == 0
    assert "eve" not in ratings("export", "events", db=postgres_url).stdout
