-- The views over the changes and games of the live generation, in SQLite.

-- name: view live_info
CREATE VIEW live_info AS
SELECT n.generation, strftime('%Y-%m-%dT%H:%M:%S.', n.finished_at / 1000000 - (n.finished_at % 1000000 < 0), 'unixepoch') || substr(1000000 + (n.finished_at % 1000000 + 1000000) % 1000000, 2) || 'Z' AS built_at, n.position,
  n.position || ':' || lower(hex(n.chain_hash)) AS head,
  h.generation IS NOT NULL AS history
FROM live_generation g
JOIN generations n ON n.generation = g.generation
LEFT JOIN live_history h ON h.generation = g.generation

-- name: view live_changes
CREATE VIEW live_changes AS
SELECT p.ladder, r.ordinal, r.player, strftime('%Y-%m-%dT%H:%M:%S.', r.occurred_at / 1000000 - (r.occurred_at % 1000000 < 0), 'unixepoch') || substr(1000000 + (r.occurred_at % 1000000 + 1000000) % 1000000, 2) || 'Z' AS occurred_at, r.position, e.event_id,
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
SELECT r.game_id, r.position, strftime('%Y-%m-%dT%H:%M:%S.', r.occurred_at / 1000000 - (r.occurred_at % 1000000 < 0), 'unixepoch') || substr(1000000 + (r.occurred_at % 1000000 + 1000000) % 1000000, 2) || 'Z' AS occurred_at, r.game, r.kind, r.group_name, r.city,
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
