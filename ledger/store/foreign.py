"""Foreign objects: whatever could run, refuse or hide something on our tables and is not as this program makes it.

Every write transaction compares the database's catalogue with `catalogue.json`, which scripts/make_catalogue.py
generates from the migrations. An operator's own tables, views and plain indexes are allowed.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ratings_ledger.ledger.errors import NotALedger, StoreDamaged
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

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
        reason = "new-schema" if revision[0] > SCHEMA_REVISION else "old-schema"
        raise NotALedger(f"the ledger has schema {revision[0]}, this program needs {SCHEMA_REVISION}", reason)
    raise StoreDamaged(f"nothing was written: {difference}; see: ratings verify")
