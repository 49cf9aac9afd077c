"""Coordinates as an argument: `now`, `published`, `217`, `2024-12-31`, `as-of=2024-12-31,rules=club-catan-elo@2`.

The parts are separated by commas. A bare position or time is one of the log, as for --known-at.
"""

from typing import NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.moments import known_position, played_instant
from ledger.rejections import shown
from ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from projections.queries.coordinates import Coordinates
from projections.queries.standings import date_zone
from projections.replay.ladders import parse_name

FORM = "now, published, a position, or parts like as-of=DATE,known-at=POSITION,rules=ID@VERSION"


class Asked(NamedTuple):
    """Coordinates as written; `published`: what a published list holds."""

    text: str
    published: bool
    as_of: str | None
    known_at: str | None
    rules: str | None

    def resolve(self, connection: Connection, ladder: str) -> Coordinates:
        """The coordinates, in the zone of a ladder's ruleset. Raises `click.BadParameter`, `UnknownLadder`."""
        found = self.among(connection, ladder)
        if found.rules != self.rules:
            raise click.BadParameter(f"{shown(str(self.rules))} is no version of the ruleset of {ladder}")
        return found

    def among(self, connection: Connection, ladder: str) -> Coordinates:
        """The same for a ladder or ruleset among others, which keep their own timelines when a version is given.

        Raises `click.BadParameter`, `UnknownLadder`.
        """
        zone = date_zone(connection, ladder)
        own = self.rules is not None and parse_name(ladder).ruleset_id == self.rules.partition("@")[0]
        return Coordinates(
            played_instant(self.as_of, zone),
            known_position(connection, self.known_at, zone),
            self.rules if own else None,
        )

    def lists(self, connection: Connection, ladder: str | None = None) -> list[PublishedList]:
        """The published lists that are meant, of one ladder or of all; with `known-at`, as of then."""
        until = known_position(connection, self.known_at, None if ladder is None else date_zone(connection, ladder))
        found = latest_lists(published_lists(connection, until, ladder))
        if self.as_of is None:
            return found
        return [one for one in found if one.as_of == played_instant(self.as_of, date_zone(connection, one.ladder))]


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
