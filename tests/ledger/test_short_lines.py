"""A line of JSON read in one step says what it says when it is parsed first and read then, whatever stands in it."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ratings_ledger.ledger.events.canonical import (
    EPOCH,
    INSTANT_MAX,
    INSTANT_MIN,
    format_instant,
    parse_instant,
    parse_local,
    parse_object,
)
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.intake.parsing import read_line
from ratings_ledger.ledger.rejections import Refused

LINES = (
    '{"type":"game.recorded","occurred_at":"2010-03-05T19:30:00Z","data":{"game":"catan","game_id":"g-1","group":"ü",'
    '"extra":{"b":"x","a":"y"},"participants":[{"place":1,"player":"anna","score":3},{"place":2,"player":"ben"}]}}',
    '{ "id":"x", "by": "ref","data":{"participants":[{"player":"anna","score":"10.50"},'
    '{"player":"ben","score":9007199254740991}],"game_id":"g 1","game":"catan","kind":"placing"},'
    '"type":"game.recorded","occurred_at":"2010-03-05T19:30:00.5Z"}',
)
PIECES = (
    '"place":1', '"place":null', '"extra":{}', ",", '"', "\\", "\\u00e4", "1.0", "1e3", "NaN", "Infinity", "-Infinity",
    "-0", "01", "9007199254740992", "-9007199254740992", "99999999999999999999", "true", "null", "{", "}", "[", "]",
    " ", "\t", "\n", "\x0b", "\u00a0", '"extra":{"a":"1","a":"2"},', '"player":"anna",', '"place":2,', '"rated":true,',
    '"type":"game.recorded",', '"rated":1,', '"kind":"b5",', '"kind":"placing",', '"id":"i",', '"id":null,', '"by":"",',
    '"position":3,', '"schema_version":1,', '"supersedes":"x",', "24:00:00", "60", "+01:00", "e\u0301", "\u200e", "😀",
    "\x00", "\x7f", "/", "=", "-", '"status":"abandoned",', '"seat":1,', '"score":1,', '"score":"2",',
)  # fmt: skip


def changed(chance: random.Random, line: str) -> bytes:
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3))):
        at = chance.randrange(len(line))
        way = chance.random()
        if way < 0.25:
            line = line[:at] + line[at + chance.randrange(1, 6) :]
            continue
        if way < 0.75:
            at = chance.choice([place for place, letter in enumerate(line) if letter in ",:[{"] or [0]) + 1
        line = line[:at] + chance.choice(PIECES) + line[at:]
    found = line.encode()
    if chance.random() < 0.03:
        at = chance.randrange(len(found))
        found = found[:at] + bytes([chance.randrange(256)]) + found[at:]
    return found


def outcome(read: Callable[[bytes], Any], line: bytes) -> Any:
    try:
        return read(line)
    except Refused as problem:
        return problem.code, problem.message


@pytest.mark.slow
def test_one_step_reading_matches_two_steps() -> None:
    """Reading any line in one step gives the event or refusal that parsing it first gives."""
    chance = random.Random(1)
    codes: set[str] = set()
    taken = 0
    for _ in range(30_000):
        line = changed(chance, chance.choice(LINES))
        short, long = outcome(read_line, line), outcome(lambda given: read_event(parse_object(given)), line)
        # the text tells true from 1, and in which order members stand
        assert repr(short) == repr(long), line
        taken += isinstance(short[0], tuple)
        codes.update({short[0]} if isinstance(short[0], str) else ())
    assert taken > 3_000
    assert {"duplicate-key", "not-an-integer", "integer-too-large", "bad-utf8", "unknown-member"} <= codes


def test_short_time_parsing_matches_long() -> None:
    """The short way of reading any time gives the same instant or refusal as the long way."""
    chance = random.Random(2)
    for _ in range(20_000):
        text = chance.choice(("2010-03-05T19:30:00Z", "0001-01-01T00:00:00.000001Z", "2008-02-29T23:59:59.12345Z"))
        for _ in range(chance.choice((0, 1, 1, 2))):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice("0123456789Tt:.Z+- ") + text[at + chance.randrange(2) :]
        assert outcome(parse_instant, text) == outcome(long_way, text)  # type: ignore[arg-type]


def test_formatting_matches_isoformat() -> None:
    """Any instant is formatted as `isoformat` formats it."""
    chance = random.Random(3)
    ends = (INSTANT_MIN, INSTANT_MAX, 0, -1, 1, 59_999_999, 60_000_000, -60_000_000, -60_000_001)
    for since in (*ends, *(chance.randrange(INSTANT_MIN, INSTANT_MAX) for _ in range(20_000))):
        moment = EPOCH + timedelta(microseconds=since)
        assert format_instant(since) == moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def long_way(text: str) -> int:
    value, aware = parse_local(text)
    if not aware:
        return parse_instant(text)
    return parse_instant(value.isoformat(sep=" "))
