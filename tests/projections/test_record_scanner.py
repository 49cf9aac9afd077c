"""The scanner of records: what it takes for a plain game is what the decoder that reads everything makes of it, and
whatever is written over a record, it never reads beyond its line and never takes what it should not."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from paths import NEVER, told

from ratings_ledger import StoreDamaged
from ratings_ledger.ledger.events.records import build_record
from ratings_ledger.ledger.events.types import TYPES, Draft
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts import bulk_decoding, record_scanner
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import apply_event

NAMES = ["anna", "Émile", "ζωή", "美咲", "a" * 60, "o'neill", "x,y:{z}", "[]", "true", "player"]
AT = 1_267_817_400_000_000

PLAIN = {
    "places": [{"place": 1, "player": "anna"}, {"place": 2, "player": "ben"}],
    "ties, competition": [{"place": 1, "player": "a"}, {"place": 2, "player": "b"}, {"place": 2, "player": "c"},
                          {"place": 4, "player": "d"}],
    "ties, dense": [{"place": 1, "player": "a"}, {"place": 2, "player": "b"}, {"place": 2, "player": "c"},
                    {"place": 3, "player": "d"}],
    "not in order": [{"place": 3, "player": "a"}, {"place": 1, "player": "b"}, {"place": 2, "player": "c"}],
    "scores": [{"player": "a", "score": 10}, {"player": "b", "score": -3}, {"player": "c", "score": 10}],
    "places and scores": [{"place": 1, "player": "a", "score": 7}, {"place": 2, "player": "b", "score": 7}],
    "everything": [{"place": 1, "player": "a", "score": 9, "seat": 2, "seconds_played": 3600, "status": "finished"},
                   {"place": 2, "player": "b", "score": 9, "seat": 1, "seconds_played": 0, "status": "abandoned"}],
    "who left": [{"place": 1, "player": "a"}, {"place": 2, "player": "b", "status": "surrendered"}],
}  # fmt: skip
NOT_PLAIN = {
    "a substitute": [{"place": 1, "player": "a"}, {"place": 2, "player": "b", "status": "removed"},
                     {"place": 2, "player": "c", "replaces": "b", "status": "substitute"}],
    "a score that is no whole number": [{"player": "a", "score": "2.5"}, {"player": "b", "score": 1}],
    "a place and such a score": [{"place": 1, "player": "a", "score": "2.5"}, {"place": 2, "player": "b", "score": 1}],
    "a name with a quote": [{"place": 1, "player": 'a"b'}, {"place": 2, "player": "b"}],
    "a name with a backslash": [{"place": 1, "player": "a\\b"}, {"place": 2, "player": "b"}],
    "extra": [{"extra": {"race": "elf"}, "place": 1, "player": "a"}, {"place": 2, "player": "b"}],
}  # fmt: skip
MEMBERS: list[dict[str, Any]] = [
    {}, {"group": "basic"}, {"city": "7", "season": "2010-1"}, {"league": "l-1"}, {"rated": False}, {"aborted": True},
    {"score_order": "low"}, {"score_order": "high"}, {"kind": "placing"}, {"group": "Ж", "rated": True},
]  # fmt: skip


def record(position: int, participants: list[dict[str, Any]], at: int = AT, **members: Any) -> str:
    data = {"game": "catan", "game_id": f"g-{position}", "participants": participants, **members}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    draft = Draft(f"game:g-{position}", "game.recorded", 1, f"game:g-{position}", at, text)
    return build_record(draft, position, at, "mira")


def page(records: list[str]) -> bytes:
    return "".join(f"{one}\n" for one in records).encode()


def one_by_one(records: list[str]) -> Facts:
    facts = Facts(0, b"")
    for position, one in enumerate(records, 1):
        apply_event(facts, position, one)
    return facts


def scanned(records: list[str]) -> tuple[Facts, list[bool]]:
    """The facts of a page that was scanned, and which of its records were plain."""
    facts = Facts(0, b"")
    found = bulk_decoding.Scanner().scan(page(records), 0)
    bulk_decoding.decode_page(facts, found, apply_event, bulk_decoding.FactNumbers())
    return facts, [bool(plain) for plain in found.is_plain]


@pytest.fixture(params=["interpreted", "compiled"], autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The scanner as it stands, over bytes, and compiled."""
    if request.param == "interpreted":
        monkeypatch.setattr(compiling, "compile_loop", interpreted)
    return str(request.param)


def interpreted(loop: Any) -> Any:
    """A loop over Python's own bytes and integers, which say when an index is out of bounds."""

    def run(*arguments: Any) -> Any:
        return loop(*(memoryview(a) if getattr(a, "dtype", None) == np.uint8 else a for a in arguments))

    return run


@pytest.mark.parametrize("members", MEMBERS, ids=str)
@pytest.mark.parametrize("case", PLAIN)
def test_plain_game_matches_decoder(case, members):
    """A plain game is scanned to just what the decoder makes of it."""
    records = [record(1, PLAIN[case], **members), record(2, PLAIN["places"])]
    facts, plain = scanned(records)
    assert plain == [True, True]
    assert told(facts) == told(one_by_one(records))


def test_page_that_names_more_than_there_is_room_for(monkeypatch):
    """Given a page with many times as many players, labels and cells as a scanner has room for at first, it makes room
    within the page, and all games are what the decoder makes of them."""
    monkeypatch.setattr(bulk_decoding, "CELLS_GROWTH", 2)
    seats = [[{"place": 1, "player": f"p-{n}-{seat}"} for seat in range(40)] for n in range(130)]
    records = [record(n, own, group=f"g-{n}") for n, own in enumerate(seats, 1)]
    assert sum(map(len, seats)) > record_scanner.NAMES_MAX
    facts, plain = scanned(records)
    assert all(plain)
    assert told(facts) == told(one_by_one(records))


@pytest.mark.parametrize("case", NOT_PLAIN)
def test_other_game_keeps_its_place(case):
    """A game that is not plain, between plain ones, is left to the decoder in its place."""
    records = [record(1, PLAIN["places"]), record(2, NOT_PLAIN[case]), record(3, PLAIN["scores"])]
    facts, plain = scanned(records)
    assert plain == [True, False, True]
    assert told(facts) == told(one_by_one(records))


@pytest.mark.parametrize("at", [
    -62_135_596_800_000_000, -1, 0, 951_782_399_999_999, 951_868_800_000_000, 4_107_542_399_999_999,
    253_402_300_799_999_999,
])  # fmt: skip
def test_times_are_scanned_exactly(at):
    """A time between the years 1 and 9999 is scanned as that instant."""
    facts, plain = scanned([record(1, PLAIN["places"], at)])
    assert plain == [True]
    assert list(facts.occurred_at) == [at]


def seats(*participants: dict[str, Any]) -> list[dict[str, Any]]:
    return list(participants)


BEN = {"place": 2, "player": "ben"}
IMPOSSIBLE = {
    "a place below 1": seats({"place": -5, "player": "anna"}, BEN),
    "a gap": seats({"place": 1, "player": "anna"}, {"place": 9, "player": "ben"}),
    "a tie behind a gap": seats({"place": 1, "player": "anna"}, BEN, {"place": 2, "player": "c"},
                                {"place": 5, "player": "d"}),
    "somebody twice": seats({"place": 1, "player": "ben"}, BEN),
    "one alone": seats({"place": 1, "player": "anna"}),
    "nobody": [],
    "a seat of 0": seats({"place": 1, "player": "anna", "seat": 0}, BEN),
    "a seat of 2^32": seats({"place": 1, "player": "anna", "seat": 2**32 + 1}, BEN),
    "seconds of 10^12": seats({"place": 1, "player": "anna", "seconds_played": 10**12}, BEN),
    "a score of 2^53": seats({"player": "anna", "score": 2**53}, {"player": "ben", "score": 1}),
    "a better score behind": seats({"place": 1, "player": "anna", "score": 3},
                                   {"place": 2, "player": "ben", "score": 4}),
    "one score": seats({"place": 1, "player": "anna", "score": 3}, BEN),
    "a substitute of nobody": seats({"place": 1, "player": "anna", "status": "substitute"}, BEN),
    "a name with a line end": seats({"place": 1, "player": "an\nna"}, BEN),
    "a name of 65 characters": seats({"place": 1, "player": "a" * 65}, BEN),
    "a name with a slash": seats({"place": 1, "player": "a/b"}, BEN),
    "a name that is not composed": seats({"place": 1, "player": "e\u0301mile"}, BEN),
    "an empty name": seats({"place": 1, "player": ""}, BEN),
}  # fmt: skip


@pytest.mark.parametrize("members", [{"game": "Catan"}, {"group": ""}, {"game_id": "g\u00a01 "}, {"season": "a/b"}])
def test_impossible_label_makes_page_unsound(members):
    """A label that no event can have makes the page unsound."""
    found = bulk_decoding.Scanner().scan(page([record(1, PLAIN["places"], **members)]), 0)
    assert not found.has_valid_names


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_game_is_left_to_decoder(case):
    """A game that cannot be played is treated as the decoder treats it.

    It is left to the decoder, or the page is; one score is possible and counts.
    """
    records = [record(1, IMPOSSIBLE[case]), record(2, PLAIN["places"])]
    found = bulk_decoding.Scanner().scan(page(records), 0)
    assert not found.is_plain[0] or not found.has_valid_names
    facts = one_by_one(records)
    counts = case == "one score"
    assert list(facts.unread) == ([] if counts else [1])
    assert list(facts.first_position) == ([1, 2] if counts else [2])


@pytest.mark.parametrize("at", [
    "2024-02-30T00:00:00.000000Z", "2023-02-29T00:00:00.000000Z", "2024-13-01T00:00:00.000000Z",
    "2024-04-31T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z", "2024-01-01T24:00:00.000000Z",
    "2024-01-01 00:00:00.000000Z", "2024-01-01T00:00:00.00000aZ", "2024-01-01T00:00:00.000000z", "2024-01-01",
])  # fmt: skip
def test_impossible_time_is_not_plain(at):
    """A record with a time that no record can have is not a plain game."""
    odd = record(1, PLAIN["places"]).replace("2010-02-28T19:30:00.000000Z", at).replace(
        '"occurred_at":"2010-03-05T19:30:00.000000Z"', f'"occurred_at":"{at}"')  # fmt: skip
    assert at in odd
    assert not bulk_decoding.Scanner().scan(page([odd]), 0).is_plain[0]


def test_other_records_are_not_plain():
    """Other events, wrong positions and broken records are never taken for a plain game."""
    whole = record(1, PLAIN["places"])
    for odd in (
        whole.replace('"game.recorded"', '"game.corrected"'), whole.replace('"position":1', '"position":2'),
        whole.replace('"schema_version":1', '"schema_version":2'), whole.replace('"kind"', '"kind"')[:-1],
        whole.replace('"game":"catan"', '"game":{"game":"catan"}'), whole.replace('"place":1', '"place":1.0'),
        whole.replace('"place":1', '"place":12345678901234567890'), "", "{", '{"data":{', '{"by":"', "[]", "null",
    ):  # fmt: skip
        found = bulk_decoding.Scanner().scan(page([odd]), 0)
        assert not found.is_plain.any(), odd


def test_random_games_match_decoder():
    """Random games give the same facts when scanned as when decoded."""
    chance, seen = Random(1), Counter[str]()
    records = []
    for position in range(1, 400):
        cases = PLAIN if chance.random() < 0.9 else NOT_PLAIN
        case = chance.choice(list(cases))
        participants = [dict(one) for one in cases[case]]
        if cases is PLAIN:
            for one, name in zip(participants, chance.sample(NAMES, len(participants)), strict=True):
                one["player"] = name
        records.append(record(position, participants, AT + chance.randrange(10**15), **chance.choice(MEMBERS)))
        seen[case] += 1
    facts, plain = scanned(records)
    assert told(facts) == told(one_by_one(records))
    assert facts.players == one_by_one(records).players
    assert facts.cells == one_by_one(records).cells
    assert len(seen) == len(PLAIN) + len(NOT_PLAIN)
    assert plain.count(True) > 300


@pytest.mark.slow_cases
def test_damaged_bytes_match_decoder(mode, at_length):
    """Of records with damaged bytes, only those that the decoder reads the same way are plain.

    Bytes are changed, left out, doubled or brought from elsewhere in the page.
    """
    chance = Random(2)
    every = [record(1, participants, **members) for participants in PLAIN.values() for members in MEMBERS]
    outcomes: Counter[str] = Counter()
    rounds = 20_000 if at_length else 1_000 if mode == "interpreted" else 4_000
    for _ in range(rounds):
        text = bytearray(chance.choice(every).encode())
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            harm = chance.randrange(4)
            if harm == 0:
                text[at] = chance.choice(b'"\\{}[],:0123456789-.tfnaeplyr ')
            elif harm == 1:
                del text[at : at + chance.randint(1, 12)]
            elif harm == 2:
                text[at:at] = text[at : at + chance.randint(1, 12)]
            else:
                other = chance.choice(every).encode()
                cut = chance.randrange(len(other))
                text[at:at] = other[cut : cut + chance.randint(1, 30)]
        try:
            found = bulk_decoding.Scanner().scan(bytes(text) + b"\n", 0)
        except StoreDamaged:
            outcomes["no text"] += 1
            continue
        if not found.is_plain[0] or not found.has_valid_names:
            outcomes["left"] += 1
            continue
        wanted = one_by_one([text.decode()])
        assert not wanted.unread, (text, wanted.unread)
        facts = Facts(0, b"")
        bulk_decoding.decode_page(facts, found, apply_event, bulk_decoding.FactNumbers())
        assert told(facts) == told(wanted), text
        outcomes["same"] += 1
    assert outcomes["left"] > rounds // 2
    assert outcomes["same"] > rounds // 250


def test_scanner_knows_the_game_schema():
    """The scanner knows the current version of the game's schema.

    A new version of the game's schema needs another look at the scanner.
    """
    assert TYPES["game.recorded"].schema_version == 1
    assert NEVER > bulk_decoding.PAGE_EVENTS
    assert Path(record_scanner.__file__).name == "record_scanner.py"
