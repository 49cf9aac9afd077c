"""What commands tell beside their results, taken out where a test is about something else."""

import re
from typing import Any


def without_newcomers(text: str) -> str:
    """The messages of a command without who is new and whose name is close to another."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(r"note: (\d+ new player|'.*' is close to )", line))


def counts(told: dict[str, Any]) -> dict[str, Any]:
    """What an import or a recording prints as JSON, without who is new and what changed."""
    others = {"new_players", "close_names", "changes", "ladders", "published"}
    return {name: value for name, value in told.items() if name not in others}
