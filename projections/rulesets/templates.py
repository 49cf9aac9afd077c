"""Rulesets as TOML: a published one written out, and a commented file to start your own from.

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

WIDTH = 34  # where comments begin


def as_toml(data: dict[str, Any]) -> str:
    """Return a ruleset's data as the text of an equivalent file, in the order of the documentation."""
    fields = {name: data[name] for name in Ruleset.model_fields if name in data}
    if "effective_from" in fields:
        fields["effective_from"] = date.fromisoformat(fields["effective_from"])
    return "\n".join(_section("", fields)).lstrip() + "\n"


def _section(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield a table and the tables in it, each under its heading."""
    if name:
        yield f"\n[{name}]"
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    yield from (f"{_key(key)} = {_written(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        yield from _section(f"{name}.{_key(key)}".lstrip("."), value)


def template(rule: Rule, game: str, time_zone: str) -> str:
    """Return a ruleset with this rule for a game, with every key and what it means; optional keys are commented out.

    Its values are those of a shipped ruleset with the rule. If there is none, the required values are left to be filled
    in.
    """
    example = _example(rule, game)
    scope, partition, params = (example.get(table, {}) for table in ("scope", "partition", "params"))
    possible = find_kinds(rule)
    kinds = scope.get("kind", ["placing"] if "placing" in possible else possible[:1])
    lines = [
        "# A ruleset: which rule scores which games, with which constants, on which ladders.",
        "# Check it: ratings rules check FILE. What it would change: ratings whatif FILE.",
        "# Publish it: ratings rules publish FILE. Every key is described in docs/rulesets.md.",
        "",
        _line("id", f"house-{game}", "the first part of its ladders' names"),
        _line("version", "1", "a change of a published ruleset is a new version"),
        _line("rule", rule.id, "its parameters: docs/rules.md"),
        _line("effective_from", date(1900, 1, 1), "games from this day on; without it only by --rules"),
        _line("time_zone", time_zone, "of its days, months and years"),
        _line("freeze", "league-start", "a league keeps the version in force when it began", needed=False),
        _line("source", "the members' meeting of May 2025", "where it comes from", needed=False),
        "",
        "[scope]",
        _line("game", [game], "the names of the games that it scores"),
        _line("kind", kinds, f"of {', '.join(GAME_TYPES)}", needed=kinds != ["placing"]),
        _line("players_min", scope.get("players_min", 2), "seats", needed="players_min" in scope),
        _line("players_max", scope.get("players_max", 6), "seats; no limit without it", needed="players_max" in scope),
        *_excluded(scope),
        "",
        "[partition]",
        *_partition(partition),
        "",
        "[params]",
        *_params(rule, params),
        "",
        _commented("# [assumed]", "values without a source, each with the reason"),
        '# start = "a convention"',
    ]
    return "\n".join(lines) + "\n"


def _example(rule: Rule, game: str) -> dict[str, Any]:
    """Return a shipped ruleset with this rule, for this game where it may be any."""
    texts = [text for ruleset in shipped_rulesets().values() for text in ruleset.fill_in(game)]
    for text in texts:
        data, _ = parse_toml(text)
        if data is not None and data["rule"] == rule.id:
            return data
    return {}


def _excluded(scope: dict[str, Any]) -> Iterator[str]:
    for name, usual, what in (
        ("exclude_status", ["abandoned", "substitute"], "players who ended like this are left out"),
        ("exclude_group", ["friendly"], "games of these groups are not scored"),
        ("exclude_accounts", ["free"], "players with this account are left out"),
    ):
        assert name in Scope.model_fields
        yield _line(name, scope.get(name, usual), what, needed=name in scope)


def _partition(partition: dict[str, Any]) -> Iterator[str]:
    parts = "group, city, league, season, month, year, players"
    assert Partition.model_fields.keys() == {"by", "bands"}
    yield _line("by", partition.get("by", ["players"]), f"of {parts}; one ladder without it", needed="by" in partition)
    bands = partition.get("bands", ["all", "2", "3-4"])
    yield _line("bands", bands, "numbers of players", needed="bands" in partition)


def _params(rule: Rule, example: dict[str, Any]) -> Iterator[str]:
    needed = rule.params.model_json_schema().get("required", ())
    tables = {name: value for name, value in example.items() if isinstance(value, dict)}
    for name, field in rule.params.model_fields.items():
        values = " or ".join(values_of(rule, name)).replace("`", "")
        if name in example and name not in tables:
            yield _line(name, example[name], values)
        elif name in needed and name not in tables:
            yield _commented(f"# {name} =", f"needed: {values}")
        elif name not in tables:
            default = "..." if field.default is None else _written(field.default)
            yield _commented(f"# {name} = {default}", values)
    for name, table in tables.items():
        yield from _section(f"params.{name}", table)


def _line(name: str, value: Any, comment: str, *, needed: bool = True) -> str:
    return _commented(f"{'' if needed else '# '}{name} = {_written(value)}", comment)


def _commented(text: str, comment: str) -> str:
    return f"{text.ljust(WIDTH)}  # {comment}"


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).partition(" = ")[0]


def _written(value: Any) -> str:
    """Return a value as TOML writes it, a list on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if value == {}:
        return "{}"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_written(part)}' for name, part in value.items())} }}"
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()


def values_of(rule: Rule, name: str) -> list[str]:
    """Return the kinds of values a rule's parameter takes, in words."""
    schema = rule.params.model_json_schema()["properties"][name]
    choices = schema.get("anyOf", [schema])
    return [_values(choice, len(choices) > 1) for choice in choices if choice.get("type") != "null"]


def _values(schema: dict[str, Any], among_others: bool) -> str:
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "integer":
        low, high = schema.get("minimum"), schema.get("maximum")
        limits = "" if low is None else f" from {low:,}"
        return f"a whole number{limits}" + ("" if high is None else f" to {high:,}")
    text = 'a fraction in quotes (`"64/3"`)' if among_others else "a text"
    kinds = {"string": text, "boolean": "`true`, `false`", "object": "a table", "array": "a list"}
    # a table of its own is a reference to its model
    return kinds.get(schema.get("type", "object"), "a value")
