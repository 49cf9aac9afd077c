"""Ask somebody at a terminal: for one of a few answers, for a line, for a key; before anything is recorded."""

import os
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import click

from ratings_ledger.cli.completion.names import beginning_so
from ratings_ledger.cli.output import render

LINE_BYTES_MAX = 4_096
CTRL_D = "\x04"


def can_ask() -> bool:
    """Tell whether somebody can be asked: they type at a terminal, and see there what is asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, answers: Sequence[str]) -> str:
    """Return the answer that somebody chooses by its beginning; anything else, an empty line too, is asked again.

    Raises `click.Abort` after Ctrl-C and Ctrl-D; nothing may have been recorded before.
    """
    listed = ", ".join(answers)
    with _until_the_end():
        chosen = _line(f"{question} [{listed}] ").casefold()
        while len(found := _meant(chosen, answers)) != 1:
            chosen = _line(f"one of: {listed} ").casefold()
    return found[0]


def ask_line(prompt: str, known: Sequence[str]) -> str:
    """Return what somebody types behind a prompt. If the terminal is for the results, too, the tabulator key completes
    words that are known, also behind =. Raises as `ask` does.
    """
    with _until_the_end():
        if not sys.stdout.isatty():
            return _line(prompt)
        with suppress(ImportError), _completing(known), suppress(UnicodeDecodeError):
            return input(render.plain(prompt)).strip()
        return _line(prompt)


def ask_key(keys: Mapping[str, str]) -> str:
    """Return which of some keys somebody presses; their meanings are shown. Raises as `ask` does."""
    listed = "   ".join(f"{key}: {meaning}" for key, meaning in keys.items())
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    with _until_the_end():
        try:
            tty.setcbreak(terminal, termios.TCSADRAIN)  # before anybody can answer, or the key would be lost
            render.echo(f"{listed} ", err=True, nl=False)
            while (pressed := os.read(terminal, 1).decode(errors="replace").casefold()) not in keys:
                if pressed in ("", CTRL_D):
                    raise EOFError
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    render.note(pressed)
    return pressed


@contextmanager
def _until_the_end() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        render.note("\nnothing was recorded")
        raise click.Abort from None


@contextmanager
def _completing(known: Sequence[str]) -> Iterator[None]:
    """Let the tabulator key complete known words. Raises `ImportError` where Python has no readline."""
    import readline

    def complete(text: str, number: int) -> str | None:
        found = beginning_so(known, text)
        return found[number] if number < len(found) else None

    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    readline.set_completer_delims("=")
    readline.set_auto_history(False)
    readline.set_completer(complete)
    try:
        yield
    finally:
        readline.set_completer(None)


def _line(prompt: str) -> str:
    """Return what is typed behind a prompt. Raises `EOFError`."""
    render.echo(prompt, err=True, nl=False)
    if not (line := sys.stdin.buffer.readline(LINE_BYTES_MAX)):
        raise EOFError
    return line.decode(errors="replace").strip()


def _meant(chosen: str, answers: Sequence[str]) -> list[str]:
    """Return the answer that is called so, or those that begin so."""
    whole = [answer for answer in answers if answer.casefold() == chosen]
    return whole or [answer for answer in answers if answer.casefold().startswith(chosen)]
