"""Let PostgreSQL's append of one event check that the event is stored and would survive a crash."""

from ratings_ledger.migrations.frozen import read_statements, replace_functions

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    replace_functions(*read_statements("guards_{}", "append").values())


def downgrade() -> None:
    """Keep the function, because it also does what the previous one did."""
