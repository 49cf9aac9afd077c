"""Create the table of job runs, and store when each ladder was built."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    if "built_at" not in {column["name"] for column in there.get_columns("generation_ladders")}:
        op.add_column("generation_ladders", sa.Column("built_at", sa.BigInteger()))
    if there.has_table("runs"):
        return
    op.create_table(
        "runs",
        sa.Column("run", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("result", sa.Text()),
        sa.Column("message", sa.Text()),
        sa.Column("position", sa.BigInteger()),
        sa.Column("run_by", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("details", sa.Text()),
        sa.PrimaryKeyConstraint("run", name=op.f("runs_pk")),
        sa.CheckConstraint("(finished_at IS NULL) OR (result IS NOT NULL)", name=op.f("runs_end_with_a_result")),
    )


def downgrade() -> None:
    op.drop_table("runs")
    op.drop_column("generation_ladders", "built_at")
