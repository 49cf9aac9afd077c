"""Implement `completion`: print the script that completes commands, options and names in a shell."""

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.completion.completions import SHELLS, load_script
from ratings_ledger.cli.output import render


@command()
@click.argument("shell", type=OneOf(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and names in a shell.

    \b
        eval "$(ratings completion bash)"         in ~/.bashrc
        eval "$(ratings completion zsh)"          in ~/.zshrc, after compinit
        ratings completion fish | source          in ~/.config/fish/config.fish

    The script completes the names that were in the ledger when the last command ran.
    """
    render.echo(load_script(shell), nl=False)
