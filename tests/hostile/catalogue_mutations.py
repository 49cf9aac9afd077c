"""Mutations of the tables, columns, constraints and indexes of a fresh ledger in PostgreSQL.

A mutation is SQL that a superuser runs. Then `verify` must name the object once, and besides it only objects that
depend on it (`more`). The names of added objects begin with `zz`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, text


class Mutation(NamedTuple):
    """A mutation of one object: the name that a finding must have, and the names that further findings may have."""

    object: str
    how: str
    sql: tuple[str, ...]
    name: str
    more: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.object}: {self.how}"


Mutations = Iterator[Mutation]
# a foreign schema before the ledger's in the search path
FOREIGN_SCHEMA_FIRST = (
    "CREATE SCHEMA zevil",
    "GRANT USAGE ON SCHEMA zevil TO PUBLIC",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA zevil GRANT SELECT ON TABLES TO PUBLIC",
    "SELECT set_config('search_path', 'zevil, public, pg_temp', true)",
)
CREATE_ROLE = "CREATE ROLE zz_role_of_a_mutation"
CREATE_TRIGGER_FUNCTION = "CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"


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


def read_shape(connection: Connection) -> Shape:
    """Read the objects of the schema `public`, which has only a ledger's."""

    def fetch_rows(query: str) -> list[Any]:
        return list(connection.execute(text(query)).all())

    in_public = "= 'public'::regnamespace"
    columns = fetch_rows(
        "SELECT relname AS tbl, attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS required, "
        "atthasdef AS has_default, EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary "
        "AND attnum = ANY(indkey)) AS key FROM pg_attribute "
        f"JOIN pg_class c ON c.oid = attrelid WHERE relnamespace {in_public} AND relkind = 'r' AND attnum > 0 "
        "ORDER BY relname, attnum"
    )
    return Shape(
        int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000,
        {name: [c.name for c in columns if c.tbl == name] for name in sorted({c.tbl for c in columns})},
        columns,
        fetch_rows(
            "SELECT conrelid::regclass::text AS tbl, conname AS name, contype AS type, "
            "pg_get_constraintdef(oid) AS definition, oid "
            f"FROM pg_constraint WHERE connamespace {in_public} AND contype IN ('c', 'f', 'p', 'u') ORDER BY conname"
        ),
        fetch_rows(
            "SELECT indrelid::regclass::text AS tbl, relname AS name, pg_get_indexdef(c.oid) AS definition, "
            "indisunique AS unique_, indnatts AS width FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
            f"WHERE relnamespace {in_public} AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid "
            "AND contype IN ('p', 'u')) ORDER BY relname"
        ),
        fetch_rows(
            "SELECT tgrelid::regclass::text AS tbl, tgname AS name, pg_get_triggerdef(oid) AS definition, "
            "tgfoid::regproc::text AS function FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname"
        ),
        dict(
            fetch_rows(
                f"SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relnamespace {in_public} AND relkind = 'v'"
            )
        ),
        fetch_rows(
            "SELECT proname AS name, oid::regprocedure::text AS signature, pg_get_functiondef(oid) AS definition, "
            "pg_get_function_identity_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, "
            f"prosrc AS body, proconfig AS settings FROM pg_proc WHERE pronamespace {in_public} ORDER BY proname"
        ),
    )


def find_dependents(connection: Connection, table: str, column: str | None = None) -> frozenset[str]:
    """Return the names of the views, constraints and indexes that depend on a table or on one of its columns."""
    query = text("""SELECT DISTINCT coalesce(v.relname, k.conname, i.relname) FROM pg_depend d
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_class v ON v.oid = r.ev_class
    LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
    LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid
    WHERE d.refobjid = to_regclass(:table) AND d.refclassid = 'pg_class'::regclass
    AND (:column = '' OR d.refobjsubid = (SELECT attnum FROM pg_attribute WHERE attrelid = d.refobjid
      AND attname = :column))""")
    parameters = {"table": table, "column": column or ""}
    names = {name for name in connection.execute(query, parameters).scalars() if name}
    if column is None:  # the table's own constraints and indexes go with it and give no findings
        own = """SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(:table) UNION ALL
        SELECT relname FROM pg_class JOIN pg_index ON oid = indexrelid WHERE indrelid = to_regclass(:table)"""
        names -= set(connection.execute(text(own), {"table": table}).scalars())
    keys = """SELECT k.conname FROM pg_constraint k JOIN pg_constraint p ON k.confrelid = p.conrelid
    AND k.conindid = p.conindid AND p.contype IN ('p', 'u') WHERE k.contype = 'f' AND p.conname = ANY(:names)"""
    return frozenset(names | set(connection.execute(text(keys), {"names": list(names)}).scalars()))


def build_view_drops(connection: Connection, names: frozenset[str]) -> list[str]:
    """Return the statements that drop the views among these names."""
    views = set(read_shape(connection).views) & names
    return [f"DROP VIEW {name}" for name in sorted(views)]


def mutate_tables(connection: Connection, shape: Shape) -> Mutations:
    for table, columns in shape.tables.items():
        more = find_dependents(connection, table)

        def build_mutation(
            how: str, *sql: str, name: str = f"the table {table}", more: frozenset[str] = frozenset()
        ) -> Mutation:
            return Mutation(f"table {table}", how, sql, name, more)  # noqa: B023

        def build_shadow(how: str, *sql: str) -> Mutation:
            return build_mutation(f"shadowed by {how}", *sql, name=f"the same name as public.{table}")  # noqa: B023

        own_keys = {
            constraint.name for constraint in shape.constraints if constraint.type == "f" and constraint.tbl == table
        }
        alter = f"ALTER TABLE {table}"
        yield build_mutation("dropped", f"DROP TABLE {table} CASCADE", more=more)
        yield build_mutation("renamed", f"{alter} RENAME TO zz", more=more | own_keys)
        yield build_mutation(
            "moved out of the path", "CREATE SCHEMA zevil", f"{alter} SET SCHEMA zevil", more=more | own_keys
        )
        yield build_mutation(
            "moved within the path", *FOREIGN_SCHEMA_FIRST, f"{alter} SET SCHEMA zevil", more=more | own_keys
        )
        yield build_mutation(
            "a view instead", f"{alter} RENAME TO zz", f"CREATE VIEW {table} AS SELECT * FROM zz", more=more | own_keys
        )
        yield build_mutation("owner", CREATE_ROLE, f"{alter} OWNER TO zz_role_of_a_mutation")
        if table != "generations":  # a table that is kept refers to it
            yield build_mutation("unlogged", f"{alter} SET UNLOGGED")
        yield build_mutation("row security", f"{alter} ENABLE ROW LEVEL SECURITY")
        yield build_mutation("forced row security", f"{alter} FORCE ROW LEVEL SECURITY")
        yield build_mutation("inherits", f"CREATE TABLE zz (LIKE {table} INCLUDING ALL)", f"{alter} INHERIT zz")
        members = ", ".join(f"{c.name} {c.type}" for c in shape.columns if c.tbl == table)
        yield build_mutation("of a type", f"CREATE TYPE zz AS ({members})", f"{alter} OF zz")
        if shape.version >= 15:
            yield build_mutation(
                "another access method",
                "CREATE ACCESS METHOD zzheap TYPE TABLE HANDLER heap_tableam_handler",
                f"{alter} SET ACCESS METHOD zzheap",
            )
        # a second object of the same name
        yield build_shadow("a table", *FOREIGN_SCHEMA_FIRST, f"CREATE TABLE zevil.{table} AS TABLE public.{table}")
        yield build_shadow("a view", *FOREIGN_SCHEMA_FIRST, f"CREATE VIEW zevil.{table} AS TABLE public.{table}")
        yield build_shadow(
            "a materialized view",
            *FOREIGN_SCHEMA_FIRST,
            f"CREATE MATERIALIZED VIEW zevil.{table} AS TABLE public.{table}",
        )
        yield build_shadow("a temporary table", f"CREATE TEMP TABLE {table} AS TABLE public.{table}")
        yield build_shadow(
            "a table later in the path",
            *FOREIGN_SCHEMA_FIRST[:3],
            f"CREATE TABLE zevil.{table} AS TABLE public.{table}",
            "SELECT set_config('search_path', 'public, zevil, pg_temp', true)",
        )
        # objects added to it
        yield build_mutation("an inheriting table", f"CREATE TABLE zz () INHERITS ({table})", name="zz")
        yield build_mutation("an extra column", f"{alter} ADD COLUMN zz text", name="zz")
        yield build_mutation(
            "an extra column that calls a function", f"{alter} ADD COLUMN zz timestamptz DEFAULT now()", name="zz"
        )
        yield build_mutation(
            "an extra generated column", f"{alter} ADD COLUMN zz int GENERATED ALWAYS AS (1) STORED", name="zz"
        )
        yield build_mutation(
            "an extra condition", f"{alter} ADD CONSTRAINT zz CHECK ({columns[0]} IS NOT NULL)", name="zz"
        )
        yield build_mutation(
            "a condition that is not checked",
            f"{alter} ADD CONSTRAINT zz CHECK ({columns[0]} IS NOT NULL) NOT VALID",
            name="zz",
        )
        yield build_mutation("an extra key", f"{alter} ADD CONSTRAINT zz UNIQUE ({columns[-1]})", name="zz")
        yield build_mutation(
            "an exclusion", f"{alter} ADD CONSTRAINT zz EXCLUDE USING btree ({columns[-1]} WITH =)", name="zz"
        )
        yield build_mutation(
            "an extra reference",
            f"CREATE TABLE zt (x {next(c.type for c in shape.columns if c.tbl == table)} PRIMARY KEY)",
            f"INSERT INTO zt SELECT {columns[0]} FROM {table}",
            f"{alter} ADD CONSTRAINT zz FOREIGN KEY ({columns[0]}) REFERENCES zt",
            name="zz",
        )
        yield build_mutation("a rule", f"CREATE RULE zz AS ON INSERT TO {table} DO ALSO NOTHING", name="zz")
        yield build_mutation("a policy", f"CREATE POLICY zz ON {table} USING (true)", name="zz")
        for when in ("BEFORE INSERT", "AFTER UPDATE", "BEFORE TRUNCATE", "AFTER DELETE"):
            yield build_mutation(
                f"a trigger {when}",
                CREATE_TRIGGER_FUNCTION,
                f"CREATE TRIGGER zz {when} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION zz()",
                name="zz",
            )
        yield build_mutation(
            "a deferred trigger",
            CREATE_TRIGGER_FUNCTION,
            f"CREATE CONSTRAINT TRIGGER zz AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION zz()",
            name="zz",
        )
        yield build_mutation("a unique index", f"CREATE UNIQUE INDEX zz ON {table} ({columns[-1]})", name="zz")
        yield build_mutation(
            "an index on an expression", f"CREATE INDEX zz ON {table} (length({columns[-1]}::text))", name="zz"
        )
        some_rows = f"({columns[-1]}) WHERE {columns[-1]} IS NULL"
        yield build_mutation("an index of some rows", f"CREATE INDEX zz ON {table} {some_rows}", name="zz")
        first_type = next(c.type for c in shape.columns if c.tbl == table)
        compared = {"smallint": "btint2cmp", "integer": "btint4cmp", "bigint": "btint8cmp", "text": "bttextcmp"}
        if first_type in compared:
            signs = ("<", "<=", "=", ">=", ">")
            operators = ", ".join(f"OPERATOR {n} {sign}" for n, sign in enumerate(signs, 1))
            yield build_mutation(
                "an index by a foreign operator class",
                f"CREATE OPERATOR CLASS zzops FOR TYPE {first_type} USING btree AS {operators}, "
                f"FUNCTION 1 {compared[first_type]}({first_type}, {first_type})",
                f"CREATE INDEX zz ON {table} ({columns[0]} zzops)",
                name="zz",
            )


def mutate_columns(connection: Connection, shape: Shape) -> Mutations:
    for column in shape.columns:
        table, name, kind = column.tbl, column.name, column.type
        more = find_dependents(connection, table, name)
        if name in ("version_num", "ledger_id"):
            more |= {"alembic_version holds", "ledger_identity holds"}  # the identity goes with its column
        alter = f"ALTER TABLE {table} ALTER COLUMN {name}"
        view_drops = build_view_drops(connection, more)

        def build_mutation(how: str, *sql: str, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"column {table}.{name}", how, sql, f"{name} of {table}", more)  # noqa: B023

        drop_and_add = (
            f"ALTER TABLE {table} DROP COLUMN {name} CASCADE",
            f"ALTER TABLE {table} ADD COLUMN {name} {kind}",
        )
        yield build_mutation("dropped", drop_and_add[0], more=more)
        yield build_mutation("renamed", f"ALTER TABLE {table} RENAME {name} TO zz", more=more | {f"zz of {table}"})
        change_null = f"{alter} {'DROP' if column.required else 'SET'} NOT NULL"
        yield build_mutation("made again, with the other nullability", *drop_and_add, change_null, more=more)
        yield build_mutation("a domain", f"CREATE DOMAIN zd AS {kind}", *view_drops, f"{alter} TYPE zd", more=more)
        other_types = {
            "text": "character varying(99)",
            "smallint": "integer",
            "integer": "bigint",
            "bigint": "numeric",
            "boolean": "text",
            "character varying(32)": "character varying(99)",
        }
        if kind in other_types:
            yield build_mutation("another type", *view_drops, f"{alter} TYPE {other_types[kind]}", more=more)
        if kind == "text":
            yield build_mutation("another collation", *view_drops, f'{alter} TYPE text COLLATE "C"', more=more)
        if column.required and not column.key:
            yield build_mutation("may be empty", f"{alter} DROP NOT NULL")
            if shape.version >= 18:
                yield build_mutation(
                    "may be empty in old rows",
                    f"{alter} DROP NOT NULL",
                    f"ALTER TABLE {table} ADD CONSTRAINT zz NOT NULL {name} NOT VALID",
                )
        if not column.required:
            yield build_mutation("must not be empty", f"{alter} SET NOT NULL")
        default = "''" if kind in ("text", "bytea", "character varying(32)") else "true" if kind == "boolean" else "7"
        yield build_mutation("another default", f"{alter} SET DEFAULT {default}")
        yield build_mutation("a default of NULL", f"{alter} SET DEFAULT nullif({default}::{kind}, NULL)")
        if column.has_default:
            yield build_mutation("no default", f"{alter} DROP DEFAULT")
        if kind in ("smallint", "integer", "bigint") and column.required:
            drop = f"{alter} DROP DEFAULT"
            yield build_mutation("identity", drop, f"{alter} ADD GENERATED BY DEFAULT AS IDENTITY")
            yield build_mutation("identity always", drop, f"{alter} ADD GENERATED ALWAYS AS IDENTITY")
        for how in ("STORED", "VIRTUAL") if shape.version >= 18 else ("STORED",):
            yield build_mutation(
                f"generated {how}",
                drop_and_add[0],
                f"{drop_and_add[1]} GENERATED ALWAYS AS ({default}::{kind}) {how}",
                more=more,
            )


def mutate_constraints(connection: Connection, shape: Shape) -> Mutations:
    for constraint in shape.constraints:
        table, name = constraint.tbl, constraint.name
        alter = f"ALTER TABLE {table}"
        drop = f"{alter} DROP CONSTRAINT {name} CASCADE"
        more = frozenset(
            other_constraint.name
            for other_constraint in shape.constraints
            if constraint.type in "pu"
            and other_constraint.type == "f"
            and f"REFERENCES {table}(" in other_constraint.definition
            and other_constraint.name != name
        )

        def build_mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = more) -> Mutation:
            return Mutation(f"constraint {constraint.name}", how, sql, name, more)  # noqa: B023

        def add_constraint(definition: str) -> str:
            return f"{alter} ADD CONSTRAINT {name} {definition}"  # noqa: B023

        yield build_mutation("dropped", drop)
        yield build_mutation("renamed", f"{alter} RENAME CONSTRAINT {name} TO zz", more=more | {"zz"})
        yield build_mutation(
            "duplicated",
            f"{alter} ADD CONSTRAINT zz "
            + (
                constraint.definition
                if constraint.type != "p"
                else constraint.definition.replace("PRIMARY KEY", "UNIQUE")
            ),
            name="zz",
        )
        if constraint.type == "c":
            yield build_mutation("says nothing", drop, add_constraint("CHECK (true)"))
            yield build_mutation(
                "says less", drop, add_constraint(constraint.definition.replace("CHECK (", "CHECK (true OR "))
            )
            yield build_mutation(
                "says more", drop, add_constraint(constraint.definition.replace("CHECK (", "CHECK (1 = 1 AND "))
            )
            yield build_mutation("not checked", drop, add_constraint(f"{constraint.definition} NOT VALID"))
            members = ", ".join(f"{c.name} {c.type}" for c in shape.columns if c.tbl == table)
            add_to_another_table = f"CREATE TABLE zt ({members}, CONSTRAINT {name} {constraint.definition})"
            yield build_mutation("on another table", drop, add_to_another_table)
            yield build_mutation("not inherited", drop, add_constraint(f"{constraint.definition} NO INHERIT"))
            if shape.version >= 18:
                yield build_mutation("not enforced", drop, add_constraint(f"{constraint.definition} NOT ENFORCED"))
            yield build_mutation(
                "by a foreign function",
                "CREATE FUNCTION zf() RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'",
                drop,
                add_constraint("CHECK (zf())"),
            )
        elif constraint.type in "pu":
            column = shape.tables[table][-1]
            keyword, bracket, keys = constraint.definition.partition("(")
            if table != "alembic_version":
                yield build_mutation(
                    "of another column",
                    drop,
                    add_constraint(f"{keyword}({column})"),
                    more=more | {f"{column} of {table}"},
                )
            yield build_mutation("deferrable", drop, add_constraint(f"{constraint.definition} DEFERRABLE"))
            yield build_mutation(
                "deferred", drop, add_constraint(f"{constraint.definition} DEFERRABLE INITIALLY DEFERRED")
            )
            if column not in constraint.definition:
                yield build_mutation(
                    "with an extra column",
                    drop,
                    add_constraint(f"{keyword}({keys[:-1]}, {column})"),
                    more=more | {f"{column} of {table}"},
                )
                yield build_mutation("including", drop, add_constraint(f"{constraint.definition} INCLUDE ({column})"))
            if constraint.type == "u" and shape.version >= 15:
                yield build_mutation(
                    "one NULL only",
                    drop,
                    add_constraint(constraint.definition.replace("UNIQUE", "UNIQUE NULLS NOT DISTINCT")),
                )
            for flag in ("indisvalid", "indisready", "indislive"):
                yield build_mutation(
                    f"not {flag}", f"UPDATE pg_index SET {flag} = false WHERE indexrelid = '{name}'::regclass"
                )
            instead = f"INDEX {name} ON {table} {bracket}{keys}"
            yield build_mutation("a plain index instead", drop, f"CREATE {instead}")
            yield build_mutation("a unique index instead", drop, f"CREATE UNIQUE {instead}")
            yield build_mutation("shadowed", *FOREIGN_SCHEMA_FIRST, f"CREATE TABLE zevil.{name} (x int)")
        else:
            for action in ("DELETE CASCADE", "DELETE SET NULL", "DELETE RESTRICT", "UPDATE CASCADE"):
                yield build_mutation(f"on {action}", drop, add_constraint(f"{constraint.definition} ON {action}"))
            yield build_mutation("not checked", drop, add_constraint(f"{constraint.definition} NOT VALID"))
            yield build_mutation("deferrable", f"{alter} ALTER CONSTRAINT {name} DEFERRABLE")
            yield build_mutation("deferred", f"{alter} ALTER CONSTRAINT {name} DEFERRABLE INITIALLY DEFERRED")
            yield build_mutation(
                "all or nothing", drop, add_constraint(constraint.definition.replace(")", ") ", 1) + " MATCH FULL")
            )
            if shape.version >= 18:
                yield build_mutation("not enforced", drop, add_constraint(f"{constraint.definition} NOT ENFORCED"))
            kind = "text" if "event_id" in constraint.definition else "integer"
            yield build_mutation(
                "of another table",
                f"CREATE TABLE zt (x {kind} PRIMARY KEY)",
                drop,
                add_constraint(f"{constraint.definition.partition(' REFERENCES')[0]} REFERENCES zt (x)"),
            )
            triggers = connection.execute(
                text("SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgconstraint = :oid"),
                {"oid": constraint.oid},
            ).all()
            for number, (on, trigger) in enumerate(triggers):
                for how in ("DISABLE", "ENABLE REPLICA"):
                    yield build_mutation(f"trigger {number} {how}", f'ALTER TABLE {on} {how} TRIGGER "{trigger}"')


def mutate_indexes(_: Connection, shape: Shape) -> Mutations:
    for index in shape.indexes:
        name, table = index.name, index.tbl
        drop = f"DROP INDEX {name}"

        def build_mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"index {index.name}", how, sql, name, more)  # noqa: B023

        unique = "UNIQUE " if index.unique_ else ""
        where = f" WHERE {index.definition.partition(' WHERE ')[2]}" if " WHERE " in index.definition else ""
        columns = index.definition.partition("btree (")[2].partition(")")[0]

        def create_index(
            columns: str = columns, unique: str = unique, where: str = where, how: str = "btree", rest: str = ""
        ) -> str:
            return f"CREATE {unique}INDEX {name} ON {table} USING {how} ({columns}){rest}{where}"  # noqa: B023

        last = columns.split(", ")[-1]
        types = {column.name: column.type for column in shape.columns if column.tbl == table}
        # a column that the index lacks, and a column of numbers
        other_column = next(column for column in reversed(types) if column not in columns.split(", "))
        number_column = next(column for column, kind in types.items() if kind in ("bigint", "integer"))
        yield build_mutation("dropped", drop)
        yield build_mutation("renamed", f"ALTER INDEX {name} RENAME TO zz", more=frozenset({"zz"}))
        yield build_mutation("of another column", drop, create_index(other_column))
        yield build_mutation("with an extra column", drop, create_index(f"{columns}, {other_column}"))
        yield build_mutation("including a column", drop, create_index(rest=f" INCLUDE ({other_column})"))
        yield build_mutation("unique or not", drop, create_index(unique="" if unique else "UNIQUE "))
        yield build_mutation("of some rows", drop, create_index(where=f" WHERE {number_column} > 5"))
        if where:
            yield build_mutation("of all rows", drop, create_index(where=""))
            yield build_mutation(
                "of rows of another type", drop, create_index(where=where.replace("recorded", "recordedx"))
            )
            yield build_mutation("of fewer rows", drop, create_index(where=f"{where} AND {number_column} > 5"))
        yield build_mutation("descending", drop, create_index(f"{columns} DESC"))
        yield build_mutation("NULL first", drop, create_index(f"{columns} NULLS FIRST"))
        if not unique:
            yield build_mutation("by hash", drop, create_index(columns.split(", ")[0], how="hash"))
        computed = f"({last} || '')" if types[last] == "text" else f"({last} + 1)"
        yield build_mutation("computed", drop, create_index(columns.replace(last, computed)))
        for text_column in [column for column in columns.split(", ")[:1] if types[column] == "text"]:
            ordered = columns.replace(text_column, f"{text_column} text_pattern_ops")
            yield build_mutation("of another order", drop, create_index(ordered))
            collated = columns.replace(text_column, f'{text_column} COLLATE "POSIX"')
            yield build_mutation("of another collation", drop, create_index(collated))
        if unique and shape.version >= 15:
            yield build_mutation("one NULL only", drop, create_index(rest=" NULLS NOT DISTINCT"))
        for flag in ("indisvalid", "indisready", "indislive"):
            yield build_mutation(
                f"not {flag}", f"UPDATE pg_index SET {flag} = false WHERE indexrelid = '{name}'::regclass"
            )
        yield build_mutation("on another table", drop, "CREATE TABLE zt (x int)", f"CREATE INDEX {name} ON zt (x)")
        yield build_mutation("shadowed", *FOREIGN_SCHEMA_FIRST, f"CREATE TABLE zevil.{name} (x int)")
        if unique:
            yield build_mutation("duplicated", create_index().replace(name, "zz"), name="zz")
