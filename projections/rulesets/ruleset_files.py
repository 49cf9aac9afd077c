"""Read ruleset files, TOML or JSON, and report their problems by line and key."""

import json
from typing import Any

from ratings_ledger.ledger.events.canonical import drop_nulls
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.rulesets.versions import (
    CHARACTERS_MAX,
    NESTED_TOO_DEEPLY,
    RulesetProblem,
    is_nested_too_deeply,
    parse_toml,
    read_ruleset,
    read_toml,
)

# A character takes at most 4 bytes in UTF-8.
BYTES_MAX = 4 * CHARACTERS_MAX


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
