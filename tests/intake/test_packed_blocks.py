"""A block of read events comes out of the message between two processes as it went in."""

from decimal import Decimal
from typing import Any

import pytest

from ledger.events.types import read_event
from ledger.intake.files import Far, Hashed, Item, Noted
from ledger.intake.parsing import ParsedItem, packed_block, unpacked_block
from ledger.rejections import Refused, Rejection

GAME = {
    "type": "game.recorded", "occurred_at": "2010-03-05T19:30:00.5Z", "by": "Zoë",
    "data": {"game_id": "g 1", "game": "catan", "rated": True, "extra": {"b": "x", "a": "😀"},
             "participants": [{"player": "anna", "place": 1, "score": 9007199254740991},
                              {"player": "ben", "place": 2, "score": "10.50"}]},
}  # fmt: skip
BATCH = {
    "type": "import.recorded", "occurred_at": "2010-03-05T19:30:00Z", "position": 7,
    "data": {"name": "club.csv", "source": "club.csv", "sha256": "0" * 64, "ranges": [[1, 2]]},
}  # fmt: skip


def parsed(event: dict[str, Any], source: Any) -> ParsedItem:
    """An event that could be read, from line 3 of a file."""
    return ParsedItem(Item("club.csv", 3, b"", source, "g 1", True), (), read_event(event))


@pytest.mark.parametrize("event", [GAME, BATCH])
@pytest.mark.parametrize("source", [None, [], "{}", [{"player": "anna", "place": "1"}, {"odd": "\udcff"}]])
def test_an_event_comes_out_as_it_went_in(event: dict[str, Any], source: Any) -> None:
    entry = parsed(event, source)

    [found] = unpacked_block(packed_block([entry]))

    assert found == entry
    assert isinstance(found, ParsedItem)
    assert isinstance(entry.outcome, tuple)
    assert isinstance(found.outcome, tuple)
    assert repr(found) == repr(entry)  # which tells named tuples, and 1 and True, apart
    assert list(found.outcome[1]) == list(entry.outcome[1])


def test_whatever_else_is_in_a_block_keeps_its_place() -> None:
    others = [
        Rejection("bad-json", "the line is no object", "club.jsonl", 4), Far("club.jsonl", 100),
        Hashed("club.jsonl", "0" * 64, None), Noted("club.csv", "2 blank lines"),
    ]  # fmt: skip

    found = unpacked_block(packed_block([others[0], parsed(GAME, None), *others[1:]]))

    assert repr(found) == repr([others[0], parsed(GAME, None), *others[1:]])


def test_a_refusal_keeps_its_code_and_message_and_line() -> None:
    refused = ParsedItem(Item("club.csv", 3, b"", [], None, True), ("anna",), Refused("bad-value", "no place", 5))

    [found] = unpacked_block(packed_block([refused]))

    assert isinstance(found, ParsedItem)
    assert isinstance(found.outcome, Refused)
    assert (found.item, found.names) == (refused.item, ("anna",))
    assert found.outcome.rejection() == Rejection("bad-value", "no place")._replace(line=5)


def test_values_that_are_not_of_a_plain_type_come_out_too() -> None:
    entries = [parsed(GAME, {"score": Decimal("10.50")}), parsed(GAME, None)]

    assert repr(unpacked_block(packed_block(entries))) == repr(entries)
