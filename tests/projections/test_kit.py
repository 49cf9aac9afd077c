"""The arithmetic for rules that reckon with real numbers, against `decimal` with 40 digits."""

import math
from decimal import Decimal, localcontext
from random import Random

import pytest

from ratings_ledger.projections import kit


def test_powers_and_logarithms_are_right_to_fourteen_digits() -> None:
    """20,000 drawn numbers: the largest relative error of `exp` and `ln`, against 40 digits."""
    random, largest = Random(1), {"exp": Decimal(0), "ln": Decimal(0)}
    with localcontext(prec=40):
        for _ in range(20_000):
            exponent = random.uniform(-50, 50)
            exact = Decimal(exponent).exp()
            largest["exp"] = max(largest["exp"], abs(Decimal(kit.exp(exponent)) / exact - 1))
            number = math.exp(random.uniform(-20, 20))
            exact = Decimal(number).ln()
            largest["ln"] = max(largest["ln"], abs(Decimal(kit.ln(number)) / exact - 1))
    assert all(0 < error < Decimal("1e-14") for error in largest.values()), largest


@pytest.mark.parametrize(
    ("value", "scale", "whole"), [(1.5, 1, 2), (-1.5, 1, -2), (0.25, 2, 1), (-0.2, 1, 0), (0.0, 10, 0)]
)
def test_halves_are_rounded_away_from_zero(value: float, scale: int, whole: int) -> None:
    """The same on both sides of zero."""
    assert kit.units(value, scale) == whole


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**53])
def test_what_is_no_number_has_no_units(value: float) -> None:
    """A result out of range never becomes a state."""
    with pytest.raises(OverflowError):
        kit.units(value, 1)


def test_compiled_arithmetic_has_the_same_bits() -> None:
    """Compiled `exp`, `ln` and `power` give the doubles that Python gives."""
    numba = pytest.importorskip("numba")
    random = Random(2)
    compiled = {name: numba.njit(getattr(kit, name)) for name in ("exp", "ln")}
    for _ in range(5_000):
        exponent = random.uniform(-300, 300)
        assert compiled["exp"](exponent) == kit.exp(exponent)
        assert compiled["ln"](math.exp(exponent / 2)) == kit.ln(math.exp(exponent / 2))
