"""Moments as people write them, as positions of the log and instants: a date, a time, or a position.

    2024-12-31            the end of that day in a zone, or its start where something begins
    2024-12-31T12:00Z     that instant
    217                   the position in the log, where what is known is asked for

What is odd about an answer, though not wrong, goes to a function `note`.
"""

from collections.abc import Callable

from sqlalchemy import Connection

from ledger import clock
from ledger.errors import BadArgument
from ledger.events.zones import beginning_of, end_of
from ledger.rejections import Refused
from ledger.store.log import head, position_known_at, recorded_at
from projections.queries.times import times_of

Note = Callable[[str], None]


def position_known(connection: Connection, known_at: str | int | None, time_zone: str | None, note: Note) -> int:
    """The log position that `known_at` means; a date means its end in a zone, by default the ledger's.

    Raises `BadArgument`.
    """
    newest = head(connection)
    if known_at is None:
        return newest.position
    if newest.position == 0:
        raise BadArgument("the ledger is empty: nothing is known at any time", "known_at")
    times, text = times_of(connection), str(known_at)
    if text.isascii() and text.isdigit():
        if len(text) > 18 or int(text) > newest.position:
            raise BadArgument(f"the log ends at position {newest.position}", "known_at")
        position = int(text)
    else:
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
            raise BadArgument(f"the log ends at position {newest}", "since")
        return max(0, int(since) - 1)
    instant = instant_since(since, times_of(connection).zone, ", nor a position of the log")
    return position_known_at(connection, instant - 1)


def instant_since(since: str, time_zone: str, nor: str = "") -> int:
    """The instant that `since` means in a zone; a date means its start. Raises `BadArgument`."""
    try:
        return beginning_of(since, time_zone)
    except Refused as problem:
        raise BadArgument(problem.message + nor, "since") from None


def instant_played(as_of: str | None, time_zone: str) -> int | None:
    """The instant that `as_of` means in a zone; a date means its end. Raises `BadArgument`."""
    return None if as_of is None else _end(as_of, time_zone, "as_of")


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
