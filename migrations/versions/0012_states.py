"""Add a column to the stored standings for the other numbers that rules keep about players."""

import sqlalchemy as sa
from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("generation_standings")}
    if "state" not in columns:
        op.add_column("generation_standings", sa.Column("state", sa.Text(), nullable=True))
    view = read_statements("states", "view")["live_standings"]
    if op.get_bind().dialect.name == "postgresql":
        # replace the view instead of dropping it, so that it keeps the rights that were granted on it
        execute(view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
        execute(*read_statements("states", "comment").values())
        return
    op.execute("DROP VIEW live_standings")
    execute(view)


def downgrade() -> None:
    op.execute("DROP VIEW live_standings")
    op.drop_column("generation_standings", "state")
    execute(read_statements("live_views", "view")["live_standings"])
