"""Commands and groups of commands; what a question refuses becomes a message of the command that asked it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import BadArgument, RuleFailed, RulesetRefused, Unknown
from ratings_ledger.ledger.rejections import did_you_mean

# the arguments of questions that are options of commands
OPTIONS: dict[str | None, str | None] = {
    name: f"--{name.replace('_', '-')}" for name in ("as_of", "known_at", "rules", "since", "to")
}
OPTIONS |= {"types": "'--type'", "coordinates": None}
# what to add where a rule has failed
NOTHING_LOST = "every game is recorded all the same; once the rule works again"


class OneOf(click.Choice[str]):
    """The type of a value that is one of a few words."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__([*words])

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is wrong with another word, and which was probably meant."""
        told = super().get_invalid_choice_message(value, ctx).removesuffix(".")
        return f"{told}{did_you_mean(str(value), self.choices) or '.'}"


class Command(click.Command):
    """A command that may ask the ledger anything."""

    def invoke(self, context: click.Context) -> Any:
        """Raises `click.UsageError` for a bad argument, `click.ClickException` for the unknown and for failed rules."""
        try:
            return super().invoke(context)
        except BadArgument as problem:
            hint = OPTIONS.get(problem.argument, "")
            # coordinates that an argument holds have no option of their own
            if hint is None or any(hint.strip("'") in parameter.opts for parameter in self.params):
                raise click.BadParameter(str(problem), context, param_hint=hint) from None
            raise click.UsageError(str(problem), context) from None
        except Unknown as problem:
            told = str(problem) if problem.reason == Unknown.reason else f"{problem.reason}: {problem}"
            raise click.ClickException(told) from None
        except RuleFailed as problem:
            raise click.ClickException(f"{problem}; {NOTHING_LOST}, so does the ladder") from None
        except RulesetRefused as problem:
            raise click.ClickException(str(problem)) from None


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)


def print_note(text: str) -> None:
    """Print what is odd about an answer."""
    render.note(f"note: {text}")
