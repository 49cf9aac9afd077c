"""Print the results of maintenance jobs: verification, backups, rollbacks, checks and nightly runs."""

import sys

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import format_rejection
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.stored.backup_comparison import BackupCheck, NewBackup
from ratings_ledger.projections.stored.doctor import Check, Checks
from ratings_ledger.projections.stored.generations import Rollback
from ratings_ledger.projections.stored.status import NightlyResult
from ratings_ledger.projections.stored.verification import Verification


def print_verification(verification: Verification) -> None:
    """Print the numbers of checked objects if nothing was found and stdout is a terminal."""
    checked = verification.checked
    if not verification.findings and sys.stdout.isatty():
        render.print_hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )


def print_rollback(result: Rollback) -> None:
    """Print the generation that is live again."""
    render.echo(
        f"generation {result.generation}, built at position {result.position}, is live again; "
        f"generation {result.given_up} is deleted"
    )


FINDINGS_SHOWN_MAX = 20


def print_checks_csv(checks: Checks) -> None:
    """Print one line per check."""
    print_records_csv(Check, checks.rows)


def print_checks(checks: Checks) -> None:
    """Print the checks, and the remedies for what is wrong or absent."""
    rows = [(row.state, row.what, row.value, "; ".join(filter(None, (row.note, row.remedy)))) for row in checks.rows]
    render.print_table(("state", "what", "value", "note"), rows)


def print_backup_made(backup: NewBackup) -> None:
    """Print the file of the backup, and the head."""
    render.echo(
        f"{render.count(backup.position, 'event')} in {backup.backup['file']}; "
        f"{render.count(backup.kept, 'backup')} kept, {len(backup.dropped):,} deleted"
    )
    render.echo(f"The head: {backup.backup['head']}")


def print_backup_checked(check: BackupCheck) -> None:
    """Print the contents of each file and the findings; without findings, the head."""
    for file in check.files:
        render.echo(f"{file.file}: {render.count(file.events, 'event')} up to position {file.position}")
    for finding in check.findings[:FINDINGS_SHOWN_MAX]:
        render.echo(format_rejection(finding) if isinstance(finding, Rejection) else render.plain(str(finding)))
    if len(check.findings) > FINDINGS_SHOWN_MAX:
        render.echo(f"... and {len(check.findings) - FINDINGS_SHOWN_MAX:,} more (--format json lists them)")
    if not check.findings:
        unchanged = "" if check.ladders is ABSENT else f"; {render.count(check.ladders, 'ladder')} as in the ledger"
        render.echo(f"The backup is complete{unchanged}. The head: {check.head}")


def print_nightly_run(night: NightlyResult) -> None:
    """Print the result of a nightly run as one line, which begins with the time."""
    comparison_note = (
        f" (last compared without the cache: {night.compared_without_cache or 'never; see: ratings verify'})"
    )
    lines = [
        f"{part.part} {'FAILED' if part.exit_code else 'done'}: {part.message}"
        + (comparison_note if part.part == "verify" else "")
        for part in night.parts
    ]
    summary = f"head {night.head or 'unknown'}, in {night.seconds:.1f} s"
    render.echo(render.plain(f"{night.started} {'; '.join([*lines, summary])}"))
