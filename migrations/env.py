"""Alembic's way into the migrations, on the connection that `ledger.store.upgrading` hands over, else on RATINGS_DB."""

import os

from alembic import context
from sqlalchemy import Connection

import ratings_ledger.projections.stored.schema  # noqa: F401  (declares its tables in the same metadata)
from ratings_ledger.ledger.store.opening import connect
from ratings_ledger.ledger.store.schema import metadata


def migrate(connection: Connection) -> None:
    # SQLite can roll back DDL, so a migration is whole or absent on both stores
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    migrate(given)
else:
    with connect(os.environ.get("RATINGS_DB", "sqlite:///ratings.db"), create=True).writing() as opened:
        migrate(opened)
