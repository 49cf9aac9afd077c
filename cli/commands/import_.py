"""Implement `import`: read files of results, lines from another program, or a backup."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import click

from ratings_ledger.cli.arguments.close_names import propose_with_answers
from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import read_head, require_files_readable_twice
from ratings_ledger.cli.arguments.tables import TableFiles, add_earlier_answers, add_ledger_facts, with_table_options
from ratings_ledger.cli.arguments.views import decode_for_command
from ratings_ledger.cli.arguments.writing import WriteContext, with_game_options
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.next_steps import note_next_steps
from ratings_ledger.cli.output.progress import create_bar
from ratings_ledger.cli.output.proposals import note_games
from ratings_ledger.ledger.backups.backup_files import BackupFiles, restore
from ratings_ledger.ledger.events.batches import make_batch_name
from ratings_ledger.ledger.intake.files import STDIN, TOO_LARGE, Progress, find_size, read_items
from ratings_ledger.ledger.intake.intake import IntakeResult, OnRejected
from ratings_ledger.ledger.intake.tables.aliases import list_own_aliases
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.own_files import name_file_in_errors
from ratings_ledger.ledger.processes.forking import available_cores
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.store.exports import ChainHead
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.batches import read_batches
from ratings_ledger.ledger.validation.close_names import find_close_names
from ratings_ledger.ledger.validation.new_names import CloseName
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.admission.ladder_checks import RecordedChecks
from ratings_ledger.projections.admission.league_checks import LeagueNotes
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.facts.lookups import known_players


@command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@with_table_options
@click.option(
    "--preview",
    "previewing",
    is_flag=True,
    help="Show how the files are understood, and what they would change; write nothing.",
)
@click.option(
    "--sync",
    "syncing",
    is_flag=True,
    help="Compare an edited table with its previous import; append, correct, void and reinstate games to match.",
)
@click.option("--reason", metavar="TEXT", help="With --sync: the reason, which is recorded.  [default: edited in FILE]")
@click.option("--yes", is_flag=True, help="With --sync: change recorded games without asking.")
@click.option("--new-game", is_flag=True, help="Accept games in tables that no published ruleset scores.")
@click.option("--keep-going", is_flag=True, help="Append the valid lines, and write the others to FILE.rejects.jsonl.")
@click.option(
    "--follow",
    "following",
    is_flag=True,
    help="Read lines of JSON from standard input as they arrive, and answer each line.",
)
@click.option(
    "--restore",
    "restoring",
    is_flag=True,
    help="Restore an export, and increments after it, into an empty ledger, byte for byte.",
)
@click.option(
    "--head",
    "expected_head",
    metavar="POSITION:CHAINHASH",
    callback=read_head,
    help="With --restore: the head at the end, for exports whose last line does not state it.",
)
@click.option("--incomplete", is_flag=True, help="With --restore: accept a file that was cut off.")
@with_game_options("tables")
def import_(  # the parameters are the options of the command
    context: WriteContext,
    files: tuple[str, ...],
    tables: TableOptions,
    table_files: TableFiles,
    previewing: bool,
    syncing: bool,
    reason: str | None,
    yes: bool,
    keep_going: bool,
    new_game: bool,
    following: bool,
    restoring: bool,
    expected_head: ChainHead | None,
    incomplete: bool,
) -> int:
    """Import games from tables (.xlsx, .ods, CSV), PGN, other programs, or JSON Lines.

    FILES may be compressed with gzip; - is standard input. The import reports how it reads a table. Everything is
    checked before anything is appended; if one line is refused, nothing is appended. --preview shows how the files
    are understood. --follow accepts or refuses each line separately. --sync compares a table with the previous import
    of a file of this name, and corrects, voids and reinstates games once you agree.
    """
    _check_sync_options(
        files,
        syncing,
        has_other_mode=following or restoring or keep_going,
        has_sync_options=reason is not None or yes,
    )
    if previewing and (syncing or following or restoring):
        message = "--preview takes none of --sync, --follow, --restore"
        raise click.UsageError(f"{message}; to see what differs in an edited sheet: --sync --dry-run")
    if not restoring and (expected_head is not None or incomplete):
        raise click.UsageError("--head and --incomplete work only with --restore; add it, or leave them out")
    if following:
        file_options = (
            tables != TableOptions(),
            any(table_files),
            keep_going,
            context.dry_run,
            context.policy.strict,
            restoring,
        )
        return _follow(context, files, has_file_options=any(file_options))
    if restoring:
        if context.dry_run or keep_going or context.policy.strict:
            raise click.UsageError("--restore takes none of --dry-run, --keep-going, --strict; leave them out")
        return _restore(context, BackupFiles(files, expected_head, incomplete))
    files = tuple(dict.fromkeys(files))
    table_files.check_profile_to_save(files)
    table_options, problems = table_files.read(tables)
    policy = context.policy._replace(
        keep_going=keep_going, new_game=new_game, accepted=list_own_aliases(table_options.aliases)
    )
    context = replace(context, policy=policy, dry_run=context.dry_run or previewing)
    with context.ledger.reading() as connection:
        if problems:
            return context.report(IntakeResult(rejected=problems, rejected_count=len(problems), head=head(connection)))
        options = add_ledger_facts(connection, table_options)._replace(checks_all=not (keep_going or syncing))
        options = add_earlier_answers(connection, options, files)

    def save(proposal: Proposal, used_options: TableOptions) -> None:
        if not proposal.is_refused:
            table_files.save(
                (proposal.result.read_as or used_options)._replace(
                    aliases=used_options.aliases, zone=table_options.zone
                )
            )

    if previewing:
        from ratings_ledger.cli.commands.preview import preview

        code, result = preview(context, files, options, propose=partial(_propose_files, files), save=save)
        note_next_steps(result, files, options, is_profile_known=table_files.is_used, keeps_going=keep_going)
        return code
    if syncing:
        from ratings_ledger.cli.commands.sync import sync  # slow to import

        return sync(context, files[0], options, save=save, reason=reason, yes=yes)
    # a line can also be refused on append, because of events that other writers have recorded since the check
    with _open_reject_files(keep_going and not context.dry_run) as reject:
        proposal, options = propose_with_answers(context, options, files, partial(_propose_files, files, reject=reject))
        save(proposal, options)
        impact = (
            proposal.impact() if not proposal.is_refused and (context.dry_run or _may_change_lists(proposal)) else None
        )
        with _show_progress_bar("appending", proposal.result.would_append) as show_completed:
            result = context.finish(proposal, show_completed)
    note_games(result)
    code = context.report(result, impact, only_lists=impact is not None and not context.dry_run)
    if not context.dry_run:
        is_profile_known = table_files.is_used or _was_imported(context, files[0])
        note_next_steps(result, files, options, is_profile_known=is_profile_known, keeps_going=keep_going)
    return code


def _was_imported(context: WriteContext, file: str) -> bool:
    """Tell whether an earlier import read this file. That import has already printed the advice about profiles."""
    with context.ledger.reading() as connection:
        return len(read_batches(connection, make_batch_name(file))) > 1


def _check_sync_options(files: tuple[str, ...], syncing: bool, *, has_other_mode: bool, has_sync_options: bool) -> None:
    """Raise `click.UsageError` for options that cannot be combined with --sync, and for options that need --sync."""
    if syncing and (has_other_mode or len(files) > 1 or STDIN in files):
        message = "--sync compares one file with its earlier imports; it takes neither further files nor standard input"
        raise click.UsageError(f"{message}, and none of --follow, --restore, --keep-going")
    if has_sync_options and not syncing:
        raise click.UsageError("--reason and --yes work only with --sync; add it, or leave them out")


def _follow(context: WriteContext, files: tuple[str, ...], *, has_file_options: bool) -> int:
    """Import lines as they arrive. Raises `click.UsageError` for files, and for options that need files."""
    if files != (STDIN,) or has_file_options:
        message = "--follow reads lines only from standard input, and takes neither options for tables nor --dry-run"
        raise click.UsageError(f"{message}, --keep-going, --restore or --strict; run: ratings import --follow -")
    from ratings_ledger.cli.commands.follow import follow  # slow to import

    return follow(context.db, context.policy._replace(refusal_scope="", keep_going=True))


def _propose_files(files: tuple[str, ...], context: WriteContext, options: TableOptions, **hooks: Any) -> Proposal:
    """Check the contents of the files; `hooks` are keyword arguments of `FileIntake`."""
    items = (item for name in files for item in read_items(name, options))
    bytes_read, current_file = dict.fromkeys(files, 0), files[0]
    sizes = [find_size(name) or 0 for name in files]
    with _show_progress_bar("checking", sum(sizes)) as show_completed:

        def show_progress(progress: Progress) -> None:
            nonlocal current_file
            current_file = progress.file
            bytes_read[current_file] = progress.bytes_read
            show_completed(sum(bytes_read.values()))

        try:
            return context.propose_files(
                items,
                league_notes=LeagueNotes(),
                on_progress=show_progress,
                cores=available_cores(),
                batches=True,
                **hooks,
            )
        except MemoryError:
            raise MemoryError(f"{current_file}: {TOO_LARGE}") from None


def _may_change_lists(proposal: Proposal) -> bool:
    """Tell whether published lists could change; return False if there are too many events to compute the changes."""
    with proposal.ledger.reading() as connection:
        published = read_published_lists(connection, head(connection).position)
    return bool(published) and proposal.is_small()


def _restore(context: WriteContext, backup: BackupFiles) -> int:
    """Restore a backup into the ledger; report its players, all of whom are new to the ledger."""
    require_files_readable_twice(backup.files, "--restore")
    if backup.head is not None and backup.incomplete:
        raise click.UsageError(
            "--head names the end of the backup, but --incomplete accepts a backup that was cut off; leave out one"
        )
    result = restore(context.ledger, backup, RecordedChecks)
    if not result.rejected_count:
        with context.ledger.reading() as connection:
            result.new_players = sorted(known_players(decode_for_command(connection)))
        result.close = {
            name: CloseName(name, None, dict.fromkeys(similar_names))
            for name, similar_names in find_close_names(result.new_players, ())
        }
    return context.report(result)


@contextmanager
def _open_reject_files(is_enabled: bool) -> Iterator[OnRejected]:
    """Provide a function that writes refused lines to FILE.rejects.jsonl, one such file for each input.

    If the file exists, use the next free name, because an existing file may be an input. Unless `is_enabled`, the
    function writes nothing.
    """
    files: dict[str, Any] = {}

    def write(rejection: Rejection, source: Any) -> None:
        if not is_enabled:
            return
        name = "stdin" if rejection.file in (None, STDIN) else str(rejection.file)
        if name not in files:
            files[name] = _create_reject_file(name)
        line = {"line": rejection.line, "code": rejection.code, "message": rejection.message, "input": source}
        with name_file_in_errors(files[name].name):
            files[name].write(render.to_json(line) + "\n")

    try:
        yield write
    finally:
        for file in files.values():
            with name_file_in_errors(file.name):
                file.close()
            render.note(f"refused lines are in {file.name}")


def _create_reject_file(name: str) -> Any:
    """Create a file for the refusals of an input, under the first free name."""
    for number in count(1):
        with suppress(FileExistsError):
            numbered = f".{number}" if number > 1 else ""
            return open(f"{name}.rejects{numbered}.jsonl", "x", encoding="utf-8", errors="backslashreplace")
    raise AssertionError


@contextmanager
def _show_progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress if stderr is a terminal; provide a function to call with the completed amount."""
    if not sys.stderr.isatty():
        yield lambda completed: None
        return
    with create_bar() as bar:
        task = bar.add_task(title, total=total or None)
        yield lambda completed: bar.update(task, completed=completed)
