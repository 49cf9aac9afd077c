"""What can be done to what runs in a fresh ledger in PostgreSQL: its triggers, views and functions, one by one.

And what can stand in for PostgreSQL's own functions, operators, casts, types and catalogues.
"""

from catalogue_mutations import EVIL, ROLE, TRIGGER, Mutation, Mutations, Shape
from sqlalchemy import Connection


def of_triggers(_: Connection, ledger: Shape) -> Mutations:
    for one in ledger.triggers:
        name, table, told = one.name, one.tbl, one.told
        drop = f"DROP TRIGGER {name} ON {table}"

        def mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"trigger {one.name}", how, sql, name, more)  # noqa: B023

        event = told.split()[4]
        other = "INSERT" if event != "INSERT" else "UPDATE"
        body = told.replace("BEFORE TRUNCATE", "BEFORE DELETE").replace(f" {event} ON", f" {other} ON")
        yield mutation("dropped", drop)
        yield mutation("switched off", f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield mutation("for replication only", f"ALTER TABLE {table} ENABLE REPLICA TRIGGER {name}")
        yield mutation("renamed", f"ALTER TRIGGER {name} ON {table} RENAME TO zz", more=frozenset({"zz"}))
        yield mutation("at another event", drop, body)
        yield mutation("afterwards", drop, told.replace(" BEFORE ", " AFTER "))
        scope = ("ROW", "STATEMENT") if "EACH ROW" in told else None
        if scope:
            yield mutation("once for all rows", drop, told.replace("EACH ROW", "EACH STATEMENT"))
            yield mutation("never", drop, told.replace(" EXECUTE", " WHEN (false) EXECUTE"))
            yield mutation("for some rows", drop, told.replace("EACH ROW", "EACH ROW WHEN ("
                           + ("OLD" if event == "DELETE" else "NEW") + " IS NULL)"))  # fmt: skip
        else:
            yield mutation("never", drop, told.replace(" EXECUTE", " WHEN (false) EXECUTE"))
        if event == "UPDATE":
            yield mutation("for some columns", drop, told.replace(" UPDATE ", f" UPDATE OF {ledger.tables[table][0]} "))
        yield mutation("at more events", drop, told.replace(f" {event} ON", f" {event} OR {other} ON"))
        yield mutation("with an argument", drop, told.replace("()", "('x')"))
        yield mutation("runs something else", TRIGGER, drop, told.replace(f"{one.function}()", "zz()"))
        yield mutation(
            "runs one of our name elsewhere",
            "CREATE SCHEMA zevil",
            TRIGGER.replace("zz", f"zevil.{one.function}"),
            drop,
            told.replace(f"{one.function}()", f"zevil.{one.function}()"),
        )
        if scope:
            yield mutation("waits", drop, told.replace("CREATE TRIGGER", "CREATE CONSTRAINT TRIGGER")
                           .replace(" BEFORE ", " AFTER ").replace(" FOR EACH", " DEFERRABLE FOR EACH"))  # fmt: skip
        yield mutation("duplicated", told.replace(f"TRIGGER {name}", "TRIGGER zz"), name="zz")
        yield mutation(
            "on another table", told.replace(f" ON {table}", " ON generations").replace("public.events", "generations")
            .replace("public.ledger_identity", "generations"), name=f"{name} on generations",
        )  # fmt: skip


# of each view a column of text, and how a number's column, or a text's, is computed otherwise
TEXTS = {"live_info": "head", "live_games": "game_id", "live_participants": "game_id", "events_readable": "record"}
COMPUTED = {
    "live_ladders": ("l.games,", "l.games + 1 AS games,"),
    "live_standings": ("s.games,", "s.games + 1 AS games,"),
    "live_info": ("n.generation,", "n.generation + 1 AS generation,"),
    "live_changes": ("r.place,", "r.place + 1 AS place,"),
    "live_games": ("r.participants,", "r.participants + 1 AS participants,"),
    "live_participants": ("r.number,", "r.number + 1 AS number,"),
    "events_readable": ("recorded_by,", "recorded_by || '1' AS recorded_by,"),
}


def of_views(connection: Connection, ledger: Shape) -> Mutations:
    for name, definition in ledger.views.items():
        told = definition.strip().rstrip(";")
        drop = f"DROP VIEW {name}"
        replace = f"CREATE OR REPLACE VIEW {name} AS "

        def view(how: str, *sql: str, named: str = name) -> Mutation:
            return Mutation(f"view {name}", how, sql, named)  # noqa: B023

        raising = ("CREATE FUNCTION zf() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS "
                   "$$ BEGIN RAISE 'it was run'; END $$")  # fmt: skip
        yield view("dropped", drop)
        yield view("renamed", f"ALTER VIEW {name} RENAME TO zz")
        yield view("moved", "CREATE SCHEMA zevil", f"ALTER VIEW {name} SET SCHEMA zevil")
        yield view("owner", ROLE, f"ALTER VIEW {name} OWNER TO zz_role_of_a_mutation")
        yield view("no row", f"{replace}SELECT * FROM ({told}) q WHERE false")
        yield view("one row", f"{replace}SELECT * FROM ({told}) q LIMIT 1")
        yield view("each row once", f"{replace}SELECT DISTINCT * FROM ({told}) q")
        yield view("rows twice", f"{replace}SELECT * FROM ({told}) q UNION ALL SELECT * FROM ({told}) r")
        yield view("in another order", f"{replace}SELECT * FROM ({told}) q ORDER BY 1 DESC")
        text = TEXTS.get(name, "ladder")
        columns = list(connection.exec_driver_sql(f"SELECT * FROM {name} LIMIT 0").keys())
        yield view("some rows", f"{replace}SELECT * FROM ({told}) q WHERE {text} <> ''")
        column, otherwise = COMPUTED[name]
        assert column in told
        yield view("a column computed otherwise", replace + told.replace(column, otherwise, 1))
        yield view("a function of somebody's", raising, f"{replace}SELECT * FROM ({told}) q WHERE zf()")
        yield view("a table of somebody's", "CREATE TABLE zt (x int)",
                   f"{replace}SELECT q.* FROM ({told}) q CROSS JOIN zt")  # fmt: skip
        yield view("a column more", f"{replace}SELECT *, 1 AS zz FROM ({told}) q")
        yield view("a column renamed", f"ALTER TABLE {name} RENAME {text} TO zz")
        names = ", ".join(f"{one}::varchar AS {one}" if one == text else one for one in columns)
        yield view("a column of another type", drop, f"CREATE VIEW {name} AS SELECT {names} FROM ({told}) q")
        yield view("a default", f"ALTER VIEW {name} ALTER {text} SET DEFAULT 'x'")
        yield view("a barrier", f"ALTER VIEW {name} SET (security_barrier = true)")
        yield view("no barrier", f"ALTER VIEW {name} SET (security_barrier = false)")
        if ledger.version >= 15:
            yield view("as who asks", f"ALTER VIEW {name} SET (security_invoker = true)")
        if name == "events_readable":
            yield view("a check", f"ALTER VIEW {name} SET (check_option = local)")
        yield view("a table instead", f"CREATE TABLE zz AS TABLE {name}", drop, f"ALTER TABLE zz RENAME TO {name}")
        yield view("a materialized view instead", drop, f"CREATE MATERIALIZED VIEW {name} AS {told}")
        yield view("switched off", f"UPDATE pg_rewrite SET ev_enabled = 'D' WHERE ev_class = '{name}'::regclass")
        yield view("a rule", f"CREATE RULE zz AS ON INSERT TO {name} DO INSTEAD NOTHING", named="zz")
        yield view("a trigger", TRIGGER, f"CREATE TRIGGER zz INSTEAD OF INSERT ON {name} FOR EACH ROW "
                   "EXECUTE FUNCTION zz()", named="zz")  # fmt: skip
        yield view("shadowed by a view", *EVIL, f"CREATE VIEW zevil.{name} AS TABLE public.{name}")
        yield view("shadowed by a table", *EVIL, f"CREATE TABLE zevil.{name} AS TABLE public.{name}")
        yield view("shadowed by a temporary view", f"CREATE TEMP VIEW {name} AS TABLE public.{name}")


def of_functions(_: Connection, ledger: Shape) -> Mutations:
    for one in ledger.functions:
        name = one.name
        # what runs it is no longer as it was, either
        triggers = frozenset(trigger.name for trigger in ledger.triggers if trigger.function == name)

        def mutation(how: str, *sql: str, name: str = name, more: frozenset[str] = frozenset()) -> Mutation:
            return Mutation(f"function {one.name}", how, sql, name, more)  # noqa: B023

        def evil(told: str) -> str:
            return told.replace("FUNCTION public.", "FUNCTION zevil.", 1)

        alter = f"ALTER FUNCTION {one.signature}"
        yield mutation("dropped", f"DROP FUNCTION {one.signature} CASCADE", more=triggers)
        yield mutation("renamed", f"{alter} RENAME TO zz", more=triggers)
        yield mutation("moved out of the path", "CREATE SCHEMA zevil", f"{alter} SET SCHEMA zevil", more=triggers)
        yield mutation("moved within the path", *EVIL, f"{alter} SET SCHEMA zevil", more=triggers)
        yield mutation("owner", ROLE, f"{alter} OWNER TO zz_role_of_a_mutation")
        yield mutation("a body with a space more", one.told.replace("BEGIN", "BEGIN ", 1))
        yield mutation(
            "a body that begins as ours", one.told.replace(one.body, one.body.rpartition("END")[0] + "NULL; END ")
        )
        yield mutation("another body", one.told.replace(one.body, " BEGIN RETURN; END " if "TABLE" in one.result
                                                        else " BEGIN RETURN NEW; END "))  # fmt: skip
        if one.result == "trigger":
            yield mutation("another language", f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE internal "
                           "AS 'suppress_redundant_updates_trigger'")  # fmt: skip
        else:
            yield mutation("another language", f"CREATE OR REPLACE FUNCTION {name}({one.arguments}) RETURNS "
                           f"{one.result} LANGUAGE sql AS 'SELECT 1::bigint, NULL::bytea'")  # fmt: skip
            again = f"CREATE FUNCTION {name}({one.arguments}) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"
            yield mutation("another result", f"DROP FUNCTION {one.signature}", again)
            yield mutation("rows", f"{alter} ROWS 7")
            yield mutation("a default", one.told.replace("head_seen bigint", "head_seen bigint DEFAULT 0"))
            yield mutation("an argument of another name", f"DROP FUNCTION {one.signature}",
                           one.told.replace("new_by text", "newby text"))  # fmt: skip
            yield mutation("an argument of another type", f"DROP FUNCTION {one.signature}",
                           one.told.replace("new_by text", "new_by varchar"))  # fmt: skip
        for option in ("SECURITY DEFINER", "IMMUTABLE", "STABLE", "STRICT", "LEAKPROOF", "PARALLEL SAFE", "COST 7",
                       "SET search_path = zevil", "SET synchronous_commit = off", "SET enable_seqscan = on",
                       "SET session_replication_role = replica"):  # fmt: skip
            yield mutation(option.lower(), f"{alter} {option}")
        if one.settings:
            yield mutation("without its settings", f"{alter} RESET ALL")
            for setting in one.settings:
                yield mutation(f"without {setting}", f"{alter} RESET {setting.partition('=')[0]}")
        overload = "CREATE FUNCTION {}{}(zz inet) RETURNS int LANGUAGE sql AS 'SELECT 1'"
        yield mutation("overloaded", overload.format("", name))
        yield mutation("overloaded within the path", *EVIL, overload.format("zevil.", name))
        yield mutation("shadowed", *EVIL, evil(one.told))
        yield mutation("shadowed by a procedure", f"CREATE PROCEDURE {name}(zz inet) LANGUAGE sql AS 'SELECT 1'")
        yield mutation("shadowed by an aggregate", f"CREATE AGGREGATE {name}(int) (SFUNC = int4pl, STYPE = int)")


def standing_in(_: Connection, __: Shape) -> Mutations:
    """What stands in for PostgreSQL's own; each is an object too many."""

    def function(schema: str, head: str, result: str) -> str:
        return f"CREATE FUNCTION {schema}.{head} RETURNS {result} IMMUTABLE LANGUAGE sql AS 'SELECT NULL::{result}'"

    def mutation(how: str, *sql: str, name: str) -> Mutation:
        return Mutation(f"what stands {' '.join(how.split()[-2:])}", how, sql, name)

    first = (*EVIL[:3], "SELECT set_config('search_path', 'zevil, pg_catalog, public, pg_temp', true)")
    for schema, before in (("public", ()), ("zevil", EVIL), ("zevil", first)):
        where = f"in {schema}{' before all' if before is first else ''}"
        for head, result in (("sha256(bytea)", "bytea"), ("length(bytea)", "integer"), ("length(text)", "integer"),
                             ("max(bigint)", "bigint"), ("convert_to(text, text)", "bytea"),
                             ("format(text, inet)", "text"),
                             ("current_setting(text)", "text"), ("to_regclass(text)", "regclass"),
                             ("repeat(text, bigint)", "text"), ("count(text)", "bigint")):  # fmt: skip
            told = f"{schema}.{head}".replace(", ", ",")
            yield mutation(f"{head} {where}", *before, function(schema, head, result), name=told)
        for sign, kind in (("=", "text"), ("=", "bytea"), ("<>", "bytea"), ("=", "bigint"), (">", "bigint"),
                           ("||", "bytea"), ("+", "bigint"), ("*", "bigint"), ("<", "integer")):  # fmt: skip
            yield mutation(
                f"{sign} of {kind} {where}",
                *before,
                f"CREATE FUNCTION {schema}.zf({kind}, {kind}) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
                f"CREATE OPERATOR {schema}.{sign} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = {schema}.zf)",
                name=f"{schema}.{sign}({kind},{kind})",
            )
        yield mutation(
            f"|| of text and bigint {where}",
            *before,
            f"CREATE FUNCTION {schema}.zf(text, bigint) RETURNS text LANGUAGE sql AS 'SELECT $1'",
            f"CREATE OPERATOR {schema}.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = {schema}.zf)",
            name=f"{schema}.||(text,bigint)",
        )
    for kind, other in (("bigint", "text"), ("text", "bytea"), ("bytea", "text"), ("boolean", "bytea")):
        yield mutation(
            f"a cast from {kind} to {other}",
            f"CREATE FUNCTION zf({kind}) RETURNS {other} IMMUTABLE LANGUAGE sql AS 'SELECT NULL::{other}'",
            f"CREATE CAST ({kind} AS {other}) WITH FUNCTION zf({kind}) AS IMPLICIT",
            name=f"from {kind} to {other}",
        )
    for name in ("pg_class", "pg_trigger", "pg_proc", "pg_constraint", "pg_depend", "pg_attribute", "pg_inherits"):
        made = f"CREATE TABLE zevil.{name} AS SELECT 1 AS oid"
        yield mutation(f"{name} before all", *first, made, name=f"zevil.{name}")
    for name in ("text", "bytea", "int8"):
        yield mutation(
            f"the type {name} before all",
            *first,
            f"CREATE DOMAIN zevil.{name} AS pg_catalog.int4",
            name=f"zevil.{name}",
        )
