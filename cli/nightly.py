"""`rebuild` and `verify`: what cron runs, and what an auditor runs."""

import re
import sys
import time

import click

from cli import render
from ledger import clock
from ledger.errors import RulesetUnusable, StoreDamaged
from ledger.integrity import Finding, verify_log
from ledger.store import open_ledger
from projections.generations import Rebuilt, rebuild
from projections.integrity import verify_clocks, verify_standings
from projections.publishing import verify_published


@click.command(name="rebuild")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_obj
def rebuild_(db: str, form: str) -> int:
    """Replay every ladder into stored standings. They are promoted in one step. Exit 1 if a rule failed."""
    started = time.monotonic()
    done = rebuild(open_ledger(db), clock.now)
    if form == "json":
        render.print_json(
            {**done._asdict(), "chain_hash": done.chain_hash.hex(), "failures": [f._asdict() for f in done.failures]}
        )
    else:
        click.echo(_summary(done, time.monotonic() - started))
    for failure in done.failures:
        render.note(
            f"ratings: {failure.ladder}: the rule failed at position {failure.position}: {failure.message}; "
            "its standings of before keep serving"
        )
    return int(bool(done.failures))


def _summary(done: Rebuilt, seconds: float) -> str:
    return (
        f"generation {done.generation}: {render.count(done.ladders, 'ladder')}, {render.count(done.rows, 'standing')} "
        f"from {render.count(done.games, 'game')} "
        f"at position {done.position:,}, in {seconds:.1f} s"
    )


def _head(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, bytes] | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,18}):([0-9a-fA-F]{64})", value, re.ASCII)
    if match is None:
        raise click.BadParameter("write POSITION:CHAINHASH as `ratings status` prints it")
    return int(match.group(1)), bytes.fromhex(match.group(2))


@click.command()
@click.option(
    "--head", "expected", metavar="POSITION:CHAINHASH", callback=_head, help="A history that must be contained."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_obj
def verify(db: str, expected: tuple[int, bytes] | None, form: str) -> int:
    """Recompute every hash from the records. Everything stored is compared with them. Silent when all is well."""
    ledger = open_ledger(db)
    findings: list[Finding] = []
    with ledger.reading() as connection:
        for finding in verify_log(ledger, connection, expected):
            findings.append(finding)
            if form == "table":
                click.echo(_line(finding))
                sys.stdout.flush()
        if not findings:
            try:
                projected = [
                    *verify_clocks(connection), *verify_published(connection), *verify_standings(connection)
                ]  # fmt: skip
            except (StoreDamaged, RulesetUnusable) as problem:
                projected = [Finding("rule", None, f"the log cannot be replayed: {problem}")]
            for finding in projected:
                findings.append(finding)
                if form == "table":
                    click.echo(_line(finding))
    if form == "json":
        render.print_json({"findings": [finding._asdict() for finding in findings]})
    return int(bool(findings))


def _line(finding: Finding) -> str:
    where = "" if finding.position is None else f"position {finding.position}: "
    return render.plain(f"{finding.code}: {where}{finding.message}")
