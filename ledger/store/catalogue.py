"""Compare the database catalogue with the objects that the migrations create.

An object is *unexpected* if this program does not define it so, and it could run code on, reject or hide rows of this
program's tables. Transactions that write to a ledger refuse such objects. The definitions are in `catalogue.json`,
which scripts/make_catalogue.py generates from the migrations. An operator may add tables, views and indexes of plain
columns.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect

from ratings_ledger.ledger.errors import NotALedger, OldSchema, StoreDamaged
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION, VIEWS_BY_DIALECT, metadata

# definitions by (kind, table, name)
Objects = dict[tuple[str, str, str], str]


@cache
def load_generated_objects(backend: str) -> Objects:
    """Return the objects that the migrations create in a store of this kind."""
    generated = json.loads((Path(__file__).parent / "catalogue.json").read_text())[backend]
    return {(kind, table, name): definition for kind, table, name, definition in generated}


def raise_on_difference(cursor: Any, differences: Iterable[str | None]) -> None:
    """Raise an error for the first difference: `StoreDamaged`, or `NotALedger` if another version made the schema.

    `differences` has a message for each object that differs, and None for each that matches.
    """
    difference = next(filter(None, differences), None)
    if difference is None:
        return
    revision = cursor.execute("SELECT version_num FROM alembic_version").fetchone()
    if revision is not None and revision[0] != SCHEMA_REVISION:
        message = f"the ledger has schema {revision[0]}, but this program needs {SCHEMA_REVISION}"
        if revision[0] < SCHEMA_REVISION:
            raise OldSchema(f"{message}; upgrade it with: ratings upgrade")
        raise NotALedger(f"{message}; a newer ratings-ledger made it: upgrade the program", "new-schema")
    raise StoreDamaged(f"nothing was written: {difference}; run: ratings verify")


def find_object_differences(connection: Connection) -> Iterator[str | None]:
    """Yield a message for each object that differs, and None for each that matches."""
    return dialect_of(connection).find_object_differences(connection, _list_views(connection))


def find_missing_views(connection: Connection) -> dict[str, str]:
    """Return the statements that create the missing views, by name."""
    present = inspect(connection).get_view_names()
    return {name: sql for name, sql in _list_views(connection).items() if name not in present}


def _list_views(connection: Connection) -> dict[str, str]:
    """Return the views that this program creates in a database of this kind, with their statements."""
    views = {name: sql for (kind, _, name), sql in load_generated_objects("sqlite").items() if kind == "view"}
    dialect = dialect_of(connection)
    # only the following views have SQL of their own in each store
    return {**views, "events_readable": dialect.READABLE_VIEW, **metadata.info[VIEWS_BY_DIALECT](dialect)}
