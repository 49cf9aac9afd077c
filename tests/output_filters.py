"""Remove parts of a command's output that a test is not about."""

import re
from fractions import Fraction
from typing import Any


def remove_newcomer_notes(text: str) -> str:
    """Return messages without the notes about new and close names and about missing rulesets."""
    pattern = r"note: (\d+ new (player|ladder)|new: '.*'.*: did |no ruleset is published, )"
    return "".join(line for line in text.splitlines(keepends=True) if not re.match(pattern, line))


def remove_names_and_changes(output: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON output of an import or a recording without names, changes, ladders and published lists.

    The names are the new and close ones.
    """
    omitted = {"new_players", "close_names", "new_ladders", "close_ladders", "changes", "ladders", "published"}
    return {name: value for name, value in output.items() if name not in omitted}


def strip_decimals(value: Any) -> Any:
    """Return a result without its decimals; check that each is the exact number beside it, rounded to six places."""
    if isinstance(value, list):
        return [strip_decimals(item) for item in value]
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
    return {name: strip_decimals(item) for name, item in value.items() if not name.endswith("_decimal")}
