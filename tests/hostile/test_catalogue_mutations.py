"""Compare the objects of a ledger with those that the program creates, after mutations of every object in each store.

In PostgreSQL a mutation is made in a transaction that is rolled back, and compared by a role that can only read, in
a transaction that cannot write. A fixed part of the mutations goes through the command line.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from itertools import chain
from typing import Any

import pytest
from catalogue_mutations import (
    CREATE_TRIGGER_FUNCTION,
    FOREIGN_SCHEMA_FIRST,
    Mutation,
    mutate_columns,
    mutate_constraints,
    mutate_indexes,
    mutate_tables,
    read_shape,
)
from ledgers import open_for_reading, open_for_writing
from lengths import mark_long_values
from running_mutations import mutate_functions, mutate_triggers, mutate_views, shadow_builtins
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ProgrammingError
from sqlite_mutations import load_sqlite_objects, mutate_sqlite_object
from stores import create_postgres_database, find_older_server_programs, make_empty_ledger, start_server_of

from ratings_ledger.ledger import verification
from ratings_ledger.ledger.store import catalogue
from ratings_ledger.ledger.store.guards import POSTGRES_TRIGGERS, SQLITE_TRIGGERS
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.upgrading import upgrade

Ratings = Callable[..., Any]
MUTATIONS_BY_KIND = {
    "tables": mutate_tables,
    "columns": mutate_columns,
    "constraints": mutate_constraints,
    "indexes": mutate_indexes,
    "triggers": mutate_triggers,
    "views": mutate_views,
    "functions": mutate_functions,
    "shadowed built-ins": shadow_builtins,
}
READER = "zz_reader_of_a_ledger"
SHARED_SERVER = "shared by all tests"


@pytest.fixture(
    scope="module",
    params=mark_long_values([SHARED_SERVER, "on the path"], [SHARED_SERVER, "on the path", "older"]),
)
def mutated_ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """Yield a ledger in each available PostgreSQL, with a role that has a reader's grants in docs/postgresql.md."""
    if request.param == SHARED_SERVER:
        running: Any = nullcontext(request.getfixturevalue("server"))
    elif (programs := find_older_server_programs()[request.param]) is not None:
        running = start_server_of(programs)
    else:
        pytest.skip(f"there is no other PostgreSQL {request.param}")
    with running as server, create_postgres_database(server) as url:
        ledger = upgrade(url)
        with ledger.writing() as connection:
            run_statements(
                connection,
                f"CREATE ROLE {READER}",
                f"GRANT USAGE ON SCHEMA public TO {READER}",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}",
                f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {READER}",
            )
        yield ledger
        with ledger.writing() as connection:
            run_statements(connection, f"DROP OWNED BY {READER}", f"DROP ROLE {READER}")
        ledger.close()


def run_statements(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement.replace("%", "%%"))


def list_findings_after(ledger: Ledger, statements: Iterable[str]) -> list[str]:
    """Run statements as a superuser, and return the findings about objects that a role that can only read gets.

    The statements are rolled back.
    """
    messages: list[str] = []
    with ledger.engine.connect() as connection, connection.begin() as transaction:
        run_statements(connection, *statements)
        run_statements(connection, f"SET LOCAL ROLE {READER}", "SET TRANSACTION READ ONLY")
        findings = verification._check_schema(connection)
        try:
            while True:
                messages.append(next(findings).message)
        except StopIteration as end:
            if end.value[1]:
                messages += [f"the guard {name}" for name in ledger.dialect.find_altered_guards(connection)]
        except ProgrammingError as error:
            if "row-level security" not in str(error):
                raise
            messages.append("(not readable)")
        transaction.rollback()
    return messages


def is_named_in(message: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) is not None


def describe_fault(mutation: Mutation, messages: list[str]) -> str | None:
    """Describe a mutation with its findings, unless one names the object and all others name objects in `more`."""
    matching = [message for message in messages if is_named_in(message, mutation.name)]
    surplus = [
        message
        for message in messages
        if message not in matching and not any(is_named_in(message, name) for name in mutation.more)
    ]
    if "row security" in mutation.how:
        surplus = [message for message in surplus if message != "(not readable)"]
    if len(matching) == 1 and not surplus and len(set(messages)) == len(messages):
        return None
    return f"{mutation}: {messages}"


def select_mutations(mutations: list[Mutation], server: str, at_length: bool) -> list[Mutation]:
    """Return all mutations at length; else one for each object, or on other servers one for each `how` among these."""
    by_object: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        by_object.setdefault(mutation.object, []).append(mutation)
    if at_length:
        return mutations
    selected = [group[number % len(group)] for number, group in enumerate(by_object.values())]
    return selected if server == SHARED_SERVER else list({mutation.how: mutation for mutation in selected}.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MUTATIONS_BY_KIND)
def test_postgresql_mutation_is_reported_once(
    kind: str,
    mutated_ledger: Ledger,
    at_length: bool,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any object dropped, altered, shadowed or duplicated in PostgreSQL is named by exactly one finding.

    At length, every object in the catalogue undergoes each mutation that makes sense for it, otherwise one of them.
    """
    with mutated_ledger.engine.connect() as connection:
        shape = read_shape(connection)
        all_mutations = list(MUTATIONS_BY_KIND[kind](connection, shape))
    mutations = select_mutations(all_mutations, request.node.callspec.params["mutated_ledger"], at_length)
    faults = [
        fault
        for mutation in mutations
        if (fault := describe_fault(mutation, list_findings_after(mutated_ledger, mutation.sql)))
    ]
    with capsys.disabled() if at_length else nullcontext():
        objects = len({mutation.object for mutation in mutations})
        print(f"\nPostgreSQL {shape.version}, {kind}: {objects} objects x mutations = {len(mutations):,}")  # noqa: T201

    assert not faults, "\n".join(faults)
    assert list_findings_after(mutated_ledger, []) == []


@pytest.mark.slow_cases
def test_all_postgresql_objects_are_compared(mutated_ledger: Ledger) -> None:
    """In a fresh ledger in PostgreSQL, as many objects are compared as the catalogue has, and none differs."""
    with mutated_ledger.reading() as connection:
        shape = read_shape(connection)
        differences = list(catalogue.find_object_differences(connection))

    assert set(differences) == {None}
    assert len(differences) + len(shape.triggers) + len(shape.functions) == len(shape)
    assert len(mutated_ledger.dialect.GUARDS) == len(shape.triggers) + len(shape.functions)


HARMLESS_STATEMENTS = {
    "a guard that always runs": ["ALTER TABLE events ENABLE ALWAYS TRIGGER events_guard_insert"],
    "all guards that always run": [
        f"ALTER TABLE {sql.partition(' ON ')[2].split()[0]} ENABLE ALWAYS TRIGGER {name}"
        for name, sql in POSTGRES_TRIGGERS.items()
    ],
    "an index": ["CREATE INDEX mine ON events (recorded_at)"],
    "an index of two columns, descending": ["CREATE INDEX mine ON events (recorded_at DESC, recorded_by NULLS FIRST)"],
    "an index by hash": ["CREATE INDEX mine ON events USING hash (recorded_by)"],
    "an index like one of ours": ["CREATE INDEX mine ON events (subject)"],
    "an index that is being made": [
        "CREATE INDEX mine ON events (recorded_at)",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'mine'::regclass",
    ],
    "a table": ["CREATE TABLE mine (position bigint, note text DEFAULT lower('X'), UNIQUE (position))"],
    "a table with a trigger": [CREATE_TRIGGER_FUNCTION, "CREATE TABLE my_events (x int)",
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
    "storage parameters of tables and indexes": [
        "ALTER TABLE events SET (fillfactor = 70, autovacuum_enabled = false)",
        "ALTER INDEX events_pk SET (fillfactor = 70)",
        "ALTER INDEX events_game_recorded_once SET (fillfactor = 70, deduplicate_items = off)"],
    "how a column is stored": ["ALTER TABLE events ALTER COLUMN record SET STORAGE EXTERNAL"],
    "clustering": ["ALTER TABLE events CLUSTER ON events_pk"],
    "replication": ["ALTER TABLE events REPLICA IDENTITY FULL", "CREATE PUBLICATION mine FOR TABLE events"],
    "a column added and dropped": ["ALTER TABLE events ADD COLUMN mine int", "ALTER TABLE events DROP COLUMN mine"],
    "an event trigger": ["CREATE FUNCTION mine() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$",
                         "CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION mine()"],
    "another owner of everything": [
        "CREATE ROLE zz_mine", "GRANT CREATE ON SCHEMA public TO zz_mine",
        "DO $$ DECLARE command text; BEGIN FOR command IN SELECT format('ALTER TABLE %I OWNER TO zz_mine', relname) "
        "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') UNION ALL "
        "SELECT format('ALTER FUNCTION %s OWNER TO zz_mine', oid::regprocedure) FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace LOOP EXECUTE command; END LOOP; END $$"],
    "another schema, with a name to be quoted": [
        'ALTER SCHEMA public RENAME TO "My \\ ledger"',
        """SELECT set_config('search_path', '"My \\ ledger", pg_temp', true)"""],
    "a foreign schema in the path": [*FOREIGN_SCHEMA_FIRST, "CREATE TABLE zevil.mine (x int)"],
    "a domain and a type": ["CREATE DOMAIN mine AS text", "CREATE TYPE my_type AS ENUM ('a')"],
}  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", HARMLESS_STATEMENTS)
def test_own_postgresql_objects_raise_no_alarm(what: str, mutated_ledger: Ledger) -> None:
    """An operator's own objects and settings in PostgreSQL give no findings."""
    assert list_findings_after(mutated_ledger, HARMLESS_STATEMENTS[what]) == []


def test_extension_objects_raise_no_alarm(mutated_ledger: Ledger) -> None:
    """Functions and operators of an extension, named like PostgreSQL's own, give no findings."""
    with mutated_ledger.reading() as connection:
        available = connection.exec_driver_sql(
            "SELECT name FROM pg_available_extensions WHERE name IN ('citext', 'hstore')"
        )
        extensions = sorted(available.scalars())
    if not extensions:
        pytest.skip("this server has no such extension")
    assert list_findings_after(mutated_ledger, [f"CREATE EXTENSION {name}" for name in extensions]) == []


@pytest.mark.slow
def test_verify_reports_postgresql_mutations(
    server: str, original_databases: Callable[..., str], ratings: Ratings, at_length: bool
) -> None:
    """For a fixed part of the mutations, `verify` exits with 1 and names the object, or cannot open the ledger."""
    original = original_databases(make_empty_ledger)
    with open_for_reading(original) as connection:
        shape = read_shape(connection)
        # roles belong to the server, and temporary objects end with their session
        mutations_by_kind = [
            [
                mutation
                for mutation in mutate(connection, shape)
                if "zz_role" not in str(mutation.sql) and "TEMP" not in str(mutation.sql)
            ]
            for mutate in MUTATIONS_BY_KIND.values()
        ]
    failed = []
    one_of_each_kind = [mutations[len(mutations) // 2] for mutations in mutations_by_kind]
    for mutation in [*chain(*mutations_by_kind)][::7] if at_length else one_of_each_kind:
        with create_postgres_database(server, original) as url:
            # the search path must apply to later sessions
            setting = f"ALTER DATABASE {make_url(url).database} SET search_path = "
            with open_for_writing(url) as connection:
                run_statements(
                    connection,
                    *(
                        re.sub(r"SELECT set_config\('search_path', '(.*)', true\)", rf"{setting}\1", statement)
                        for statement in mutation.sql
                    ),
                )
            result = ratings("verify", db=url)
        is_opened = result.exit_code == 1 and bool(result.stdout)
        is_refused = result.exit_code in (1, 2, 3) and result.stderr.startswith("ratings: ")
        if (
            describe_fault(mutation, list_schema_lines(result.stdout)) if is_opened else not is_refused
        ) or "Traceback" in result.stderr:
            failed.append(f"{mutation}: {result}")
    assert not failed, "\n".join(failed)


def list_schema_lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(("schema: ", "guard: "))]


@pytest.mark.slow
def test_sqlite_mutation_is_reported_once(
    copy_ledger_file: Callable[..., str], ratings: Ratings, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any SQLite object dropped, altered or duplicated is named by exactly one finding.

    If the ledger cannot be opened, the error is reported instead, and a mutation by hand may give a finding about the
    storage instead.
    """
    objects = load_sqlite_objects()
    mutations = select_mutations(
        [mutation for key in objects for mutation in mutate_sqlite_object(*key)], SHARED_SERVER, at_length
    )
    failed: list[str] = []
    for number, mutation in enumerate(mutations):
        path = copy_ledger_file(make_empty_ledger, name=f"{number}.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in mutation.sql:
                connection.execute(statement)
        result = ratings("verify", db=f"sqlite:///{path}")
        if result.exit_code == 1 and result.stdout:
            has_storage_finding = any(line.startswith("storage: ") for line in result.stdout.splitlines())
            fault = (
                None
                if has_storage_finding and "by hand" in mutation.how
                else describe_fault(mutation, list_schema_lines(result.stdout))
            )
        else:  # it cannot be opened
            fault = None if result.exit_code in (1, 2, 3) and result.stderr.startswith("ratings: ") else "silent"
        failed += [f"{mutation}: {fault}: {result}"] if fault else []
    with capsys.disabled() if at_length else nullcontext():
        print(f"\nSQLite: {len(objects)} objects x mutations = {len(mutations):,}")  # noqa: T201

    assert not failed, "\n".join(failed)
    assert len({mutation.object for mutation in mutations}) == len(objects)
    assert {name for kind, name in objects if kind == "trigger"} == set(SQLITE_TRIGGERS)


SQLITE_HARMLESS_STATEMENTS = {
    "an index": ["CREATE INDEX mine ON events (recorded_at)"],
    "an index of two columns": ["CREATE INDEX mine ON EVENTS (recorded_at DESC, recorded_by COLLATE NOCASE)"],
    "an index like one of ours": ["CREATE INDEX unique_mine ON events (subject)"],
    "a table": ["CREATE TABLE mine (position INTEGER PRIMARY KEY, note TEXT UNIQUE)"],
    "a table with a trigger": [
        "CREATE TABLE my_events (x)",
        "CREATE TABLE sums (x)",
        "CREATE TRIGGER mine AFTER INSERT ON my_events BEGIN UPDATE sums SET x = x + 1; END",
    ],
    "a table that refers to events": ["CREATE TABLE mine (event_id TEXT REFERENCES events (event_id))"],
    "a view over ours": ["CREATE VIEW mine AS SELECT position, recorded_by FROM events"],
    "statistics": ["ANALYZE"],
    "a full-text search": ["CREATE VIRTUAL TABLE mine USING fts5 (record, content = '')"],
}


@pytest.mark.parametrize("what", SQLITE_HARMLESS_STATEMENTS)
def test_own_sqlite_objects_raise_no_alarm(what: str, copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """An operator's own objects in SQLite give no findings."""
    path = copy_ledger_file(make_empty_ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in SQLITE_HARMLESS_STATEMENTS[what]:
            connection.execute(statement)
    result = ratings("verify", "--format", "json", db=f"sqlite:///{path}")

    assert (result.exit_code, json.loads(result.stdout)["findings"]) == (0, [])
