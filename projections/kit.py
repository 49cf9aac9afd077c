"""Arithmetic for rules that reckon with real numbers: the same bits on every machine.

A rule keeps whole numbers. Where its formula needs real numbers, it converts them with `real`, reckons with IEEE
doubles, and converts back with `units`. Addition, subtraction, multiplication, division and the square root of doubles
are exactly rounded everywhere. Logarithms and powers of a machine's own library are not: those here consist of these
operations alone, in a fixed order and number. Their relative error is below 1e-14.
"""

from math import floor, sqrt

# beyond this, not every whole number is a double
WHOLE_MAX = 2**53
_LN2_HIGH = 6.93147180369123816490e-01  # its last bits are zero: a multiple by less than 2^21 is exact
_LN2_LOW = 1.90821492927058770002e-10
_LN2_INVERSE = 1.4426950408889634
_EXP_MAX = 700.0


def real(units: int, scale: int) -> float:
    """Return a whole number of units of 1/scale as a double. Raises `OverflowError` beyond 2^53 units."""
    if units >= WHOLE_MAX or units <= -WHOLE_MAX:
        raise OverflowError("a number is too large for exact arithmetic")
    return float(units) / float(scale)


def units(value: float, scale: int) -> int:
    """Return a double as a whole number of units of 1/scale, rounded half away from zero.

    Raises `OverflowError` for anything that is not a number, or beyond 2^53 units.
    """
    size = abs(value) * float(scale)
    if value != value or not size < 9007199254740992.0:
        raise OverflowError("the result is not a number, or too large")
    whole = floor(size + 0.5)
    return -whole if value < 0.0 else whole


def exp(value: float) -> float:
    """Return e to the power of `value`, between -700 and 700. Raises `OverflowError` beyond.

    value = k ln 2 + rest with rest at most ln 2 / 2; e^rest is its power series.
    """
    if not -_EXP_MAX <= value <= _EXP_MAX:
        raise OverflowError("an exponent is out of range")
    steps = floor(value * _LN2_INVERSE + 0.5)
    rest = (value - float(steps) * _LN2_HIGH) - float(steps) * _LN2_LOW
    series = 1.0
    for term in range(18, 0, -1):
        series = 1.0 + rest * series / float(term)
    factor = 2.0 if steps >= 0 else 0.5
    power, left = 1.0, abs(steps)
    while left > 0:
        if left & 1:
            power = power * factor
        factor = factor * factor
        left = left >> 1
    return series * power


def ln(value: float) -> float:
    """Return the natural logarithm of a positive number. Raises `ValueError` for any other.

    value = 2^k part with part between sqrt(1/2) and sqrt(2); ln(part) = 2 artanh((part - 1) / (part + 1)).
    """
    if not 0.0 < value < 1e300:
        raise ValueError("the logarithm of a number that is not positive")
    part, doublings = value, 0
    for _ in range(1100):
        if part >= 1.4142135623730951:
            part, doublings = part * 0.5, doublings + 1
        elif part < 0.7071067811865476:
            part, doublings = part * 2.0, doublings - 1
        else:
            break
    ratio = (part - 1.0) / (part + 1.0)
    square, series = ratio * ratio, 0.0
    for term in range(41, 0, -2):
        series = 1.0 / float(term) + square * series
    return float(doublings) * _LN2_HIGH + (float(doublings) * _LN2_LOW + 2.0 * ratio * series)


def power(base: float, exponent: float) -> float:
    """Return a positive number to the power of another. Raises `ValueError` or `OverflowError` as `ln` and `exp`."""
    return exp(exponent * ln(base))


def root(value: float) -> float:
    """Return the square root, exactly rounded. Raises `ValueError` below zero."""
    if not value >= 0.0:
        raise ValueError("the square root of a negative number")
    return sqrt(value)
