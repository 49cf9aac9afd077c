"""Declare the tables of a ledger, except those of stored standings.

The migrations create the tables, and a test compares them with this module.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

# the number of the newest migration; `ratings upgrade` runs the migrations that a ledger lacks
SCHEMA_REVISION = "0012"

# the query for the head, as plain SQL, because every append runs it and SQLAlchemy would be slow
HEAD_QUERY = "SELECT position, chain_hash, recorded_at FROM events ORDER BY position DESC LIMIT 1"

# only an INTEGER becomes SQLite's rowid; it has 64 bits, too
Position = BigInteger().with_variant(Integer(), "sqlite")

# the key in `metadata.info` of a function that returns the views whose SQL differs between stores, by name
VIEWS_BY_DIALECT = "views by dialect"

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_name)s_once",
        "fk": "%(table_name)s_%(column_0_name)s_exists",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)

events = Table(
    "events",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=False),
    Column("event_id", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("schema_version", SmallInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("recorded_by", Text, nullable=False),
    Column("supersedes", Text, ForeignKey("events.event_id"), unique=True),
    Column("record", Text, nullable=False),
    Column("leaf_hash", LargeBinary, nullable=False),
    Column("chain_hash", LargeBinary, nullable=False),
    CheckConstraint("position >= 1", name="position_counts_from_1"),
    CheckConstraint("length(leaf_hash) = 32 AND length(chain_hash) = 32", name="hashes_have_32_bytes"),
    Index("events_by_type", "type", "schema_version"),
    Index("events_by_subject", "subject"),
    Index(
        "events_game_recorded_once",
        "subject",
        unique=True,
        # the migration gives PostgreSQL the same condition; declared here, it would load SQLAlchemy's dialect for
        # PostgreSQL in every command
        sqlite_where=text("type = 'game.recorded'"),
    ),
)

# one row: the random id that identifies this ledger
ledger_identity = Table(
    "ledger_identity",
    metadata,
    Column("singleton", SmallInteger, primary_key=True, autoincrement=False),
    Column("ledger_id", Text, nullable=False),
    CheckConstraint("singleton = 1", name="one_row"),
)

# one row per run of a maintenance job (see runs.py), not part of the log. `result` is empty while the job runs;
# `finished_at` stays empty if the job is killed; `details` is a JSON object
job_runs = Table(
    "runs",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("result", Text),
    Column("message", Text),
    Column("position", BigInteger),
    Column("run_by", Text, nullable=False),
    Column("process", Text, nullable=False),
    Column("details", Text),
    CheckConstraint("(finished_at IS NULL) OR (result IS NOT NULL)", name="end_with_a_result"),
)
