"""PostgreSQL's guard of the log plans its query once, not for every row."""

from alembic import op

from ledger.guards import POSTGRES_FUNCTIONS

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        guard = POSTGRES_FUNCTIONS["events_guard_insert"].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
        op.get_bind().exec_driver_sql(guard.replace("%", "%%"))  # for the driver, a % stands for a value


def downgrade() -> None:
    """The guard stays: it refuses what the one before it refused."""
