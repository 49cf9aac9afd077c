"""What the database holds besides the rows, compared with what this program itself would make: by reading it.

In SQLite that is every table, index, trigger and view, by its definition; `postgres_catalogue` reads PostgreSQL's.
Anything else that can run on our tables, hide rows or add some must not be there. Other tables and views are an
operator's own, and so are additional indexes of plain columns.
"""

import re
from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, create_engine, inspect

from ledger.store import postgres_catalogue
from ledger.store.guards import POSTGRES_VIEW, SQLITE_TRIGGERS
from ledger.store.schema import POSTGRES_VIEWS, metadata

Objects = dict[tuple[str, str], tuple[str, str | None]]
_ALL = "SELECT type, name, tbl_name, CAST(sql AS BLOB) FROM sqlite_master"


def object_differences(connection: Connection) -> Iterator[str | None]:
    """None for every object that is as it should be, and what is wrong for every other one."""
    if connection.dialect.name == "sqlite":
        yield from _sqlite(connection)
        return
    yield from postgres_catalogue.postgres_differences(
        connection, {name: _select(sql) for name, sql in _views(connection)}
    )


def missing_views(connection: Connection) -> dict[str, str]:
    """The views that are gone, each with the statement that makes it."""
    found = inspect(connection).get_view_names()
    return {name: sql for name, sql in _views(connection) if name not in found}


def _views(connection: Connection) -> Iterator[tuple[str, str]]:
    """The views that this program makes in such a database, and how."""
    wanted = _wanted()
    # PostgreSQL has its own versions of these: the migrations, which were just run, bring them along
    own = {"events_readable": POSTGRES_VIEW, **metadata.info[POSTGRES_VIEWS]}
    words = own if connection.dialect.name == "postgresql" else {}
    for (kind, name), (_, sql) in wanted.items():
        if kind == "view":
            yield name, words.get(name, str(sql))


@cache
def _wanted() -> Objects:
    """What the migrations make in SQLite."""
    from ledger.store.migrations import make_tables  # only here: alembic takes long to load

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
    named = {name.lower(): kind for kind, name in found}
    for kind, name in wanted:
        table, sql = wanted[kind, name]
        if name in SQLITE_TRIGGERS or (kind == "index" and ("table", table) not in found):
            continue  # the guards are findings of their own, and a missing table's indexes are missing, too
        if (kind, name) not in found:
            yield f"the {kind} {name} is missing" + (f"; a {named[name]} has its name" if name in named else "")
        else:
            same = found[kind, name] == (table, sql)
            yield None if same else f"the {kind} {name} is not as this program makes it"
    # SQLite compares table names without regard to case, and keeps a name as it was written
    tables = {name.lower() for kind, name in wanted if kind in ("table", "view")}
    for kind, name in sorted(found.keys() - wanted.keys()):
        table, sql = found[kind, name]
        ours = table.lower() in tables
        if kind == "trigger" and (ours or not tables.isdisjoint(_WORD.findall(str(sql).lower()))):
            yield f"the trigger {name} on {table} is none of this program's"
        elif kind == "index" and ours and not _plain(str(sql)):
            yield f"the index {name} on {table} is none of this program's"
    for name, table in connection.exec_driver_sql(_REFERENCES):
        if ("table", name) not in wanted and str(table).lower() in tables - _NEVER_CHANGED:
            yield f"a reference of {name} runs whenever a row of {table} goes"


_WORD = re.compile(r"\w+")
_REFERENCES = """SELECT DISTINCT m.name, f."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' ORDER BY 1, 2"""
# rows of these tables never go, so no reference to them ever runs
_NEVER_CHANGED = {name.partition("_refuse_")[0] for name in SQLITE_TRIGGERS if "_refuse_" in name}


def _plain(sql: str) -> bool:
    """Whether an index is on plain columns, so that it refuses nothing and runs nothing."""
    return bool(re.fullmatch(r"[^()]*\([^()]*\)\s*", sql)) and not re.search(r"\bUNIQUE\b", sql, re.IGNORECASE)


def _select(sql: str | None) -> str:
    """What a view selects."""
    return str(sql).partition(" AS")[2].strip()
