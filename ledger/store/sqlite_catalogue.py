"""What a SQLite file holds besides the rows: every table, index, trigger and view, compared by its definition."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.store.catalogue import Objects, generated_objects, refuse_difference
from ratings_ledger.ledger.store.guards import SQLITE_TRIGGERS

_ALL = "SELECT type, tbl_name, name, CAST(sql AS BLOB) FROM sqlite_master"
# the rows of the catalogue that was last compared without a difference
_compared: list[Sequence[Any]] = [()]


def read_objects(cursor: Any) -> Objects:
    """Return every object of the file."""
    return _objects(cursor.execute(_ALL).fetchall())


def _objects(rows: Sequence[Any]) -> Objects:
    return {
        (kind, table, name): "" if sql is None else bytes(sql).decode("utf-8", "backslashreplace")
        for kind, table, name, sql in rows
    }


def refuse_foreign_objects(cursor: Any) -> None:
    """Raise `StoreDamaged` if anything but this program's objects could run, refuse or hide something on its tables.

    SQLite runs what it has parsed, and parses the schema again as soon as it changes: while this connection writes,
    nobody else can change it.
    """
    rows = cursor.execute(_ALL).fetchall()
    if rows != _compared[0]:
        refuse_difference(cursor, (f"the guard {name} is missing or altered" for name in altered_guards(cursor)))
        refuse_difference(cursor, _differences(cursor, _objects(rows), all_objects=False))
        _compared[0] = rows


def altered_guards(cursor: Any) -> list[str]:
    """Return the triggers that are absent or not what the migrations installed."""
    triggers = {name: sql for (kind, _, name), sql in read_objects(cursor).items() if kind == "trigger"}
    return sorted(name for name, sql in SQLITE_TRIGGERS.items() if triggers.get(name) != sql)


def object_differences(connection: Connection, views: dict[str, str]) -> Iterator[str | None]:
    """None for every object that is as it should be, and what is wrong for every other one, leaving out the guards."""
    cursor: Any = connection.connection.cursor()
    yield from _differences(cursor, read_objects(cursor), all_objects=True)


def _differences(cursor: Any, found: Objects, all_objects: bool) -> Iterator[str | None]:
    """Compare the objects, and name triggers, indexes and references that are not this program's.

    Without `all_objects` leave out views and plain indexes: their absence lets nothing run, and refuses nothing.
    """
    generated = generated_objects("sqlite")
    tables = {table.lower() for _, table, _ in generated}
    wanted = {
        (kind, name): (table, sql)
        for (kind, table, name), sql in generated.items()
        if all_objects or kind == "table" or (kind == "index" and not _plain(sql))
    }
    kinds_by_name = {name.lower(): kind for kind, _, name in found}
    definitions = {(kind, name): (table, sql) for (kind, table, name), sql in found.items()}
    for kind, name in wanted:
        if kind == "index" and ("table", wanted[kind, name][0]) not in definitions:
            continue  # a missing table's indexes are missing, too
        if (kind, name) not in definitions:
            instead = f"; a {kinds_by_name[name]} has its name" if name in kinds_by_name else ""
            yield f"the {kind} {name} is missing{instead}"
        else:
            same = definitions[kind, name] == wanted[kind, name]
            yield None if same else f"the {kind} {name} is not as this program makes it"
    # SQLite compares table names without regard to case, and keeps a name as it was written
    for kind, name in sorted(definitions.keys() - wanted.keys()):
        table, sql = definitions[kind, name]
        ours = table.lower() in tables
        if kind == "trigger" and name not in SQLITE_TRIGGERS:
            if ours or not tables.isdisjoint(_WORD.findall(sql.lower())):
                yield f"the trigger {name} on {table} is none of this program's"
        elif kind == "index" and ours and not _plain(sql):
            yield f"the index {name} on {table} is none of this program's"
    own_tables = {name for kind, _, name in generated if kind == "table"}
    for name, table in cursor.execute(_REFERENCES).fetchall():
        if name not in own_tables and str(table).lower() in tables - _NEVER_CHANGED:
            yield f"a reference of {name} runs whenever a row of {table} goes"


_WORD = re.compile(r"\w+")
_REFERENCES = """SELECT DISTINCT m.name, f."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' ORDER BY 1, 2"""
# rows of these tables never go, so no reference to them ever runs
_NEVER_CHANGED = {name.partition("_refuse_")[0] for name in SQLITE_TRIGGERS if "_refuse_" in name}


def _plain(sql: str) -> bool:
    """Tell whether an index is on plain columns, so that it refuses nothing and runs nothing."""
    return bool(re.fullmatch(r"[^()]*\([^()]*\)\s*", sql)) and not re.search(r"\bUNIQUE\b", sql, re.IGNORECASE)
