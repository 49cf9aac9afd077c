"""Parse and format coordinates on the three axes and points in time, and find the versions that `rules` selects.

    2024-12-31            the end of that day in a zone, or its start for an option that means a start
    2024-12, 2024         the end of that month or year, or its start; but options that take a position read 2024 as one
    2024-12-31T12:00Z     that instant
    217                   a position in the log, for options that limit which events were known

Instants are shown in the ledger's home zone, or in UTC without one: 2024-12-31T23:30:00Z is 2025-01-01 00:30 in a
ledger whose home zone is Europe/Berlin, in a column "played (Berlin)". Functions pass remarks on unusual but correct
answers to their argument `note`.

A comparison takes each set of coordinates as one text: `now`, `published`, `217`, `2024-12-31`, or parts separated by
commas, such as `as-of=2024-12-31,rules=club-catan-elo@2`. A position or a time without a name means `known-at`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from shlex import quote as quote_word
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument, RulesetUnusable
from ratings_ledger.ledger.events.canonical import EPOCH, format_instant, parse_record_instant
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time, read_from, read_until
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    find_position_known_at,
    has_games_before,
    head,
    home_zones,
    read_events_of_type,
    read_matching_records,
    read_recorded_at,
)
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists, select_latest_lists
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.ladder_names import LadderName, find_ladder_name_problem, parse_name
from ratings_ledger.projections.rulesets.versions import Version

Note = Callable[[str], None]


class Coordinates(NamedTuple):
    """Coordinates on the three axes: time of play, log position, and the version (ID@VERSION) that scores everything.

    `as_of` is in microseconds since 1970, None for no limit. `rules` is None for each ruleset's own timeline.
    `left_out` lists the positions of invalid events, which are ignored.
    """

    as_of: int | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] = ()

    @property
    def as_of_datetime(self) -> datetime | None:
        """Return `as_of` as a `datetime` in UTC."""
        return None if self.as_of is None else to_datetime(self.as_of)

    def axes(self) -> dict[str, Any]:
        """Return the three axes as JSON members."""
        as_of = None if self.as_of is None else format_instant(self.as_of)
        return {"as_of": as_of, "known_at": self.known_at, "rules": self.rules}

    def to_members(self) -> dict[str, Any]:
        """Return the coordinates as JSON members: the axes, and the ignored events, if any."""
        return {**self.axes(), **({"left_out": list(self.left_out)} if self.left_out else {})}

    def axes_with_datetimes(self) -> dict[str, datetime | int | str | None]:
        """Return the three axes by name, with `as_of` as a `datetime`."""
        return {"as_of": self.as_of_datetime, "known_at": self.known_at, "rules": self.rules}

    def __repr__(self) -> str:
        """Return the coordinates in one line, without axes that limit nothing."""
        limits = [f"known_at={self.known_at}"] + ([] if self.rules is None else [f"rules={self.rules!r}"])
        as_of = [] if self.as_of is None else [f"as_of='{format_instant(self.as_of)}'"]
        left_out = [f"left_out={self.left_out}"] if self.left_out else []
        return f"Coordinates({', '.join(as_of + limits + left_out)})"

    def with_left_out(self, facts: Facts) -> Coordinates:
        """Return the same coordinates with the positions of the invalid events that the facts ignore."""
        return self._replace(left_out=tuple(facts.left_out))


_NOON = re.compile(r"(\d{4}-\d\d-\d\d) 12:00:00(?:\.000000)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


class TimeFormat(NamedTuple):
    """The format of a ledger's instants, and the zone in which days end.

    `home` is the name of the home zone, None for UTC. A game with a date only is recorded at noon in the home zone at
    the time of recording. `noon_zones` lists the zones in which dates were recorded as noon; if it is empty, only the
    display zone is used. A game at noon in one of them is shown with its day only.

    The methods take an instant as microseconds since 1970, as recorded text, or as a `datetime`.
    """

    home: str | None = None
    noon_zones: tuple[str, ...] = ()

    @property
    def zone(self) -> str:
        """Return the name of the display zone."""
        return self.home or "UTC"

    def name_column(self, word: str) -> str:
        """Return the header of a column of times, with the short name of the zone: "played (Berlin)"."""
        return f"{word} ({self.zone.rpartition('/')[2].replace('_', ' ')})"

    def format_minute(self, instant: int | str | datetime) -> str:
        """Format an instant as day and minute, without the zone."""
        return self._format_local(instant)[:16]

    def format_second(self, instant: int | str | datetime) -> str:
        """Format an instant to the second, with the zone."""
        return f"{self._format_local(instant)[:19]} {self.zone}"

    def format_with_zone(self, instant: int | str | datetime) -> str:
        """Format an instant to the minute, with the zone."""
        return f"{self.format_minute(instant)} {self.zone}"

    def format_played(self, instant: int | str | datetime) -> str:
        """Format the time of a game as day and minute, or as the day only if no time was recorded.

        >>> noon = "2024-11-22T11:00:00.000000Z"
        >>> TimeFormat("Europe/Berlin").format_played(noon), TimeFormat().format_played(noon)
        ('2024-11-22', '2024-11-22 11:00')
        """
        return self.format_if_day_only(instant) or self.format_minute(instant)

    def format_played_with_zone(self, instant: int | str | datetime) -> str:
        """Format the time of a game like `format_played`, with the zone unless only the day is known."""
        return self.format_if_day_only(instant) or self.format_with_zone(instant)

    def format_if_day_only(self, instant: int | str | datetime) -> str | None:
        """Format the day of a game at noon, as games with a date only are recorded; return None for other games."""
        for zone in self.noon_zones or (self.zone,):
            if noon := _NOON.fullmatch(TimeFormat(None if zone == "UTC" else zone)._format_local(instant)):
                return noon[1]
        return None

    def _format_local(self, instant: int | str | datetime) -> str:
        """Format an instant in the display zone, with all recorded digits."""
        if isinstance(instant, datetime):
            instant = instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self.home is None:
            text = instant if isinstance(instant, str) else format_instant(instant)
        else:
            text = local_time(
                parse_record_instant(instant) if isinstance(instant, str) else instant, self.home
            ).isoformat()
        return text.replace("T", " ")


UTC_TIMES = TimeFormat()
# the noon zones of a ledger without a home zone, even if times are shown in another zone
UTC_NOON = ("UTC",)


def to_datetime(instant: int) -> datetime:
    """Return an instant in microseconds since 1970 as a `datetime` in UTC."""
    return EPOCH + timedelta(microseconds=instant)


def load_times(connection: Connection) -> TimeFormat:
    """Return the time format of a ledger, from its home zone at the head of the log."""
    zone_events = home_zones(connection)
    if not zone_events:
        return TimeFormat()
    names = [str(event.data["zone"]) for event in reversed(zone_events)]
    # dates recorded before the first home zone are noon in UTC
    if has_games_before(connection, zone_events[0].position or 0):
        names.append("UTC")
    return TimeFormat(names[0], (*dict.fromkeys(names),))


def resolve_known_at(connection: Connection, known_at: str | int | None, time_zone: str | None, note: Note) -> int:
    """Return the log position that `known_at` means; None means the last position.

    A date or month means its end in `time_zone`, by default in the home zone or, without one, in UTC. Raises
    `BadArgument`.
    """
    newest = head(connection)
    if known_at is None:
        return newest.position
    if newest.position == 0:
        raise BadArgument("the ledger is empty, so it has no positions; leave out --known-at", "known_at")
    text = str(known_at)
    if is_position := text.isascii() and text.isdigit():
        if len(text) > 18 or int(text) > newest.position:
            raise BadArgument(_describe_end_of_log(newest.position, text, f"{text}-12-31"), "known_at")
        if int(text):
            return int(text)
    times, position = load_times(connection), 0
    if not is_position:
        instant = _parse_end(text, time_zone or times.zone, "known_at", ", nor a position of the log")
        position = find_position_known_at(connection, instant)
        if instant > newest.recorded_at and _is_in_future(text, time_zone or times.zone):
            last = times.format_second(newest.recorded_at)
            note(f"the last event was recorded at {last}; the answer cannot include later events")
    if position == 0:
        first = times.format_second(read_recorded_at(connection, 1))
        message = f"the log begins at position 1, which was recorded at {first}; pass a later time or position"
        raise BadArgument(message, "known_at")
    return position


def resolve_since(connection: Connection, since: str | None) -> int:
    """Return the log position just before the first event from `since` on.

    A date or month means its start in the home zone or, without one, in UTC. Without `since`, the position is 0.
    Raises `BadArgument`.
    """
    if since is None:
        return 0
    newest = head(connection).position
    if since.isascii() and since.isdigit():
        if len(since) > 18 or int(since) > newest:
            raise BadArgument(_describe_end_of_log(newest, since, f"{since}-01-01"), "since")
        return max(0, int(since) - 1)
    instant = parse_since(since, load_times(connection).zone, ", nor a position of the log")
    return find_position_known_at(connection, instant - 1)


def _describe_end_of_log(end: int, text: str, day: str) -> str:
    """Return the message for a position after the end of the log; if the number looks like a year, suggest `day`."""
    is_like_year = len(text) == 4 and text[0] in "12"
    remedy = f"for a year, name a day, such as {day}" if is_like_year else "name an earlier position"
    return f"the log ends at position {end}, before {text:.20}; {remedy}"


def parse_since(since: str, time_zone: str, alternatives: str = "", argument: str = "since") -> int:
    """Return the instant that `since` means in a zone; a date, month or year means its start.

    Raises `BadArgument` for the argument named `argument`; the message ends with `alternatives`, the other accepted
    forms.
    """
    try:
        return read_from(since, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + alternatives, argument) from None


def parse_as_of(as_of: str | None, time_zone: str, argument: str = "as_of") -> int | None:
    """Return the instant that `as_of` means in a zone; a date, month or year means its end. Return None for no limit.

    Raises `BadArgument` for the argument named `argument`.
    """
    return None if as_of is None else _parse_end(as_of, time_zone, argument)


def format_end(instant: int, time_zone: str) -> str:
    """Format the end of a range: as a date if the instant is the end of that day in the zone, else in full."""
    day = local_time(instant, time_zone).date().isoformat()
    return day if read_until(day, time_zone) == instant else format_instant(instant)


def note_future(as_of: str | None, time_zone: str, note: Note) -> None:
    """Add a note if `as_of` is in the future; today's date does not count as future."""
    if as_of is not None and _parse_end(as_of, time_zone, "as_of") > clock.now() and _is_in_future(as_of, time_zone):
        note(f"{as_of} is in the future; more games may be played until then")


def _is_in_future(text: str, time_zone: str) -> bool:
    """Tell whether a date or time starts after the current time."""
    return read_from(text, time_zone) > clock.now()


def _parse_end(text: str, time_zone: str, argument: str, alternatives: str = "") -> int:
    """Return the instant of a date or time as an end. Raises `BadArgument`; `alternatives` are as in `parse_since`."""
    try:
        return read_until(text, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + alternatives, argument) from None


# the words that may stand alone among the parts of coordinates, and the names of the other parts
KEYWORDS, PART_NAMES = ("now", "published"), ("as-of", "known-at", "rules")
ACCEPTED_FORMS = "now, published, a position, a date, or parts such as as-of=DATE,known-at=POSITION,rules=ID@VERSION"


class CoordinateSpec(NamedTuple):
    """Coordinates as a user wrote them; `published` means a published list, by default the latest one."""

    text: str
    published: bool = False
    as_of: str | None = None
    known_at: str | int | None = None
    rules: str | None = None

    def resolve(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the coordinates for one ladder. Raises `BadArgument`.

        Dates end in the ledger's home zone or, without one, in the zone of the ladder's ruleset.
        """
        coordinates = self.resolve_among(connection, ladder, note)
        if coordinates.rules != self.rules:
            problem = f"{quote(str(self.rules))} is not a version of {ladder}'s ruleset"
            raise BadArgument(f"{problem}; to list the versions: ratings rules list", "coordinates")
        return coordinates

    def resolve_among(self, connection: Connection, ladder: str, note: Note) -> Coordinates:
        """Return the coordinates for one of several ladders or rulesets, without a version of another ruleset.

        Raises `BadArgument`.
        """
        zone = find_date_zone(connection, ladder, load_times(connection))
        has_version = self.rules is not None and parse_name(ladder).ruleset_id == self.rules.partition("@")[0]
        return Coordinates(
            as_of=parse_as_of(self.as_of, zone),
            known_at=resolve_known_at(connection, self.known_at, zone, note),
            rules=self.rules if has_version else None,
        )

    def load_lists(self, connection: Connection, note: Note, ladder: str | None = None) -> list[PublishedList]:
        """Return the latest published lists, or those for `as_of`, of one ladder or all, as known at `known_at`.

        Raises `BadArgument`.
        """
        times = load_times(connection)
        zone = None if ladder is None else find_date_zone(connection, ladder, times)
        known_at = resolve_known_at(connection, self.known_at, zone, note)
        latest = select_latest_lists(read_published_lists(connection, known_at, ladder))
        if self.as_of is None:
            return latest
        zones = {entry.ladder: find_date_zone(connection, entry.ladder, times) for entry in latest}
        return [entry for entry in latest if entry.as_of == parse_as_of(self.as_of, zones[entry.ladder])]


def parse_coordinates(text: str) -> CoordinateSpec:
    """Parse coordinates written as one text. Raises `BadArgument`."""
    parts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        accepted = PART_NAMES if equals else KEYWORDS
        hint = "" if name in accepted else did_you_mean(name, accepted)
        is_known = name in accepted or not (equals or hint)
        if not equals:
            name, value = ("published", "yes") if name == "published" else ("known-at", name)
        if not (is_known and value):
            raise BadArgument(
                f"{quote(text)}: {quote(part)} is not a coordinate; write {ACCEPTED_FORMS}{hint}", "coordinates"
            )
        if name in parts:
            raise BadArgument(f"{quote(text)} has two values for {name}; leave out one", "coordinates")
        if value != "now":
            parts[name] = value
    if "published" in parts and "rules" in parts:
        raise BadArgument(f"{quote(text)}: a published list has its own version; leave out rules=", "coordinates")
    return CoordinateSpec(
        text=text,
        published="published" in parts,
        as_of=parts.get("as-of"),
        known_at=parts.get("known-at"),
        rules=parts.get("rules"),
    )


class UnknownLadder(BadArgument):
    """An unknown ruleset id or version, or a ladder name that does not fit its ruleset."""

    def __init__(self, message: str, argument: str = "ladder") -> None:
        super().__init__(message, argument)


def find_ruleset_zone(connection: Connection, ladder: str) -> str:
    """Return the zone of a ladder's ruleset, which is the same for all versions. Raises `UnknownLadder`."""
    return read_first_version(connection, ladder)[1].time_zone


def read_first_version(connection: Connection, ladder: str) -> tuple[int, Ruleset]:
    """Return the first published version of a ladder's ruleset, and its log position. Raises `UnknownLadder`."""
    ruleset_id = parse_name(ladder).ruleset_id
    # include withdrawn versions: queries at an earlier position need them, and all versions share one zone
    records = read_matching_records(connection, until=None, subject=f"ruleset:{ruleset_id}")
    published = next(iter(read_events_of_type("ruleset.published", records)), None)
    if published is None:
        raise _build_unknown_ruleset_error(ruleset_id, list_ruleset_ids(connection))
    return published.position or 0, Ruleset.model_validate(published.data)


def find_date_zone(connection: Connection, ladder: str, times: TimeFormat) -> str:
    """Return the zone in which dates end: the ledger's home zone, or without one the zone of the ladder's ruleset.

    Raises `UnknownLadder`.
    """
    ruleset_zone = find_ruleset_zone(connection, ladder)  # raises even if there is a home zone
    return times.home or ruleset_zone


def list_ruleset_ids(connection: Connection) -> set[str]:
    """Return the ids of all rulesets ever published."""
    records = read_matching_records(connection, until=None, type_name="ruleset.published")
    return {event.data["id"] for event in read_events_of_type("ruleset.published", records)}


def _build_unknown_ruleset_error(
    ruleset_id: str, known_ids: Collection[str], position: int | None = None
) -> UnknownLadder:
    """Build the error for a ruleset that is not published up to a position; by default, in the whole log.

    The message lists the published ids and suggests a similar one.
    """
    names = f"published: {', '.join(sorted(known_ids))}" if known_ids else "none is published"
    hint = did_you_mean(ruleset_id, known_ids)
    if position is None:
        names += "" if known_ids else "; see: ratings init"
        hint = hint or _suggest_shipped(ruleset_id)
    where = "" if position is None else f" at position {position}"
    return UnknownLadder(f"no ruleset is called {quote(ruleset_id)}{where} ({names}){hint}")


def _suggest_shipped(ruleset_id: str) -> str:
    """Return a hint with the command that publishes a shipped system, if the id has the form SYSTEM-GAME; else ""."""
    from ratings_ledger.projections.rulesets.shipped_rulesets import list_systems  # needed only for unknown ladders

    for system in sorted(list_systems(), key=len, reverse=True):
        if ruleset_id.startswith(f"{system}-") and (game := ruleset_id.removeprefix(f"{system}-")):
            return f"; to add it: ratings rules publish --shipped {system} --game {quote_word(game)}"
    return ""


def find_versions(facts: Facts, ladder: str, rules: str | None = None) -> list[Version]:
    """Return the versions that may score a ladder's games.

    With `rules` (ID@VERSION), only that version is returned, in force from the start. Raises `UnknownLadder`,
    `RulesetUnusable`.
    """
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    versions = facts.rulesets.get(ruleset_id)
    if not versions:
        _refuse_withdrawn(facts, rules or ruleset_id)
        raise _build_unknown_ruleset_error(ruleset_id, facts.rulesets, facts.position)
    check_ladder_name(ladder, versions[0].ruleset)
    if rules is None:
        return versions
    if not (chosen := select_version(versions, rules)):
        _refuse_withdrawn(facts, rules)
        names = ", ".join(version.ruleset.name for version in versions)
        hint = did_you_mean(rules, [version.ruleset.name for version in versions])
        message = f"{quote(rules)} is not a published version for {ladder} (published: {names}){hint}"
        raise UnknownLadder(message, "rules")
    return chosen


def check_ladder_name(ladder: str, ruleset: Ruleset) -> None:
    """Raise `UnknownLadder` if a ladder's name does not fit the partition of its ruleset."""
    name = parse_name(ladder)
    if reason := find_ladder_name_problem(name, ruleset):
        raise UnknownLadder(f"{quote(ladder)} is not a ladder: {reason}{_suggest_as_of(name, ruleset)}")


def _suggest_as_of(name: LadderName, ruleset: Ruleset) -> str:
    """Return a hint about --as-of for a ladder name that contains a month or day; empty for other names."""
    if ruleset.partition.is_by_time:
        return ""
    for value in name.values:
        with suppress(ValueError):
            month = date.fromisoformat(f"{value}-01")
            value = f"{value}-{monthrange(month.year, month.month)[1]}"
        with suppress(ValueError):
            return f"; for a ladder as it stood on a day, add --as-of {date.fromisoformat(value)}"
    return ""


def check_version(facts: Facts, rules: str | None) -> None:
    """Check that a version (ID@VERSION) is published and can run here; None stands for the timelines and is valid.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    if rules is None:
        return
    ruleset_id, _, _ = rules.partition("@")
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    published = [version for versions in facts.rulesets.values() for version in versions]
    if not select_version(published, rules):
        _refuse_withdrawn(facts, rules)
        names = ", ".join(version.ruleset.name for version in facts.rulesets.get(ruleset_id) or published) or "none"
        hint = did_you_mean(rules, [version.ruleset.name for version in published])
        message = f"no version {quote(rules)} is published at position {facts.position} (published: {names}){hint}"
        raise UnknownLadder(message, "rules")


def _refuse_withdrawn(facts: Facts, name: str) -> None:
    """Raise `UnknownLadder` if a version (ID@VERSION) is withdrawn, or every version of a ruleset (ID).

    The message names a position where it counts.
    """
    recorded = facts.recorded
    positions = {
        version.position
        for version in recorded.versions
        if version.position in recorded.withdrawn
        and (version.ruleset.name == name or (version.ruleset.id == name and not facts.rulesets.get(name)))
    }
    if positions:
        position = max(void for void, root in recorded.roots.items() if root in positions)
        message = f"{name} was withdrawn at position {position}; to use it, add --known-at {position - 1}"
        raise UnknownLadder(message, "rules" if "@" in name else "ladder")


def select_version(versions: Iterable[Version], rules: str) -> list[Version]:
    """Return a list with the version of this name, in force from the start, or an empty list if it is not published."""
    return [version._replace(effective_from=-(2**63)) for version in versions if version.ruleset.name == rules][:1]
