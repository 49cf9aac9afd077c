"""JSON Schemas of the plain data that `model_dump` gives for every kind of result.

shapes_of([Failed])["Failed"]["properties"]["ladder"]        {"type": ["string", "null"]}
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import Absent, Result, Rows, members

Shape = dict[str, Any]
_NUMBER = {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"}
_PLAIN: dict[Any, Shape] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    NoneType: {"type": "null"},
    Any: {},
    float: _NUMBER,
    datetime: {"type": "string", "format": "date-time"},
    Fraction: {"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$"},
}
# the members that coordinates are, of which the last may be absent
_COORDINATES: Shape = {
    "as_of": {"type": ["string", "null"], "format": "date-time"},
    "known_at": {"type": "integer", "minimum": 0},
    "rules": {"type": ["string", "null"]},
    "left_out": {"type": "array", "items": {"type": "integer"}},
}


def shapes_of(kinds: Iterable[type[Result]]) -> dict[str, Shape]:
    """Return the shapes of some kinds of results, and of all that are in them, by name."""
    found: dict[str, Shape] = {}
    for kind in kinds:
        _named(kind, found)
    return dict(sorted(found.items()))


def _named(kind: type[Any], found: dict[str, Shape]) -> Shape:
    """Return a reference to the shape of a kind of result, or of a tuple with names, which is added where it is
    missing.
    """
    name = kind.__name__
    if name not in found:
        found[name] = {}  # some hold their own kind
        told = " ".join((getdoc(kind) or "").partition("\n\n")[0].split())
        found[name] |= {"description": told} | (
            _of_hint(get_type_hints(kind)["rows"], found) if issubclass(kind, Rows) else _object(kind, found)
        )
    return {"$ref": f"#/components/schemas/{name}"}


def _object(kind: type[Any], found: dict[str, Shape]) -> Shape:
    hints = get_type_hints(kind)
    if not issubclass(kind, Result):
        return {
            "type": "object",
            "required": list(hints),
            "properties": {name: _of_hint(hint, found) for name, hint in hints.items()},
        }
    properties: Shape = {}
    required: list[str] = []
    others = False
    for name, told, is_exact, is_spread, _ in members(kind):
        hint = hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]
        if hint is Coordinates:
            properties |= _COORDINATES
            required += ["as_of", "known_at", "rules"]
        elif is_spread and isinstance(hint, type) and issubclass(hint, Result):
            inner = _object(hint, found)
            properties |= inner["properties"]
            required += inner["required"]
        elif is_spread:
            others = True
        else:
            there = {told: _of_hint(hint, found)}
            if is_exact:
                there[f"{told}_decimal"] = _either(
                    [_PLAIN[NoneType] if one is NoneType else _NUMBER for one in _choices(hint)]
                )
            properties |= there
            required += [] if Absent in get_args(hint) else list(there)
    shape: Shape = {"type": "object", "required": list(dict.fromkeys(required)), "properties": properties}
    return {**shape, "additionalProperties": True} if others else shape


def _of_hint(hint: Any, found: dict[str, Shape]) -> Shape:
    """Return the shape of what has a type."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _either([_of_hint(one, found) for one in _choices(hint)])
    if origin is Literal:
        return {"type": "string", "enum": list(inside)}
    if origin in (tuple, list):
        return {"type": "array", "items": _of_hint(inside[0], found)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_hint(inside[1], found) or True}
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _named(hint, found)


def _choices(hint: Any) -> list[Any]:
    """Return the types of which a value has one, if it is there."""
    return [one for one in get_args(hint) or [hint] if one is not Absent]


def _either(shapes: list[Shape]) -> Shape:
    """One of some shapes: where null is the only other one, a type beside the first."""
    if len(shapes) == 1:
        return dict(shapes[0])
    first, *others = shapes
    if others == [_PLAIN[NoneType]] and isinstance(first.get("type"), str) and "enum" not in first:
        return {**first, "type": [first["type"], "null"]}
    return {"anyOf": shapes}
