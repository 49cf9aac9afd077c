"""Declare the tables of generations and SQL history in the ledger's metadata, and views for BI tools.

All these tables can be dropped and rebuilt from the events.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from ratings_ledger.ledger.store.schema import VIEWS_BY_DIALECT, metadata
from ratings_ledger.projections.stored.views import build_history_views

# one row per generation, also of a deleted one while other generations use its builds; finished_at is empty while the
# rebuild runs, and once the generation is aborted, rolled back or deleted
generations = Table(
    "generations",
    metadata,
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("chain_hash", LargeBinary, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
)

# one row per ladder of a generation. `build` is the generation that computed the ladder; for a reused ladder it is an
# older generation. `built_at` is empty if the build is older than this column
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

# the standings; points are in units of 1/(scale * divisor); places and states are numbers joined by commas
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
    Column("state", Text),
)

# at most one row: the generation that readers see
live_generation = Table(
    "live_generation",
    metadata,
    Column("singleton", SmallInteger, primary_key=True, autoincrement=False),
    Column("generation", Integer, ForeignKey("generations.generation"), nullable=False),
    CheckConstraint("singleton = 1", name="one_row"),
)

# at most one row: the generation with a published SQL history, which readers see while that generation is live
live_history = Table(
    "live_history",
    metadata,
    Column("singleton", SmallInteger, primary_key=True, autoincrement=False),
    Column("generation", Integer, nullable=False),
    CheckConstraint("singleton = 1", name="one_row"),
)

# the parts of a generation: blocks of a ladder's changes, in order, or (with an empty `ladder`) of games. `part` is
# 2**32 times the generation that wrote the part, plus a number; generations share equal parts
history_parts = Table(
    "history_parts",
    metadata,
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("ladder", Text, primary_key=True),
    Column("block", Integer, primary_key=True, autoincrement=False),
    Column("part", BigInteger, nullable=False),
    Column("scale", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Index("history_parts_by_part", "part", "generation", unique=True),
)

# the changes by games and adjustments, in units of 1/scale; `position` is the position of the event
history_changes = Table(
    "history_changes",
    metadata,
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("player", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("place", Integer),
    Column("before", BigInteger, nullable=False),
    Column("change", BigInteger, nullable=False),
    Column("ruleset", Text),
    Index("history_changes_by_player", "player", "part"),
    sqlite_with_rowid=False,
)

# the current games; `position` is the position of the first record, and `more` holds members without a column, as JSON
history_games = Table(
    "history_games",
    metadata,
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("game_id", Text, nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("game", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("group_name", Text),
    Column("city", Text),
    Column("league", Text),
    Column("season", Text),
    Column("participants", Integer, nullable=False),
    Column("rated", Boolean, nullable=False),
    Column("aborted", Boolean, nullable=False),
    Column("more", Text),
    Index("history_games_by_game", "game_id"),
    sqlite_with_rowid=False,
)

# the participants of the current games, under their current ids; a score is kept as written
history_participants = Table(
    "history_participants",
    metadata,
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("game_id", Text, nullable=False),
    Column("player", Text, nullable=False),
    Column("place", Integer),
    Column("score", Text),
    Column("status", Text, nullable=False),
    Column("replaces", Text),
    Column("seat", Integer),
    Column("seconds_played", Integer),
    Column("more", Text),
    Index("history_participants_by_player", "player", "part"),
    Index("history_participants_by_game", "game_id"),
    sqlite_with_rowid=False,
)

metadata.info[VIEWS_BY_DIALECT] = build_history_views

VIEWS = {
    "live_ladders": """CREATE VIEW live_ladders AS
SELECT l.ladder, l.ruleset, l.games, l.players, l.position, l.digest
FROM generation_ladders l JOIN live_generation g ON l.generation = g.generation""",
    "live_standings": """CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / (l.scale * s.divisor) AS points, s.points AS points_units,
  l.scale * s.divisor AS scale, s.games, s.qualified, s.ordinal, s.gold, s.places, s.state
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation""",
}
