"""Build cli/completion/table.tsv, the table of commands and options for completion in a shell.

    COMMAND  HELP    KINDS of each argument, separated by commas; `...` means more like the last
             OPTION  KINDS of its value, `-` if it takes none  HELP

KINDS are kinds of names in the file of names, `file`, `folder`, or `=WORD` for a word that is completed literally. They
are empty for values that cannot be completed.
"""

from collections.abc import Iterable

import click

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.projections.rulesets.registry import rule_names
from ratings_ledger.projections.rulesets.shipped_rulesets import list_systems, shipped_rulesets

# the kinds for each name of a parameter
KINDS = {
    "ladder": "ladders", "ladders": "ladders", "player": "players", "players": "players", "player_id": "players",
    "new_player": "players", "game_id": "ids", "game": "game", "games": "game", "group": "group", "city": "city",
    "league": "league", "season": "season", "rules": "versions", "output": "file",
}  # fmt: skip
_COORDINATES = "=now =published"
_IDS = " ".join(f"={name}" for name in shipped_rulesets())
# the commands in which a name has other kinds, or arguments may have any order
KINDS_BY_COMMAND = {
    "chart": {"names": "players ladders"},
    "diff": {"a": _COORDINATES, "b": _COORDINATES},
    "explain": {
        "name": "ids players ladders", "ladder": "ladders players ids", "before": _COORDINATES, "after": _COORDINATES,
    },
    "history": {"player": "players ladders", "ladder": "ladders players"},
    "init": {"system": " ".join(f"={name}" for name in list_systems())},
    "league": {"name": "league", "ladder": "league ladders"},
    "log": {"subject": "ids players", "types": " ".join(f"={name}" for name in TYPES)},
    "rebuild": {"names": "ladders rulesets"},
    "predict": {"sides": "players", "home": "players"},
    "record": {"game_id": ""},
    "rules": {
        "name": "rulesets versions", "from_shipped": _IDS,
        "rule_id": " ".join(f"={name}" for name in rule_names()),
    },
    "seed": {"games": ""},
}  # fmt: skip
HELP_MAX = 60


def build_completion_table(commands: Iterable[tuple[str, click.Command]]) -> str:
    """Return the table for commands with their full names, such as `ratings rules list`."""
    lines = []
    for path, command in commands:
        arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
        kinds = [find_kinds(path, argument) for argument in arguments]
        kinds += ["..." for argument in arguments[-1:] if argument.nargs < 0]
        lines.append(f"{path}\t{_shorten(command.help)}\t{', '.join(kinds)}\n")
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                kind = "-" if option.is_flag else find_kinds(path, option)
                lines += [f"\t{name}\t{kind}\t{_shorten(option.help)}\n" for name in option.opts]
    return "".join(lines)


def find_kinds(path: str, parameter: click.Parameter) -> str:
    """Return the kinds of completions for a parameter of a command."""
    kinds_of_command, name = KINDS_BY_COMMAND.get(path.partition(" ")[2].partition(" ")[0], {}), str(parameter.name)
    if isinstance(parameter.type, click.Choice):
        return " ".join(f"={choice}" for choice in parameter.type.choices)
    if isinstance(parameter.type, click.Path):
        return "file" if parameter.type.file_okay and name != "folder" else "folder"
    return kinds_of_command.get(name, "file" if name == "db" else KINDS.get(name, ""))


def _shorten(text: str | None) -> str:
    """Return the first sentence of a help text, with at most `HELP_MAX` characters."""
    first = " ".join((text or "").split("\n\n")[0].split()).split(". ")[0].split(":  ")[0].rstrip(".")
    return first if len(first) <= HELP_MAX else first[: HELP_MAX - 1].rsplit(" ", 1)[0] + "…"
