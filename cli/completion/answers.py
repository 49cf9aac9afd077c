"""Answer a shell that completes a line: commands and options from a table, names from the file of names.

A shell waits for every answer, so nothing of the program is loaded for it.

    $ _RATINGS_COMPLETE=fish_complete ratings standings elo-ch
    =elo-chess/2
    =elo-chess

A line of an answer is `=` and a word, with its meaning behind a tab if it has one; or `file` or `folder`, for which
the shell lists them. The shells' scripts treat names as data and evaluate nothing in an answer. Words for bash are
quoted, since bash inserts them as they are.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from ratings_ledger.cli.completion.bash import CommandLine, parse_line, quote_word
from ratings_ledger.cli.completion.names import default_ledger, match_prefix, read_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")
HERE = os.path.dirname(__file__)

Word = tuple[str, str]  # with its meaning


class Completions(NamedTuple):
    """The kinds of words that complete a word, the part of the word that stays, and the words that may follow it."""

    kinds: list[str]
    before: str
    words: list[Word]


# by name: what a command is, what completes its arguments, and by option what completes its value, and what it is
Table = dict[str, tuple[str, list[str], dict[str, Word]]]


def is_request(request: str) -> bool:
    """Tell whether the variable requests an answer or a script, as in `zsh_complete` and `zsh_source`."""
    shell, _, what = request.partition("_")
    return shell in SHELLS and what in ("complete", "source")


def answer(request: str, arguments: Sequence[str]) -> int:
    """Print what a shell requests; return the exit code. For bash, the arguments are the line up to the cursor and the
    characters that end a word there; for the others the words of the line, the last of which is to be completed.
    """
    shell, _, what = request.partition("_")
    try:
        text = (
            load_script(shell) if what == "source" else "".join(f"{line}\n" for line in _answer_lines(shell, arguments))
        )
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        sys.stdout.flush()
    except (OSError, ValueError, LookupError):
        return 1  # the shell completes nothing; a message would appear within the typed line
    return 0


def load_script(shell: str) -> str:
    """Return the script by which a shell requests completions. Raises `OSError`."""
    return _read_text(f"ratings.{shell}")


def _answer_lines(shell: str, arguments: Sequence[str]) -> list[str]:
    line = parse_line(arguments[0], arguments[1]) if shell == "bash" else CommandLine([*arguments[:-1]], arguments[-1])
    # fish says what is typed as it stands there, with its quotes
    current = parse_line(f"ratings {line.current}", "").current if shell == "fish" else line.current
    kinds, before, words = complete(line.words, current)
    if kinds in (["file"], ["folder"]):
        return kinds
    meaning = dict(words)
    matches = match_prefix(meaning, current[len(before) :])
    if shell == "bash":
        return [f"={quote_word((before + word)[len(line.fixed_prefix) :], line.quote)}" for word in matches]
    return [f"={before}{word}\t{meaning[word]}" if meaning[word] else f"={before}{word}" for word in matches]


def complete(words: Sequence[str], current: str) -> Completions:
    """Return the completions of the current word behind some words."""
    table = _load_table()
    db, path, arguments_so_far, waiting, dashes = default_ledger(), "ratings", list[str](), "", False
    for word in words:
        options = table[path][2]
        name, equals, value = word.partition("=")
        if waiting:
            db, waiting = word if waiting == "--db" else db, ""
        elif dashes or not word.startswith("-") or word == "-":
            path, arguments_so_far = (
                (inner, arguments_so_far) if (inner := f"{path} {word}") in table else (path, [*arguments_so_far, word])
            )
        elif word == "--":
            dashes = True
        elif equals:
            db = value if name == "--db" else db
        elif options.get(word, ("-", ""))[0] != "-":
            waiting = word
    _, arguments, options = table[path]
    name, equals, _ = current.partition("=")
    if waiting:
        return _complete_kinds(options[waiting][0], db, "", arguments_so_far)
    if current.startswith("-") and not dashes:
        if equals and options.get(name, ("-", ""))[0] != "-":
            return _complete_kinds(options[name][0], db, f"{name}=", arguments_so_far)
        candidates = [
            *((name, meaning) for name, (_, meaning) in options.items()),
            ("--help", "Show this message and exit"),
        ]
        return Completions([], "", candidates)
    if inside := [(one[len(path) + 1 :], told) for one, (told, _, _) in table.items() if one.startswith(f"{path} ")]:
        return Completions([], "", [one for one in inside if " " not in one[0]])
    kinds = _kind_of_argument(arguments, len(arguments_so_far))
    tied = current[: current.rfind("=") + 1] if kinds == "players" else ""
    words_found = _complete_kinds(kinds, db, tied, arguments_so_far)
    return words_found._replace(words=[one for one in words_found.words if dashes or not one[0].startswith("-")])


def _kind_of_argument(arguments: Sequence[str], number: int) -> str:
    """Return which kind of words completes the argument behind a number of others."""
    if arguments[-1:] == ["..."]:
        return arguments[min(number, len(arguments) - 2)]
    return arguments[number] if number < len(arguments) else ""


def _complete_kinds(kinds: str, db: str, before: str, typed: Sequence[str]) -> Completions:
    """Return the words of some kinds, without those that are typed already."""
    all_kinds = kinds.split()
    names = read_names(os.path.expanduser(db)) if any(not kind.startswith("=") for kind in all_kinds) else {}
    words = dict.fromkeys(
        word for kind in all_kinds for word in ([kind[1:]] if kind.startswith("=") else names.get(kind, []))
    )
    return Completions(all_kinds, before, [(word, "") for word in words if word not in typed])


def _load_table() -> Table:
    table: Table = {}
    options: dict[str, Word] = {}
    for line in _read_text("table.tsv").splitlines():
        first, second, third, *fourth = line.split("\t")
        if first:
            options = {}
            table[first] = second, third.split(", ") if third else [], options
        else:
            options[second] = third, fourth[0]
    return table


def _read_text(name: str) -> str:
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()
