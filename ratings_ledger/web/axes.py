"""Choose the ticks of a chart's axes: round values, ranks, numbers of games and dates, with their labels.

Functions such as `generate_game_labels` yield candidate sets of labels, from many to few. The chart uses the first set
that fits. Dates are numbers, too: microseconds since 1970.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

from ratings_ledger.ledger.rejections import count

Number = int | Fraction
# labels of an axis: each number with its text
LabelSet = list[tuple[Number, str]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY = 86_400_000_000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Unit(Enum):
    """A unit of the calendar, with its approximate length in days."""

    DAY = 1
    MONTH = 30
    YEAR = 365

    @property
    def days(self) -> int:
        """Return the approximate length of the unit in days."""
        return self.value


class _CalendarStep(NamedTuple):
    """The distance between two labels: `interval` units."""

    unit: _Unit
    interval: int


def to_number(x: datetime | Number) -> Number:
    """Return a time as microseconds since 1970; return numbers unchanged."""
    return (x - _EPOCH) // _MICROSECOND if isinstance(x, datetime) else x


def to_common_denominator(numbers: Sequence[Number]) -> tuple[int, list[int]]:
    """Return a common denominator and the numerators of the numbers: integers are much faster to draw with.

    >>> to_common_denominator([Fraction(1, 2), Fraction(1, 3), 2])
    (6, [3, 2, 12])
    """
    denominator = lcm(*{number.denominator for number in numbers})
    return denominator, [number.numerator * (denominator // number.denominator) for number in numbers]


def find_range(numbers: Sequence[Number], margin: int = 0) -> tuple[Number, Number]:
    """Return the lowest and the highest number.

    If they are equal, widen the range by `margin` at both ends; by default by 1 % of the number, at least 1.
    """
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low < high:
        return low, high
    margin = margin or max(1, abs(round(low)) // 100)
    return low - margin, high + margin


def choose_round_step(span: Number, steps_max: int, is_whole: bool = False) -> Fraction:
    """Return the smallest of ... 0.1, 0.2, 0.5, 1, 2, 5, 10 ... that divides a span into at most `steps_max` steps.

    >>> choose_round_step(147, 5), choose_round_step(Fraction(1, 3), 5), choose_round_step(3, 5, is_whole=True)
    (Fraction(50, 1), Fraction(1, 10), Fraction(1, 1))
    """
    step_min = Fraction(span) / steps_max
    if is_whole:
        step_min = max(step_min, Fraction(1))
    power = len(str(step_min.numerator)) - len(str(step_min.denominator)) - 1
    candidates = (factor * Fraction(10) ** (power + extra) for extra in range(3) for factor in (1, 2, 5))
    return next(step for step in candidates if step >= step_min)


def choose_value_ticks(
    low: Number, high: Number, steps_max: int, is_whole: bool = False
) -> tuple[list[Fraction], Fraction]:
    """Return round values that enclose `low` and `high`, and the step between them."""
    step = choose_round_step(high - low, steps_max, is_whole)
    return [number * step for number in range(floor(low / step), ceil(high / step) + 1)], step


def choose_rank_ticks(last: Fraction) -> tuple[list[Fraction], Fraction]:
    """Return rank 1 and the round ranks up to `last`, without ranks too close to rank 1, and the step between them."""
    last = max(last, Fraction(2))
    step = choose_round_step(last - 1, 5, is_whole=True)
    round_ranks = [number * step for number in range(1, floor(last / step) + 1)]
    return [Fraction(1), *(rank for rank in round_ranks if rank > 1 and rank - 1 >= step / 2)], step


def format_value_labels(values: Sequence[Fraction], step: Fraction) -> list[str]:
    """Return the labels of an axis: in full if short enough, else as 1.5e12, else only the last digits.

    >>> format_value_labels([Fraction(-1), Fraction(1, 2)], Fraction(1, 2))
    ['−1.0', '0.5']
    >>> format_value_labels([Fraction(10**12)], Fraction(1))
    ['1e12']
    """
    decimals = next(number for number in range(10_000) if (step * 10**number).denominator == 1)
    forms = []
    for value in values:
        sign, number = "−" if value < 0 else "", str(int(abs(value) * 10**decimals)).rjust(decimals + 1, "0")
        whole, fraction = number[: len(number) - decimals], number[len(number) - decimals :]
        digits = number.strip("0") or "0"
        power = len(number.lstrip("0")) - 1 - decimals
        mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
        full = f"{sign}{int(whole):,}{'.' * bool(fraction)}{fraction}"
        forms.append((full, "0" if value == 0 else f"{sign}{mantissa}e{power}".replace("e-", "e−"), f"…{full[-8:]}"))
    return next(list(texts) for texts in zip(*forms, strict=True) if max(map(len, texts)) <= 11)


def generate_game_labels(first: Number, last: Number) -> Iterator[LabelSet]:
    """Yield sets of round numbers of games, from many to few; the last label of a set has the unit."""
    for steps_max in range(10, 0, -1):
        step = choose_round_step(last - first, steps_max, is_whole=True)
        numbers = [int(number * step) for number in range(ceil(first / step), floor(last / step) + 1)]
        yield [
            *((number, f"{number:,}") for number in numbers[:-1]),
            *((number, count(number, "game")) for number in numbers[-1:]),
        ]


def generate_date_labels(first: Number, last: Number, labels_max: int) -> Iterator[LabelSet]:
    """Yield sets of dates that start days, months or years, from fine to coarse, each of at most about `labels_max`."""
    for step in _CALENDAR_STEPS:
        if last - first < labels_max * step.unit.days * step.interval * DAY:
            days = _UNIT_STARTS[step.unit](_find_day(first), _find_day(last), step.interval)
            ticks = [(x, day) for day in days for x in (_to_microseconds(day),) if first <= x <= last]
            # label the first day if no such date lies within the range
            yield _label_dates(ticks or [(first, _find_day(first))], step.unit if ticks else _Unit.DAY)


def _label_dates(ticks: Sequence[tuple[Number, date]], unit: _Unit) -> LabelSet:
    """Return the labels of dates; the first label and the first label of every later year have the year."""
    labels: LabelSet = []
    labelled_year = None
    for x, day in ticks:
        month = _MONTHS[day.month - 1]
        text = {_Unit.DAY: f"{day.day} {month}", _Unit.MONTH: month, _Unit.YEAR: ""}[unit]
        labels.append((x, f"{text} {day.year}".lstrip() if day.year != labelled_year or not text else text))
        labelled_year = day.year
    return labels


def _generate_days(first: date, last: date, interval: int) -> Iterator[date]:
    """Yield every n-th day; Mondays if the interval is 7."""
    start = first.toordinal()
    yield from (date.fromordinal(day) for day in range(start, last.toordinal() + 1) if (day - 1) % interval == 0)


def _generate_months(first: date, last: date, interval: int) -> Iterator[date]:
    """Yield the first day of every n-th month, counted from January."""
    numbers = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    yield from (date(number // 12, number % 12 + 1, 1) for number in numbers if number % interval == 0)


def _generate_years(first: date, last: date, interval: int) -> Iterator[date]:
    """Yield the first day of every n-th year."""
    yield from (date(year, 1, 1) for year in range(first.year, last.year + 1) if year % interval == 0)


_UNIT_STARTS: dict[_Unit, Callable[[date, date, int], Iterator[date]]] = {
    _Unit.DAY: _generate_days,
    _Unit.MONTH: _generate_months,
    _Unit.YEAR: _generate_years,
}
# from fine to coarse
_CALENDAR_STEPS = [
    *(_CalendarStep(_Unit.DAY, interval) for interval in (1, 2, 7, 14)),
    *(_CalendarStep(_Unit.MONTH, interval) for interval in (1, 2, 3, 6)),
    *(_CalendarStep(_Unit.YEAR, interval) for interval in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)),
]


def _find_day(x: Number) -> date:
    """Return the day of a number of microseconds, clamped to the range of the calendar."""
    earliest, latest = date.min.toordinal(), date.max.toordinal()
    return date.fromordinal(min(max(_EPOCH.toordinal() + floor(x / DAY), earliest), latest))


def _to_microseconds(day: date) -> int:
    return (day.toordinal() - _EPOCH.toordinal()) * DAY
