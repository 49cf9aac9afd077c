"""What a SQLite file holds besides the rows: every table, index, trigger and view, compared by its definition."""

import re
from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, create_engine

from ledger.store.guards import SQLITE_TRIGGERS

Objects = dict[tuple[str, str], tuple[str, str | None]]
_ALL = "SELECT type, name, tbl_name, CAST(sql AS BLOB) FROM sqlite_master"


@cache
def made() -> Objects:
    """What the migrations make, tried in memory: by kind and name, the table that it is on and its definition."""
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


def object_differences(connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
    """None for every object that is as it should be, and what is wrong for every other one, leaving out the guards."""
    wanted, found = made(), _found(connection)
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
