"""The guard goes by its own names, and looks at what type a value has, and at which game an event is about."""

from alembic import op

from ratings_ledger.ledger.store.guards import POSTGRES_FUNCTIONS, SQLITE_TRIGGERS

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        replacing = POSTGRES_FUNCTIONS["events_guard_insert"].replace(
            "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1
        )
        op.get_bind().exec_driver_sql(replacing.replace("%", "%%"))  # for the driver, a % stands for a value
        return
    op.execute("DROP TRIGGER events_guard_insert")
    op.get_bind().exec_driver_sql(SQLITE_TRIGGERS["events_guard_insert"])


def downgrade() -> None:
    """The guard stays: it refuses what the one before it did."""
