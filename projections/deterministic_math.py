"""Deterministic arithmetic for rules that compute with real numbers: the same bits on every machine.

The state of a rule consists of whole numbers. If a formula needs real numbers, the rule converts them with `real`,
computes with IEEE doubles, and converts back with `units`. Addition, subtraction, multiplication, division and the
square root of doubles are correctly rounded on every machine. The logarithms and powers of a machine's own library are
not, so the functions here use only these operations, in an order that depends only on their arguments. The relative
errors of `exp` and `ln` are below 1e-14; that of `power` is larger, because the error of its exponent is multiplied.

A rule can also compute with whole numbers only: the functions whose names begin with `fixed` take and return units of
1/scale. They use only 64-bit integers, and raise `OverflowError` if a result does not fit, and `ValueError` for a scale
that is not from 1 to 10^12.
"""

from math import sqrt

# not every larger whole number is a double
WHOLE_MAX = 2**53
_LN2_HIGH = 6.93147180369123816490e-01  # its last bits are zero, so multiples below 2^21 are exact
_LN2_LOW = 1.90821492927058770002e-10
_LN2_INVERSE = 1.4426950408889634
_TO_WHOLE = 6755399441055744.0  # 1.5 * 2^52
_EXP_MAX = 700.0


def real(units: int, scale: int) -> float:
    """Return a whole number of units of 1/scale as a double. Raises `OverflowError` from 2^53 units on."""
    if units >= WHOLE_MAX or units <= -WHOLE_MAX:
        raise OverflowError("a number is too large for exact arithmetic")
    return float(units) / float(scale)


def units(value: float, scale: int) -> int:
    """Return a double as a whole number of units of 1/scale, rounded half away from zero.

    Raises `OverflowError` for NaN, and from 2^53 units on.
    """
    size = abs(value) * float(scale)
    if value != value or not size < 9007199254740992.0:
        raise OverflowError("the result is not a number, or too large")
    whole = int(size + 0.5)
    return -whole if value < 0.0 else whole


def exp(value: float) -> float:
    """Return e to the power of `value`, which must be from -700 to 700. Raises `OverflowError` for other values.

    value = k ln 2 + rest with |rest| <= ln 2 / 2; e^rest is computed by its power series.
    """
    if not -_EXP_MAX <= value <= _EXP_MAX:
        raise OverflowError("an exponent is out of range")
    # adding so large a number leaves no bits for a fraction, so the sum is rounded to a whole number
    whole = (value * _LN2_INVERSE + _TO_WHOLE) - _TO_WHOLE
    rest = (value - whole * _LN2_HIGH) - whole * _LN2_LOW
    square = rest * rest
    # cosh and sinh, to the powers 14 and 13 of the rest: a processor computes the two sums in parallel
    even = 1.0 / 479001600.0 + square * (1.0 / 87178291200.0)
    even = 1.0 / 40320.0 + square * (1.0 / 3628800.0 + square * even)
    even = 1.0 + square * (0.5 + square * (1.0 / 24.0 + square * (1.0 / 720.0 + square * even)))
    odd = 1.0 / 39916800.0 + square * (1.0 / 6227020800.0)
    odd = 1.0 / 120.0 + square * (1.0 / 5040.0 + square * (1.0 / 362880.0 + square * odd))
    series = even + rest * (1.0 + square * (1.0 / 6.0 + square * odd))
    steps = int(whole)
    power, doublings = 1.0, abs(steps)
    while doublings > 62:
        power, doublings = power * 4611686018427387904.0, doublings - 62
    power = power * float(1 << doublings)
    # powers of two are exact, and so are their inverses
    return series * (power if steps >= 0 else 1.0 / power)


def ln(value: float) -> float:
    """Return the natural logarithm of a positive number below 1e300. Raises `ValueError` for other values.

    value = 2^k part with part between sqrt(1/2) and sqrt(2); ln(part) = 2 artanh((part - 1) / (part + 1)).
    """
    if not 0.0 < value < 1e300:
        raise ValueError("the logarithm needs a positive number below 1e300")
    part, doublings = value, 0
    for _ in range(1100):
        if part >= 1.4142135623730951:
            part, doublings = part * 0.5, doublings + 1
        elif part < 0.7071067811865476:
            part, doublings = part * 2.0, doublings - 1
        else:
            break
    ratio = (part - 1.0) / (part + 1.0)
    square = ratio * ratio
    series = 1.0 / 21.0 + square * (1.0 / 23.0)
    series = 1.0 / 15.0 + square * (1.0 / 17.0 + square * (1.0 / 19.0 + square * series))
    series = 1.0 / 9.0 + square * (1.0 / 11.0 + square * (1.0 / 13.0 + square * series))
    series = 1.0 / 3.0 + square * (0.2 + square * (1.0 / 7.0 + square * series))
    series = 1.0 + square * series
    return float(doublings) * _LN2_HIGH + (float(doublings) * _LN2_LOW + 2.0 * ratio * series)


def logistic(value: float) -> float:
    """Return 1 / (1 + e^-value), which is above 0 and at most 1. A value beyond ±700 counts as ±700.

    The relative error is small even for very negative values.
    """
    odds = exp(-min(abs(value), _EXP_MAX))
    return 1.0 / (1.0 + odds) if value >= 0.0 else odds / (1.0 + odds)


def power(base: float, exponent: float) -> float:
    """Return a positive base to the power of an exponent. Raises the errors of `ln` and `exp`."""
    return exp(exponent * ln(base))


def root(value: float) -> float:
    """Return the square root, correctly rounded. Raises `ValueError` below zero."""
    if not value >= 0.0:
        raise ValueError("the square root needs a number of at least 0")
    return sqrt(value)


FIXED_SCALE_MAX = 10**12
# the largest factor that `_multiply_wide` takes
_FACTOR_MAX = (1 << 61) - 1
_ONE = 1 << 60
_PART_BITS, _PART_MASK = 30, (1 << 30) - 1
# ln 2 in units of 2^-90, in three parts of 30 bits, and in units of 2^-60
_LN2_PARTS = (744261117, 1025308570, 791121614)
_LN2 = 799144290325165979


def fixed_multiply(value: int, factor: int, scale: int) -> int:
    """Return the product of two numbers, rounded half away from zero: value * factor / scale.

    Raises `OverflowError` if a number or the result has 2^61 units or more.
    """
    _check_scale(scale)
    return _multiply_and_divide(value, factor, scale)


def fixed_divide(value: int, divisor: int, scale: int) -> int:
    """Return the quotient of two numbers, rounded half away from zero: value * scale / divisor.

    Raises `OverflowError` if a number or the result has 2^61 units or more, and `ZeroDivisionError`.
    """
    _check_scale(scale)
    return _multiply_and_divide(value, scale, divisor)


def fixed_sqrt(value: int, scale: int) -> int:
    """Return the square root, rounded to the nearest unit; a tie is impossible.

    Raises `ValueError` below zero and `OverflowError` from 2^61 units on.
    """
    _check_scale(scale)
    if value < 0:
        raise ValueError("the square root needs a number of at least 0")
    if value > _FACTOR_MAX:
        raise OverflowError("a number is too large for exact arithmetic")
    high, low = _multiply_wide(value, scale)
    square_root = 0
    for bit in range(60, -1, -1):
        larger = square_root | (1 << bit)
        square_high, square_low = _multiply_wide(larger, larger)
        if square_high < high or (square_high == high and square_low <= low):
            square_root = larger
    square_high, square_low = _multiply_wide(square_root, square_root)
    rest = (high - square_high) * _ONE + low - square_low
    return square_root + 1 if rest > square_root else square_root


def fixed_exp(value: int, scale: int) -> int:
    """Return e to the power of a number, rounded to within 0.6 units of the exact power.

    So the result is the nearest unit unless the exact power is within 0.1 units of a tie. value = k ln 2 + rest with
    0 <= rest < ln 2; e^rest is computed by its power series in units of 2^-60. Raises `OverflowError` if the result
    has 2^53 units or more.
    """
    _check_scale(scale)
    if value < -40 * scale:
        return 0
    if value > 40 * scale:
        raise OverflowError("an exponent is out of range")
    whole, part, fraction = value // scale, value % scale, 0
    for _ in range(3):
        part = part << 20
        fraction = (fraction << 20) | (part // scale)
        part = part % scale
    # 1512775 is 1 / ln 2 in units of 2^-20; the estimate may be too large by one, which is corrected below
    doublings = ((whole << 20) + (fraction >> 40)) * 1512775 >> 40
    ln_whole, ln_fraction = _ln_of_two_to(doublings)
    rest = (whole - ln_whole) * _ONE + fraction - ln_fraction
    if rest < 0:
        rest, doublings = rest + _LN2, doublings - 1
    series = _ONE
    for term in range(20, 0, -1):
        series = _ONE + _multiply_wide(rest, series)[0] // term
    high, low = _multiply_wide(series, scale)
    if doublings < 0:
        return (high + (1 << (-doublings - 1))) >> -doublings
    if doublings > 53 or high >= WHOLE_MAX >> doublings:
        raise OverflowError("the result is too large")
    return (high << doublings) + ((low + (1 << (59 - doublings))) >> (60 - doublings))


def fixed_ln(value: int, scale: int) -> int:
    """Return the natural logarithm of a positive number below 2^53 units, to within 0.501 units of the exact one.

    So the result is the nearest unit unless the exact logarithm is within 0.001 units of a tie. It is computed as
    ln(value) - ln(scale). Raises `ValueError` for zero and below, and `OverflowError` from 2^53 units on.
    """
    _check_scale(scale)
    if value <= 0:
        raise ValueError("the logarithm needs a positive number")
    if value >= WHOLE_MAX:
        raise OverflowError("a number is too large for exact arithmetic")
    doublings, fraction = _split_ln(value)
    scale_doublings, scale_fraction = _split_ln(scale)
    whole, rest = _ln_of_two_to(doublings - scale_doublings)
    rest = rest + fraction - scale_fraction
    if rest < 0:
        whole, rest = whole - 1, rest + _ONE
    elif rest >= _ONE:
        whole, rest = whole + 1, rest - _ONE
    high, low = _multiply_wide(rest, scale)
    return whole * scale + high + (low >> 59)


def _check_scale(scale: int) -> None:
    """Raise `ValueError` for a scale out of range."""
    if not 0 < scale <= FIXED_SCALE_MAX:
        raise ValueError("the scale must be from 1 to 10^12")  # compiled code cannot format the number


def _multiply_wide(left: int, right: int) -> tuple[int, int]:
    """Return the product of two numbers below 2^61 as (high, low), meaning high * 2^60 + low."""
    left_high, left_low = left >> 31, left & 0x7FFFFFFF
    right_high, right_low = right >> 31, right & 0x7FFFFFFF
    middle = left_high * right_low + left_low * right_high
    low = ((middle & 0x1FFFFFFF) << 31) + left_low * right_low
    return 4 * (left_high * right_high) + (middle >> 29) + (low >> 60), low & (_ONE - 1)


def _divide_wide(high: int, low: int, divisor: int) -> tuple[int, int]:
    """Return quotient and remainder of high * 2^60 + low, for high < 2 * divisor and divisor < 2^62."""
    quotient, rest = high // divisor, high % divisor
    for bit in range(59, -1, -1):
        quotient, rest = quotient << 1, (rest << 1) | ((low >> bit) & 1)
        if rest >= divisor:
            quotient, rest = quotient | 1, rest - divisor
    return quotient, rest


def _multiply_and_divide(value: int, factor: int, divisor: int) -> int:
    """Return value * factor / divisor, rounded half away from zero.

    Raises `OverflowError` if a number or the result is 2^61 or more, and `ZeroDivisionError`.
    """
    if divisor == 0:
        raise ZeroDivisionError("division by zero")
    if not (-_FACTOR_MAX <= value <= _FACTOR_MAX and -_FACTOR_MAX <= factor <= _FACTOR_MAX):
        raise OverflowError("a number is too large for exact arithmetic")
    if not -_FACTOR_MAX <= divisor <= _FACTOR_MAX:
        raise OverflowError("a number is too large for exact arithmetic")
    high, low = _multiply_wide(abs(value), abs(factor))
    size = abs(divisor)
    if high >= 2 * size:
        raise OverflowError("the result is too large")
    quotient, rest = _divide_wide(high, low, size)
    if rest >= size - rest:
        quotient = quotient + 1
    is_negative = (value < 0) != ((factor < 0) != (divisor < 0))
    return -quotient if is_negative else quotient


def _ln_of_two_to(doublings: int) -> tuple[int, int]:
    """Return doublings * ln 2, rounded down, as (whole part, fraction in units of 2^-60)."""
    third = doublings * _LN2_PARTS[2]
    second = doublings * _LN2_PARTS[1] + (third >> _PART_BITS)
    first = doublings * _LN2_PARTS[0] + (second >> _PART_BITS)
    return first >> _PART_BITS, ((first & _PART_MASK) << _PART_BITS) | (second & _PART_MASK)


def _split_ln(value: int) -> tuple[int, int]:
    """Return the logarithm of a whole number below 2^53 as (k, ln(value / 2^k) in units of 2^-60).

    ln(part) = 2 artanh((part - 1) / (part + 1)); the argument of artanh is below 1/3.
    """
    doublings = 0
    for bit in range(1, 54):
        if value >> bit > 0:
            doublings = bit
    part = value << (60 - doublings)
    ratio, _ = _divide_wide(part - _ONE, 0, part + _ONE)
    square, series = _multiply_wide(ratio, ratio)[0], 0
    for term in range(41, 0, -2):
        series = _ONE // term + _multiply_wide(square, series)[0]
    return doublings, 2 * _multiply_wide(ratio, series)[0]
