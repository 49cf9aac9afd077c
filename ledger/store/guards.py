"""Guards: triggers in the database that keep events immutable and their positions gap-free.

The migrations install the guards, and `verify` compares them with this module. In SQLite a guard checks every INSERT,
because INSERT OR REPLACE deletes the conflicting row without firing a delete trigger. In PostgreSQL the guard takes the
append lock itself and recomputes both hashes, so no program can append a row with a wrong position or wrong hashes.

The guards compare a row's columns with its record without parsing JSON, which SQLite forbids in triggers of untrusted
files. This works because the members of a canonical record have a fixed order. Of the member `data`, whose content
varies, the guards check only the event's subject.
"""

from collections.abc import Callable

# the number of the transaction-level advisory lock that serialises appends
POSTGRES_APPEND_LOCK = 7_236_836_021


# the message of a guard for a row dated in the future; this program then reports `CLOCK_AHEAD`
AHEAD = "recorded more than a day ahead of the clock"
_DAY = 86_400_000_000  # microseconds
# the characters of a name that JSON escapes, each with the character that follows the backslash
_ESCAPED = {"\\": "\\", '"': '"', "\n": "n", "\t": "t"}


def _sql_json_string(column: str, character: str) -> str:
    """Return SQL for a name as a JSON string; `character` is the SQL function that converts a code to a character."""
    escaped = column
    for plain, letter in _ESCAPED.items():
        escaped = f"replace({escaped}, {character}({ord(plain)}), {character}(92) || {character}({ord(letter)}))"
    return f"'\"' || {escaped} || '\"'"


def _sqlite_json_string(column: str) -> str:
    # few names contain an escaped character, and `replace` is slow in SQLite
    needs_escape = f"{column} GLOB '*[{''.join(_ESCAPED)}]*'"
    return f"CASE WHEN {needs_escape} THEN {_sql_json_string(column, 'char')} ELSE '\"' || {column} || '\"' END"


def _sql_record_end(instant: Callable[[str], str], quoted: Callable[[str], str]) -> str:
    """Return SQL for the part of a new row's record after the data."""
    return (
        f"""',"id":' || {quoted("NEW.event_id")} || ',"occurred_at":"' || {instant("NEW.occurred_at")} || """
        f"""'","position":' || CAST(NEW.position AS text) || ',"recorded_at":"' || {instant("NEW.recorded_at")} || """
        f"""'","schema_version":' || CAST(NEW.schema_version AS text) || """
        f"""coalesce(',"supersedes":' || {quoted("NEW.supersedes")}, '') || ',"type":"' || NEW.type || '"}}'"""
    )


def sqlite_instant(column: str) -> str:
    """Return SQL for microseconds since 1970 as a record writes them: RFC 3339, six fractional digits, `Z`."""
    whole = f"strftime('%Y-%m-%dT%H:%M:%S.', {column} / 1000000 - ({column} % 1000000 < 0), 'unixepoch')"
    return f"{whole} || substr(1000000 + ({column} % 1000000 + 1000000) % 1000000, 2) || 'Z'"


def _postgres_instant(column: str) -> str:
    # the fraction is handled separately, because PostgreSQL multiplies an interval as a floating-point number; explicit
    # types keep added operators and functions from matching better than the built-in ones
    million = "1000000::bigint"
    fraction = f"mod(mod({column}, {million}) + {million}, {million})"
    whole = f"TIMESTAMP 'epoch' + (({column} - {fraction}) / {million})::double precision * INTERVAL '1 second'"
    return f"to_char({whole}, 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || lpad(({fraction})::text, 6, '0') || 'Z'"


def _postgres_json_string(column: str) -> str:
    return _sql_json_string(column, "chr")


# objects with free content, such as `extra`, may contain a `game_id`. The last object before the member `game` ends
# with this text, and the next `game_id` after it names the game
_OBJECT_END = '},"game":'
_SQLITE_RECORD_END = _sql_record_end(sqlite_instant, _sqlite_json_string)
# the name in an event's subject, as a JSON string
_SQLITE_NAME = _sqlite_json_string("substr(NEW.subject, instr(NEW.subject, ':') + 1)")
_POSTGRES_RECORD_END = _sql_record_end(_postgres_instant, _postgres_json_string)
_POSTGRES_NAME = _postgres_json_string("substr(NEW.subject, strpos(NEW.subject, ':') + 1)")

# the part of the record that begins with `_OBJECT_END`, or the whole record if it lacks that text
_SQLITE_DATA = f"""substr(NEW.record, instr(NEW.record, '{_OBJECT_END}'))"""
_POSTGRES_DATA = f"""substr(NEW.record, greatest(strpos(NEW.record, '{_OBJECT_END}'), 1))"""


def _build_sqlite_refusals(table: str, message: str) -> dict[str, str]:
    """Return the triggers that refuse every UPDATE and DELETE of a table, by name."""
    return {
        f"{table}_refuse_{verb.lower()}": f"CREATE TRIGGER {table}_refuse_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        for verb in ("UPDATE", "DELETE")
    }


SQLITE_TRIGGERS = {
    **_build_sqlite_refusals("events", "events are immutable"),
    **_build_sqlite_refusals("ledger_identity", "the ledger''s id is immutable"),
    "events_guard_insert": """CREATE TRIGGER events_guard_insert BEFORE INSERT ON events BEGIN
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
"""
    f"""  SELECT RAISE(ABORT, '{AHEAD}')
    WHERE NEW.recorded_at IS NOT (SELECT recorded_at FROM events WHERE position = NEW.position - 1)
      AND NEW.recorded_at > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + {_DAY};
  SELECT RAISE(ABORT, 'the columns do not fit the record')
    WHERE instr(NEW.record, '{{"by":' || {_sqlite_json_string("NEW.recorded_by")} || ',"data":{{') IS NOT 1
      -- no record holds a line end
      OR instr(NEW.record, char(10)) > 0
      OR coalesce(instr(NEW.record || char(10), {_SQLITE_RECORD_END} || char(10)), 0) = 0
      OR CASE WHEN substr(NEW.type, 1, 5) <> 'game.'
          THEN NEW.subject <> 'ledger:zone' AND instr(NEW.record, ':' || {_SQLITE_NAME}) = 0
        WHEN substr(NEW.subject, 1, 5) <> 'game:' THEN true
        WHEN instr(NEW.record, '{_OBJECT_END}') = 0
          THEN instr(NEW.record, '"game_id":') <> instr(NEW.record, '"game_id":' || {_SQLITE_NAME})
        ELSE instr({_SQLITE_DATA}, '"game_id":') <> instr({_SQLITE_DATA}, '"game_id":' || {_SQLITE_NAME}) END;
END""",
    "ledger_identity_guard_insert": """CREATE TRIGGER ledger_identity_guard_insert BEFORE INSERT ON ledger_identity
BEGIN
  SELECT RAISE(ABORT, 'a ledger has one id') WHERE EXISTS (SELECT 1 FROM ledger_identity);
END""",
}

# a session plans the statements once, perhaps while the log is short, so the plan must use indexes from the start
_PLANNED_ONCE = "LANGUAGE plpgsql SET enable_seqscan = off"

POSTGRES_FUNCTIONS = {
    "ledger_refuse": """CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are immutable', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$""",
    "events_guard_insert": f"""CREATE FUNCTION events_guard_insert() RETURNS trigger {_PLANNED_ONCE}
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head_position bigint;
  head_recorded_at bigint;
  head_chain_hash bytea;
  ending text := {_POSTGRES_RECORD_END};
BEGIN
  -- whoever appends says where names are looked up, and so might let functions of his stand in for PostgreSQL's
  PERFORM set_config('search_path', concat('pg_catalog, ', quote_ident(TG_TABLE_SCHEMA), ', pg_temp'), true);
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
  ELSIF coalesce(NEW.recorded_at > head_recorded_at, true)
     AND NEW.recorded_at > extract(epoch FROM clock_timestamp())::bigint * 1000000::bigint + {_DAY}::bigint THEN
    RAISE EXCEPTION '{AHEAD}' USING ERRCODE = 'restrict_violation';
  ELSIF NOT starts_with(NEW.record, '{{"by":' || {_postgres_json_string("NEW.recorded_by")} || ',"data":{{')
     OR right(NEW.record, length(ending)) <> ending
     OR NEW.subject <> 'ledger:zone' AND strpos(NEW.record, ':' || {_POSTGRES_NAME}) = 0
     OR starts_with(NEW.type, 'game.') AND (NOT starts_with(NEW.subject, 'game:')
       OR strpos({_POSTGRES_DATA}, '"game_id":') <> strpos({_POSTGRES_DATA}, '"game_id":' || {_POSTGRES_NAME})) THEN
    RAISE EXCEPTION 'the columns do not fit the record' USING ERRCODE = 'restrict_violation';
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

# the function that appends one event in one statement; it appends nothing and returns no row if only the full checks
# of `appending.append` can decide
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
