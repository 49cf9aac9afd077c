"""`ratings`: the group of all commands, loaded one by one when they are called, and what failures look like."""

import os
import sys
from importlib import import_module
from typing import Any

import click

from ledger.errors import LedgerError
from ledger.rejections import Refused, did_you_mean, shown

COMMANDS = {
    "init": "cli.setup:init",
    "zone": "cli.setup:zone_",
    "import": "cli.intake:import_",
    "record": "cli.intake:record",
    "correct": "cli.corrections:correct",
    "void": "cli.corrections:void",
    "reinstate": "cli.corrections:reinstate",
    "adjust": "cli.adjusting:adjust",
    "player": "cli.corrections:player",
    "games": "cli.journal:games",
    "log": "cli.journal:log",
    "export": "cli.exporting:export",
    "ladders": "cli.lists:ladders_",
    "lists": "cli.lists:lists_",
    "standings": "cli.reading:standings_",
    "history": "cli.reading:history_",
    "explain": "cli.explaining:explain_",
    "statistics": "cli.lists:statistics_",
    "publish": "cli.publishing:publish",
    "diff": "cli.differing:diff",
    "report": "cli.reporting:report",
    "whatif": "cli.whatif:whatif",
    "league": "cli.leagues:league",
    "clock": "cli.clocks:clock",
    "books": "cli.reading:books_",
    "rules": "cli.rules:rules",
    "rebuild": "cli.nightly:rebuild_",
    "verify": "cli.nightly:verify",
    "status": "cli.setup:status",
    "doctor": "cli.setup:doctor",
    "demo": "cli.demo:demo",
}


class Commands(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
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
            # the reader has seen enough, which is no failure; the interpreter must not complain at exit either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--db",
    metavar="URL",
    default=lambda: os.environ.get("RATINGS_DB") or "sqlite:///ratings.db",
    help="The ledger: a file path or a database URL.  [default: RATINGS_DB, else sqlite:///ratings.db]",
)
@click.version_option(package_name="ratings-ledger", prog_name="ratings")
@click.pass_context
def ratings(context: click.Context, db: str) -> None:
    """Keep the results of games as immutable events; replay ratings and lists from them, exactly."""
    context.obj = db


def run(arguments: list[str] | None = None) -> None:
    """The program. Exit codes: 0 done, 1 a finding or refusal, 2 usage or configuration, 3 store unreachable."""
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
    """Give /dev/null to whoever starts the program with a closed standard stream, before a ledger gets its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def invoke(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; whatever goes wrong is one message on stderr."""
    try:
        result: Any = ratings.main(arguments, prog_name="ratings", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        return 130
    except LedgerError as error:
        _complain(str(error))
        return error.exit_code
    except Refused as problem:
        _complain(f"{problem.code}: {problem.message}")
        return 2
    except OSError as error:
        _complain(f"{error.filename or 'input or output'}: {error.strerror or error}")
        return 3
    except MemoryError:
        _complain("there is not enough memory for this; nothing was changed by what was under way")
        return 3
    except Exception as error:
        cause = f"{_place(error)}: {type(error).__name__}: {error}"
        _complain(f"this is a bug in ratings-ledger, unless `ratings verify` finds the ledger damaged: {cause}")
        return 1
    return result if isinstance(result, int) else 0


def _complain(message: str) -> None:
    click.echo(f"ratings: {message}", err=True)


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
