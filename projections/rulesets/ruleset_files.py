"""Read ruleset files, TOML or JSON, and report their problems by line and key."""

import json
from typing import Any

from ratings_ledger.ledger.events.canonical import drop_nulls
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.rulesets.versions import (
    CHARACTERS_MAX,
    NESTED,
    RulesetProblem,
    is_nested_too_deeply,
    parse_toml,
    read_ruleset,
    read_toml,
)

# The most bytes that this many characters take in UTF-8.
BYTES_MAX = 4 * CHARACTERS_MAX


def read_file(name: str) -> tuple[Ruleset | None, list[RulesetProblem]]:
    """Return the ruleset in a file (TOML or JSON), or all its problems."""
    text, problems = _read_text(name)
    if text is None or not name.endswith(".json"):
        return (None, problems) if text is None else read_toml(text)
    data, problems = _parse(name, text)
    return (None, problems) if data is None else read_ruleset(data)


def read_tables(name: str) -> tuple[dict[str, Any] | None, list[RulesetProblem]]:
    """Return the tables of a ruleset file, unchecked, or why it cannot be read."""
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
        return None, [RulesetProblem("", f"not UTF-8: {error.reason} at byte {error.start + 1}")]


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
        return None, [NESTED]
    if not isinstance(data, dict):
        return None, [RulesetProblem("", "not a JSON object")]
    return (None, [NESTED]) if is_nested_too_deeply(data) else (data, [])
