"""Parse and format exact values: strict JSON, canonical JSON (RFC 8785) and instants.

>>> parse_object(b'{"b": 1, "a": null}')
{'b': 1}
>>> dump({"b": 1, "a": "\\u00fc"})
'{"a":"ü","b":1}'
>>> parse_instant("2010-03-05T20:30:00+01:00")
1267817400000000
"""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NoReturn

from pydantic_core import to_json

from ratings_ledger.ledger.rejections import Refused, quote

INTEGER_MAX = 2**53 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# in dates with dots the day comes first
_DAY_FIRST = re.compile(r"([12]?\d|0[1-9]|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?", re.ASCII
)
# for these texts, `datetime.fromisoformat` agrees with `_INSTANT` and takes a tenth of the time
_PLAIN_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def dump(value: Any) -> str:
    """Return the canonical JSON of a value made up of objects with ASCII keys, lists, strings, integers and booleans.

    For these types (no floats, no other keys) the standard encoder with sorted keys follows RFC 8785.
    """
    return _dump(value)


# encodes a single string exactly as `dump` does
dump_text = json.encoder.encode_basestring


def dump_in_order(value: Any) -> str:
    """Return the same as `dump` for objects whose members are already in canonical order, several times faster.

    This encoder, too, escapes strings as RFC 8785 requires.
    """
    return to_json(value).decode()


def _parse_integer(digits: str) -> int:
    if len(digits) > 15 and (len(digits) > 17 or abs(int(digits)) > INTEGER_MAX):
        raise Refused("integer-too-large", f"{quote(digits)} is not between -{INTEGER_MAX} and {INTEGER_MAX}")
    return int(digits)


def _refuse_fraction(digits: str) -> NoReturn:
    remedy = f'write a fraction as a string: "{digits}"'
    if "e" in digits.lower():
        remedy = "write it without an exponent, and a fraction as a string"
    raise Refused("not-an-integer", f"{quote(digits)} is not a whole number; {remedy}")


def _refuse_constant(name: str) -> NoReturn:
    raise Refused("not-a-finite-number", f"{name} is not a JSON number; write a number, or leave the member out")


def drop_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from its (name, value) pairs, without null members. Raises `Refused` (duplicate-key)."""
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise Refused("duplicate-key", f"the member {quote(repeated)} occurs twice in one object; leave one out")
    if None in members.values():
        return {key: value for key, value in pairs if value is not None}
    return members


_decoder = json.JSONDecoder(
    object_pairs_hook=drop_nulls,
    parse_int=_parse_integer,
    parse_float=_refuse_fraction,
    parse_constant=_refuse_constant,
)


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse a line of JSON as an object, without null members (null means absent).

    Raises `Refused`: bad-utf8, bad-json, duplicate-key, lone-surrogate, not-an-integer, integer-too-large,
    not-a-finite-number.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} of the line is not UTF-8: {error.reason}; write it in UTF-8"
        raise Refused("bad-utf8", message) from None
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused("bad-json", f"not JSON at character {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise Refused("bad-json", "the brackets are nested too deeply") from None
    if not isinstance(value, dict):
        raise Refused("bad-json", f"each line must be one JSON object, not {quote(value, 30)}")
    if _ESCAPED_SURROGATE.search(line):
        try:
            dump(value).encode("utf-8")
        except UnicodeEncodeError:
            message = "the text holds half of a surrogate pair (\\ud800 to \\udfff); write both halves, or none"
            raise Refused("lone-surrogate", message) from None
    return value


def parse_date_and_time(text: str) -> tuple[datetime, bool]:
    """Parse a date and time; return it, and whether it has an offset. Raises `Refused` (bad-time)."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        day_first = _DAY_FIRST.fullmatch(text)
        hint = f"; write the date as {day_first[3]}-{day_first[2]:0>2}-{day_first[1]:0>2}" if day_first else ""
        problem = "is not a time like 2010-03-05T19:30:00Z or 2010-03-05 20:30 (year-month-day)"
        raise Refused("bad-time", f"{quote(text)} {problem}{hint}")
    year, month, day, hour, minute, second, fraction, zulu, sign, off_hour, off_minute = match.groups()
    if fraction is not None and len(fraction) > 6:
        raise Refused("bad-time", f"{quote(text)} is finer than a microsecond; write at most six decimals")
    try:
        date_and_minute = int(year), int(month), int(day), int(hour), int(minute)
        value = datetime(*date_and_minute, int(second or 0), int((fraction or "0").ljust(6, "0")))
        if zulu:
            return value.replace(tzinfo=UTC), True
        if sign is None:
            return value, False
        if int(off_minute) > 59:
            raise ValueError("the offset has more than 59 minutes")
        if int(off_hour) > 23:
            raise ValueError("the offset has more than 23 hours")
        offset = timedelta(hours=int(off_hour), minutes=int(off_minute))
        return value.replace(tzinfo=timezone(-offset if sign == "-" else offset)), True
    except ValueError as error:
        problem = "years run from 0001 to 9999" if year == "0000" else str(error)
        raise Refused("bad-time", f"{quote(text)} is not a time: {problem}") from None


def to_microseconds(value: datetime) -> int:
    """Convert a time with an offset to microseconds since 1970. Raises `Refused` outside the years 1 to 9999 UTC."""
    microseconds = (value - EPOCH) // MICROSECOND
    if not INSTANT_MIN <= microseconds <= INSTANT_MAX:
        raise Refused("bad-time", f"{value.isoformat()} is outside the years 0001 to 9999 in UTC")
    return microseconds


INSTANT_MIN = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
INSTANT_MAX = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


def parse_instant(text: object) -> int:
    """Parse an RFC 3339 time with an offset to microseconds since 1970 UTC.

    Raises `Refused` (wrong-type, bad-time, naive-time).
    """
    if not isinstance(text, str):
        raise Refused("wrong-type", f"a time must be a string, not {quote(text)}")
    return _parse_instant(text)


@lru_cache(maxsize=1_024)  # many games of a table have the same date
def _parse_instant(text: str) -> int:
    if _PLAIN_INSTANT.fullmatch(text):
        try:
            return to_microseconds(datetime.fromisoformat(text))
        except ValueError:
            pass
    value, has_offset = parse_date_and_time(text)
    if not has_offset:
        raise Refused("naive-time", f"{quote(text)} has no offset; write one after it, such as Z or +01:00")
    return to_microseconds(value)


def format_instant(microseconds: int) -> str:
    """Format microseconds since 1970 as in records: UTC, six fractional digits, `Z`."""
    seconds, microsecond = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    days, minute = divmod(minutes, 1_440)
    return f"{_format_day(days)}T{_format_minute(minute)}:{second:02}.{microsecond:06}Z"


# caches: many instants share few days, and a day has few minutes


@lru_cache(maxsize=16_384)
def _format_day(days: int) -> str:
    return (EPOCH + timedelta(days=days)).date().isoformat()


@lru_cache(maxsize=1_440)
def _format_minute(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def parse_record_instant(text: str) -> int:
    """Parse a time in the form of records to microseconds, faster than `parse_instant`."""
    return (datetime.fromisoformat(text) - EPOCH) // MICROSECOND
