"""Create the log: the table of events with its guards, and the ledger's id."""

import uuid

import sqlalchemy as sa
from alembic import op

from ratings_ledger.migrations.frozen import execute, read_statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("position", POSITION, autoincrement=False, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.SmallInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_by", sa.Text(), nullable=False),
        sa.Column("supersedes", sa.Text(), nullable=True),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("chain_hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("position >= 1", name=op.f("events_position_counts_from_1")),
        sa.CheckConstraint(
            "length(leaf_hash) = 32 AND length(chain_hash) = 32", name=op.f("events_hashes_have_32_bytes")
        ),
        sa.ForeignKeyConstraint(["supersedes"], ["events.event_id"], name=op.f("events_supersedes_exists")),
        sa.PrimaryKeyConstraint("position", name=op.f("events_pk")),
        sa.UniqueConstraint("event_id", name=op.f("events_event_id_once")),
        sa.UniqueConstraint("supersedes", name=op.f("events_supersedes_once")),
    )
    op.create_index("events_by_type", "events", ["type", "schema_version"])
    op.create_index("events_by_subject", "events", ["subject"])
    recorded = sa.text("type = 'game.recorded'")
    op.create_index(
        "events_game_recorded_once",
        "events",
        ["subject"],
        unique=True,
        sqlite_where=recorded,
        postgresql_where=recorded,
    )
    identity = op.create_table(
        "ledger_identity",
        sa.Column("singleton", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("ledger_id", sa.Text(), nullable=False),
        sa.CheckConstraint("singleton = 1", name=op.f("ledger_identity_one_row")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("ledger_identity_pk")),
    )
    op.bulk_insert(identity, [{"singleton": 1, "ledger_id": str(uuid.uuid4())}])
    for kind in ("function", "guard", "view"):
        execute(*read_statements("guards_{}", kind).values())


def downgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT count(*) FROM events")).scalar_one():
        raise RuntimeError("the ledger holds events; a downgrade would destroy them and is refused")
    op.execute("DROP VIEW events_readable")
    op.drop_table("events")
    op.drop_table("ledger_identity")
    for name in read_statements("guards_{}", "function"):
        op.execute(f"DROP FUNCTION {name}()")
