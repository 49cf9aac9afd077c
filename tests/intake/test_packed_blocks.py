"""A block of parsed items is unpacked from the message between two processes as it was packed."""

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
    "type": "import.recorded",
    "occurred_at": "2010-03-05T19:30:00Z",
    "position": 7,
    "data": {"name": "club.csv", "source": "club.csv", "sha256": "0" * 64, "ranges": [[1, 2]]},
}


def build_item(event: Any, source: Any) -> Item:
    """Return the item in line 3 of a file."""
    return Item("club.csv", 3, event, source, "g 1", True)


def pack_and_unpack(entries: list[Any], keeps_sources: bool) -> list[Any]:
    """Pack entries into one message, and return the unpacked entries."""
    [message] = pack_blocks(iter(entries), keeps_sources)
    return unpack_block(message)


@pytest.mark.parametrize("event", [GAME, BATCH])
@pytest.mark.parametrize("source", [None, [], [{"player": "anna", "place": "1"}, {"odd": "\udcff"}]])
@pytest.mark.parametrize("keeps_sources", [False, True])
def test_event_is_unpacked_as_parsed(event: dict[str, Any], source: Any, keeps_sources: bool) -> None:
    """An event is unpacked as it was parsed, with its source if sources are kept."""
    [parsed] = pack_and_unpack([build_item(event, source)], keeps_sources)

    assert isinstance(parsed, ParsedItem)
    assert isinstance(parsed.result, tuple)
    # unlike equality, repr distinguishes named tuples from tuples, and 1 from True
    assert repr(parsed.result) == repr(read_event(event))
    assert list(parsed.result[1]) == list(read_event(event)[1])
    assert repr(parsed) == repr(parse_entry(build_item(event, source), keeps_sources))
    assert parsed.item == build_item(b"", source if keeps_sources or not source else [])


def test_line_is_unpacked_as_parsed() -> None:
    """A line of JSON is unpacked as the parsed event, with the line as its source."""
    line = json.dumps(GAME).encode()

    [parsed] = pack_and_unpack([Item("club.jsonl", 3, line, None)], True)

    assert isinstance(parsed, ParsedItem)
    assert repr(parsed.result) == repr(read_event(GAME))
    assert parsed.item == Item("club.jsonl", 3, b"", line.decode())


def test_other_entries_keep_their_order() -> None:
    """Rejections, progress, digests and notes in a block are unpacked unchanged and in order."""
    entries = [
        Rejection("bad-json", "the line is no object", "club.jsonl", 4),
        Progress("club.jsonl", 100),
        FileDigest("club.jsonl", "0" * 64, None),
        FileNote("club.csv", "2 blank lines"),
    ]

    unpacked = pack_and_unpack([entries[0], build_item(GAME, None), *entries[1:]], False)

    assert repr(unpacked) == repr([entries[0], parse_entry(build_item(GAME, None), False), *entries[1:]])


def test_refusal_keeps_code_message_and_line() -> None:
    """A refused item is unpacked with its code, message and line."""
    refused_item = build_item(Refused("bad-value", "no place", 5), [{"player": "anna"}])

    [parsed] = pack_and_unpack([refused_item], False)

    assert isinstance(parsed, ParsedItem)
    assert isinstance(parsed.result, Refused)
    assert parsed.item == build_item(b"", [])
    assert parsed.result.to_rejection() == Rejection("bad-value", "no place")._replace(line=5)


def test_refused_game_of_a_table_keeps_its_names() -> None:
    """A refused game of a table is unpacked with the names of its players."""
    data = {**GAME["data"], "participants": [{"player": "anna", "place": 1}, {"player": "anna", "place": 2}]}

    [parsed] = pack_and_unpack([build_item({**GAME, "data": data}, [])], False)

    assert isinstance(parsed, ParsedItem)
    assert isinstance(parsed.result, Refused)
    assert (parsed.result.code, parsed.names) == ("player-twice", ("anna", "anna"))


def test_names_of_a_refused_game_are_composed() -> None:
    """The names of a refused game are composed as recorded names are, so that they match those."""
    data = {**GAME["data"], "participants": [{"player": "jose\u0301", "place": 1}, {"player": "ben", "place": 3}]}

    [parsed] = pack_and_unpack([build_item({**GAME, "data": data}, [])], False)

    assert (parsed.result.code, parsed.names) == ("place-gap", ("jos\u00e9", "ben"))


class WeaklyReferencedEvent(dict[str, Any]):
    """An event to which weak references are possible."""


@pytest.mark.parametrize("process_items", [read_blocks, pack_blocks])
def test_events_are_freed_soon_after_parsing(process_items: Callable[..., Any]) -> None:
    """The event of a reader, which takes more memory than the parsed one, is freed before the game after next."""
    references: list[ref[WeaklyReferencedEvent]] = []
    alive_counts = list[int]()

    def yield_games() -> Iterator[Item]:
        for number in range(20):
            alive_counts.append(sum(reference() is not None for reference in references))
            event = WeaklyReferencedEvent({**GAME, "data": {**GAME["data"], "game_id": f"g {number}"}})
            references.append(ref(event))
            yield build_item(event, None)

    assert len([*process_items(yield_games(), False)]) == 1
    assert max(alive_counts) <= 2


def test_values_of_other_types_are_unpacked() -> None:
    """A source with a value that is not a plain JSON type is unpacked unchanged."""
    items = [build_item(GAME, {"score": Decimal("10.50")}), build_item(GAME, None)]

    assert repr(pack_and_unpack(items, True)) == repr([parse_entry(item, True) for item in items])
