-- The views over the changes and games of the live generation, in PostgreSQL, and what all views mean.

-- name: view live_info
CREATE VIEW live_info AS
SELECT n.generation, TIMESTAMPTZ 'epoch' + (n.finished_at / 1000000) * INTERVAL '1 second' + mod(n.finished_at, 1000000) * INTERVAL '1 microsecond' AS built_at, n.position,
  concat(n.position, ':', encode(n.chain_hash, 'hex')) AS head,
  h.generation IS NOT NULL AS history
FROM live_generation g
JOIN generations n ON n.generation = g.generation
LEFT JOIN live_history h ON h.generation = g.generation

-- name: view live_changes
CREATE VIEW live_changes AS
SELECT p.ladder, r.ordinal, r.player, TIMESTAMPTZ 'epoch' + (r.occurred_at / 1000000) * INTERVAL '1 second' + mod(r.occurred_at, 1000000) * INTERVAL '1 microsecond' AS occurred_at, r.position, e.event_id,
  CASE WHEN r.ruleset IS NOT NULL THEN substr(e.subject, 6) END AS game_id, r.place,
  r.before * 1.0 / p.scale AS before, r.change * 1.0 / p.scale AS change,
  (r.before + r.change) * 1.0 / p.scale AS after,
  r.before AS before_units, r.change AS change_units, r.before + r.change AS after_units, p.scale, r.ruleset
FROM history_changes r
JOIN history_parts p ON p.part = r.part AND p.generation = (SELECT h.generation FROM live_history h
  JOIN live_generation g ON g.generation = h.generation)
LEFT JOIN events e ON e.position = r.position

-- name: view live_games
CREATE VIEW live_games AS
SELECT r.game_id, r.position, TIMESTAMPTZ 'epoch' + (r.occurred_at / 1000000) * INTERVAL '1 second' + mod(r.occurred_at, 1000000) * INTERVAL '1 microsecond' AS occurred_at, r.game, r.kind, r.group_name, r.city,
  r.league, r.season, r.participants, r.rated, r.aborted, r.more
FROM history_games r
JOIN history_parts p ON p.part = r.part AND p.generation = (SELECT h.generation FROM live_history h
  JOIN live_generation g ON g.generation = h.generation)

-- name: view live_participants
CREATE VIEW live_participants AS
SELECT r.game_id, r.position, r.number, r.player, r.place, CAST(r.score AS numeric) AS score, r.status, r.replaces,
  r.seat, r.seconds_played, r.more
FROM history_participants r
JOIN history_parts p ON p.part = r.part AND p.generation = (SELECT h.generation FROM live_history h
  JOIN live_generation g ON g.generation = h.generation)

-- name: comment live_info
COMMENT ON VIEW live_info IS 'the generation that all live views show: one row, or none before the first rebuild'

-- name: comment live_info.generation
COMMENT ON COLUMN live_info.generation IS 'its number'

-- name: comment live_info.built_at
COMMENT ON COLUMN live_info.built_at IS 'when it was finished'

-- name: comment live_info.position
COMMENT ON COLUMN live_info.position IS 'the log position up to which all ladders were rebuilt together'

-- name: comment live_info.head
COMMENT ON COLUMN live_info.head IS 'the position with its chain hash, POSITION:CHAINHASH, for `ratings verify --head`'

-- name: comment live_info.history
COMMENT ON COLUMN live_info.history IS 'whether its changes and games are kept; if not, live_changes, live_games and live_participants are empty'

-- name: comment live_ladders
COMMENT ON VIEW live_ladders IS 'a ladder of the live generation'

-- name: comment live_ladders.ladder
COMMENT ON COLUMN live_ladders.ladder IS 'its name'

-- name: comment live_ladders.ruleset
COMMENT ON COLUMN live_ladders.ruleset IS 'the version of the ruleset, such as catan-elo@2009-01, that ranked the ladder'

-- name: comment live_ladders.games
COMMENT ON COLUMN live_ladders.games IS 'the number of games that it counts'

-- name: comment live_ladders.players
COMMENT ON COLUMN live_ladders.players IS 'the number of its standings'

-- name: comment live_ladders.position
COMMENT ON COLUMN live_ladders.position IS 'the log position at which it was built; an older one if its rule has failed since'

-- name: comment live_ladders.digest
COMMENT ON COLUMN live_ladders.digest IS 'the SHA-256 hash of the ruleset and the standings, in hex'

-- name: comment live_standings
COMMENT ON VIEW live_standings IS 'a standing of a ladder of the live generation'

-- name: comment live_standings.ladder
COMMENT ON COLUMN live_standings.ladder IS 'the name of the ladder'

-- name: comment live_standings.rank
COMMENT ON COLUMN live_standings.rank IS '1 is best, tied players share a rank; empty for a player who does not qualify'

-- name: comment live_standings.player
COMMENT ON COLUMN live_standings.player IS 'the current id of the player'

-- name: comment live_standings.points
COMMENT ON COLUMN live_standings.points IS 'the points as a decimal number, for display'

-- name: comment live_standings.points_units
COMMENT ON COLUMN live_standings.points_units IS 'the exact points: points times scale, a whole number'

-- name: comment live_standings.scale
COMMENT ON COLUMN live_standings.scale IS 'units per point'

-- name: comment live_standings.games
COMMENT ON COLUMN live_standings.games IS 'the number of the player''s counted games'

-- name: comment live_standings.qualified
COMMENT ON COLUMN live_standings.qualified IS 'whether the player has a rank'

-- name: comment live_standings.ordinal
COMMENT ON COLUMN live_standings.ordinal IS 'the order within the ladder, from 1'

-- name: comment live_standings.gold
COMMENT ON COLUMN live_standings.gold IS 'in monthly lists: the gold won; otherwise empty'

-- name: comment live_standings.places
COMMENT ON COLUMN live_standings.places IS 'in annual lists: the places of the player in the months, joined by commas; otherwise empty'

-- name: comment live_changes
COMMENT ON VIEW live_changes IS 'what a game, an adjustment, a new version or a new season did to the points of a player on a ladder'

-- name: comment live_changes.ladder
COMMENT ON COLUMN live_changes.ladder IS 'the name of the ladder'

-- name: comment live_changes.ordinal
COMMENT ON COLUMN live_changes.ordinal IS 'the order within the ladder, from 1: by time, by position of the first record, by player'

-- name: comment live_changes.player
COMMENT ON COLUMN live_changes.player IS 'the current id of the player'

-- name: comment live_changes.occurred_at
COMMENT ON COLUMN live_changes.occurred_at IS 'when the game ended, or the adjustment or version took effect'

-- name: comment live_changes.position
COMMENT ON COLUMN live_changes.position IS 'the log position of its event: for a corrected game, that of the correction'

-- name: comment live_changes.event_id
COMMENT ON COLUMN live_changes.event_id IS 'the id of that event'

-- name: comment live_changes.game_id
COMMENT ON COLUMN live_changes.game_id IS 'the game; empty unless a game changed the points'

-- name: comment live_changes.place
COMMENT ON COLUMN live_changes.place IS 'the player''s place in the game, 1 is best; empty without a game, and for games without places'

-- name: comment live_changes.before
COMMENT ON COLUMN live_changes.before IS 'the points before it as a decimal number, for display'

-- name: comment live_changes.change
COMMENT ON COLUMN live_changes.change IS 'the points won, or lost if negative, as a decimal number, for display'

-- name: comment live_changes.after
COMMENT ON COLUMN live_changes.after IS 'the points after it as a decimal number, for display'

-- name: comment live_changes.before_units
COMMENT ON COLUMN live_changes.before_units IS 'the exact points before it: points times scale, a whole number'

-- name: comment live_changes.change_units
COMMENT ON COLUMN live_changes.change_units IS 'the exact change in the same units, so that sums are exact'

-- name: comment live_changes.after_units
COMMENT ON COLUMN live_changes.after_units IS 'the exact points after it, in the same units'

-- name: comment live_changes.scale
COMMENT ON COLUMN live_changes.scale IS 'units per point, the same in all rows of a ladder'

-- name: comment live_changes.ruleset
COMMENT ON COLUMN live_changes.ruleset IS 'the version of the ruleset, such as catan-elo@2009-01, that scored the game; empty without a game'

-- name: comment live_games
COMMENT ON VIEW live_games IS 'a game with its latest result; voided games are left out'

-- name: comment live_games.game_id
COMMENT ON COLUMN live_games.game_id IS 'the id of the game'

-- name: comment live_games.position
COMMENT ON COLUMN live_games.position IS 'the log position at which it was first recorded'

-- name: comment live_games.occurred_at
COMMENT ON COLUMN live_games.occurred_at IS 'when the game ended'

-- name: comment live_games.game
COMMENT ON COLUMN live_games.game IS 'what was played, such as catan'

-- name: comment live_games.kind
COMMENT ON COLUMN live_games.kind IS 'the kind of result: placing, b5, battle or diplomacy'

-- name: comment live_games.group_name
COMMENT ON COLUMN live_games.group_name IS 'its group, or empty; `group` is a reserved word in SQL'

-- name: comment live_games.city
COMMENT ON COLUMN live_games.city IS 'its city, or empty'

-- name: comment live_games.league
COMMENT ON COLUMN live_games.league IS 'its league, or empty'

-- name: comment live_games.season
COMMENT ON COLUMN live_games.season IS 'its season, or empty'

-- name: comment live_games.participants
COMMENT ON COLUMN live_games.participants IS 'the number of its rows in live_participants, with substitutes and replaced players'

-- name: comment live_games.rated
COMMENT ON COLUMN live_games.rated IS 'false for a game that was recorded as unrated, which no ladder counts'

-- name: comment live_games.aborted
COMMENT ON COLUMN live_games.aborted IS 'true for a game that was ended early by agreement, which no ladder counts'

-- name: comment live_games.more
COMMENT ON COLUMN live_games.more IS 'the members of the event that have no column, as JSON, or empty'

-- name: comment live_participants
COMMENT ON VIEW live_participants IS 'a player in a game of live_games'

-- name: comment live_participants.game_id
COMMENT ON COLUMN live_participants.game_id IS 'the id of the game'

-- name: comment live_participants.position
COMMENT ON COLUMN live_participants.position IS 'the log position at which the game was first recorded'

-- name: comment live_participants.number
COMMENT ON COLUMN live_participants.number IS 'the order in which the game names its participants, from 1'

-- name: comment live_participants.player
COMMENT ON COLUMN live_participants.player IS 'the current id of the player'

-- name: comment live_participants.place
COMMENT ON COLUMN live_participants.place IS 'the player''s place, 1 is best: 1, 2, 2, 4 with ties; computed if only scores were recorded; empty for games without places'

-- name: comment live_participants.score
COMMENT ON COLUMN live_participants.score IS 'the recorded score, or empty'

-- name: comment live_participants.status
COMMENT ON COLUMN live_participants.status IS 'finished, abandoned, substitute, surrendered or removed'

-- name: comment live_participants.replaces
COMMENT ON COLUMN live_participants.replaces IS 'for a substitute: the current id of the player who was replaced'

-- name: comment live_participants.seat
COMMENT ON COLUMN live_participants.seat IS 'the recorded seat, or empty'

-- name: comment live_participants.seconds_played
COMMENT ON COLUMN live_participants.seconds_played IS 'the recorded number of seconds, or empty'

-- name: comment live_participants.more
COMMENT ON COLUMN live_participants.more IS 'the members of the participant that have no column, as JSON, or empty'

-- name: comment events_readable
COMMENT ON VIEW events_readable IS 'an event as it was recorded; the latest results of games are in live_games'

-- name: comment events_readable.position
COMMENT ON COLUMN events_readable.position IS 'the log position, 1, 2, 3 ... without gaps'

-- name: comment events_readable.event_id
COMMENT ON COLUMN events_readable.event_id IS 'the id of the event'

-- name: comment events_readable.type
COMMENT ON COLUMN events_readable.type IS 'the type, such as game.recorded'

-- name: comment events_readable.subject
COMMENT ON COLUMN events_readable.subject IS 'the subject of the event, such as game:g-1001'

-- name: comment events_readable.occurred_at
COMMENT ON COLUMN events_readable.occurred_at IS 'when it happened (PostgreSQL)'

-- name: comment events_readable.recorded_at
COMMENT ON COLUMN events_readable.recorded_at IS 'when it was recorded (PostgreSQL)'

-- name: comment events_readable.recorded_by
COMMENT ON COLUMN events_readable.recorded_by IS 'who recorded it'

-- name: comment events_readable.supersedes
COMMENT ON COLUMN events_readable.supersedes IS 'the id of the event that this one corrects or withdraws, or empty'

-- name: comment events_readable.record
COMMENT ON COLUMN events_readable.record IS 'the whole event as canonical JSON'
