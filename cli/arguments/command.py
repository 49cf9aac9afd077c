"""Define the base classes of commands, which report a failed query in terms of the command's own options."""

import shlex
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

import click

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import BadArgument, RuleFailed, RulesetRefused, Unknown
from ratings_ledger.ledger.rejections import did_you_mean, find_closest, quote

# the option of a command that sets each argument of a query
OPTION_BY_ARGUMENT: dict[str | None, str | None] = {
    name: f"--{name.replace('_', '-')}" for name in ("as_of", "known_at", "rules", "since", "to", "names")
}
OPTION_BY_ARGUMENT |= {"types": "--type", "coordinates": None}
# follows a message about a failed rule
NO_GAME_LOST = "no game is lost"


class OneOf(click.Choice[str]):
    """The type of an option that accepts only certain words."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__([*words])

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the message about a word that is not accepted, with the closest accepted word."""
        message = super().get_invalid_choice_message(value, ctx).removesuffix(".")
        return f"{message}{did_you_mean(str(value), self.choices) or '.'}"


def _parse_words(
    parse: Callable[[click.Context, list[str]], list[str]], context: click.Context, words: list[str]
) -> list[str]:
    """Parse the words after a command; return the words that no parameter took.

    Raises `click.UsageError`; for a misplaced --db its message gives the corrected command.
    """
    typed_words = [*words]
    try:
        return parse(context, words)
    except click.NoSuchOption as problem:
        if problem.option_name != "--db":
            raise
        index = next(number for number, word in enumerate(typed_words) if word.partition("=")[0] == "--db")
        has_equals_sign = typed_words[index] != "--db"
        value_end = index + (1 if has_equals_sign else 2)
        db = (
            typed_words[index].removeprefix("--db=")
            if has_equals_sign
            else " ".join(typed_words[index + 1 : value_end])
        )
        remaining_words = [*typed_words[:index], *typed_words[value_end:]]
        name, _, path = context.command_path.partition(" ")
        corrected = shlex.join([name, "--db", db or "URL", *path.split(), *remaining_words])
        raise click.UsageError(f"--db must come before the command: {corrected}", context) from None


class Command(click.Command):
    """A command whose messages about failed queries name its own options."""

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the words after the command. Raises `click.UsageError`."""
        return _parse_words(self._parse_known, context, words)

    def _parse_known(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse words as click does, but raise `click.NoSuchOption` even if unknown options are ignored.

        A command ignores them to accept negative numbers.
        """
        if context.ignore_unknown_options and "--" not in words:
            values, extra_words, _ = self.make_parser(context).parse_args([*words])
            arguments = [values[argument.name] for argument in self.params if isinstance(argument, click.Argument)]
            for word in chain(extra_words, *(value if isinstance(value, tuple) else [value] for value in arguments)):
                if isinstance(word, str) and word.startswith("--"):
                    name = word.partition("=")[0]
                    close = find_closest(name, (option for parameter in self.params for option in parameter.opts))
                    raise click.NoSuchOption(name, possibilities=close and [close], ctx=context)
        return super().parse_args(context, words)

    def invoke(self, context: click.Context) -> Any:
        """Run the command.

        Raises `click.UsageError` for a bad argument, `click.ClickException` for unknown names, failed rules and invalid
        rulesets.
        """
        try:
            return super().invoke(context)
        except BadArgument as problem:
            hint = OPTION_BY_ARGUMENT.get(problem.argument, "")
            # coordinates inside an argument have no separate option
            if hint is None or any(hint in parameter.opts for parameter in self.params):
                raise click.BadParameter(str(problem), context, param_hint=None if hint is None else [hint]) from None
            raise click.UsageError(str(problem), context) from None
        except Unknown as problem:
            message = str(problem) if problem.reason == Unknown.reason else f"{problem.reason}: {problem}"
            raise click.ClickException(message) from None
        except RuleFailed as problem:
            raise click.ClickException(
                f"{problem}; {NO_GAME_LOST}, and the ladder works again once the rule does"
            ) from None
        except RulesetRefused as problem:
            raise click.ClickException(str(problem)) from None


class Group(click.Group):
    """A group of commands of the class `Command`."""

    command_class = Command

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the words after the group. Raises `click.UsageError`."""
        return _parse_words(super().parse_args, context, words)

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command, and the words after it. Raises `click.UsageError`."""
        name = words[0]
        if name not in self.commands and not name.startswith("-"):
            hint = did_you_mean(name, self.commands) or f"; its commands are {', '.join(self.commands)}"
            raise click.UsageError(f"{context.command_path} has no command {quote(name)}{hint}", context)
        return super().resolve_command(context, words)


command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)


def print_note(text: str) -> None:
    """Print a note on stderr."""
    render.note(f"note: {text}")
