"""What the database holds besides the rows, compared with what this program itself would make: by reading it.

Each store reads its own. Anything that can run on our tables, hide rows or add some must not be there. Other tables and
views are an operator's own, and so are additional indexes of plain columns.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, inspect

from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.foreign import generated_objects
from ratings_ledger.ledger.store.schema import VIEWS_BY_DIALECT, metadata


def object_differences(connection: Connection) -> Iterator[str | None]:
    """None for every object that is as it should be, and what is wrong for every other one."""
    return dialect_of(connection).object_differences(connection, _views(connection))


def missing_views(connection: Connection) -> dict[str, str]:
    """Return the views that are gone, each with the statement that makes it."""
    found = inspect(connection).get_view_names()
    return {name: sql for name, sql in _views(connection).items() if name not in found}


def _views(connection: Connection) -> dict[str, str]:
    """Return the views that this program makes in such a database, and how."""
    views = {name: sql for (kind, _, name), sql in generated_objects("sqlite").items() if kind == "view"}
    dialect = dialect_of(connection)
    # stores have their own words for these: the migrations, which were just run, bring them along
    return {**views, "events_readable": dialect.READABLE_VIEW, **metadata.info[VIEWS_BY_DIALECT](dialect)}
