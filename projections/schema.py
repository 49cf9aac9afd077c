"""The tables of the generations, declared in the ledger's metadata; the views over them are for BI tools.

All of it can be dropped and rebuilt from the events.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from ledger.schema import metadata

# one row per rebuild; finished_at is empty while it runs or if it was cut off
generations = Table(
    "generations",
    metadata,
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("chain_hash", LargeBinary, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
)

# one row per ladder of a generation; `build` is the generation that computed it, an older one where a rule failed;
# `built_at` is empty where that was before the column was there
generation_ladders = Table(
    "generation_ladders",
    metadata,
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("ladder", Text, primary_key=True),
    Column("build", Integer, nullable=False),
    Column("ruleset", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("chain_hash", LargeBinary, nullable=False),
    Column("scale", Integer, nullable=False),
    Column("games", Integer, nullable=False),
    Column("players", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("built_at", BigInteger),
)

# the standings; points in units of 1/(scale * divisor); places as text, joined by commas
generation_standings = Table(
    "generation_standings",
    metadata,
    Column("build", Integer, primary_key=True, autoincrement=False),
    Column("ladder", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("rank", Integer),
    Column("player", Text, nullable=False),
    Column("points", BigInteger, nullable=False),
    Column("games", Integer, nullable=False),
    Column("qualified", Boolean, nullable=False),
    Column("divisor", Integer, nullable=False, server_default="1"),
    Column("gold", Integer),
    Column("places", Text),
)

# one row at most: the generation that readers see
live_generation = Table(
    "live_generation",
    metadata,
    Column("singleton", SmallInteger, primary_key=True, autoincrement=False),
    Column("generation", Integer, ForeignKey("generations.generation"), nullable=False),
    CheckConstraint("singleton = 1", name="one_row"),
)

VIEWS = {
    "live_ladders": """CREATE VIEW live_ladders AS
SELECT l.ladder, l.ruleset, l.games, l.players, l.position, l.digest
FROM generation_ladders l JOIN live_generation g ON l.generation = g.generation""",
    "live_standings": """CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / (l.scale * s.divisor) AS points, s.points AS points_units,
  l.scale * s.divisor AS scale, s.games, s.qualified, s.ordinal, s.gold, s.places
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation""",
}
