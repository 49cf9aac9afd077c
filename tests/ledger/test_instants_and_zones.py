"""Instants are exact to the microsecond from year 1 to 9999; a local time that names no single instant is refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import EPOCH, INSTANT_MAX, INSTANT_MIN, format_instant, parse_instant
from ratings_ledger.ledger.events.zones import day_start, load_zone, read_from, read_instant, read_until

SECOND = 1_000_000
HOUR = 3_600 * SECOND


@given(st.integers(INSTANT_MIN, INSTANT_MAX))
def test_instant_survives_formatting(instant: int) -> None:
    """Any instant of the years 1 to 9999 is the same after formatting and parsing."""
    text = format_instant(instant)

    assert parse_instant(text) == instant
    assert len(text) == len("0001-01-01T00:00:00.000000Z")


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), st.integers(-1_439, 1_439))
def test_offset_time_matches_python(value: datetime, minutes: int) -> None:
    """Any time with an offset parses to the instant that Python computes."""
    time_with_offset = value.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert EPOCH + timedelta(microseconds=parse_instant(time_with_offset.isoformat())) == time_with_offset


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("2010-03-05T20:30:00+01:00", "2010-03-05T19:30:00.000000Z"),
        ("2010-03-05t19:30:00.5z", "2010-03-05T19:30:00.500000Z"),
        ("2010-03-05T00:15:00+05:45", "2010-03-04T18:30:00.000000Z"),
        ("1969-12-31T23:59:59.999999-00:00", "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_written_time_is_parsed_to_utc(text: str, utc: str) -> None:
    """A time written in any accepted notation is parsed to UTC."""
    assert format_instant(parse_instant(text)) == utc


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2010-03-05T19:30:00", "naive-time"),
        ("0000-01-01T00:00:00Z", "bad-time"),
        ("10000-01-01T00:00:00Z", "bad-time"),
        ("0001-01-01T00:00:00+00:01", "bad-time"),
        ("9999-12-31T23:59:59-00:01", "bad-time"),
        ("2010-02-29T00:00:00Z", "bad-time"),
        ("2010-03-05T24:00:00Z", "bad-time"),
        ("2016-12-31T23:59:60Z", "bad-time"),
        ("2010-03-05T19:30:00.1234567Z", "bad-time"),
        ("2010-03-05T19:30:00+24:00", "bad-time"),
        ("2010-03-05T19:30:00+01:60", "bad-time"),
        ("2010-03-05", "bad-time"),
        ("yesterday", "bad-time"),
        ("", "bad-time"),
        ("２０１０-03-05T19:30:00Z", "bad-time"),
        ("2010-03-05T19:30:00Z\n", "bad-time"),
        (1267817400, "wrong-type"),
        (True, "wrong-type"),
    ],
)
def test_bad_instant_is_refused(text: object, code: str) -> None:
    """A text or value that is not an instant is refused with its code."""
    with pytest.raises(Refused) as refusal:
        parse_instant(text)

    assert refusal.value.code == code


def test_refusal_of_an_offset_names_the_reason() -> None:
    """An offset of more than 23 hours is refused with the reason."""
    with pytest.raises(Refused, match=r"is not a time: the offset has more than 23 hours$"):
        parse_instant("2010-03-05T19:30:00+99:00")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("30.09.2026", "; write the date as 2026-09-30"),
        ("5.3.2010", "; write the date as 2010-03-05"),
        ("09.30.2026", ""),
        ("3.2010", ""),
    ],
)
def test_refusal_of_a_date_with_dots_suggests_iso(text: str, hint: str) -> None:
    """The refusal of a date with dots, which mean day.month.year, suggests the same day as year-month-day."""
    with pytest.raises(Refused) as refusal:
        read_instant(text, "UTC")
    assert refusal.value.message.endswith(f"(year-month-day){hint}")


@pytest.mark.parametrize(
    ("text", "zone_name", "utc"),
    [
        ("2010-03-05 20:30", "Europe/Berlin", "2010-03-05T19:30:00.000000Z"),
        ("2010-07-05 20:30", "Europe/Berlin", "2010-07-05T18:30:00.000000Z"),
        ("2010-03-05", "Europe/Berlin", "2010-03-05T11:00:00.000000Z"),
        ("2010-03-05", "Pacific/Kiritimati", "2010-03-04T22:00:00.000000Z"),
        ("2010-03-05T20:30:00-03:00", "Europe/Berlin", "2010-03-05T23:30:00.000000Z"),
    ],
)
def test_local_time_uses_its_zone(text: str, zone_name: str, utc: str) -> None:
    """A local time is read in the given zone unless it has an offset of its own."""
    assert format_instant(read_instant(text, zone_name)) == utc


@pytest.mark.parametrize(
    ("text", "zone_name", "code"),
    [
        ("2010-10-31 02:30", "Europe/Berlin", "ambiguous-time"),
        ("2010-03-28 02:30", "Europe/Berlin", "nonexistent-time"),
        ("2010-11-07 01:30", "America/New_York", "ambiguous-time"),
        ("2010-03-14 02:00", "America/New_York", "nonexistent-time"),
        ("2011-12-30 12:00", "Pacific/Apia", "nonexistent-time"),
        ("2011-12-30", "Pacific/Apia", "nonexistent-time"),
        ("2010-04-04 01:45", "Australia/Lord_Howe", "ambiguous-time"),
        ("2010-03-05 20:30", "Europe/Atlantis", "unknown-zone"),
        ("2010-03-05 20:30", "../../etc/passwd", "unknown-zone"),
        ("2010-03-05 20:30", "", "unknown-zone"),
        ("2010-03-05 20:30", None, "naive-time"),
        ("2010-13-05", "UTC", "bad-time"),
        ("0000-01-01", "UTC", "bad-time"),
        ("0001-01-01 00:30", "Europe/Berlin", "bad-time"),
        ("9999-12-31 23:30", "America/New_York", "bad-time"),
    ],
)
def test_unclear_local_time_is_refused(text: str, zone_name: str | None, code: str) -> None:
    """A local time that names no single instant is refused."""
    with pytest.raises(Refused) as refusal:
        read_instant(text, zone_name)

    assert refusal.value.code == code


@pytest.mark.parametrize("minute", ["01:59", "03:00"])
def test_minutes_beside_a_gap_exist(minute: str) -> None:
    """The minutes just before and after a skipped hour are accepted."""
    expected = {"01:59": "2010-03-28T00:59:00.000000Z", "03:00": "2010-03-28T01:00:00.000000Z"}

    assert format_instant(read_instant(f"2010-03-28 {minute}", "Europe/Berlin")) == expected[minute]


@given(st.datetimes(datetime(1995, 1, 1), datetime(2037, 1, 1)), st.sampled_from(["Europe/Berlin", "America/St_Johns"]))
def test_accepted_local_time_round_trips(value: datetime, zone_name: str) -> None:
    """An accepted local time is the same when it is converted back to its zone."""
    try:
        instant = read_instant(value.isoformat(), zone_name)
    except Refused as problem:
        code, round_trip = problem.code, value
    else:
        local = (EPOCH + timedelta(microseconds=instant)).astimezone(load_zone(zone_name))
        code, round_trip = None, local.replace(tzinfo=None)

    assert code in (None, "ambiguous-time", "nonexistent-time")
    assert round_trip == value


@pytest.mark.parametrize(
    ("text", "zone_name", "utc"),
    [
        ("2010-12-31", "UTC", "2010-12-31T23:59:59.999999Z"),
        ("2010-12-31", "Europe/Berlin", "2010-12-31T22:59:59.999999Z"),
        ("2010-12-31T12:00:00Z", "Europe/Berlin", "2010-12-31T12:00:00.000000Z"),
        ("9999-12-31", "UTC", "9999-12-31T23:59:59.999999Z"),
        ("9999-12-31", "America/New_York", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_date_ends_at_its_last_microsecond(text: str, zone_name: str, utc: str) -> None:
    """A date used as an end is its last microsecond in the given zone."""
    assert format_instant(read_until(text, zone_name)) == utc


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2010-12", "2010-12-01", "2010-12-31"),
        ("2010", "2010-01-01", "2010-12-31"),
        ("9999", "9999-01-01", "9999-12-31"),
    ],
)
@pytest.mark.parametrize("zone_name", ["UTC", "Europe/Berlin", "Pacific/Kiritimati"])
def test_month_and_year_are_their_days(text: str, first: str, last: str, zone_name: str) -> None:
    """A month or a year begins with its first day and ends with its last one, in the given zone."""
    assert read_from(text, zone_name) == read_from(first, zone_name)
    assert read_until(text, zone_name) == read_until(last, zone_name)


@pytest.mark.parametrize("text", ["2024-13", "2024-00", "0000", "24-02", "2024-2", "20240", "2024-02-", "2024/02"])
def test_malformed_month_or_year_is_refused(text: str) -> None:
    """A malformed month or year is refused."""
    for read in (read_from, read_until):
        with pytest.raises(Refused, match="is not a time"):
            read(text, "UTC")


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2010, 3, 28), 23), (date(2010, 10, 31), 25), (date(2010, 6, 1), 24)],
)
def test_clock_change_day_has_own_length(day: date, hours: int) -> None:
    """A day on which clocks change has 23 or 25 hours, any other day 24."""
    assert read_until(day.isoformat(), "Europe/Berlin") + 1 - day_start(day, "Europe/Berlin") == hours * HOUR


def test_skipped_midnight_starts_after_gap() -> None:
    """A day whose midnight is skipped starts after the gap."""
    assert format_instant(day_start(date(2018, 11, 4), "America/Sao_Paulo")) == "2018-11-04T03:00:00.000000Z"


def test_zones_come_from_tzdata_package() -> None:
    """On a host without zone files, zones come from the tzdata package."""
    load_zone.cache_clear()
    ZoneInfo.clear_cache()
    reset_tzpath(to=())
    try:
        assert datetime(2010, 7, 5, tzinfo=load_zone("Europe/Berlin")).astimezone(UTC).hour == 22
    finally:
        reset_tzpath()
