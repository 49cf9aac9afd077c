"""Asking somebody at a terminal to choose among a few answers, before anything is recorded."""

import sys
from collections.abc import Sequence

import click

from cli.output import render

LINE_BYTES_MAX = 4_096


def can_ask() -> bool:
    """Whether somebody can be asked: they type at a terminal, and see there what is asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, answers: Sequence[str]) -> str:
    """The answer that somebody chooses by its beginning; anything else, an empty line too, is asked again.

    Raises `click.Abort` after Ctrl-C and Ctrl-D; nothing may have been recorded before.
    """
    listed = ", ".join(answers)
    try:
        chosen = _line(f"{question} [{listed}] ")
        while len(found := _meant(chosen, answers)) != 1:
            chosen = _line(f"one of: {listed} ")
    except (KeyboardInterrupt, EOFError):
        render.note("\nnothing was recorded")
        raise click.Abort from None
    return found[0]


def _line(prompt: str) -> str:
    """What is typed behind a prompt. Raises `EOFError`."""
    render.echo(prompt, err=True, nl=False)
    if not (line := sys.stdin.buffer.readline(LINE_BYTES_MAX)):
        raise EOFError
    return line.decode(errors="replace").strip().casefold()


def _meant(chosen: str, answers: Sequence[str]) -> list[str]:
    """The answer that is called so, or those that begin so."""
    whole = [answer for answer in answers if answer.casefold() == chosen]
    return whole or [answer for answer in answers if answer.casefold().startswith(chosen)]
