"""`backup`: the log kept somewhere else, and proof that it can be restored."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.arguments.command import group
from cli.arguments.options import head_value, refuse_unreadable_twice
from cli.arguments.writing import result_format
from cli.output import render
from cli.output.appended import rejection_line
from ledger import clock
from ledger.backups.backup_folder import Made, backup_json, head_beside, make, read_policy
from ledger.backups.restoring import BackupFiles, RefusedFile, Whole, check_backup, store_backup
from ledger.rejections import Refused, Rejection
from ledger.store.exports import BEGINNING, Place
from ledger.store.opening import open_ledger
from ledger.store.upgrading import upgrade
from ledger.verification import Finding
from projections.admission.events import RecordedChecks
from projections.stored.rehearsal import ladder_differences

SHOWN_FINDINGS = 20


@group()
def backup() -> None:
    """Keep copies of the log in a folder, and check them."""


def _policy(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, int] | None:
    try:
        return None if value is None else read_policy(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


keep_option = click.option(
    "--keep", metavar="14d,8w,12m", callback=_policy,
    help="Then drop all but the last of each of that many days, weeks and months.  [default: keep all]",
)  # fmt: skip


@backup.command(name="make")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@keep_option
@result_format
@click.pass_obj
def make_(db: str, folder: Path, keep: dict[str, int] | None, form: str) -> int:
    """Write all events to a new file in DIR, compressed, with the head next to it in a small file.

    --keep counts days, weeks and months (in UTC) that have backups. Only files that this command made in DIR are ever
    dropped, and never the newest one. Exit 1, with nothing dropped, if the ledger does not contain the history of an
    earlier backup: somebody changed it, or an older copy took its place.
    """
    done = make(open_ledger(db), folder, clock.now, keep)
    if form == "json":
        render.print_json(
            {
                **backup_json(done.backup),
                "file": str(folder / done.backup.file),
                "position": done.backup.head.position,
                "dropped": [str(folder / name) for name in done.dropped],
                "kept": done.kept,
                "lost": [backup_json(one) for one in done.lost],
            }
        )
    else:
        render.echo(f"{render.count(done.backup.head.position, 'event')} in {folder / done.backup.file}; "
                   f"{render.count(done.kept, 'backup')} kept, {len(done.dropped):,} dropped")  # fmt: skip
        render.echo(f"The head: {done.backup.head}")
    note_odd(folder, done)
    note_lost(folder, done)
    return int(bool(done.lost))


def note_odd(folder: Path, done: Made) -> None:
    """Name the backups that are missing or changed."""
    for name, what in done.odd:
        render.note(f"note: {folder / name} {what}; it counts for nothing, and is not dropped")


def note_lost(folder: Path, done: Made) -> None:
    """Name the backups whose history the ledger does not contain."""
    for one in done.lost:
        render.note(f"ratings: the ledger does not contain the history of {folder / one.file}, which is {one.head}; "
                    "nothing was dropped")  # fmt: skip


@backup.command(name="check")
@click.argument("files", metavar="FILE [INCREMENT]...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value,
              help="Where it must end; for exports without a last line.")  # fmt: skip
@click.option("--replay", is_flag=True, help="Restore it into a temporary ledger, and compare all ladders with --db.")
@result_format
@click.pass_obj
def check_(db: str, files: tuple[str, ...], expected: Place | None, replay: bool, form: str) -> int:
    """Check that a backup is whole: every hash, the order, what each event says, and the head that the last line names.

    No ledger is needed for that. If FILE.head is beside FILE, the head must be that one. With --replay the digests of
    all ladders are compared with those of the ledger at that position, which must contain this very history.
    """
    refuse_unreadable_twice(files, "backup check")
    asked = BackupFiles(files, expected)
    try:
        whole = check_backup(asked)
        _refuse_other_heads(whole, files)
    except RefusedFile as refused:
        return _report(files, None, [refused.rejection], None, form)
    findings: list[Finding] = []
    ladders = _rehearse(db, asked, whole, findings) if replay else None
    return _report(files, whole, findings, ladders, form)


def _refuse_other_heads(whole: Whole, files: tuple[str, ...]) -> None:
    """Raises `RefusedFile` if the small file beside a backup names another head."""
    for name, place in zip(files, whole.heads, strict=True):
        try:
            if (beside := head_beside(name)) not in (None, place):
                raise Refused("end-mismatch", f"{name}.head names {beside}, but the file ends at {place}")
        except Refused as problem:
            raise RefusedFile(name, problem) from None


def _rehearse(db: str, asked: BackupFiles, whole: Whole, findings: list[Finding]) -> int:
    """Restore a backup into a temporary ledger and compare it with the live one; returns how many ladders it has."""
    live = open_ledger(db)
    with tempfile.TemporaryDirectory(prefix="ratings-check-") as folder:
        restored = upgrade(f"{folder}/ratings.db")
        store_backup(restored, asked, whole, RecordedChecks)
        found = ladder_differences(restored, live, whole.head)
        while True:
            try:
                findings.append(next(found))
            except StopIteration as end:
                return int(end.value)


def _report(
    files: tuple[str, ...], whole: Whole | None, found: list[Rejection] | list[Finding], ladders: int | None, form: str
) -> int:  # fmt: skip
    """Print what a backup holds, and what is wrong with it; returns the exit code."""
    if form == "json":
        told: dict[str, Any] = {
            "whole": whole is not None,
            "head": None if whole is None else str(whole.head),
            "files": [] if whole is None else [
                {"file": name, "events": events, "head": str(place)} for name, events, place in _files(files, whole)
            ],
            "findings": [one._asdict() for one in found],
            **({} if ladders is None else {"ladders": ladders}),
        }  # fmt: skip
        render.print_json(told)
        return int(bool(found))
    for name, events, place in [] if whole is None else _files(files, whole):
        render.echo(f"{name}: {render.count(events, 'event')} up to position {place.position:,}")
    for one in found[:SHOWN_FINDINGS]:
        render.echo(rejection_line(one) if isinstance(one, Rejection) else render.plain(str(one)))
    if len(found) > SHOWN_FINDINGS:
        render.echo(f"... and {len(found) - SHOWN_FINDINGS:,} more (--format json lists them)")
    if whole is not None and not found:
        same = "" if ladders is None else f"; {render.count(ladders, 'ladder')} as in the ledger"
        render.echo(f"It is whole{same}. The head: {whole.head}")
    return int(bool(found))


def _files(files: tuple[str, ...], whole: Whole) -> Iterator[tuple[str, int, Place]]:
    """Each file, how many events it has, and the head after it."""
    before = BEGINNING
    for name, place in zip(files, whole.heads, strict=True):
        yield name, place.position - before.position, place
        before = place
