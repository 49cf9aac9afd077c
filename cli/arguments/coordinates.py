"""Coordinates as an argument: `now`, `published`, `217`, `2024-12-31`, `as-of=2024-12-31,rules=club-catan-elo@2`.

The parts are separated by commas. A bare position or time is one of the log, as for --known-at.
"""

import click

from ledger.rejections import shown
from projections.queries.asked import Asked

FORM = "now, published, a position, or parts like as-of=DATE,known-at=POSITION,rules=ID@VERSION"


def read_asked(text: str) -> Asked:
    """Raises `click.BadParameter`."""
    said: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        named = name in ("as-of", "known-at", "rules")
        if not equals:
            named, (name, value) = True, ("published", "yes") if name == "published" else ("known-at", name)
        if not named or not value:
            raise click.BadParameter(f"{shown(text)}: {shown(part)} is no coordinate; write {FORM}")
        if name in said:
            raise click.BadParameter(f"{shown(text)} says {name} twice")
        if value != "now":
            said[name] = value
    if "published" in said and "rules" in said:
        raise click.BadParameter(f"{shown(text)}: a published list has its own version")
    return Asked(text, "published" in said, said.get("as-of"), said.get("known-at"), said.get("rules"))


class CoordinatesType(click.ParamType[Asked]):
    """The type of an argument that holds coordinates."""

    name = "coordinates"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> Asked:
        """Raises `click.BadParameter`."""
        return value if isinstance(value, Asked) else read_asked(str(value))
