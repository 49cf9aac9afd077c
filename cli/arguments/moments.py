"""Moments as people type them, to positions in the log and instants: --as-of, --known-at, --since, --at, --zone."""

import click
from sqlalchemy import Connection

from cli.output import render
from cli.output.times import times_of
from ledger import clock
from ledger.events.zones import beginning_of, end_of, read_instant
from ledger.events.zones import zone as check_zone
from ledger.rejections import Refused
from ledger.store.log import head, home_zone, position_known_at, recorded_at
from ledger.store.opening import Ledger


def known_position(connection: Connection, known_at: str | None, time_zone: str | None = None) -> int:
    """The log position that --known-at means; a date means its end in a zone, the ledger's by default.

    Raises `click.BadParameter`.
    """
    newest = head(connection)
    if known_at is None:
        return newest.position
    if newest.position == 0:
        raise _wrong("--known-at", "the ledger is empty: nothing is known at any time")
    times = times_of(connection)
    if known_at.isascii() and known_at.isdigit():
        if len(known_at) > 18 or int(known_at) > newest.position:
            raise _wrong("--known-at", f"the log ends at position {newest.position}")
        position = int(known_at)
    else:
        instant = _end("--known-at", known_at, time_zone or times.zone)
        position = position_known_at(connection, instant)
        if instant > newest.recorded_at and _lies_ahead(known_at, time_zone or times.zone):
            last = times.second(newest.recorded_at)
            render.note(f"note: the last event was recorded at {last}; nothing is known from after it")
    if position == 0:
        first = times.second(recorded_at(connection, 1))
        raise _wrong("--known-at", f"nothing is known from before position 1, which was recorded at {first}")
    return position


def since_position(connection: Connection, since: str | None) -> int:
    """The log position after which the events meant by --since begin; a date means its start in the ledger's zone.

    Raises `click.BadParameter`.
    """
    if since is None:
        return 0
    newest = head(connection).position
    if since.isascii() and since.isdigit():
        if len(since) > 18 or int(since) > newest:
            raise _wrong("--since", f"the log ends at position {newest}")
        return max(0, int(since) - 1)
    instant = since_instant(since, times_of(connection).zone, ", nor a position of the log")
    return position_known_at(connection, instant - 1)


def since_instant(since: str, time_zone: str, nor: str = "") -> int:
    """The instant that --since means in a zone; a date means its start. Raises `click.BadParameter`."""
    try:
        return beginning_of(since, time_zone)
    except Refused as problem:
        raise _wrong("--since", problem.message + nor) from None


def played_instant(as_of: str | None, time_zone: str) -> int | None:
    """The instant that --as-of means in a zone. Raises `click.BadParameter`."""
    return None if as_of is None else _end("--as-of", as_of, time_zone)


def note_future(as_of: str | None, time_zone: str) -> None:
    """Note that --as-of is in the future; today's date is not."""
    if as_of is not None and _end("--as-of", as_of, time_zone) > clock.now() and _lies_ahead(as_of, time_zone):
        render.note(f"note: --as-of {as_of} lies in the future; more may be played until then")


def _lies_ahead(text: str, time_zone: str) -> bool:
    return beginning_of(text, time_zone) > clock.now()


def _end(option: str, text: str, time_zone: str) -> int:
    try:
        return end_of(text, time_zone)
    except Refused as problem:
        nor = ", nor a position of the log" if option == "--known-at" else ""
        raise _wrong(option, problem.message + nor) from None


def _wrong(option: str, message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint=option)


def zone_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A time zone as the value of an option or an argument."""
    if value is not None:
        try:
            check_zone(value)
        except Refused as problem:
            raise click.BadParameter(problem.message) from None
    return value


zone_option = click.option(
    "--zone", metavar="NAME", callback=zone_name, help="Time zone of times without an offset, such as Europe/Berlin."
)


def instant_or_now(ledger: Ledger, at: str | None, zone: str | None) -> int:
    """The instant that --at means, by default now; without an offset, in --zone or the home zone. Raises `Refused`."""
    if at is None:
        return clock.now()
    if zone is None:
        with ledger.reading() as connection:
            zone = home_zone(connection)
    return read_instant(at, zone)
