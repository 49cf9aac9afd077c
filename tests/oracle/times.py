"""Instants, and the days, months, years and seasons of Berlin.

The rule for summer time is written out here, so that the oracle does not depend on a time zone database.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache

MICROSECOND = timedelta(microseconds=1)
SEASON_MONTHS = (1, 5, 9)


def parse_instant(text: str) -> datetime:
    """Return the time of an event in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


ALWAYS = parse_instant("0001-01-01T00:00:00Z")
IN_THE_END = parse_instant("9999-12-31T00:00:00Z")


def to_berlin(at: datetime) -> datetime:
    """Return the local time of Berlin at an instant.

    Since 1996, summer time lasts from the last Sunday of March to that of October, each at 1:00 UTC.
    """
    summer = find_last_sunday(at.year, 3) <= at < find_last_sunday(at.year, 10)
    return at.replace(tzinfo=None) + timedelta(hours=2 if summer else 1)


@cache
def find_last_sunday(year: int, month: int) -> datetime:
    """Return 1:00 UTC on the last Sunday of a month with 31 days."""
    last = datetime(year, month, 31, 1, tzinfo=UTC)
    return last - timedelta(days=(last.weekday() + 1) % 7)


def find_first_instant(day: str) -> datetime:
    """Return the first instant of a day in Berlin."""
    midnight = datetime.fromisoformat(day)
    candidates = (midnight.replace(tzinfo=UTC) - timedelta(hours=hours) for hours in (1, 2))
    return next(at for at in candidates if to_berlin(at) == midnight)


def find_last_instant(text: str) -> datetime:
    """Return the last instant of a day, month or year in Berlin; a text with a time of day is an instant itself."""
    match len(text):
        case 4:
            following = date(int(text) + 1, 1, 1)
        case 7:
            following = (date.fromisoformat(f"{text}-01") + timedelta(days=31)).replace(day=1)
        case 10:
            following = date.fromisoformat(text) + timedelta(days=1)
        case _:
            return parse_instant(text)
    return find_first_instant(following.isoformat()) - MICROSECOND


def find_season_bounds(season: str) -> tuple[datetime, datetime] | None:
    """Return the first instants of a Babylon 5 season and of the next one; None for an id without dates."""
    if not re.fullmatch(r"[0-9]{4}-[123]", season):
        return None
    year, part = int(season[:4]), int(season[5])
    days = [f"{season_year:04d}-{month:02d}-01" for season_year in (year, year + 1) for month in SEASON_MONTHS]
    return find_first_instant(days[part - 1]), find_first_instant(days[part])
