"""PostgreSQL's functions plan their queries once, by the indexes, and not for every row."""

from alembic import op

from ratings_ledger.ledger.store.guards import POSTGRES_APPEND, POSTGRES_FUNCTIONS

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for function in (POSTGRES_FUNCTIONS["events_guard_insert"], *POSTGRES_APPEND.values()):
            replacing = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
            op.get_bind().exec_driver_sql(replacing.replace("%", "%%"))  # for the driver, a % stands for a value


def downgrade() -> None:
    """The functions stay: they do what those before them did."""
