"""Profiles: how a club's tables are read, kept in a file of TOML for the next one.

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
from ratings_ledger.ledger.intake.forfeits import FORFEITS
from ratings_ledger.ledger.intake.tables.aliases import Alias, alias_of
from ratings_ledger.ledger.intake.tables.columns import GAME_COLUMNS, TableOptions, is_number
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.sides import OTHERS
from ratings_ledger.ledger.intake.tables.meanings import read_column
from ratings_ledger.ledger.rejections import Refused, Rejection, did_you_mean, quote

BYTES_MAX = 4_000_000
ABOVE = "# How tables are read: ratings import FILE --profile {}\n"


class TableProfile(NamedTuple):
    """What a profile says of tables, and whom its aliases mean."""

    options: TableOptions
    aliases: list[Alias]


def check_encoding(name: str) -> None:
    """Raises `Refused` (bad-value) for what names no encoding."""
    try:
        "".encode(name)
    except (LookupError, UnicodeError, ValueError):
        raise Refused("bad-value", f"{quote(name)} is no encoding, such as cp1252, cp1250 or utf-16") from None


def _one_of(words: Iterable[str]) -> Callable[[str], None]:
    known = [*words]

    def check(text: str) -> None:
        if text not in known:
            raise Refused("bad-value", f"{quote(text)} is none of {', '.join(known)}{did_you_mean(text, known)}")

    return check


def _some_text(text: str) -> None:
    if not text.strip():
        raise Refused("bad-value", "it is empty; leave it out")


def _column(text: str) -> None:
    if text:
        read_column(text)


# by name in the file: the member of the options, and what a text has to be; tables of texts have that of their values,
# and several texts that of each
_TEXTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "sheet": ("sheet", _some_text), "layout": ("layout", _one_of(LAYOUTS)), "zone": ("zone", load_zone),
    "dates": ("dates", _one_of(ORDERS)), "encoding": ("encoding", check_encoding),
    "others": ("others", _one_of(OTHERS)), "forfeits": ("forfeits", _one_of(FORFEITS)),
}  # fmt: skip
_TABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "columns": ("columns", _column), "set": ("fixed", _some_text), "aliases": ("aliases", _some_text),
}  # fmt: skip
_SEVERAL = ("ties", "partners")
MEMBERS = [*_TEXTS, *_SEVERAL, *_TABLES]


def read_profile(file: str) -> tuple[TableProfile, list[Rejection]]:
    """Return a profile, and everything that is wrong with it. Raises `OSError`."""
    with open(file, "rb") as opened:
        content = opened.read(BYTES_MAX + 1)
    try:
        text, given = _toml(content)
    except Refused as problem:
        return TableProfile(TableOptions(), []), [problem.rejection(file)]
    found, aliases, problems = dict[str, Any](), list[Alias](), list[Rejection]()

    def refuse(name: str, told: str, *path: str) -> None:
        line = _line_of(text, path[-1] if path else name)
        problems.append(Rejection("bad-profile", f"{'.'.join([name, *path])}: {told}", file, line))

    for name, value in given.items():
        if name in _TEXTS:
            if told := _wrong(value, _TEXTS[name][1]):
                refuse(name, told)
            found[_TEXTS[name][0]] = value
        elif name in _SEVERAL:
            texts = value if isinstance(value, list) and value else [value]
            if told := next(filter(None, (_wrong(text, _some_text) for text in texts)), ""):
                refuse(name, told)
            found[name] = tuple(texts)
        elif name not in _TABLES:
            refuse(name, f"no profile has this{did_you_mean(name, MEMBERS)} (known: {', '.join(MEMBERS)})")
        elif not isinstance(value, dict):
            refuse(name, f'a table belongs here, such as [{name}] with lines NAME = "VALUE"')
        else:
            for key, one in value.items():
                if name == "set" and key not in GAME_COLUMNS and not is_number(key):
                    refuse(name, f"it is none of {', '.join(GAME_COLUMNS)}{did_you_mean(key, GAME_COLUMNS)}", key)
                elif told := _wrong(one, _TABLES[name][1]):
                    refuse(name, told, key)
                elif name == "aliases":
                    try:
                        aliases.append(alias_of(key, one, file, _line_of(text, key)))
                    except Refused as problem:
                        refuse(name, problem.message, key)
            if name == "columns" and not problems:
                value = {theirs: read_column(ours) if ours else "" for theirs, ours in value.items()}
            found[_TABLES[name][0]] = value
    if problems:
        return TableProfile(TableOptions(), []), sorted(problems, key=lambda problem: problem.line or 0)
    return TableProfile(TableOptions(**found), aliases), []


def _toml(content: bytes) -> tuple[str, dict[str, Any]]:
    """Return the text of a file, and what it holds. Raises `Refused` (bad-profile)."""
    import tomllib  # only here, as few imports read one

    if len(content) > BYTES_MAX:
        raise Refused("bad-profile", f"a profile has at most {BYTES_MAX:,} bytes")
    try:
        text = content.decode("utf-8-sig")
        # dotted names make tables within tables, for which a profile has no use
        for number, line in enumerate(text.splitlines(), 1):
            if line.count(".") > 1_000 or line.count("[") > 1_000 or line.count("{") > 1_000:
                raise Refused("bad-profile", "no profile has such a line", number)
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise Refused("bad-profile", f"byte {error.start + 1:,} is not UTF-8; save the file as UTF-8") from None
    except RecursionError:
        raise Refused("bad-profile", "it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        where = int(found[1]) if found else text.count("\n") + 1
        raise Refused("bad-profile", f'it is not TOML: {error}; write NAME = "VALUE"', where) from None
    except Refused:
        raise
    except ValueError as error:  # from a number that is too long
        raise Refused("bad-profile", f"it is not TOML: {error}") from None


def _line_of(text: str, name: str) -> int | None:
    """Return the line where a name stands before its value, as far as that is easily seen."""
    match = re.search(rf"""^\s*(?:\[\s*)?["']?{re.escape(name)}["']?\s*[\].=]""", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.end()) + 1


def _wrong(value: Any, check: Callable[[str], Any]) -> str:
    """Return what is wrong with a value, or nothing."""
    if not isinstance(value, str):
        return f"a text belongs here, not {quote(value)}; write it in quotation marks"
    try:
        check(value)
    except Refused as problem:
        return problem.message
    return ""


def together(profile: TableOptions, given: TableOptions) -> TableOptions:
    """Return what a profile and options say; where both do, the options count."""
    said = {name: value for name, value in given._asdict().items() if value}
    theirs = {name.casefold() for name in given.renamed}
    columns = {name: ours for name, ours in profile.columns.items() if name.casefold() not in theirs}
    return profile._replace(**said, columns=columns)._replace(fixed={**profile.fixed, **given.fixed})


def as_profile(options: TableOptions, file: str) -> str:
    """Options as a profile: what is to be said again about the next table."""
    import tomli_w  # only here, as few imports write one

    texts = {name: getattr(options, member) for name, (member, _) in _TEXTS.items()}
    several = {name: [*joints] for name in _SEVERAL if (joints := getattr(options, name))}
    texts |= {name: joints[0] if len(joints) == 1 else joints for name, joints in several.items()}
    columns = {**options.columns, **options.renamed}
    tables = {"columns": columns, "set": options.fixed, "aliases": dict(options.aliases)}
    found = {name: value for name, value in {**texts, **tables}.items() if value}
    return ABOVE.format(file) + tomli_w.dumps(found)


def is_up_to_date(file: str, text: str) -> bool:
    """Tell whether a profile says what it would say with this text; then its own order and its comments are kept."""
    with suppress(Refused), open(file, "rb") as opened:
        return _toml(opened.read(BYTES_MAX + 1))[1] == _toml(text.encode())[1]
    return False
