"""What a PostgreSQL database holds besides the rows, compared with what this program itself would make.

The system catalogue is read object by object, and each object is described the way every server from 13 to 18 describes
it. Nothing is written, and nothing that somebody else made is run, so the rights of `ratings_reader` are enough. Ours
are the objects on our tables, those with our names anywhere in the search path, and whatever can run on our tables.
Other tables and views are an operator's own, and so are indexes of plain columns, what extensions brought, and grants.
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
from ratings_ledger.ledger.store.catalogue import Objects, generated_objects, refuse_difference
from ratings_ledger.ledger.store.guards import (
    POSTGRES_APPEND,
    POSTGRES_APPEND_LOCK,
    POSTGRES_FUNCTIONS,
    POSTGRES_TRIGGERS,
)
from ratings_ledger.ledger.store.schema import metadata

# alembic's own table
_REVISION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_FUNCTIONS = POSTGRES_FUNCTIONS | POSTGRES_APPEND
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
# an object that an extension brought
_EXTENSION = (
    "EXISTS (SELECT FROM pg_depend d WHERE d.objid = {0}.oid AND d.classid = '{1}'::regclass AND d.deptype = 'e')"
)
# rows of these tables never change, so no reference to them ever runs
_IMMUTABLE = sorted({name.partition("_refuse_")[0] for name in POSTGRES_TRIGGERS if "_refuse_" in name})

FOREIGN, DIFFERS = "was not created by this program", "differs from this program's definition"

Found = Iterator[str | None]


# what can run, refuse or hide something on our tables, in words that are the same on every server; an index of plain
# columns is an operator's own. A reference to a table whose rows never change brings triggers that never run
_OBJECTS = (
    """WITH t AS MATERIALIZED (SELECT c.* FROM unnest(CAST(%s AS text[])) n JOIN pg_catalog.pg_class c
    ON c.oid = pg_catalog.to_regclass(n)),
  e AS MATERIALIZED (SELECT relnamespace AS space, relowner AS owner FROM t WHERE relname = 'events')
SELECT 'table', relname::text, relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity,
  relforcerowsecurity, relam, reloftype, relowner = owner, relnamespace = space) FROM t, e
UNION ALL SELECT 'row type', relname, relname, (SELECT string_agg(concat_ws(' ', attname, atttypid, atttypmod,
  attnotnull, nullif(attgenerated, ''), nullif(attidentity, ''), attcollation,
  (SELECT 'DEFAULT ' || pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)), ', '
  ORDER BY attnum) FROM pg_attribute WHERE attrelid = t.oid AND attnum > 0 AND NOT attisdropped) FROM t
UNION ALL SELECT 'trigger', t.relname, CASE WHEN tgisinternal THEN concat_ws(' for ', p.proname, r.relname)
  ELSE tgname END, concat_ws(' ', p.proname, pronamespace = space, tgtype, tgenabled IN ('O', 'A'), tgattr, tgnargs,
  tgqual, tgdeferrable, tginitdeferred, tgoldtable, tgnewtable, tgconstraint = 0)
  FROM t CROSS JOIN e JOIN pg_trigger g ON g.tgrelid = t.oid JOIN pg_proc p ON p.oid = tgfoid
  LEFT JOIN pg_class r ON r.oid = tgconstrrelid
  WHERE NOT (tgisinternal AND t.relname = ANY(CAST(%s AS text[])) AND tgconstrrelid <> t.oid)
UNION ALL SELECT 'rule', relname, rulename, '' FROM t JOIN pg_rewrite ON ev_class = t.oid
UNION ALL SELECT 'policy', relname, polname, '' FROM t JOIN pg_policy ON polrelid = t.oid
UNION ALL SELECT 'inheritance', relname, (CASE t.oid WHEN inhrelid THEN inhparent ELSE inhrelid END)::regclass::text, ''
  FROM t JOIN pg_inherits ON t.oid IN (inhrelid, inhparent)
UNION ALL SELECT 'constraint', t.relname, conname, concat_ws(' ', contype, condeferrable, condeferred, convalidated,
  conkey, confkey, confupdtype, confdeltype, confmatchtype, r.relname, pg_get_expr(conbin, conrelid))
  FROM t JOIN pg_constraint ON conrelid = t.oid LEFT JOIN t r ON r.oid = confrelid WHERE contype <> 'n'
UNION ALL SELECT 'index', t.relname, c.relname, concat_ws(' ', indisunique, indisprimary, indisexclusion, indimmediate,
  indisvalid, indisready, indislive, indkey, indclass, indcollation, indoption, indexprs IS NULL,
  pg_get_expr(indpred, indrelid), coalesce(to_jsonb(i) ->> 'indnullsnotdistinct' = 'true', false))
  FROM t JOIN pg_index i ON indrelid = t.oid JOIN pg_class c ON c.oid = indexrelid WHERE indisunique OR indisexclusion
  OR indexprs IS NOT NULL OR indpred IS NOT NULL OR EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY(indclass)
    AND opcnamespace <> 'pg_catalog'::regnamespace AND NOT """
    + _EXTENSION.format("o", "pg_opclass")
    + """)
UNION ALL SELECT 'function', '', concat(CASE WHEN pronamespace <> space THEN pronamespace::regnamespace || '.' END,
  proname, '(', oidvectortypes(proargtypes), ')'), concat_ws(' ', proowner = owner, lanname, prokind, prosecdef,
  proleakproof, proisstrict, proretset, provolatile, proparallel, procost, prorows, prorettype, proallargtypes,
  proargmodes, proargnames, proargdefaults IS NULL, proconfig, encode(sha256(convert_to(prosrc, 'UTF8')), 'hex'))
  FROM e CROSS JOIN pg_proc p JOIN pg_language l ON l.oid = prolang
  WHERE proname = ANY(CAST(%s AS text[])) AND pronamespace::regnamespace::text = ANY(
    SELECT quote_ident(s) FROM unnest(current_schemas(true)) s)"""
)


def read_objects(cursor: Any, tables: Sequence[str]) -> Objects:
    """Return everything that could run, refuse or hide something on our tables, given their names."""
    found = cursor.execute(_OBJECTS, (list(tables), _IMMUTABLE, list(_FUNCTIONS))).fetchall()
    return {(kind, table, name): definition for kind, table, name, definition in found}


def _foreign_differences(cursor: Any) -> Found:
    """Describe the objects that could run code, refuse rows or hide rows on our tables, and differ from ours."""
    wanted = generated_objects("postgresql")
    found = read_objects(cursor, [table for kind, table, _ in wanted if kind == "table"])
    for kind, table, name in sorted(key for key, _ in found.items() ^ wanted.items()):
        what = f"the {kind} {name}" + (f" on {table}" if table not in ("", name) else "")
        if (kind, table, name) not in wanted:
            yield f"{what} {FOREIGN}"
        else:
            yield f"{what} {DIFFERS if (kind, table, name) in found else 'is missing'}"


def refuse_foreign_objects(cursor: Any) -> None:
    """Raise `StoreDamaged` if anything but this program's objects could run, refuse or hide something on its tables."""
    refuse_difference(cursor, _foreign_differences(cursor))


# changes whenever something does that runs on an append; `xmin` names the transaction that wrote a row of the catalogue
_APPEND_STATE = """ARRAY(SELECT xmin FROM pg_catalog.pg_class WHERE oid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_attribute WHERE attrelid = {events} AND attnum > 0
  UNION ALL SELECT xmin FROM pg_catalog.pg_index WHERE indrelid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_trigger WHERE tgrelid = {events}
  UNION ALL SELECT xmin FROM pg_catalog.pg_proc WHERE oid IN ({functions}))::text"""
# planned once, by the indexes: the tables of the catalogue are small, but not that small
_PREPARE_APPEND = """SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; DEALLOCATE ALL;
PREPARE ratings_append_lock AS SELECT pg_catalog.pg_advisory_xact_lock({lock});
PREPARE ratings_append_one (text, text, smallint, text, bigint, bigint, text, text, text, bigint)
AS SELECT * FROM {schema}.events_append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
WHERE pg_catalog.to_regclass('events') = {events} AND {state} = '{value}';
EXPLAIN EXECUTE ratings_append_one ({nothing}); RESET plan_cache_mode; RESET enable_seqscan"""


def prepare_append(connection: Any) -> bool:
    """Prepare the statements of a single append on a driver's connection: it appends only while the catalogue stays.

    Return False if there is something foreign.
    """
    row = connection.execute(
        "SELECT c.oid, relnamespace::regnamespace::text, (SELECT string_agg(p.oid::text, ',') FROM pg_proc p "
        "WHERE pronamespace = relnamespace AND proname = ANY(%s)) FROM pg_class c WHERE c.oid = 'events'::regclass",
        (list(_FUNCTIONS),),
    ).fetchone()
    events, schema, functions = row
    if functions is None:
        return False
    state = _APPEND_STATE.format(events=events, functions=functions)
    # before the comparison, so that whatever changes meanwhile is noticed afterwards
    value = connection.execute(f"SELECT {state}").fetchone()[0]
    if any(_foreign_differences(connection)):
        return False
    given = {"schema": schema, "events": events, "state": state, "value": value, "lock": POSTGRES_APPEND_LOCK}
    connection.execute(_PREPARE_APPEND.format(**given, nothing=", ".join(["NULL"] * 10)))
    return True


class _Place(NamedTuple):
    """Where the ledger is: the search path as it takes effect, our schema with its prefix, the tables and views that
    are there, and the role that most of them belong to."""

    path: list[int]
    schema: int
    prefix: str
    tables: dict[str, int]
    views: dict[str, int]
    owner: int


def object_differences(connection: Connection, views: dict[str, str]) -> Found:
    """None for every object that is as it should be, and what is wrong for every other one, leaving out the guards."""
    with plain_path(connection) as path:
        place = _place(connection, path, views)
        found = [
            *_relations(connection, place, views),
            *_columns(connection, place),
            *_constraints(connection, place),
            *_indexes(connection, place),
            *_others(connection, place),
        ]
    yield from found
    # a view's proper query can only be run on tables with the right columns
    other = any(told and told.startswith("the column ") and not told.endswith(FOREIGN) for told in found)
    whole = not other and len(place.tables) == len(_tables())
    # separately, as a policy that hides rows makes them fail with an error
    with plain_path(connection):
        found = list(_views(connection, place, views, whole))
    yield from found


def missing_guards(connection: Connection) -> list[str]:
    """Return the triggers that are absent, switched off, or do not run our functions, and functions that differ."""
    with plain_path(connection) as path:
        place = _place(connection, path, {})
        functions = _functions(connection, place)
        missing = {name for name, same in functions.items() if not same}
        found = {
            (table, name): " ".join(definition.replace(place.prefix, "").split())
            for table, name, definition in connection.execute(
                text("SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c "
                     "ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') "
                     "AND t.tgrelid = ANY(:tables)"),
                {"tables": list(place.tables.values())},
            )
        }  # fmt: skip
    missing |= {
        name for name, sql in POSTGRES_TRIGGERS.items() if found.get((_table_of(sql), name)) != " ".join(sql.split())
    }
    return sorted(missing)


def _table_of(trigger: str) -> str:
    """Return the table that a trigger's definition names."""
    return trigger.partition(" ON ")[2].split()[0]


@contextmanager
def plain_path(connection: Connection) -> Iterator[list[int]]:
    """Provide the schemas of the search path, in order; inside the block only PostgreSQL's own schema is in it.

    So nothing can stand in for what is asked, and servers spell out the names of all other schemas.
    """
    before, path = connection.exec_driver_sql(
        "SELECT pg_catalog.current_setting('search_path'), pg_catalog.current_schemas(true)"
    ).one()
    setting = text("SELECT pg_catalog.set_config('search_path', :path, false)")
    connection.execute(setting, {"path": "pg_catalog, pg_temp"})
    try:
        oids: dict[str, int] = dict(connection.exec_driver_sql("SELECT nspname, oid FROM pg_namespace").all())
        yield [oids[name] for name in path]
    finally:
        # an earlier error is the one to report
        with suppress(DBAPIError):
            connection.execute(setting, {"path": before})


def _place(connection: Connection, path: list[int], views: dict[str, str]) -> _Place:
    """Return the schema of the path that holds the most of our tables and views is the ledger's."""
    kinds = {**dict.fromkeys(_tables(), "r"), **dict.fromkeys(views, "v")}
    query = text(
        "SELECT relnamespace, relname, oid, relkind, relowner FROM pg_class "
        "WHERE relnamespace = ANY(:path) AND relname = ANY(:names)"
    )
    rows = [row for row in connection.execute(query, {"path": path, "names": list(kinds)}) if kinds[row[1]] == row[3]]
    held = Counter(row[0] for row in rows)
    schema = min(path, key=lambda oid: (-held[oid], path.index(oid)))
    ours = {row[1]: row[2] for row in rows if row[0] == schema}
    prefix = connection.execute(
        text("SELECT quote_ident(nspname) || '.' FROM pg_namespace WHERE oid = :schema"), {"schema": schema}
    ).scalar_one()
    functions = text("SELECT proowner FROM pg_proc WHERE pronamespace = :schema AND proname = ANY(:names)")
    owners = Counter(row[4] for row in rows if row[0] == schema)
    owners.update(connection.execute(functions, {"schema": schema, "names": list(_FUNCTIONS)}).scalars())
    return _Place(
        path,
        schema,
        prefix,
        {name: oid for name, oid in ours.items() if kinds[name] == "r"},
        {name: oid for name, oid in ours.items() if kinds[name] == "v"},
        max(owners, key=lambda owner: owners[owner], default=0),
    )


def _tables() -> dict[str, Table]:
    """Return the tables as declared; those of the generations only if they are loaded."""
    return {table.name: table for table in (*metadata.tables.values(), _REVISION)}


def _rows(connection: Connection, query: str, place: _Place) -> Sequence[Any]:
    """Return the rows of a query, which may refer to what is ours: `path`, `schema`, `tables`, `every` (+ views),
    `owner`.
    """
    given = {
        "path": place.path,
        "schema": place.schema,
        "tables": list(place.tables.values()),
        "every": [*place.tables.values(), *place.views.values()],
        "owner": place.owner,
        "functions": list(_FUNCTIONS),
        "immutable": [oid for name, oid in place.tables.items() if name in _IMMUTABLE],
    }
    return connection.execute(text(query), {name: v for name, v in given.items() if f":{name}" in query}).all()


def _relations(connection: Connection, place: _Place, views: dict[str, str]) -> Found:
    """Tables and views: whether they exist, how the tables are kept, and what else has the name of one of ours."""
    indexes = {str(index.name) for table in _tables().values() for index in table.indexes}
    keys = {str(one.name) for table in _tables().values() for one in table.constraints if _is_key(one)}
    # an index on a table with one of our names is reported with that table
    query = text(
        "SELECT c.relname, c.relnamespace = :schema, c.oid::regclass::text FROM pg_class c "
        "LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid "
        "WHERE c.relnamespace = ANY(:path) AND c.relname = ANY(:names) "
        "AND NOT coalesce(t.relname = ANY(:names) AND t.relnamespace <> :schema, false)"
    )
    names = [*_tables(), *views, *indexes, *keys]
    rows = connection.execute(query, {"path": place.path, "schema": place.schema, "names": names}).all()
    missing = {name for name in (*_tables(), *views) if name not in place.tables and name not in place.views}
    for name in (*_tables(), *views):
        kind = "view" if name in views else "table"
        if name in missing:
            instead = sorted(told for other, _, told in rows if other == name)
            named = f"; {', '.join(instead)} was not created by this program" if instead else ""
            yield f"the {kind} {name} is missing{named}"
    for name, ours, told in rows:
        if not ours and name not in missing:
            yield f"{told} has the name of {place.prefix}{name}, and may stand in for it"
    for name, *wrong in _rows(connection, _KEEPING, place):
        told = [what for what, applies in zip(_KEPT_WRONGLY, wrong, strict=True) if applies]
        yield f"the table {name} {' and '.join(told)}" if told else None


# how a table is kept, each way that is not ours in a column of its own
_KEEPING = """SELECT c.relname, c.relpersistence <> 'p', c.relrowsecurity OR c.relforcerowsecurity,
  c.relowner <> :owner, a.amname <> 'heap',
  c.reloftype <> 0 OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = ANY(:tables) ORDER BY c.relname"""
_KEPT_WRONGLY = (
    "is unlogged: a crash empties it",
    "has row security switched on, which may hide rows",
    "belongs to another role than the rest",
    "is stored by another method than heap",
    "takes its columns from something else",
)


def _columns(connection: Connection, place: _Place) -> Found:
    """Yield the columns of our tables: type, collation, whether they may be empty, default, how they are generated."""
    # since PostgreSQL 18, rows from before a NOT NULL may be left unchecked
    query = """SELECT c.relname, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
      CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation::text END,
      CASE WHEN a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conrelid = a.attrelid
        AND n.contype = 'n' AND a.attnum = ANY(n.conkey) AND NOT n.convalidated) THEN 'NOT NULL' END,
      'GENERATED ' || nullif(a.attgenerated::text, ''), 'IDENTITY ' || nullif(a.attidentity::text, ''),
      'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = ANY(:tables) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum"""
    found = {(table, name): told for table, name, told in _rows(connection, query, place)}
    wanted = {(table, column.name): _column(column) for table in place.tables for column in _tables()[table].columns}
    yield from _compared("column", wanted, found)


def _column(column: "Column[Any]") -> str:
    """Return a column as servers describe it."""
    kind = column.type.compile(_DIALECT).lower().replace("varchar", "character varying")
    default = column.server_default
    told = [kind, *(() if column.nullable else ("NOT NULL",))]
    return " ".join([*told, *([f"DEFAULT {default.arg}"] if isinstance(default, DefaultClause) else [])])


def _compared(kind: str, wanted: dict[tuple[str, str], str], found: dict[tuple[str, str], str]) -> Found:
    """Compare how objects of the tables are described, by (table, name)."""
    for (table, name), told in wanted.items():
        if (table, name) not in found:
            yield f"the {kind} {name} of {table} is missing"
        elif found[table, name] != told:
            yield f"the {kind} {name} of {table} is {quote(found[table, name], 200)}, and should be {told}"
        else:
            yield None
    for table, name in sorted(found.keys() - wanted.keys()):
        yield f"the {kind} {name} of {table} {FOREIGN}"


def _constraints(connection: Connection, place: _Place) -> Found:
    """Keys with their indexes, references with the triggers that check them, conditions; references to our tables."""
    # a key's index is described with it; so are the four triggers of a reference
    query = """SELECT r.relname, c.conname, concat_ws(' ', pg_get_constraintdef(c.oid), pg_get_indexdef(i.indexrelid),
      CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN '(not valid)' END,
      CASE WHEN c.contype = 'f' AND 4 <> (SELECT count(*) FROM pg_trigger t WHERE t.tgconstraint = c.oid
        AND t.tgenabled IN ('O', 'A')) THEN '(switched off)' END)
    FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
    LEFT JOIN pg_index i ON i.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x')
    WHERE c.conrelid = ANY(:tables) AND c.contype IN ('c', 'f', 'p', 'u', 'x')"""
    found = {(table, name): _bare(told, place) for table, name, told in _rows(connection, query, place)}
    wanted = {
        (table, str(one.name)): _constraint(one) for table in place.tables for one in _tables()[table].constraints
    }
    yield from _compared("constraint", wanted, found)
    references = """SELECT conname, conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
    WHERE contype = 'f' AND confrelid = ANY(:tables) AND NOT (conrelid = ANY(:tables))
    AND NOT (confrelid = ANY(:immutable))"""
    for name, table, ours in _rows(connection, references, place):
        yield f"the foreign key {name} of {table} takes effect when a row of {ours} is deleted"


def _bare(told: str, place: _Place) -> str:
    """Return a definition without our schema, which is the database's choice, and without what only affects space."""
    return re.sub(r" WITH \([^()]*\)", "", told.replace(place.prefix, "")).replace('"', "")


def _is_key(constraint: Constraint) -> bool:
    return isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)


def _constraint(constraint: Constraint) -> str:
    """Return a constraint as servers describe it."""
    table: Table = constraint.table
    if isinstance(constraint, CheckConstraint):
        terms = [f"({term})" for term in str(constraint.sqltext).split(" AND ")]
        return f"CHECK ({terms[0] if len(terms) == 1 else '(' + ' AND '.join(terms) + ')'})"
    if isinstance(constraint, ForeignKeyConstraint):
        there = ", ".join(element.column.name for element in constraint.elements)
        names = ", ".join(constraint.column_keys)
        return f"FOREIGN KEY ({names}) REFERENCES {constraint.referred_table.name}({there})"
    assert isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)
    names = ", ".join(column.name for column in constraint.columns)
    kind = "PRIMARY KEY" if isinstance(constraint, PrimaryKeyConstraint) else "UNIQUE"
    return f"{kind} ({names}) CREATE UNIQUE INDEX {constraint.name} ON {table.name} USING btree ({names})"


def _index(index: Index) -> str:
    """Return an index as servers describe it."""
    assert index.table is not None
    where = index.dialect_options["sqlite"]["where"]
    names = ", ".join(column.name for column in index.columns)
    unique = "UNIQUE " if index.unique else ""
    told = f"CREATE {unique}INDEX {index.name} ON {index.table.name} USING btree ({names})"
    return told if where is None else f"{told} WHERE ({where}::text)"


def _indexes(connection: Connection, place: _Place) -> Found:
    """Yield the indexes that belong to no key. An operator's own is on plain columns: it refuses nothing and runs
    nothing.
    """
    builtin = _EXTENSION.format("o", "pg_opclass")
    query = f"""SELECT r.relname, c.relname, concat_ws(' ', pg_get_indexdef(i.indexrelid),
      CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN '(not valid)' END),
      NOT (i.indisunique OR i.indisexclusion OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
        OR EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY(i.indclass)
          AND o.opcnamespace <> 'pg_catalog'::regnamespace AND NOT {builtin}))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class r ON r.oid = i.indrelid
    WHERE i.indrelid = ANY(:tables) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
      AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x'))"""
    wanted = {(table, str(index.name)): _index(index) for table in place.tables for index in _tables()[table].indexes}
    # one that took the place of a key is reported as the missing key
    keys = {(table, str(one.name)) for table in place.tables for one in _tables()[table].constraints if _is_key(one)}
    found = {
        (table, name): _bare(told, place)
        for table, name, told, plain in _rows(connection, query, place)
        if (table, name) in wanted or not (plain or (table, name) in keys)
    }
    yield from _compared("index", wanted, found)


# what must not be there at all: each query gives what its message names
_OTHERS = {
    "the trigger {} on {} was not created by this program": "SELECT t.tgname, c.relname, c.relname || '.' || t.tgname "
    "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgrelid = ANY(:every)",
    "the rule {} on {} was not created by this program": "SELECT r.rulename, c.relname FROM pg_rewrite r "
    "JOIN pg_class c ON c.oid = r.ev_class WHERE c.oid = ANY(:every) "
    "AND NOT (c.relkind = 'v' AND r.rulename = '_RETURN')",
    "the policy {} on {} may hide rows": "SELECT p.polname, c.relname FROM pg_policy p "
    "JOIN pg_class c ON c.oid = p.polrelid WHERE c.oid = ANY(:every)",
    "the table {} inherits from {}, and adds rows without guards": "SELECT inhrelid::regclass::text, c.relname "
    "FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent WHERE c.oid = ANY(:tables)",
    "the operator {} may stand in for one of PostgreSQL's own": "SELECT o.oid::regoperator::text FROM pg_operator o "
    "WHERE o.oprnamespace = ANY(:path) AND o.oprnamespace <> 'pg_catalog'::regnamespace "
    "AND o.oprname IN (SELECT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace) "
    f"AND NOT {_EXTENSION.format('o', 'pg_operator')}",
    "the function {} may stand in for one of PostgreSQL's own": "SELECT p.oid::regprocedure::text FROM pg_proc p "
    "WHERE p.pronamespace = ANY(:path) AND p.pronamespace <> 'pg_catalog'::regnamespace "
    "AND p.proname IN (SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace) "
    f"AND NOT {_EXTENSION.format('p', 'pg_proc')}",
    # those of the server itself have lower numbers
    "the cast from {} to {} may stand in for one of PostgreSQL's own": "SELECT format_type(c.castsource, NULL), "
    "format_type(c.casttarget, NULL) FROM pg_cast c JOIN pg_type s ON s.oid = c.castsource "
    "JOIN pg_type t ON t.oid = c.casttarget WHERE c.oid >= 16384 AND s.typnamespace = 'pg_catalog'::regnamespace "
    f"AND t.typnamespace = 'pg_catalog'::regnamespace AND NOT {_EXTENSION.format('c', 'pg_cast')}",
    # only if the search path names pg_catalog, and other schemas before it
    "{} may stand in for one of PostgreSQL's own": "SELECT told FROM (SELECT relname AS name, relnamespace AS space, "
    "oid::regclass::text AS told FROM pg_class UNION ALL SELECT typname, typnamespace, oid::regtype::text FROM pg_type "
    "WHERE typrelid = 0 AND typelem = 0) o WHERE array_position(CAST(:path AS oid[]), space) "
    "< array_position(CAST(:path AS oid[]), 'pg_catalog'::regnamespace::oid) AND name IN (SELECT relname FROM pg_class "
    "WHERE relnamespace = 'pg_catalog'::regnamespace UNION ALL SELECT typname FROM pg_type "
    "WHERE typnamespace = 'pg_catalog'::regnamespace)",
}  # fmt: skip


def _others(connection: Connection, place: _Place) -> Found:
    """Yield what can run on our tables, hide or add rows, or stand in for something, and is not ours."""
    triggers = {f"{_table_of(sql)}.{name}" for name, sql in POSTGRES_TRIGGERS.items()}
    for message, query in _OTHERS.items():
        for row in _rows(connection, query, place):
            if row[-1] not in triggers:
                yield message.format(*row)
    named = [row for row in _named(connection, place) if row.name in _FUNCTIONS]
    ours = set(_ours(named, place).values())
    for row in named:
        if row not in ours:
            yield f"the function {row.told} has the name of one of this program's"


def _named(connection: Connection, place: _Place) -> Sequence[Any]:
    """Return the functions in the search path with our names."""
    query = """SELECT proname AS name, pronamespace AS schema, oid::regprocedure::text AS told, prosrc AS body,
      pg_get_function_arguments(oid) AS arguments, proowner AS owner,
      CASE WHEN prokind IN ('f', 'w') THEN pg_get_functiondef(oid) ELSE '' END AS definition
    FROM pg_proc WHERE pronamespace = ANY(:path) AND proname = ANY(:functions) ORDER BY oid"""
    return _rows(connection, query, place)


def _ours(named: Sequence[Any], place: _Place) -> dict[str, Any]:
    """For each name the function that is ours: in our schema, with our arguments, if there is one."""
    wanted = {name: _described(sql) for name, sql in _FUNCTIONS.items()}
    fitting = sorted(
        named, key=lambda one: (one.schema != place.schema, one.arguments.split() != wanted[one.name][0].split())
    )
    return {one.name: one for one in reversed(fitting)}


def _functions(connection: Connection, place: _Place) -> dict[str, bool]:
    """Tell whether each of our functions is there and as this program makes it."""
    found = _ours(_named(connection, place), place)
    same = dict.fromkeys(_FUNCTIONS, False)
    for name, one in found.items():
        told = _described(one.definition.replace("OR REPLACE ", "", 1).replace(place.prefix, "", 1))
        wanted = _described(_FUNCTIONS[name])
        # the body as stored: in a definition it might end early
        same[name] = (*told[:-1], one.body) == wanted and (one.schema, one.owner) == (place.schema, place.owner)
    return same


_HEADER = re.compile(
    r"CREATE FUNCTION \w+\((.*?)\)\s+RETURNS\s+(\w+(?:\s*\(.*?\))?)\s+LANGUAGE\s+(\w+)(.*?)\s+AS\s+(\$\w*\$)(.*)\5",
    re.S,
)
_QUOTES = re.compile("['\" ]")
_SETTING = re.compile(r"\bSET (\w+) (?:=|TO) (.*?)(?= SET |$)")


def _described(definition: str) -> tuple[str, str, str, frozenset[str], str]:
    """Return a function's arguments, result, language, options and body; a server names the options that are not
    PostgreSQL's defaults.
    """
    match = _HEADER.match(definition)
    if match is None:
        return "", "", "", frozenset(), ""
    arguments, result, language, options, _, body = match.groups()
    options = " ".join(options.split())
    settings = [f"{name}={_QUOTES.sub('', value)}" for name, value in _SETTING.findall(options)]
    plain = _SETTING.sub("", options).strip()
    return " ".join(arguments.split()), re.sub(r"\s+", "", result), language, frozenset([*settings, plain]), body


def _views(connection: Connection, place: _Place, views: dict[str, str], whole: bool) -> Found:
    """Yield the views: what they select, how, and who owns them. If columns are missing they cannot be compared."""
    for name, oid in place.views.items():
        (wrong,) = connection.execute(
            text(_SEEN),
            {"view": oid, "every": [oid, *place.tables.values()], "owner": place.owner},
        ).all()
        told = [what for what, applies in zip(_SEEN_WRONGLY, wrong, strict=True) if applies]
        escaped = place.prefix.replace("\\", r"\\")
        # a view on something else is not planned: that would run what is in it
        if not told and whole:
            query = re.sub(r"\b(FROM|JOIN) (\w+)", rf"\1 {escaped}\2", views[name].partition(" AS")[2].strip())
            if not _selects(connection, name, oid, place, query):
                told = [DIFFERS]
        yield f"the view {name} {' and '.join(told)}" if told else None


# what a view must not be, each in a column of its own
_SEEN = """SELECT
  EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
    WHERE r.ev_class = :view AND NOT (d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY(:every))),
  c.reloptions IS NOT NULL,
  c.relowner <> :owner,
  EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = :view AND r.rulename = '_RETURN'
    AND r.ev_enabled NOT IN ('O', 'A')),
  EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = :view)
FROM pg_class c WHERE c.oid = :view"""
_SEEN_WRONGLY = (
    f"{DIFFERS}: it selects from something else, or runs something else",
    "has options of its own",
    "belongs to another role than the rest",
    "is switched off",
    "has defaults of its own",
)


def _selects(connection: Connection, name: str, view: int, place: _Place, query: str) -> bool:
    """Tell whether a view has a query's columns and the server would do the same for both: a view is nothing more."""
    attributes = text(
        "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = :view AND attnum > 0 ORDER BY attnum"
    )
    found = [tuple(row) for row in connection.execute(attributes, {"view": view})]
    wanted = connection.exec_driver_sql(f"SELECT * FROM ({query}) AS q LIMIT 0").cursor
    if wanted is None or found != [(one[0], one[1]) for one in wanted.description or ()]:
        return False
    explain = "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM {} AS q"
    plans = [
        connection.exec_driver_sql(explain.format(one)).scalars().all()
        for one in (f"{place.prefix}{name}", f"({query})")
    ]
    return plans[0] == plans[1]
