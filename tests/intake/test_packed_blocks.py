"""A block of read events comes out of the message between two processes as it went in."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from weakref import ref

import pytest

from ratings_ledger import Refused, Rejection
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.intake.files import FileDigest, FileNote, Item, Progress
from ratings_ledger.ledger.intake.parsing import ParsedItem, pack_blocks, parse_entry, read_blocks, unpack_block

GAME: dict[str, Any] = {
    "type": "game.recorded", "occurred_at": "2010-03-05T19:30:00.5Z", "by": "Zoë",
    "data": {"game_id": "g 1", "game": "catan", "rated": True, "extra": {"b": "x", "a": "😀"},
             "participants": [{"player": "anna", "place": 1, "score": 9007199254740991},
                              {"player": "ben", "place": 2, "score": "10.50"}]},
}  # fmt: skip
BATCH = {
    "type": "import.recorded", "occurred_at": "2010-03-05T19:30:00Z", "position": 7,
    "data": {"name": "club.csv", "source": "club.csv", "sha256": "0" * 64, "ranges": [[1, 2]]},
}  # fmt: skip


def item(event: Any, source: Any) -> Item:
    """What stands in line 3 of a file."""
    return Item("club.csv", 3, event, source, "g 1", True)


def passed_on(entries: list[Any], wanted: bool) -> list[Any]:
    """What comes out of the one message that some entries are packed into."""
    [message] = pack_blocks(iter(entries), wanted)
    return unpack_block(message)


@pytest.mark.parametrize("event", [GAME, BATCH])
@pytest.mark.parametrize("source", [None, [], [{"player": "anna", "place": "1"}, {"odd": "\udcff"}]])
@pytest.mark.parametrize("wanted", [False, True])
def test_an_event_comes_out_as_it_was_read(event: dict[str, Any], source: Any, wanted: bool) -> None:
    [found] = passed_on([item(event, source)], wanted)

    assert isinstance(found, ParsedItem)
    assert isinstance(found.outcome, tuple)
    # their texts tell named tuples, and 1 and True, apart
    assert repr(found.outcome) == repr(read_event(event))
    assert list(found.outcome[1]) == list(read_event(event)[1])
    assert repr(found) == repr(parse_entry(item(event, source), wanted))
    assert found.item == item(b"", source if wanted or not source else [])


def test_a_line_comes_out_as_it_was_read() -> None:
    line = json.dumps(GAME).encode()

    [found] = passed_on([Item("club.jsonl", 3, line, None)], True)

    assert isinstance(found, ParsedItem)
    assert repr(found.outcome) == repr(read_event(GAME))
    assert found.item == Item("club.jsonl", 3, b"", line.decode())


def test_whatever_else_is_in_a_block_keeps_its_place() -> None:
    others = [
        Rejection("bad-json", "the line is no object", "club.jsonl", 4), Progress("club.jsonl", 100),
        FileDigest("club.jsonl", "0" * 64, None), FileNote("club.csv", "2 blank lines"),
    ]  # fmt: skip

    found = passed_on([others[0], item(GAME, None), *others[1:]], False)

    assert repr(found) == repr([others[0], parse_entry(item(GAME, None), False), *others[1:]])


def test_a_refusal_keeps_its_code_and_message_and_line() -> None:
    refused = item(Refused("bad-value", "no place", 5), [{"player": "anna"}])

    [found] = passed_on([refused], False)

    assert isinstance(found, ParsedItem)
    assert isinstance(found.outcome, Refused)
    assert found.item == item(b"", [])
    assert found.outcome.to_rejection() == Rejection("bad-value", "no place")._replace(line=5)


def test_a_refused_game_of_a_table_keeps_the_names_in_it() -> None:
    data = {**GAME["data"], "participants": [{"player": "anna", "place": 1}, {"player": "anna", "place": 2}]}

    [found] = passed_on([item({**GAME, "data": data}, [])], False)

    assert isinstance(found, ParsedItem)
    assert isinstance(found.outcome, Refused)
    assert (found.outcome.code, found.names) == ("player-twice", ("anna", "anna"))


def test_names_of_a_refused_game_are_composed() -> None:
    """As all names are that are recorded, so that whoever else has one of them is known."""
    data = {**GAME["data"], "participants": [{"player": "jose\u0301", "place": 1}, {"player": "ben", "place": 3}]}

    [found] = passed_on([item({**GAME, "data": data}, [])], False)

    assert (found.outcome.code, found.names) == ("place-gap", ("jos\u00e9", "ben"))


class Read(dict[str, Any]):
    """An event as it was read, to which a weak reference can be had."""


@pytest.mark.parametrize("way", [read_blocks, pack_blocks])
def test_what_was_read_is_not_kept_for_a_whole_block(way: Callable[..., Any]) -> None:
    """What was read of a game takes more memory than what it says: it is gone when the game after the next is read."""
    seen: list[ref[Read]] = []
    alive = list[int]()

    def games() -> Iterator[Item]:
        for number in range(20):
            alive.append(sum(one() is not None for one in seen))
            read = Read({**GAME, "data": {**GAME["data"], "game_id": f"g {number}"}})
            seen.append(ref(read))
            yield item(read, None)

    assert len([*way(games(), False)]) == 1
    assert max(alive) <= 2


def test_values_that_are_not_of_a_plain_type_come_out_too() -> None:
    items = [item(GAME, {"score": Decimal("10.50")}), item(GAME, None)]

    assert repr(passed_on(items, True)) == repr([parse_entry(one, True) for one in items])
