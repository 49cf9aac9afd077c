"""Convert times between zones and instants.

All zones come from the tzdata package instead of the host's files, so no digest depends on the host.
"""

import re
from calendar import monthrange
from datetime import date, datetime, time, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from ratings_ledger.ledger.events.canonical import EPOCH, INSTANT_MAX, parse_date_and_time, to_microseconds
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote

# a year or a month
_WITHOUT_DAY = re.compile(r"(?!0000)[0-9]{4}(-(?:0[1-9]|1[0-2]))?")


@cache
def load_zone(name: str) -> ZoneInfo:
    """Load the zone of this name. Raises `Refused` (unknown-zone)."""
    if name in _load_zone_names():
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            return ZoneInfo.from_file(file, key=name)
    hint = did_you_mean(name, _load_zone_names()) or "; write a name such as Europe/Berlin or UTC"
    raise Refused("unknown-zone", f"{quote(name)} is not a time zone{hint}")


@cache
def _load_zone_names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def local_time(instant: int, zone_name: str) -> datetime:
    """Return an instant (microseconds since 1970) as local time in a zone."""
    utc_time = EPOCH + timedelta(microseconds=instant)
    try:
        return utc_time.astimezone(load_zone(zone_name))
    except OverflowError:
        return utc_time  # on the first and last day of the calendar, the date in the zone may have no valid year


def local_instant(value: datetime, zone_name: str) -> int:
    """Return the instant of a local time in a zone.

    Raises `Refused` (ambiguous-time, nonexistent-time, bad-time, unknown-zone).
    """
    zone = load_zone(zone_name)
    early, late = value.replace(tzinfo=zone, fold=0), value.replace(tzinfo=zone, fold=1)
    if early.utcoffset() != late.utcoffset():
        # in a gap the earlier offset is the smaller one, in a repeated hour the larger
        code = "ambiguous-time" if early.utcoffset() > late.utcoffset() else "nonexistent-time"  # type: ignore[operator]
        verb = "occurs twice" if code == "ambiguous-time" else "does not exist"
        problem = f"{value.isoformat(' ')} {verb} in {zone_name}, because the clocks change"
        raise Refused(code, f"{problem}; write the time with its offset, such as {early.isoformat(' ', 'minutes')}")
    return to_microseconds(early)


def read_instant(text: str, zone_name: str | None) -> int:
    """Parse an instant with an offset, or a local time in `zone_name`.

    A date without a time means noon of that day in the zone; without a zone, in UTC.

    Raises `Refused` (bad-time, naive-time, ambiguous-time, nonexistent-time, unknown-zone).
    """
    if (day := _parse_date(text)) is not None:
        value, has_offset = datetime.combine(day, time(12)), False
    else:
        value, has_offset = parse_date_and_time(text)
    if has_offset:
        return to_microseconds(value)
    if zone_name is None and day is not None:
        zone_name = "UTC"  # noon in UTC is the same date in most zones
    if zone_name is None:
        raise Refused(
            "naive-time",
            f"{quote(text)} has no offset; add one, name the zone with --zone Europe/Berlin, or set the ledger's zone "
            "for good: ratings zone Europe/Berlin",
        )
    return local_instant(value, zone_name)


def read_until(text: str, zone_name: str) -> int:
    """Parse the instant at the end of a range: a date, a month or a year means its last microsecond in the zone."""
    if (days := _parse_days(text)) is None:
        return read_instant(text, zone_name)
    last = days[1]
    if last == date.max:
        return INSTANT_MAX
    return day_start(last + timedelta(days=1), zone_name) - 1


def read_from(text: str, zone_name: str) -> int:
    """Parse the instant at the start of a range: a date, a month or a year means its first microsecond in the zone."""
    days = _parse_days(text)
    return read_instant(text, zone_name) if days is None else day_start(days[0], zone_name)


def day_start(day: date, zone_name: str) -> int:
    """Return the first instant of a day in a zone; if the clocks change at midnight, it is after the skipped time."""
    return to_microseconds(datetime.combine(day, time(), tzinfo=load_zone(zone_name)))


def _parse_days(text: str) -> tuple[date, date] | None:
    """Return the first and the last day of a date, month or year in a text; None for another text."""
    if _WITHOUT_DAY.fullmatch(text) is None:
        day = _parse_date(text)
        return None if day is None else (day, day)
    year, month = int(text[:4]), int(text[5:] or 0)
    return date(year, month or 1, 1), date(year, month or 12, monthrange(year, month or 12)[1])


def _parse_date(text: str) -> date | None:
    if without_day := _WITHOUT_DAY.fullmatch(text):
        day = f"{text}-01" if without_day[1] else f"{text}-12-31"
        raise Refused("bad-time", f"{quote(text)} lacks the day; write year-month-day, such as {day}")
    try:
        return date.fromisoformat(text) if len(text) == 10 and text[4] == text[7] == "-" else None
    except ValueError as error:
        raise Refused("bad-time", f"{quote(text)} is not a date: {error}") from None
