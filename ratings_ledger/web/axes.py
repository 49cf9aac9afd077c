"""Choose the ticks of a chart's axes: round values, numbers of games and dates, with their labels.

A row is a candidate set of labels: pairs of a number and its text. The chart uses the first row that fits. Dates are
numbers too: microseconds since 1970.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor, lcm

from ratings_ledger.ledger.rejections import count

Number = int | Fraction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY = 86_400_000_000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def to_number(x: datetime | Number) -> Number:
    """Return a time as microseconds since 1970; return numbers unchanged."""
    return (x - _EPOCH) // _MICROSECOND if isinstance(x, datetime) else x


def whole_numbers(numbers: Sequence[Number]) -> tuple[int, list[int]]:
    """Return a common denominator and the numerators of the numbers: integers are much faster to draw with.

    >>> whole_numbers([Fraction(1, 2), Fraction(1, 3), 2])
    (6, [3, 2, 12])
    """
    shared = lcm(*{number.denominator for number in numbers})
    return shared, [number.numerator * (shared // number.denominator) for number in numbers]


def range_of(numbers: Sequence[Number], margin: int = 0) -> tuple[Number, Number]:
    """Return the lowest and the highest number; if they are equal, widened by `margin`, by default a hundredth or 1."""
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low < high:
        return low, high
    margin = margin or max(1, abs(round(low)) // 100)
    return low - margin, high + margin


def round_step(span: Number, most: int, is_whole: bool = False) -> Fraction:
    """Return the smallest of ... 0.1, 0.2, 0.5, 1, 2, 5, 10 ... that divides a span into at most `most` steps.

    >>> round_step(147, 5), round_step(Fraction(1, 3), 5), round_step(3, 5, is_whole=True)
    (Fraction(50, 1), Fraction(1, 10), Fraction(1, 1))
    """
    least = Fraction(span) / most
    if is_whole:
        least = max(least, Fraction(1))
    power = len(str(least.numerator)) - len(str(least.denominator)) - 1
    candidates = (factor * Fraction(10) ** (power + extra) for extra in range(3) for factor in (1, 2, 5))
    return next(step for step in candidates if step >= least)


def value_ticks(low: Number, high: Number, most: int, is_whole: bool = False) -> tuple[list[Fraction], Fraction]:
    """Return round values that enclose `low` and `high`, and the step between them."""
    step = round_step(high - low, most, is_whole)
    return [number * step for number in range(floor(low / step), ceil(high / step) + 1)], step


def rank_ticks(last: Fraction) -> tuple[list[Fraction], Fraction]:
    """Return rank 1 and round ranks up to the last that are not too close to it, and the step between round ranks."""
    last = max(last, Fraction(2))
    step = round_step(last - 1, 5, is_whole=True)
    round_ranks = [number * step for number in range(1, floor(last / step) + 1)]
    return [Fraction(1), *(rank for rank in round_ranks if rank > 1 and rank - 1 >= step / 2)], step


def value_labels(values: Sequence[Fraction], step: Fraction) -> list[str]:
    """Return the labels of an axis: in full if short enough, else as 1.5e12, else only the last digits.

    >>> value_labels([Fraction(-1), Fraction(1, 2)], Fraction(1, 2)), value_labels([Fraction(10**12)], Fraction(1))
    (['−1.0', '0.5'], ['1e12'])
    """
    places = next(number for number in range(10_000) if (step * 10**number).denominator == 1)
    forms = []
    for value in values:
        sign, number = "−" if value < 0 else "", str(int(abs(value) * 10**places)).rjust(places + 1, "0")
        whole, rest = number[: len(number) - places], number[len(number) - places :]
        digits = number.strip("0") or "0"
        power = len(number.lstrip("0")) - 1 - places
        mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
        full = f"{sign}{int(whole):,}{'.' * bool(rest)}{rest}"
        forms.append((full, "0" if value == 0 else f"{sign}{mantissa}e{power}".replace("e-", "e−"), f"…{full[-8:]}"))
    return next(list(texts) for texts in zip(*forms, strict=True) if max(map(len, texts)) <= 11)


def game_rows(first: Number, last: Number) -> Iterator[list[tuple[Number, str]]]:
    """Yield rows of round numbers of games, from many to few; the last label of a row has the unit."""
    for most in range(10, 0, -1):
        step = round_step(last - first, most, is_whole=True)
        numbers = [int(number * step) for number in range(ceil(first / step), floor(last / step) + 1)]
        yield [*((n, f"{n:,}") for n in numbers[:-1]), *((n, count(n, "game")) for n in numbers[-1:])]


def date_rows(first: Number, last: Number, most: int) -> Iterator[list[tuple[Number, str]]]:
    """Yield rows of fewer than `most` starts of days, months or years, from close to wide intervals."""
    for length, every, starts in _CALENDAR:
        if last - first < most * length * every * DAY:
            days = starts(_day_of(first), _day_of(last), every)
            inside = [(x, day) for day in days for x in (_micros(day),) if first <= x <= last]
            yield _date_labels(inside or [(first, _day_of(first))], length if inside else 1)


def _date_labels(ticks: Sequence[tuple[Number, date]], length: int) -> list[tuple[Number, str]]:
    """Return the labels of dates; the first has the year, and so has every date on which the year changes."""
    labels, year = [], 0
    for x, day in ticks:
        month = {1: f"{day.day} {_MONTHS[day.month - 1]} ", 30: f"{_MONTHS[day.month - 1]} "}.get(length, "")
        labels.append((x, f"{month}{day.year}" if day.year != year or not month else month.strip()))
        year = day.year
    return labels


def _days(first: date, last: date, every: int) -> Iterator[date]:
    """Yield every n-th day; Mondays if n is 7."""
    start = first.toordinal()
    yield from (date.fromordinal(n) for n in range(start, last.toordinal() + 1) if (n - 1) % every == 0)


def _months(first: date, last: date, every: int) -> Iterator[date]:
    """Yield the first day of every n-th month, counted from January."""
    numbers = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    yield from (date(number // 12, number % 12 + 1, 1) for number in numbers if number % every == 0)


def _years(first: date, last: date, every: int) -> Iterator[date]:
    """Yield the first day of every n-th year."""
    yield from (date(year, 1, 1) for year in range(first.year, last.year + 1) if year % every == 0)


# the approximate length of a unit in days, the units between two labels, and the generator of their dates
_CALENDAR: list[tuple[int, int, Callable[[date, date, int], Iterator[date]]]] = [
    *((1, every, _days) for every in (1, 2, 7, 14)),
    *((30, every, _months) for every in (1, 2, 3, 6)),
    *((365, every, _years) for every in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)),
]


def _day_of(x: Number) -> date:
    """Return the day of a number of microseconds, clamped to the range of the calendar."""
    earliest, latest = date.min.toordinal(), date.max.toordinal()
    return date.fromordinal(min(max(_EPOCH.toordinal() + floor(x / DAY), earliest), latest))


def _micros(day: date) -> int:
    return (day.toordinal() - _EPOCH.toordinal()) * DAY
