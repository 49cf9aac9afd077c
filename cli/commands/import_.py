"""`import`: takes in files of results, lines from another program, or a backup."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import head_value, refuse_unreadable_twice
from ratings_ledger.cli.arguments.tables import Kept, find_scored_games, find_whole_ids, reading_tables
from ratings_ledger.cli.arguments.views import decoded
from ratings_ledger.cli.arguments.who_is_who import agreed_names
from ratings_ledger.cli.arguments.writing import WriteContext, taking_games
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import note_games
from ratings_ledger.cli.output.progress import picture
from ratings_ledger.cli.output.ways_on import note_ways_on
from ratings_ledger.ledger.backups.restoring import BackupFiles, restore
from ratings_ledger.ledger.intake.files import STDIN, TOO_LARGE, Progress, read_items, size
from ratings_ledger.ledger.intake.intake import Imported, Reject
from ratings_ledger.ledger.intake.tables.aliases import own_names
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.partners import JOINTS
from ratings_ledger.ledger.own_files import name_file_in_errors
from ratings_ledger.ledger.processes.forking import available_cores
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.store.exports import Place
from ratings_ledger.ledger.store.log import head, home_zone
from ratings_ledger.ledger.validation.names import find_close_names
from ratings_ledger.ledger.validation.new_names import CloseName
from ratings_ledger.ledger.validation.published_lists import published_lists
from ratings_ledger.projections.admission.events import RecordedChecks
from ratings_ledger.projections.admission.notes import LeagueNotes
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.facts.players import known_players


@command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@reading_tables
@click.option("--preview", "previewing", is_flag=True,
              help="Show how the files are understood, and what they would change; write nothing.")  # fmt: skip
@click.option("--sync", "syncing", is_flag=True,
              help="Compare an edited table with what it gave before: correct and void games, too.")  # fmt: skip
@click.option("--reason", metavar="TEXT", help="With --sync: why; it is recorded.  [default: edited in FILE]")
@click.option("--yes", is_flag=True, help="With --sync: change recorded games without being asked.")
@click.option("--new-game", is_flag=True, help="Take games of tables that no published ruleset scores.")
@click.option("--keep-going", is_flag=True, help="Append what is valid, write the rest to FILE.rejects.jsonl.")
@click.option("--follow", "following", is_flag=True,
              help="Take lines of JSON from standard input as they arrive; answer each.")  # fmt: skip
@click.option("--restore", "restoring", is_flag=True,
              help="Take an export, and increments after it, into an empty ledger, byte for byte.")  # fmt: skip
@click.option("--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value,
              help="With --restore: where it must end; for exports without a last line.")  # fmt: skip
@click.option("--incomplete", is_flag=True, help="With --restore: take what is left of a file that was cut off.")
@taking_games("tables")
def import_(
    how: WriteContext, files: tuple[str, ...], tables: TableOptions, kept: Kept, previewing: bool, syncing: bool,
    reason: str | None, yes: bool, keep_going: bool, new_game: bool, following: bool, restoring: bool,
    expected: Place | None, incomplete: bool,
) -> int:  # fmt: skip
    """Import games from tables (.xlsx, .ods, CSV), PGN, other programs, or JSON Lines.

    FILES may be compressed with gzip; - is standard input. What is recognised in a table is told. Everything is checked
    before anything is appended; if one line is refused, nothing at all is appended. --preview shows how the files are
    understood. With --follow each line is taken or refused by itself. With --sync the games that differ from what a
    table of this name gave before are shown, and are corrected, voided and reinstated once you agree.
    """
    _refuse_sync(files, syncing, following or restoring or keep_going, reason is not None or yes)
    if previewing and (syncing or following or restoring):
        raise click.UsageError("--preview shows an import as it is; --sync --dry-run shows what differs in a sheet")
    if following:
        for_files = (tables != TableOptions(), any(kept), keep_going, how.dry_run, how.policy.strict, restoring)
        return _follow(how, files, any(for_files))
    if restoring:
        if how.dry_run or keep_going or how.policy.strict:
            raise click.UsageError("--restore takes neither --dry-run nor --keep-going nor --strict")
        return _restore(how, BackupFiles(files, expected, incomplete))
    if expected is not None or incomplete:
        raise click.UsageError("--head and --incomplete go with --restore")
    files = tuple(dict.fromkeys(files))
    kept.refuse_taken(files)
    said, problems = kept.read(tables)
    policy = how.policy._replace(keep_going=keep_going, new_game=new_game, accepted=own_names(said.aliases))
    how = replace(how, policy=policy, dry_run=how.dry_run or previewing)
    with how.ledger.reading() as connection:
        if problems:
            return how.report(Imported(rejected=problems, rejected_count=len(problems), head=head(connection)))
        options = _known_to(connection, said)._replace(checks_all=not (keep_going or syncing))

    def save(plan: Proposal, used: TableOptions) -> None:
        if not plan.is_refused:
            kept.save((plan.result.read_as or used)._replace(aliases=used.aliases, zone=said.zone))

    if previewing:
        from ratings_ledger.cli.commands.preview import preview

        code, result = preview(how, files, options, partial(_proposed, files), save)
        note_ways_on(result, files, options, is_kept=kept.is_used)
        return code
    if syncing:
        from ratings_ledger.cli.commands.sync import sync  # which needs more than others do

        return sync(how, files[0], options, save, reason, yes)
    # what others record meanwhile can refuse a line when it is appended, too
    with _rejects(keep_going and not how.dry_run) as reject:
        plan, options = agreed_names(how, options, files, partial(_proposed, files, reject=reject))
        save(plan, options)
        found = plan.impact() if not plan.is_refused and (how.dry_run or _touches_lists(plan)) else None
        with _bar("appending", plan.result.would_append) as appended:
            result = how.done(plan, appended)
    note_games(result)
    code = how.report(result, found, only_lists=found is not None and not how.dry_run)
    note_ways_on(result, files, options, is_kept=kept.is_used)
    return code


def _known_to(connection: Connection, said: TableOptions) -> TableOptions:
    """Return options with what the ledger knows: its zone, its games, and ids that are not taken apart."""
    whole = find_whole_ids(connection, said.partners or JOINTS)
    return said._replace(zone=said.zone or home_zone(connection), whole=whole, games=find_scored_games(connection))


def _refuse_sync(files: tuple[str, ...], syncing: bool, otherwise: bool, explained: bool) -> None:
    """Raise `click.UsageError` for what --sync does not go with, and for what goes with nothing else."""
    if syncing and (otherwise or len(files) > 1 or STDIN in files):
        raise click.UsageError("--sync compares one whole file with what was imported under its name before")
    if explained and not syncing:
        raise click.UsageError("--reason and --yes go with --sync")


def _follow(how: WriteContext, files: tuple[str, ...], for_files: bool) -> int:
    """Take lines as they arrive. Raises `click.UsageError` for what goes with files alone."""
    if files != (STDIN,) or for_files:
        raise click.UsageError("--follow takes events from standard input, -, and nothing that is for files")
    from ratings_ledger.cli.commands.follow import follow  # the only way in that handles signals

    return follow(how.db, how.policy._replace(refusing="", keep_going=True))


def _proposed(files: tuple[str, ...], how: WriteContext, options: TableOptions, **hooks: Any) -> Proposal:
    """Return what the files hold, checked; the hooks are those of `FileIntake`."""
    items = (item for name in files for item in read_items(name, options))
    done, last = dict.fromkeys(files, 0), files[0]
    sizes = [size(name) or 0 for name in files]
    with _bar("checking", sum(sizes)) as completed:

        def reading(progress: Progress) -> None:
            nonlocal last
            last = progress.file
            done[last] = progress.read
            completed(sum(done.values()))

        try:
            return how.propose_files(
                items, league_notes=LeagueNotes(), reading=reading, cores=available_cores(), batches=True, **hooks
            )  # fmt: skip
        except MemoryError:
            raise MemoryError(f"{last}: {TOO_LARGE}") from None


def _touches_lists(plan: Proposal) -> bool:
    """Tell whether published lists may come out differently, as far as that is worked out for so many games."""
    with plan.ledger.reading() as connection:
        published = published_lists(connection, head(connection).position)
    return bool(published) and plan.is_small()


def _restore(how: WriteContext, backup: BackupFiles) -> int:
    """Take a backup into the ledger, and say which players it has, who are all new to it."""
    refuse_unreadable_twice(backup.files, "--restore")
    if backup.head is not None and backup.incomplete:
        raise click.UsageError("--head says where the backup ends, --incomplete that it need not; choose one")
    result = restore(how.ledger, backup, RecordedChecks)
    if not result.rejected_count:
        with how.ledger.reading() as connection:
            result.new_players = sorted(known_players(decoded(connection)))
        result.close = {
            name: CloseName(name, None, dict.fromkeys(others))
            for name, others in find_close_names(result.new_players, ())
        }
    return how.report(result)


@contextmanager
def _rejects(wanted: bool) -> Iterator[Reject]:
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
        with name_file_in_errors(files[name].name):
            files[name].write(render.json_text(line) + "\n")

    try:
        yield write
    finally:
        for file in files.values():
            with name_file_in_errors(file.name):
                file.close()
            render.note(f"refused lines are in {file.name}")


def _new_file(name: str) -> Any:
    """Return a file for an input's refusals that does not exist yet."""
    for number in count(1):
        with suppress(FileExistsError):
            numbered = f".{number}" if number > 1 else ""
            return open(f"{name}.rejects{numbered}.jsonl", "x", encoding="utf-8", errors="backslashreplace")
    raise AssertionError


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr if that is a terminal: what is done, and how much of it, as the function is told."""
    if not sys.stderr.isatty():
        yield lambda completed: None
        return
    with picture() as bar:
        task = bar.add_task(what, total=total or None)
        yield lambda completed: bar.update(task, completed=completed)
