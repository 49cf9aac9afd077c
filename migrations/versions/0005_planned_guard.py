"""Let PostgreSQL's functions plan their queries once, with indexes, instead of for every row."""

from alembic import op

from ratings_ledger.migrations.frozen import read_statements, replace_functions

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        replace_functions(read_statements("guards_{}", "function")["events_guard_insert"])
        replace_functions(*read_statements("guards_{}", "append").values())


def downgrade() -> None:
    """Keep the functions, because they do the same as the previous ones."""
