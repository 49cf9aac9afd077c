"""Read and write profiles: options for reading a club's tables, kept in a TOML file for the next import.

sheet = "Results"
dates = "dmy"
columns = {Spieler = "player", Bemerkung = ""}
set = {game = "catan"}
aliases = {ana = "anna"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.intake.forfeits import FORFEIT_CHOICES
from ratings_ledger.ledger.intake.tables.aliases import Alias, parse_alias
from ratings_ledger.ledger.intake.tables.columns import GAME_COLUMNS, TableOptions, is_number
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.sides import OTHERS_CHOICES
from ratings_ledger.ledger.intake.tables.meanings import parse_meaning
from ratings_ledger.ledger.rejections import Refused, Rejection, did_you_mean, quote

BYTES_MAX = 4_000_000
FIRST_LINE = "# How tables are read: ratings import FILE --profile {}\n"


class TableProfile(NamedTuple):
    """The content of a profile: options of tables, and aliases."""

    options: TableOptions
    aliases: list[Alias]


def check_encoding(name: str) -> None:
    """Raise `Refused` (bad-value) if a name is not an encoding of texts."""
    try:
        "".encode(name)
    except (LookupError, UnicodeError, ValueError):
        raise Refused("bad-value", f"{quote(name)} is not an encoding such as cp1252, cp1250 or utf-16") from None


def _check_choice(words: Iterable[str]) -> Callable[[str], None]:
    known = [*words]

    def check(text: str) -> None:
        if text not in known:
            message = f"{quote(text)} is not one of {', '.join(known)}{did_you_mean(text, known)}"
            raise Refused("bad-value", message)

    return check


def _check_not_empty(text: str) -> None:
    if not text.strip():
        raise Refused("bad-value", "the value is empty; leave out the member")


def _check_column(text: str) -> None:
    if text:
        parse_meaning(text)


# by member of a profile: the member of `TableOptions`, and a function that checks each text
_TEXTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "sheet": ("sheet", _check_not_empty),
    "layout": ("layout", _check_choice(LAYOUTS)),
    "zone": ("zone", load_zone),
    "dates": ("dates", _check_choice(ORDERS)),
    "encoding": ("encoding", check_encoding),
    "others": ("others", _check_choice(OTHERS_CHOICES)),
    "forfeits": ("forfeits", _check_choice(FORFEIT_CHOICES)),
}
_TABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "columns": ("columns", _check_column),
    "set": ("fixed", _check_not_empty),
    "aliases": ("aliases", _check_not_empty),
}
_LISTS = ("ties", "partners")
MEMBERS = [*_TEXTS, *_LISTS, *_TABLES]


def read_profile(file: str) -> tuple[TableProfile, list[Rejection]]:
    """Read a profile; return it and all of its errors. With errors, the profile is empty. Raises `OSError`."""
    with open(file, "rb") as opened:
        content = opened.read(BYTES_MAX + 1)
    try:
        text, members = _parse_toml(content)
    except Refused as problem:
        return TableProfile(TableOptions(), []), [problem.to_rejection(file)]
    options, aliases, problems = dict[str, Any](), list[Alias](), list[Rejection]()

    def refuse(name: str, message: str, *path: str) -> None:
        line = _find_line(text, path[-1] if path else name)
        problems.append(Rejection("bad-profile", f"{'.'.join([name, *path])}: {message}", file, line))

    for name, value in members.items():
        if name in _TEXTS:
            if message := _describe_error(value, _TEXTS[name][1]):
                refuse(name, message)
            options[_TEXTS[name][0]] = value
        elif name in _LISTS:
            texts = value if isinstance(value, list) and value else [value]
            if message := next(filter(None, (_describe_error(text, _check_not_empty) for text in texts)), ""):
                refuse(name, message)
            options[name] = tuple(texts)
        elif name not in _TABLES:
            refuse(name, f"unknown member{did_you_mean(name, MEMBERS)} (known: {', '.join(MEMBERS)})")
        elif not isinstance(value, dict):
            refuse(name, f'{quote(value)} is not a table; write [{name}] and lines NAME = "VALUE"')
        else:
            for key, text_value in value.items():
                if name == "set" and key not in GAME_COLUMNS and not is_number(key):
                    hint = did_you_mean(key, GAME_COLUMNS)
                    refuse(name, f"unknown member{hint} (known: {', '.join(GAME_COLUMNS)})", key)
                elif message := _describe_error(text_value, _TABLES[name][1]):
                    refuse(name, message, key)
                elif name == "aliases":
                    try:
                        aliases.append(parse_alias(key, text_value, file, _find_line(text, key)))
                    except Refused as problem:
                        refuse(name, problem.message, key)
            if name == "columns" and not problems:
                value = {column: parse_meaning(ours) if ours else "" for column, ours in value.items()}
            options[_TABLES[name][0]] = value
    if problems:
        return TableProfile(TableOptions(), []), sorted(problems, key=lambda problem: problem.line or 0)
    return TableProfile(TableOptions(**options), aliases), []


def _parse_toml(content: bytes) -> tuple[str, dict[str, Any]]:
    """Parse a TOML file; return its text and its members. Raises `Refused` (bad-profile)."""
    import tomllib  # imported here, because few runs of `ratings import` read a profile

    if len(content) > BYTES_MAX:
        raise Refused("bad-profile", f"the file has more than {BYTES_MAX:,} bytes; shorten it")
    try:
        text = content.decode("utf-8-sig")
        # dots and brackets nest tables; no profile needs a thousand levels
        for number, line in enumerate(text.splitlines(), 1):
            if line.count(".") > 1_000 or line.count("[") > 1_000 or line.count("{") > 1_000:
                raise Refused("bad-profile", "the line has too many dots or brackets; shorten it", number)
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise Refused("bad-profile", f"byte {error.start + 1:,} is not UTF-8; save the file as UTF-8") from None
    except RecursionError:
        raise Refused("bad-profile", 'tables are nested too deeply; write only tables of NAME = "VALUE"') from None
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        line_number = int(match[1]) if match else text.count("\n") + 1
        raise Refused("bad-profile", f'the file is not TOML: {error}; write NAME = "VALUE"', line_number) from None
    except Refused:
        raise
    except ValueError:
        raise Refused("bad-profile", 'a number has too many digits; write only strings, as in NAME = "VALUE"') from None


def _find_line(text: str, name: str) -> int | None:
    """Find the line in which a member or table with a name begins, by a simple search; return None if there is none."""
    match = re.search(rf"""^\s*(?:\[\s*)?["']?{re.escape(name)}["']?\s*[\].=]""", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.end()) + 1


def _describe_error(value: Any, check: Callable[[str], Any]) -> str:
    """Describe the error of a value; return an empty text if the value is valid."""
    if not isinstance(value, str):
        return f"{quote(value)} is not a string; write it in quotation marks"
    try:
        check(value)
    except Refused as problem:
        return problem.message
    return ""


def merge_options(profile: TableOptions, options: TableOptions) -> TableOptions:
    """Merge a profile with options; if both set a value, the options take precedence."""
    set_options = {name: value for name, value in options._asdict().items() if value}
    renamed_columns = {name.casefold() for name in options.renamed}
    columns = {name: ours for name, ours in profile.columns.items() if name.casefold() not in renamed_columns}
    return profile._replace(**set_options, columns=columns)._replace(fixed={**profile.fixed, **options.fixed})


def format_profile(options: TableOptions, file: str) -> str:
    """Format options as a profile for the next table."""
    import tomli_w  # imported here, because few runs of `ratings import` write a profile

    texts = {name: getattr(options, member) for name, (member, _) in _TEXTS.items()}
    lists = {name: [*separators] for name in _LISTS if (separators := getattr(options, name))}
    texts |= {name: separators[0] if len(separators) == 1 else separators for name, separators in lists.items()}
    columns = {**options.columns, **options.renamed}
    tables = {"columns": columns, "set": options.fixed, "aliases": dict(options.aliases)}
    members = {name: value for name, value in {**texts, **tables}.items() if value}
    return FIRST_LINE.format(file) + tomli_w.dumps(members)


def has_same_members(file: str, text: str) -> bool:
    """Tell whether a profile has the same members as a text; if so, callers keep the file with its comments."""
    with suppress(Refused), open(file, "rb") as opened:
        return _parse_toml(opened.read(BYTES_MAX + 1))[1] == _parse_toml(text.encode())[1]
    return False
