"""The arithmetic for rules with real numbers, against `decimal` with 40 digits."""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import pytest
from checked_integers import Int64
from kernel_calls import compile_function
from lengths import mark_many_cases

from ratings_ledger import rules


@pytest.mark.parametrize("count", mark_many_cases(2_000, 20_000))
def test_exp_and_ln_are_right_to_fourteen_digits(count: int) -> None:
    """For random numbers, the relative errors of `exp` and `ln` are below 1e-14."""
    random, largest = Random(1), {"exp": Decimal(0), "ln": Decimal(0)}
    with localcontext(prec=40):
        for _ in range(count):
            exponent = random.uniform(-50, 50)
            exact = Decimal(exponent).exp()
            largest["exp"] = max(largest["exp"], abs(Decimal(rules.exp(exponent)) / exact - 1))
            number = math.exp(random.uniform(-20, 20))
            exact = Decimal(number).ln()
            largest["ln"] = max(largest["ln"], abs(Decimal(rules.ln(number)) / exact - 1))
    assert all(0 < error < Decimal("1e-14") for error in largest.values()), largest


@pytest.mark.parametrize(
    ("value", "scale", "whole"), [(1.5, 1, 2), (-1.5, 1, -2), (0.25, 2, 1), (-0.2, 1, 0), (0.0, 10, 0)]
)
def test_halves_are_rounded_away_from_zero(value: float, scale: int, whole: int) -> None:
    """Halves round away from zero, on both sides of zero."""
    assert rules.units(value, scale) == whole


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**53])
def test_invalid_doubles_have_no_units(value: float) -> None:
    """A NaN, an infinity or a number out of range raises instead of becoming a state."""
    with pytest.raises(OverflowError):
        rules.units(value, 1)


@pytest.mark.slow
def test_compiled_arithmetic_equals_python() -> None:
    """Compiled `exp` and `ln` give exactly the doubles of Python."""
    numba = pytest.importorskip("numba")
    random = Random(2)
    compiled = {name: numba.njit(getattr(rules, name)) for name in ("exp", "ln")}
    for _ in range(5_000):
        exponent = random.uniform(-300, 300)
        assert compiled["exp"](exponent) == rules.exp(exponent)
        assert compiled["ln"](math.exp(exponent / 2)) == rules.ln(math.exp(exponent / 2))


Draw = Callable[[Random, int], tuple[int, ...]]
SCALES = (1, 7, 840, 10**6, 2**32, 10**12)


def draw_size(random: Random, bits: int) -> int:
    """Draw a number of a random length, positive or negative."""
    return random.choice((-1, 1)) * random.getrandbits(random.randint(1, bits))


# by name: (function that draws arguments, exact result, largest error in units)
FIXED_FUNCTIONS: dict[str, tuple[Draw, Callable[..., Decimal], str]] = {
    "fixed_multiply": (
        lambda random, scale: (draw_size(random, 61), draw_size(random, 61), scale),
        lambda value, factor, scale: Decimal(value) * factor / scale,
        "0.5",
    ),
    "fixed_divide": (
        lambda random, scale: (draw_size(random, 61), draw_size(random, 61) or 1, scale),
        lambda value, divisor, scale: Decimal(value) * scale / divisor,
        "0.5",
    ),
    "fixed_sqrt": (
        lambda random, scale: (abs(draw_size(random, 61)), scale),
        lambda value, scale: (Decimal(value) * scale).sqrt(),
        "0.5",
    ),
    "fixed_exp": (
        lambda random, scale: (random.randint(-42 * scale, 42 * scale), scale),
        lambda value, scale: (Decimal(value) / scale).exp() * scale,
        "0.6",
    ),
    "fixed_ln": (
        lambda random, scale: (abs(draw_size(random, 53)) or 1, scale),
        lambda value, scale: (Decimal(value) / scale).ln() * scale,
        "0.501",
    ),
}


def draw_fixed_cases(name: str, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Draw arguments for a function of fixed-point numbers, of every scale."""
    random = Random(seed)
    for number in range(count):
        yield FIXED_FUNCTIONS[name][0](random, SCALES[number % len(SCALES)])


def find_outcome(function: Callable[..., Any], numbers: tuple[int, ...]) -> Any:
    """Return the result of a function, or the type of the error that it raises."""
    try:
        return function(*numbers)
    except (OverflowError, ValueError, ZeroDivisionError) as error:
        return type(error)


@pytest.mark.parametrize("count", mark_many_cases(600, 3_000))
@pytest.mark.parametrize("name", FIXED_FUNCTIONS)
def test_fixed_point_numbers_are_rounded_as_documented(name: str, record_property: Any, count: int) -> None:
    """The errors of each function, against 60 digits, are within its bound, and no step leaves 64 bits."""
    function, (_, exact, bound) = getattr(rules, name), FIXED_FUNCTIONS[name]
    largest, scored = Decimal(0), 0
    with localcontext(prec=60):
        for numbers in draw_fixed_cases(name, count, seed=3):
            result = find_outcome(function, tuple(map(Int64, numbers)))
            if isinstance(result, int):
                largest, scored = max(largest, abs(result - exact(*numbers))), scored + 1
            else:
                limit = 2**53 if name == "fixed_exp" else 2**61
                assert result is OverflowError
                assert abs(exact(*numbers)) > limit - 1
    record_property("largest error in units", str(largest))
    assert scored > count / 3
    assert Decimal("0.4") < largest <= Decimal(bound)


@pytest.mark.parametrize(
    ("name", "numbers", "result"),
    [
        ("fixed_multiply", (3, 5, 10), 2), ("fixed_multiply", (-3, 5, 10), -2), ("fixed_divide", (1, 4, 10), 3),
        ("fixed_divide", (1, -4, 10), -3), ("fixed_divide", (-7, -2, 1), 4), ("fixed_sqrt", (0, 10), 0),
        ("fixed_sqrt", (2_000_000, 1_000_000), 1_414_214), ("fixed_sqrt", (2**61 - 1, 10**12), 1_518_500_249_988_025),
        ("fixed_exp", (0, 10**12), 10**12), ("fixed_exp", (1_000_000, 1_000_000), 2_718_282),
        ("fixed_exp", (-(2**62), 10**6), 0), ("fixed_ln", (10**12, 10**12), 0), ("fixed_ln", (1, 1), 0),
        ("fixed_ln", (2_000_000, 1_000_000), 693_147), ("fixed_ln", (1, 10**6), -13_815_511),
        ("fixed_divide", (1, 0, 10), ZeroDivisionError), ("fixed_divide", (2**60, 1, 10), OverflowError),
        ("fixed_multiply", (2**61, 1, 1), OverflowError), ("fixed_multiply", (1, 2**62, 1), OverflowError),
        ("fixed_divide", (1, 2**61, 1), OverflowError), ("fixed_sqrt", (-1, 1), ValueError),
        ("fixed_sqrt", (2**61, 1), OverflowError), ("fixed_exp", (37, 1), OverflowError),
        ("fixed_exp", (41, 1), OverflowError), ("fixed_ln", (0, 1), ValueError), ("fixed_ln", (-5, 1), ValueError),
        ("fixed_ln", (2**53, 1), OverflowError), ("fixed_exp", (1, 10**12 + 1), ValueError),
        ("fixed_exp", (1, 0), ValueError),
    ],
)  # fmt: skip
def test_fixed_point_functions_give_these_results(name: str, numbers: tuple[int, ...], result: Any) -> None:
    """Halves round away from zero, and arguments without a result raise."""
    assert find_outcome(getattr(rules, name), numbers) == result


@pytest.mark.slow
def test_compiled_fixed_point_equals_python() -> None:
    """Compiled functions of fixed-point numbers give the results of Python, errors included."""
    pytest.importorskip("numba")
    for name in FIXED_FUNCTIONS:
        function = getattr(rules, name)
        compiled = compile_function(function)
        for numbers in draw_fixed_cases(name, 2_000, seed=4):
            assert find_outcome(compiled, numbers) == find_outcome(function, numbers), (name, numbers)
