"""`ratings`: the group of all commands, each loaded when it is called, and what failures and interrupts look like."""

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

from ratings_ledger.cli.completion.names import named_ledger
from ratings_ledger.cli.interrupts import INTERRUPTED
from ratings_ledger.ledger.failures import describe_failure, is_out_of_memory
from ratings_ledger.ledger.rejections import did_you_mean, escape_unprintable, quote

# by name: where a command is in `cli.commands`, and the first sentence of its help, so that a list of them loads none
COMMANDS = {
    "init": ("init:init", "Create or upgrade the ledger."),
    "zone": (
        "init:zone_",
        "The home zone of the ledger, or NAME from now on: times are shown there, and dates and times are read there.",
    ),
    "import": ("import_:import_", "Import games from tables (.xlsx, .ods, CSV), PGN, other programs, or JSON Lines."),
    "record": ("record:record", "Record one game."),
    "correct": ("correct:correct", "Correct the result, date or place of GAME."),
    "void": (
        "correct:void",
        "Void GAME, so that it counts for nothing; or withdraw an adjustment, a rename, an account or a ruleset.",
    ),
    "reinstate": ("correct:reinstate", "Make a voided GAME count again, as it was last corrected."),
    "undo": ("undo:undo", "Take back what you recorded last, whatever it was; or what stands at POSITION."),
    "adjust": (
        "adjust:adjust",
        "Add POINTS such as 25 or -7.5 to those that PLAYER has on LADDER at that time, or starts with there.",
    ),
    "seed": (
        "seed:seed",
        "Say with what PLAYER begins on LADDER, such as rating=1650 deviation=80.",
    ),
    "club": ("correct:club", "Give a club another name."),
    "player": ("correct:player", "Give a player another id or account, or merge two ids of one person."),
    "games": (
        "log:games",
        "The recorded games as they now stand, by the time they were played; or only the one named.",
    ),
    "log": ("log:log", "The raw events, who recorded them, and why."),
    "export": ("export:export", "Write the ledger's contents for other programs."),
    "ladders": ("lists:ladders_", "The ladders that have games or adjustments."),
    "lists": (
        "lists:lists_",
        "The lists of months and years, whether they are closed, and how many players are on them.",
    ),
    "standings": ("standings:standings_", "Who stands where on LADDER, such as elo-chess."),
    "history": ("standings:history_", "Every change of PLAYER's points on LADDER."),
    "chart": ("chart:chart", "Draw the points of one or several PLAYERs on LADDER as a picture, FILE.svg."),
    "explain": ("explain:explain_", "Why GAME changed the points on LADDER as it did."),
    "predict": ("predict:predict", "The chances of a game between SIDEs on LADDER, and the points at stake."),
    "statistics": (
        "lists:statistics_",
        "What PLAYER started and finished, their stars, and their gold over all lists.",
    ),
    "publish": (
        "publish:publish",
        "Publish LADDER as it stands: its rows are recorded, and stay as published whatever comes later.",
    ),
    "diff": (
        "diff:diff",
        "How ladders at the coordinates A differ from those at B: rows added, removed, moved, points before and after.",
    ),
    "report": ("report:report", "Write pages for people without a terminal."),
    "serve": ("pages:serve", "Show the ledger as pages in a browser."),
    "site": ("pages:site_", "Write the pages as files into FOLDER, for any web host."),
    "whatif": (
        "whatif:whatif",
        "What if the ruleset in FILE had scored all its games from the start? Nothing is recorded.",
    ),
    "league": ("league:league", "Leagues of eight players: create, subscribe, see what remains to be played."),
    "clock": ("clock:clock", "The clock of a game, rebuilt from its events."),
    "books": ("standings:books_", "The trial balance of LADDER: its accounts, which sum to zero."),
    "rules": ("rules:rules", "List, show, check and publish rulesets."),
    "rebuild": ("rebuild:rebuild_", "Replay every ladder, or those named, into stored standings."),
    "segments": (
        "segments:segments",
        "Seal old events for the workers of an engine, list what is sealed, check it, delete what is of no use.",
    ),
    "verify": ("verify:verify", "Recompute every hash from the records."),
    "nightly": (
        "nightly:nightly",
        "Store the standings, verify the ledger, and make a backup: each of them, whatever becomes of the others.",
    ),
    "backup": ("backup:backup", "Keep copies of the log in a folder, and check them."),
    "status": ("status:status", "Show the head of the log and the age of the stored standings."),
    "doctor": ("doctor:doctor", "Read back every setting that safety depends on."),
    "grants": ("grants:grants", "Show the roles for a ledger in PostgreSQL, as described in docs/postgresql.md."),
    "upgrade": ("upgrade:upgrade", "Bring the ledger to the schema that this program needs."),
    "completion": (
        "completion:completion",
        "Print the script by which a shell completes commands, options and names.",
    ),
    "demo": ("demo:demo", "Show the main tasks on a small club's games."),
}

# under these headings `ratings --help` lists them
HEADINGS = {
    "Every day": (
        "import", "record", "correct", "void", "reinstate", "undo", "player", "club", "adjust", "seed", "league",
        "clock", "standings", "history", "chart", "explain", "predict", "statistics", "games", "log", "ladders",
        "books", "diff",
    ),
    "Publishing": ("publish", "lists", "report", "serve", "site", "export"),
    "Rules": ("rules", "whatif"),
    "Operating": (
        "init", "zone", "status", "nightly", "backup", "rebuild", "verify", "doctor", "segments", "grants", "upgrade",
        "completion", "demo",
    ),
}  # fmt: skip

NO_ROOM = "free some space there, or send it elsewhere; ratings log says what is recorded by now"
WITHOUT_MEMORY = b"ratings: there is not enough memory for this; the interrupted operation changed nothing\n"

# whether a command is under way, which an interrupt must not cut off, and whether one came
_under_way = False
_interrupted = False


def under_way(value: bool) -> bool:
    """Tell whether something is under way from now on that an interrupt may not cut off; gives what was before."""
    global _under_way
    before, _under_way = _under_way, value
    return before


def is_under_way() -> bool:
    """Tell whether something is under way that an interrupt may not cut off."""
    return _under_way


def note_interrupt() -> None:
    """Remember that there was an interrupt within a command."""
    global _interrupted
    _interrupted = True


def interrupted() -> bool:
    """Tell whether there was an interrupt within a command, whatever became of its `KeyboardInterrupt`."""
    return _interrupted


class Commands(click.Group):
    """A group that imports a command's module when the command is asked for, and none to list them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        before = under_way(False)
        try:
            command = getattr(import_module(f"ratings_ledger.cli.commands.{module}"), attribute)
        finally:
            under_way(before)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        for heading, names in HEADINGS.items():
            with formatter.section(heading):
                told = ((name, click.Command(name, help=COMMANDS[name][1])) for name in names)
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in told])

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"no command is called {quote(name)}{did_you_mean(name, COMMANDS)}", context)
        return super().resolve_command(context, arguments)

    def invoke(self, context: click.Context) -> Any:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader has seen enough, which is not a failure; nor must the interpreter complain at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    from importlib.metadata import version  # only needed here, and so is the schema

    from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

    click.echo(f"ratings, version {version('ratings-ledger')}, schema {SCHEMA_REVISION}")
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--db",
    metavar="URL",
    default=named_ledger,
    help="The ledger: a file path or a database URL.  [default: RATINGS_DB, else sqlite:///ratings.db]",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
              help="Show the version, and the schema that ledgers need.")  # fmt: skip
@click.pass_context
def ratings(context: click.Context, db: str) -> None:
    """Keep the results of games as immutable events; replay ratings and lists from them, exactly."""
    context.obj = db


def program(arguments: list[str] | None = None) -> None:
    """The program. Exit codes: 0 done, 1 a finding or refusal, 2 usage or configuration, 3 no store or no ledger there,
    4 another run of the same job is in progress."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for argument in sys.argv[1:] if arguments is None else arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            _complain(f"the argument {quote(argument)} is not valid UTF-8")
            sys.exit(2)
    _keep_quiet_without_memory()
    try:
        exit_code = invoke(arguments)
    except MemoryError:  # there was none to tell it while what took it was held
        os.write(2, WITHOUT_MEMORY)
        exit_code = 3
    sys.exit(exit_code)


def _keep_quiet_without_memory() -> None:
    """Leave reports of a lack of memory to `describe_failure`, also where objects are dropped and threads end."""
    unraisable, of_thread = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda found: None if is_out_of_memory(found.exc_value) else unraisable(found)
    threading.excepthook = lambda found: None if is_out_of_memory(found.exc_value) else of_thread(found)


def _open_closed_streams() -> None:
    """Open /dev/null in place of closed standard streams, before a ledger's file can get their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def invoke(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; whatever goes wrong is one message on stderr.

    With `--format json` the last line on stderr is an object with the members `reason`, `message` and `exit_code`,
    except for a plain refusal, which is itself printed in the format asked for.
    """
    given = sys.argv[1:] if arguments is None else arguments
    before = under_way(True)
    try:
        result: Any = ratings.main(arguments, prog_name="ratings", standalone_mode=False)
    except click.ClickException as error:
        told = StringIO()
        error.show(told)
        _print(told.getvalue())
        usage = error.exit_code == click.UsageError.exit_code
        return _stopped(given, "usage", error.format_message(), error.exit_code) if usage else error.exit_code
    except (click.Abort, KeyboardInterrupt):
        reason, message, exit_code = "interrupted", "interrupted", INTERRUPTED
    except Exception as error:
        reason, message, exit_code = describe_failure(error)
        if reason == "no-space" and isinstance(error, OSError) and error.filename is None:  # files name themselves
            message = f"standard output: {error.strerror}; {NO_ROOM}"
        if reason == "bug" and interrupted():  # an import within a command, for one, turns it into another error
            reason, message, exit_code = "interrupted", "interrupted", INTERRUPTED
    else:
        return result if isinstance(result, int) else 0
    finally:
        under_way(before)
    _complain(message)
    return _stopped(given, reason, message, exit_code)


def _stopped(arguments: Sequence[str], reason: str, message: str, exit_code: int) -> int:
    """Say why a command stopped, for readers of JSON; returns the exit code."""
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        from ratings_ledger.cli.output.render import json_text  # only here: most commands do not stop

        _print(json_text({"reason": reason, "message": message, "exit_code": exit_code}) + "\n")
    return exit_code


def _complain(message: str) -> None:
    _print(f"ratings: {message}\n")


def _print(text: str) -> None:
    """Lines to stderr, in which file names, arguments and what a file says cannot affect a terminal."""
    with suppress(OSError):  # if nothing can be told, the exit code still can
        click.echo(escape_unprintable(text, kept="\n\t"), err=True, nl=False)
