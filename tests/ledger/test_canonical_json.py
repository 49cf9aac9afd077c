"""JSON is parsed strictly, with a code for each refusal, and written as RFC 8785 requires."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import INTEGER_MAX, dump, parse_object

keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
integers = st.integers(-INTEGER_MAX, INTEGER_MAX)
values = st.recursive(
    st.booleans() | integers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=6)


def parse_or_refusal(parse: Callable[[bytes], Any], line: bytes) -> Any:
    """Return the parsed value, or the refusal."""
    try:
        return parse(line)
    except Refused as problem:
        return problem


@pytest.mark.slow
@given(objects)
def test_dump_follows_rfc_8785(value: dict[str, object]) -> None:
    """Any data that a record can have is dumped as RFC 8785 requires."""
    assert dump(value).encode() == rfc8785.dumps(value)


@pytest.mark.slow
@given(objects)
def test_canonical_json_round_trips(value: dict[str, object]) -> None:
    """Canonical JSON is the same byte for byte after parsing and dumping."""
    line = dump(value).encode()

    assert parse_object(line) == value
    assert dump(parse_object(line)).encode() == line


@pytest.mark.slow
@given(objects, st.booleans())
def test_other_spellings_have_one_form(value: dict[str, object], escaped: bool) -> None:
    """Different spellings of the same JSON have one canonical form."""
    spelled = json.dumps(value, ensure_ascii=escaped, indent=1).encode()

    assert dump(parse_object(spelled)) == dump(value)


@given(st.binary(max_size=60) | texts.map(str.encode))
def test_any_bytes_are_read_or_refused(line: bytes) -> None:
    """Any bytes give either an object or a refusal with a printable message."""
    value = parse_or_refusal(parse_object, line)

    assert value.message.isprintable() if isinstance(value, Refused) else isinstance(value, dict)


REFUSED_LINES = {
    "a member twice": (b'{"a":1,"a":1}', "duplicate-key"),
    "a member twice, once null": (b'{"a":null,"a":1}', "duplicate-key"),
    "a member twice, inside": (b'{"a":[{"b":1,"b":2}]}', "duplicate-key"),
    "a member twice, once escaped": (b'{"a":1,"\\u0061":2}', "duplicate-key"),
    "NaN": (b'{"a":NaN}', "not-a-finite-number"),
    "Infinity": (b'{"a":Infinity}', "not-a-finite-number"),
    "minus Infinity": (b'{"a":-Infinity}', "not-a-finite-number"),
    "20 digits": (b'{"a":12345678901234567890}', "integer-too-large"),
    "2^53": (b'{"a":9007199254740992}', "integer-too-large"),
    "-2^53": (b'{"a":-9007199254740992}', "integer-too-large"),
    "5,000 digits": (b'{"a":' + b"9" * 5_000 + b"}", "integer-too-large"),
    "a float": (b'{"a":1.0}', "not-an-integer"),
    "an exponent": (b'{"a":1e3}', "not-an-integer"),
    "a huge exponent": (b'{"a":1e999}', "not-an-integer"),
    "broken UTF-8": (b'{"a":"\xff"}', "bad-utf8"),
    "UTF-8 cut off": (b'{"a":"\xc3', "bad-utf8"),
    "a surrogate in UTF-8": (b'{"a":"\xed\xa0\x80"}', "bad-utf8"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "bad-utf8"),
    "half a surrogate pair": (b'{"a":"\\ud800"}', "lone-surrogate"),
    "the halves swapped": (b'{"a":"\\ude00\\ud83d"}', "lone-surrogate"),
    "half a surrogate pair in a key": (b'{"\\udfff":1}', "lone-surrogate"),
    "brackets 100,000 deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad-json"),
    "brackets never closed": (b"[" * 100_000, "bad-json"),
    "a list": (b'[{"a":1}]', "bad-json"),
    "a string": (b'"a"', "bad-json"),
    "two objects": (b'{"a":1} {"a":1}', "bad-json"),
    "cut off": (b'{"a":1', "bad-json"),
    "a trailing comma": (b'{"a":1,}', "bad-json"),
    "single quotes": (b"{'a':1}", "bad-json"),
    "a raw control character": (b'{"a":"\x01"}', "bad-json"),
    "nothing": (b"", "bad-json"),
}


@pytest.mark.parametrize(("line", "code"), REFUSED_LINES.values(), ids=REFUSED_LINES)
def test_lax_json_is_refused_with_code(line: bytes, code: str) -> None:
    """A line that is not strict JSON is refused with its code."""
    with pytest.raises(Refused) as refusal:
        parse_object(line)

    assert refusal.value.code == code


@pytest.mark.parametrize("depth", [50, 300, 500, 800, 900, 950, 980, 990, 1_000, 2_000])
def test_deep_nesting_is_dumped_or_refused(depth: int) -> None:
    """Deeply nested JSON is either refused or can be dumped again."""
    line = b'{"a":' + b"[" * depth + b'"\\ud83d\\ude00"' + b"]" * depth + b"}"
    value = parse_or_refusal(parse_object, line)

    if isinstance(value, Refused):
        assert value.code == "bad-json"
    else:
        assert parse_object(dump(value).encode()) == value


def test_null_members_are_absent() -> None:
    """Members that are null are treated as absent."""
    assert parse_object(b'{"a":null,"b":{"c":null},"d":[]}') == {"b": {}, "d": []}


def test_surrogate_pair_is_one_character() -> None:
    """An escaped surrogate pair is read as one character."""
    assert parse_object(b'{"a":"\\ud83d\\ude00"}') == {"a": "\U0001f600"}


@pytest.mark.parametrize("number", [0, 1, -1, INTEGER_MAX, -INTEGER_MAX])
def test_integers_are_exact(number: int) -> None:
    """Integers within 2^53 are read exactly."""
    assert parse_object(b'{"a":%d}' % number) == {"a": number}


def test_minus_zero_is_zero() -> None:
    """Minus zero is read as zero."""
    assert dump(parse_object(b'{"a":-0}')) == '{"a":0}'
