"""Mutations of the tables, indexes, triggers and views of a fresh ledger in SQLite.

SQLite needs no mutations that shadow an object: a file has one object of each name, and nothing besides it is searched.
"""

import re
from collections.abc import Iterator

from catalogue_mutations import Mutation

from ratings_ledger.ledger.store.catalogue import load_generated_objects
from ratings_ledger.ledger.store.guards import SQLITE_TRIGGERS


def load_sqlite_objects() -> dict[tuple[str, str], tuple[str, str]]:
    """Return the table and the definition of each object, by kind and name."""
    objects = {(kind, name): (table, sql) for (kind, table, name), sql in load_generated_objects("sqlite").items()}
    guards = {("trigger", name): (sql.partition(" ON ")[2].split()[0], sql) for name, sql in SQLITE_TRIGGERS.items()}
    return objects | guards


def mutate_sqlite_object(kind: str, name: str) -> Iterator[Mutation]:
    """Yield the mutations of one object; those by hand edit SQLite's own table of the schema."""
    table, sql = load_sqlite_objects()[kind, name]

    def build_mutation(
        how: str, *statements: str, reported_name: str = name, more: frozenset[str] = frozenset()
    ) -> Mutation:
        return Mutation(f"{kind} {name}", how, statements, reported_name, more)

    def edit_by_hand(statement: str) -> tuple[str, ...]:
        return "PRAGMA writable_schema = ON", statement, "PRAGMA writable_schema = OFF"

    where = f"WHERE type = '{kind}' AND name = '{name}'"
    yield build_mutation("gone by hand", *edit_by_hand(f"DELETE FROM sqlite_master {where}"))
    if not sql:
        return
    yield build_mutation("altered by hand", *edit_by_hand(f"UPDATE sqlite_master SET sql = sql || ' /* x */' {where}"))
    rename = f"UPDATE sqlite_master SET name = 'zz', sql = replace(sql, '{name}', 'zz')"
    yield build_mutation("renamed by hand", *edit_by_hand(f"{rename} {where}"), more=frozenset({"zz"}))
    if kind == "table":
        column = _first_column(sql)
        checks_off = "PRAGMA foreign_keys = OFF", "PRAGMA legacy_alter_table = ON"
        yield build_mutation("dropped", *checks_off, f"DROP TABLE {name}")
        yield build_mutation("renamed", *checks_off, f"ALTER TABLE {name} RENAME TO zz", more=frozenset({"zz"}))
        yield build_mutation("an extra column", f"ALTER TABLE {name} ADD COLUMN zz TEXT")
        yield build_mutation("an extra generated column", f"ALTER TABLE {name} ADD COLUMN zz AS (1)")
        yield build_mutation("an extra reference", f"ALTER TABLE {name} ADD COLUMN zz REFERENCES generations")
        yield build_mutation(
            "other types",
            *edit_by_hand(f"UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'BLOB') {where}")
            if "TEXT" in sql
            else edit_by_hand(f"UPDATE sqlite_master SET sql = replace(sql, 'INTEGER', 'BLOB') {where}")
            if "INTEGER" in sql
            else edit_by_hand(f"UPDATE sqlite_master SET sql = replace(sql, 'VARCHAR', 'CHAR') {where}"),
        )
        yield build_mutation(
            "may be empty", *edit_by_hand(f"UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') {where}")
        )
        for check in re.findall(r"CHECK \(.*\)", sql):
            weaker_check = check.replace("CHECK (", "CHECK (1 OR ").replace("'", "''")
            yield build_mutation(
                check,
                *edit_by_hand(f"UPDATE sqlite_master SET sql = replace(sql, '{check}', '{weaker_check}') {where}"),
            )
        for verb in ("INSERT", "UPDATE", "DELETE"):
            yield build_mutation(
                f"a trigger at {verb}",
                f"CREATE TRIGGER zz AFTER {verb} ON {name} BEGIN SELECT 1; END",
                reported_name="zz",
            )
        yield build_mutation("a unique index", f"CREATE UNIQUE INDEX zz ON {name} ({column})", reported_name="zz")
        yield build_mutation(
            "an index on an expression", f"CREATE INDEX zz ON {name} (lower({column}))", reported_name="zz"
        )
        yield build_mutation(
            "an index of some rows", f"CREATE INDEX zz ON {name} ({column}) WHERE {column} IS NULL", reported_name="zz"
        )
        yield build_mutation(
            "a view instead",
            *checks_off,
            f"ALTER TABLE {name} RENAME TO zz",
            f"CREATE VIEW {name} AS SELECT * FROM zz",
            more=frozenset({"zz"}),
        )
        yield build_mutation(
            "a trigger on another table",
            "CREATE TABLE mine (x)",
            f"CREATE TRIGGER zz AFTER INSERT ON mine BEGIN DELETE FROM {name.upper()}; END",
            reported_name="zz",
        )
        if name not in ("events", "ledger_identity"):
            yield build_mutation(
                "a table whose rows are deleted with it",
                f"CREATE TABLE zz (x REFERENCES {name} ON DELETE CASCADE)",
                reported_name="zz",
            )
    elif kind == "index":
        drop = f"DROP INDEX {name}"
        yield build_mutation("dropped", drop)
        yield build_mutation("of another column", drop, f"CREATE INDEX {name} ON events (recorded_at)")
        yield build_mutation(
            "unique or not",
            drop,
            sql.replace("UNIQUE ", "") if "UNIQUE" in sql else sql.replace("INDEX", "UNIQUE INDEX"),
        )
        yield build_mutation("of some rows", drop, f"{sql.partition(' WHERE')[0]} WHERE {_first_column(sql)} > 5")
        yield build_mutation("descending", drop, sql.replace(")", " DESC)", 1))
        yield build_mutation("of another collation", drop, sql.replace(")", " COLLATE NOCASE)", 1))
        yield build_mutation("on another table", drop, "CREATE TABLE zt (x)", f"CREATE INDEX {name} ON zt (x)")
        yield build_mutation("a table instead", drop, f"CREATE TABLE {name} (x)")
        if "UNIQUE" in sql:
            yield build_mutation("duplicated", sql.replace(name, "zz"), reported_name="zz")
    elif kind == "trigger":
        drop = f"DROP TRIGGER {name}"
        verb = sql.partition(" ON ")[0].split()[-1]
        yield build_mutation("dropped", drop)
        yield build_mutation("afterwards", drop, sql.replace(f"BEFORE {verb}", f"AFTER {verb}"))
        yield build_mutation(
            "at another event",
            drop,
            f"CREATE TRIGGER {name} BEFORE {'INSERT' if verb != 'INSERT' else 'DELETE'} ON {table} BEGIN SELECT 1; END",
        )
        yield build_mutation("never", drop, sql.replace("BEGIN", "WHEN 0 BEGIN", 1))
        yield build_mutation("does nothing", drop, sql.partition("BEGIN")[0] + "BEGIN SELECT 1; END")
        yield build_mutation("ignores", drop, re.sub(r"RAISE\(ABORT, '.*?'\)(?=[;\s])", "RAISE(IGNORE)", sql))
        yield build_mutation(
            "on another table", drop, f"CREATE TRIGGER {name} BEFORE {verb} ON generations BEGIN SELECT 1; END"
        )
        yield build_mutation("duplicated", sql.replace(name, "zz"), reported_name="zz")
    else:
        drop = f"DROP VIEW {name}"
        query = sql.partition(" AS")[2]
        yield build_mutation("dropped", drop)
        yield build_mutation("no row", drop, f"CREATE VIEW {name} AS SELECT * FROM ({query}) WHERE 0")
        yield build_mutation("another column", drop, f"CREATE VIEW {name} AS SELECT *, 1 AS zz FROM ({query})")
        yield build_mutation(
            "rows twice", drop, f"CREATE VIEW {name} AS SELECT * FROM ({query}) UNION ALL SELECT * FROM ({query})"
        )
        yield build_mutation(
            "a table instead", f"CREATE TABLE zz AS SELECT * FROM {name}", drop, f"ALTER TABLE zz RENAME TO {name}"
        )
        yield build_mutation(
            "a trigger", f"CREATE TRIGGER zz INSTEAD OF INSERT ON {name} BEGIN SELECT 1; END", reported_name="zz"
        )


def _first_column(sql: str) -> str:
    """Return the first column of a table, or of an index."""
    return re.split(r"[\s,)]", sql.partition("(")[2].strip())[0].strip('"')
