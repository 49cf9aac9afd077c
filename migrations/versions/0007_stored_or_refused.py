"""PostgreSQL's append of one event looks whether it is there, and whether a crash would keep it."""

from alembic import op

from ratings_ledger.ledger.store.guards import POSTGRES_APPEND

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for function in POSTGRES_APPEND.values():
            replacing = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
            op.get_bind().exec_driver_sql(replacing.replace("%", "%%"))  # for the driver, a % stands for a value


def downgrade() -> None:
    """The function stays: it does what the one before it did."""
