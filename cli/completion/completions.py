"""Answer completion requests of a shell: commands and options from a table, names from the file of names.

A shell waits for every answer, so this module loads hardly anything else of the program.

    $ _RATINGS_COMPLETE=fish_complete ratings standings elo-ch
    =elo-chess/2
    =elo-chess

A line of an answer is `=` and a word, with its meaning after a tab if there is one. The answer `file` or `folder` tells
the shell to complete files or folders itself. The scripts for the shells treat names as data and evaluate nothing in an
answer. Words for bash are quoted, because bash inserts them unchanged.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from ratings_ledger.cli.completion.bash import CommandLine, parse_line, quote_word
from ratings_ledger.cli.completion.stored_names import find_default_ledger, read_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHELLS = ("bash", "zsh", "fish")
PACKAGE_FOLDER = os.path.dirname(__file__)

Word = tuple[str, str]  # the word and its meaning
Option = tuple[str, str]  # the kinds of its value, or - for a flag, and its meaning


class Completions(NamedTuple):
    """The words that complete a typed word: their kinds, the typed text that stays before them, and the words."""

    kinds: list[str]
    kept_text: str
    words: list[Word]


class CommandEntry(NamedTuple):
    """A command in the table: its meaning, the kinds of each argument, and its options by name."""

    meaning: str
    arguments: list[str]
    options: dict[str, Option]


Table = dict[str, CommandEntry]


def is_request(request: str) -> bool:
    """Tell whether the variable requests completions or a script, as `zsh_complete` and `zsh_source` do."""
    shell, _, request_kind = request.partition("_")
    return shell in SHELLS and request_kind in ("complete", "source")


def answer(request: str, arguments: Sequence[str]) -> int:
    """Print the answer to a request; return the exit code.

    For bash, the arguments are the line up to the cursor and bash's word-break characters; for other shells, the words
    of the line; the last word is completed.
    """
    shell, _, request_kind = request.partition("_")
    try:
        if request_kind == "source":
            text = load_script(shell)
        else:
            text = "".join(f"{line}\n" for line in _build_answer_lines(shell, arguments))
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        sys.stdout.flush()
    except (OSError, ValueError, LookupError):
        return 1  # the shell completes nothing; a message would appear within the typed line
    return 0


def load_script(shell: str) -> str:
    """Return the script that sets up completion in a shell. Raises `OSError`."""
    return _read_text(f"ratings.{shell}")


def _build_answer_lines(shell: str, arguments: Sequence[str]) -> list[str]:
    line = parse_line(arguments[0], arguments[1]) if shell == "bash" else CommandLine([*arguments[:-1]], arguments[-1])
    # fish passes the word with its quotes
    current = parse_line(f"ratings {line.current}", "").current if shell == "fish" else line.current
    kinds, kept_text, words = complete(line.words, current)
    if kinds in (["file"], ["folder"]):
        return kinds
    meanings = dict(words)
    matches = match_prefix(meanings, current[len(kept_text) :])
    if shell == "bash":
        return [f"={quote_word((kept_text + word)[len(line.fixed_prefix) :], line.quote)}" for word in matches]
    return [f"={kept_text}{word}\t{meanings[word]}" if meanings[word] else f"={kept_text}{word}" for word in matches]


def complete(words: Sequence[str], current: str) -> Completions:
    """Return the completions of the current word after the earlier words of the line."""
    table = _load_table()
    db, path, typed_arguments = find_default_ledger(), "ratings", list[str]()
    pending_option, is_after_dashes = "", False
    for word in words:
        options = table[path].options
        name, equals, value = word.partition("=")
        if pending_option:
            db, pending_option = word if pending_option == "--db" else db, ""
        elif is_after_dashes or not word.startswith("-") or word == "-":
            if f"{path} {word}" in table:
                path = f"{path} {word}"
            else:
                typed_arguments.append(word)
        elif word == "--":
            is_after_dashes = True
        elif equals:
            db = value if name == "--db" else db
        elif options.get(word, ("-", ""))[0] != "-":
            pending_option = word
    _, arguments, options = table[path]
    name, equals, _ = current.partition("=")
    if pending_option:
        return _complete_kinds(options[pending_option][0], db, "", typed_arguments)
    if current.startswith("-") and not is_after_dashes:
        if equals and options.get(name, ("-", ""))[0] != "-":
            return _complete_kinds(options[name][0], db, f"{name}=", typed_arguments)
        candidates = [
            *((name, meaning) for name, (_, meaning) in options.items()),
            ("--help", "Show this message and exit"),
        ]
        return Completions([], "", candidates)
    prefix = f"{path} "
    inner_commands = [
        (command.removeprefix(prefix), entry.meaning) for command, entry in table.items() if command.startswith(prefix)
    ]
    if inner_commands:
        return Completions([], "", [(name, meaning) for name, meaning in inner_commands if " " not in name])
    kinds = _find_argument_kinds(arguments, len(typed_arguments))
    tied_players = current[: current.rfind("=") + 1] if kinds == "players" else ""
    completions = _complete_kinds(kinds, db, tied_players, typed_arguments)
    allowed = [(word, meaning) for word, meaning in completions.words if is_after_dashes or not word.startswith("-")]
    return completions._replace(words=allowed)


def match_prefix(words: Iterable[str], start: str) -> list[str]:
    """Return the words with this prefix; if there are none, match without regard to case.

    >>> match_prefix(["mira", "Max", "ben"], "m"), match_prefix(["Max", "ben"], "m")
    (['mira'], ['Max'])
    """
    folded, length = start.casefold(), len(start)
    all_words = [*words]
    exact = [word for word in all_words if word.startswith(start)]
    return exact or [word for word in all_words if word[:length].casefold() == folded]


def _find_argument_kinds(arguments: Sequence[str], index: int) -> str:
    """Return the kinds of words that complete the argument at an index."""
    if arguments[-1:] == ["..."]:
        return arguments[min(index, len(arguments) - 2)]
    return arguments[index] if index < len(arguments) else ""


def _complete_kinds(kinds: str, db: str, kept_text: str, typed_words: Sequence[str]) -> Completions:
    """Return the words of these kinds, without the words that are already typed.

    A kind that begins with `=` is a word itself, such as `=json`; other kinds are those of names, files and folders.
    """
    all_kinds = kinds.split()
    names = read_names(os.path.expanduser(db)) if any(not kind.startswith("=") for kind in all_kinds) else {}
    words = dict.fromkeys(
        word for kind in all_kinds for word in ([kind[1:]] if kind.startswith("=") else names.get(kind, []))
    )
    return Completions(all_kinds, kept_text, [(word, "") for word in words if word not in typed_words])


def _load_table() -> Table:
    table: Table = {}
    options: dict[str, Option] = {}
    for line in _read_text("table.tsv").splitlines():
        command, *cells = line.split("\t")
        if command:
            meaning, argument_kinds = cells
            options = {}
            table[command] = CommandEntry(meaning, argument_kinds.split(", ") if argument_kinds else [], options)
        else:
            option, value_kinds, meaning = cells
            options[option] = value_kinds, meaning
    return table


def _read_text(name: str) -> str:
    with open(os.path.join(PACKAGE_FOLDER, name), encoding="utf-8") as file:
        return file.read()
