"""Implement `diff`: compare ladders, or published lists, at two sets of coordinates."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import CoordinatesType, format_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view, report_ignored_events
from ratings_ledger.cli.output.comparison import print_differences, print_differences_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.projections.diff.differences import compare_ladders
from ratings_ledger.projections.queries.coordinates import CoordinateSpec


@command()
@click.argument("a", type=CoordinatesType())
@click.argument("b", type=CoordinatesType())
@click.argument("ladders", nargs=-1, type=to_nfc)
@format_option
@click.pass_obj
def diff(db: str, a: CoordinateSpec, b: CoordinateSpec, ladders: tuple[str, ...], output_format: str) -> int:
    """Compare ladders at coordinates A and B. List the added, removed and moved rows, with points before and after.
    A row is moved if its points, rank or gold differ.

    \b
        ratings diff 217 now club-catan-elo
        ratings diff now rules=club-catan-elo@2
        ratings diff published now

    Coordinates are now, published, a position or time of the log, or parts separated by commas, such as
    as-of=2024-12-31,known-at=217,rules=club-catan-elo@2. A published list is compared with the standings of its
    ladder from games played up to the same time. Without LADDERS, all ladders that differ are listed. A ladder that
    cannot be replayed is reported; the exit code is then 1.
    """
    view = open_view(open_for_command(db))
    names = [*map(view.full_name, ladders)]
    with view.side_loader() as loader:
        differences = compare_ladders(loader, a, b, names)
        report_ignored_events(loader.left_out)
    return emit(differences, output_format, print_differences, print_differences_csv)
