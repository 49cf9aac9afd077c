"""Print what jobs did and found."""

import sys

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import format_rejection
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.stored.backup_checks import BackupCheck, NewBackup
from ratings_ledger.projections.stored.doctor import Check, Checks
from ratings_ledger.projections.stored.generations import Rollback
from ratings_ledger.projections.stored.status import Night
from ratings_ledger.projections.stored.verification import Verification


def print_verification(verification: Verification) -> None:
    """Print how much was checked, if all is well and stdout is a terminal; findings were printed one by one."""
    checked = verification.checked
    if not verification.findings and sys.stdout.isatty():
        render.print_hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )


def print_rolled_back(result: Rollback) -> None:
    """Print which generation is live again."""
    render.echo(
        f"generation {result.generation} of position {result.position} is live again; "
        f"generation {result.given_up} is given up"
    )


SHOWN_FINDINGS = 20


def print_checks_csv(checks: Checks) -> None:
    """Print one line per setting."""
    print_records_csv(Check, checks.rows)


def print_checks(checks: Checks) -> None:
    """Print the settings, and how to repair what is wrong."""
    rows = [(row.state, row.what, row.value, "; ".join(filter(None, (row.note, row.remedy)))) for row in checks.rows]
    render.print_table(("state", "what", "value", "note"), rows)


def print_backup_made(backup: NewBackup) -> None:
    """Print where the backup is, and its head."""
    render.echo(
        f"{render.count(backup.position, 'event')} in {backup.backup['file']}; "
        f"{render.count(backup.kept, 'backup')} kept, {len(backup.dropped):,} deleted"
    )
    render.echo(f"The head: {backup.backup['head']}")


def print_backup_checked(check: BackupCheck) -> None:
    """Print what each file holds and what is wrong; if nothing is, print the head."""
    for file in check.files:
        render.echo(f"{file.file}: {render.count(file.events, 'event')} up to position {file.position}")
    for finding in check.findings[:SHOWN_FINDINGS]:
        render.echo(format_rejection(finding) if isinstance(finding, Rejection) else render.plain(str(finding)))
    if len(check.findings) > SHOWN_FINDINGS:
        render.echo(f"... and {len(check.findings) - SHOWN_FINDINGS:,} more (--format json lists them)")
    if not check.findings:
        unchanged = "" if check.ladders is ABSENT else f"; {render.count(check.ladders, 'ladder')} as in the ledger"
        render.echo(f"It is whole{unchanged}. The head: {check.head}")


def print_night(night: Night) -> None:
    """Print one line with the date."""
    compared = f" (last compared without the cache: {night.compared_without_cache or 'never; see: ratings verify'})"
    lines = [
        f"{part.part} {'done' if part.exit_code == 0 else 'FAILED'}: {part.message}{compared * (part.part == 'verify')}"
        for part in night.parts
    ]
    ended = f"head {night.head or 'unknown'}, in {night.seconds:.1f} s"
    render.echo(render.plain(f"{night.started} {'; '.join([*lines, ended])}"))
