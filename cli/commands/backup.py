"""Implement `backup`: copy the log to another place, and prove that it can be restored."""

import os.path
from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import group
from ratings_ledger.cli.arguments.options import read_head, require_files_readable_twice, result_format
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.maintenance import print_backup_checked, print_backup_made
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.backups.backup_files import BackupFiles
from ratings_ledger.ledger.backups.backup_folder import BackupResult, make_backup, parse_policy
from ratings_ledger.ledger.store.exports import ChainHead
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.stored.backup_comparison import check_backup_files, describe_new_backup


@group()
def backup() -> None:
    """Keep copies of the log in a folder, and check them."""


def _read_keep_policy(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, int] | None:
    try:
        return None if value is None else parse_policy(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


keep_option = click.option(
    "--keep",
    metavar="14d,8w,12m",
    callback=_read_keep_policy,
    help="For example, keep only the last backup of each of the latest 14 days, 8 weeks and 12 months.  "
    "[default: keep all]",
)


@backup.command(name="make")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@keep_option
@result_format
@click.pass_obj
def make_(db: str, folder: Path, keep: dict[str, int] | None, output_format: str) -> int:
    """Write all events to a new compressed file in DIR, and the head to a small file beside it.

    --keep counts days, weeks and months (in UTC) that have backups. Only files that this command made in DIR are ever
    deleted, and never the newest file. Delete nothing and exit 1 if the ledger does not contain the history of an
    earlier backup (it was changed, or replaced by an older copy), or if a backup is dated after now.
    """
    result = make_backup(open_ledger(db), folder, clock.now, keep)
    emit(describe_new_backup(folder, result), output_format, print_backup_made)
    return int(note_problems(folder, result))


def note_problems(folder: Path, result: BackupResult) -> bool:
    """Note missing and changed backups, and the problems that prevent deletion; return whether any prevent it."""
    for name, problem_text in result.mismatched:
        kept_text = ", and not deleted" if os.path.lexists(folder / name) else ""
        render.note(f"note: {folder / name} {problem_text}; it is ignored{kept_text}")
    problems = result.describe_problems(folder)
    for problem in problems:
        render.note(f"ratings: {problem}")
    return bool(problems)


@backup.command(name="check")
@click.argument("files", metavar="FILE [INCREMENT]...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--head",
    "expected",
    metavar="POSITION:CHAINHASH",
    callback=read_head,
    help="The expected head, for exports whose last line does not state it.",
)
@click.option(
    "--replay", is_flag=True, help="Restore the backup into a temporary ledger, and compare all ladders with --db."
)
@result_format
@click.pass_obj
def check_(db: str, files: tuple[str, ...], expected: ChainHead | None, replay: bool, output_format: str) -> int:
    """Check that a backup is complete: the hashes, order and content of all events, and the head in the last line.

    This needs no ledger. If FILE.head is next to FILE, the heads must be equal. With --replay, all ladders are
    compared with those of the ledger at the same position; the ledger must contain the history of the backup.
    """
    require_files_readable_twice(files, "backup check")
    report = check_backup_files(BackupFiles(files, expected), db if replay else None)
    emit(report, output_format, print_backup_checked)
    return int(bool(report.findings))
