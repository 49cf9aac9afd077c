"""`import`: takes in files of results, lines from another program, or a backup."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

import click

from cli.arguments.command import command
from cli.arguments.facts import decoded
from cli.arguments.moments import zone_option
from cli.arguments.options import by_option, head_value, ignore_clock_option
from cli.arguments.preview import Preview
from cli.arguments.result_options import (
    CHANGES_GAMES,
    allow_uncounted_option,
    any_date_option,
    new_names_option,
    refuse_unreadable_twice,
    refused_names,
    result_format,
    strict_option,
)
from cli.output import render
from cli.output.appended import note_homeless, note_leagueless, report_appended, tell_new_ladders
from ledger import clock
from ledger.backups.restoring import BackupFiles, restore
from ledger.intake.csv_cells import GAME_COLUMNS, TableOptions
from ledger.intake.files import STDIN, Far, read_items, size
from ledger.intake.importing import Imported, import_items
from ledger.processes.forking import available_cores
from ledger.rejections import Rejection
from ledger.store.exports import Place
from ledger.store.log import home_zone
from ledger.store.opening import Ledger, open_ledger
from ledger.validation.new_names import Newcomers, close_names
from projections.admission.events import Admission, RecordedChecks
from projections.admission.new_ladders import NewLadders
from projections.facts.players import known_players


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, other = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name.strip()] = other.strip()
    return found


def _fixed(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = _pairs(context, parameter, values)
    for name in found:
        if name not in GAME_COLUMNS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(GAME_COLUMNS)}")
    return found


@command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@click.option("--map", "renamed", metavar="THEIRS=OURS", multiple=True, callback=_pairs,
              help="Rename a CSV column; THEIRS= drops it.")  # fmt: skip
@click.option("--set", "fixed", metavar="MEMBER=VALUE", multiple=True, callback=_fixed,
              help="The same value for all rows of a CSV file.")  # fmt: skip
@zone_option
@click.option("--keep-going", is_flag=True, help="Append what is valid, write the rest to FILE.rejects.jsonl.")
@click.option("--dry-run", is_flag=True, help="Check everything, append nothing.")
@strict_option
@new_names_option
@any_date_option
@allow_uncounted_option
@click.option("--follow", is_flag=True,
              help="Take lines of JSON from standard input as they arrive; answer each.")  # fmt: skip
@click.option("--restore", "restoring", is_flag=True,
              help="Take an export, and increments after it, into an empty ledger, byte for byte.")  # fmt: skip
@click.option("--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value,
              help="With --restore: where it must end; for exports without a last line.")  # fmt: skip
@click.option("--incomplete", is_flag=True, help="With --restore: take what is left of a file that was cut off.")
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def import_(
    db: str, files: tuple[str, ...], renamed: dict[str, str], fixed: dict[str, str], zone: str | None, keep_going: bool,
    dry_run: bool, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool, follow: bool, restoring: bool,
    expected: Place | None, incomplete: bool, ignore_clock: bool, by: str, form: str,
) -> int:  # fmt: skip
    """Import events (JSON Lines) or games (CSV). FILES may be compressed with gzip; - is standard input.

    Everything is checked before anything is appended; if one line is refused, nothing at all is appended. With --follow
    each line is taken or refused by itself.
    """
    if follow:
        if files != (STDIN,) or renamed or fixed or zone or keep_going or dry_run or strict or restoring:
            raise click.UsageError("--follow takes events from standard input, -, and nothing that is for files")
        from cli.commands.follow import follow as follow_lines  # the only way in that handles signals

        return follow_lines(db, by, allow_uncounted, any_date, ignore_clock)
    if restoring and (dry_run or keep_going or strict):
        raise click.UsageError("--restore takes neither --dry-run nor --keep-going nor --strict")
    refusing = refused_names(new_names, strict, "tables")
    ledger = open_ledger(db)
    if restoring:
        refuse_unreadable_twice(files, "--restore")
        if expected is not None and incomplete:
            raise click.UsageError("--head says where the backup ends, --incomplete that it need not; choose one")
        done = restore(ledger, BackupFiles(files, expected, incomplete), RecordedChecks)
        return report_appended(ledger, _introduced(ledger, done), form, dry_run=False)
    if expected is not None or incomplete:
        raise click.UsageError("--head and --incomplete go with --restore")
    files = tuple(dict.fromkeys(files))
    with ledger.reading() as connection:
        options = TableOptions(zone or home_zone(connection), renamed, fixed)
    homeless: dict[str, str] = {}
    leagueless: dict[str, str] = {}
    preview = Preview(ledger, games_max=None if dry_run else CHANGES_GAMES, if_published=not dry_run)
    new_ladders = NewLadders(preview.facts, strict)
    with _rejects(keep_going and not dry_run) as reject, _bar(files) as (read, appended):
        result = import_items(
            ledger,
            (item for name in files for item in read_items(name, options)),
            by=by,
            clock=clock.now,
            ladders=partial(
                Admission,
                allow_uncounted=allow_uncounted,
                homeless=homeless,
                leagueless=leagueless,
                new_ladders=new_ladders,
            ),
            reject=reject,
            keep_going=keep_going,
            dry_run=dry_run,
            ignore_clock=ignore_clock,
            reading=read,
            progress=appended,
            checked=preview,
            newcomers=Newcomers(preview.known, refusing, strict),
            any_date=any_date,
            cores=available_cores(),
        )
    tell_new_ladders(result, new_ladders)
    note_homeless(result, homeless)
    note_leagueless(result, leagueless)
    if dry_run or preview.found is None:
        return report_appended(ledger, result, form, dry_run, preview.found)
    return report_appended(ledger, result, form, dry_run, lists=preview.found.published)


def _introduced(ledger: Ledger, result: Imported) -> Imported:
    """What a restore did, with the ledger's players, who are all new to it."""
    if not result.rejected_count:
        with ledger.reading() as connection:
            result.new_players = sorted(known_players(decoded(connection)))
        result.close = dict(close_names(result.new_players, ()))
    return result


@contextmanager
def _rejects(wanted: bool) -> Iterator[Callable[[Rejection, Any], None]]:
    """Writes refusals with their input to FILE.rejects.jsonl, or to the next free name if that exists; one file for
    each input that has any. No existing file is touched: it may be an input."""
    files: dict[str, Any] = {}

    def write(rejection: Rejection, source: Any) -> None:
        if not wanted:
            return
        name = "stdin" if rejection.file in (None, STDIN) else str(rejection.file)
        if name not in files:
            files[name] = _new_file(name)
        line = {"line": rejection.line, "code": rejection.code, "message": rejection.message, "input": source}
        files[name].write(render.json_text(line) + "\n")

    try:
        yield write
    finally:
        for file in files.values():
            file.close()
            render.note(f"refused lines are in {file.name}")


def _new_file(name: str) -> Any:
    """A file for an input's refusals that does not exist yet."""
    for number in count(1):
        with suppress(FileExistsError):
            numbered = f".{number}" if number > 1 else ""
            return open(f"{name}.rejects{numbered}.jsonl", "x", encoding="utf-8", errors="backslashreplace")
    raise AssertionError


@contextmanager
def _bar(files: tuple[str, ...]) -> Iterator[tuple[Callable[[Far], None], Callable[[int], None]]]:
    """Show progress on stderr if that is a terminal: bytes checked, then events appended."""
    if not sys.stderr.isatty():
        yield (lambda far: None), (lambda appended: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        sizes = {name: size(name) for name in files}
        task = bar.add_task("checking", total=sum(s or 0 for s in sizes.values()) or None)
        done = dict.fromkeys(files, 0)

        def reading(far: Far) -> None:
            done[far.file] = far.read
            bar.update(task, completed=sum(done.values()))

        whole = sum(s or 0 for s in sizes.values())
        yield reading, lambda appended: bar.update(task, description=f"appended {appended:,}", completed=whole)
