"""Coordinates as they are asked for, of what is computed or of what was published, before a ladder's zone is known.

As text: `now`, `published`, `217`, `2024-12-31`, `as-of=2024-12-31,rules=club-catan-elo@2`. The parts are separated by
commas. A bare position or time is one of the log, as for --known-at.
"""

from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import did_you_mean, shown
from ratings_ledger.ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from ratings_ledger.projections.queries.coordinates import Coordinates, Note, instant_played, position_known, times_of
from ratings_ledger.projections.queries.standings import date_zone
from ratings_ledger.projections.replay.ladders import parse_name

WORDS, PARTS = ("now", "published"), ("as-of", "known-at", "rules")
FORM = "now, published, a position, or parts like as-of=DATE,known-at=POSITION,rules=ID@VERSION"


class Asked(NamedTuple):
    """Coordinates as written; `published`: what a published list holds, of `as_of` if that is given."""

    text: str
    published: bool = False
    as_of: str | None = None
    known_at: str | int | None = None
    rules: str | None = None

    def resolve(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """The coordinates, in the zone of a ladder's ruleset. Raises `BadArgument`."""
        found = self.among(connection, ladder, note)
        if found.rules != self.rules:
            told = f"{shown(str(self.rules))} is no version of the ruleset of {ladder}"
            raise BadArgument(told, "coordinates")
        return found

    def among(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """The same for a ladder or ruleset among others, which keep their own timelines when a version is given.

        Raises `BadArgument`.
        """
        zone = date_zone(connection, ladder, times_of(connection))
        own = self.rules is not None and parse_name(ladder).ruleset_id == self.rules.partition("@")[0]
        return Coordinates(
            instant_played(self.as_of, zone), position_known(connection, self.known_at, zone, note),
            self.rules if own else None,
        )  # fmt: skip

    def lists(self, connection: Connection, note: Note, ladder: str | None = None) -> list[PublishedList]:
        """The published lists that are meant, of one ladder or of all; with `known_at`, as of then."""
        times = times_of(connection)
        zone = None if ladder is None else date_zone(connection, ladder, times)
        until = position_known(connection, self.known_at, zone, note)
        found = latest_lists(published_lists(connection, until, ladder))
        if self.as_of is None:
            return found
        return [
            one for one in found if one.as_of == instant_played(self.as_of, date_zone(connection, one.ladder, times))
        ]


def read_asked(text: str) -> Asked:
    """Coordinates as somebody wrote them. Raises `BadArgument`."""
    said: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        known = PARTS if equals else WORDS
        hint = "" if name in known else did_you_mean(name, known)
        named = name in known or not (equals or hint)
        if not equals:
            name, value = ("published", "yes") if name == "published" else ("known-at", name)
        if not (named and value):
            raise BadArgument(f"{shown(text)}: {shown(part)} is no coordinate; write {FORM}{hint}", "coordinates")
        if name in said:
            raise BadArgument(f"{shown(text)} says {name} twice", "coordinates")
        if value != "now":
            said[name] = value
    if "published" in said and "rules" in said:
        raise BadArgument(f"{shown(text)}: a published list has its own version", "coordinates")
    return Asked(text, "published" in said, said.get("as-of"), said.get("known-at"), said.get("rules"))
