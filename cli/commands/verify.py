"""`verify`: what auditors run, and cron."""

import os
import sys

import click

from cli.arguments.command import command
from cli.arguments.options import head_value
from cli.arguments.rule_seconds import rule_seconds_option
from cli.output import render
from ledger.store.opening import open_ledger
from ledger.verification import Finding
from projections.stored.verification import verify_all


@command()
@click.option(
    "--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value, help="A history that must be contained."
)
@rule_seconds_option
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_obj
def verify(db: str, expected: tuple[int, bytes] | None, rule_seconds: float, form: str) -> int:
    """Recompute every hash from the records. Everything stored is compared with them. Silent when all is well.

    On a terminal it says how much it looked at. Exit 3 if something, such as a lock, kept it from looking.
    """
    findings: list[Finding] = []

    def found(finding: Finding) -> None:
        findings.append(finding)
        if form == "table":
            _tell(render.plain(str(finding)))

    checked = verify_all(open_ledger(db), expected, rule_seconds, found)
    if form == "json":
        render.print_json({"findings": [finding._asdict() for finding in findings], "checked": checked._asdict()})
    elif not findings and sys.stdout.isatty():
        render.hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )
    return int(bool(findings))


def _tell(line: str) -> None:
    """Print a finding; even if nobody is reading any more, the exit code still tells."""
    try:
        render.echo(line)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
