"""Build JSON Schemas for the plain data that `model_dump` returns for each type of result.

>>> from ratings_ledger.projections.queries.results import ReplayFailure
>>> build_schemas([ReplayFailure])["ReplayFailure"]["properties"]["ladder"]
{'type': ['string', 'null']}
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import Absent, Result, Rows, list_members

Schema = dict[str, Any]
_NUMBER = {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"}
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    NoneType: {"type": "null"},
    Any: {},
    float: _NUMBER,
    datetime: {"type": "string", "format": "date-time"},
    Fraction: {"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$"},
}
# coordinates become these members; the last one is optional
_COORDINATES: Schema = {
    "as_of": {"type": ["string", "null"], "format": "date-time"},
    "known_at": {"type": "integer", "minimum": 0},
    "rules": {"type": ["string", "null"]},
    "left_out": {"type": "array", "items": {"type": "integer"}},
}


def build_schemas(kinds: Iterable[type[Result]]) -> dict[str, Schema]:
    """Return the schemas of result types, and of all types that they contain, by name."""
    schemas: dict[str, Schema] = {}
    for kind in kinds:
        _add_schema(kind, schemas)
    return dict(sorted(schemas.items()))


def _add_schema(kind: type[Any], schemas: dict[str, Schema]) -> Schema:
    """Add the schema of a result type or named tuple to `schemas` if it is missing; return a reference to it."""
    name = kind.__name__
    if name not in schemas:
        schemas[name] = {}  # ends the recursion for a type that contains itself
        description = " ".join((getdoc(kind) or "").partition("\n\n")[0].split())
        if issubclass(kind, Rows):
            schema = _build_hint_schema(get_type_hints(kind)["rows"], schemas)
        else:
            schema = _build_object_schema(kind, schemas)
        schemas[name] |= {"description": description} | schema
    return {"$ref": f"#/components/schemas/{name}"}


def _build_object_schema(kind: type[Any], schemas: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind)
    if not issubclass(kind, Result):
        return {
            "type": "object",
            "required": list(hints),
            "properties": {name: _build_hint_schema(hint, schemas) for name, hint in hints.items()},
        }
    properties: Schema = {}
    required: list[str] = []
    has_free_members = False
    for name, json_name, is_exact, is_inline, _ in list_members(kind):
        hint = hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]
        if hint is Coordinates:
            properties |= _COORDINATES
            required += ["as_of", "known_at", "rules"]
        elif is_inline and isinstance(hint, type) and issubclass(hint, Result):
            inner = _build_object_schema(hint, schemas)
            properties |= inner["properties"]
            required += inner["required"]
        elif is_inline:
            has_free_members = True
        else:
            member_schemas = {json_name: _build_hint_schema(hint, schemas)}
            if is_exact:
                member_schemas[f"{json_name}_decimal"] = _combine(
                    [_PLAIN[NoneType] if choice is NoneType else _NUMBER for choice in _list_choices(hint)]
                )
            properties |= member_schemas
            required += [] if Absent in get_args(hint) else list(member_schemas)
    schema: Schema = {"type": "object", "required": list(dict.fromkeys(required)), "properties": properties}
    return {**schema, "additionalProperties": True} if has_free_members else schema


def _build_hint_schema(hint: Any, schemas: dict[str, Schema]) -> Schema:
    """Return the schema of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _combine([_build_hint_schema(choice, schemas) for choice in _list_choices(hint)])
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (tuple, list):
        return {"type": "array", "items": _build_hint_schema(arguments[0], schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _build_hint_schema(arguments[1], schemas) or True}
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _add_schema(hint, schemas)


def _list_choices(hint: Any) -> list[Any]:
    """Return the alternatives of a union without `Absent`, or the only type."""
    return [choice for choice in get_args(hint) or [hint] if choice is not Absent]


def _combine(schemas: list[Schema]) -> Schema:
    """Return a schema that accepts any of the schemas; for `X | None`, the short form with a list of types."""
    if len(schemas) == 1:
        return dict(schemas[0])
    first, *others = schemas
    if others == [_PLAIN[NoneType]] and isinstance(first.get("type"), str) and "enum" not in first:
        return {**first, "type": [first["type"], "null"]}
    return {"anyOf": schemas}
