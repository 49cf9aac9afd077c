"""The database's own refusals: triggers that keep events immutable and their positions gap-free.

The migrations install them; `verify` reads them back and compares. In SQLite a guard stands before every INSERT,
because INSERT OR REPLACE deletes the row in its way without any delete trigger. In PostgreSQL the guard takes the
append lock itself and recomputes both hashes, so that no other program can append a row that does not fit.
"""

# the number of the transaction-level advisory lock that serialises appends
POSTGRES_APPEND_LOCK = 7_236_836_021


def _sqlite_refusals(table: str, what: str) -> dict[str, str]:
    return {
        f"{table}_refuse_{verb.lower()}": f"CREATE TRIGGER {table}_refuse_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{what}'); END"
        for verb in ("UPDATE", "DELETE")
    }


SQLITE_TRIGGERS = {
    **_sqlite_refusals("events", "events are immutable"),
    **_sqlite_refusals("ledger_identity", "the ledger''s id is immutable"),
    "events_guard_insert": """CREATE TRIGGER events_guard_insert BEFORE INSERT ON events BEGIN
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
END""",
    "ledger_identity_guard_insert": """CREATE TRIGGER ledger_identity_guard_insert BEFORE INSERT ON ledger_identity
BEGIN
  SELECT RAISE(ABORT, 'a ledger has one id') WHERE EXISTS (SELECT 1 FROM ledger_identity);
END""",
}

# a plan that was made while the log was short is kept while it grows, and has to be by the indexes all the same
_PLANNED_ONCE = "LANGUAGE plpgsql SET enable_seqscan = off"

POSTGRES_FUNCTIONS = {
    "ledger_refuse": """CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are immutable', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$""",
    "events_guard_insert": f"""CREATE FUNCTION events_guard_insert() RETURNS trigger {_PLANNED_ONCE} AS $$
DECLARE
  head_position bigint;
  head_recorded_at bigint;
  head_chain_hash bytea;
BEGIN
  PERFORM pg_advisory_xact_lock({POSTGRES_APPEND_LOCK});
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
  ELSIF NEW.leaf_hash <> sha256('\\x00'::bytea || convert_to(NEW.record, 'UTF8'))
     OR NEW.chain_hash <> sha256(coalesce(head_chain_hash, decode(repeat('00', 32), 'hex')) || NEW.leaf_hash) THEN
    RAISE EXCEPTION 'the hashes do not fit the record' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$""",
}

POSTGRES_TRIGGERS = {
    "events_guard_insert": "CREATE TRIGGER events_guard_insert BEFORE INSERT ON events "
    "FOR EACH ROW EXECUTE FUNCTION events_guard_insert()",
    **{
        f"{table}_refuse_{verb.lower()}": f"CREATE TRIGGER {table}_refuse_{verb.lower()} BEFORE {verb} ON {table} "
        f"FOR EACH {scope} EXECUTE FUNCTION ledger_refuse()"
        for table in ("events", "ledger_identity")
        for verb, scope in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT"))
    },
}

# appends one event in one statement, if there is nothing to decide; else it gives no row, and has appended nothing
POSTGRES_APPEND = {
    "events_append_one": f"""CREATE FUNCTION events_append_one(
  new_id text, new_type text, new_schema_version smallint, new_subject text, new_occurred_at bigint, now bigint,
  new_by text, before_position text, behind_position text, head_seen bigint
) RETURNS TABLE (appended_at bigint, appended_chain_hash bytea) {_PLANNED_ONCE} AS $$
DECLARE
  head record;
  new_record text;
  new_leaf_hash bytea;
BEGIN
  PERFORM pg_advisory_xact_lock({POSTGRES_APPEND_LOCK});
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
  new_leaf_hash := sha256('\\x00'::bytea || convert_to(new_record, 'UTF8'));
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
END $$""",
}

SQLITE_VIEW = """CREATE VIEW events_readable AS SELECT position, event_id, type, subject,
  strftime('%Y-%m-%d %H:%M:%S', occurred_at / 1000000, 'unixepoch') AS occurred_at_utc,
  strftime('%Y-%m-%d %H:%M:%S', recorded_at / 1000000, 'unixepoch') AS recorded_at_utc,
  recorded_by, supersedes, record FROM events"""

POSTGRES_VIEW = """CREATE VIEW events_readable AS SELECT position, event_id, type, subject,
  TIMESTAMPTZ 'epoch' + occurred_at * INTERVAL '1 microsecond' AS occurred_at,
  TIMESTAMPTZ 'epoch' + recorded_at * INTERVAL '1 microsecond' AS recorded_at,
  recorded_by, supersedes, record FROM events"""
