"""Implement `verify`: recompute every hash, for auditors and cron."""

import os
import sys

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.engines import (
    check_workers,
    choose_work_at,
    rule_seconds_option,
    workers_options,
)
from ratings_ledger.cli.arguments.options import read_head, result_format
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.maintenance import print_verification
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.store.exports import ChainHead
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.stored.verification import verify_all


@command()
@click.option(
    "--head", "expected", metavar="POSITION:CHAINHASH", callback=read_head, help="A head that the log must contain."
)
@click.option(
    "--since",
    metavar="POSITION:CHAINHASH",
    callback=read_head,
    help="Check only data recorded or computed after this head, which the log must contain.",
)
@rule_seconds_option
@workers_options
@result_format
@click.pass_obj
def verify(
    db: str,
    expected: ChainHead | None,
    since: ChainHead | None,
    rule_seconds: float,
    on: str | None,
    segments: str | None,
    output_format: str,
) -> int:
    """Compare all hashes and stored data with the records.

    If all is well, print only a summary, and only at a terminal. Exit 1 if there are findings, and 3 if the check could
    not run, for example because of a lock.
    """
    report_finding = _print_finding if output_format == "table" else lambda finding: None
    ledger = open_ledger(db)
    check_workers(ledger, on, segments)
    work_at = choose_work_at(ledger, on, segments, rule_seconds)
    verification = verify_all(
        ledger, expected, rule_seconds=rule_seconds, on_finding=report_finding, work_at=work_at, since=since
    )
    emit(verification, output_format, print_verification)
    return int(bool(verification.findings))


def _print_finding(finding: Finding) -> None:
    """Print a finding. If standard output is closed, only the exit code reports it."""
    try:
        render.echo(render.plain(str(finding)))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
