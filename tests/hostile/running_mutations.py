"""Mutations of the triggers, views and functions of a fresh ledger in PostgreSQL.

Further mutations shadow PostgreSQL's own functions, operators, casts, types and catalogues.
"""

from catalogue_mutations import CREATE_ROLE, CREATE_TRIGGER_FUNCTION, FOREIGN_SCHEMA_FIRST, Mutation, Mutations, Shape
from sqlalchemy import Connection


def mutate_triggers(_: Connection, shape: Shape) -> Mutations:
    for trigger in shape.triggers:
        name, table, definition = trigger.name, trigger.tbl, trigger.definition
        drop = f"DROP TRIGGER {name} ON {table}"

        def build_mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"trigger {trigger.name}", how, sql, name, more)  # noqa: B023

        event = definition.split()[4]
        other_event = "INSERT" if event != "INSERT" else "UPDATE"
        on_other_event = definition.replace("BEFORE TRUNCATE", "BEFORE DELETE").replace(
            f" {event} ON", f" {other_event} ON"
        )
        yield build_mutation("dropped", drop)
        yield build_mutation("switched off", f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield build_mutation("for replication only", f"ALTER TABLE {table} ENABLE REPLICA TRIGGER {name}")
        yield build_mutation("renamed", f"ALTER TRIGGER {name} ON {table} RENAME TO zz", more=frozenset({"zz"}))
        yield build_mutation("at another event", drop, on_other_event)
        yield build_mutation("afterwards", drop, definition.replace(" BEFORE ", " AFTER "))
        is_per_row = "EACH ROW" in definition
        if is_per_row:
            yield build_mutation("once for all rows", drop, definition.replace("EACH ROW", "EACH STATEMENT"))
            yield build_mutation("never", drop, definition.replace(" EXECUTE", " WHEN (false) EXECUTE"))
            yield build_mutation(
                "for some rows",
                drop,
                definition.replace(
                    "EACH ROW", "EACH ROW WHEN (" + ("OLD" if event == "DELETE" else "NEW") + " IS NULL)"
                ),
            )
        else:
            yield build_mutation("never", drop, definition.replace(" EXECUTE", " WHEN (false) EXECUTE"))
        if event == "UPDATE":
            yield build_mutation(
                "for some columns", drop, definition.replace(" UPDATE ", f" UPDATE OF {shape.tables[table][0]} ")
            )
        yield build_mutation(
            "at more events", drop, definition.replace(f" {event} ON", f" {event} OR {other_event} ON")
        )
        yield build_mutation("with an argument", drop, definition.replace("()", "('x')"))
        yield build_mutation(
            "runs something else", CREATE_TRIGGER_FUNCTION, drop, definition.replace(f"{trigger.function}()", "zz()")
        )
        yield build_mutation(
            "runs a function of the same name elsewhere",
            "CREATE SCHEMA zevil",
            CREATE_TRIGGER_FUNCTION.replace("zz", f"zevil.{trigger.function}"),
            drop,
            definition.replace(f"{trigger.function}()", f"zevil.{trigger.function}()"),
        )
        if is_per_row:
            yield build_mutation(
                "deferrable",
                drop,
                definition.replace("CREATE TRIGGER", "CREATE CONSTRAINT TRIGGER")
                .replace(" BEFORE ", " AFTER ")
                .replace(" FOR EACH", " DEFERRABLE FOR EACH"),
            )
        yield build_mutation("duplicated", definition.replace(f"TRIGGER {name}", "TRIGGER zz"), name="zz")
        yield build_mutation(
            "on another table",
            definition.replace(f" ON {table}", " ON generations")
            .replace("public.events", "generations")
            .replace("public.ledger_identity", "generations"),
            name=f"{name} on generations",
        )


# by view: a text column, and a column with a different expression for it
TEXT_COLUMNS = {
    "live_info": "head",
    "live_games": "game_id",
    "live_participants": "game_id",
    "events_readable": "record",
}
CHANGED_COLUMNS = {
    "live_ladders": ("l.games,", "l.games + 1 AS games,"),
    "live_standings": ("s.games,", "s.games + 1 AS games,"),
    "live_info": ("n.generation,", "n.generation + 1 AS generation,"),
    "live_changes": ("r.place,", "r.place + 1 AS place,"),
    "live_games": ("r.participants,", "r.participants + 1 AS participants,"),
    "live_participants": ("r.number,", "r.number + 1 AS number,"),
    "events_readable": ("recorded_by,", "recorded_by || '1' AS recorded_by,"),
}


def mutate_views(connection: Connection, shape: Shape) -> Mutations:
    for name, definition in shape.views.items():
        query = definition.strip().rstrip(";")
        drop = f"DROP VIEW {name}"
        replace = f"CREATE OR REPLACE VIEW {name} AS "

        def build_mutation(how: str, *sql: str, reported_name: str = name) -> Mutation:
            return Mutation(f"view {name}", how, sql, reported_name)  # noqa: B023

        raising_function = (
            "CREATE FUNCTION zf() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE 'it was run'; END $$"
        )
        yield build_mutation("dropped", drop)
        yield build_mutation("renamed", f"ALTER VIEW {name} RENAME TO zz")
        yield build_mutation("moved", "CREATE SCHEMA zevil", f"ALTER VIEW {name} SET SCHEMA zevil")
        yield build_mutation("owner", CREATE_ROLE, f"ALTER VIEW {name} OWNER TO zz_role_of_a_mutation")
        yield build_mutation("no row", f"{replace}SELECT * FROM ({query}) q WHERE false")
        yield build_mutation("one row", f"{replace}SELECT * FROM ({query}) q LIMIT 1")
        yield build_mutation("each row once", f"{replace}SELECT DISTINCT * FROM ({query}) q")
        yield build_mutation("rows twice", f"{replace}SELECT * FROM ({query}) q UNION ALL SELECT * FROM ({query}) r")
        yield build_mutation("in another order", f"{replace}SELECT * FROM ({query}) q ORDER BY 1 DESC")
        text = TEXT_COLUMNS.get(name, "ladder")
        columns = list(connection.exec_driver_sql(f"SELECT * FROM {name} LIMIT 0").keys())
        yield build_mutation("some rows", f"{replace}SELECT * FROM ({query}) q WHERE {text} <> ''")
        column, changed = CHANGED_COLUMNS[name]
        assert column in query
        yield build_mutation("a column computed otherwise", replace + query.replace(column, changed, 1))
        yield build_mutation("a foreign function", raising_function, f"{replace}SELECT * FROM ({query}) q WHERE zf()")
        yield build_mutation(
            "an unrelated table", "CREATE TABLE zt (x int)", f"{replace}SELECT q.* FROM ({query}) q CROSS JOIN zt"
        )
        yield build_mutation("an extra column", f"{replace}SELECT *, 1 AS zz FROM ({query}) q")
        yield build_mutation("a column renamed", f"ALTER TABLE {name} RENAME {text} TO zz")
        names = ", ".join(
            f"{column_name}::varchar AS {column_name}" if column_name == text else column_name
            for column_name in columns
        )
        yield build_mutation("a column of another type", drop, f"CREATE VIEW {name} AS SELECT {names} FROM ({query}) q")
        yield build_mutation("a default", f"ALTER VIEW {name} ALTER {text} SET DEFAULT 'x'")
        yield build_mutation("a barrier", f"ALTER VIEW {name} SET (security_barrier = true)")
        yield build_mutation("no barrier", f"ALTER VIEW {name} SET (security_barrier = false)")
        if shape.version >= 15:
            yield build_mutation("with the reader's rights", f"ALTER VIEW {name} SET (security_invoker = true)")
        if name == "events_readable":
            yield build_mutation("a check", f"ALTER VIEW {name} SET (check_option = local)")
        yield build_mutation(
            "a table instead", f"CREATE TABLE zz AS TABLE {name}", drop, f"ALTER TABLE zz RENAME TO {name}"
        )
        yield build_mutation("a materialized view instead", drop, f"CREATE MATERIALIZED VIEW {name} AS {query}")
        yield build_mutation(
            "switched off", f"UPDATE pg_rewrite SET ev_enabled = 'D' WHERE ev_class = '{name}'::regclass"
        )
        yield build_mutation("a rule", f"CREATE RULE zz AS ON INSERT TO {name} DO INSTEAD NOTHING", reported_name="zz")
        yield build_mutation(
            "a trigger",
            CREATE_TRIGGER_FUNCTION,
            f"CREATE TRIGGER zz INSTEAD OF INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION zz()",
            reported_name="zz",
        )
        yield build_mutation(
            "shadowed by a view", *FOREIGN_SCHEMA_FIRST, f"CREATE VIEW zevil.{name} AS TABLE public.{name}"
        )
        yield build_mutation(
            "shadowed by a table", *FOREIGN_SCHEMA_FIRST, f"CREATE TABLE zevil.{name} AS TABLE public.{name}"
        )
        yield build_mutation("shadowed by a temporary view", f"CREATE TEMP VIEW {name} AS TABLE public.{name}")


def mutate_functions(_: Connection, shape: Shape) -> Mutations:
    for function in shape.functions:
        name = function.name
        # verify also reports the triggers that run the function
        triggers = frozenset(trigger.name for trigger in shape.triggers if trigger.function == name)

        def build_mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"function {function.name}", how, sql, name, more)  # noqa: B023

        def create_shadow(definition: str) -> str:
            return definition.replace("FUNCTION public.", "FUNCTION zevil.", 1)

        alter = f"ALTER FUNCTION {function.signature}"
        yield build_mutation("dropped", f"DROP FUNCTION {function.signature} CASCADE", more=triggers)
        yield build_mutation("renamed", f"{alter} RENAME TO zz", more=triggers)
        yield build_mutation("moved out of the path", "CREATE SCHEMA zevil", f"{alter} SET SCHEMA zevil", more=triggers)
        yield build_mutation("moved within the path", *FOREIGN_SCHEMA_FIRST, f"{alter} SET SCHEMA zevil", more=triggers)
        yield build_mutation("owner", CREATE_ROLE, f"{alter} OWNER TO zz_role_of_a_mutation")
        yield build_mutation("a body with an extra space", function.definition.replace("BEGIN", "BEGIN ", 1))
        yield build_mutation(
            "a body that begins as ours",
            function.definition.replace(function.body, function.body.rpartition("END")[0] + "NULL; END "),
        )
        yield build_mutation(
            "another body",
            function.definition.replace(
                function.body, " BEGIN RETURN; END " if "TABLE" in function.result else " BEGIN RETURN NEW; END "
            ),
        )
        if function.result == "trigger":
            yield build_mutation(
                "another language",
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE internal "
                "AS 'suppress_redundant_updates_trigger'",
            )
        else:
            yield build_mutation(
                "another language",
                f"CREATE OR REPLACE FUNCTION {name}({function.arguments}) RETURNS "
                f"{function.result} LANGUAGE sql AS 'SELECT 1::bigint, NULL::bytea'",
            )
            again = (
                f"CREATE FUNCTION {name}({function.arguments}) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"
            )
            yield build_mutation("another result", f"DROP FUNCTION {function.signature}", again)
            yield build_mutation("rows", f"{alter} ROWS 7")
            yield build_mutation(
                "a default", function.definition.replace("head_seen bigint", "head_seen bigint DEFAULT 0")
            )
            yield build_mutation(
                "an argument of another name",
                f"DROP FUNCTION {function.signature}",
                function.definition.replace("new_by text", "newby text"),
            )
            yield build_mutation(
                "an argument of another type",
                f"DROP FUNCTION {function.signature}",
                function.definition.replace("new_by text", "new_by varchar"),
            )
        for option in ("SECURITY DEFINER", "IMMUTABLE", "STABLE", "STRICT", "LEAKPROOF", "PARALLEL SAFE", "COST 7",
                       "SET search_path = zevil", "SET synchronous_commit = off", "SET enable_seqscan = on",
                       "SET session_replication_role = replica"):  # fmt: skip
            yield build_mutation(option.lower(), f"{alter} {option}")
        if function.settings:
            yield build_mutation("without its settings", f"{alter} RESET ALL")
            for setting in function.settings:
                yield build_mutation(f"without {setting}", f"{alter} RESET {setting.partition('=')[0]}")
        overload = "CREATE FUNCTION {}{}(zz inet) RETURNS int LANGUAGE sql AS 'SELECT 1'"
        yield build_mutation("overloaded", overload.format("", name))
        yield build_mutation("overloaded within the path", *FOREIGN_SCHEMA_FIRST, overload.format("zevil.", name))
        yield build_mutation("shadowed", *FOREIGN_SCHEMA_FIRST, create_shadow(function.definition))
        yield build_mutation("shadowed by a procedure", f"CREATE PROCEDURE {name}(zz inet) LANGUAGE sql AS 'SELECT 1'")
        yield build_mutation("shadowed by an aggregate", f"CREATE AGGREGATE {name}(int) (SFUNC = int4pl, STYPE = int)")


def shadow_builtins(_: Connection, __: Shape) -> Mutations:
    """Yield objects that shadow PostgreSQL's own; verify reports each of them as one object too many."""

    def create_function(schema: str, head: str, result: str) -> str:
        return f"CREATE FUNCTION {schema}.{head} RETURNS {result} IMMUTABLE LANGUAGE sql AS 'SELECT NULL::{result}'"

    def build_mutation(how: str, *sql: str, name: str) -> Mutation:
        return Mutation(f"shadows {' '.join(how.split()[-2:])}", how, sql, name)

    before_catalogue = (
        *FOREIGN_SCHEMA_FIRST[:3],
        "SELECT set_config('search_path', 'zevil, pg_catalog, public, pg_temp', true)",
    )
    for schema, before in (("public", ()), ("zevil", FOREIGN_SCHEMA_FIRST), ("zevil", before_catalogue)):
        where = f"in {schema}{' before all' if before is before_catalogue else ''}"
        for head, result in (
            ("sha256(bytea)", "bytea"),
            ("length(bytea)", "integer"),
            ("length(text)", "integer"),
            ("max(bigint)", "bigint"),
            ("convert_to(text, text)", "bytea"),
            ("format(text, inet)", "text"),
            ("current_setting(text)", "text"),
            ("to_regclass(text)", "regclass"),
            ("repeat(text, bigint)", "text"),
            ("count(text)", "bigint"),
        ):
            signature = f"{schema}.{head}".replace(", ", ",")
            yield build_mutation(f"{head} {where}", *before, create_function(schema, head, result), name=signature)
        for sign, kind in (("=", "text"), ("=", "bytea"), ("<>", "bytea"), ("=", "bigint"), (">", "bigint"),
                           ("||", "bytea"), ("+", "bigint"), ("*", "bigint"), ("<", "integer")):  # fmt: skip
            yield build_mutation(
                f"{sign} of {kind} {where}",
                *before,
                f"CREATE FUNCTION {schema}.zf({kind}, {kind}) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
                f"CREATE OPERATOR {schema}.{sign} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = {schema}.zf)",
                name=f"{schema}.{sign}({kind},{kind})",
            )
        yield build_mutation(
            f"|| of text and bigint {where}",
            *before,
            f"CREATE FUNCTION {schema}.zf(text, bigint) RETURNS text LANGUAGE sql AS 'SELECT $1'",
            f"CREATE OPERATOR {schema}.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = {schema}.zf)",
            name=f"{schema}.||(text,bigint)",
        )
    for kind, target in (("bigint", "text"), ("text", "bytea"), ("bytea", "text"), ("boolean", "bytea")):
        yield build_mutation(
            f"a cast from {kind} to {target}",
            f"CREATE FUNCTION zf({kind}) RETURNS {target} IMMUTABLE LANGUAGE sql AS 'SELECT NULL::{target}'",
            f"CREATE CAST ({kind} AS {target}) WITH FUNCTION zf({kind}) AS IMPLICIT",
            name=f"from {kind} to {target}",
        )
    for name in ("pg_class", "pg_trigger", "pg_proc", "pg_constraint", "pg_depend", "pg_attribute", "pg_inherits"):
        create_table = f"CREATE TABLE zevil.{name} AS SELECT 1 AS oid"
        yield build_mutation(f"{name} before all", *before_catalogue, create_table, name=f"zevil.{name}")
    for name in ("text", "bytea", "int8"):
        yield build_mutation(
            f"the type {name} before all",
            *before_catalogue,
            f"CREATE DOMAIN zevil.{name} AS pg_catalog.int4",
            name=f"zevil.{name}",
        )
