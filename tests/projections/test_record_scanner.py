"""The scanner of records: scanned plain games have the same facts as decoded ones.

With any damage to a record, the scanner never reads beyond its line and never accepts an impossible game.
"""

import json
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from paths import summarize_facts

from ratings_ledger import StoreDamaged
from ratings_ledger.ledger.events.records import build_record
from ratings_ledger.ledger.events.types import TYPES, Draft
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts import bulk_decoding, record_scanner
from ratings_ledger.projections.facts.applying import apply_event
from ratings_ledger.projections.facts.columns import Facts

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
    "all members": [{"place": 1, "player": "a", "score": 9, "seat": 2, "seconds_played": 3600, "status": "finished"},
                   {"place": 2, "player": "b", "score": 9, "seat": 1, "seconds_played": 0, "status": "abandoned"}],
    "a leaver": [{"place": 1, "player": "a"}, {"place": 2, "player": "b", "status": "surrendered"}],
}  # fmt: skip
NOT_PLAIN = {
    "a substitute": [{"place": 1, "player": "a"}, {"place": 2, "player": "b", "status": "removed"},
                     {"place": 2, "player": "c", "replaces": "b", "status": "substitute"}],
    "a score that is no whole number": [{"player": "a", "score": "2.5"}, {"player": "b", "score": 1}],
    "a place and a score that is no whole number": [{"place": 1, "player": "a", "score": "2.5"},
                                                    {"place": 2, "player": "b", "score": 1}],
    "a name with a quote": [{"place": 1, "player": 'a"b'}, {"place": 2, "player": "b"}],
    "a name with a backslash": [{"place": 1, "player": "a\\b"}, {"place": 2, "player": "b"}],
    "extra": [{"extra": {"race": "elf"}, "place": 1, "player": "a"}, {"place": 2, "player": "b"}],
}  # fmt: skip
MEMBERS: list[dict[str, Any]] = [
    {}, {"group": "basic"}, {"city": "7", "season": "2010-1"}, {"league": "l-1"}, {"rated": False}, {"aborted": True},
    {"score_order": "low"}, {"score_order": "high"}, {"kind": "placing"}, {"group": "Ж", "rated": True},
]  # fmt: skip


def build_game_record(position: int, participants: list[dict[str, Any]], at: int = AT, **members: Any) -> str:
    """Return the record of a game."""
    data = {"game": "catan", "game_id": f"g-{position}", "participants": participants, **members}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    draft = Draft(f"game:g-{position}", "game.recorded", 1, f"game:g-{position}", at, text)
    return build_record(draft, position, at, "mira")


def build_page(records: list[str]) -> bytes:
    """Return a page of records."""
    return "".join(f"{record}\n" for record in records).encode()


def decode_records(records: list[str]) -> Facts:
    """Return the facts of records, decoded one by one."""
    facts = Facts(0, b"")
    for position, record in enumerate(records, 1):
        apply_event(facts, position, record)
    return facts


def scan_records(records: list[str]) -> tuple[Facts, list[bool]]:
    """Return the facts of a scanned page, and which of its records were plain."""
    facts = Facts(0, b"")
    page = bulk_decoding.Scanner().scan(build_page(records), 0)
    bulk_decoding.decode_page(facts, page, apply_event, bulk_decoding.FactNumbers())
    return facts, [bool(plain) for plain in page.is_plain]


@pytest.fixture(params=["interpreted", "compiled"], autouse=True)
def scanner_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the scanner interpreted, over bounds-checked bytes, and then compiled; return the name of the mode."""
    if request.param == "interpreted":
        monkeypatch.setattr(compiling, "compile_loop", interpret_loop)
    return str(request.param)


def interpret_loop(loop: Any) -> Any:
    """Return the interpreted loop with memoryviews for its byte arrays: an index out of bounds raises.

    The items of a memoryview are Python integers.
    """

    def run(*arguments: Any) -> Any:
        return loop(*(memoryview(a) if getattr(a, "dtype", None) == np.uint8 else a for a in arguments))

    return run


@pytest.mark.parametrize("members", MEMBERS, ids=str)
@pytest.mark.parametrize("case", PLAIN)
def test_plain_game_matches_decoder(case, members):
    """A scanned plain game has exactly the facts of the decoder."""
    records = [build_game_record(1, PLAIN[case], **members), build_game_record(2, PLAIN["places"])]
    facts, plain = scan_records(records)
    assert plain == [True, True]
    assert summarize_facts(facts) == summarize_facts(decode_records(records))


def test_page_with_many_names_makes_room(monkeypatch):
    """A page with far more players, labels and cells than the scanner has room for has the same facts as decoded."""
    monkeypatch.setattr(bulk_decoding, "CELLS_MIN", 2)
    seats_by_game = [[{"place": 1, "player": f"p-{n}-{seat}"} for seat in range(40)] for n in range(130)]
    records = [build_game_record(n, own, group=f"g-{n}") for n, own in enumerate(seats_by_game, 1)]
    assert sum(map(len, seats_by_game)) > record_scanner.NAMES_MAX
    facts, plain = scan_records(records)
    assert all(plain)
    assert summarize_facts(facts) == summarize_facts(decode_records(records))


@pytest.mark.parametrize("case", NOT_PLAIN)
def test_game_that_is_not_plain_is_left_to_the_decoder(case):
    """A game that is not plain, between plain ones, is left to the decoder and keeps its place."""
    records = [
        build_game_record(1, PLAIN["places"]),
        build_game_record(2, NOT_PLAIN[case]),
        build_game_record(3, PLAIN["scores"]),
    ]
    facts, plain = scan_records(records)
    assert plain == [True, False, True]
    assert summarize_facts(facts) == summarize_facts(decode_records(records))


@pytest.mark.parametrize("at", [
    -62_135_596_800_000_000, -1, 0, 951_782_399_999_999, 951_868_800_000_000, 4_107_542_399_999_999,
    253_402_300_799_999_999,
])  # fmt: skip
def test_times_are_scanned_exactly(at):
    """Times between the years 1 and 9999 are scanned exactly."""
    facts, plain = scan_records([build_game_record(1, PLAIN["places"], at)])
    assert plain == [True]
    assert list(facts.occurred_at) == [at]


BEN = {"place": 2, "player": "ben"}
IMPOSSIBLE = {
    "a place below 1": [{"place": -5, "player": "anna"}, BEN],
    "a gap": [{"place": 1, "player": "anna"}, {"place": 9, "player": "ben"}],
    "a gap after a tie": [{"place": 1, "player": "anna"}, BEN, {"place": 2, "player": "c"},
                          {"place": 5, "player": "d"}],
    "a player twice": [{"place": 1, "player": "ben"}, BEN],
    "one participant": [{"place": 1, "player": "anna"}],
    "no participant": [],
    "a seat of 0": [{"place": 1, "player": "anna", "seat": 0}, BEN],
    "a seat of 2^32 + 1": [{"place": 1, "player": "anna", "seat": 2**32 + 1}, BEN],
    "seconds of 10^12": [{"place": 1, "player": "anna", "seconds_played": 10**12}, BEN],
    "a score of 2^53": [{"player": "anna", "score": 2**53}, {"player": "ben", "score": 1}],
    "a better score behind": [{"place": 1, "player": "anna", "score": 3},
                              {"place": 2, "player": "ben", "score": 4}],
    "one score": [{"place": 1, "player": "anna", "score": 3}, BEN],
    "a substitute without leaver": [{"place": 1, "player": "anna", "status": "substitute"}, BEN],
    "a name with a line end": [{"place": 1, "player": "an\nna"}, BEN],
    "a name of 65 characters": [{"place": 1, "player": "a" * 65}, BEN],
    "a name with a slash": [{"place": 1, "player": "a/b"}, BEN],
    "a name that is not composed": [{"place": 1, "player": "e\u0301mile"}, BEN],
    "an empty name": [{"place": 1, "player": ""}, BEN],
}  # fmt: skip


@pytest.mark.parametrize("members", [{"game": "Catan"}, {"group": ""}, {"game_id": "g\u00a01 "}, {"season": "a/b"}])
def test_impossible_label_makes_names_of_page_invalid(members):
    """A label that no event can have makes the names of the page invalid."""
    page = bulk_decoding.Scanner().scan(build_page([build_game_record(1, PLAIN["places"], **members)]), 0)
    assert not page.has_valid_names


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_game_is_left_to_decoder(case):
    """An impossible game, or its page, is left to the decoder, which does not count it.

    A game with one score is possible and counts.
    """
    records = [build_game_record(1, IMPOSSIBLE[case]), build_game_record(2, PLAIN["places"])]
    page = bulk_decoding.Scanner().scan(build_page(records), 0)
    assert not page.is_plain[0] or not page.has_valid_names
    facts = decode_records(records)
    counts = case == "one score"
    assert list(facts.unread) == ([] if counts else [1])
    assert list(facts.first_position) == ([1, 2] if counts else [2])


@pytest.mark.parametrize("at", [
    "2024-02-30T00:00:00.000000Z", "2023-02-29T00:00:00.000000Z", "2024-13-01T00:00:00.000000Z",
    "2024-04-31T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z", "2024-01-01T24:00:00.000000Z",
    "2024-01-01 00:00:00.000000Z", "2024-01-01T00:00:00.00000aZ", "2024-01-01T00:00:00.000000z", "2024-01-01",
])  # fmt: skip
def test_impossible_time_is_not_plain(at):
    """A record with an impossible time is not a plain game."""
    damaged_record = build_game_record(1, PLAIN["places"]).replace("2010-02-28T19:30:00.000000Z", at).replace(
        '"occurred_at":"2010-03-05T19:30:00.000000Z"', f'"occurred_at":"{at}"')  # fmt: skip
    assert at in damaged_record
    assert not bulk_decoding.Scanner().scan(build_page([damaged_record]), 0).is_plain[0]


def test_message_about_encoding_quotes_the_damaged_record():
    """A page that is not UTF-8 is refused with the beginning of the record that is not UTF-8."""
    page = b'{"by":"anna"}\n{"by":"b\xffn"}\n{"by":"cleo"}\n'
    with pytest.raises(StoreDamaged, match="a record is not UTF-8") as caught:
        bulk_decoding.Scanner().scan(page, 0)
    message = str(caught.value)
    assert '"b\\xffn"' in message
    assert "anna" not in message


def test_other_and_broken_records_are_not_plain():
    """Other events, wrong positions and broken records are never plain games."""
    whole = build_game_record(1, PLAIN["places"])
    for other_record in (
        whole.replace('"game.recorded"', '"game.corrected"'), whole.replace('"position":1', '"position":2'),
        whole.replace('"schema_version":1', '"schema_version":2'), whole.replace('"kind"', '"kind"')[:-1],
        whole.replace('"game":"catan"', '"game":{"game":"catan"}'), whole.replace('"place":1', '"place":1.0'),
        whole.replace('"place":1', '"place":12345678901234567890'), "", "{", '{"data":{', '{"by":"', "[]", "null",
    ):  # fmt: skip
        page = bulk_decoding.Scanner().scan(build_page([other_record]), 0)
        assert not page.is_plain.any(), other_record


def test_random_games_match_decoder():
    """Random games have the same facts when scanned as when decoded."""
    chance, cases_seen = Random(1), Counter[str]()
    records = []
    for position in range(1, 400):
        cases = PLAIN if chance.random() < 0.9 else NOT_PLAIN
        case = chance.choice(list(cases))
        participants = [dict(participant) for participant in cases[case]]
        if cases is PLAIN:
            for participant, name in zip(participants, chance.sample(NAMES, len(participants)), strict=True):
                participant["player"] = name
        records.append(
            build_game_record(position, participants, AT + chance.randrange(10**15), **chance.choice(MEMBERS))
        )
        cases_seen[case] += 1
    facts, plain = scan_records(records)
    assert summarize_facts(facts) == summarize_facts(decode_records(records))
    assert facts.players == decode_records(records).players
    assert facts.cells == decode_records(records).cells
    assert len(cases_seen) == len(PLAIN) + len(NOT_PLAIN)
    assert plain.count(True) > 300


@pytest.mark.slow_cases
def test_damaged_bytes_match_decoder(scanner_mode, at_length):
    """Of records with damaged bytes, only those that the decoder reads in the same way are plain.

    Bytes are changed, left out, doubled or copied from another record.
    """
    chance = Random(2)
    all_records = [
        build_game_record(1, participants, **members) for participants in PLAIN.values() for members in MEMBERS
    ]
    outcomes: Counter[str] = Counter()
    rounds = 20_000 if at_length else 1_000 if scanner_mode == "interpreted" else 4_000
    for _ in range(rounds):
        text = bytearray(chance.choice(all_records).encode())
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            damage = chance.randrange(4)
            if damage == 0:
                text[at] = chance.choice(b'"\\{}[],:0123456789-.tfnaeplyr ')
            elif damage == 1:
                del text[at : at + chance.randint(1, 12)]
            elif damage == 2:
                text[at:at] = text[at : at + chance.randint(1, 12)]
            else:
                other_record = chance.choice(all_records).encode()
                cut = chance.randrange(len(other_record))
                text[at:at] = other_record[cut : cut + chance.randint(1, 30)]
        try:
            page = bulk_decoding.Scanner().scan(bytes(text) + b"\n", 0)
        except StoreDamaged:
            outcomes["no text"] += 1
            continue
        if not page.is_plain[0] or not page.has_valid_names:
            outcomes["left"] += 1
            continue
        expected = decode_records([text.decode()])
        assert not expected.unread, (text, expected.unread)
        facts = Facts(0, b"")
        bulk_decoding.decode_page(facts, page, apply_event, bulk_decoding.FactNumbers())
        assert summarize_facts(facts) == summarize_facts(expected), text
        outcomes["same"] += 1
    assert outcomes["left"] > rounds // 2
    assert outcomes["same"] > rounds // 250


def test_scanner_knows_the_game_schema():
    """The scanner is written for version 1 of the schema of games; a new version needs a new look at the scanner."""
    assert TYPES["game.recorded"].schema_version == 1
