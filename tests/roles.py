"""Create the documented roles of a ledger in PostgreSQL by `ratings grants --sql`, with a prefix of their own."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import make_url

ROLE_NAMES = ("owner", "writer", "rebuilder", "reader", "dashboard")


class Roles(NamedTuple):
    """The URL of a ledger for each of its roles and for its administrator, and the prefix of the roles' names."""

    owner: str
    writer: str
    rebuilder: str
    reader: str
    dashboard: str
    prefix: str
    administrator: str

    def execute(self, *statements: str) -> None:
        """Run statements as the administrator; `ROLE_` stands for the prefix, `DATABASE_` for the database."""
        database = make_url(self.administrator).database or ""
        with psycopg.connect(self.administrator, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.replace("ROLE_", self.prefix).replace("DATABASE_", database))


@contextmanager
def create_documented_roles(ratings: Callable[..., Any], url: str) -> Iterator[Roles]:
    """Provide a ledger without events in an existing database, with the roles that `ratings grants` prints."""
    prefix = f"r{uuid.uuid4().hex[:8]}_"
    urls = [make_url(url).set(username=f"{prefix}{name}").render_as_string(hide_password=False) for name in ROLE_NAMES]
    roles = Roles(*urls, prefix, url)
    grants = ["grants", "--sql", "--prefix", prefix, "--as"]
    try:
        script = ratings(*grants, "administrator", db=url)
        assert (script.exit_code, script.stderr) == (0, "")
        # the database exists already
        ownership = ("ALTER DATABASE DATABASE_ OWNER TO ROLE_owner", "ALTER SCHEMA public OWNER TO ROLE_owner")
        roles.execute(*filter(None, (_list_statements_for_existing_database(script.stdout, ownership))))
        assert ratings("init", "--no-rules", db=roles.owner).exit_code == 0
        with psycopg.connect(roles.owner, autocommit=True) as owner:
            owner.execute(ratings(*grants, "owner", db=url).stdout)
        yield roles
    finally:
        for name in ROLE_NAMES:
            for statement in ("REASSIGN OWNED BY {} TO CURRENT_USER", "DROP OWNED BY {}", "DROP ROLE {}"):
                roles.execute(statement.format(f"{prefix}{name}"))


def _list_statements_for_existing_database(script: str, replacements: tuple[str, ...]) -> Iterator[str]:
    lines = "\n".join(line for line in script.splitlines() if not line.startswith("--"))
    for statement in map(str.strip, lines.split(";")):
        if statement.startswith("CREATE DATABASE"):
            yield from replacements
        else:
            yield statement
