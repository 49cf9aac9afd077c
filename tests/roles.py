"""The documented roles of a ledger in PostgreSQL, made as `ratings grants --sql` says, under names of their own."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import make_url

NAMES = ("owner", "writer", "rebuilder", "reader", "dashboard")


class Roles(NamedTuple):
    """The URLs of one ledger for each of its roles, what their names begin with, and its administrator's URL."""

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
def documented_roles(ratings: Callable[..., Any], url: str) -> Iterator[Roles]:
    """A ledger without events in a database that there is, its roles made as the program says."""
    prefix = f"r{uuid.uuid4().hex[:8]}_"
    urls = [make_url(url).set(username=f"{prefix}{name}").render_as_string(hide_password=False) for name in NAMES]
    roles = Roles(*urls, prefix, url)
    told = ["grants", "--sql", "--prefix", prefix, "--as"]
    try:
        made = ratings(*told, "administrator", db=url)
        assert (made.exit_code, made.stderr) == (0, "")
        # the database is there already
        own = ("ALTER DATABASE DATABASE_ OWNER TO ROLE_owner", "ALTER SCHEMA public OWNER TO ROLE_owner")
        roles.execute(*filter(None, (_without_create_database(made.stdout, own))))
        assert ratings("init", "--no-rules", db=roles.owner).exit_code == 0
        with psycopg.connect(roles.owner, autocommit=True) as owner:
            owner.execute(ratings(*told, "owner", db=url).stdout)
        yield roles
    finally:
        for name in NAMES:
            for what in ("REASSIGN OWNED BY {} TO CURRENT_USER", "DROP OWNED BY {}", "DROP ROLE {}"):
                roles.execute(what.format(f"{prefix}{name}"))


def _without_create_database(script: str, instead: tuple[str, ...]) -> Iterator[str]:
    lines = "\n".join(line for line in script.splitlines() if not line.startswith("--"))
    for statement in map(str.strip, lines.split(";")):
        if statement.startswith("CREATE DATABASE"):
            yield from instead
        else:
            yield statement
