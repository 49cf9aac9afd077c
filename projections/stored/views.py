"""Define the SQL views over the live generation and its history, and the meaning of all views and their columns.

The views over the live generation have the same columns in both stores, so that a query fits both. Only truth values
and times differ: PostgreSQL has `boolean` and `timestamp with time zone`; SQLite has 0 and 1, and a text in the form of
records, 2024-03-01T19:30:00.000000Z, whose order is that of the times.
"""

from ratings_ledger.ledger.store.dialect import Dialect


def build_history_views(dialect: Dialect) -> dict[str, str]:
    """Return the statements that create `live_info` and the views of the SQL history, by name."""
    instant = dialect.sql_instant
    # a subquery, because for a join the server would assume that the two tables, which have one row each, are long
    live = (
        "JOIN history_parts p ON p.part = r.part AND p.generation = (SELECT h.generation FROM live_history h\n"
        "  JOIN live_generation g ON g.generation = h.generation)"
    )
    return {
        "live_info": f"""CREATE VIEW live_info AS
SELECT n.generation, {instant("n.finished_at")} AS built_at, n.position,
  {dialect.sql_head("n")} AS head,
  h.generation IS NOT NULL AS history
FROM live_generation g
JOIN generations n ON n.generation = g.generation
LEFT JOIN live_history h ON h.generation = g.generation""",
        "live_changes": f"""CREATE VIEW live_changes AS
SELECT p.ladder, r.ordinal, r.player, {instant("r.occurred_at")} AS occurred_at, r.position, e.event_id,
  CASE WHEN r.ruleset IS NOT NULL THEN substr(e.subject, 6) END AS game_id, r.place,
  r.before * 1.0 / p.scale AS before, r.change * 1.0 / p.scale AS change,
  (r.before + r.change) * 1.0 / p.scale AS after,
  r.before AS before_units, r.change AS change_units, r.before + r.change AS after_units, p.scale, r.ruleset
FROM history_changes r
{live}
LEFT JOIN events e ON e.position = r.position""",
        "live_games": f"""CREATE VIEW live_games AS
SELECT r.game_id, r.position, {instant("r.occurred_at")} AS occurred_at, r.game, r.kind, r.group_name, r.city,
  r.league, r.season, r.participants, r.rated, r.aborted, r.more
FROM history_games r
{live}""",
        "live_participants": f"""CREATE VIEW live_participants AS
SELECT r.game_id, r.position, r.number, r.player, r.place, CAST(r.score AS numeric) AS score, r.status, r.replaces,
  r.seat, r.seconds_played, r.more
FROM history_participants r
{live}""",
    }


_RULESET = "the version of the ruleset, such as catan-elo@2009-01"
_SCALE = "units per point"

# the meaning of each view's rows, and the meaning and unit of each column, for docs/sql.md. A migration has stored the
# same texts as comments in PostgreSQL, so a change of a text needs a new migration
MEANINGS: dict[str, tuple[str, dict[str, str]]] = {
    "live_info": (
        "the generation that all live views show: one row, none before the first rebuild",
        {
            "generation": "its number",
            "built_at": "when it was finished",
            "position": "the log position up to which all ladders were rebuilt together",
            "head": "the same with its chain hash, POSITION:CHAINHASH, as verify --head takes it",
            "history": "whether its changes and games are kept; if not, live_changes, live_games and "
            "live_participants are empty",
        },
    ),
    "live_ladders": (
        "a ladder of the live generation",
        {
            "ladder": "its name",
            "ruleset": _RULESET + ", that ranked it",
            "games": "how many games it counts",
            "players": "how many standings it has",
            "position": "the log position at which it was built; an older one where a rule failed since",
            "digest": "the hash of ruleset and standings, sha256 in hex",
        },
    ),
    "live_standings": (
        "a standing of a ladder of the live generation",
        {
            "ladder": "the name of the ladder",
            "rank": "1 is best, ties equal; empty for who does not qualify",
            "player": "the id that the player has now",
            "points": "points as a decimal number, for display",
            "points_units": "the same exactly: points times scale, a whole number",
            "scale": _SCALE,
            "games": "how many games of his count",
            "qualified": "whether he has a rank",
            "ordinal": "the order within the ladder, from 1",
            "gold": "in lists of months: gold won; else empty",
            "places": "in lists of years: his places in the months, joined by commas; else empty",
            "state": "under a rule that keeps several numbers about a player: all of them in whole units, "
            "joined by commas; else empty",
        },
    ),
    "live_changes": (
        "what a game or an adjustment did to the points of one player on one ladder",
        {
            "ladder": "the name of the ladder",
            "ordinal": "the order within the ladder, from 1: by time, then by log position, then by player",
            "player": "the id that the player has now",
            "occurred_at": "when the game ended, or the adjustment took effect",
            "position": "the log position of the event that tells it: of a corrected game the correction",
            "event_id": "the id of that event",
            "game_id": "the game; empty for an adjustment",
            "place": "his place in the game, 1 is best; empty for an adjustment and where a kind of game has none",
            "before": "points before it as a decimal number, for display",
            "change": "points won, or lost if negative, as a decimal number, for display",
            "after": "points after it as a decimal number, for display",
            "before_units": "points before it exactly: points times scale, a whole number",
            "change_units": "the change exactly, in the same units; sums stay exact",
            "after_units": "points after it exactly, in the same units",
            "scale": _SCALE + ", the same for a whole ladder",
            "ruleset": _RULESET + ", that scored it; empty for an adjustment",
        },
    ),
    "live_games": (
        "a game as it stands: corrected ones as corrected, voided ones left out",
        {
            "game_id": "the id of the game",
            "position": "the log position at which it was first recorded",
            "occurred_at": "when it ended",
            "game": "what was played, such as catan",
            "kind": "the kind of result: placing, b5, battle or diplomacy",
            "group_name": "its group, or empty; group is a word of SQL's own",
            "city": "its city, or empty",
            "league": "its league, or empty",
            "season": "its season, or empty",
            "participants": "how many rows of live_participants it has: substitutes are counted besides those who left",
            "rated": "false for a game that no ladder counts, because it was said so",
            "aborted": "true for a game that was ended by agreement, which no ladder counts",
            "more": "all members that have no column, as JSON text, or empty",
        },
    ),
    "live_participants": (
        "one player in one of live_games",
        {
            "game_id": "the id of the game",
            "position": "the log position at which the game was first recorded",
            "number": "the order in which the game names them, from 1",
            "player": "the id that the player has now",
            "place": "his place, 1 is best: 1, 2, 2, 4 with ties, worked out where only scores were told; "
            "empty where a kind of game has none",
            "score": "the score as it was told, or empty",
            "status": "finished, abandoned, substitute, surrendered or removed",
            "replaces": "of a substitute: the player whose seat he took, under the id of now",
            "seat": "the seat as it was told, or empty",
            "seconds_played": "seconds as they were told, or empty",
            "more": "all members that have no column, as JSON text, or empty: what only one kind of game has",
        },
    ),
    "events_readable": (
        "an event as it was recorded; games as they stand are in live_games",
        {
            "position": "the log position, 1, 2, 3 ... without gaps",
            "event_id": "the id of the event",
            "type": "the type, such as game.recorded",
            "subject": "what it is about, such as game:g-1001",
            "occurred_at": "when it happened (PostgreSQL)",
            "recorded_at": "when it was recorded (PostgreSQL)",
            "occurred_at_utc": "when it happened, UTC, in whole seconds (SQLite)",
            "recorded_at_utc": "when it was recorded, UTC, in whole seconds (SQLite)",
            "recorded_by": "who recorded it",
            "supersedes": "the id of the event that this one corrects or withdraws, or empty",
            "record": "the whole event as canonical JSON",
        },
    ),
}
