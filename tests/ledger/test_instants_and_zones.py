"""Times: exact microseconds over the years 1 to 9999, and local times that name one instant or are refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.canonical import EPOCH, INSTANT_MAX, INSTANT_MIN, format_instant, parse_instant
from ledger.events.zones import day_start, end_of, read_instant, zone
from ledger.rejections import Refused

SECOND = 1_000_000
HOUR = 3_600 * SECOND


@given(st.integers(INSTANT_MIN, INSTANT_MAX))
def test_given_any_instant_of_the_years_1_to_9999_when_formatted_and_parsed_then_it_is_the_same(instant: int) -> None:
    text = format_instant(instant)

    assert parse_instant(text) == instant
    assert len(text) == len("0001-01-01T00:00:00.000000Z")


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), st.integers(-1_439, 1_439))
def test_given_any_time_with_an_offset_when_parsed_then_it_is_the_instant_that_python_says(
    value: datetime, minutes: int
) -> None:
    aware = value.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert EPOCH + timedelta(microseconds=parse_instant(aware.isoformat())) == aware


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
def test_given_a_time_as_people_write_it_when_parsed_then_it_is_utc(text: str, utc: str) -> None:
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
def test_given_what_is_no_instant_when_parsed_then_it_is_refused_with_its_code(text: object, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse_instant(text)

    assert refusal.value.code == code


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
def test_given_a_local_time_when_read_in_a_zone_then_the_zone_decides_unless_there_is_an_offset(
    text: str, zone_name: str, utc: str
) -> None:
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
        ("2010-03-05", None, "naive-time"),
        ("2010-13-05", "UTC", "bad-time"),
        ("0000-01-01", "UTC", "bad-time"),
        ("0001-01-01 00:30", "Europe/Berlin", "bad-time"),
        ("9999-12-31 23:30", "America/New_York", "bad-time"),
    ],
)
def test_given_a_local_time_that_names_no_single_instant_when_read_then_it_is_refused(
    text: str, zone_name: str | None, code: str
) -> None:
    with pytest.raises(Refused) as refusal:
        read_instant(text, zone_name)

    assert refusal.value.code == code


@pytest.mark.parametrize("minute", ["01:59", "03:00"])
def test_given_the_minutes_beside_a_gap_when_read_then_they_exist(minute: str) -> None:
    expected = {"01:59": "2010-03-28T00:59:00.000000Z", "03:00": "2010-03-28T01:00:00.000000Z"}

    assert format_instant(read_instant(f"2010-03-28 {minute}", "Europe/Berlin")) == expected[minute]


@given(st.datetimes(datetime(1995, 1, 1), datetime(2037, 1, 1)), st.sampled_from(["Europe/Berlin", "America/St_Johns"]))
def test_given_an_accepted_local_time_when_shown_in_its_zone_again_then_it_reads_the_same(
    value: datetime, zone_name: str
) -> None:
    try:
        instant = read_instant(value.isoformat(), zone_name)
    except Refused as problem:
        code, shown = problem.code, value
    else:
        local = (EPOCH + timedelta(microseconds=instant)).astimezone(zone(zone_name))
        code, shown = None, local.replace(tzinfo=None)

    assert code in (None, "ambiguous-time", "nonexistent-time")
    assert shown == value


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
def test_given_a_date_when_it_means_up_to_then_it_is_its_last_microsecond_there(
    text: str, zone_name: str, utc: str
) -> None:
    assert format_instant(end_of(text, zone_name)) == utc


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2010, 3, 28), 23), (date(2010, 10, 31), 25), (date(2010, 6, 1), 24)],
)
def test_given_a_day_on_which_clocks_change_when_bounded_then_it_has_its_own_length(day: date, hours: int) -> None:
    assert end_of(day.isoformat(), "Europe/Berlin") + 1 - day_start(day, "Europe/Berlin") == hours * HOUR


def test_given_a_midnight_that_is_skipped_when_the_day_starts_then_it_starts_behind_the_gap() -> None:
    assert format_instant(day_start(date(2018, 11, 4), "America/Sao_Paulo")) == "2018-11-04T03:00:00.000000Z"


def test_given_a_host_without_zone_files_when_a_zone_is_asked_for_then_it_comes_from_the_tzdata_package() -> None:
    zone.cache_clear()
    ZoneInfo.clear_cache()
    reset_tzpath(to=())
    try:
        assert datetime(2010, 7, 5, tzinfo=zone("Europe/Berlin")).astimezone(UTC).hour == 22
    finally:
        reset_tzpath()
