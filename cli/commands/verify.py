"""`verify`: what auditors run, and cron."""

import os
import sys

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.engines import refuse_unfit, rule_seconds_option, work_elsewhere, workers_options
from ratings_ledger.cli.arguments.options import head_value, result_format
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.upkeep import print_verification
from ratings_ledger.ledger.store.exports import Place
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.stored.verification import verify_all


@command()
@click.option(
    "--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value, help="A history that must be contained."
)
@click.option(
    "--since", metavar="POSITION:CHAINHASH", callback=head_value,
    help="Check only what was recorded and computed since this head, which must be contained.",
)  # fmt: skip
@rule_seconds_option
@workers_options
@result_format
@click.pass_obj
def verify(
    db: str, expected: Place | None, since: Place | None, rule_seconds: float, on: str | None, segments: str | None,
    form: str,
) -> int:  # fmt: skip
    """Recompute every hash from the records. Everything stored is compared with them. Silent when all is well.

    On a terminal it says how much it looked at. Exit 3 if something, such as a lock, kept it from looking.
    """
    tell = _tell if form == "table" else lambda finding: None
    ledger = open_ledger(db)
    refuse_unfit(ledger, on, segments)
    at = work_elsewhere(ledger, on, segments, rule_seconds)
    found = verify_all(ledger, expected, rule_seconds, tell, at, since)
    emit(found, form, print_verification)
    return int(bool(found.findings))


def _tell(finding: Finding) -> None:
    """Print a finding; even if nobody is reading any more, the exit code still tells."""
    try:
        render.echo(render.plain(str(finding)))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
