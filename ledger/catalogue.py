"""What the database holds beside the rows, compared with what this program itself would make: by reading it.

In SQLite that is every table, index, trigger and view, by its definition. In PostgreSQL definitions are told otherwise
from version to version: columns, keys and indexes are compared by alembic, views by what the server would do for them,
functions by their bodies and how they run. What can run on our tables, hide rows or add some must not be there. Other
tables and views are an operator's own, and so are additional plain indexes.
"""

import re
from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, create_engine, text

from ledger.guards import POSTGRES_APPEND, POSTGRES_FUNCTIONS, POSTGRES_TRIGGERS, POSTGRES_VIEW, SQLITE_TRIGGERS
from ledger.schema import metadata

Objects = dict[tuple[str, str], tuple[str, str | None]]
_ALL = "SELECT type, name, tbl_name, CAST(sql AS BLOB) FROM sqlite_master"


def differences(connection: Connection) -> Iterator[str | None]:
    """None for every object that is as it should be, and what is wrong with every other one."""
    yield from (_sqlite if connection.dialect.name == "sqlite" else _postgres)(connection)


@cache
def _wanted() -> Objects:
    """What the migrations make in SQLite."""
    from ledger.migrate import make_tables  # only here: alembic takes long to load

    with create_engine("sqlite://").begin() as connection:
        make_tables(connection)
        return _found(connection)


def _found(connection: Connection) -> Objects:
    rows = connection.exec_driver_sql(_ALL).all()
    return {
        (kind, name): (table, None if sql is None else bytes(sql).decode("utf-8", "backslashreplace"))
        for kind, name, table, sql in rows
    }


def _sqlite(connection: Connection) -> Iterator[str | None]:
    wanted, found = _wanted(), _found(connection)
    for key in wanted:
        kind, name = key
        if name in SQLITE_TRIGGERS:
            continue  # the guards are findings of their own
        if key not in found:
            yield f"the {kind} {name} is missing"
        elif found[key] != wanted[key]:
            yield f"the {kind} {name} is not as this program makes it"
        else:
            yield None
    # SQLite tells tables apart without regard to capitals, and keeps a name as it was written
    tables = {name.lower() for kind, name in wanted if kind in ("table", "view")}
    for kind, name in sorted(found.keys() - wanted.keys()):
        table, sql = found[kind, name]
        ours = table.lower() in tables
        if (ours and (kind in ("trigger", "view") or "UNIQUE" in str(sql).upper())) or (
            kind == "trigger" and any(other in str(sql).lower() for other in tables)
        ):
            yield f"the {kind} {name} on {table} is none of this program's"


_TABLE = re.compile(r" ON (\w+)")
# a query each for what must not be there: its first column names it
_FOREIGN = {
    "the trigger {} runs a function that is none of this program's": "SELECT t.tgname FROM pg_trigger t "
    "JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgrelid = ANY(:ours) "
    "AND (p.pronamespace <> :space OR NOT (p.proname = ANY(:functions)))",
    "the references of {} are switched off": "SELECT DISTINCT t.tgrelid::regclass::text FROM pg_trigger t "
    "WHERE t.tgisinternal AND t.tgrelid = ANY(:ours) AND t.tgenabled = 'D'",
    "the condition {} is none of this program's": "SELECT conname FROM pg_constraint "
    "WHERE conrelid = ANY(:ours) AND contype IN ('c', 'x') AND NOT (conname = ANY(:checks))",
    "the key or reference {} is not checked, or not at once": "SELECT conname FROM pg_constraint "
    "WHERE conrelid = ANY(:ours) AND (condeferrable OR NOT convalidated)",
    "the index {} computes something at every append": "SELECT indexrelid::regclass::text FROM pg_index "
    "WHERE indrelid = ANY(:ours) AND indexprs IS NOT NULL",
    "the index {} is not valid": "SELECT indexrelid::regclass::text FROM pg_index "
    "WHERE indrelid = ANY(:ours) AND NOT (indisvalid AND indisready)",
    "the index {} leaves other rows out than it should": "SELECT indexrelid::regclass::text FROM pg_index "
    "WHERE indrelid = ANY(:ours) AND indisunique AND indpred IS NOT NULL "
    "AND pg_get_expr(indpred, indrelid) <> '(type = ''game.recorded''::text)'",
    "the operator {} may stand in for one of PostgreSQL's own": "SELECT o.oprname FROM pg_operator o "
    "WHERE o.oprnamespace = ANY(cast(current_schemas(false) AS text[])::regnamespace[]) "
    "AND o.oprname IN (SELECT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace) "
    "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = o.oid AND d.deptype = 'e')",
    "the function {} may stand in for one of PostgreSQL's own": "SELECT DISTINCT p.proname FROM pg_proc p "
    "WHERE p.pronamespace = ANY(cast(current_schemas(false) AS text[])::regnamespace[]) "
    "AND p.proname IN (SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace) "
    "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')",
    "the rule {} is on a view of this program's": "SELECT rulename FROM pg_rewrite "
    "WHERE ev_class = ANY(:all) AND rulename <> '_RETURN' AND NOT (ev_class = ANY(:ours))",
    "the trigger {} is none of this program's": "SELECT t.tgname FROM pg_trigger t "
    "JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgrelid = ANY(:all) "
    "AND NOT (c.relname || '.' || t.tgname = ANY(:triggers))",
    "the rule {} is none of this program's": "SELECT r.rulename FROM pg_rewrite r "
    "JOIN pg_class c ON c.oid = r.ev_class WHERE r.ev_class = ANY(:ours) AND c.relkind IN ('r', 'p')",
    "the policy {} may hide rows": "SELECT polname FROM pg_policy WHERE polrelid = ANY(:ours)",
    "row security is switched on for {}, and may hide rows": "SELECT relname FROM pg_class WHERE oid = ANY(:ours) "
    "AND (relrowsecurity OR relforcerowsecurity)",
    "the table {} inherits from one of ours, and adds rows without guards": "SELECT inhrelid::regclass::text "
    "FROM pg_inherits WHERE inhparent = ANY(:ours)",
    "the table {} is unlogged: a crash empties it": "SELECT relname FROM pg_class WHERE oid = ANY(:ours) "
    "AND relpersistence <> 'p'",
    "the function {} has settings of its own": "SELECT proname FROM pg_proc WHERE proname = ANY(:functions) "
    "AND pronamespace = :space AND coalesce(array_to_string(proconfig, ','), '') "
    "NOT IN ('', 'enable_seqscan=off')",
    "{} belongs to another role than the table events": "SELECT relname FROM pg_class WHERE oid = ANY(:all) "
    "AND relowner <> (SELECT relowner FROM pg_class WHERE oid = 'events'::regclass)",
    "the function {} is not as this program makes it": "SELECT p.proname FROM pg_proc p "
    "JOIN pg_language l ON l.oid = p.prolang WHERE p.proname = ANY(:functions) AND p.pronamespace = :space "
    "AND (l.lanname <> 'plpgsql' OR p.prosecdef OR p.provolatile <> 'v' OR p.proisstrict OR p.proleakproof "
    "OR p.proowner <> (SELECT relowner FROM pg_class WHERE oid = 'events'::regclass))",
    "the function {} is there several times": "SELECT proname FROM pg_proc WHERE proname = ANY(:functions) "
    "AND pronamespace = :space GROUP BY proname HAVING count(*) > 1",
    "the index {} makes something unique that need not be": "SELECT i.indexrelid::regclass::text FROM pg_index i "
    "WHERE i.indrelid = ANY(:ours) AND i.indisunique AND NOT (split_part(i.indexrelid::regclass::text, '.', -1) "
    "= ANY(:indexes))",
}  # fmt: skip


def _postgres(connection: Connection) -> Iterator[str | None]:
    wanted = _wanted()
    tables = [name for kind, name in wanted if kind == "table" and not name.startswith("sqlite_")]
    views = {name: _select(sql) for (kind, name), (_, sql) in wanted.items() if kind == "view"}
    views["events_readable"] = _select(POSTGRES_VIEW)
    there = connection.execute(
        text("SELECT n::text, to_regclass(n)::oid FROM unnest(cast(:names AS text[])) AS n"),
        {"names": [*tables, *views]},
    ).all()
    for name, oid in there:
        kind = "table" if name in tables else "view"
        yield f"the {kind} {name} is missing" if oid is None else None
    if any(oid is None for name, oid in there if name in tables):
        return
    given = {
        "ours": [oid for name, oid in there if oid is not None and name in tables],
        "all": [oid for _, oid in there if oid is not None],
        "triggers": [f"{_TABLE.findall(sql)[0]}.{name}" for name, sql in POSTGRES_TRIGGERS.items()],
        "checks": list(_CHECKS),
        "functions": [*POSTGRES_FUNCTIONS, *POSTGRES_APPEND],
        "indexes": [*(name for kind, name in wanted if kind == "index"), *UNIQUE],
        "space": connection.execute(
            text("SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass")
        ).scalar_one(),
    }
    for message, query in _FOREIGN.items():
        for name in connection.execute(text(query), {k: v for k, v in given.items() if f":{k}" in query}).scalars():
            yield message.format(name)
    yield from _checks(connection, given["ours"])
    yield from _columns(connection)
    for name, oid in there:
        if oid is not None and name in views:
            same = _plan(connection, f"SELECT * FROM {name}") == _plan(connection, views[name])
            yield None if same else f"the view {name} is not as this program makes it"


def _select(sql: str | None) -> str:
    """What a view selects."""
    return str(sql).partition(" AS")[2].strip()


def _plan(connection: Connection, query: str) -> list[str]:
    """How the server would run a query, with the columns that come out: a view is no more than what it selects."""
    names = list(connection.exec_driver_sql(f"SELECT * FROM ({query}) AS q LIMIT 0").keys())
    plan = connection.exec_driver_sql(f"EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM ({query}) AS q").scalars()
    return [*names, *plan]


# the conditions of our tables as every server tells them
_CHECKS = {
    "events_hashes_have_32_bytes": "CHECK (((length(leaf_hash) = 32) AND (length(chain_hash) = 32)))",
    "events_position_counts_from_1": 'CHECK (("position" >= 1))',
    "ledger_identity_one_row": "CHECK ((singleton = 1))",
    "live_generation_one_row": "CHECK ((singleton = 1))",
}


def _checks(connection: Connection, ours: list[int]) -> Iterator[str | None]:
    """The conditions of the tables, which alembic does not compare."""
    query = text(
        "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
        "WHERE conname = ANY(:names) AND conrelid = ANY(:ours)"
    )
    given = {"names": list(_CHECKS), "ours": ours}
    found = {name: (told, valid) for name, told, valid in connection.execute(query, given)}
    for name, told in _CHECKS.items():
        yield None if found.get(name) == (told, True) else f"the condition {name} is missing or altered"


def _columns(connection: Connection) -> Iterator[str | None]:
    """The columns, their types, defaults, keys and indexes, against the tables as they are declared."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    for difference in compare_metadata(context, metadata):
        steps = difference if isinstance(difference, list) else [difference]
        for what, *about in steps:
            if what in ("remove_table", "remove_index"):
                continue  # somebody's own
            names = " ".join(str(getattr(one, "name", one)) for one in about if one is not None)[:200]
            yield f"the tables are not as this program makes them: {what.replace('_', ' ')} {names}"
    yield None


# the indexes of keys, which SQLite numbers
UNIQUE = (
    "events_pk", "events_event_id_once", "events_supersedes_once", "ledger_identity_pk", "generations_pk",
    "generation_ladders_pk", "generation_standings_pk", "live_generation_pk", "alembic_version_pkc",
)  # fmt: skip
