"""Define the exact numbers of results: fractions that format like floats, on every supported Python.

    >>> points = ExactNumber(67_333_947, 62_500)
    >>> f"{points:.2f}", f"{-points:>12,.1f}", f"{points:+.0f}", f"{points}"
    ('1077.34', '    -1,077.3', '+1077', '67333947/62500')
    >>> points, points / 7 == Fraction(67_333_947, 437_500)
    (ExactNumber('1077.343152'), True)

Half a unit of the last digit is rounded away from zero, and a number that rounds to zero has no sign, as in all output
of the ledger. A result computed from an exact number and other fractions or whole numbers is an exact number, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

# Fill and alignment, sign and other flags, width, grouping, precision, type.
FORMAT = re.compile(
    r"(?s:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[-+ ]?)z?(?P<zero>0?)(?P<width>[0-9]*)"
    r"(?P<group>[,_]?)(?:\.(?P<places>[0-9]+))?(?P<kind>[eEfFgG%]?)"
)
PLACES = 6  # the default number of decimals, as for floats
DIGITS_MAX = 10_000  # a request for more decimals is a mistake
EXACT_CONTEXT = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
PLACES_SHOWN_MAX = 12  # a number with more decimals is shown as a fraction


class ExactNumber(Fraction):
    """A fraction that formats like a float: `f"{points:.2f}"`."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return a Python expression for the exact value, with a decimal if it is short, else with a fraction."""
        places = _decimal_places(self.denominator)
        return f"ExactNumber('{self if places is None else f'{self:.{places}f}'}')"

    def __format__(self, spec: str) -> str:
        """Format the number like a float; without a type and a precision, format it as a fraction.

        Raises `ValueError` for a specification that floats do not support, for one with `#` or `n`, and for more than
        10,000 decimals.
        """
        if not spec:
            return str(self)
        format_parts = FORMAT.fullmatch(spec)
        if format_parts is None or int(format_parts["places"] or 0) > DIGITS_MAX:
            raise ValueError(f"invalid format specifier {spec!r} for an exact number; write, for example, '.2f'")
        places = int(format_parts["places"] or PLACES)
        if format_parts["kind"] in ("f", "F", "%"):
            return _format_decimal(self._round_half_up(places + 2 * (format_parts["kind"] == "%")), spec, format_parts)
        if format_parts["kind"] or format_parts["places"]:
            return format(self._nearest_float(max(1, places + (format_parts["kind"] in ("e", "E")))), spec)
        numerator = format(abs(self.numerator), format_parts["group"])
        denominator = format(self.denominator, format_parts["group"])
        digits = numerator if self.denominator == 1 else f"{numerator}/{denominator}"
        sign = "-" if self < 0 else format_parts["sign"].strip("-")
        return _align(sign, digits, format_parts)

    def _round_half_up(self, places: int) -> Decimal:
        """Return the number rounded to `places` decimals, so that formatting does not round again; zero has no sign."""
        size = (abs(self.numerator) * 10**places * 2 + self.denominator) // (self.denominator * 2)
        return EXACT_CONTEXT.scaleb(Decimal(-size if self < 0 else size), -places)

    def _nearest_float(self, digits: int) -> float:
        """Return the float nearest to the number after rounding to `digits` significant digits."""
        context = Context(digits, ROUND_HALF_UP, MIN_EMIN, MAX_EMAX)
        return float(context.divide(Decimal(self.numerator), Decimal(self.denominator)))


def as_exact(fraction: Fraction) -> ExactNumber:
    """Return a fraction as an exact number."""
    return fraction if isinstance(fraction, ExactNumber) else ExactNumber(fraction)


def _format_decimal(value: Decimal, spec: str, format_parts: re.Match[str]) -> str:
    """Format a decimal. Supports `_` between thousands, which decimals support only from Python 3.14 on."""
    if format_parts["group"] != "_":
        return format(value, spec)
    with_commas = format(value, spec[: format_parts.start("group")] + "," + spec[format_parts.end("group") :])
    return with_commas if format_parts["fill"] == "," else with_commas.replace(",", "_")


def _align(sign: str, digits: str, format_parts: re.Match[str]) -> str:
    """Pad a sign and digits to the width of a format specification; align right by default."""
    fill = format_parts["fill"] or ("0" if format_parts["zero"] else " ")
    align = format_parts["align"] or ("=" if format_parts["zero"] else ">")
    width = int(format_parts["width"] or 0)
    if align == "=":
        return sign + digits.rjust(max(0, width - len(sign)), fill)
    text = sign + digits
    return {"<": text.ljust, ">": text.rjust, "^": lambda width, fill: format(text, f"{fill}^{width}")}[align](
        width, fill
    )


def _decimal_places(denominator: int) -> int | None:
    """Return the number of decimals of an exact fraction; None if it has more than PLACES_SHOWN_MAX."""
    return next((places for places in range(PLACES_SHOWN_MAX + 1) if 10**places % denominator == 0), None)


def _return_exact(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operation of fractions so that it returns an `ExactNumber` instead of a `Fraction`."""

    def operate(*operands: Any) -> Any:
        result = operation(*operands)
        return ExactNumber(result) if type(result) is Fraction else result

    operate.__name__, operate.__doc__ = operation.__name__, operation.__doc__
    return operate


BINARY = ("add", "sub", "mul", "truediv", "mod", "pow")
for _name in (*BINARY, *(f"r{name}" for name in BINARY), "neg", "pos", "abs", "round"):
    setattr(ExactNumber, f"__{_name}__", _return_exact(getattr(Fraction, f"__{_name}__")))

ZERO = ExactNumber(0)
