"""Ask questions at a terminal before anything is recorded: for one of a few answers, a line, or a key."""

import os
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import click

from ratings_ledger.cli.completion.completions import match_prefix
from ratings_ledger.cli.output import render

LINE_BYTES_MAX = 4_096
CTRL_D = "\x04"


def can_ask() -> bool:
    """Tell whether the program can ask questions: stdin and stderr are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, answers: Sequence[str]) -> str:
    """Return the answer that the user chooses by typing its beginning; ask again after any other line.

    Raises `click.Abort` after Ctrl-C and Ctrl-D, with a note that nothing was recorded.
    """
    choices = ", ".join(answers)
    with _abort_at_end_of_input():
        typed = _read_typed_line(f"{question} [{choices}] ").casefold()
        while len(matches := _match_answers(typed, answers)) != 1:
            typed = _read_typed_line(f"type one of: {choices} ").casefold()
    return matches[0]


def ask_line(prompt: str, known: Sequence[str]) -> str:
    """Return the line that the user types after a prompt.

    If stdout is also a terminal, the tab key completes known words, also after =. Raises `click.Abort`.
    """
    with _abort_at_end_of_input():
        if not sys.stdout.isatty():
            return _read_typed_line(prompt)
        with suppress(ImportError), _complete_words(known), suppress(UnicodeDecodeError):
            return input(render.plain(prompt)).strip()
        return _read_typed_line(prompt)


def ask_key(keys: Mapping[str, str]) -> str:
    """Show the keys with their meanings, and return the key that the user presses. Raises `click.Abort`."""
    choices = "   ".join(f"{key}: {meaning}" for key, meaning in keys.items())
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    with _abort_at_end_of_input():
        try:
            tty.setcbreak(terminal, termios.TCSADRAIN)  # before the prompt is shown, so that no key is lost
            render.echo(f"{choices} ", err=True, nl=False)
            while (key := os.read(terminal, 1).decode(errors="replace").casefold()) not in keys:
                if key in ("", CTRL_D):
                    raise EOFError
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
    render.note(key)
    return key


@contextmanager
def _abort_at_end_of_input() -> Iterator[None]:
    """Raise `click.Abort` after Ctrl-C and Ctrl-D, with a note that nothing was recorded."""
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        render.note("\nnothing was recorded")
        raise click.Abort from None


@contextmanager
def _complete_words(known: Sequence[str]) -> Iterator[None]:
    """Let the tab key complete known words. Raises `ImportError` if Python lacks readline."""
    import readline

    def complete(text: str, number: int) -> str | None:
        matches = match_prefix(known, text)
        return matches[number] if number < len(matches) else None

    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    readline.set_completer_delims("=")
    readline.set_auto_history(False)
    readline.set_completer(complete)
    try:
        yield
    finally:
        readline.set_completer(None)


def _read_typed_line(prompt: str) -> str:
    """Return the line typed after a prompt. Raises `EOFError`."""
    render.echo(prompt, err=True, nl=False)
    if not (line := sys.stdin.buffer.readline(LINE_BYTES_MAX)):
        raise EOFError
    return line.decode(errors="replace").strip()


def _match_answers(typed: str, answers: Sequence[str]) -> list[str]:
    """Return the answer that was typed in full, or the answers that begin with the typed text."""
    exact = [answer for answer in answers if answer.casefold() == typed]
    return exact or [answer for answer in answers if answer.casefold().startswith(typed)]
