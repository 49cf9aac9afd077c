"""PostgreSQL's append of one event looks whether it is there, and whether a crash would keep it."""

from ratings_ledger.migrations.frozen import replace_functions, statements

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    replace_functions(*statements("guards_{}", "append").values())


def downgrade() -> None:
    """The function stays: it does what the one before it did."""
