"""The database's catalogue, compared with the objects that this program makes.

An object is foreign if it could run code, refuse rows or hide rows on our tables, and
differs from this program's definition.
Every write transaction compares the catalogue with `catalogue.json`, which scripts/make_catalogue.py generates from the
migrations. Each store reads its own part. An operator's own tables, views and indexes of plain columns are allowed.
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

# by kind, table and name: the definition
Objects = dict[tuple[str, str, str], str]


@cache
def generated_objects(backend: str) -> Objects:
    """Return the objects that the migrations make in a store of this kind."""
    generated = json.loads((Path(__file__).parent / "catalogue.json").read_text())[backend]
    return {(kind, table, name): definition for kind, table, name, definition in generated}


def refuse_difference(cursor: Any, differences: Iterable[str | None]) -> None:
    """Raise `StoreDamaged` for the first difference, if there is one; `NotALedger` if the ledger was upgraded."""
    difference = next(filter(None, differences), None)
    if difference is None:
        return
    revision = cursor.execute("SELECT version_num FROM alembic_version").fetchone()
    if revision is not None and revision[0] != SCHEMA_REVISION:
        differs = f"the ledger has schema {revision[0]}, but this program needs {SCHEMA_REVISION}"
        if revision[0] < SCHEMA_REVISION:
            raise OldSchema(f"{differs}; upgrade it with: ratings upgrade")
        raise NotALedger(f"{differs}; a newer ratings-ledger made it", "new-schema")
    raise StoreDamaged(f"nothing was written: {difference}; run: ratings verify")


def object_differences(connection: Connection) -> Iterator[str | None]:
    """Yield None for every object that is as it should be, and a message for every other one."""
    return dialect_of(connection).object_differences(connection, _views(connection))


def missing_views(connection: Connection) -> dict[str, str]:
    """Return the missing views, each with the statement that creates it."""
    present = inspect(connection).get_view_names()
    return {name: sql for name, sql in _views(connection).items() if name not in present}


def _views(connection: Connection) -> dict[str, str]:
    """Return the views that this program creates in such a database, with their statements."""
    views = {name: sql for (kind, _, name), sql in generated_objects("sqlite").items() if kind == "view"}
    dialect = dialect_of(connection)
    # each store has its own SQL for these
    return {**views, "events_readable": dialect.READABLE_VIEW, **metadata.info[VIEWS_BY_DIALECT](dialect)}
