"""What can be done to the tables, columns, constraints and indexes of a fresh ledger in PostgreSQL, one by one.

A mutation is SQL that somebody with all rights runs. What `verify` then says must name the object once, and
nothing else but what goes with it or changes with it (`more`). The names of what a mutation makes begin with `zz`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, text


class Mutation(NamedTuple):
    """What is done (`how`) to which object; the name that a finding must have, and those that findings may have."""

    object: str
    how: str
    sql: tuple[str, ...]
    name: str
    more: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.object}: {self.how}"


Mutations = Iterator[Mutation]
# a schema of somebody else's, before ours in the search path
EVIL = (
    "CREATE SCHEMA zevil",
    "GRANT USAGE ON SCHEMA zevil TO PUBLIC",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA zevil GRANT SELECT ON TABLES TO PUBLIC",
    "SELECT set_config('search_path', 'zevil, public, pg_temp', true)",
)
ROLE = "CREATE ROLE zz_role_of_a_mutation"
TRIGGER = "CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"


class Shape(NamedTuple):
    """The objects of a fresh ledger as the catalogue has them."""

    version: int
    tables: dict[str, list[str]]
    columns: list[Any]
    constraints: list[Any]
    indexes: list[Any]
    triggers: list[Any]
    views: dict[str, str]
    functions: list[Any]

    def __len__(self) -> int:
        return sum(map(len, self[1:]))


def shape(connection: Connection) -> Shape:
    """Read from the schema `public`, which holds nothing but a ledger."""

    def rows(query: str) -> list[Any]:
        return list(connection.execute(text(query)).all())

    ours = "= 'public'::regnamespace"
    columns = rows(
        "SELECT relname AS tbl, attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS required, "
        "atthasdef AS has_default, EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary "
        "AND attnum = ANY(indkey)) AS key FROM pg_attribute "
        f"JOIN pg_class c ON c.oid = attrelid WHERE relnamespace {ours} AND relkind = 'r' AND attnum > 0 "
        "ORDER BY relname, attnum"
    )
    return Shape(
        int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000,
        {name: [c.name for c in columns if c.tbl == name] for name in sorted({c.tbl for c in columns})},
        columns,
        rows(
            "SELECT conrelid::regclass::text AS tbl, conname AS name, contype AS type, "
            "pg_get_constraintdef(oid) AS told, oid "
            f"FROM pg_constraint WHERE connamespace {ours} AND contype IN ('c', 'f', 'p', 'u') ORDER BY conname"
        ),
        rows(
            "SELECT indrelid::regclass::text AS tbl, relname AS name, pg_get_indexdef(c.oid) AS told, "
            "indisunique AS unique_, indnatts AS width FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
            f"WHERE relnamespace {ours} AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid "
            "AND contype IN ('p', 'u')) ORDER BY relname"
        ),
        rows(
            "SELECT tgrelid::regclass::text AS tbl, tgname AS name, pg_get_triggerdef(oid) AS told, "
            "tgfoid::regproc::text AS function FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname"
        ),
        dict(rows(f"SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relnamespace {ours} AND relkind = 'v'")),
        rows(
            "SELECT proname AS name, oid::regprocedure::text AS signature, pg_get_functiondef(oid) AS told, "
            "pg_get_function_identity_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, "
            f"prosrc AS body, proconfig AS settings FROM pg_proc WHERE pronamespace {ours} ORDER BY proname"
        ),
    )


def depending(connection: Connection, table: str, column: str | None = None) -> frozenset[str]:
    """The names of the views, constraints and indexes that depend on a table or on one of its columns."""
    query = text("""SELECT DISTINCT coalesce(v.relname, k.conname, i.relname) FROM pg_depend d
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_class v ON v.oid = r.ev_class
    LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
    LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid
    WHERE d.refobjid = to_regclass(:table) AND d.refclassid = 'pg_class'::regclass
    AND (:column = '' OR d.refobjsubid = (SELECT attnum FROM pg_attribute WHERE attrelid = d.refobjid
      AND attname = :column))""")
    given = {"table": table, "column": column or ""}
    names = {name for name in connection.execute(query, given).scalars() if name}
    if column is None:  # its own go with it, and are no findings
        own = """SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(:table) UNION ALL
        SELECT relname FROM pg_class JOIN pg_index ON oid = indexrelid WHERE indrelid = to_regclass(:table)"""
        names -= set(connection.execute(text(own), {"table": table}).scalars())
    keys = """SELECT k.conname FROM pg_constraint k JOIN pg_constraint p ON k.confrelid = p.conrelid
    AND k.conindid = p.conindid AND p.contype IN ('p', 'u') WHERE k.contype = 'f' AND p.conname = ANY(:names)"""
    return frozenset(names | set(connection.execute(text(keys), {"names": list(names)}).scalars()))


def dropped_views(connection: Connection, names: frozenset[str]) -> list[str]:
    views = set(shape(connection).views) & names
    return [f"DROP VIEW {name}" for name in sorted(views)]


def of_tables(connection: Connection, ledger: Shape) -> Mutations:
    for table, columns in ledger.tables.items():
        more = depending(connection, table)

        def mutation(
            how: str, *sql: str, name: str = f"the table {table}", more: frozenset[str] = frozenset()
        ) -> Mutation:
            return Mutation(f"table {table}", how, sql, name, more)  # noqa: B023

        def shadow(how: str, *sql: str) -> Mutation:
            return mutation(f"shadowed by {how}", *sql, name=f"the same name as public.{table}")  # noqa: B023

        own = {one.name for one in ledger.constraints if one.type == "f" and one.tbl == table}
        alter = f"ALTER TABLE {table}"
        yield mutation("dropped", f"DROP TABLE {table} CASCADE", more=more)
        yield mutation("renamed", f"{alter} RENAME TO zz", more=more | own)
        yield mutation("moved out of the path", "CREATE SCHEMA zevil", f"{alter} SET SCHEMA zevil", more=more | own)
        yield mutation("moved within the path", *EVIL, f"{alter} SET SCHEMA zevil", more=more | own)
        yield mutation(
            "a view instead", f"{alter} RENAME TO zz", f"CREATE VIEW {table} AS SELECT * FROM zz", more=more | own
        )
        yield mutation("owner", ROLE, f"{alter} OWNER TO zz_role_of_a_mutation")
        if table != "generations":  # a table that is kept refers to it
            yield mutation("unlogged", f"{alter} SET UNLOGGED")
        yield mutation("row security", f"{alter} ENABLE ROW LEVEL SECURITY")
        yield mutation("row security for all", f"{alter} FORCE ROW LEVEL SECURITY")
        yield mutation("inherits", f"CREATE TABLE zz (LIKE {table} INCLUDING ALL)", f"{alter} INHERIT zz")
        members = ", ".join(f"{c.name} {c.type}" for c in ledger.columns if c.tbl == table)
        yield mutation("of a type", f"CREATE TYPE zz AS ({members})", f"{alter} OF zz")
        if ledger.version >= 15:
            yield mutation(
                "stored otherwise",
                "CREATE ACCESS METHOD zzheap TYPE TABLE HANDLER heap_tableam_handler",
                f"{alter} SET ACCESS METHOD zzheap",
            )
        # another one of its name
        yield shadow("a table", *EVIL, f"CREATE TABLE zevil.{table} AS TABLE public.{table}")
        yield shadow("a view", *EVIL, f"CREATE VIEW zevil.{table} AS TABLE public.{table}")
        yield shadow("a materialized view", *EVIL, f"CREATE MATERIALIZED VIEW zevil.{table} AS TABLE public.{table}")
        yield shadow("a temporary table", f"CREATE TEMP TABLE {table} AS TABLE public.{table}")
        yield shadow("one behind", *EVIL[:3], f"CREATE TABLE zevil.{table} AS TABLE public.{table}",
                       "SELECT set_config('search_path', 'public, zevil, pg_temp', true)")  # fmt: skip
        # what is put on it
        yield mutation("an inheriting table", f"CREATE TABLE zz () INHERITS ({table})", name="zz")
        yield mutation("a column more", f"{alter} ADD COLUMN zz text", name="zz")
        yield mutation("a column that runs something", f"{alter} ADD COLUMN zz timestamptz DEFAULT now()", name="zz")
        yield mutation(
            "a generated column more", f"{alter} ADD COLUMN zz int GENERATED ALWAYS AS (1) STORED", name="zz"
        )
        yield mutation("a condition more", f"{alter} ADD CONSTRAINT zz CHECK ({columns[0]} IS NOT NULL)", name="zz")
        yield mutation(
            "a condition that is not checked",
            f"{alter} ADD CONSTRAINT zz CHECK ({columns[0]} IS NOT NULL) NOT VALID",
            name="zz",
        )
        yield mutation("a key more", f"{alter} ADD CONSTRAINT zz UNIQUE ({columns[-1]})", name="zz")
        yield mutation(
            "an exclusion", f"{alter} ADD CONSTRAINT zz EXCLUDE USING btree ({columns[-1]} WITH =)", name="zz"
        )
        yield mutation(
            "a reference more",
            f"CREATE TABLE zt (x {next(c.type for c in ledger.columns if c.tbl == table)} PRIMARY KEY)",
            f"INSERT INTO zt SELECT {columns[0]} FROM {table}",
            f"{alter} ADD CONSTRAINT zz FOREIGN KEY ({columns[0]}) REFERENCES zt",
            name="zz",
        )
        yield mutation("a rule", f"CREATE RULE zz AS ON INSERT TO {table} DO ALSO NOTHING", name="zz")
        yield mutation("a policy", f"CREATE POLICY zz ON {table} USING (true)", name="zz")
        for when in ("BEFORE INSERT", "AFTER UPDATE", "BEFORE TRUNCATE", "AFTER DELETE"):
            yield mutation(
                f"a trigger {when}",
                TRIGGER,
                f"CREATE TRIGGER zz {when} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION zz()",
                name="zz",
            )
        yield mutation(
            "a trigger that waits",
            TRIGGER,
            f"CREATE CONSTRAINT TRIGGER zz AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION zz()",
            name="zz",
        )
        yield mutation("a unique index", f"CREATE UNIQUE INDEX zz ON {table} ({columns[-1]})", name="zz")
        yield mutation("an index that computes", f"CREATE INDEX zz ON {table} (length({columns[-1]}::text))", name="zz")
        some = f"({columns[-1]}) WHERE {columns[-1]} IS NULL"
        yield mutation("an index of some rows", f"CREATE INDEX zz ON {table} {some}", name="zz")
        kind = next(c.type for c in ledger.columns if c.tbl == table)
        compared = {"smallint": "btint2cmp", "integer": "btint4cmp", "bigint": "btint8cmp", "text": "bttextcmp"}
        if kind in compared:
            signs = ("<", "<=", "=", ">=", ">")
            operators = ", ".join(f"OPERATOR {n} {sign}" for n, sign in enumerate(signs, 1))
            yield mutation(
                "an index by functions of somebody's",
                f"CREATE OPERATOR CLASS zzops FOR TYPE {kind} USING btree AS {operators}, "
                f"FUNCTION 1 {compared[kind]}({kind}, {kind})",
                f"CREATE INDEX zz ON {table} ({columns[0]} zzops)",
                name="zz",
            )


def of_columns(connection: Connection, ledger: Shape) -> Mutations:
    for column in ledger.columns:
        table, name, kind = column.tbl, column.name, column.type
        more = depending(connection, table, name)
        if name in ("version_num", "ledger_id"):
            more |= {"alembic_version holds", "ledger_identity holds"}  # what is in it goes, too
        alter = f"ALTER TABLE {table} ALTER COLUMN {name}"
        views = dropped_views(connection, more)

        def mutation(how: str, *sql: str, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"column {table}.{name}", how, sql, f"{name} of {table}", more)  # noqa: B023

        again = f"ALTER TABLE {table} DROP COLUMN {name} CASCADE", f"ALTER TABLE {table} ADD COLUMN {name} {kind}"
        yield mutation("dropped", again[0], more=more)
        yield mutation("renamed", f"ALTER TABLE {table} RENAME {name} TO zz", more=more | {f"zz of {table}"})
        other = f"{alter} {'DROP' if column.required else 'SET'} NOT NULL"
        yield mutation("made again, and may be empty or not", *again, other, more=more)
        yield mutation("a domain", f"CREATE DOMAIN zd AS {kind}", *views, f"{alter} TYPE zd", more=more)
        others = {
            "text": "character varying(99)", "smallint": "integer", "integer": "bigint", "bigint": "numeric",
            "boolean": "text", "character varying(32)": "character varying(99)",
        }  # fmt: skip
        if kind in others:
            yield mutation("another type", *views, f"{alter} TYPE {others[kind]}", more=more)
        if kind == "text":
            yield mutation("another collation", *views, f'{alter} TYPE text COLLATE "C"', more=more)
        if column.required and not column.key:
            yield mutation("may be empty", f"{alter} DROP NOT NULL")
            if ledger.version >= 18:
                yield mutation("may have been empty", f"{alter} DROP NOT NULL",
                               f"ALTER TABLE {table} ADD CONSTRAINT zz NOT NULL {name} NOT VALID")  # fmt: skip
        if not column.required:
            yield mutation("must not be empty", f"{alter} SET NOT NULL")
        default = "''" if kind in ("text", "bytea", "character varying(32)") else "true" if kind == "boolean" else "7"
        yield mutation("another default", f"{alter} SET DEFAULT {default}")
        yield mutation("a default of NULL", f"{alter} SET DEFAULT nullif({default}::{kind}, NULL)")
        if column.has_default:
            yield mutation("no default", f"{alter} DROP DEFAULT")
        if kind in ("smallint", "integer", "bigint") and column.required:
            drop = f"{alter} DROP DEFAULT"
            yield mutation("identity", drop, f"{alter} ADD GENERATED BY DEFAULT AS IDENTITY")
            yield mutation("identity always", drop, f"{alter} ADD GENERATED ALWAYS AS IDENTITY")
        for how in ("STORED", "VIRTUAL") if ledger.version >= 18 else ("STORED",):
            yield mutation(
                f"generated {how}", again[0], f"{again[1]} GENERATED ALWAYS AS ({default}::{kind}) {how}", more=more
            )


def of_constraints(connection: Connection, ledger: Shape) -> Mutations:
    for one in ledger.constraints:
        table, name = one.tbl, one.name
        alter = f"ALTER TABLE {table}"
        drop = f"{alter} DROP CONSTRAINT {name} CASCADE"
        more = frozenset(
            other.name
            for other in ledger.constraints
            if one.type in "pu" and other.type == "f" and f"REFERENCES {table}(" in other.told and other.name != name
        )

        def mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = more) -> Mutation:
            return Mutation(f"constraint {one.name}", how, sql, name, more)  # noqa: B023

        def made(told: str) -> str:
            return f"{alter} ADD CONSTRAINT {name} {told}"  # noqa: B023

        yield mutation("dropped", drop)
        yield mutation("renamed", f"{alter} RENAME CONSTRAINT {name} TO zz", more=more | {"zz"})
        yield mutation("duplicated", f"{alter} ADD CONSTRAINT zz " + (
            one.told if one.type != "p" else one.told.replace("PRIMARY KEY", "UNIQUE")), name="zz")  # fmt: skip
        if one.type == "c":
            yield mutation("says nothing", drop, made("CHECK (true)"))
            yield mutation("says less", drop, made(one.told.replace("CHECK (", "CHECK (true OR ")))
            yield mutation("says more", drop, made(one.told.replace("CHECK (", "CHECK (1 = 1 AND ")))
            yield mutation("not checked", drop, made(f"{one.told} NOT VALID"))
            members = ", ".join(f"{c.name} {c.type}" for c in ledger.columns if c.tbl == table)
            there = f"CREATE TABLE zt ({members}, CONSTRAINT {name} {one.told})"
            yield mutation("on another table", drop, there)
            yield mutation("not for those that inherit", drop, made(f"{one.told} NO INHERIT"))
            if ledger.version >= 18:
                yield mutation("not enforced", drop, made(f"{one.told} NOT ENFORCED"))
            yield mutation("by a function of somebody's",
                           "CREATE FUNCTION zf() RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'", drop,
                           made("CHECK (zf())"))  # fmt: skip
        elif one.type in "pu":
            column = ledger.tables[table][-1]
            told = one.told.partition("(")
            if table != "alembic_version":
                yield mutation(
                    "of another column", drop, made(f"{told[0]}({column})"), more=more | {f"{column} of {table}"}
                )
            yield mutation("deferrable", drop, made(f"{one.told} DEFERRABLE"))
            yield mutation("deferred", drop, made(f"{one.told} DEFERRABLE INITIALLY DEFERRED"))
            if column not in one.told:
                yield mutation("with a column more", drop, made(f"{told[0]}({told[2][:-1]}, {column})"),
                               more=more | {f"{column} of {table}"})  # fmt: skip
                yield mutation("including", drop, made(f"{one.told} INCLUDE ({column})"))
            if one.type == "u" and ledger.version >= 15:
                yield mutation("one NULL only", drop, made(one.told.replace("UNIQUE", "UNIQUE NULLS NOT DISTINCT")))
            for flag in ("indisvalid", "indisready", "indislive"):
                yield mutation(
                    f"not {flag}", f"UPDATE pg_index SET {flag} = false WHERE indexrelid = '{name}'::regclass"
                )
            instead = f"INDEX {name} ON {table} {told[1]}{told[2]}"
            yield mutation("a plain index instead", drop, f"CREATE {instead}")
            yield mutation("a unique index instead", drop, f"CREATE UNIQUE {instead}")
            yield mutation("shadowed", *EVIL, f"CREATE TABLE zevil.{name} (x int)")
        else:
            for action in ("DELETE CASCADE", "DELETE SET NULL", "DELETE RESTRICT", "UPDATE CASCADE"):
                yield mutation(f"on {action}", drop, made(f"{one.told} ON {action}"))
            yield mutation("not checked", drop, made(f"{one.told} NOT VALID"))
            yield mutation("deferrable", f"{alter} ALTER CONSTRAINT {name} DEFERRABLE")
            yield mutation("deferred", f"{alter} ALTER CONSTRAINT {name} DEFERRABLE INITIALLY DEFERRED")
            yield mutation("all or nothing", drop, made(one.told.replace(")", ") ", 1) + " MATCH FULL"))
            if ledger.version >= 18:
                yield mutation("not enforced", drop, made(f"{one.told} NOT ENFORCED"))
            kind = "text" if "event_id" in one.told else "integer"
            yield mutation("of another table", f"CREATE TABLE zt (x {kind} PRIMARY KEY)", drop,
                           made(f"{one.told.partition(' REFERENCES')[0]} REFERENCES zt (x)"))  # fmt: skip
            triggers = connection.execute(
                text("SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgconstraint = :oid"),
                {"oid": one.oid},
            ).all()
            for number, (on, trigger) in enumerate(triggers):
                for how in ("DISABLE", "ENABLE REPLICA"):
                    yield mutation(f"trigger {number} {how}", f'ALTER TABLE {on} {how} TRIGGER "{trigger}"')


def of_indexes(_: Connection, ledger: Shape) -> Mutations:
    for one in ledger.indexes:
        name, table = one.name, one.tbl
        drop = f"DROP INDEX {name}"

        def mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"index {one.name}", how, sql, name, more)  # noqa: B023

        unique = "UNIQUE " if one.unique_ else ""
        where = f" WHERE {one.told.partition(' WHERE ')[2]}" if " WHERE " in one.told else ""
        columns = one.told.partition("btree (")[2].partition(")")[0]

        def made(
            columns: str = columns, unique: str = unique, where: str = where, how: str = "btree", rest: str = ""
        ) -> str:
            return f"CREATE {unique}INDEX {name} ON {table} USING {how} ({columns}){rest}{where}"  # noqa: B023

        last = columns.split(", ")[-1]
        types = {column.name: column.type for column in ledger.columns if column.tbl == table}
        # a column that the index has not, and one of numbers
        other = next(column for column in reversed(types) if column not in columns.split(", "))
        number = next(column for column, kind in types.items() if kind in ("bigint", "integer"))
        yield mutation("dropped", drop)
        yield mutation("renamed", f"ALTER INDEX {name} RENAME TO zz", more=frozenset({"zz"}))
        yield mutation("of another column", drop, made(other))
        yield mutation("with a column more", drop, made(f"{columns}, {other}"))
        yield mutation("including a column", drop, made(rest=f" INCLUDE ({other})"))
        yield mutation("unique or not", drop, made(unique="" if unique else "UNIQUE "))
        yield mutation("of some rows", drop, made(where=f" WHERE {number} > 5"))
        if where:
            yield mutation("of all rows", drop, made(where=""))
            yield mutation("of rows by another name", drop, made(where=where.replace("recorded", "recordedx")))
            yield mutation("of fewer rows", drop, made(where=f"{where} AND {number} > 5"))
        yield mutation("downwards", drop, made(f"{columns} DESC"))
        yield mutation("NULL first", drop, made(f"{columns} NULLS FIRST"))
        if not unique:
            yield mutation("by hash", drop, made(columns.split(", ")[0], how="hash"))
        computed = f"({last} || '')" if types[last] == "text" else f"({last} + 1)"
        yield mutation("computed", drop, made(columns.replace(last, computed)))
        for text_column in [column for column in columns.split(", ")[:1] if types[column] == "text"]:
            ordered = columns.replace(text_column, f"{text_column} text_pattern_ops")
            yield mutation("of another order", drop, made(ordered))
            collated = columns.replace(text_column, f'{text_column} COLLATE "POSIX"')
            yield mutation("of another collation", drop, made(collated))
        if unique and ledger.version >= 15:
            yield mutation("one NULL only", drop, made(rest=" NULLS NOT DISTINCT"))
        for flag in ("indisvalid", "indisready", "indislive"):
            yield mutation(f"not {flag}", f"UPDATE pg_index SET {flag} = false WHERE indexrelid = '{name}'::regclass")
        yield mutation("on another table", drop, "CREATE TABLE zt (x int)", f"CREATE INDEX {name} ON zt (x)")
        yield mutation("shadowed", *EVIL, f"CREATE TABLE zevil.{name} (x int)")
        if unique:
            yield mutation("duplicated", made().replace(name, "zz"), name="zz")
