"""Build, parse and check records: whole events as canonical JSON, with their hashes and the columns that index them.

    >>> draft = Draft("player:1", "player.registered", 1, "player:anna", 0, '{"player":"anna"}')
    >>> record = build_record(draft, 1, 0, "ref")
    >>> record
    '{"by":"ref","data":{"player":"anna"},"id":"player:1","occurred_at":"1970-01-01T00:00:00.000000Z","position":1,\
"recorded_at":"1970-01-01T00:00:00.000000Z","schema_version":1,"type":"player.registered"}'
    >>> chain_hash(ZERO, leaf_hash(record)).hex()[:16]
    '9ef87341a4315afe'
"""

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import (
    INSTANT_MAX,
    INSTANT_MIN,
    dump,
    dump_in_order,
    dump_text,
    format_instant,
    parse_instant,
    parse_object,
    parse_record_instant,
)
from ratings_ledger.ledger.events.fields import read_by, read_id
from ratings_ledger.ledger.events.types import TYPES, Draft, read_data, upcast
from ratings_ledger.ledger.rejections import Refused, quote

RECORD_BYTES_MAX = 65_535
RECORD_MEMBERS = frozenset(
    {"by", "data", "id", "occurred_at", "position", "recorded_at", "schema_version", "supersedes", "type"}
)
ZERO = bytes(32)  # the chain hash before the first event


class EventRow(NamedTuple):
    """A row of the table `events`, in the order of its columns."""

    position: int
    event_id: str
    type: str
    schema_version: int
    subject: str
    occurred_at: int
    recorded_at: int
    recorded_by: str
    supersedes: str | None
    record: str
    leaf_hash: bytes
    chain_hash: bytes


def build_record(draft: Draft, position: int, recorded_at: int, by: str, supersedes: str | None = None) -> str:
    """Build the record of a draft at its position in the log. Raises `Refused` (record-too-large)."""
    before, after = split_at_position(draft, recorded_at, by, supersedes)
    record = f"{before}{position}{after}"
    _refuse_large(record)
    return record


def _refuse_large(record: str) -> None:
    # a character takes at most four bytes
    if len(record) * 4 > RECORD_BYTES_MAX and (size := len(record.encode())) > RECORD_BYTES_MAX:
        raise Refused(
            "record-too-large",
            f"the event's record has {size:,} bytes, but at most {RECORD_BYTES_MAX:,} are allowed; shorten its texts "
            "(a game has room for about 1,800 participants)",
        )


def split_at_position(draft: Draft, recorded_at: int, by: str, supersedes: str | None = None) -> tuple[str, str]:
    """Return the parts of a record before and after its position, with the members in canonical order."""
    supersedes_member = "" if supersedes is None else f'"supersedes":{dump(supersedes)},'
    return (
        f'{{"by":{dump_text(by)},{_format_draft_members(draft)},"position":',
        f',"recorded_at":"{_format_recorded_at(recorded_at)}","schema_version":{draft.schema_version},'
        f'{supersedes_member}"type":"{draft.type}"}}',
    )


_format_recorded_at = lru_cache(maxsize=1)(format_instant)  # all records of an append have the same time


def fits_at_any_position(draft: Draft, by: str) -> bool:
    """Tell whether a draft's record is small enough at any position; if this returns False, `build_record` decides."""
    # the other members take less than 1,000 bytes, a character at most four, and an escaped character six
    return 4 * len(draft.data) + 6 * (len(draft.event_id) + len(draft.by or by)) + 1_000 <= RECORD_BYTES_MAX


def _format_draft_members(draft: Draft) -> str:
    """Return the members `data`, `id` and `occurred_at` of a record; the draft's data is already canonical JSON."""
    return f'"data":{draft.data},"id":{dump_text(draft.event_id)},"occurred_at":"{format_instant(draft.occurred_at)}"'


def matches_draft(record: str, draft: Draft) -> bool:
    """Tell, without parsing it, whether a record has a draft's data, id, time and type, and supersedes nothing.

    Return False if only parsing could tell.
    """
    # a quotation mark inside the first member, `by`, would be escaped, so the match cannot lie there
    after_by = record.find('","data":') + 2
    end = f'"schema_version":{draft.schema_version},"type":"{draft.type}"}}'
    return after_by > 1 and record.startswith(_format_draft_members(draft), after_by) and record.endswith(end)


def leaf_hash(record: str | bytes) -> bytes:
    """Compute SHA-256(0x00 || record), the leaf hash of RFC 6962."""
    return sha256(b"\0" + (record.encode() if isinstance(record, str) else record)).digest()


def chain_hash(before: bytes, leaf: bytes) -> bytes:
    """Compute SHA-256(chain hash of the previous position || leaf hash), which identifies one exact history."""
    return sha256(before + leaf).digest()


def is_valid_head(position: object, chain: object, recorded_at: object) -> bool:
    """Tell whether the log can continue after a row with these columns; SQLite stores any value in any column."""
    return (
        isinstance(position, int)
        and isinstance(chain, (bytes, memoryview))
        and len(chain) == len(ZERO)
        and isinstance(recorded_at, int)
        and INSTANT_MIN <= recorded_at <= INSTANT_MAX
    )


def index_record(record: str, event: dict[str, Any], previous_chain_hash: bytes) -> EventRow:
    """Build the row of a record, given its parsed form and the previous chain hash. Raises `Refused`."""
    members = event.keys()
    if differing := sorted((members ^ RECORD_MEMBERS) - {"supersedes"}):
        problem = "unknown" if differing[0] in members else "missing"
        raise Refused(
            "unknown-member",
            f"the member {quote(differing[0])} is {problem}; a record has the members "
            f"{', '.join(sorted(RECORD_MEMBERS - {'supersedes'}))}, and may have supersedes",
        )
    for member in ("by", "id", "type"):
        if not isinstance(event[member], str):
            raise Refused("wrong-type", f"{member} must be a string, not {quote(event[member])}")
    for member in ("position", "schema_version"):
        if isinstance(event[member], bool) or not isinstance(event[member], int):
            raise Refused("wrong-type", f"{member} must be a whole number, not {quote(event[member])}")
    if event["type"] not in TYPES:
        raise _build_type_refusal(event["type"])
    if not isinstance(event["data"], dict):
        raise Refused("wrong-type", f"data must be an object, not {quote(event['data'])}")
    try:
        subject = TYPES[event["type"]].subject(event["data"])
    except KeyError as missing:
        raise Refused("missing-member", f"data has no member {missing}") from None
    leaf = leaf_hash(record)
    return EventRow(
        position=event["position"],
        event_id=event["id"],
        type=event["type"],
        schema_version=event["schema_version"],
        subject=subject,
        occurred_at=parse_instant(event["occurred_at"]),
        recorded_at=parse_instant(event["recorded_at"]),
        recorded_by=event["by"],
        supersedes=event.get("supersedes"),
        record=record,
        leaf_hash=leaf,
        chain_hash=chain_hash(previous_chain_hash, leaf),
    )


def _build_type_refusal(name: object) -> Refused:
    return Refused(
        "unknown-type",
        f"{quote(name)} is not a type of event that this program knows; if a newer ratings-ledger wrote it, upgrade "
        "the program",
    )


def restore_row(line: bytes, position: int, recorded_at_min: int, previous_chain_hash: bytes) -> EventRow:
    """Build the row whose record is this line of an export, verbatim. Raises `Refused` if it does not continue the log.

    Args:
        line: The line, without its newline.
        position: The position that the row must have.
        recorded_at_min: The time of the previous row, in microseconds.
        previous_chain_hash: The chain hash of the previous row.
    """
    if len(line) > RECORD_BYTES_MAX:
        raise Refused(
            "record-too-large", f"the line has {len(line):,} bytes; a record has at most {RECORD_BYTES_MAX:,}"
        )
    event = parse_object(line)
    record = line.decode()
    row = index_record(record, event, previous_chain_hash)
    if row.position != position:
        raise Refused(
            "restore-mismatch",
            f"the line has position {row.position}, but the next position is {position}: a line is missing or moved",
        )
    if row.recorded_at < recorded_at_min:
        raise Refused(
            "restore-mismatch",
            f"the event at position {position} was recorded earlier than the one at {position - 1}: a line was changed",
        )
    refuse_invalid_record(row, event)
    return row


def refuse_invalid_record(row: EventRow, event: dict[str, Any]) -> None:
    """Raise `Refused` for a record that no version of this program would write: its event or its form is invalid.

    Checks that an option can waive, such as the check for unlikely dates, are not made here.
    """
    record = row.record
    _refuse_large(record)
    for member, value, normalised in (
        ("recorder", row.recorded_by, read_by(row.recorded_by)),
        ("id", row.event_id, read_id(row.event_id)),
    ):
        if normalised != value:
            raise Refused("restore-mismatch", f"the record has an invalid {member}: {quote(value)}")
    times = (format_instant(row.occurred_at), format_instant(row.recorded_at))
    if dump(event) != record or times != (event["occurred_at"], event["recorded_at"]):
        raise Refused("restore-mismatch", "the record is not in the canonical form in which this program writes it")
    current = TYPES[row.type].schema_version
    data = read_data(row.type, upcast(row.type, row.schema_version, current, event["data"]))
    # older forms are not compared, because this program no longer writes them
    if row.schema_version == current and dump(data) != dump(event["data"]):
        raise Refused("restore-mismatch", "the record's data is not in the form in which this program records it")


# cached, because an import records many events with the same recorder and time


@lru_cache(maxsize=1_024)
def _is_recorder(text: str) -> bool:
    return read_by(text) == text


@lru_cache(maxsize=1_024)
def _is_instant(text: str) -> bool:
    return format_instant(parse_record_instant(text)) == text


def read_record(record: str, position: int) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Return the members of the event at a position, its `occurred_at`, and its data in the newest form.

    Raises `Refused` unless this program, or an older one, would write exactly this record at the position.
    """
    try:
        event = json.loads(record)
        name, version = event["type"], event["schema_version"]
        if name not in TYPES:
            raise _build_type_refusal(name)
        is_game, current = name == "game.recorded", TYPES[name].schema_version
        if not is_game:
            # the models of other types accept values that no record holds, such as fractions
            event = parse_object(record.encode())
        data = read_data(name, upcast(name, version, current, event["data"]))
        data_text = dump(event["data"]) if version != current else dump_in_order(data) if is_game else dump(data)
        event_id, by, instant = event["id"], event["by"], parse_record_instant(event["occurred_at"])
        has_valid_id = (is_game and event_id == f"game:{data['game_id']}") or read_id(event_id) == event_id
        if not (has_valid_id and type(version) is int and _is_recorder(by) and _is_instant(event["recorded_at"])):
            is_valid = {"id": has_valid_id, "schema_version": type(version) is int, "by": _is_recorder(by)}
            member = next((member for member in is_valid if not is_valid[member]), "recorded_at")
            raise Refused("bad-value", f"the member {member} has the invalid value {quote(event[member])}")
        supersedes = f'"supersedes":{dump(event["supersedes"])},' if "supersedes" in event else ""
        expected = (
            f'{{"by":{dump_text(by)},"data":{data_text},"id":{dump_text(event_id)},"occurred_at":"{format_instant(instant)}",'
            f'"position":{position},"recorded_at":"{event["recorded_at"]}","schema_version":{version},'
            f'{supersedes}"type":"{name}"}}'
        )
        _refuse_large(record)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Refused("bad-value", f"the record does not hold an event: {quote(str(error))}") from None
    if expected != record:
        raise Refused("bad-value", f"the record is not in canonical form for position {position}")
    return event, instant, data
