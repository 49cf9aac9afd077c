"""Create the tables of stored standings in generations, and the views over the live generation."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# the views as they were at this migration
VIEWS = {
    "live_ladders": """CREATE VIEW live_ladders AS
SELECT l.ladder, l.ruleset, l.games, l.players, l.position, l.digest
FROM generation_ladders l JOIN live_generation g ON l.generation = g.generation""",
    "live_standings": """CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / l.scale AS points, s.points AS points_units, l.scale AS scale,
  s.games, s.qualified, s.ordinal
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation""",
}


def upgrade() -> None:
    op.create_table(
        "generations",
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("chain_hash", sa.LargeBinary(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("generation", name=op.f("generations_pk")),
    )
    op.create_table(
        "generation_ladders",
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ladder", sa.Text(), nullable=False),
        sa.Column("build", sa.Integer(), nullable=False),
        sa.Column("ruleset", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("chain_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scale", sa.Integer(), nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("players", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("generation", "ladder", name=op.f("generation_ladders_pk")),
    )
    op.create_table(
        "generation_standings",
        sa.Column("build", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ladder", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("qualified", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("build", "ladder", "ordinal", name=op.f("generation_standings_pk")),
    )
    op.create_table(
        "live_generation",
        sa.Column("singleton", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("singleton", name=op.f("live_generation_pk")),
    )
    for view in VIEWS.values():
        op.execute(view)


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
    for table in ("live_generation", "generation_standings", "generation_ladders", "generations"):
        op.drop_table(table)
