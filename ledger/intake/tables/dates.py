"""Parse dates as spreadsheets display them. The whole column decides the order of day and month.

    22.11.2024   22.11.24 20:05   11/22/24 8:05 PM   22-11-2024   2024/11/22
    22 Nov 2024   Freitag, 22. November 2024 20:05   November 22nd, 2024   22-Nov-24   Fri 22.11.2024

Dots mean day.month.year, or year.month.day if four digits come first; --dates names any other order.

A column has one order. If all of its dates can be read in several orders, --dates has to name one. A date that names
its month needs no order, and a weekday must fit its date.

Months and weekdays have names in the languages of many clubs. A Polish month has a second name in dates: styczeń, 14
stycznia. In three languages "mar" is Tuesday before a date, and March in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.validation.close_names import fold_name

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "january jan januar jänner janvier janv enero ene gennaio gen januari styczeń stycznia sty",
    "february feb februar feber février févr fév febrero febbraio februari luty lutego lut",
    "march mar märz maerz mär mrz mars marzo maart mrt marzec marca",
    "april apr avril avr abril abr aprile kwiecień kwietnia kwi",
    "may mai mayo maggio mag mei maj maja",
    "june jun juni juin junio giugno giu czerwiec czerwca cze",
    "july jul juli juillet juil julio luglio lug lipiec lipca lip",
    "august aug août agosto ago augustus sierpień sierpnia sie",
    "september sep sept septembre septiembre setiembre settembre set wrzesień września wrz",
    "october oct oktober okt octobre octubre ottobre ott październik października paź",
    "november nov novembre noviembre listopad listopada lis",
    "december dec dezember dez décembre déc diciembre dic dicembre grudzień grudnia gru",
)
_WEEKDAYS = (
    "monday mon montag mo lundi lun lunes lunedì maandag maa ma poniedziałek poniedzialek pon pn",
    "tuesday tues tue dienstag die di mardi mar martes martedì dinsdag din wtorek wt",
    "wednesday wed mittwoch mit mi mercredi mer miércoles mié mercoledì woensdag woe wo środa śr",
    "thursday thurs thur thu donnerstag don do jeudi jeu jueves jue giovedì gio donderdag czwartek czw",
    "friday fri freitag fre fr vendredi ven viernes vie venerdì vrijdag vri vr piątek pt",
    "saturday sat samstag sonnabend sam sa samedi sábado sáb sabato zaterdag zat za sobota sob",
    "sunday sun sonntag son so dimanche dim domingo dom domenica zondag zon zo niedziela niedz ndz nd",
)
_MONTH_NUMBERS = {fold_name(name): number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_WEEKDAY_NUMBERS = {fold_name(name): number for number, names in enumerate(_WEEKDAYS) for name in names.split()}


def find_month(name: str) -> int | None:
    """Return the number of a month, 1 for January, or None; capitals and accents do not matter.

    >>> find_month("März"), find_month("MARS"), find_month("marca"), find_month("Mürz")
    (3, 3, 3, None)
    """
    return _MONTH_NUMBERS.get(fold_name(name))


def find_weekday(name: str) -> int | None:
    """Return the number of a weekday, 0 for Monday, or None.

    >>> find_weekday("Sábado"), find_weekday("do"), find_weekday("today")
    (5, 3, None)
    """
    return _WEEKDAY_NUMBERS.get(fold_name(name))


ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year", "ymd": "year/month/day"}
EXAMPLES = "2010-03-05T19:30:00Z, 2010-03-05 20:30, 05.03.2010, 5 March 2010 or Fri 5 Mar 2010 8:30 PM"
CENTURY_FROM = 69  # 69 means 1969, 68 means 2068, as in POSIX
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_DATE = re.compile(r"(\d{1,4})([./-])\s?(\d{1,2})\2\s?(\d{1,4})(?:(?:,?\s+|T)(\S.*))?", re.ASCII)
_WEEKDAY = re.compile(r"([^\W\d_]+)(?:\.?,\s*|\.\s*|\s+)(\S.*)")
_NTH = r"([0-9]{1,2})(?:st|nd|rd|th|er|[ºª°])?"
_YEAR = r"([0-9]{4}|[0-9]{2})(?:\s*r\.)?((?:,?\s+|T)\S.*)?"  # Polish dates have an r. after the year
_DAY_FIRST = re.compile(rf"{_NTH}[-./\s]*(?:(?:of|de)\s+)?([^\W\d_]+)[-./,\s]*(?:del?\s+)?{_YEAR}")
_MONTH_FIRST = re.compile(rf"([^\W\d_]+)[-./\s]*{_NTH}(?:,\s*|\.?\s+|[-./](?=[0-9]{{4}})){_YEAR}")
# the dates and times into which spreadsheets turn 3-1 and 3:1
_DAY_AND_MONTH = re.compile(rf"{_NTH}[-./\s]*(?P<month>[^\W\d_]+)\.?")
_MONTH_AND_DAY = re.compile(r"(?P<month>[^\W\d_]+)[-./\s]*[0-9]{1,4}")
_PADDED_DATE_OR_TIME = re.compile(
    r"0\d[-./:]\d\d?\.?|\d\d?[-./:]0\d\.?|\d\d?\.\d\d?\.|\d\d?:\d\d:\d\d(?: ?[AP]M)?|\d\d?:\d\d ?[AP]M",
    re.ASCII | re.IGNORECASE,
)
_YEARLESS = re.compile(
    r"([0-9]{1,2}[./-]\s?[0-9]{1,2}\.?)|[0-9]{1,2}\.?[ -]([^\W\d_]{3,})\.?|([^\W\d_]{3,})\.? [0-9]{1,2}(?:st|nd|rd|th)?"
)
_TIME = re.compile(
    r"(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?\s*(?:([ap])\.?m\.?|uhr|h)?"
    r"\s*(?:([+-]\d\d:\d\d)|(?:GMT|UTC)(?:([+-])(\d{1,2})(?::?(\d\d))?)?)?",
    re.ASCII | re.IGNORECASE,
)


_ABBREVIATION = re.compile(r"\d\s*(?:[AP]M)?\s+([A-Z]{3,5})\s*$", re.ASCII)


class Order(NamedTuple):
    """The order of the dates in a column.

    name:       a key of `ORDERS`, or empty if the order is unclear
    decided_by: the line and text of the date that decided the order, or of the first unclear one if only several dates
                together did; None if an option did, or if no date is decisive or unclear
    is_needed:  False if every date of the column is the same day in each order
    """

    name: str
    decided_by: tuple[int, str] | None = None
    is_needed: bool = True

    @property
    def sentence(self) -> str:
        """Return a sentence about the order and the date in `decided_by`, or an empty text without one."""
        if self.decided_by is None:
            return ""
        line, text = self.decided_by
        decides_alone = len(_list_likely_readings(line, text)) == 1
        reason = "from" if decides_alone else "the only order that fits all dates, such as"
        return f"dates are read as {ORDERS[self.name]}, {reason} {text} in line {line}"


def is_spreadsheet_date(text: str) -> bool:
    """Tell whether a text is a date as spreadsheets write it, but not in ISO 8601; a time may follow."""
    if _ISO.match(text):
        return False
    weekday, text = _split_weekday(text)
    return _DATE.fullmatch(text) is not None or (weekday is not None and _ISO.match(text) is not None)


def is_date_alone(text: str) -> bool:
    """Tell whether a text is a valid date as spreadsheets write it, followed at most by a time."""
    for order in ORDERS if is_spreadsheet_date(text) else ():
        with suppress(Refused):
            normalise_date_time(text, None, order)
            return True
    return False


def may_be_date(text: str) -> bool:
    """Tell whether a text is a date, with or without a year, or a time as spreadsheets write them.

    >>> [may_be_date(text) for text in ("2024-03-01", "1. Mrz", "Mar-01", "03:01", "11:07:00", "3:1", "11:7")]
    [True, True, True, True, True, False, False]
    """
    if _ISO.match(text) or is_spreadsheet_date(text) or _PADDED_DATE_OR_TIME.fullmatch(text):
        return True
    return any(
        find_month(match["month"]) is not None
        for pattern in (_DAY_AND_MONTH, _MONTH_AND_DAY)
        if (match := pattern.fullmatch(text))
    )


@lru_cache(maxsize=1_024)
def _split_weekday(text: str) -> tuple[int | None, str]:
    """Split a date into its weekday (0 for Monday, or None) and the rest; write a month's name in digits.

    >>> _split_weekday("Freitag, 22. Nov. 2024 20:05")
    (4, '2024/11/22 20:05')
    """
    text = unicodedata.normalize("NFC", text)
    # months first, because mar. 12, 2024 begins with a month, not with a Tuesday
    if (in_digits := _replace_month_name(text)) is not None:
        return None, in_digits
    match = _WEEKDAY.fullmatch(text)
    if match is None or (weekday := find_weekday(match[1])) is None:
        return None, text
    return weekday, _replace_month_name(match[2]) or match[2]


def _replace_month_name(text: str) -> str | None:
    """Rewrite a date with a month's name in digits, such as 2024/11/22 20:05; return None for any other text."""
    if match := _DAY_FIRST.fullmatch(text):
        day, name, year, clock_time = match.groups()
    elif match := _MONTH_FIRST.fullmatch(text):
        name, day, year, clock_time = match.groups()
    else:
        return None
    month = find_month(name)
    return None if month is None else f"{_complete_year(year):04d}/{month}/{day}{clock_time or ''}"


def find_date_order(texts: Iterable[tuple[int, str]], named_order: str | None) -> Order:
    """Return the order of the dates in a column, or `named_order` if an option names one.

    `texts` are (line, text) of the cells. Raises `Refused` (unclear-dates) if no order fits all dates, or several fit
    and give different days.

    >>> find_date_order([(2, "13-05-13"), (3, "05/05/2010")], None)  # the dates decide only together
    Order(name='dmy', decided_by=None, is_needed=True)
    >>> find_date_order([(2, "14-05-13"), (3, "05/04/2010")], None).sentence
    'dates are read as day/month/year, the only order that fits all dates, such as 14-05-13 in line 2'
    >>> find_date_order([(2, "05/04/2010"), (3, "22/04/2010")], None).sentence
    'dates are read as day/month/year, from 22/04/2010 in line 3'
    """
    if named_order is not None:
        return Order(named_order)
    # the first date that is valid in only one order, by order; and the first that is another day in another order
    possible, decisive = set(ORDERS), dict[str, tuple[int, str]]()
    ambiguous: tuple[int, str] | None = None
    for line, text in texts:
        if readings := _list_likely_readings(line, text):
            possible &= readings.keys()
            if len(readings) == 1:
                decisive.setdefault(next(iter(readings)), (line, text))
            elif len({*readings.values()}) > 1:
                ambiguous = ambiguous or (line, text)
    if len(decisive) > 1 or not possible:
        message = ", ".join(f"{quote(text)} (line {line}) is {ORDERS[name]}" for name, (line, text) in decisive.items())
        raise Refused("unclear-dates", f"no order fits all dates: {message}; write all of them in the form 2024-11-22")
    if len(possible) == 1:
        (name,) = possible
        return Order(name, decisive.get(name) or ambiguous)
    if ambiguous is None:
        return Order(min(possible), is_needed=False)  # there is no date, or all dates are the same days in each order
    line, text = ambiguous
    readings = _list_readings(text)
    listed = " or ".join(f"{readings[name].day} {readings[name]:%B %Y} (--dates {name})" for name in sorted(possible))
    message = f"{quote(text)} (line {line}) could be {listed}, and no other date in the column decides"
    raise Refused("unclear-dates", f"{message}; pass one of these options")


def _list_readings(text: str) -> dict[str, date]:
    """Return the day that a text means in each possible order; an empty dictionary for a text that needs no order."""
    match = None if _ISO.match(text) else _DATE.fullmatch(_split_weekday(text)[1])
    if match is None or len(match[1]) > 2:
        return {}
    first, mark, second, third = match[1], match[2], match[3], match[4]
    parts = {"dmy": (third, second, first), "mdy": (third, first, second)}
    if len(third) < 3 and mark == "-":
        parts["ymd"] = (first, second, third)
    readings = {}
    for name, (year, month, day) in parts.items():
        with suppress(ValueError):
            readings[name] = date(_complete_year(year), int(month), int(day))
    return readings


def _list_likely_readings(line: int, text: str) -> dict[str, date]:
    """Return the likely readings of a date by order: for a date with dots, only day.month.year.

    Raises `Refused` (unclear-dates) if a date with dots cannot be day.month.year.
    """
    readings = _list_readings(text)
    if not readings or not _has_dots(text) or "dmy" in readings:
        return {"dmy": readings["dmy"]} if readings and _has_dots(text) else readings
    message = f"{quote(text)} (line {line}) is not day.month.year; if the month comes first, pass --dates mdy"
    raise Refused("unclear-dates", message)


def _has_dots(text: str) -> bool:
    match = None if _ISO.match(text) else _DATE.fullmatch(_split_weekday(text)[1])
    return match is not None and match[2] == "."


def read_typed_time(text: str) -> str:
    """Rewrite a date or time in an option in a form that `read_instant` accepts.

    Raises `Refused` (unclear-dates, bad-time).
    """
    if not is_spreadsheet_date(text):
        if _lacks_year(text):
            raise Refused("bad-time", f"{quote(text)} has no year; write the whole date in the form 2024-11-22")
        return text
    try:
        return normalise_date_time(text, None, find_date_order([(1, text)], None).name)
    except Refused as problem:
        if problem.code != "unclear-dates":
            raise
        message = f"the order of day and month in {quote(text)} is unclear; write the date in the form 2024-11-22"
        raise Refused("unclear-dates", message) from None


def _lacks_year(text: str) -> bool:
    """Tell whether a text is a date without a year.

    >>> _lacks_year("22.11."), _lacks_year("2024-11-22")
    (True, False)
    """
    match = _YEARLESS.fullmatch(text.strip())
    return match is not None and (bool(match[1]) or find_month(match[2] or match[3]) is not None)


def _complete_year(text: str) -> int:
    """Return a year of two or four digits as a number. Raises `ValueError` for other numbers of digits."""
    if len(text) not in (2, 4):
        raise ValueError(text)
    year = int(text)
    return year if len(text) == 4 else year + (1900 if year >= CENTURY_FROM else 2000)


def normalise_date_time(text: str, clock_time: str | None, order: str) -> str:
    """Return a date and time in a form that `read_instant` accepts.

    `clock_time` is the time of day in another cell, or None; `order` is a key of `ORDERS`. Raises `Refused` (bad-time).
    """
    if not _ISO.match(text):
        text = _format_as_iso(text, order)
    if clock_time is None:
        return text
    if len(text) > len("2024-11-22"):
        message = f"{quote(text)} has a time, but the row has another, {quote(clock_time)}; delete one of them"
        raise Refused("bad-time", message)
    return f"{text} {_format_time(clock_time)}"


def _format_as_iso(text: str, order: str) -> str:
    """Convert a date as spreadsheets write it, with its time, to ISO 8601. Raises `Refused` (bad-time)."""
    weekday, plain = _split_weekday(text)
    if iso := _ISO.match(plain):
        day, clock_time = _make_date(*iso[0].split("-")), plain[iso.end() :]
    elif match := _DATE.fullmatch(plain):
        has_year_first = len(match[1]) > 2
        day = _make_date(match[1], match[3], match[4]) if has_year_first else _list_readings(plain).get(order)
        if day is None and not has_year_first:
            message = f"{quote(text)} is not a valid date in the order {ORDERS[order]}; correct it"
            raise Refused("bad-time", message)
        clock_time = f" {_format_time(match[5])}" if match[5] else ""
    elif text.isdecimal():
        raise Refused("bad-time", f"{quote(text)} is a number; format the column as dates")
    elif _lacks_year(text):
        message = f"{quote(text)} has no year; write the whole date in the form 2024-11-22"
        raise Refused("bad-time", f"{message}, or format the column with years")
    else:
        raise Refused("bad-time", f"{quote(text)} is not a time like {EXAMPLES}")
    if day is None:
        raise Refused("bad-time", f"{quote(text)} does not exist in the calendar; correct the date")
    if weekday not in (None, day.weekday()):
        message = f"{quote(text)} says {WEEKDAYS[weekday]}, but {day} is a {WEEKDAYS[day.weekday()]}"
        raise Refused("bad-time", f"{message}; correct the date, or leave out the weekday")
    return day.isoformat() + clock_time


def _make_date(year: str, month: str, day: str) -> date | None:
    with suppress(ValueError):
        return date(int(year), int(month), int(day))
    return None


def _format_time(text: str) -> str:
    """Format a time of day in 24 hours, with its offset from UTC if it has one. Raises `Refused` (bad-time)."""
    match = _TIME.fullmatch(text.strip())
    if match is None and (zone := _ABBREVIATION.search(text)):
        problem = f"{quote(text)}: the abbreviation {zone[1]} may mean several offsets from UTC"
        raise Refused("bad-time", f"{problem}; write an offset such as GMT-5 instead")
    if match is None:
        raise Refused("bad-time", f"{quote(text)} is not a time of day such as 20:05")
    hour, half = int(match[1]), (match[4] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise Refused("bad-time", f"{quote(text)} is not a time of day such as 8:05 PM")
        hour = hour % 12 + (12 if half == "p" else 0)
    offset = match[5] or (f"{match[6]}{int(match[7]):02d}:{match[8] or '00'}" if match[7] else "")
    if not offset and text.rstrip().upper().endswith(("GMT", "UTC")):
        offset = "+00:00"
    return f"{hour:02d}:{match[2]}" + (f":{match[3]}" if match[3] else "") + offset
