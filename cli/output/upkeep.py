"""Print what jobs did and found."""

import sys

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import format_rejection
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.stored.doctor import Check, Checks
from ratings_ledger.projections.stored.generations import RolledBack
from ratings_ledger.projections.stored.rehearsal import BackupChecked, BackupMade
from ratings_ledger.projections.stored.status import Night
from ratings_ledger.projections.stored.verification import Verification


def print_verification(found: Verification) -> None:
    """Print how much was checked, if all is well and stdout is a terminal; findings were printed one by one."""
    checked = found.checked
    if not found.findings and sys.stdout.isatty():
        render.print_hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )


def print_rolled_back(found: RolledBack) -> None:
    """Print which generation is live again."""
    render.echo(
        f"generation {found.generation} of position {found.position} is live again; "
        f"generation {found.given_up} is given up"
    )


SHOWN_FINDINGS = 20


def print_checks_csv(found: Checks) -> None:
    """Print one line per setting."""
    print_records_csv(Check, found.rows)


def print_checks(found: Checks) -> None:
    """Print the settings, and how to repair what is wrong."""
    rows = [(row.state, row.what, row.value, "; ".join(filter(None, (row.note, row.remedy)))) for row in found.rows]
    render.print_table(("state", "what", "value", "note"), rows)


def print_backup_made(found: BackupMade) -> None:
    """Print where the backup is, and its head."""
    render.echo(
        f"{render.count(found.position, 'event')} in {found.backup['file']}; "
        f"{render.count(found.kept, 'backup')} kept, {len(found.dropped):,} dropped"
    )
    render.echo(f"The head: {found.backup['head']}")


def print_backup_checked(found: BackupChecked) -> None:
    """Print what each file holds and what is wrong; if nothing is, print the head."""
    for file in found.files:
        render.echo(f"{file.file}: {render.count(file.events, 'event')} up to position {file.position}")
    for finding in found.findings[:SHOWN_FINDINGS]:
        render.echo(format_rejection(finding) if isinstance(finding, Rejection) else render.plain(str(finding)))
    if len(found.findings) > SHOWN_FINDINGS:
        render.echo(f"... and {len(found.findings) - SHOWN_FINDINGS:,} more (--format json lists them)")
    if not found.findings:
        unchanged = "" if found.ladders is ABSENT else f"; {render.count(found.ladders, 'ladder')} as in the ledger"
        render.echo(f"It is whole{unchanged}. The head: {found.head}")


def print_night(found: Night) -> None:
    """Print one line with the date."""
    compared = f" (last compared without the cache: {found.compared_without_cache or 'never; see: ratings verify'})"
    lines = [
        f"{part.part} {'done' if part.exit_code == 0 else 'FAILED'}: {part.message}{compared * (part.part == 'verify')}"
        for part in found.parts
    ]
    ended = f"head {found.head or 'unknown'}, in {found.seconds:.1f} s"
    render.echo(render.plain(f"{found.started} {'; '.join([*lines, ended])}"))
