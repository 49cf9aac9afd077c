"""Limit the live pointer to one row, which must name an existing generation."""

import sqlalchemy as sa
from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

POINTER = (
    "SELECT 1, generation FROM live_generation "
    "WHERE singleton = 1 AND generation IN (SELECT generation FROM generations)"
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew(
            "live_generation_checked",
            sa.CheckConstraint("singleton = 1", name=op.f("live_generation_one_row")),
            sa.ForeignKeyConstraint(
                ["generation"], ["generations.generation"], name=op.f("live_generation_generation_exists")
            ),
        )
        return
    # change the table in place, because a new table would lose the rights that were granted on the old one
    op.execute(
        "DELETE FROM live_generation WHERE singleton <> 1 OR generation NOT IN (SELECT generation FROM generations)"
    )
    for name in ("live_generation_one_row", "live_generation_generation_exists"):
        op.execute(f"ALTER TABLE live_generation DROP CONSTRAINT IF EXISTS {name}")
    op.create_check_constraint(op.f("live_generation_one_row"), "live_generation", "singleton = 1")
    op.create_foreign_key(
        op.f("live_generation_generation_exists"), "live_generation", "generations", ["generation"], ["generation"]
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew("live_generation_unchecked")
        return
    op.drop_constraint(op.f("live_generation_generation_exists"), "live_generation")
    op.drop_constraint(op.f("live_generation_one_row"), "live_generation")


def _make_anew(name: str, *constraints: sa.Constraint) -> None:
    """Replace the table, because SQLite cannot add a constraint; keep its row if the generation exists."""
    views = read_statements("live_views", "view")
    for view in views:
        op.execute(f"DROP VIEW {view}")
    op.create_table(
        name,
        sa.Column("singleton", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("singleton", name=op.f("live_generation_pk")),
        *constraints,
    )
    op.execute(f"INSERT INTO {name} {POINTER}")
    op.drop_table("live_generation")
    op.rename_table(name, "live_generation")
    execute(*views.values())
