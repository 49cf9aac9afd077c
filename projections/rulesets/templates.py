"""Format rulesets as TOML: a published ruleset, or a commented template for a new one. A template has lines such as:

[params]
k_total = 32                       # a whole number or a fraction in quotes ("64/3")
# min_games = 0                    # a whole number from 0 to 1,000,000
"""

from collections.abc import Iterator
from datetime import date
from typing import Any

import tomli_w

from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.types import Partition, Ruleset, Scope
from ratings_ledger.projections.contract import Rule
from ratings_ledger.projections.rulesets.shipped_rulesets import shipped_rulesets
from ratings_ledger.projections.rulesets.versions import find_kinds, parse_toml

COMMENT_COLUMN = 34


def format_toml(data: dict[str, Any]) -> str:
    """Format a ruleset's data as an equivalent file, with the keys in the order that docs/rulesets.md lists them."""
    fields = {name: data[name] for name in Ruleset.model_fields if name in data}
    if "effective_from" in fields:
        fields["effective_from"] = date.fromisoformat(fields["effective_from"])
    return "\n".join(_format_table("", fields)).lstrip() + "\n"


def _format_table(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table and its subtables, each under its heading."""
    if name:
        yield f"\n[{name}]"
    subtables = {key: value for key, value in table.items() if isinstance(value, dict)}
    yield from (f"{_quote_key(key)} = {_format_value(value)}" for key, value in table.items() if key not in subtables)
    for key, value in subtables.items():
        yield from _format_table(f"{name}.{_quote_key(key)}".lstrip("."), value)


def build_template(rule: Rule, game: str, time_zone: str) -> str:
    """Return a template ruleset for a game under this rule, with a comment for each key.

    The values come from a shipped ruleset with the rule. Optional keys that it lacks are commented out. Without such a
    ruleset, required values are left blank.
    """
    example = _find_example(rule, game)
    scope, partition, params = (example.get(table, {}) for table in ("scope", "partition", "params"))
    supported_kinds = find_kinds(rule)
    scope_kinds = scope.get("kind", ["placing"] if "placing" in supported_kinds else supported_kinds[:1])
    lines = [
        "# A ruleset: which rule scores which games, with which constants, on which ladders.",
        "# Check it: ratings rules check FILE. What it would change: ratings whatif FILE.",
        "# Publish it: ratings rules publish FILE. Every key is described in docs/rulesets.md.",
        "",
        _format_line("id", f"house-{game}", "the first part of its ladders' names"),
        _format_line("version", "1", "a change of a published ruleset is a new version"),
        _format_line("rule", rule.id, "its parameters: docs/rules.md"),
        _format_line(
            "effective_from",
            date(1900, 1, 1),
            "scores games from this day on; if left out, only --rules uses this version",
        ),
        _format_line("time_zone", time_zone, "of its days, months and years"),
        _format_optional("freeze", {}, "league-start", "a league keeps the version in force when it began"),
        _format_optional("source", {}, "the members' meeting of May 2025", "where it comes from"),
        "",
        "[scope]",
        _format_line("game", [game], "the names of the games that it scores"),
        _format_line("kind", scope_kinds, f"any of {', '.join(GAME_TYPES)}", commented_out=scope_kinds == ["placing"]),
        _format_optional("players_min", scope, 2, "seats"),
        _format_optional("players_max", scope, 6, "seats; no limit without it"),
        *_format_exclusions(scope),
        "",
        "[partition]",
        *_format_partition(partition),
        "",
        "[params]",
        *_format_params(rule, params),
        "",
        _add_comment("# [assumed]", "values without a source, each with the reason"),
        '# start = "a convention"',
    ]
    return "\n".join(lines) + "\n"


def _find_example(rule: Rule, game: str) -> dict[str, Any]:
    """Return a shipped ruleset that uses this rule; rulesets for any game are filled in with `game`."""
    texts = [text for ruleset in shipped_rulesets().values() for text in ruleset.fill_in(game)]
    for text in texts:
        data, _ = parse_toml(text)
        if data is not None and data["rule"] == rule.id:
            return data
    return {}


def _format_exclusions(scope: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the keys that exclude players and games."""
    for name, example, comment in (
        ("exclude_status", ["abandoned", "substitute"], "players with this final status are excluded"),
        ("exclude_group", ["friendly"], "games of these groups are not scored"),
        ("exclude_accounts", ["free"], "players with this account are excluded"),
    ):
        assert name in Scope.model_fields
        yield _format_optional(name, scope, example, comment)


def _format_partition(partition: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table `partition`."""
    parts = "group, city, league, season, month, year, players"
    assert Partition.model_fields.keys() == {"by", "bands"}
    yield _format_optional("by", partition, ["players"], f"any of {parts}; if left out, one ladder")
    yield _format_optional("bands", partition, ["all", "2", "3-4"], "numbers of players")


def _format_params(rule: Rule, example: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the rule's parameters, with the values of an example."""
    required = rule.params.model_json_schema().get("required", ())
    tables = {name: value for name, value in example.items() if isinstance(value, dict)}
    for name, field in rule.params.model_fields.items():
        values = " or ".join(describe_values(rule, name)).replace("`", "")
        if name in example and name not in tables:
            yield _format_line(name, example[name], values)
        elif name in required and name not in tables:
            yield _add_comment(f"# {name} =", f"needed: {values}")
        elif name not in tables:
            default = "..." if field.default is None else _format_value(field.default)
            yield _add_comment(f"# {name} = {default}", values)
    for name, table in tables.items():
        yield from _format_table(f"params.{name}", table)


def _format_optional(name: str, table: dict[str, Any], example: Any, comment: str) -> str:
    """Format the line of a key of a table; a key that the table lacks is commented out, with an example."""
    return _format_line(name, table.get(name, example), comment, commented_out=name not in table)


def _format_line(name: str, value: Any, comment: str, *, commented_out: bool = False) -> str:
    """Format a key with its value and a comment."""
    return _add_comment(f"{'# ' if commented_out else ''}{name} = {_format_value(value)}", comment)


def _add_comment(text: str, comment: str) -> str:
    """Return a line with a comment in the column of comments."""
    return f"{text.ljust(COMMENT_COLUMN)}  # {comment}"


def _quote_key(name: str) -> str:
    """Return a key in TOML, quoted if necessary."""
    return tomli_w.dumps({name: 0}).partition(" = ")[0]


def _format_value(value: Any) -> str:
    """Format a value in TOML, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if value == {}:
        return "{}"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_quote_key(name)} = {_format_value(part)}' for name, part in value.items())} }}"
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()


def describe_values(rule: Rule, name: str) -> list[str]:
    """Describe the kinds of values that a rule's parameter accepts."""
    schema = rule.params.model_json_schema()["properties"][name]
    choices = schema.get("anyOf", [schema])
    return [_describe_choice(choice, len(choices) > 1) for choice in choices if choice.get("type") != "null"]


def _describe_choice(schema: dict[str, Any], is_one_of_several: bool) -> str:
    """Describe one kind of values, given its JSON Schema."""
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "integer":
        low, high = schema.get("minimum"), schema.get("maximum")
        limits = "" if low is None else f" from {low:,}"
        return f"a whole number{limits}" + ("" if high is None else f" to {high:,}")
    text = 'a fraction in quotes (`"64/3"`)' if is_one_of_several else "text"
    kinds = {"string": text, "boolean": "`true`, `false`", "object": "a table", "array": "a list"}
    # the schema of a table is a reference to a model, without a type
    return kinds.get(schema.get("type", "object"), "a value")
