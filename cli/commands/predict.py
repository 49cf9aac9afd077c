"""Implement `predict`: compute the probability of each result of a future game, and the points at stake."""

import re
from collections.abc import Sequence
from functools import partial

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import axes_options, close_now_option, format_option
from ratings_ledger.cli.arguments.tables import check_partner_separators, find_unsplittable_ids, partners_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output.prediction import print_prediction, print_prediction_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.tables.partners import split_partners
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.opening import Ledger


def read_numbers(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Parse the values of --set: numbers of the game by name. Raises `click.BadParameter`."""
    numbers: dict[str, int] = {}
    for value in values:
        name, _, number = value.removeprefix("numbers.").partition("=")
        if not value.startswith("numbers.") or not re.fullmatch(r"-?\d{1,16}", number, re.ASCII):
            raise click.BadParameter(
                f"{quote(value)} is not numbers.NAME=V, where V is a whole number of at most 16 digits"
            )
        if name in numbers:
            raise click.BadParameter(f"numbers.{name} is set twice; set it once")
        numbers[name] = int(number)
    return numbers


@command(name="predict")
@click.argument("ladder", type=to_nfc)
@click.argument("sides", metavar="SIDE SIDE...", nargs=-1, required=True, type=to_nfc)
@click.option("--home", metavar="SIDE", type=to_nfc, help="The side that plays at home.")
@click.option(
    "--set",
    "numbers",
    metavar="numbers.N=V",
    multiple=True,
    callback=read_numbers,
    help="A custom number of the game that the rule reads; repeatable.",
)
@partners_option
@axes_options
@close_now_option
@format_option
@click.pass_obj
def predict(
    db: str,
    ladder: str,
    sides: tuple[str, ...],
    home: str | None,
    numbers: dict[str, int],
    partners: tuple[str, ...],
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    close_now: bool,
    output_format: str,
) -> None:
    """Predict a game between SIDEs on LADDER: chances and stakes. Nothing is recorded.

    \b
        ratings predict elo-chess anna ben
        ratings predict weng-lin-chess --partners + anna+ben cleo+dora

    Players have the points that they would have in a game on the day of the ladder's last game, or of --as-of.
    """
    ledger = open_for_command(db)
    split_side = partial(_split_side, partners=partners, unsplittable_ids=_read_unsplittable_ids(ledger, partners))
    teams, home_team = [*map(split_side, sides)], None if home is None else split_side(home)
    view = open_view(ledger, as_of=as_of, known_at=known_at, rules=rules, close_now=close_now)
    emit(
        view.predict(ladder, teams, home=home_team, numbers=numbers),
        output_format,
        print_prediction,
        print_prediction_csv,
    )


def _read_unsplittable_ids(ledger: Ledger, partners: tuple[str, ...]) -> frozenset[str]:
    """Return the known ids that are not split at `partners`. Raises `click.UsageError` for an unusable separator."""
    check_partner_separators(partners)
    if not partners:
        return frozenset()  # skip the slow read of all ids
    with ledger.reading() as connection:
        return find_unsplittable_ids(connection, partners)


def _split_side(side: str, partners: tuple[str, ...], unsplittable_ids: frozenset[str]) -> list[str]:
    """Return the players of a side. Raises `click.UsageError` if one of them has no name."""
    try:
        return split_partners(side, partners, unsplittable_ids)
    except Refused as problem:
        raise click.UsageError(problem.message) from None
