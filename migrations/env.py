"""Alembic's entry point: run the migrations on the connection from `ledger.store.migrations`, else on RATINGS_DB."""

import os

from alembic import context
from sqlalchemy import Connection

import ratings_ledger.projections.stored.schema  # noqa: F401  (declares its tables in the same metadata)
from ratings_ledger.ledger.store.opening import connect
from ratings_ledger.ledger.store.schema import metadata


def run_migrations(connection: Connection) -> None:
    """Run the migrations in one transaction on a connection."""
    # alembic does not assume that SQLite can roll back changes of tables; but it can
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


if (given_connection := context.config.attributes.get("connection")) is not None:
    run_migrations(given_connection)
else:
    with connect(os.environ.get("RATINGS_DB", "sqlite:///ratings.db"), create=True).writing() as new_connection:
        run_migrations(new_connection)
