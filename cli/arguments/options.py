"""Define the options that several commands share, and read their values: formats, coordinates, times, heads."""

import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ratings_ledger.cli.arguments.command import OneOf
from ratings_ledger.cli.output import render
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.fields import read_by, read_slug
from ratings_ledger.ledger.events.zones import load_zone as check_zone
from ratings_ledger.ledger.events.zones import read_instant
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import home_zone
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.queries.coordinates import CoordinateSpec, parse_coordinates

if TYPE_CHECKING:
    from ratings_ledger.ledger.store.exports import ChainHead

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def format_options(*formats: str, meaning: str = "Output format.") -> Decorator:
    """Return a decorator that adds --csv-safe and --format, whose default is the first of `formats`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--format",
            "output_format",
            type=OneOf(formats),
            default=formats[0],
            show_default=True,
            help=meaning,
        )
        @click.option(
            "--csv-safe",
            is_flag=True,
            help="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
        )
        @wraps(command)
        def run_with_format(*arguments: Any, output_format: str, csv_safe: bool, **options: Any) -> Any:
            if csv_safe and output_format != "csv":
                raise click.UsageError("--csv-safe works only with --format csv; add it, or leave out --csv-safe")
            if csv_safe:
                render.enable_safe_csv()
            return command(*arguments, output_format=output_format, **options)

        return run_with_format

    return decorate


format_option = format_options("table", "json", "csv")


def read_duration(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return the seconds of a duration such as 26h. Raises `click.BadParameter`."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,6})([smhd])", value, re.ASCII)
    if match is None:
        raise click.BadParameter(
            f"{quote(value)} is not a duration; write a number of at most six digits with s, m, h or d, such as 26h"
        )
    return int(match.group(1)) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[match.group(2)]


# commands that record or store something do not print CSV
result_format = click.option(
    "--format",
    "output_format",
    type=OneOf(["table", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)


def _get_user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _read_by(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        name = read_by(value)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None
    # an old record may have such a name, but a new one must not
    if "\n" in name or "\t" in name:
        raise click.BadParameter(f"{quote(name)} contains a line break or a tab; leave it out")
    return name


by_option = click.option(
    "--by",
    metavar="NAME",
    callback=_read_by,
    default=_get_user_name,
    help="The author to record.  [default: the operating system's user]",
)


def read_elo_games(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the slugs of an option's games, each once. Raises `click.BadParameter` for a name that Elo cannot use."""
    # slow to import, and few commands read tables
    from ratings_ledger.ledger.intake.tables.table_games import make_slug

    try:
        games = dict.fromkeys(map(make_slug, values))
        for game in games:
            read_slug(f"elo-{game}")
    except Refused as problem:
        raise click.BadParameter(problem.message) from None
    return (*games,)


ignore_clock_option = click.option(
    "--ignore-clock", is_flag=True, help="Append even if the last event is dated ahead of this machine's clock."
)


def read_head(context: click.Context, parameter: click.Parameter, value: str | None) -> "ChainHead | None":
    """Return the head in the value of an option. Raises `click.BadParameter`."""
    from ratings_ledger.ledger.store.exports import parse_chain_head  # slow to import, and few commands take a head

    if value is None:
        return None
    if (head := parse_chain_head(value.strip())) is None:
        raise click.BadParameter(
            f"{quote(value)} is not a head; write POSITION:CHAINHASH, as `ratings status` prints it"
        )
    return head


def require_files_readable_twice(files: Sequence[str], command: str) -> None:
    """Raise `click.UsageError` if a file is named twice, or if `command`, which reads each file twice, cannot do so."""
    from ratings_ledger.ledger.intake.files import STDIN

    for number, name in enumerate(files):
        if name in files[:number]:
            raise click.UsageError(f"{name} is named twice; name each file once")
        if name == STDIN or not (Path(name).is_file() or Path(name).is_dir()):
            source = "standard input" if name == STDIN else name
            raise click.UsageError(f"{command} must read {source} twice; give a file instead of a pipe or device")


def read_new_path(value: str, suffixes: Collection[str], description: str) -> Path:
    """Return the path of a file to create. `description` names the accepted suffixes in the error message.

    Raises `click.BadParameter` for another suffix, `click.UsageError` for a file that exists.
    """
    path = Path(value)
    if path.suffix.lower() not in suffixes:
        raise click.BadParameter(f"{value!r} must end in {description}")
    if path.exists() or path.is_symlink():
        raise click.UsageError(f"{value} exists; nothing was written; delete it, or choose another FILE")
    return path


as_of_option = click.option(
    "--as-of", metavar="TIME", help="Only games played up to TIME; a date, month or year means its end."
)

known_at_option = click.option(
    "--known-at", metavar="TIME|POSITION", help="Only events recorded up to that time or position."
)

rules_option = click.option(
    "--rules", metavar="ID@VERSION", help="Score all games of the ruleset by this published version."
)


close_now_option = click.option("--close-now", is_flag=True, help="Treat open rating periods as if they closed now.")


def axes_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --as-of, --known-at and --rules to a command."""
    return as_of_option(known_at_option(rules_option(command)))


def read_zone_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the time zone in the value of an option or argument. Raises `click.BadParameter`."""
    if value is not None:
        try:
            check_zone(value)
        except Refused as problem:
            raise click.BadParameter(problem.message) from None
    return value


zone_option = click.option(
    "--zone",
    metavar="NAME",
    callback=read_zone_name,
    help="Time zone of times without an offset, such as Europe/Berlin.",
)


def read_instant_or_now(ledger: Ledger, at: str | None, zone: str | None) -> int:
    """Return the instant of --at, or now. A time without an offset is in --zone or the home zone. Raises `Refused`."""
    if at is None:
        return clock.now()
    # slow to import, and few commands take a time
    from ratings_ledger.ledger.intake.tables.dates import read_typed_time

    if zone is None:
        with ledger.reading() as connection:
            zone = home_zone(connection)
    return read_instant(read_typed_time(at), zone)


class CoordinatesType(click.ParamType[CoordinateSpec]):
    """The type of an argument with coordinates."""

    name = "coordinates"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> CoordinateSpec:
        """Parse coordinates. Raises `click.BadParameter`."""
        try:
            return value if isinstance(value, CoordinateSpec) else parse_coordinates(str(value))
        except BadArgument as problem:
            raise click.BadParameter(str(problem)) from None
