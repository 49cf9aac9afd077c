"""Create the tables of the SQL history (changes, games, participants) and their views; add comments to all views."""

import sqlalchemy as sa
from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLES = ("live_history", "history_parts", "history_changes", "history_games", "history_participants")
INDEXES = {
    "history_changes_by_player": ("history_changes", ["player", "part"]),
    "history_games_by_game": ("history_games", ["game_id"]),
    "history_participants_by_player": ("history_participants", ["player", "part"]),
    "history_participants_by_game": ("history_participants", ["game_id"]),
}


def upgrade() -> None:
    _make_tables()
    op.create_index(
        "history_parts_by_part", "history_parts", ["part", "generation"], unique=True, if_not_exists=True
    )  # fmt: skip
    for name, (table, columns) in INDEXES.items():
        op.create_index(name, table, columns, if_not_exists=True)
    for name, view in read_statements("history_{}", "view").items():
        op.execute(f"DROP VIEW IF EXISTS {name}")
        execute(view)
    if op.get_bind().dialect.name == "postgresql":
        _grant()
        execute(*read_statements("history_{}", "comment").values())


def _make_tables() -> None:
    op.create_table(
        "live_history",
        sa.Column("singleton", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.CheckConstraint("singleton = 1", name=op.f("live_history_one_row")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("live_history_pk")),
        if_not_exists=True,
    )
    op.create_table(
        "history_parts",
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ladder", sa.Text(), nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), nullable=False),
        sa.Column("scale", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("generation", "ladder", "block", name=op.f("history_parts_pk")),
        if_not_exists=True,
    )
    op.create_table(
        "history_changes",
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("before", sa.BigInteger(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=False),
        sa.Column("ruleset", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("part", "ordinal", name=op.f("history_changes_pk")),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_table(
        "history_games",
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("game_id", sa.Text(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("game", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("city", sa.Text(), nullable=True),
        sa.Column("league", sa.Text(), nullable=True),
        sa.Column("season", sa.Text(), nullable=True),
        sa.Column("participants", sa.Integer(), nullable=False),
        sa.Column("rated", sa.Boolean(), nullable=False),
        sa.Column("aborted", sa.Boolean(), nullable=False),
        sa.Column("more", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("part", "position", name=op.f("history_games_pk")),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_table(
        "history_participants",
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("game_id", sa.Text(), nullable=False),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("score", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("replaces", sa.Text(), nullable=True),
        sa.Column("seat", sa.Integer(), nullable=True),
        sa.Column("seconds_played", sa.Integer(), nullable=True),
        sa.Column("more", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("part", "position", "number", name=op.f("history_participants_pk")),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )


def _grant() -> None:
    """Grant on these tables the rights that roles have on the stored standings; rebuilds write to all of them."""
    granted = sa.text(
        "SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, "
        "a.privilege_type FROM pg_class c, aclexplode(c.relacl) a "
        "WHERE c.oid = 'generation_standings'::regclass AND a.grantee <> c.relowner "
        "AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')"
    )
    for role, right in op.get_bind().execute(granted).all():
        op.execute(f"GRANT {right} ON {', '.join(('runs', *TABLES))} TO {role}")


def downgrade() -> None:
    for name in read_statements("history_{}", "view"):
        op.execute(f"DROP VIEW {name}")
    for table in reversed(TABLES):
        op.drop_table(table)
