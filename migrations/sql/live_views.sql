-- The views over the live generation, the same in both stores.

-- name: view live_ladders
CREATE VIEW live_ladders AS
SELECT l.ladder, l.ruleset, l.games, l.players, l.position, l.digest
FROM generation_ladders l JOIN live_generation g ON l.generation = g.generation

-- name: view live_standings
CREATE VIEW live_standings AS
SELECT s.ladder, s.rank, s.player, s.points * 1.0 / (l.scale * s.divisor) AS points, s.points AS points_units,
  l.scale * s.divisor AS scale, s.games, s.qualified, s.ordinal, s.gold, s.places
FROM generation_standings s
JOIN generation_ladders l ON l.build = s.build AND l.ladder = s.ladder
JOIN live_generation g ON g.generation = l.generation
