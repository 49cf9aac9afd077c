"""Options that several commands share, and what they resolve to."""

import getpass
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from ledger.events import read_by
from ledger.rejections import Refused
from ledger.store import head, position_known_at
from ledger.zones import end_of, read_instant

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Output format.",
)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _by(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return read_by(value)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None


by_option = click.option(
    "--by", metavar="NAME", callback=_by, default=_user, help="Who records it.  [default: the operating system's user]"
)

ignore_clock_option = click.option(
    "--ignore-clock", is_flag=True, help="Append even if the last event is dated after this machine's time."
)


def composed(text: str) -> str:
    """A player, game or ladder as an argument, in the composed form (NFC) in which ids are recorded."""
    return unicodedata.normalize("NFC", text)


def axes(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --as-of, --known-at and --rules."""
    for option in (
        click.option("--rules", metavar="ID@VERSION", help="Score everything by this published version."),
        click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then."),
        click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end."),
    ):
        command = option(command)
    return command


class Coordinates(NamedTuple):
    """Where on the axes a result was computed."""

    as_of: int | None
    known_at: int


def known_position(connection: Connection, known_at: str | None, zone: str = "UTC") -> int:
    """The log position that --known-at means; a date means its end. Raises `click.BadParameter`, `Refused`."""
    newest = head(connection).position
    if known_at is None:
        return newest
    if known_at.isascii() and known_at.isdigit():
        if len(known_at) > 18 or int(known_at) > newest:
            raise click.BadParameter(f"the log ends at position {newest}", param_hint="--known-at")
        return int(known_at)
    return position_known_at(connection, end_of(known_at, zone))


def played_instant(as_of: str | None, time_zone: str) -> int | None:
    """The instant that --as-of means in a ruleset's zone. Raises `Refused`."""
    return None if as_of is None else end_of(as_of, time_zone)


def instant_or_now(at: str | None, zone: str | None, now: int) -> int:
    """The instant that --at means, now by default. Raises `Refused`."""
    return now if at is None else read_instant(at, zone)
