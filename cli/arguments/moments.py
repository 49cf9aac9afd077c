"""Moments that people type, as instants: --at, --zone."""

import click

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.zones import read_instant
from ratings_ledger.ledger.events.zones import zone as check_zone
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import home_zone
from ratings_ledger.ledger.store.opening import Ledger


def zone_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a time zone as the value of an option or an argument."""
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
    """Return the instant that --at means, by default now; without an offset, in --zone or the home zone. Raises
    `Refused`.
    """
    if at is None:
        return clock.now()
    if zone is None:
        with ledger.reading() as connection:
            zone = home_zone(connection)
    return read_instant(at, zone)
