"""Fractions as tables write them, with a point or a comma, and numbers that may be one or not."""

import re

from ratings_ledger.ledger.rejections import Refused, shown

COMMA_DELIMITERS = (";", "\t")  # with which a comma in a score is a decimal one

_COMMA = re.compile(r"-?\d+,\d+", re.ASCII)
# a whole number with its thousands apart, or a fraction: the number alone does not say which
_THOUSANDS = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+)", re.ASCII)


def is_doubtful(text: str) -> bool:
    """Whether a text may be a whole number with its thousands apart, or a fraction."""
    return _THOUSANDS.fullmatch(text) is not None


def with_point(name: str, text: str) -> str:
    """A number in a column with a decimal point in the place of a comma. Raises `Refused` (bad-decimal)."""
    if is_doubtful(text):
        whole, *parts = text.replace(",", ".").split(".")
        digits = parts[0].rstrip("0") or "0"
        fraction = f" or {whole}.{digits}{'0' * (len(digits) == 3)}" if len(parts) == 1 else ""
        told = f"may be a whole number or a fraction; write {whole}{''.join(parts)}{fraction}"
        raise Refused("bad-decimal", f"{name}: {shown(text)} {told}")
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text
