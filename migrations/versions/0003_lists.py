"""Add the columns of lists to the stored standings: the divisor of means, gold, and the places of a year."""

import sqlalchemy as sa
from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

PREVIOUS_LIVE_STANDINGS_VIEW = """CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / l.scale AS points, s.points AS points_units, l.scale AS scale,
  s.games, s.qualified, s.ordinal
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation"""


def upgrade() -> None:
    op.execute("DROP VIEW live_standings")
    op.add_column("generation_standings", sa.Column("divisor", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("generation_standings", sa.Column("gold", sa.Integer(), nullable=True))
    op.add_column("generation_standings", sa.Column("places", sa.Text(), nullable=True))
    execute(read_statements("live_views", "view")["live_standings"])


def downgrade() -> None:
    op.execute("DROP VIEW live_standings")
    for name in ("places", "gold", "divisor"):
        op.drop_column("generation_standings", name)
    op.execute(PREVIOUS_LIVE_STANDINGS_VIEW)
