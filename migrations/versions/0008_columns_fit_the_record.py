"""Let the guard compare the columns of a row with its record, and refuse rows dated more than a day ahead."""

from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements, replace_functions

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        replace_functions(read_statements("guards_{}", "function")["events_guard_insert"])
        return
    op.execute("DROP TRIGGER events_guard_insert")
    execute(read_statements("guards_{}", "guard")["events_guard_insert"])


def downgrade() -> None:
    """Keep the guard, because it also refuses what the previous one refused."""
