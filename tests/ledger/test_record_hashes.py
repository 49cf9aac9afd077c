"""The record of an event matches the contract byte for byte, and hashes follow RFC 6962."""

from hashlib import sha256

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import dump, parse_instant, parse_object
from ratings_ledger.ledger.events.records import (
    RECORD_BYTES_MAX,
    ZERO,
    build_record,
    chain_hash,
    index_record,
    leaf_hash,
    restore_row,
)
from ratings_ledger.ledger.events.types import Draft, read_event

LINE = """{"type":"game.recorded","occurred_at":"2010-03-05T20:30:00+01:00","data":{
    "game_id":"g-1001","game":"catan","group":"basic","city":null,
    "participants":[{"player":"anna","place":1},{"place":2,"player":"ju\u0308rgen"}]}}"""
RECORD = (
    '{"by":"referee","data":{"game":"catan","game_id":"g-1001","group":"basic","participants":[{"place":1,'
    '"player":"anna"},{"place":2,"player":"jürgen"}]},"id":"game:g-1001","occurred_at":"2010-03-05T19:30:00.000000Z",'
    '"position":19,"recorded_at":"2010-03-05T19:31:02.500000Z","schema_version":1,"type":"game.recorded"}'
)


def build_example_record() -> str:
    draft, _ = read_event(parse_object(LINE.encode()))
    return build_record(draft, 19, parse_instant("2010-03-05T19:31:02.5Z"), "referee")


def build_draft(data: str, event_id: str = "player:1") -> Draft:
    return Draft(event_id, "player.registered", 1, "player:anna", 0, data)


def test_record_matches_the_contract_example() -> None:
    """The contract's example event gives the contract's record and hash, byte for byte."""
    record = build_example_record()

    assert record == RECORD
    assert leaf_hash(record).hex() == "c29d57a8bbcce9e2de8065dc016d15a947e82e5effeaba6e5c7360334ac13139"


def test_hashes_follow_rfc_and_design() -> None:
    """Leaf hashes follow RFC 6962, and chain hashes follow the design."""
    leaf = sha256(b"\0" + RECORD.encode()).digest()

    assert leaf_hash(RECORD) == leaf_hash(RECORD.encode()) == leaf
    assert chain_hash(ZERO, leaf) == sha256(bytes(32) + leaf).digest()


def test_canonical_record_gives_its_columns() -> None:
    """A record is canonical JSON, and its columns can be read back from it."""
    record = build_example_record()
    row = index_record(record, parse_object(record.encode()), ZERO)

    assert dump(parse_object(record.encode())) == record
    assert (row.position, row.event_id, row.subject, row.supersedes) == (19, "game:g-1001", "game:g-1001", None)
    assert row.chain_hash == chain_hash(ZERO, leaf_hash(record))


def test_superseded_event_is_in_the_record() -> None:
    """The record of an event that supersedes another names that event, in canonical order."""
    record = build_record(build_draft('{"player":"anna"}'), 2, 0, "referee", supersedes='"x"')

    assert dump(parse_object(record.encode())) == record
    assert parse_object(record.encode())["supersedes"] == '"x"'


@pytest.mark.parametrize("letter", ["a", "ü", "€", "😀"])
def test_record_size_limit_is_exact(letter: str) -> None:
    """A record of exactly the maximum size is built, and one byte more is refused."""
    empty_bytes = len(build_record(build_draft('{"player":""}'), 1, 0, "referee").encode())
    count, remainder = divmod(RECORD_BYTES_MAX - empty_bytes, len(letter.encode()))
    text = letter * count + "a" * remainder

    assert len(build_record(build_draft(dump({"player": text})), 1, 0, "referee").encode()) == RECORD_BYTES_MAX
    with pytest.raises(Refused) as refusal:
        build_record(build_draft(dump({"player": text + "a"})), 1, 0, "referee")
    assert refusal.value.code == "record-too-large"


def test_restored_row_keeps_the_line_verbatim() -> None:
    """A row restored from an exported line has that line verbatim as its record."""
    row = restore_row(RECORD.encode(), 19, 0, ZERO)

    assert row.record == RECORD
    assert row.leaf_hash.hex().startswith("c29d57a8")


ALTERED_LINES = {
    "another position": (RECORD.replace('"position":19', '"position":20'), "restore-mismatch"),
    "members in another order": (
        '{"type":"game.recorded",' + RECORD[1:].replace(',"type":"game.recorded"', ""),
        "restore-mismatch",
    ),
    "a space": (RECORD.replace('"position":19', '"position": 19'), "restore-mismatch"),
    "an escaped letter": (RECORD.replace("ü", "\\u00fc"), "restore-mismatch"),
    "a time with fewer digits": (RECORD.replace("19:30:00.000000Z", "19:30:00Z"), "restore-mismatch"),
    "a recorded time with an offset": (RECORD.replace("02.500000Z", "02.500000+00:00"), "restore-mismatch"),
    "a null member": (RECORD.replace('"position"', '"note":null,"position"'), "restore-mismatch"),
    "a member too many": (RECORD.replace('"position"', '"note":"x","position"'), "unknown-member"),
    "a member too few": (RECORD.replace('"by":"referee",', ""), "unknown-member"),
    "a position that is text": (RECORD.replace('"position":19', '"position":"19"'), "wrong-type"),
    "a newer schema": (RECORD.replace('"schema_version":1', '"schema_version":2'), "unknown-schema-version"),
    "a schema that is true": (RECORD.replace('"schema_version":1', '"schema_version":true'), "wrong-type"),
    "an invalid game": (RECORD.replace('"place":2', '"place":3'), "place-gap"),
    "data that is not normalised": (RECORD.replace("jürgen", "ju\u0308rgen"), "restore-mismatch"),
    "a subject that is missing": (RECORD.replace('"game_id":"g-1001",', ""), "missing-member"),
    "too many bytes": (RECORD.replace("referee", "r" * RECORD_BYTES_MAX), "record-too-large"),
}


@pytest.mark.parametrize(("line", "code"), ALTERED_LINES.values(), ids=ALTERED_LINES)
def test_line_no_export_wrote_is_refused(line: str, code: str) -> None:
    """A line that no export can have written is refused by a restore with its code."""
    with pytest.raises(Refused) as refusal:
        restore_row(line.encode(), 19, 0, ZERO)

    assert refusal.value.code == code


def test_restored_times_may_not_decrease() -> None:
    """Restoring a line that was recorded before the previous one is refused."""
    with pytest.raises(Refused) as refusal:
        restore_row(RECORD.encode(), 19, parse_instant("2010-03-05T19:31:02.500001Z"), ZERO)

    assert refusal.value.code == "restore-mismatch"
