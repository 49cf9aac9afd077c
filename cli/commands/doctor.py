"""Implement `doctor`: check every setting that safety depends on."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import format_option
from ratings_ledger.cli.output.maintenance import print_checks, print_checks_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.stored.doctor import WRONG, run_checks


@command()
@format_option
@click.pass_obj
def doctor(db: str, output_format: str) -> int:
    """Check the settings on which safety depends. Exit 1 if something is wrong."""
    report = run_checks(open_ledger(db))
    emit(report, output_format, print_checks, print_checks_csv)
    return int(any(row.state == WRONG for row in report.rows))
