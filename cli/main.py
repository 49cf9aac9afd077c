"""Define the program `ratings`: load a command's module when it is called, and report failures and interrupts."""

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import StringIO
from itertools import pairwise
from typing import Any

import click

from ratings_ledger.cli.completion.stored_names import find_default_ledger
from ratings_ledger.cli.interrupts import INTERRUPTED
from ratings_ledger.ledger.failures import describe_failure, is_out_of_memory
from ratings_ledger.ledger.rejections import did_you_mean, escape_unprintable, quote

# for each command: its module and attribute in `cli.commands`, and the first sentence of its help; `ratings --help`
# prints these sentences without importing the modules
COMMANDS = {
    "init": ("init:init", "Create or upgrade the ledger."),
    "zone": (
        "init:zone_",
        "Show or set the home zone, in which times are shown and read.",
    ),
    "import": ("import_:import_", "Import games from tables (.xlsx, .ods, CSV), PGN, other programs, or JSON Lines."),
    "record": ("record:record", "Record one game."),
    "correct": ("correct:correct", "Correct the result, date or other data of GAME."),
    "void": (
        "correct:void",
        "Void GAME, or withdraw an event that is not about a game.",
    ),
    "reinstate": ("correct:reinstate", "Make a voided GAME count again, as it was last corrected."),
    "undo": ("undo:undo", "Undo the last thing you recorded, or the event at POSITION."),
    "adjust": (
        "adjust:adjust",
        "Add POINTS, such as 25 or -7.5, to PLAYER on LADDER.",
    ),
    "seed": (
        "seed:seed",
        "Set PLAYER's start on LADDER, such as rating=1650 deviation=80.",
    ),
    "club": ("correct:club", "Rename a club."),
    "player": ("correct:player", "Rename or merge players, or change an account."),
    "games": (
        "log:games",
        "List the recorded games as they stand now, or show one.",
    ),
    "log": ("log:log", "List the raw events, with their authors and reasons."),
    "export": ("export:export", "Export the ledger's contents for other programs."),
    "ladders": ("lists:ladders_", "List the ladders that have games or adjustments."),
    "lists": (
        "lists:lists_",
        "Show the lists of months and years, with their states and sizes.",
    ),
    "standings": ("standings:standings_", "Show the standings of LADDER, such as elo-chess."),
    "history": (
        "standings:history_",
        "Show every change to PLAYER's points on LADDER.",
    ),
    "chart": ("chart:chart", "Draw the points of one or more PLAYERs on LADDER as FILE.svg."),
    "explain": ("explain:explain_", "Explain why GAME changed the points on LADDER."),
    "predict": ("predict:predict", "Predict a game between SIDEs on LADDER: chances and stakes."),
    "statistics": (
        "lists:statistics_",
        "Show PLAYER's games, stars and gold over all lists.",
    ),
    "publish": (
        "publish:publish",
        "Publish LADDER as it stands; the list never changes afterwards.",
    ),
    "diff": (
        "diff:diff",
        "Compare ladders at coordinates A and B.",
    ),
    "report": ("report:report", "Write pages for people without a terminal."),
    "serve": ("pages:serve", "Show the ledger as pages in a browser."),
    "site": ("pages:site_", "Write the pages as files into FOLDER, for any web host."),
    "whatif": (
        "whatif:whatif",
        "Score all games by the ruleset in FILE, and record nothing.",
    ),
    "league": ("league:league", "Manage leagues of eight players, and see the open games."),
    "clock": ("clock:clock", "Rebuild the clock of a game from its events."),
    "books": ("standings:books_", "Show the trial balance of LADDER; its accounts sum to zero."),
    "rules": ("rules:rules", "List, show, check and publish rulesets."),
    "rebuild": ("rebuild:rebuild_", "Replay all ladders, or the named ones, into stored standings."),
    "segments": (
        "segments:segments",
        "Seal old events for workers; list, check and prune segments.",
    ),
    "verify": ("verify:verify", "Compare all hashes and stored data with the records."),
    "nightly": (
        "nightly:nightly",
        "Store standings and verify the ledger; --backup adds a backup.",
    ),
    "backup": ("backup:backup", "Keep copies of the log in a folder, and check them."),
    "status": ("status:status", "Show the head of the log and the age of the stored standings."),
    "doctor": ("doctor:doctor", "Check the settings on which safety depends."),
    "grants": ("grants:grants", "Show the roles for a ledger in PostgreSQL, as described in docs/postgresql.md."),
    "upgrade": ("upgrade:upgrade", "Bring the ledger to the schema that this program needs."),
    "completion": (
        "completion:completion",
        "Print the script that completes commands and names in a shell.",
    ),
    "demo": ("demo:demo", "Show the main tasks on a small club's games."),
}

# the headings of `ratings --help`
HEADINGS = {
    "Every day": (
        "import",
        "record",
        "correct",
        "void",
        "reinstate",
        "undo",
        "player",
        "club",
        "adjust",
        "seed",
        "league",
        "clock",
        "standings",
        "history",
        "chart",
        "explain",
        "predict",
        "statistics",
        "games",
        "log",
        "ladders",
        "books",
        "diff",
    ),
    "Publishing": ("publish", "lists", "report", "serve", "site", "export"),
    "Rules": ("rules", "whatif"),
    "Operating": (
        "init",
        "zone",
        "status",
        "nightly",
        "backup",
        "rebuild",
        "verify",
        "doctor",
        "segments",
        "grants",
        "upgrade",
        "completion",
        "demo",
    ),
}

DISK_FULL_REMEDY = "free some space, or send the output elsewhere; to list the events recorded so far: ratings log"
OUT_OF_MEMORY_MESSAGE = (
    b"ratings: there is not enough memory; the interrupted operation changed nothing; "
    b"free some memory and run the same command again\n"
)

# while a command is under way, an interrupt must not end the process at once
_under_way = False
_interrupted = False


def set_under_way(value: bool) -> bool:
    """Record whether a command is under way, and return the previous value.

    While one is, an interrupt must not end the process at once.
    """
    global _under_way
    previous, _under_way = _under_way, value
    return previous


def is_under_way() -> bool:
    """Tell whether a command is under way. If so, an interrupt must not end the process at once."""
    return _under_way


def note_interrupt() -> None:
    """Record that an interrupt occurred during a command."""
    global _interrupted
    _interrupted = True


def was_interrupted() -> bool:
    """Tell whether an interrupt occurred during a command, even if its `KeyboardInterrupt` was lost."""
    return _interrupted


class Commands(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        was_under_way = set_under_way(False)  # while modules load, an interrupt may end the process at once
        try:
            command = getattr(import_module(f"ratings_ledger.cli.commands.{module}"), attribute)
        finally:
            set_under_way(was_under_way)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        for heading, names in HEADINGS.items():
            with formatter.section(heading):
                commands = ((name, click.Command(name, help=COMMANDS[name][1])) for name in names)
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in commands])

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS) or "; to list the commands: ratings --help"
            raise click.UsageError(f"no command is called {quote(name)}{hint}", context)
        return super().resolve_command(context, arguments)

    def invoke(self, context: click.Context) -> Any:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            # a reader that stops early is not a failure; the interpreter must not report it at exit either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    from importlib.metadata import version  # slow to import and needed only here, like the schema

    from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

    click.echo(f"ratings, version {version('ratings-ledger')}, schema {SCHEMA_REVISION}")
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--db",
    metavar="URL",
    default=find_default_ledger,
    help="The ledger: a file path or a database URL.  [default: RATINGS_DB, else sqlite:///ratings.db]",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, and the schema that ledgers need.",
)
@click.pass_context
def ratings(context: click.Context, db: str) -> None:
    """Keep the results of games as immutable events; replay ratings and lists from them, exactly."""
    context.obj = db


def run_program(arguments: list[str] | None = None) -> None:
    """Run the program, and exit with its code.

    0: done. 1: a finding, a refusal, an unknown name, a failed rule, a damaged ledger or a bug. 2: a usage or
    configuration error. 3: the ledger or a file is unavailable, or disk space or memory is short. 4: another run of the
    same job is in progress. 130: interrupted.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for argument in sys.argv[1:] if arguments is None else arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            _print_failure(f"the argument {quote(argument)} is not valid UTF-8; write it in UTF-8, or rename the file")
            sys.exit(2)
    _silence_memory_errors()
    try:
        exit_code = invoke(arguments)
    except MemoryError:  # only now, after the command released its memory, can a message be written
        os.write(2, OUT_OF_MEMORY_MESSAGE)
        exit_code = 3
    sys.exit(exit_code)


def _silence_memory_errors() -> None:
    """Do not print `MemoryError`s of finalizers and threads, because `describe_failure` reports the lack of memory."""
    unraisable_hook, thread_hook = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda event: None if is_out_of_memory(event.exc_value) else unraisable_hook(event)
    threading.excepthook = lambda event: None if is_out_of_memory(event.exc_value) else thread_hook(event)


def _open_closed_streams() -> None:
    """Replace closed standard streams with /dev/null, before the file of a ledger can get their descriptors."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def invoke(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; report every failure in one message on stderr.

    With `--format json` the last line on stderr is an object with the members `reason`, `message` and `exit_code`,
    unless the command printed a refusal in that format, or raised a `click.ClickException` with exit code 1, for
    example for an unknown player.
    """
    words = sys.argv[1:] if arguments is None else arguments
    was_under_way = set_under_way(True)
    try:
        result: Any = ratings.main(arguments, prog_name="ratings", standalone_mode=False)
    except click.ClickException as error:
        error_text = StringIO()
        error.show(error_text)
        _print_to_stderr(error_text.getvalue())
        if error.exit_code != click.UsageError.exit_code:
            return error.exit_code
        return _print_failure_as_json(words, "usage", error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        reason, message, exit_code = "interrupted", "interrupted", INTERRUPTED
    except Exception as error:
        reason, message, exit_code = describe_failure(error)
        # the message about a file already names it
        if reason == "no-space" and isinstance(error, OSError) and error.filename is None:
            message = f"standard output: {error.strerror}; {DISK_FULL_REMEDY}"
        # an interrupt during an import statement, for example, becomes another error
        if reason == "bug" and was_interrupted():
            reason, message, exit_code = "interrupted", "interrupted", INTERRUPTED
    else:
        return result if isinstance(result, int) else 0
    finally:
        set_under_way(was_under_way)
    _print_failure(message)
    return _print_failure_as_json(words, reason, message, exit_code)


def _print_failure_as_json(arguments: Sequence[str], reason: str, message: str, exit_code: int) -> int:
    """Print as JSON why a command stopped, if --format is json; return the exit code."""
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        from ratings_ledger.cli.output.render import to_json  # slow to import, and most commands succeed

        _print_to_stderr(to_json({"reason": reason, "message": message, "exit_code": exit_code}) + "\n")
    return exit_code


def _print_failure(message: str) -> None:
    _print_to_stderr(f"ratings: {message}\n")


def _print_to_stderr(text: str) -> None:
    """Print lines to stderr, with control characters of names and file contents escaped."""
    with suppress(OSError):  # if stderr is closed, the exit code still reports the failure
        click.echo(escape_unprintable(text, kept="\n\t"), err=True, nl=False)
