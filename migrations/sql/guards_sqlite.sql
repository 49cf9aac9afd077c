-- The guards of the log in SQLite, and its readable view.

-- name: guard events_refuse_update
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are immutable'); END

-- name: guard events_refuse_delete
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are immutable'); END

-- name: guard ledger_identity_refuse_update
CREATE TRIGGER ledger_identity_refuse_update BEFORE UPDATE ON ledger_identity BEGIN SELECT RAISE(ABORT, 'the ledger''s id is immutable'); END

-- name: guard ledger_identity_refuse_delete
CREATE TRIGGER ledger_identity_refuse_delete BEFORE DELETE ON ledger_identity BEGIN SELECT RAISE(ABORT, 'the ledger''s id is immutable'); END

-- name: guard events_guard_insert
CREATE TRIGGER events_guard_insert BEFORE INSERT ON events BEGIN
  SELECT RAISE(ABORT, 'a column holds a value of another type')
    WHERE typeof(NEW.record) <> 'text' OR typeof(NEW.event_id) <> 'text' OR typeof(NEW.type) <> 'text'
      OR typeof(NEW.subject) <> 'text' OR typeof(NEW.recorded_by) <> 'text'
      OR typeof(NEW.supersedes) NOT IN ('text', 'null') OR typeof(NEW.schema_version) <> 'integer'
      OR typeof(NEW.occurred_at) <> 'integer' OR typeof(NEW.recorded_at) <> 'integer'
      OR typeof(NEW.leaf_hash) <> 'blob' OR typeof(NEW.chain_hash) <> 'blob';
  SELECT RAISE(ABORT, 'an event''s position is the head''s plus one')
    WHERE NEW.position IS NOT (SELECT coalesce(max(position), 0) + 1 FROM events);
  SELECT RAISE(ABORT, 'an event with this id exists')
    WHERE EXISTS (SELECT 1 FROM events WHERE event_id = NEW.event_id);
  SELECT RAISE(ABORT, 'this event is superseded already')
    WHERE NEW.supersedes IS NOT NULL AND EXISTS (SELECT 1 FROM events WHERE supersedes = NEW.supersedes);
  SELECT RAISE(ABORT, 'this game is recorded already')
    WHERE NEW.type = 'game.recorded'
      AND EXISTS (SELECT 1 FROM events WHERE subject = NEW.subject AND type = 'game.recorded');
  SELECT RAISE(ABORT, 'recorded_at never decreases')
    WHERE NEW.recorded_at < (SELECT recorded_at FROM events WHERE position = NEW.position - 1);
  SELECT RAISE(ABORT, 'recorded more than a day ahead of the clock')
    WHERE NEW.recorded_at IS NOT (SELECT recorded_at FROM events WHERE position = NEW.position - 1)
      AND NEW.recorded_at > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + 86400000000;
  SELECT RAISE(ABORT, 'the columns do not fit the record')
    WHERE instr(NEW.record, '{"by":' || CASE WHEN NEW.recorded_by GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(NEW.recorded_by, char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || NEW.recorded_by || '"' END || ',"data":{') IS NOT 1
      -- no record holds a line end
      OR instr(NEW.record, char(10)) > 0
      OR coalesce(instr(NEW.record || char(10), ',"id":' || CASE WHEN NEW.event_id GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(NEW.event_id, char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || NEW.event_id || '"' END || ',"occurred_at":"' || strftime('%Y-%m-%dT%H:%M:%S.', NEW.occurred_at / 1000000 - (NEW.occurred_at % 1000000 < 0), 'unixepoch') || substr(1000000 + (NEW.occurred_at % 1000000 + 1000000) % 1000000, 2) || 'Z' || '","position":' || CAST(NEW.position AS text) || ',"recorded_at":"' || strftime('%Y-%m-%dT%H:%M:%S.', NEW.recorded_at / 1000000 - (NEW.recorded_at % 1000000 < 0), 'unixepoch') || substr(1000000 + (NEW.recorded_at % 1000000 + 1000000) % 1000000, 2) || 'Z' || '","schema_version":' || CAST(NEW.schema_version AS text) || coalesce(',"supersedes":' || CASE WHEN NEW.supersedes GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(NEW.supersedes, char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || NEW.supersedes || '"' END, '') || ',"type":"' || NEW.type || '"}' || char(10)), 0) = 0
      OR CASE WHEN substr(NEW.type, 1, 5) <> 'game.'
          THEN NEW.subject <> 'ledger:zone' AND instr(NEW.record, ':' || CASE WHEN substr(NEW.subject, instr(NEW.subject, ':') + 1) GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(substr(NEW.subject, instr(NEW.subject, ':') + 1), char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || substr(NEW.subject, instr(NEW.subject, ':') + 1) || '"' END) = 0
        WHEN substr(NEW.subject, 1, 5) <> 'game:' THEN true
        WHEN instr(NEW.record, '},"game":') = 0
          THEN instr(NEW.record, '"game_id":') <> instr(NEW.record, '"game_id":' || CASE WHEN substr(NEW.subject, instr(NEW.subject, ':') + 1) GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(substr(NEW.subject, instr(NEW.subject, ':') + 1), char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || substr(NEW.subject, instr(NEW.subject, ':') + 1) || '"' END)
        ELSE instr(substr(NEW.record, instr(NEW.record, '},"game":')), '"game_id":') <> instr(substr(NEW.record, instr(NEW.record, '},"game":')), '"game_id":' || CASE WHEN substr(NEW.subject, instr(NEW.subject, ':') + 1) GLOB '*[\"
	]*' THEN '"' || replace(replace(replace(replace(substr(NEW.subject, instr(NEW.subject, ':') + 1), char(92), char(92) || char(92)), char(34), char(92) || char(34)), char(10), char(92) || char(110)), char(9), char(92) || char(116)) || '"' ELSE '"' || substr(NEW.subject, instr(NEW.subject, ':') + 1) || '"' END) END;
END

-- name: guard ledger_identity_guard_insert
CREATE TRIGGER ledger_identity_guard_insert BEFORE INSERT ON ledger_identity
BEGIN
  SELECT RAISE(ABORT, 'a ledger has one id') WHERE EXISTS (SELECT 1 FROM ledger_identity);
END

-- name: view events_readable
CREATE VIEW events_readable AS SELECT position, event_id, type, subject,
  strftime('%Y-%m-%d %H:%M:%S', occurred_at / 1000000, 'unixepoch') AS occurred_at_utc,
  strftime('%Y-%m-%d %H:%M:%S', recorded_at / 1000000, 'unixepoch') AS recorded_at_utc,
  recorded_by, supersedes, record FROM events
