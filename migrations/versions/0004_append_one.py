"""Add a function with which PostgreSQL appends one plain event in one statement."""

from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    execute(*read_statements("guards_{}", "append").values())


def downgrade() -> None:
    for name in read_statements("guards_{}", "append"):
        op.execute(f"DROP FUNCTION {name}")
