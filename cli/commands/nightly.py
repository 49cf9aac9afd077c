"""`nightly`: one command for the night; each part is done whatever becomes of the others."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from cli.arguments.command import command
from cli.arguments.engines import work_elsewhere, workers_options
from cli.arguments.options import result_format
from cli.arguments.rule_seconds import rule_seconds_option
from cli.arguments.views import note_left_out
from cli.commands.backup import keep_option, note_problems
from cli.commands.rebuild import note_failures
from cli.interrupts import ending_soon
from cli.output import render
from cli.output.emit import emit
from ledger import clock
from ledger.backups import backup_folder
from ledger.errors import StoreUnavailable
from ledger.failures import failure_of
from ledger.store.log import head
from ledger.store.opening import Ledger, open_ledger
from ledger.store.runs import running
from projections.stored.generations import whole_second
from projections.stored.rebuilding import rebuild
from projections.stored.status import Night, NightPart
from projections.stored.verification import verify_all
from projections.stored.work import WorkAt

SHOWN_FINDINGS = 20


Does = Callable[[], tuple[int, str]]


@command()
@click.option(
    "--backup", "folder", metavar="DIR", type=click.Path(path_type=Path),
    help="Also make a backup in DIR, as `backup make` does.",
)  # fmt: skip
@keep_option
@rule_seconds_option
@workers_options
@result_format
@click.pass_obj
def nightly(
    db: str, folder: Path | None, keep: dict[str, int] | None, rule_seconds: float, on: str | None,
    segments: str | None, form: str,
) -> int:  # fmt: skip
    """Store the standings, verify the ledger, and make a backup: each of them, whatever becomes of the others.

    Prints one line with the date, and on standard error what is wrong. The exit code is the lowest of those of the
    parts that failed. Exit 4, with nothing done, while another night of the same ledger is in progress.
    """
    if keep is not None and folder is None:
        raise click.UsageError("--keep is for the backups that --backup DIR makes")
    started, began = clock.now(), time.monotonic()
    with ending_soon(lambda: "\nratings: interrupted"):
        ledger = open_ledger(db)
        with running(ledger, "nightly", clock.now, only_one=True) as run:
            at = work_elsewhere(ledger, on, segments, rule_seconds)
            parts = list(_parts(ledger, folder, keep, rule_seconds, at))
            failed = [part.exit_code for part in parts if part.exit_code]
            run.details = {part.part: part.exit_code for part in parts}
            if failed:
                run.fail("; ".join(f"{part.part}: {part.message}" for part in parts if part.exit_code))
    seconds = time.monotonic() - began
    night = Night(whole_second(started), round(seconds, 3), min(failed, default=0), _head(ledger), tuple(parts))
    emit(night, form)
    return night.exit_code


def _parts(
    ledger: Ledger, folder: Path | None, keep: dict[str, int] | None, rule_seconds: float, at: WorkAt | None
) -> Iterator[NightPart]:
    """Do the parts one after another, after naming everything that already prevents one."""
    todo: list[tuple[str, Callable[[], None], Does]] = [
        ("rebuild", partial(_refuse_lacking, ledger), partial(_rebuild, ledger, rule_seconds, at)),
        ("verify", lambda: None, partial(_verify, ledger, rule_seconds, at)),
    ]
    if folder is not None:
        todo.append(("backup", partial(_refuse_unusable, folder), partial(_backup, ledger, folder, keep)))
    prevented = {name: part for name, need, _ in todo if (part := _prevented(name, need)) is not None}
    for name, _, does in todo:
        if name not in prevented:
            yield _tried(name, does)
            continue
        with running(ledger, name, clock.now) as run:
            run.fail(prevented[name].message)
        yield prevented[name]


def _prevented(name: str, need: Callable[[], None]) -> NightPart | None:
    """The outcome of a part that cannot be started, or None if it can."""
    try:
        need()
    except Exception as error:
        return _stopped(name, error, 0.0)
    return None


def _tried(name: str, does: Does) -> NightPart:
    """Do a part and return its outcome."""
    began = time.monotonic()
    try:
        exit_code, message = does()
    except Exception as error:
        return _stopped(name, error, time.monotonic() - began)
    return NightPart(name, exit_code, message, round(time.monotonic() - began, 3))


def _stopped(name: str, error: Exception, seconds: float) -> NightPart:
    reason, message, exit_code = failure_of(error)
    render.note(f"ratings: {name}: {message}")
    return NightPart(name, exit_code, message, round(seconds, 3), reason)


def _refuse_lacking(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        if told := ledger.dialect.lacking(connection, "rebuilder"):
            raise StoreUnavailable(f"nothing can be stored: {told}", "no-right")


def _refuse_unusable(folder: Path) -> None:
    backup_folder.make_folder(folder)
    backup_folder.read_list(folder)


def _rebuild(ledger: Ledger, rule_seconds: float, at: WorkAt | None) -> tuple[int, str]:
    done = rebuild(ledger, clock.now, rule_seconds=rule_seconds, at=at)
    note_left_out(done.why_left_out)
    note_failures(done)
    told = f"{render.count(done.ladders, 'ladder')}, generation {done.generation}"
    failed = f"{len(done.failures):,} failed, of the others " * bool(done.failures)
    return int(bool(done.failures)), failed + told


def _verify(ledger: Ledger, rule_seconds: float, at: WorkAt | None) -> tuple[int, str]:
    done = verify_all(ledger, None, rule_seconds, at=at)
    found, checked = done.findings, done.checked
    for finding in found[:SHOWN_FINDINGS]:
        render.note(f"ratings: verify: {render.plain(str(finding))}")
    if (more := len(found) - SHOWN_FINDINGS) > 0:
        render.note(f"ratings: verify: ... and {more:,} more (ratings verify lists them)")
    if found:
        return 1, f"{render.count(len(found), 'finding')}; the first is {render.plain(str(found[0]))}"
    return 0, f"{render.count(checked.events, 'event')}, {render.count(checked.ladders, 'stored ladder')}"


def _backup(ledger: Ledger, folder: Path, keep: dict[str, int] | None) -> tuple[int, str]:
    done = backup_folder.make(ledger, folder, clock.now, keep)
    failed = note_problems(folder, done)
    return int(failed), "; ".join([*done.problems(folder)[:1], str(folder / done.backup.file)])


def _head(ledger: Ledger) -> str | None:
    try:
        with ledger.reading() as connection:
            return str(head(connection))
    except Exception:  # the parts have said what is wrong
        return None
