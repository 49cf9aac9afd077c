"""Coordinates of an answer on the three axes, and how users write and read points in time.

    2024-12-31            the end of that day in a zone, or its start for an option that means a start
    2024-12, 2024         the end of that month or year, or its start; a number is a position where one may stand
    2024-12-31T12:00Z     that instant
    217                   a position in the log, for options about what was known

Instants are shown in the ledger's home zone, or in UTC without one: 2024-12-31T23:30:00Z is 2025-01-01 00:30 in a
ledger at home in Europe/Berlin, in a column "played (Berlin)". A function `note` receives remarks on unusual but
correct answers.

A comparison takes each set of coordinates as one text: `now`, `published`, `217`, `2024-12-31`, or parts separated by
commas, such as `as-of=2024-12-31,rules=club-catan-elo@2`. A bare position or time refers to the log, as in --known-at.
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
    """Coordinates on the three axes: played time, log position, and the version (ID@VERSION) that scores everything.

    None means no limit, or the rulesets' own timelines. `left_out` are the positions of invalid events, which do not
    count.
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
        """Return the three axes as JSON members."""
        as_of = None if self.as_of is None else format_instant(self.as_of)
        return {"as_of": as_of, "known_at": self.known_at, "rules": self.rules}

    def stated(self) -> dict[str, Any]:
        """Return the coordinates as JSON members: the axes, and the events left out, if any."""
        return {**self.axes(), **({"left_out": list(self.left_out)} if self.left_out else {})}

    def named(self) -> dict[str, datetime | int | str | None]:
        """Return the three axes with times as `datetime`."""
        return {"as_of": self.until, "known_at": self.known_at, "rules": self.rules}

    def __repr__(self) -> str:
        """Return the three axes, without any that limits nothing."""
        limits = [f"known_at={self.known_at}"] + ([] if self.rules is None else [f"rules={self.rules!r}"])
        as_of = [] if self.as_of is None else [f"as_of='{format_instant(self.as_of)}'"]
        left_out = [f"left_out={self.left_out}"] if self.left_out else []
        return f"Coordinates({', '.join(as_of + limits + left_out)})"

    def of(self, facts: Facts) -> Coordinates:
        """Return the same coordinates with the events that these facts leave out."""
        return self._replace(left_out=tuple(facts.left_out))


_NOON = re.compile(r"(\d{4}-\d\d-\d\d) 12:00:00(?:\.000000)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


class Times(NamedTuple):
    """The format of a ledger's instants, and the zone in which days end.

    `home` is the name of the home zone. A date without a time is recorded as noon in the home zone of its time, or in
    UTC without one. `noons` are all zones that this may have been, by default `home` or UTC. A game at exactly such an
    instant is shown with its day only.
    """

    home: str | None = None
    noons: tuple[str, ...] = ()

    @property
    def zone(self) -> str:
        """Return the name of the display zone."""
        return self.home or "UTC"

    def column(self, word: str) -> str:
        """Return the header of a column of times, with the short name of the zone."""
        return f"{word} ({self.zone.rpartition('/')[2].replace('_', ' ')})"

    def minute(self, instant: int | str | datetime) -> str:
        """Return the day and the minute of an instant, given in microseconds, as recorded text or as a `datetime`."""
        return self._local(instant)[:16]

    def second(self, instant: int | str | datetime) -> str:
        """Return an instant to the second, with the zone."""
        return f"{self._local(instant)[:19]} {self.zone}"

    def stated(self, instant: int | str | datetime) -> str:
        """Return an instant to the minute, with the zone."""
        return f"{self.minute(instant)} {self.zone}"

    def played(self, instant: int | str | datetime) -> str:
        """Return when a game was played: the day and the minute, or only the day if no time was recorded.

        >>> Times("Europe/Berlin").played("2024-11-22T11:00:00.000000Z"), Times().played("2024-11-22T11:00:00.000000Z")
        ('2024-11-22', '2024-11-22 11:00')
        """
        return self.day_alone(instant) or self.minute(instant)

    def played_stated(self, instant: int | str | datetime) -> str:
        """Return when a game was played as `played` does, with the zone if there is a minute."""
        return self.day_alone(instant) or self.stated(instant)

    def day_alone(self, instant: int | str | datetime) -> str | None:
        """Return the day of a game if no time was recorded, else None."""
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
# a ledger without a home zone records dates as noon in UTC, whatever the display zone
UTC_NOON = ("UTC",)


def moment(instant: int) -> datetime:
    """Return an instant in microseconds since 1970 as a `datetime` in UTC."""
    return EPOCH + timedelta(microseconds=instant)


def load_times(connection: Connection) -> Times:
    """Return the time format of a ledger, from its home zone at the head of the log."""
    zones = home_zones(connection)
    if not zones:
        return Times()
    names = [str(event.data["zone"]) for event in reversed(zones)]
    # dates recorded before the first home zone are noons in UTC
    has_older = has_games_before(connection, zones[0].position or 0)
    return Times(names[0], (*dict.fromkeys([*names, *(["UTC"] if has_older else [])]),))


def resolve_known_at(connection: Connection, known_at: str | int | None, time_zone: str | None, note: Note) -> int:
    """Return the log position for `known_at`; a date or month means its end in a zone, by default the ledger's.

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
    times, position = load_times(connection), 0
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


def resolve_since(connection: Connection, since: str | None) -> int:
    """Return the log position just before the first event from `since` on; a date or month means its start in the
    ledger's zone.


    Raises `BadArgument`.
    """
    if since is None:
        return 0
    newest = head(connection).position
    if since.isascii() and since.isdigit():
        if len(since) > 18 or int(since) > newest:
            raise BadArgument(_behind_end(newest, since), "since")
        return max(0, int(since) - 1)
    instant = parse_since(since, load_times(connection).zone, ", nor a position of the log")
    return position_known_at(connection, instant - 1)


def _behind_end(end: int, text: str) -> str:
    """Return the message for a number behind the end of the log, with a hint if it looks like a year."""
    year = f"; for a year, name a day, such as {text}-12-31" if len(text) == 4 and text[0] in "12" else ""
    return f"the log ends at position {end}, before {text:.20}{year}"


def parse_since(since: str, time_zone: str, nor: str = "", argument: str = "since") -> int:
    """Return the instant for `since`, or another argument, in a zone; a date, month or year means its start.

    `nor` names the other accepted forms in the message. Raises `BadArgument`.
    """
    try:
        return read_from(since, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, argument) from None


def parse_as_of(as_of: str | None, time_zone: str, argument: str = "as_of") -> int | None:
    """Return the instant for `as_of`, or another argument, in a zone; a date, month or year means its end.

    Raises `BadArgument`.
    """
    return None if as_of is None else _end(as_of, time_zone, argument)


def format_end(instant: int, time_zone: str) -> str:
    """Return an instant as text for an option that means an end: a date if a day of the zone ends with it."""
    day = local_time(instant, time_zone).date().isoformat()
    return day if read_until(day, time_zone) == instant else format_instant(instant)


def note_future(as_of: str | None, time_zone: str, note: Note) -> None:
    """Note that `as_of` is in the future; today's date does not count as future."""
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
    """Coordinates as a user wrote them; `published` means a published list, the one at `as_of` if that is set."""

    text: str
    published: bool = False
    as_of: str | None = None
    known_at: str | int | None = None
    rules: str | None = None

    def resolve(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the coordinates, in the zone of a ladder's ruleset. Raises `BadArgument`."""
        coordinates = self.resolve_among(connection, ladder, note)
        if coordinates.rules != self.rules:
            message = f"{quote(str(self.rules))} is no version of the ruleset of {ladder}"
            raise BadArgument(message, "coordinates")
        return coordinates

    def resolve_among(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the coordinates for one ladder or ruleset of several; a version applies only to its own ruleset.

        Raises `BadArgument`.
        """
        zone = date_zone(connection, ladder, load_times(connection))
        own = self.rules is not None and parse_name(ladder).ruleset_id == self.rules.partition("@")[0]
        return Coordinates(
            parse_as_of(self.as_of, zone),
            resolve_known_at(connection, self.known_at, zone, note),
            self.rules if own else None,
        )

    def lists(self, connection: Connection, note: Note, ladder: str | None = None) -> list[PublishedList]:
        """Return the matching published lists of one ladder or of all, as known at `known_at`."""
        times = load_times(connection)
        zone = None if ladder is None else date_zone(connection, ladder, times)
        until = resolve_known_at(connection, self.known_at, zone, note)
        latest = latest_lists(published_lists(connection, until, ladder))
        if self.as_of is None:
            return latest
        zones = {entry.ladder: date_zone(connection, entry.ladder, times) for entry in latest}
        return [entry for entry in latest if entry.as_of == parse_as_of(self.as_of, zones[entry.ladder])]


def parse_coordinates(text: str) -> CoordinateSpec:
    """Parse coordinates written as one text. Raises `BadArgument`."""
    parts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        known = PARTS if equals else WORDS
        hint = "" if name in known else did_you_mean(name, known)
        is_known = name in known or not (equals or hint)
        if not equals:
            name, value = ("published", "yes") if name == "published" else ("known-at", name)
        if not (is_known and value):
            raise BadArgument(f"{quote(text)}: {quote(part)} is no coordinate; write {FORM}{hint}", "coordinates")
        if name in parts:
            raise BadArgument(f"{quote(text)} says {name} twice", "coordinates")
        if value != "now":
            parts[name] = value
    if "published" in parts and "rules" in parts:
        raise BadArgument(f"{quote(text)}: a published list has its own version", "coordinates")
    return CoordinateSpec(text, "published" in parts, parts.get("as-of"), parts.get("known-at"), parts.get("rules"))


class UnknownLadder(BadArgument):
    """An unknown ruleset id or version, or a ladder name that does not fit its ruleset."""

    def __init__(self, message: str, argument: str = "ladder") -> None:
        super().__init__(message, argument)


def time_zone(connection: Connection, ladder: str) -> str:
    """Return the zone of a ladder's ruleset, which all its versions share. Raises `UnknownLadder`."""
    ruleset_id = parse_name(ladder).ruleset_id
    # include voided versions: an earlier position may need them, and all versions share the zone
    records = read_where(connection, until=None, subject=f"ruleset:{ruleset_id}")
    published = next(iter(read_events_of_type("ruleset.published", records)), None)
    if published is None:
        raise unknown_ruleset(ruleset_id, ruleset_ids(connection))
    return Ruleset.model_validate(published.data).time_zone


def date_zone(connection: Connection, ladder: str, times: Times) -> str:
    """Return the zone in which dates end: the ledger's home zone, otherwise that of the ladder's ruleset.

    Raises `UnknownLadder`.
    """
    own = time_zone(connection, ladder)
    return times.home or own


def ruleset_ids(connection: Connection) -> set[str]:
    """Return the ids of all rulesets ever published."""
    records = read_where(connection, until=None, type_name="ruleset.published")
    return {event.data["id"] for event in read_events_of_type("ruleset.published", records)}


def unknown_ruleset(ruleset_id: str, known: Collection[str], when: str = "") -> UnknownLadder:
    """Return the error for an unknown ruleset; the message lists the known ones and suggests a similar one."""
    names = f"there are {', '.join(sorted(known))}" if known else "none is published; see: ratings init"
    hint = did_you_mean(ruleset_id, known) or _suggest_shipped(ruleset_id)
    return UnknownLadder(f"no ruleset is called {quote(ruleset_id)}{when} ({names}){hint}")


def _suggest_shipped(ruleset_id: str) -> str:
    """Return the command that publishes a shipped system for the game in an id, such as elo-chess; or nothing."""
    from ratings_ledger.projections.rulesets.shipped_rulesets import systems  # few queries name an unknown ladder

    for system in sorted(systems(), key=len, reverse=True):
        if ruleset_id.startswith(f"{system}-"):
            game = ruleset_id.removeprefix(f"{system}-")
            return f"; to add it: ratings rules publish --shipped {system} --game {game}"
    return ""
