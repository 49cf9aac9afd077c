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

# the meaning of each view's rows, and the meaning and unit of each column, for docs/sql.md. Migrations store
# the same texts as comments in PostgreSQL; after a release, a change of a text needs a new migration
MEANINGS: dict[str, tuple[str, dict[str, str]]] = {
    "live_info": (
        "the generation that all live views show: one row, or none before the first rebuild",
        {
            "generation": "its number",
            "built_at": "when it was finished",
            "position": "the log position up to which all ladders were rebuilt together",
            "head": "the position with its chain hash, POSITION:CHAINHASH, for `ratings verify --head`",
            "history": "whether its changes and games are kept; if not, live_changes, live_games and "
            "live_participants are empty",
        },
    ),
    "live_ladders": (
        "a ladder of the live generation",
        {
            "ladder": "its name",
            "ruleset": _RULESET + ", that ranked the ladder",
            "games": "the number of games that it counts",
            "players": "the number of its standings",
            "position": "the log position at which it was built; an older one if its rule has failed since",
            "digest": "the SHA-256 hash of the ruleset and the standings, in hex",
        },
    ),
    "live_standings": (
        "a standing of a ladder of the live generation",
        {
            "ladder": "the name of the ladder",
            "rank": "1 is best, tied players share a rank; empty for a player who does not qualify",
            "player": "the current id of the player",
            "points": "the points as a decimal number, for display",
            "points_units": "the exact points: points times scale, a whole number",
            "scale": _SCALE,
            "games": "the number of the player's counted games",
            "qualified": "whether the player has a rank",
            "ordinal": "the order within the ladder, from 1",
            "gold": "in monthly lists: the gold won; otherwise empty",
            "places": "in annual lists: the places of the player in the months, joined by commas; otherwise empty",
            "state": "under a rule with several numbers per player: all of them in whole units, joined by commas; "
            "otherwise empty",
        },
    ),
    "live_changes": (
        "what a game, an adjustment, a new version or a new season did to the points of a player on a ladder",
        {
            "ladder": "the name of the ladder",
            "ordinal": "the order within the ladder, from 1: by time, by position of the first record, by player",
            "player": "the current id of the player",
            "occurred_at": "when the game ended, or the adjustment or version took effect",
            "position": "the log position of its event: for a corrected game, that of the correction",
            "event_id": "the id of that event",
            "game_id": "the game; empty unless a game changed the points",
            "place": "the player's place in the game, 1 is best; empty without a game, and for games without places",
            "before": "the points before it as a decimal number, for display",
            "change": "the points won, or lost if negative, as a decimal number, for display",
            "after": "the points after it as a decimal number, for display",
            "before_units": "the exact points before it: points times scale, a whole number",
            "change_units": "the exact change in the same units, so that sums are exact",
            "after_units": "the exact points after it, in the same units",
            "scale": _SCALE + ", the same in all rows of a ladder",
            "ruleset": _RULESET + ", that scored the game; empty without a game",
        },
    ),
    "live_games": (
        "a game with its latest result; voided games are left out",
        {
            "game_id": "the id of the game",
            "position": "the log position at which it was first recorded",
            "occurred_at": "when the game ended",
            "game": "what was played, such as catan",
            "kind": "the kind of result: placing, b5, battle or diplomacy",
            "group_name": "its group, or empty; `group` is a reserved word in SQL",
            "city": "its city, or empty",
            "league": "its league, or empty",
            "season": "its season, or empty",
            "participants": "the number of its rows in live_participants, with substitutes and replaced players",
            "rated": "false for a game that was recorded as unrated, which no ladder counts",
            "aborted": "true for a game that was ended early by agreement, which no ladder counts",
            "more": "the members of the event that have no column, as JSON, or empty",
        },
    ),
    "live_participants": (
        "a player in a game of live_games",
        {
            "game_id": "the id of the game",
            "position": "the log position at which the game was first recorded",
            "number": "the order in which the game names its participants, from 1",
            "player": "the current id of the player",
            "place": "the player's place, 1 is best: 1, 2, 2, 4 with ties; computed if only scores were recorded; "
            "empty for games without places",
            "score": "the recorded score, or empty",
            "status": "finished, abandoned, substitute, surrendered or removed",
            "replaces": "for a substitute: the current id of the player who was replaced",
            "seat": "the recorded seat, or empty",
            "seconds_played": "the recorded number of seconds, or empty",
            "more": "the members of the participant that have no column, as JSON, or empty",
        },
    ),
    "events_readable": (
        "an event as it was recorded; the latest results of games are in live_games",
        {
            "position": "the log position, 1, 2, 3 ... without gaps",
            "event_id": "the id of the event",
            "type": "the type, such as game.recorded",
            "subject": "the subject of the event, such as game:g-1001",
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
