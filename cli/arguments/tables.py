"""How tables are to be read: the options that say what a table does not say itself."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from cli.arguments.command import OneOf
from cli.arguments.moments import zone_option
from ledger.intake.columns import GAME_COLUMNS, TableOptions
from ledger.intake.dates import ORDERS
from ledger.intake.layouts import LAYOUTS
from ledger.rejections import did_you_mean


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, other = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name.strip()] = other.strip()
    return found


def _fixed(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = _pairs(context, parameter, values)
    for name in found:
        if name not in GAME_COLUMNS:
            hint = did_you_mean(name, GAME_COLUMNS)
            raise click.BadParameter(f"{name!r} is none of {', '.join(GAME_COLUMNS)}{hint}")
    return found


def _encoding(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            "".encode(value)
        except (LookupError, UnicodeError, ValueError):
            raise click.BadParameter(f"{value!r} is no encoding, such as cp1252, cp1250 or utf-16") from None
    return value


OPTIONS = (
    click.option("--map", "renamed", metavar="THEIRS=OURS", multiple=True, callback=_pairs,
                 help="Rename a column; THEIRS= drops it."),
    click.option("--set", "fixed", metavar="MEMBER=VALUE", multiple=True, callback=_fixed,
                 help="The same value for all rows of a table."),
    click.option("--sheet", metavar="NAME", help="Which sheet of a spreadsheet."),
    click.option("--layout", type=OneOf(LAYOUTS), help="What a table has in its rows and columns."),
    click.option("--dates", type=OneOf(ORDERS), help="The order of day, month and year."),
    click.option("--ties", "tie", metavar="TEXT", help="What joins tied players in a cell besides =, such as /."),
    click.option("--encoding", metavar="NAME", callback=_encoding, help="Of a CSV file that is not UTF-8."),
    zone_option,
    click.option("--aliases", "alias_file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                 help="Who is meant by names in a table: lines such as ana = anna."),
)  # fmt: skip


def reading_tables(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of tables; they reach it as `tables`."""

    @wraps(command)
    def wrapped(*args: Any, **rest: Any) -> int:
        names = [name for name in TableOptions._fields if name in rest]
        return command(*args, tables=TableOptions(**{name: rest.pop(name) for name in names}), **rest)

    decorated: Callable[..., int] = wrapped
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated
