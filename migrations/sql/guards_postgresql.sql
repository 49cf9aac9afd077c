-- The guards of the log in PostgreSQL, its append of one event, and its readable view.

-- name: function ledger_refuse
CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are immutable', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$

-- name: function events_guard_insert
CREATE FUNCTION events_guard_insert() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head_position bigint;
  head_recorded_at bigint;
  head_chain_hash bytea;
  ending text := ',"id":' || '"' || replace(replace(replace(replace(NEW.event_id, chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)), chr(10), chr(92) || chr(110)), chr(9), chr(92) || chr(116)) || '"' || ',"occurred_at":"' || to_char(TIMESTAMP 'epoch' + ((NEW.occurred_at - mod(mod(NEW.occurred_at, 1000000::bigint) + 1000000::bigint, 1000000::bigint)) / 1000000::bigint)::double precision * INTERVAL '1 second', 'YYYY-MM-DD"T"HH24:MI:SS') || '.' || lpad((mod(mod(NEW.occurred_at, 1000000::bigint) + 1000000::bigint, 1000000::bigint))::text, 6, '0') || 'Z' || '","position":' || CAST(NEW.position AS text) || ',"recorded_at":"' || to_char(TIMESTAMP 'epoch' + ((NEW.recorded_at - mod(mod(NEW.recorded_at, 1000000::bigint) + 1000000::bigint, 1000000::bigint)) / 1000000::bigint)::double precision * INTERVAL '1 second', 'YYYY-MM-DD"T"HH24:MI:SS') || '.' || lpad((mod(mod(NEW.recorded_at, 1000000::bigint) + 1000000::bigint, 1000000::bigint))::text, 6, '0') || 'Z' || '","schema_version":' || CAST(NEW.schema_version AS text) || coalesce(',"supersedes":' || '"' || replace(replace(replace(replace(NEW.supersedes, chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)), chr(10), chr(92) || chr(110)), chr(9), chr(92) || chr(116)) || '"', '') || ',"type":"' || NEW.type || '"}';
BEGIN
  -- whoever appends says where names are looked up, and so might let functions of his stand in for PostgreSQL's
  PERFORM set_config('search_path', concat('pg_catalog, ', quote_ident(TG_TABLE_SCHEMA), ', pg_temp'), true);
  PERFORM pg_advisory_xact_lock(7236836021);
  -- a statement of its own, so that it sees what was committed before the lock was granted
  IF to_regclass('events') = TG_RELID THEN
    SELECT position, recorded_at, chain_hash INTO head_position, head_recorded_at, head_chain_hash
    FROM events ORDER BY position DESC LIMIT 1;
  ELSE
    -- a table of the same name, such as a temporary one, cannot stand in for the log; planned anew for every row
    EXECUTE format(
      'SELECT position, recorded_at, chain_hash FROM %I.events ORDER BY position DESC LIMIT 1', TG_TABLE_SCHEMA
    ) INTO head_position, head_recorded_at, head_chain_hash;
  END IF;
  IF NEW.position <> coalesce(head_position, 0) + 1 THEN
    RAISE EXCEPTION 'an event''s position is the head''s plus one' USING ERRCODE = 'restrict_violation';
  ELSIF NEW.recorded_at < head_recorded_at THEN
    RAISE EXCEPTION 'recorded_at never decreases' USING ERRCODE = 'restrict_violation';
  ELSIF coalesce(NEW.recorded_at > head_recorded_at, true)
     AND NEW.recorded_at > extract(epoch FROM clock_timestamp())::bigint * 1000000::bigint + 86400000000::bigint THEN
    RAISE EXCEPTION 'recorded more than a day ahead of the clock' USING ERRCODE = 'restrict_violation';
  ELSIF NOT starts_with(NEW.record, '{"by":' || '"' || replace(replace(replace(replace(NEW.recorded_by, chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)), chr(10), chr(92) || chr(110)), chr(9), chr(92) || chr(116)) || '"' || ',"data":{')
     OR right(NEW.record, length(ending)) <> ending
     OR NEW.subject <> 'ledger:zone' AND strpos(NEW.record, ':' || '"' || replace(replace(replace(replace(substr(NEW.subject, strpos(NEW.subject, ':') + 1), chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)), chr(10), chr(92) || chr(110)), chr(9), chr(92) || chr(116)) || '"') = 0
     OR starts_with(NEW.type, 'game.') AND (NOT starts_with(NEW.subject, 'game:')
       OR strpos(substr(NEW.record, greatest(strpos(NEW.record, '},"game":'), 1)), '"game_id":') <> strpos(substr(NEW.record, greatest(strpos(NEW.record, '},"game":'), 1)), '"game_id":' || '"' || replace(replace(replace(replace(substr(NEW.subject, strpos(NEW.subject, ':') + 1), chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)), chr(10), chr(92) || chr(110)), chr(9), chr(92) || chr(116)) || '"')) THEN
    RAISE EXCEPTION 'the columns do not fit the record' USING ERRCODE = 'restrict_violation';
  ELSIF NEW.leaf_hash <> sha256('\x00'::bytea || convert_to(NEW.record, 'UTF8'))
     OR NEW.chain_hash <> sha256(coalesce(head_chain_hash, decode(repeat('00', 32), 'hex')) || NEW.leaf_hash) THEN
    RAISE EXCEPTION 'the hashes do not fit the record' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$

-- name: guard events_guard_insert
CREATE TRIGGER events_guard_insert BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_guard_insert()

-- name: guard events_refuse_update
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION ledger_refuse()

-- name: guard events_refuse_delete
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION ledger_refuse()

-- name: guard events_refuse_truncate
CREATE TRIGGER events_refuse_truncate BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()

-- name: guard ledger_identity_refuse_update
CREATE TRIGGER ledger_identity_refuse_update BEFORE UPDATE ON ledger_identity FOR EACH ROW EXECUTE FUNCTION ledger_refuse()

-- name: guard ledger_identity_refuse_delete
CREATE TRIGGER ledger_identity_refuse_delete BEFORE DELETE ON ledger_identity FOR EACH ROW EXECUTE FUNCTION ledger_refuse()

-- name: guard ledger_identity_refuse_truncate
CREATE TRIGGER ledger_identity_refuse_truncate BEFORE TRUNCATE ON ledger_identity FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()

-- name: append events_append_one
CREATE FUNCTION events_append_one(
  new_id text, new_type text, new_schema_version smallint, new_subject text, new_occurred_at bigint, now bigint,
  new_by text, before_position text, behind_position text, head_seen bigint
) RETURNS TABLE (appended_at bigint, appended_chain_hash bytea) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  head record;
  new_record text;
  new_leaf_hash bytea;
BEGIN
  PERFORM pg_advisory_xact_lock(7236836021);
  -- each of these is a statement of its own, so that it sees what was committed before the lock was granted
  SELECT e.position, e.recorded_at, e.chain_hash INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
  IF head.recorded_at > now OR coalesce(head.position, 0) <> head_seen
     OR EXISTS (SELECT FROM events e WHERE e.event_id = new_id)
     OR new_type = 'game.recorded'
        AND EXISTS (SELECT FROM events e WHERE e.subject = new_subject AND e.type = 'game.recorded')
     OR current_setting('server_encoding') <> 'UTF8' OR current_setting('session_replication_role') <> 'origin'
     OR 'on' <> ANY (ARRAY[
       current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')])
     OR EXISTS (SELECT FROM pg_class c WHERE c.oid = 'events'::regclass AND c.relpersistence <> 'p')
     OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = 'events'::regclass) THEN
    RETURN;
  END IF;
  appended_at := coalesce(head.position, 0) + 1;
  new_record := before_position || appended_at::text || behind_position;
  new_leaf_hash := sha256('\x00'::bytea || convert_to(new_record, 'UTF8'));
  appended_chain_hash := sha256(coalesce(head.chain_hash, decode(repeat('00', 32), 'hex')) || new_leaf_hash);
  INSERT INTO events (position, event_id, type, schema_version, subject, occurred_at, recorded_at, recorded_by, record,
    leaf_hash, chain_hash)
  VALUES (appended_at, new_id, new_type, new_schema_version, new_subject, new_occurred_at, now, new_by, new_record,
    new_leaf_hash, appended_chain_hash);
  -- whatever stood in the way: what is not there is not acknowledged
  SELECT e.position, e.record, e.chain_hash INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
  IF head.position IS DISTINCT FROM appended_at OR head.record <> new_record
     OR head.chain_hash <> appended_chain_hash THEN
    RAISE EXCEPTION 'what was appended is not there' USING ERRCODE = 'data_exception';
  END IF;
  RETURN NEXT;
END $$

-- name: view events_readable
CREATE VIEW events_readable AS SELECT position, event_id, type, subject,
  TIMESTAMPTZ 'epoch' + occurred_at * INTERVAL '1 microsecond' AS occurred_at,
  TIMESTAMPTZ 'epoch' + recorded_at * INTERVAL '1 microsecond' AS recorded_at,
  recorded_by, supersedes, record FROM events
