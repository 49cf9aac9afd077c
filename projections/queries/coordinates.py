"""Coordinates: where on the axes an answer is, how people write the moments that they mean, and how they see them.

    2024-12-31            the end of that day in a zone, or its start where something begins
    2024-12-31T12:00Z     that instant
    217                   the position in the log, where what is known is asked for

Instants are shown in the ledger's home zone, or in UTC where it has none: 2024-12-31T23:30:00Z is 2025-01-01 00:30 in a
ledger at home in Europe/Berlin, in a column "played (Berlin)". What is odd about an answer, though not wrong, goes to a
function `note`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import EPOCH, format_instant, record_instant
from ratings_ledger.ledger.events.zones import beginning_of, end_of, local_time
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import head, home_zone, position_known_at, recorded_at
from ratings_ledger.projections.facts.columns import Facts

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
        """The place on the three axes as JSON states it."""
        as_of = None if self.as_of is None else format_instant(self.as_of)
        return {"as_of": as_of, "known_at": self.known_at, "rules": self.rules}

    def stated(self) -> dict[str, Any]:
        """The coordinates as JSON states them: the axes, and what is left out, if anything."""
        return {**self.axes(), **({"left_out": list(self.left_out)} if self.left_out else {})}

    def of(self, facts: Facts) -> Coordinates:
        """The same, with what these facts leave out."""
        return self._replace(left_out=tuple(facts.left_out))


class Times(NamedTuple):
    """How a ledger's instants are shown, and in which zone requested days end. `home` is a zone's name."""

    home: str | None = None

    @property
    def zone(self) -> str:
        """The name of the zone that times are shown in."""
        return self.home or "UTC"

    def column(self, word: str) -> str:
        """The header of a column of times, with a short form of their zone."""
        return f"{word} ({self.zone.rpartition('/')[2].replace('_', ' ')})"

    def minute(self, instant: int | str | datetime) -> str:
        """An instant, in microseconds, as records have it or as a time: the day and the minute."""
        return self._local(instant)[:16]

    def second(self, instant: int | str | datetime) -> str:
        """The same to the second, with the zone."""
        return f"{self._local(instant)[:19]} {self.zone}"

    def stated(self, instant: int | str | datetime) -> str:
        """The same to the minute, with the zone."""
        return f"{self.minute(instant)} {self.zone}"

    def _local(self, instant: int | str | datetime) -> str:
        if isinstance(instant, datetime):
            instant = instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self.home is None:
            text = instant if isinstance(instant, str) else format_instant(instant)
        else:
            text = local_time(record_instant(instant) if isinstance(instant, str) else instant, self.home).isoformat()
        return text.replace("T", " ")


UTC_TIMES = Times()


def moment(instant: int) -> datetime:
    """An instant, in microseconds since 1970, as a time in UTC."""
    return EPOCH + timedelta(microseconds=instant)


def times_of(connection: Connection) -> Times:
    """The times of a ledger, in its home zone at the head of the log."""
    return Times(home_zone(connection))


def position_known(connection: Connection, known_at: str | int | None, time_zone: str | None, note: Note) -> int:
    """The log position that `known_at` means; a date means its end in a zone, by default the ledger's.

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
    """The log position after which the events that `since` means begin; a date means its start in the ledger's zone.

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
    """What is wrong with a number that is no position of a log that ends at `end`; it may be meant as a year."""
    year = f"; for a year, name a day, such as {text}-12-31" if len(text) == 4 and text[0] in "12" else ""
    return f"the log ends at position {end}, before {text:.20}{year}"


def instant_since(since: str, time_zone: str, nor: str = "", argument: str = "since") -> int:
    """The instant that `since`, or another argument, means in a zone; a date means its start. Raises `BadArgument`."""
    try:
        return beginning_of(since, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, argument) from None


def instant_played(as_of: str | None, time_zone: str, argument: str = "as_of") -> int | None:
    """The instant that `as_of`, or another argument, means in a zone; a date means its end. Raises `BadArgument`."""
    return None if as_of is None else _end(as_of, time_zone, argument)


def note_ahead(as_of: str | None, time_zone: str, note: Note) -> None:
    """Note that `as_of` is in the future; today's date is not."""
    if as_of is not None and _end(as_of, time_zone, "as_of") > clock.now() and _lies_ahead(as_of, time_zone):
        note(f"{as_of} lies in the future; more may be played until then")


def _lies_ahead(text: str, time_zone: str) -> bool:
    return beginning_of(text, time_zone) > clock.now()


def _end(text: str, time_zone: str, argument: str, nor: str = "") -> int:
    try:
        return end_of(text, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, argument) from None
