"""Where a question's refusals become those of a command: a wrong argument, something unknown, a rule that failed."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from cli.output import render
from ledger.errors import BadArgument, RuleFailed, Unknown

# the arguments of questions that are options of commands
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("as_of", "known_at", "rules", "since")}


@contextmanager
def answering() -> Iterator[None]:
    """Raises `click.UsageError` for a bad argument, and `click.ClickException` for the unknown and for failed rules."""
    try:
        yield
    except BadArgument as problem:
        if problem.argument in OPTIONS:
            raise click.BadParameter(str(problem), param_hint=OPTIONS[problem.argument]) from None
        raise click.UsageError(str(problem)) from None
    except Unknown as problem:
        raise click.ClickException(f"{problem.reason}: {problem}") from None
    except RuleFailed as problem:
        raise click.ClickException(str(problem)) from None


def print_note(text: str) -> None:
    """Print what is odd about an answer."""
    render.note(f"note: {text}")
