"""What commands tell beside their results, taken out where a test is about something else."""

import re
from fractions import Fraction
from typing import Any


def without_newcomers(text: str) -> str:
    """The messages of a command without who and what is new, whose name is close, and that no ruleset is published."""
    left_out = r"note: (\d+ new (player|ladder)|new: '.*'.*: did |no ruleset is published, )"
    return "".join(line for line in text.splitlines(keepends=True) if not re.match(left_out, line))


def counts(told: dict[str, Any]) -> dict[str, Any]:
    """What an import or a recording prints as JSON, without who is new and what changed."""
    others = {"new_players", "close_names", "new_ladders", "close_ladders", "changes", "ladders", "published"}
    return {name: value for name, value in told.items() if name not in others}


def exact(value: Any) -> Any:
    """A result without its decimals, each of which is checked: the exact number beside it, rounded to six places."""
    if isinstance(value, list):
        return [exact(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, text in value.items():
        if name.endswith("_decimal"):
            number = value[name.removesuffix("_decimal")]
            assert (text is None) == (number is None), value
            if text is not None:
                float(text)
                assert abs(Fraction(text) - Fraction(number)) <= Fraction(1, 2_000_000), value
                assert len(text.partition(".")[2]) <= 6, value
    return {name: exact(item) for name, item in value.items() if not name.endswith("_decimal")}
