"""Implement `ladders`, `lists` and `statistics`: list ladders and lists, and sum up a player's games and gold."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import axes_options, format_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.survey import (
    print_all_lists,
    print_ladders,
    print_ladders_or_lists_csv,
    print_statistics,
    print_statistics_csv,
)
from ratings_ledger.ledger.events.fields import to_nfc


@command(name="ladders")
@axes_options
@format_option
@click.pass_obj
def ladders_(db: str, as_of: str | None, known_at: str | None, rules: str | None, output_format: str) -> None:
    """List the ladders that have games or adjustments."""
    emit(
        open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules).ladders(),
        output_format,
        print_ladders,
        print_ladders_or_lists_csv,
    )


@command(name="lists")
@click.option("--period", metavar="YYYY[-MM]", help="Only lists of this month, or of this year and its months.")
@axes_options
@format_option
@click.pass_obj
def lists_(
    db: str, period: str | None, as_of: str | None, known_at: str | None, rules: str | None, output_format: str
) -> None:
    """Show the lists of months and years, with their states and sizes.

    The published lists of all ladders follow; of the axes, only --known-at affects them, and --period selects among
    them. To show one, run: ratings standings LADDER --as-published. Without --period, the ladders that are published
    every month come last, with the months that are due now.
    """
    emit(
        open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules).lists(period),
        output_format,
        print_all_lists,
        print_ladders_or_lists_csv,
    )


@command(name="statistics")
@click.argument("player", type=to_nfc)
@click.option("--game", metavar="NAME", help="Only games of this name, such as catan.")
@axes_options
@format_option
@click.pass_obj
def statistics_(
    db: str,
    player: str,
    game: str | None,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    output_format: str,
) -> int:
    """Show PLAYER's games, stars and gold over all lists.

    A list that cannot be replayed is reported and left out; the exit code is then 1.
    """
    statistics = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules).statistics(player, game)
    return emit(statistics, output_format, print_statistics, print_statistics_csv)
