-- What rules keep about players, in the view over the live standings, the same in both stores.

-- name: view live_standings
CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / (l.scale * s.divisor) AS points, s.points AS points_units,
  l.scale * s.divisor AS scale, s.games, s.qualified, s.ordinal, s.gold, s.places, s.state
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation

-- name: comment live_standings.state
COMMENT ON COLUMN live_standings.state IS 'under a rule with several numbers per player: all of them in whole units, joined by commas; otherwise empty'
