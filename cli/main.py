"""`ratings`: the group of all commands, each loaded when it is called, and what failures look like."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from itertools import pairwise
from typing import Any

import click

from cli.failures import failure_of
from cli.interrupts import INTERRUPTED, interrupted, under_way
from ledger.rejections import did_you_mean, escaped, shown

COMMANDS = {
    "init": "cli.commands.init:init",
    "zone": "cli.commands.init:zone_",
    "import": "cli.commands.import_:import_",
    "record": "cli.commands.record:record",
    "correct": "cli.commands.correct:correct",
    "void": "cli.commands.correct:void",
    "reinstate": "cli.commands.correct:reinstate",
    "adjust": "cli.commands.adjust:adjust",
    "player": "cli.commands.correct:player",
    "games": "cli.commands.log:games",
    "log": "cli.commands.log:log",
    "export": "cli.commands.export:export",
    "ladders": "cli.commands.lists:ladders_",
    "lists": "cli.commands.lists:lists_",
    "standings": "cli.commands.standings:standings_",
    "history": "cli.commands.standings:history_",
    "explain": "cli.commands.explain:explain_",
    "statistics": "cli.commands.lists:statistics_",
    "publish": "cli.commands.publish:publish",
    "diff": "cli.commands.diff:diff",
    "report": "cli.commands.report:report",
    "whatif": "cli.commands.whatif:whatif",
    "league": "cli.commands.league:league",
    "clock": "cli.commands.clock:clock",
    "books": "cli.commands.standings:books_",
    "rules": "cli.commands.rules:rules",
    "rebuild": "cli.commands.rebuild:rebuild_",
    "verify": "cli.commands.verify:verify",
    "nightly": "cli.commands.nightly:nightly",
    "backup": "cli.commands.backup:backup",
    "status": "cli.commands.status:status",
    "doctor": "cli.commands.doctor:doctor",
    "grants": "cli.commands.grants:grants",
    "upgrade": "cli.commands.upgrade:upgrade",
    "demo": "cli.commands.demo:demo",
}


class Commands(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        before = under_way(False)
        try:
            command = getattr(import_module(module), attribute)
        finally:
            under_way(before)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"no command is called {shown(name)}{did_you_mean(name, COMMANDS)}", context)
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

    from ledger.store.schema import SCHEMA_REVISION

    click.echo(f"ratings, version {version('ratings-ledger')}, schema {SCHEMA_REVISION}")
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--db",
    metavar="URL",
    default=lambda: os.environ.get("RATINGS_DB") or "sqlite:///ratings.db",
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
            _complain(f"the argument {shown(argument)} is not valid UTF-8")
            sys.exit(2)
    sys.exit(invoke(arguments))


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
        reason, message, exit_code = failure_of(error)
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
        from cli.output.render import json_text  # only here: most commands do not stop

        _print(json_text({"reason": reason, "message": message, "exit_code": exit_code}) + "\n")
    return exit_code


def _complain(message: str) -> None:
    _print(f"ratings: {message}\n")


def _print(text: str) -> None:
    """Lines to stderr, in which file names, arguments and what a file says cannot affect a terminal."""
    click.echo(escaped(text, kept="\n\t"), err=True, nl=False)
