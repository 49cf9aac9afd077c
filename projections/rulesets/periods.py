"""Time in the zone of a ruleset: the months and years of its lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import day_start


class Period(NamedTuple):
    """The month or year of a list in the zone of its ruleset: from `start` up to and including `end`."""

    start: int
    end: int


def period_of(ruleset: Ruleset, values: Sequence[str]) -> Period | None:
    """Return the period of the ladder with these partition values; None if its ruleset does not partition by time."""
    for part, value in zip(ruleset.partition.by, values, strict=True):
        if part == "month":
            year, month = int(value[:4]), int(value[5:])
            return _period(ruleset.time_zone, (year, month), (year + month // 12, month % 12 + 1))
        if part == "year":
            return _period(ruleset.time_zone, (int(value), 1), (int(value) + 1, 1))
    return None


def is_running(period: Period, now: int, as_of: int | None) -> bool:
    """Tell whether a list's period is not over at a moment, or not fully covered by `as_of`."""
    return now <= period.end or (as_of is not None and as_of < period.end)


def _period(time_zone: str, first: tuple[int, int], following: tuple[int, int]) -> Period:
    return Period(month_start(*first, time_zone), month_start(*following, time_zone) - 1)


def month_start(year: int, month: int, time_zone: str) -> int:
    """Return when a month begins there."""
    if (year, month) <= (1, 1):
        return INSTANT_MIN
    return INSTANT_MAX + 1 if year > 9999 else day_start(date(year, month, 1), time_zone)
