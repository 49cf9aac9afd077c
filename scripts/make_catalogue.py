"""Generate ledger/store/catalogue.json: the database objects that migrations create, and that every write checks.

For PostgreSQL, the script uses the server in RATINGS_TEST_POSTGRES, or starts one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from ratings_ledger.ledger.store import postgres_catalogue, sqlite
from ratings_ledger.ledger.store.catalogue import Objects
from ratings_ledger.ledger.store.migrations import make_tables
from ratings_ledger.ledger.store.opening import connect
from ratings_ledger.ledger.store.schema import metadata
from ratings_ledger.ledger.store.upgrading import upgrade

ROOT = Path(__file__).parents[1]
PATH = ROOT / "ledger/store/catalogue.json"


def read_sqlite_objects() -> list[list[str]]:
    """Return the objects of a new ledger in memory, without the guards, which are checked separately."""
    with create_engine("sqlite://").begin() as connection:
        make_tables(connection)
        cursor: Any = connection.connection.cursor()
        return _sorted({key: sql for key, sql in sqlite.read_objects(cursor).items() if key[0] != "trigger"})


def read_postgres_objects(url: str) -> list[list[str]]:
    """Return the objects of a fresh ledger in PostgreSQL."""
    tables = ["alembic_version", *metadata.tables]
    with connect(url).reading() as connection:
        return _sorted(postgres_catalogue.read_objects(connection.connection.cursor(), tables))


def _sorted(objects: Objects) -> list[list[str]]:
    return [[*key, definition] for key, definition in sorted(objects.items())]


def build_catalogue(url: str) -> str:
    """Return the text of the file, given an empty database."""
    upgrade(url)
    stores = {"sqlite": read_sqlite_objects(), "postgresql": read_postgres_objects(url)}
    lines = {name: ",\n".join(map(json.dumps, objects)) for name, objects in stores.items()}
    return "{" + ",\n".join(f'"{name}": [\n{objects}]' for name, objects in lines.items()) + "}\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    from stores import create_postgres_database, provide_postgres_server

    with provide_postgres_server() as server, create_postgres_database(server) as url:
        PATH.write_text(build_catalogue(url))
