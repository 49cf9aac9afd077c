"""The objects of a ledger are compared with what the program makes: each of them, whatever is done, on each store.

In PostgreSQL a mutation is made in a transaction that is rolled back, and compared by a role that can only read, in a
transaction that cannot write. A fixed part of the mutations goes through the command line.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from itertools import chain
from typing import Any

import pytest
from catalogue_mutations import EVIL, TRIGGER, Mutation, of_columns, of_constraints, of_indexes, of_tables, shape
from ledgers import open_for_reading, open_for_writing
from lengths import mark_long_values
from running_mutations import of_functions, of_triggers, of_views, standing_in
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ProgrammingError
from sqlite_mutations import sqlite_mutations, sqlite_objects
from stores import create_postgres_database, find_older_server_programs, make_empty_ledger, start_server_of

from ratings_ledger.ledger import verification
from ratings_ledger.ledger.store import catalogue
from ratings_ledger.ledger.store.guards import POSTGRES_TRIGGERS, SQLITE_TRIGGERS
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.upgrading import upgrade

Ratings = Callable[..., Any]
KINDS = {
    "tables": of_tables, "columns": of_columns, "constraints": of_constraints, "indexes": of_indexes,
    "triggers": of_triggers, "views": of_views, "functions": of_functions, "what stands in": standing_in,
}  # fmt: skip
READER = "zz_reader_of_a_ledger"
SHARED = "the one of all tests"


@pytest.fixture(
    scope="module",
    params=mark_long_values([SHARED, "on the path"], [SHARED, "on the path", "older"]),
)
def made(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """A ledger in each PostgreSQL that is there, with a role that may read it as docs/postgresql.md grants it."""
    if request.param == SHARED:
        running: Any = nullcontext(request.getfixturevalue("server"))
    elif (programs := find_older_server_programs()[request.param]) is not None:
        running = start_server_of(programs)
    else:
        pytest.skip(f"there is no other PostgreSQL {request.param}")
    with running as server, create_postgres_database(server) as url:
        ledger = upgrade(url)
        with ledger.writing() as connection:
            do(connection, f"CREATE ROLE {READER}", f"GRANT USAGE ON SCHEMA public TO {READER}",
               f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}",
               f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {READER}")  # fmt: skip
        yield ledger
        with ledger.writing() as connection:
            do(connection, f"DROP OWNED BY {READER}", f"DROP ROLE {READER}")
        ledger.close()


def do(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement.replace("%", "%%"))


def found_after(ledger: Ledger, statements: Iterable[str]) -> list[str]:
    """What `verify` says of the objects after somebody with all rights ran statements, to one who can only read."""
    told: list[str] = []
    with ledger.engine.connect() as connection, connection.begin() as transaction:
        do(connection, *statements)
        do(connection, f"SET LOCAL ROLE {READER}", "SET TRANSACTION READ ONLY")
        findings = verification._check_schema(connection)
        try:
            while True:
                told.append(next(findings).message)
        except StopIteration as end:
            if end.value[1]:
                told += [f"the guard {name}" for name in ledger.dialect.find_altered_guards(connection)]
        except ProgrammingError as error:
            if "row-level security" not in str(error):
                raise
            told.append("(not readable)")
        transaction.rollback()
    return told


def names(told: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", told) is not None


def wrong_with(mutation: Mutation, told: list[str]) -> str | None:
    """Why what was said is not right: each object is to be named once, and nothing but what the mutation changes."""
    right = [one for one in told if names(one, mutation.name)]
    more = [one for one in told if one not in right and not any(names(one, name) for name in mutation.more)]
    if "row security" in mutation.how:
        more = [one for one in more if one != "(not readable)"]
    if len(right) == 1 and not more and len(set(told)) == len(told):
        return None
    return f"{mutation}: {told}"


def thinned(mutations: list[Mutation], server: str, at_length: bool) -> list[Mutation]:
    """All at length, else one of each object, not the same kind for each; in other servers one of each kind."""
    of_object: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        of_object.setdefault(mutation.object, []).append(mutation)
    if at_length:
        return mutations
    found = [several[number % len(several)] for number, several in enumerate(of_object.values())]
    return found if server == SHARED else list({one.how: one for one in found}.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_postgresql_mutation_is_found_once(
    kind: str, made: Ledger, at_length: bool, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any object dropped, altered, shadowed or duplicated in PostgreSQL is named by exactly one finding.

    Every object in the catalogue undergoes each mutation that makes sense for it.
    """
    with made.engine.connect() as connection:
        ledger = shape(connection)
        every = list(KINDS[kind](connection, ledger))
    mutations = thinned(every, request.node.callspec.params["made"], at_length)
    failed = [wrong for one in mutations if (wrong := wrong_with(one, found_after(made, one.sql)))]
    with capsys.disabled() if at_length else nullcontext():
        objects = len({one.object for one in mutations})
        print(f"\nPostgreSQL {ledger.version}, {kind}: {objects} objects x mutations = {len(mutations):,}")  # noqa: T201

    assert not failed, "\n".join(failed)
    assert found_after(made, []) == []


@pytest.mark.slow_cases
def test_all_postgresql_objects_are_compared(made: Ledger) -> None:
    """In a fresh ledger in PostgreSQL, exactly the objects in the catalogue are compared."""
    with made.reading() as connection:
        ledger = shape(connection)
        compared = list(catalogue.find_object_differences(connection))

    assert set(compared) == {None}
    assert len(compared) + len(ledger.triggers) + len(ledger.functions) == len(ledger)
    assert len(made.dialect.GUARDS) == len(ledger.triggers) + len(ledger.functions)


NO_ALARM = {
    "a guard that always runs": ["ALTER TABLE events ENABLE ALWAYS TRIGGER events_guard_insert"],
    "all guards that always run": [
        f"ALTER TABLE {sql.partition(' ON ')[2].split()[0]} ENABLE ALWAYS TRIGGER {name}"
        for name, sql in POSTGRES_TRIGGERS.items()
    ],
    "an index": ["CREATE INDEX mine ON events (recorded_at)"],
    "an index of two columns, downwards": ["CREATE INDEX mine ON events (recorded_at DESC, recorded_by NULLS FIRST)"],
    "an index by hash": ["CREATE INDEX mine ON events USING hash (recorded_by)"],
    "an index like one of ours": ["CREATE INDEX mine ON events (subject)"],
    "an index that is being made": [
        "CREATE INDEX mine ON events (recorded_at)",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'mine'::regclass",
    ],
    "a table": ["CREATE TABLE mine (position bigint, note text DEFAULT lower('X'), UNIQUE (position))"],
    "a table with a trigger": [TRIGGER, "CREATE TABLE my_events (x int)",
                               "CREATE TRIGGER zz BEFORE INSERT ON my_events FOR EACH ROW EXECUTE FUNCTION zz()"],
    "a table that refers to events": ["CREATE TABLE mine (event_id text REFERENCES events (event_id))"],
    "a table with our function": [
        "CREATE TABLE mine (x int)",
        "CREATE TRIGGER mine BEFORE UPDATE ON mine FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"],
    "a table elsewhere with our name": ["CREATE SCHEMA mine", "CREATE TABLE mine.events (x int)"],
    "a table with row security": ["CREATE TABLE mine (x int)", "ALTER TABLE mine ENABLE ROW LEVEL SECURITY",
                                  "CREATE POLICY mine ON mine USING (true)"],
    "a view over ours": ["CREATE VIEW mine AS SELECT position, recorded_by FROM events"],
    "a materialized view over ours": ["CREATE MATERIALIZED VIEW mine AS SELECT player FROM live_standings"],
    "a function": ["CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    "a sequence": ["CREATE SEQUENCE mine"],
    "grants": ["CREATE ROLE zz_mine", "GRANT ALL ON ALL TABLES IN SCHEMA public TO zz_mine",
               "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO zz_mine",
               "GRANT SELECT (record) ON events TO zz_mine"],
    "comments": ["COMMENT ON TABLE events IS 'x'", "COMMENT ON COLUMN events.record IS 'x'",
                 "COMMENT ON FUNCTION ledger_refuse IS 'x'", "COMMENT ON VIEW live_standings IS 'x'"],
    "statistics": ["CREATE STATISTICS mine ON recorded_at, recorded_by FROM events", "ANALYZE"],
    "a target of statistics": ["ALTER TABLE events ALTER COLUMN subject SET STATISTICS 500"],
    "how tables and indexes are filled": [
        "ALTER TABLE events SET (fillfactor = 70, autovacuum_enabled = false)",
        "ALTER INDEX events_pk SET (fillfactor = 70)",
        "ALTER INDEX events_game_recorded_once SET (fillfactor = 70, deduplicate_items = off)"],
    "how a column is stored": ["ALTER TABLE events ALTER COLUMN record SET STORAGE EXTERNAL"],
    "clustering": ["ALTER TABLE events CLUSTER ON events_pk"],
    "replication": ["ALTER TABLE events REPLICA IDENTITY FULL", "CREATE PUBLICATION mine FOR TABLE events"],
    "a column that was there": ["ALTER TABLE events ADD COLUMN mine int", "ALTER TABLE events DROP COLUMN mine"],
    "an event trigger": ["CREATE FUNCTION mine() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$",
                         "CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION mine()"],
    "another owner of all": [
        "CREATE ROLE zz_mine", "GRANT CREATE ON SCHEMA public TO zz_mine",
        "DO $$ DECLARE told text; BEGIN FOR told IN SELECT format('ALTER TABLE %I OWNER TO zz_mine', relname) "
        "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') UNION ALL "
        "SELECT format('ALTER FUNCTION %s OWNER TO zz_mine', oid::regprocedure) FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace LOOP EXECUTE told; END LOOP; END $$"],
    "another schema, with a name to be quoted": [
        'ALTER SCHEMA public RENAME TO "My \\ ledger"',
        """SELECT set_config('search_path', '"My \\ ledger", pg_temp', true)"""],
    "a schema of somebody's in the path": [*EVIL, "CREATE TABLE zevil.mine (x int)"],
    "a domain and a type": ["CREATE DOMAIN mine AS text", "CREATE TYPE my_type AS ENUM ('a')"],
}  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", NO_ALARM)
def test_own_postgresql_objects_raise_no_alarm(what: str, made: Ledger) -> None:
    """Objects and settings of an operator's own in PostgreSQL raise no alarm."""
    assert found_after(made, NO_ALARM[what]) == []


def test_extension_objects_raise_no_alarm(made: Ledger) -> None:
    """Functions and operators of an extension, named like PostgreSQL's own, raise no alarm."""
    with made.reading() as connection:
        there = connection.exec_driver_sql(
            "SELECT name FROM pg_available_extensions WHERE name IN ('citext', 'hstore')"
        )
        extensions = sorted(there.scalars())
    if not extensions:
        pytest.skip("this server has no such extension")
    assert found_after(made, [f"CREATE EXTENSION {name}" for name in extensions]) == []


@pytest.mark.slow
def test_verify_reports_postgresql_mutations(
    server: str, original_databases: Callable[..., str], ratings: Ratings, at_length: bool
) -> None:
    """For a fixed part of the mutations, `verify` exits with 1 and names it, or cannot open the ledger."""
    original = original_databases(make_empty_ledger)
    with open_for_reading(original) as connection:
        ledger = shape(connection)
        # roles are the server's, and what is temporary is gone with its session
        possible = [
            [one for one in make(connection, ledger) if "zz_role" not in str(one.sql) and "TEMP" not in str(one.sql)]
            for make in KINDS.values()
        ]
    failed = []
    of_each = [several[len(several) // 2] for several in possible]
    for mutation in [*chain(*possible)][::7] if at_length else of_each:
        with create_postgres_database(server, original) as url:
            # the search path is to be that of later sessions
            setting = f"ALTER DATABASE {make_url(url).database} SET search_path = "
            with open_for_writing(url) as connection:
                do(connection, *(re.sub(r"SELECT set_config\('search_path', '(.*)', true\)", rf"{setting}\1", one)
                                 for one in mutation.sql))  # fmt: skip
            told = ratings("verify", db=url)
        opened = told.exit_code == 1 and bool(told.stdout)
        said = told.exit_code in (1, 2, 3) and told.stderr.startswith("ratings: ")
        if (wrong_with(mutation, schema_lines(told.stdout)) if opened else not said) or "Traceback" in told.stderr:
            failed.append(f"{mutation}: {told}")
    assert not failed, "\n".join(failed)


def schema_lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(("schema: ", "guard: "))]


@pytest.mark.slow
def test_sqlite_mutation_is_found_once(
    copied_file: Callable[..., str], ratings: Ratings, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any SQLite object dropped, altered or duplicated is named by exactly one finding.

    Where the ledger cannot be opened, that is said instead.
    """
    objects = sqlite_objects()
    mutations = thinned([one for key in objects for one in sqlite_mutations(*key)], SHARED, at_length)
    failed: list[str] = []
    for number, mutation in enumerate(mutations):
        path = copied_file(make_empty_ledger, name=f"{number}.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in mutation.sql:
                connection.execute(statement)
        told = ratings("verify", db=f"sqlite:///{path}")
        if told.exit_code == 1 and told.stdout:
            storage = any(line.startswith("storage: ") for line in told.stdout.splitlines())
            wrong = None if storage and "by hand" in mutation.how else wrong_with(mutation, schema_lines(told.stdout))
        else:  # it cannot be opened
            wrong = None if told.exit_code in (1, 2, 3) and told.stderr.startswith("ratings: ") else "silent"
        failed += [f"{mutation}: {wrong}: {told}"] if wrong else []
    with capsys.disabled() if at_length else nullcontext():
        print(f"\nSQLite: {len(objects)} objects x mutations = {len(mutations):,}")  # noqa: T201

    assert not failed, "\n".join(failed)
    assert len({one.object for one in mutations}) == len(objects)
    assert {name for kind, name in objects if kind == "trigger"} == set(SQLITE_TRIGGERS)


SQLITE_NO_ALARM = {
    "an index": ["CREATE INDEX mine ON events (recorded_at)"],
    "an index of two columns": ["CREATE INDEX mine ON EVENTS (recorded_at DESC, recorded_by COLLATE NOCASE)"],
    "an index like one of ours": ["CREATE INDEX unique_mine ON events (subject)"],
    "a table": ["CREATE TABLE mine (position INTEGER PRIMARY KEY, note TEXT UNIQUE)"],
    "a table with a trigger": ["CREATE TABLE my_events (x)", "CREATE TABLE sums (x)",
                               "CREATE TRIGGER mine AFTER INSERT ON my_events BEGIN UPDATE sums SET x = x + 1; END"],
    "a table that refers to events": ["CREATE TABLE mine (event_id TEXT REFERENCES events (event_id))"],
    "a view over ours": ["CREATE VIEW mine AS SELECT position, recorded_by FROM events"],
    "statistics": ["ANALYZE"],
    "a full-text search": ["CREATE VIRTUAL TABLE mine USING fts5 (record, content = '')"],
}  # fmt: skip


@pytest.mark.parametrize("what", SQLITE_NO_ALARM)
def test_own_sqlite_objects_raise_no_alarm(what: str, copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Objects of an operator's own in SQLite raise no alarm."""
    path = copied_file(make_empty_ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in SQLITE_NO_ALARM[what]:
            connection.execute(statement)
    told = ratings("verify", "--format", "json", db=f"sqlite:///{path}")

    assert (told.exit_code, json.loads(told.stdout)["findings"]) == (0, [])
