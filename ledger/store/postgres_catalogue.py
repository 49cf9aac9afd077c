"""Compare the catalogue of a PostgreSQL database with the objects that this program creates ("our" objects).

Each object is described in a form that PostgreSQL 13 to 18 all produce. The comparison only reads the catalogue, so the
rights of `ratings_reader` are enough. It covers the objects on our tables, objects with our names anywhere in the
search path, and everything that can run on our tables. An operator may add other tables, views, indexes of plain
columns, extensions and grants; the comparison ignores them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from sqlalchemy import (
    CheckConstraint,
    Connection,
    Constraint,
    ForeignKeyConstraint,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import Column, DefaultClause, Index

from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.catalogue import Objects, load_generated_objects, raise_on_difference
from ratings_ledger.ledger.store.guards import (
    POSTGRES_APPEND,
    POSTGRES_APPEND_LOCK,
    POSTGRES_FUNCTIONS,
    POSTGRES_TRIGGERS,
)
from ratings_ledger.ledger.store.schema import metadata

# the table in which alembic keeps the schema's revision
_REVISION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_FUNCTIONS = POSTGRES_FUNCTIONS | POSTGRES_APPEND
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
# SQL for whether an extension created the object {0} of the catalogue's table {1}
_FROM_EXTENSION = (
    "EXISTS (SELECT FROM pg_depend d WHERE d.objid = {0}.oid AND d.classid = '{1}'::regclass AND d.deptype = 'e')"
)
# the rows of these tables never change, so the triggers that another table's foreign key puts on them never fire
_IMMUTABLE = sorted({name.partition("_refuse_")[0] for name in POSTGRES_TRIGGERS if "_refuse_" in name})

_NOT_OURS, _DIFFERS = "was not created by this program", "differs from this program's definition"

# a message for each object that differs, and None for each that matches
Differences = Iterator[str | None]


# the objects that can run code on, reject or hide rows of our tables: (kind, table, name, definition). Indexes of plain
# columns are left out, because an operator may add them; so are the triggers that other tables' foreign keys put on
# immutable tables, because they never fire
_OBJECTS_QUERY = (
    """WITH ours AS MATERIALIZED (SELECT c.* FROM unnest(CAST(%s AS text[])) n JOIN pg_catalog.pg_class c
    ON c.oid = pg_catalog.to_regclass(n)),
  home AS MATERIALIZED (SELECT relnamespace AS space, relowner AS owner FROM ours WHERE relname = 'events')
SELECT 'table', relname::text, relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity,
  relforcerowsecurity, relam, reloftype, relowner = owner, relnamespace = space) FROM ours, home
UNION ALL SELECT 'row type', relname, relname, (SELECT string_agg(concat_ws(' ', attname, atttypid, atttypmod,
  attnotnull, nullif(attgenerated, ''), nullif(attidentity, ''), attcollation,
  (SELECT 'DEFAULT ' || pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)), ', '
  ORDER BY attnum) FROM pg_attribute WHERE attrelid = ours.oid AND attnum > 0 AND NOT attisdropped) FROM ours
UNION ALL SELECT 'trigger', ours.relname, CASE WHEN tgisinternal THEN concat_ws(' for ', p.proname, r.relname)
  ELSE tgname END, concat_ws(' ', p.proname, pronamespace = space, tgtype, tgenabled IN ('O', 'A'), tgattr, tgnargs,
  tgqual, tgdeferrable, tginitdeferred, tgoldtable, tgnewtable, tgconstraint = 0)
  FROM ours CROSS JOIN home JOIN pg_trigger g ON g.tgrelid = ours.oid JOIN pg_proc p ON p.oid = tgfoid
  LEFT JOIN pg_class r ON r.oid = tgconstrrelid
  WHERE NOT (tgisinternal AND ours.relname = ANY(CAST(%s AS text[])) AND tgconstrrelid <> ours.oid)
UNION ALL SELECT 'rule', relname, rulename, '' FROM ours JOIN pg_rewrite ON ev_class = ours.oid
UNION ALL SELECT 'policy', relname, polname, '' FROM ours JOIN pg_policy ON polrelid = ours.oid
UNION ALL SELECT 'inheritance', relname,
  (CASE ours.oid WHEN inhrelid THEN inhparent ELSE inhrelid END)::regclass::text, ''
  FROM ours JOIN pg_inherits ON ours.oid IN (inhrelid, inhparent)
UNION ALL SELECT 'constraint', ours.relname, conname, concat_ws(' ', contype, condeferrable, condeferred, convalidated,
  conkey, confkey, confupdtype, confdeltype, confmatchtype, r.relname, pg_get_expr(conbin, conrelid))
  FROM ours JOIN pg_constraint ON conrelid = ours.oid LEFT JOIN ours r ON r.oid = confrelid WHERE contype <> 'n'
UNION ALL SELECT 'index', ours.relname, c.relname, concat_ws(' ', indisunique, indisprimary, indisexclusion,
  indimmediate, indisvalid, indisready, indislive, indkey, indclass, indcollation, indoption, indexprs IS NULL,
  pg_get_expr(indpred, indrelid), coalesce(to_jsonb(i) ->> 'indnullsnotdistinct' = 'true', false))
  FROM ours JOIN pg_index i ON indrelid = ours.oid JOIN pg_class c ON c.oid = indexrelid
  WHERE indisunique OR indisexclusion OR indexprs IS NOT NULL OR indpred IS NOT NULL
  OR EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY(indclass)
    AND opcnamespace <> 'pg_catalog'::regnamespace AND NOT """
    + _FROM_EXTENSION.format("o", "pg_opclass")
    + """)
UNION ALL SELECT 'function', '', concat(CASE WHEN pronamespace <> space THEN pronamespace::regnamespace || '.' END,
  proname, '(', oidvectortypes(proargtypes), ')'), concat_ws(' ', proowner = owner, lanname, prokind, prosecdef,
  proleakproof, proisstrict, proretset, provolatile, proparallel, procost, prorows, prorettype, proallargtypes,
  proargmodes, proargnames, proargdefaults IS NULL, proconfig, encode(sha256(convert_to(prosrc, 'UTF8')), 'hex'))
  FROM home CROSS JOIN pg_proc p JOIN pg_language l ON l.oid = prolang
  WHERE proname = ANY(CAST(%s AS text[])) AND pronamespace::regnamespace::text = ANY(
    SELECT quote_ident(s) FROM unnest(current_schemas(true)) s)"""
)


def read_objects(cursor: Any, tables: Sequence[str]) -> Objects:
    """Read the objects that can run code on, reject or hide rows of the tables with these names."""
    rows = cursor.execute(_OBJECTS_QUERY, (list(tables), _IMMUTABLE, list(_FUNCTIONS))).fetchall()
    return {(kind, table, name): definition for kind, table, name, definition in rows}


def _find_unexpected_objects(cursor: Any) -> Differences:
    """Yield a message for each object that differs and can run code on, reject or hide rows of our tables."""
    expected = load_generated_objects("postgresql")
    actual = read_objects(cursor, [table for kind, table, _ in expected if kind == "table"])
    for kind, table, name in sorted(key for key, _ in actual.items() ^ expected.items()):
        title = f"the {kind} {name}" + (f" on {table}" if table not in ("", name) else "")
        if (kind, table, name) not in expected:
            yield f"{title} {_NOT_OURS}"
        else:
            yield f"{title} {_DIFFERS if (kind, table, name) in actual else 'is missing'}"


def refuse_unexpected_objects(cursor: Any) -> None:
    """Raise `StoreDamaged` if an unexpected object can run code on, reject or hide rows of this program's tables."""
    raise_on_difference(cursor, _find_unexpected_objects(cursor))


# SQL for a value that changes whenever an object that runs during an append changes; `xmin` is the id of the
# transaction that wrote a row of the catalogue
_APPEND_STATE = """ARRAY(SELECT xmin FROM pg_catalog.pg_class WHERE oid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_attribute WHERE attrelid = {events} AND attnum > 0
  UNION ALL SELECT xmin FROM pg_catalog.pg_index WHERE indrelid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_trigger WHERE tgrelid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_proc WHERE oid IN ({functions}))::text"""
# the settings make the server plan the statements once, with indexes: scans of the catalogue's tables would take longer
# than the append
_PREPARE_APPEND = """SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; DEALLOCATE ALL;
PREPARE ratings_append_lock AS SELECT pg_catalog.pg_advisory_xact_lock({lock});
PREPARE ratings_append_one (text, text, smallint, text, bigint, bigint, text, text, text, bigint)
AS SELECT * FROM {schema}.events_append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
WHERE pg_catalog.to_regclass('events') = {events} AND {state} = '{value}';
EXPLAIN EXECUTE ratings_append_one ({nothing}); RESET plan_cache_mode; RESET enable_seqscan"""


def prepare_append(connection: Any) -> bool:
    """Prepare the statements that append one event on a driver's connection; return False for unexpected objects.

    Once the catalogue changes, the prepared statements append nothing.
    """
    row = connection.execute(
        "SELECT c.oid, relnamespace::regnamespace::text, (SELECT string_agg(p.oid::text, ',') FROM pg_proc p "
        "WHERE pronamespace = relnamespace AND proname = ANY(%s)) FROM pg_class c WHERE c.oid = 'events'::regclass",
        (list(_FUNCTIONS),),
    ).fetchone()
    events_oid, schema, function_oids = row
    if function_oids is None:
        return False
    state_sql = _APPEND_STATE.format(events=events_oid, functions=function_oids)
    # read the state before the comparison, so that an append notices a change during the comparison
    state = connection.execute(f"SELECT {state_sql}").fetchone()[0]
    if any(_find_unexpected_objects(connection)):
        return False
    statement = _PREPARE_APPEND.format(
        schema=schema,
        events=events_oid,
        state=state_sql,
        value=state,
        lock=POSTGRES_APPEND_LOCK,
        nothing=", ".join(["NULL"] * 10),
    )
    connection.execute(statement)
    return True


class _Location(NamedTuple):
    """The location of a ledger in its database; all numbers are oids.

    path            the schemas of the effective search path
    schema          the ledger's schema
    prefix          the quoted name of that schema with a period
    tables, views   our tables and views in that schema, by name
    owner           the role that owns most of our tables, views and functions in that schema
    """

    path: list[int]
    schema: int
    prefix: str
    tables: dict[str, int]
    views: dict[str, int]
    owner: int


def find_object_differences(connection: Connection, views: dict[str, str]) -> Differences:
    """Yield a message for each object that differs, and None for each object that matches.

    Guards are left out, because `find_altered_guards` checks them.
    """
    with use_catalogue_path(connection) as path:
        location = _find_ledger(connection, path, views)
        expected_columns, actual_columns = _describe_columns(location), _read_columns(connection, location)
        differences = [
            *_compare_relations(connection, location, views),
            *_compare_descriptions("column", expected_columns, actual_columns),
            *_compare_constraints(connection, location),
            *_compare_indexes(connection, location),
            *_find_added_objects(connection, location),
        ]
    yield from differences
    # a view's query can only be planned on tables with the right columns
    has_columns = expected_columns.items() <= actual_columns.items()
    can_plan = has_columns and len(location.tables) == len(_list_own_tables())
    # these queries fail if a policy hides rows; by then the differences above, such as the policy, have been yielded
    with use_catalogue_path(connection):
        yield from list(_compare_views(connection, location, views, can_plan))


def find_altered_guards(connection: Connection) -> list[str]:
    """Return the names of the missing or altered guards, sorted.

    A trigger is altered if it is disabled or its definition differs, and a function if its definition, schema or owner
    differs.
    """
    with use_catalogue_path(connection) as path:
        location = _find_ledger(connection, path, {})
        functions = _compare_functions(connection, location)
        altered = {name for name, is_same in functions.items() if not is_same}
        triggers = {
            (table, name): " ".join(definition.replace(location.prefix, "").split())
            for table, name, definition in connection.execute(
                text(
                    "SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c "
                    "ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') "
                    "AND t.tgrelid = ANY(:tables)"
                ),
                {"tables": list(location.tables.values())},
            )
        }
    altered |= {
        name
        for name, sql in POSTGRES_TRIGGERS.items()
        if triggers.get((_find_table(sql), name)) != " ".join(sql.split())
    }
    return sorted(altered)


def _find_table(trigger: str) -> str:
    """Return the name of the table in a trigger's definition."""
    return trigger.partition(" ON ")[2].split()[0]


@contextmanager
def use_catalogue_path(connection: Connection) -> Iterator[list[int]]:
    """Restrict the search path to pg_catalog while the block runs; provide the oids of the original path's schemas.

    Then no object can shadow a built-in one, and the server qualifies the names from all other schemas.
    """
    original_path, path = connection.exec_driver_sql(
        "SELECT pg_catalog.current_setting('search_path'), pg_catalog.current_schemas(true)"
    ).one()
    setting = text("SELECT pg_catalog.set_config('search_path', :path, false)")
    connection.execute(setting, {"path": "pg_catalog, pg_temp"})
    try:
        oids: dict[str, int] = dict(connection.exec_driver_sql("SELECT nspname, oid FROM pg_namespace").all())
        yield [oids[name] for name in path]
    finally:
        # an error here must not replace an earlier one
        with suppress(DBAPIError):
            connection.execute(setting, {"path": original_path})


def _find_ledger(connection: Connection, path: list[int], views: dict[str, str]) -> _Location:
    """Locate the ledger: choose the schema in the path that holds the most of our tables and views."""
    kinds = {**dict.fromkeys(_list_own_tables(), "r"), **dict.fromkeys(views, "v")}
    query = text(
        "SELECT relnamespace, relname, oid, relkind, relowner FROM pg_class "
        "WHERE relnamespace = ANY(:path) AND relname = ANY(:names)"
    )
    rows = [row for row in connection.execute(query, {"path": path, "names": list(kinds)}) if kinds[row[1]] == row[3]]
    counts = Counter(row[0] for row in rows)
    schema = min(path, key=lambda oid: (-counts[oid], path.index(oid)))
    ours = {row[1]: row[2] for row in rows if row[0] == schema}
    prefix = connection.execute(
        text("SELECT quote_ident(nspname) || '.' FROM pg_namespace WHERE oid = :schema"), {"schema": schema}
    ).scalar_one()
    functions = text("SELECT proowner FROM pg_proc WHERE pronamespace = :schema AND proname = ANY(:names)")
    owners = Counter(row[4] for row in rows if row[0] == schema)
    owners.update(connection.execute(functions, {"schema": schema, "names": list(_FUNCTIONS)}).scalars())
    return _Location(
        path=path,
        schema=schema,
        prefix=prefix,
        tables={name: oid for name, oid in ours.items() if kinds[name] == "r"},
        views={name: oid for name, oid in ours.items() if kinds[name] == "v"},
        owner=max(owners, key=lambda owner: owners[owner], default=0),
    )


def _list_own_tables() -> dict[str, Table]:
    """Return our declared tables, by name. The module of the stored standings adds its tables when it is imported."""
    return {table.name: table for table in (*metadata.tables.values(), _REVISION)}


def _read_rows(connection: Connection, query: str, location: _Location) -> Sequence[Any]:
    """Return the rows of a query, which may use any of the parameters below; `relations` are our tables and views."""
    parameters = {
        "path": location.path,
        "schema": location.schema,
        "tables": list(location.tables.values()),
        "relations": [*location.tables.values(), *location.views.values()],
        "owner": location.owner,
        "functions": list(_FUNCTIONS),
        "immutable": [oid for name, oid in location.tables.items() if name in _IMMUTABLE],
    }
    used = {name: value for name, value in parameters.items() if f":{name}" in query}
    return connection.execute(text(query), used).all()


def _compare_relations(connection: Connection, location: _Location, views: dict[str, str]) -> Differences:
    """Report missing tables and views, tables with wrong storage, and other objects with our names."""
    indexes = {str(index.name) for table in _list_own_tables().values() for index in table.indexes}
    keys = {
        str(constraint.name)
        for table in _list_own_tables().values()
        for constraint in table.constraints
        if _is_key(constraint)
    }
    # the indexes of another schema's table are left out if the table has one of our names, because it is reported
    query = text(
        "SELECT c.relname, c.relnamespace = :schema, c.oid::regclass::text FROM pg_class c "
        "LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid "
        "WHERE c.relnamespace = ANY(:path) AND c.relname = ANY(:names) "
        "AND NOT coalesce(t.relname = ANY(:names) AND t.relnamespace <> :schema, false)"
    )
    names = [*_list_own_tables(), *views, *indexes, *keys]
    rows = connection.execute(query, {"path": location.path, "schema": location.schema, "names": names}).all()
    missing = {
        name for name in (*_list_own_tables(), *views) if name not in location.tables and name not in location.views
    }
    for name in (*_list_own_tables(), *views):
        kind = "view" if name in views else "table"
        if name in missing:
            namesakes = sorted(full_name for relation, _, full_name in rows if relation == name)
            notes = "".join(f"; {namesake} {_NOT_OURS}" for namesake in namesakes)
            yield f"the {kind} {name} is missing{notes}"
    for name, is_ours, full_name in rows:
        if not is_ours and name not in missing:
            yield f"{full_name} has the same name as {location.prefix}{name}, and may shadow it"
    for name, *flags in _read_rows(connection, _STORAGE_QUERY, location):
        problems = [problem for problem, applies in zip(_STORAGE_PROBLEMS, flags, strict=True) if applies]
        yield f"the table {name} {'; it '.join(problems)}" if problems else None


# a table's name, and a flag for each of `_STORAGE_PROBLEMS`
_STORAGE_QUERY = """SELECT c.relname, c.relpersistence <> 'p', c.relrowsecurity OR c.relforcerowsecurity,
  c.relowner <> :owner, a.amname <> 'heap',
  c.reloftype <> 0 OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = ANY(:tables) ORDER BY c.relname"""
_STORAGE_PROBLEMS = (
    "is unlogged: a crash empties it",
    "has row security switched on, which may hide rows",
    "is owned by a different role from the other tables",
    "does not use the access method heap",
    "inherits its columns from another table or type",
)


def _describe_columns(location: _Location) -> dict[tuple[str, str], str]:
    """Describe the declared columns of the tables that exist, by (table, column)."""
    return {
        (table, column.name): _describe_column(column)
        for table in location.tables
        for column in _list_own_tables()[table].columns
    }


def _read_columns(connection: Connection, location: _Location) -> dict[tuple[str, str], str]:
    """Read the columns of our tables, by (table, column): type, collation, NOT NULL, default, generation."""
    # since PostgreSQL 18, a NOT NULL may leave older rows unchecked
    query = """SELECT c.relname, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
      CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation::text END,
      CASE WHEN a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conrelid = a.attrelid
        AND n.contype = 'n' AND a.attnum = ANY(n.conkey) AND NOT n.convalidated) THEN 'NOT NULL' END,
      'GENERATED ' || nullif(a.attgenerated::text, ''), 'IDENTITY ' || nullif(a.attidentity::text, ''),
      'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = ANY(:tables) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum"""
    return {(table, name): definition for table, name, definition in _read_rows(connection, query, location)}


def _describe_column(column: "Column[Any]") -> str:
    """Describe a column in the form that PostgreSQL prints."""
    parts = [column.type.compile(_DIALECT).lower().replace("varchar", "character varying")]
    if not column.nullable:
        parts.append("NOT NULL")
    if isinstance(column.server_default, DefaultClause):
        parts.append(f"DEFAULT {column.server_default.arg}")
    return " ".join(parts)


def _compare_descriptions(
    kind: str, expected: dict[tuple[str, str], str], actual: dict[tuple[str, str], str]
) -> Differences:
    """Compare the descriptions of objects, by (table, name)."""
    for (table, name), definition in expected.items():
        if (table, name) not in actual:
            yield f"the {kind} {name} of {table} is missing"
        elif actual[table, name] != definition:
            yield f"the {kind} {name} of {table} is {quote(actual[table, name], 200)}, but should be {definition}"
        else:
            yield None
    for table, name in sorted(actual.keys() - expected.keys()):
        yield f"the {kind} {name} of {table} {_NOT_OURS}"


def _compare_constraints(connection: Connection, location: _Location) -> Differences:
    """Compare the keys, foreign keys and checks of our tables; report other tables' foreign keys to changing tables."""
    # a key's definition includes its index, and a foreign key's whether its four triggers are enabled
    query = """SELECT r.relname, c.conname, concat_ws(' ', pg_get_constraintdef(c.oid), pg_get_indexdef(i.indexrelid),
      CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN '(not valid)' END,
      CASE WHEN c.contype = 'f' AND 4 <> (SELECT count(*) FROM pg_trigger t WHERE t.tgconstraint = c.oid
        AND t.tgenabled IN ('O', 'A')) THEN '(switched off)' END)
    FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
    LEFT JOIN pg_index i ON i.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x')
    WHERE c.conrelid = ANY(:tables) AND c.contype IN ('c', 'f', 'p', 'u', 'x')"""
    actual = {
        (table, name): _strip_definition(definition, location)
        for table, name, definition in _read_rows(connection, query, location)
    }
    expected = {
        (table, str(constraint.name)): _describe_constraint(constraint)
        for table in location.tables
        for constraint in _list_own_tables()[table].constraints
    }
    yield from _compare_descriptions("constraint", expected, actual)
    foreign_keys = """SELECT conname, conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
    WHERE contype = 'f' AND confrelid = ANY(:tables) AND NOT (conrelid = ANY(:tables))
    AND NOT (confrelid = ANY(:immutable))"""
    for name, table, own_table in _read_rows(connection, foreign_keys, location):
        yield f"the foreign key {name} of {table} takes effect when a row of {own_table} is deleted"


def _strip_definition(definition: str, location: _Location) -> str:
    """Return a definition without quotes, storage parameters and the schema, which differs between databases."""
    return re.sub(r" WITH \([^()]*\)", "", definition.replace(location.prefix, "")).replace('"', "")


def _is_key(constraint: Constraint) -> bool:
    return isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)


def _describe_constraint(constraint: Constraint) -> str:
    """Describe a constraint in the form that PostgreSQL prints."""
    table: Table = constraint.table
    if isinstance(constraint, CheckConstraint):
        terms = [f"({term})" for term in str(constraint.sqltext).split(" AND ")]
        return f"CHECK ({terms[0] if len(terms) == 1 else '(' + ' AND '.join(terms) + ')'})"
    if isinstance(constraint, ForeignKeyConstraint):
        referred = ", ".join(element.column.name for element in constraint.elements)
        names = ", ".join(constraint.column_keys)
        return f"FOREIGN KEY ({names}) REFERENCES {constraint.referred_table.name}({referred})"
    assert isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)
    names = ", ".join(column.name for column in constraint.columns)
    kind = "PRIMARY KEY" if isinstance(constraint, PrimaryKeyConstraint) else "UNIQUE"
    return f"{kind} ({names}) CREATE UNIQUE INDEX {constraint.name} ON {table.name} USING btree ({names})"


def _describe_index(index: Index) -> str:
    """Describe an index in the form that PostgreSQL prints."""
    assert index.table is not None
    # the schema declares the condition of a partial index for SQLite only; both stores use it
    where = index.dialect_options["sqlite"]["where"]
    names = ", ".join(column.name for column in index.columns)
    unique = "UNIQUE " if index.unique else ""
    statement = f"CREATE {unique}INDEX {index.name} ON {index.table.name} USING btree ({names})"
    return statement if where is None else f"{statement} WHERE ({where}::text)"


def _compare_indexes(connection: Connection, location: _Location) -> Differences:
    """Compare the indexes that do not belong to a key.

    An operator may add indexes of plain columns, because they reject no row and run no code.
    """
    from_extension = _FROM_EXTENSION.format("o", "pg_opclass")
    query = f"""SELECT r.relname, c.relname, concat_ws(' ', pg_get_indexdef(i.indexrelid),
      CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN '(not valid)' END),
      NOT (i.indisunique OR i.indisexclusion OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
        OR EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY(i.indclass)
          AND o.opcnamespace <> 'pg_catalog'::regnamespace AND NOT {from_extension}))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class r ON r.oid = i.indrelid
    WHERE i.indrelid = ANY(:tables) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
      AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x'))"""
    expected = {
        (table, str(index.name)): _describe_index(index)
        for table in location.tables
        for index in _list_own_tables()[table].indexes
    }
    # an index with the name of a key is not reported here: `_compare_constraints` reports the missing key
    keys = {
        (table, str(constraint.name))
        for table in location.tables
        for constraint in _list_own_tables()[table].constraints
        if _is_key(constraint)
    }
    actual = {
        (table, name): _strip_definition(definition, location)
        for table, name, definition, is_plain in _read_rows(connection, query, location)
        if (table, name) in expected or not (is_plain or (table, name) in keys)
    }
    yield from _compare_descriptions("index", expected, actual)


# queries for objects that must not exist, by the message about each row. The last column of the first query is the key
# by which `_find_added_objects` recognises this program's triggers
_ADDED_QUERIES = {
    "the trigger {} on {} was not created by this program": "SELECT t.tgname, c.relname, c.relname || '.' || t.tgname "
    "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgrelid = ANY(:relations)",
    "the rule {} on {} was not created by this program": "SELECT r.rulename, c.relname FROM pg_rewrite r "
    "JOIN pg_class c ON c.oid = r.ev_class WHERE c.oid = ANY(:relations) "
    "AND NOT (c.relkind = 'v' AND r.rulename = '_RETURN')",
    "the policy {} on {} may hide rows": "SELECT p.polname, c.relname FROM pg_policy p "
    "JOIN pg_class c ON c.oid = p.polrelid WHERE c.oid = ANY(:relations)",
    "the table {} inherits from {}, and adds rows without guards": "SELECT inhrelid::regclass::text, c.relname "
    "FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent WHERE c.oid = ANY(:tables)",
    "the operator {} may shadow a built-in operator": "SELECT o.oid::regoperator::text FROM pg_operator o "
    "WHERE o.oprnamespace = ANY(:path) AND o.oprnamespace <> 'pg_catalog'::regnamespace "
    "AND o.oprname IN (SELECT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace) "
    f"AND NOT {_FROM_EXTENSION.format('o', 'pg_operator')}",
    "the function {} may shadow a built-in function": "SELECT p.oid::regprocedure::text FROM pg_proc p "
    "WHERE p.pronamespace = ANY(:path) AND p.pronamespace <> 'pg_catalog'::regnamespace "
    "AND p.proname IN (SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace) "
    f"AND NOT {_FROM_EXTENSION.format('p', 'pg_proc')}",
    # the casts of users have oids from 16384
    "the cast from {} to {} may replace a built-in cast": "SELECT format_type(c.castsource, NULL), "
    "format_type(c.casttarget, NULL) FROM pg_cast c JOIN pg_type s ON s.oid = c.castsource "
    "JOIN pg_type t ON t.oid = c.casttarget WHERE c.oid >= 16384 AND s.typnamespace = 'pg_catalog'::regnamespace "
    f"AND t.typnamespace = 'pg_catalog'::regnamespace AND NOT {_FROM_EXTENSION.format('c', 'pg_cast')}",
    # possible only if the search path names other schemas before pg_catalog
    "{} may shadow a built-in table or type": "SELECT full_name FROM (SELECT relname AS name, relnamespace AS space, "
    "oid::regclass::text AS full_name FROM pg_class UNION ALL SELECT typname, typnamespace, oid::regtype::text "
    "FROM pg_type WHERE typrelid = 0 AND typelem = 0) o WHERE array_position(CAST(:path AS oid[]), space) "
    "< array_position(CAST(:path AS oid[]), 'pg_catalog'::regnamespace::oid) AND name IN (SELECT relname FROM pg_class "
    "WHERE relnamespace = 'pg_catalog'::regnamespace UNION ALL SELECT typname FROM pg_type "
    "WHERE typnamespace = 'pg_catalog'::regnamespace)",
}


def _find_added_objects(connection: Connection, location: _Location) -> Differences:
    """Yield a message for each added object that can run code on our tables, hide or add rows, or shadow objects."""
    triggers = {f"{_find_table(sql)}.{name}" for name, sql in POSTGRES_TRIGGERS.items()}
    for message, query in _ADDED_QUERIES.items():
        for row in _read_rows(connection, query, location):
            if row[-1] not in triggers:
                yield message.format(*row)
    functions = [row for row in _read_named_functions(connection, location) if row.name in _FUNCTIONS]
    ours = set(_choose_own_functions(functions, location).values())
    for row in functions:
        if row not in ours:
            yield f"the function {row.signature} has the same name as a function of this program"


def _read_named_functions(connection: Connection, location: _Location) -> Sequence[Any]:
    """Read the functions in the search path that have our names."""
    query = """SELECT proname AS name, pronamespace AS schema, oid::regprocedure::text AS signature, prosrc AS body,
      pg_get_function_arguments(oid) AS arguments, proowner AS owner,
      CASE WHEN prokind IN ('f', 'w') THEN pg_get_functiondef(oid) ELSE '' END AS definition
    FROM pg_proc WHERE pronamespace = ANY(:path) AND proname = ANY(:functions) ORDER BY oid"""
    return _read_rows(connection, query, location)


def _choose_own_functions(functions: Sequence[Any], location: _Location) -> dict[str, Any]:
    """Return the functions that are most likely ours, by name: preferably in our schema, then with our arguments."""
    expected = {name: _parse_function(sql) for name, sql in _FUNCTIONS.items()}

    def match_quality(row: Any) -> tuple[bool, bool]:
        return row.schema == location.schema, row.arguments.split() == expected[row.name].arguments.split()

    # the best match comes last and replaces the others
    return {row.name: row for row in sorted(functions, key=match_quality)}


def _compare_functions(connection: Connection, location: _Location) -> dict[str, bool]:
    """Return whether each of our functions exists with our definition, in our schema and with our owner, by name."""
    own_functions = _choose_own_functions(_read_named_functions(connection, location), location)
    is_same = dict.fromkeys(_FUNCTIONS, False)
    for name, row in own_functions.items():
        actual = _parse_function(row.definition.replace("OR REPLACE ", "", 1).replace(location.prefix, "", 1))
        # compare the stored body, because a body that is parsed from a definition might end too early
        has_definition = actual._replace(body=row.body) == _parse_function(_FUNCTIONS[name])
        is_same[name] = has_definition and (row.schema, row.owner) == (location.schema, location.owner)
    return is_same


_HEADER = re.compile(
    r"CREATE FUNCTION \w+\((.*?)\)\s+RETURNS\s+(\w+(?:\s*\(.*?\))?)\s+LANGUAGE\s+(\w+)(.*?)\s+AS\s+(\$\w*\$)(.*)\5",
    re.S,
)
_QUOTES = re.compile("['\" ]")
_SETTING = re.compile(r"\bSET (\w+) (?:=|TO) (.*?)(?= SET |$)")


class _Function(NamedTuple):
    """The parts of a function's definition."""

    arguments: str
    result: str
    language: str
    options: frozenset[str]
    body: str


def _parse_function(definition: str) -> _Function:
    """Parse a function's definition; all parts of an unknown form are empty.

    A server prints only the options that differ from PostgreSQL's defaults.
    """
    match = _HEADER.match(definition)
    if match is None:
        return _Function("", "", "", frozenset(), "")
    arguments, result, language, options, _, body = match.groups()
    options = " ".join(options.split())
    settings = [f"{name}={_QUOTES.sub('', value)}" for name, value in _SETTING.findall(options)]
    other_options = _SETTING.sub("", options).strip()
    all_options = frozenset([*settings, other_options])
    return _Function(" ".join(arguments.split()), re.sub(r"\s+", "", result), language, all_options, body)


def _compare_views(connection: Connection, location: _Location, views: dict[str, str], can_plan: bool) -> Differences:
    """Compare the views' options and owners, and with `can_plan` their queries."""
    for name, oid in location.views.items():
        (flags,) = connection.execute(
            text(_VIEW_QUERY),
            {"view": oid, "relations": [oid, *location.tables.values()], "owner": location.owner},
        ).all()
        problems = [problem for problem, applies in zip(_VIEW_PROBLEMS, flags, strict=True) if applies]
        prefix = location.prefix.replace("\\", r"\\")
        # a view on other objects is not planned, because planning might run the code of those objects
        if not problems and can_plan:
            query = re.sub(r"\b(FROM|JOIN) (\w+)", rf"\1 {prefix}\2", views[name].partition(" AS")[2].strip())
            if not _has_same_plan(connection, location, name, query):
                problems = [_DIFFERS]
        yield f"the view {name} {'; it '.join(problems)}" if problems else None


# a flag for each of `_VIEW_PROBLEMS`
_VIEW_QUERY = """SELECT
  EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
    WHERE r.ev_class = :view AND NOT (d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY(:relations))),
  c.reloptions IS NOT NULL,
  c.relowner <> :owner,
  EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = :view AND r.rulename = '_RETURN'
    AND r.ev_enabled NOT IN ('O', 'A')),
  EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = :view)
FROM pg_class c WHERE c.oid = :view"""
_VIEW_PROBLEMS = (
    f"{_DIFFERS}: it selects from other objects, or runs other functions",
    "has additional options",
    "is owned by a different role from the tables",
    "is disabled",
    "has additional defaults",
)


def _has_same_plan(connection: Connection, location: _Location, name: str, query: str) -> bool:
    """Tell whether a view and a query have the same columns, and the server makes the same plan for both."""
    attributes = text(
        "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = :view AND attnum > 0 ORDER BY attnum"
    )
    actual = [tuple(row) for row in connection.execute(attributes, {"view": location.views[name]})]
    cursor = connection.exec_driver_sql(f"SELECT * FROM ({query}) AS q LIMIT 0").cursor
    if cursor is None or actual != [(column[0], column[1]) for column in cursor.description or ()]:
        return False
    explain = "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM {} AS q"
    plans = [
        connection.exec_driver_sql(explain.format(source)).scalars().all()
        for source in (f"{location.prefix}{name}", f"({query})")
    ]
    return plans[0] == plans[1]
