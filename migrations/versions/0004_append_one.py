"""PostgreSQL appends one plain event in one statement."""

from alembic import op

from ratings_ledger.ledger.store.guards import POSTGRES_APPEND

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in POSTGRES_APPEND.values():
            op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in POSTGRES_APPEND:
            op.execute(f"DROP FUNCTION {name}")
