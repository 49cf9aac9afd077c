"""Which of the two stores it is: what differs between them is in the modules `sqlite` and `postgres`."""

from types import ModuleType

from sqlalchemy import Connection

from ledger.store import postgres, sqlite


def dialect_named(name: str) -> ModuleType:
    """The module for a backend by SQLAlchemy's name, `sqlite` or `postgresql`."""
    return sqlite if name == "sqlite" else postgres


def dialect_of(connection: Connection) -> ModuleType:
    """The module `sqlite` or `postgres` that a connection belongs to."""
    return dialect_named(connection.dialect.name)
