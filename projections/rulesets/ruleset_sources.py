"""Read rulesets from TOML and JSON files, and from the other forms that programs pass.

Programs pass a `Ruleset`, a dictionary, TOML text, the name of a file, or that of a shipped ruleset. Problems of a file
are reported by line and key.
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import drop_nulls
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped_texts
from ratings_ledger.projections.rulesets.versions import (
    CHARACTERS_MAX,
    NESTED_TOO_DEEPLY,
    RulesetProblem,
    is_nested_too_deeply,
    parse_toml,
    read_ruleset,
    read_toml,
)

RulesetSource = Ruleset | Mapping[str, object] | str | os.PathLike[str]
FILE_SUFFIXES = (".toml", ".json")
# A character takes at most 4 bytes in UTF-8.
BYTES_MAX = 4 * CHARACTERS_MAX


class SourcedRuleset(NamedTuple):
    """A ruleset that a caller passed, and whether it is a shipped one."""

    ruleset: Ruleset
    is_shipped: bool


def read_sources(sources: Iterable[RulesetSource], zone: str) -> list[SourcedRuleset]:
    """Return the rulesets that a caller passes. A shipped ruleset contributes one for each of its versions.

    Args:
        sources: the rulesets. Text that ends in `.toml` or `.json` names a file, other text with a line break or a `=`
            is TOML, and any other text names a shipped ruleset. A template is named with the game to rate: `elo-chess`.
        zone: the time zone for shipped rulesets that leave it open.

    Raises:
        BadArgument: (`rulesets`) a ruleset has problems, which the message lists, or no shipped ruleset has this name.
        Refused: (bad-slug) a game's name is not valid.
    """
    if isinstance(sources, str | bytes | os.PathLike | Mapping | Ruleset) or not isinstance(sources, Iterable):
        message = f"rulesets must be a list, such as ['elo-chess'], not {type(sources).__name__}"
        raise BadArgument(message, "rulesets")
    try:
        return [ruleset for source in sources for ruleset in read_source(source, zone)]
    except BadArgument as problem:
        raise BadArgument(str(problem), "rulesets") from None


def read_source(source: RulesetSource, zone: str) -> list[SourcedRuleset]:
    """Read one source of `read_sources`. A shipped ruleset contributes one ruleset for each of its versions."""
    if isinstance(source, Ruleset):
        return [_require_valid(*read_ruleset(_dump_ruleset(source)), source.name)]
    if isinstance(source, Mapping):
        if wrong := [key for key in source if not isinstance(key, str)]:
            raise BadArgument(f"the keys of a ruleset must be strings, not {type(wrong[0]).__name__}", "ruleset")
        return [_require_valid(*read_ruleset(dict(source)), "")]
    if isinstance(source, str) and ("\n" in source or "=" in source) and not source.endswith(FILE_SUFFIXES):
        return [_require_valid(*read_toml(source), "")]
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(FILE_SUFFIXES)):
        return [_read_path(os.fspath(source))]
    if isinstance(source, str):
        try:
            texts = find_shipped_texts(source, zone)
        except BadArgument as problem:
            raise BadArgument(str(problem), "ruleset") from None
        return [_require_valid(*read_toml(text), source)._replace(is_shipped=True) for text in texts]
    forms = "a Ruleset, a dictionary, TOML text, a file name or the name of a shipped ruleset"
    raise BadArgument(f"a ruleset must be {forms}, not {type(source).__name__}", "ruleset")


def _dump_ruleset(ruleset: Ruleset) -> dict[str, Any]:
    return ruleset.model_dump(exclude_unset=True, exclude_none=True)


def _read_path(path: str) -> SourcedRuleset:
    try:
        return _require_valid(*read_file(path), path)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadArgument(f"{path} cannot be read: {reason}", "ruleset") from None


def _require_valid(ruleset: Ruleset | None, problems: Iterable[RulesetProblem], name: str) -> SourcedRuleset:
    if ruleset is not None:
        return SourcedRuleset(ruleset, is_shipped=False)
    message = "; ".join(f"{problem.key}: {problem.message}" if problem.key else problem.message for problem in problems)
    raise BadArgument(f"{name}: {message}" if name else message, "ruleset")


def read_file(name: str) -> tuple[Ruleset | None, list[RulesetProblem]]:
    """Return the ruleset in a file (TOML or JSON), or all problems of the file."""
    text, problems = _read_text(name)
    if text is None or not name.endswith(".json"):
        return (None, problems) if text is None else read_toml(text)
    data, problems = _parse(name, text)
    return (None, problems) if data is None else read_ruleset(data)


def read_tables(name: str) -> tuple[dict[str, Any] | None, list[RulesetProblem]]:
    """Return the tables of a ruleset file, unchecked, or the problems that prevent reading it."""
    text, problems = _read_text(name)
    return (None, problems) if text is None else _parse(name, text)


def _read_text(name: str) -> tuple[str | None, list[RulesetProblem]]:
    try:
        with open(name, "rb") as file:
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            return None, [
                RulesetProblem("", f"a ruleset has at most {CHARACTERS_MAX:,} characters; this file has more")
            ]
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        message = f"not UTF-8: {error.reason} at byte {error.start + 1}; save the file as UTF-8"
        return None, [RulesetProblem("", message)]


def _parse(name: str, text: str) -> tuple[dict[str, Any] | None, list[RulesetProblem]]:
    if not name.endswith(".json"):
        return parse_toml(text)
    if len(text) > CHARACTERS_MAX:
        return None, [
            RulesetProblem("", f"the text has {len(text):,} characters; a ruleset has at most {CHARACTERS_MAX:,}")
        ]
    try:
        data = json.loads(text, object_pairs_hook=drop_nulls)
    except Refused as problem:
        return None, [RulesetProblem("", problem.message)]
    except ValueError as error:
        return None, [RulesetProblem("", f"not JSON: {error}")]
    except RecursionError:
        return None, [NESTED_TOO_DEEPLY]
    if not isinstance(data, dict):
        return None, [RulesetProblem("", f"a ruleset file must be a JSON object {{ ... }}, not {quote(text[:40])}")]
    return (None, [NESTED_TOO_DEEPLY]) if is_nested_too_deeply(data) else (data, [])
