"""Coordinates: where on the axes an answer is, how people write the moments that they mean, and how they see them.

    2024-12-31            the end of that day in a zone, or its start where something begins
    2024-12-31T12:00Z     that instant
    217                   the position in the log, where what is known is asked for

Instants are shown in the ledger's home zone, or in UTC where it has none: 2024-12-31T23:30:00Z is 2025-01-01 00:30 in a
ledger at home in Europe/Berlin, in a column "played (Berlin)". What is odd about an answer, though not wrong, goes to a
function `note`.

Where two sets of coordinates are compared, each is one text: `now`, `published`, `217`, `2024-12-31`, or parts
separated by commas, such as `as-of=2024-12-31,rules=club-catan-elo@2`. A bare position or time is one of the log, as
for --known-at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import EPOCH, format_instant, parse_record_instant
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time, read_from, read_until
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    has_games_before,
    head,
    home_zones,
    position_known_at,
    read_events_of_type,
    read_where,
    recorded_at,
)
from ratings_ledger.ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.ladders import parse_name

Note = Callable[[str], None]


class Coordinates(NamedTuple):
    """A place on the three axes: played time, log position, and the one version (ID@VERSION) that scores everything.

    None means no limit, or the rulesets' own timelines. `left_out` are the positions of events that do not count, since
    no event can say what they say.
    """

    as_of: int | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] = ()

    @property
    def until(self) -> datetime | None:
        """`as_of` as a time in UTC."""
        return None if self.as_of is None else moment(self.as_of)

    def axes(self) -> dict[str, Any]:
        """Return the place on the three axes as JSON states it."""
        as_of = None if self.as_of is None else format_instant(self.as_of)
        return {"as_of": as_of, "known_at": self.known_at, "rules": self.rules}

    def stated(self) -> dict[str, Any]:
        """Return the coordinates as JSON states them: the axes, and what is left out, if anything."""
        return {**self.axes(), **({"left_out": list(self.left_out)} if self.left_out else {})}

    def named(self) -> dict[str, datetime | int | str | None]:
        """Return the place on the three axes, with times as times."""
        return {"as_of": self.until, "known_at": self.known_at, "rules": self.rules}

    def __repr__(self) -> str:
        """Return the place on the three axes, without an axis that does not limit anything."""
        told = [f"known_at={self.known_at}"] + ([] if self.rules is None else [f"rules={self.rules!r}"])
        as_of = [] if self.as_of is None else [f"as_of='{format_instant(self.as_of)}'"]
        left_out = [f"left_out={self.left_out}"] if self.left_out else []
        return f"Coordinates({', '.join(as_of + told + left_out)})"

    def of(self, facts: Facts) -> Coordinates:
        """Return the same, with what these facts leave out."""
        return self._replace(left_out=tuple(facts.left_out))


_NOON = re.compile(r"(\d{4}-\d\d-\d\d) 12:00:00(?:\.000000)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


class Times(NamedTuple):
    """How a ledger's instants are shown, and in which zone requested days end.

    `home` is a zone's name. A date is recorded as noon in the home zone of that time, or in UTC without one: `noons`
    are the zones that this may have been, by default `home` or UTC. Games at such an instant, exactly, are shown by
    their days.
    """

    home: str | None = None
    noons: tuple[str, ...] = ()

    @property
    def zone(self) -> str:
        """Return the name of the zone that times are shown in."""
        return self.home or "UTC"

    def column(self, word: str) -> str:
        """Return the header of a column of times, with a short form of their zone."""
        return f"{word} ({self.zone.rpartition('/')[2].replace('_', ' ')})"

    def minute(self, instant: int | str | datetime) -> str:
        """Return an instant, in microseconds, as records have it or as a time: the day and the minute."""
        return self._local(instant)[:16]

    def second(self, instant: int | str | datetime) -> str:
        """Return the same to the second, with the zone."""
        return f"{self._local(instant)[:19]} {self.zone}"

    def stated(self, instant: int | str | datetime) -> str:
        """Return the same to the minute, with the zone."""
        return f"{self.minute(instant)} {self.zone}"

    def played(self, instant: int | str | datetime) -> str:
        """Return when a game was played: the day and the minute, or the day alone if no time was recorded.

        >>> Times("Europe/Berlin").played("2024-11-22T11:00:00.000000Z"), Times().played("2024-11-22T11:00:00.000000Z")
        ('2024-11-22', '2024-11-22 11:00')
        """
        return self.day_alone(instant) or self.minute(instant)

    def played_stated(self, instant: int | str | datetime) -> str:
        """Return the same, with the zone of a minute."""
        return self.day_alone(instant) or self.stated(instant)

    def day_alone(self, instant: int | str | datetime) -> str | None:
        """Return the day of a game if no time was recorded, otherwise None."""
        for zone in self.noons or (self.zone,):
            if noon := _NOON.fullmatch(Times(None if zone == "UTC" else zone)._local(instant)):
                return noon[1]
        return None

    def _local(self, instant: int | str | datetime) -> str:
        if isinstance(instant, datetime):
            instant = instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self.home is None:
            text = instant if isinstance(instant, str) else format_instant(instant)
        else:
            text = local_time(
                parse_record_instant(instant) if isinstance(instant, str) else instant, self.home
            ).isoformat()
        return text.replace("T", " ")


UTC_TIMES = Times()
# the noons of dates in a ledger without a home zone, in whichever zone it is shown
UTC_NOON = ("UTC",)


def moment(instant: int) -> datetime:
    """Return an instant, in microseconds since 1970, as a time in UTC."""
    return EPOCH + timedelta(microseconds=instant)


def times_of(connection: Connection) -> Times:
    """Return the times of a ledger, in its home zone at the head of the log."""
    zones = home_zones(connection)
    if not zones:
        return Times()
    names = [str(event.data["zone"]) for event in reversed(zones)]
    # dates that were recorded before there was a home zone are noons in UTC
    has_older = has_games_before(connection, zones[0].position or 0)
    return Times(names[0], (*dict.fromkeys([*names, *(["UTC"] if has_older else [])]),))


def position_known(connection: Connection, known_at: str | int | None, time_zone: str | None, note: Note) -> int:
    """Return the log position that `known_at` means; a date means its end in a zone, by default the ledger's.

    Raises `BadArgument`.
    """
    newest = head(connection)
    if known_at is None:
        return newest.position
    if newest.position == 0:
        raise BadArgument("the ledger is empty: nothing is known at any time", "known_at")
    text = str(known_at)
    if is_position := text.isascii() and text.isdigit():
        if len(text) > 18 or int(text) > newest.position:
            raise BadArgument(_behind_end(newest.position, text), "known_at")
        if int(text):
            return int(text)
    times, position = times_of(connection), 0
    if not is_position:
        instant = _end(text, time_zone or times.zone, "known_at", ", nor a position of the log")
        position = position_known_at(connection, instant)
        if instant > newest.recorded_at and _lies_ahead(text, time_zone or times.zone):
            last = times.second(newest.recorded_at)
            note(f"the last event was recorded at {last}; nothing is known from after it")
    if position == 0:
        first = times.second(recorded_at(connection, 1))
        raise BadArgument(f"nothing is known from before position 1, which was recorded at {first}", "known_at")
    return position


def position_since(connection: Connection, since: str | None) -> int:
    """Return the log position after which the events that `since` means begin; a date means its start in the ledger's
    zone.

    Raises `BadArgument`.
    """
    if since is None:
        return 0
    newest = head(connection).position
    if since.isascii() and since.isdigit():
        if len(since) > 18 or int(since) > newest:
            raise BadArgument(_behind_end(newest, since), "since")
        return max(0, int(since) - 1)
    instant = instant_since(since, times_of(connection).zone, ", nor a position of the log")
    return position_known_at(connection, instant - 1)


def _behind_end(end: int, text: str) -> str:
    """Return what is wrong with a number that is no position of a log that ends at `end`; it may be meant as a year."""
    year = f"; for a year, name a day, such as {text}-12-31" if len(text) == 4 and text[0] in "12" else ""
    return f"the log ends at position {end}, before {text:.20}{year}"


def instant_since(since: str, time_zone: str, nor: str = "", argument: str = "since") -> int:
    """Return the instant that `since`, or another argument, means in a zone; a date means its start. Raises
    `BadArgument`.
    """
    try:
        return read_from(since, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, argument) from None


def instant_played(as_of: str | None, time_zone: str, argument: str = "as_of") -> int | None:
    """Return the instant that `as_of`, or another argument, means in a zone; a date means its end. Raises
    `BadArgument`.
    """
    return None if as_of is None else _end(as_of, time_zone, argument)


def state_moment(instant: int, time_zone: str) -> str:
    """Return an instant as an option takes it that means an end: as a date, if the day ends with it in the zone."""
    day = local_time(instant, time_zone).date().isoformat()
    return day if read_until(day, time_zone) == instant else format_instant(instant)


def note_ahead(as_of: str | None, time_zone: str, note: Note) -> None:
    """Note that `as_of` is in the future; today's date is not."""
    if as_of is not None and _end(as_of, time_zone, "as_of") > clock.now() and _lies_ahead(as_of, time_zone):
        note(f"{as_of} lies in the future; more may be played until then")


def _lies_ahead(text: str, time_zone: str) -> bool:
    return read_from(text, time_zone) > clock.now()


def _end(text: str, time_zone: str, argument: str, nor: str = "") -> int:
    try:
        return read_until(text, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, argument) from None


WORDS, PARTS = ("now", "published"), ("as-of", "known-at", "rules")
FORM = "now, published, a position, or parts like as-of=DATE,known-at=POSITION,rules=ID@VERSION"


class CoordinateSpec(NamedTuple):
    """Coordinates as written; `published`: what a published list holds, of `as_of` if that is given."""

    text: str
    published: bool = False
    as_of: str | None = None
    known_at: str | int | None = None
    rules: str | None = None

    def resolve(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the coordinates, in the zone of a ladder's ruleset. Raises `BadArgument`."""
        found = self.among(connection, ladder, note)
        if found.rules != self.rules:
            told = f"{quote(str(self.rules))} is no version of the ruleset of {ladder}"
            raise BadArgument(told, "coordinates")
        return found

    def among(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the same for a ladder or ruleset among others, which keep their own timelines when a version is given.

        Raises `BadArgument`.
        """
        zone = date_zone(connection, ladder, times_of(connection))
        own = self.rules is not None and parse_name(ladder).ruleset_id == self.rules.partition("@")[0]
        return Coordinates(
            instant_played(self.as_of, zone),
            position_known(connection, self.known_at, zone, note),
            self.rules if own else None,
        )

    def lists(self, connection: Connection, note: Note, ladder: str | None = None) -> list[PublishedList]:
        """Return the published lists that are meant, of one ladder or of all; with `known_at`, as of then."""
        times = times_of(connection)
        zone = None if ladder is None else date_zone(connection, ladder, times)
        until = position_known(connection, self.known_at, zone, note)
        found = latest_lists(published_lists(connection, until, ladder))
        if self.as_of is None:
            return found
        return [
            one for one in found if one.as_of == instant_played(self.as_of, date_zone(connection, one.ladder, times))
        ]


def parse_coordinates(text: str) -> CoordinateSpec:
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
            raise BadArgument(f"{quote(text)}: {quote(part)} is no coordinate; write {FORM}{hint}", "coordinates")
        if name in said:
            raise BadArgument(f"{quote(text)} says {name} twice", "coordinates")
        if value != "now":
            said[name] = value
    if "published" in said and "rules" in said:
        raise BadArgument(f"{quote(text)}: a published list has its own version", "coordinates")
    return CoordinateSpec(text, "published" in said, said.get("as-of"), said.get("known-at"), said.get("rules"))


class UnknownLadder(BadArgument):
    """No ruleset has this id or version, or the ladder's name does not fit its ruleset."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "ladder")


def time_zone(connection: Connection, ladder: str) -> str:
    """Return the zone of a ladder's ruleset, which all its versions share. Raises `UnknownLadder`."""
    ruleset_id = parse_name(ladder).ruleset_id
    # including voided versions: what was known at an earlier position may need them, and all share the zone
    there = read_where(connection, until=None, subject=f"ruleset:{ruleset_id}")
    published = next(iter(read_events_of_type("ruleset.published", there)), None)
    if published is None:
        raise _unknown_ruleset(ruleset_id, ruleset_ids(connection))
    return Ruleset.model_validate(published.data).time_zone


def date_zone(connection: Connection, ladder: str, times: Times) -> str:
    """Return the zone in which a given date ends: the ledger's home zone, otherwise that of the ladder's ruleset.

    Raises `UnknownLadder`.
    """
    own = time_zone(connection, ladder)
    return times.home or own


def ruleset_ids(connection: Connection) -> set[str]:
    """Return the ids of all rulesets that were ever published."""
    every = read_where(connection, until=None, type_name="ruleset.published")
    return {event.data["id"] for event in read_events_of_type("ruleset.published", every)}


def _unknown_ruleset(ruleset_id: str, known: Collection[str], when: str = "") -> UnknownLadder:
    there = f"there are {', '.join(sorted(known))}" if known else "none is published; see: ratings init"
    return UnknownLadder(f"no ruleset is called {quote(ruleset_id)}{when} ({there}){did_you_mean(ruleset_id, known)}")
