"""How it looks what jobs did and found."""

import sys

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import rejection_line
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.stored.doctor import Check, Checks
from ratings_ledger.projections.stored.generations import RolledBack
from ratings_ledger.projections.stored.rehearsal import BackupChecked, BackupMade
from ratings_ledger.projections.stored.status import Night
from ratings_ledger.projections.stored.verification import Verification


def print_verification(found: Verification) -> None:
    """How much was looked at, if all is well and somebody is looking; findings were told one by one."""
    checked = found.checked
    if not found.findings and sys.stdout.isatty():
        render.hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )


def print_rolled_back(found: RolledBack) -> None:
    """Which generation is live again."""
    render.echo(f"generation {found.generation} of position {found.position} is live again; "
               f"generation {found.given_up} is given up")  # fmt: skip


SHOWN_FINDINGS = 20


def print_checks_csv(found: Checks) -> None:
    """One line per setting."""
    print_records_csv(Check, found.rows)


def print_checks(found: Checks) -> None:
    """What was found, and how to mend what is wrong."""
    told = [(row.state, row.what, row.value, "; ".join(filter(None, (row.note, row.remedy)))) for row in found.rows]
    render.print_table(("state", "what", "value", "note"), told)


def print_backup_made(found: BackupMade) -> None:
    """Where it is, and its head."""
    render.echo(f"{render.count(found.position, 'event')} in {found.backup['file']}; "
               f"{render.count(found.kept, 'backup')} kept, {len(found.dropped):,} dropped")  # fmt: skip
    render.echo(f"The head: {found.backup['head']}")


def print_backup_checked(found: BackupChecked) -> None:
    """What each file holds, what is wrong, and if nothing is, the head."""
    for one in found.files:
        render.echo(f"{one.file}: {render.count(one.events, 'event')} up to position {one.position}")
    for wrong in found.findings[:SHOWN_FINDINGS]:
        render.echo(rejection_line(wrong) if isinstance(wrong, Rejection) else render.plain(str(wrong)))
    if len(found.findings) > SHOWN_FINDINGS:
        render.echo(f"... and {len(found.findings) - SHOWN_FINDINGS:,} more (--format json lists them)")
    if not found.findings:
        same = "" if found.ladders is ABSENT else f"; {render.count(found.ladders, 'ladder')} as in the ledger"
        render.echo(f"It is whole{same}. The head: {found.head}")


def print_night(found: Night) -> None:
    """One line with the date."""
    compared = f" (last compared without the cache: {found.compared_without_cache or 'never; see: ratings verify'})"
    lines = [
        f"{one.part} {'done' if one.exit_code == 0 else 'FAILED'}: {one.message}{compared * (one.part == 'verify')}"
        for one in found.parts
    ]
    ended = f"head {found.head or 'unknown'}, in {found.seconds:.1f} s"
    render.echo(render.plain(f"{found.started} {'; '.join([*lines, ended])}"))
