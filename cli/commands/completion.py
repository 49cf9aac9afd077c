"""`completion`: the script by which a shell completes commands, options and names."""

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.completion.answers import SHELLS, script
from ratings_ledger.cli.output import render


@command()
@click.argument("shell", type=OneOf(SHELLS))
def completion(shell: str) -> None:
    """Print the script by which a shell completes commands, options and names.

    \b
        eval "$(ratings completion bash)"         in ~/.bashrc
        eval "$(ratings completion zsh)"          in ~/.zshrc, after compinit
        ratings completion fish | source          in ~/.config/fish/config.fish

    The names are those that the last command knew which read or wrote the ledger.
    """
    render.echo(script(shell), nl=False)
