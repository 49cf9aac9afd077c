"""What a shell is told that completes a line: commands and options from a table, names from the file of names.

A shell waits for every answer, so nothing of the program is loaded for it.

    $ _RATINGS_COMPLETE=fish_complete ratings standings elo-ch
    =elo-chess/2
    =elo-chess

A line of an answer is `=` and a word, with its meaning behind a tab if it has one; or `file`, or `folder`: the shell
knows which there are. Names are data for the scripts of the shells, which evaluate nothing of an answer. Words for bash
are quoted, since bash inserts them as they are.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from ratings_ledger.cli.completion.bash import Line, quoted, typed_line
from ratings_ledger.cli.completion.names import beginning_so, kept_names, named_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")
HERE = os.path.dirname(__file__)

Word = tuple[str, str]  # and what it means


class Found(NamedTuple):
    """The kinds of what completes a word, the part of the word that stays, and the words that may follow it."""

    kinds: list[str]
    before: str
    words: list[Word]


# by name: what a command is, what completes its arguments, and by option what completes its value, and what it is
Table = dict[str, tuple[str, list[str], dict[str, Word]]]


def is_asked(asked: str) -> bool:
    """Tell whether the variable asks for an answer or a script, as in `zsh_complete` and `zsh_source`."""
    shell, _, what = asked.partition("_")
    return shell in SHELLS and what in ("complete", "source")


def answer(asked: str, arguments: Sequence[str]) -> int:
    """Print what a shell asks for; returns the exit code. Of bash the arguments are the line up to the cursor and the
    characters that end a word there; of the others the words of the line, the last of which is to be completed.
    """
    shell, _, what = asked.partition("_")
    try:
        text = script(shell) if what == "source" else "".join(f"{line}\n" for line in _lines(shell, arguments))
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        sys.stdout.flush()
    except (OSError, ValueError, LookupError):
        return 1  # the shell completes nothing; a message would stand in the middle of the line that is typed
    return 0


def script(shell: str) -> str:
    """Return the script by which a shell asks. Raises `OSError`."""
    return _text(f"ratings.{shell}")


def _lines(shell: str, arguments: Sequence[str]) -> list[str]:
    line = typed_line(arguments[0], arguments[1]) if shell == "bash" else Line([*arguments[:-1]], arguments[-1])
    # fish says what is typed as it stands there, with its quotes
    current = typed_line(f"ratings {line.current}", "").current if shell == "fish" else line.current
    kinds, before, words = completions(line.words, current)
    if kinds in (["file"], ["folder"]):
        return kinds
    meaning = dict(words)
    found = beginning_so(meaning, current[len(before) :])
    if shell == "bash":
        return [f"={quoted((before + word)[len(line.settled) :], line.quote)}" for word in found]
    return [f"={before}{word}\t{meaning[word]}" if meaning[word] else f"={before}{word}" for word in found]


def completions(words: Sequence[str], current: str) -> Found:
    """Return what completes the current word behind some words."""
    table = _table()
    db, path, given, waiting, dashes = named_ledger(), "ratings", list[str](), "", False
    for word in words:
        options = table[path][2]
        name, equals, value = word.partition("=")
        if waiting:
            db, waiting = word if waiting == "--db" else db, ""
        elif dashes or not word.startswith("-") or word == "-":
            path, given = (inner, given) if (inner := f"{path} {word}") in table else (path, [*given, word])
        elif word == "--":
            dashes = True
        elif equals:
            db = value if name == "--db" else db
        elif options.get(word, ("-", ""))[0] != "-":
            waiting = word
    _, arguments, options = table[path]
    name, equals, _ = current.partition("=")
    if waiting:
        return _of_kinds(options[waiting][0], db, "", given)
    if current.startswith("-") and not dashes:
        if equals and options.get(name, ("-", ""))[0] != "-":
            return _of_kinds(options[name][0], db, f"{name}=", given)
        every = [*((name, told) for name, (_, told) in options.items()), ("--help", "Show this message and exit")]
        return Found([], "", every)
    if inside := [(one[len(path) + 1 :], told) for one, (told, _, _) in table.items() if one.startswith(f"{path} ")]:
        return Found([], "", [one for one in inside if " " not in one[0]])
    kinds = _kinds_of(arguments, len(given))
    tied = current[: current.rfind("=") + 1] if kinds == "players" else ""
    found = _of_kinds(kinds, db, tied, given)
    return found._replace(words=[one for one in found.words if dashes or not one[0].startswith("-")])


def _kinds_of(arguments: Sequence[str], number: int) -> str:
    """Return what completes the argument behind a number of others."""
    if arguments[-1:] == ["..."]:
        return arguments[min(number, len(arguments) - 2)]
    return arguments[number] if number < len(arguments) else ""


def _of_kinds(kinds: str, db: str, before: str, given: Sequence[str]) -> Found:
    """Return the words of some kinds, without those that are given."""
    every = kinds.split()
    names = kept_names(os.path.expanduser(db)) if any(not kind.startswith("=") for kind in every) else {}
    found = dict.fromkeys(
        word for kind in every for word in ([kind[1:]] if kind.startswith("=") else names.get(kind, []))
    )
    return Found(every, before, [(word, "") for word in found if word not in given])


def _table() -> Table:
    found: Table = {}
    options: dict[str, Word] = {}
    for line in _text("table.tsv").splitlines():
        first, second, third, *fourth = line.split("\t")
        if first:
            options = {}
            found[first] = second, third.split(", ") if third else [], options
        else:
            options[second] = third, fourth[0]
    return found


def _text(name: str) -> str:
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()
