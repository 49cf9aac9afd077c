"""The short way through a game's model: the same checks on dictionaries, with no objects made in between.

    {"player": "anna", "place": 1}   is taken, and comes out in canonical order: {"place": 1, "player": "anna"}
    {"player": "anna", "place": 0}   is left to the model, which says what is wrong

What the short way does not take, the model takes or refuses; so it need not know every valid value, and has no messages
of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import SchemaValidator, ValidationError, core_schema

STRICT = core_schema.CoreConfig(strict=True)


@dataclass(frozen=True)
class Plain:
    """Marks an annotated type: a value of this simpler type is valid as it is, with no Python code looking at it."""

    type: Any


def normalised(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """Return the given members as the model has them, without nulls, in canonical order.

    Raises pydantic's `ValidationError`.
    """
    if (short_way := _short_way(model)) is not None:
        try:
            return short_way(data)
        except ValidationError:
            pass
    found: dict[str, Any] = in_order(model.model_validate(data).model_dump(exclude_unset=True, exclude_none=True))
    return found


def in_order(value: Any) -> Any:
    """Return a JSON value with the members of its objects sorted by name."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


@cache
def _short_way(model: type[BaseModel]) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Return a function that normalises a game; None for a model that checks more than its members one by one."""
    parts = [part for field in model.model_fields.values() if (part := _items(field.annotation)) is not None]
    if not all(map(_checks_members_alone, (model, *parts))):
        return None
    return SchemaValidator(schema(model)).validate_python


def _checks_members_alone(model: type[BaseModel]) -> bool:
    """Tell whether a model checks its members one by one and nothing else."""
    found = model.__pydantic_decorators__
    return not (found.validators or found.field_validators or found.root_validators or found.model_validators)


def schema(model: type[BaseModel]) -> core_schema.CoreSchema:
    """Return the members of a model, in canonical order, as plain types that need no model; see `Plain`."""
    fields = {
        name: core_schema.typed_dict_field(_member(field.annotation, field.metadata), required=field.is_required())
        for name, field in sorted(model.model_fields.items())
    }
    return core_schema.typed_dict_schema(fields, extra_behavior="forbid", config=STRICT)


def _member(annotation: Any, metadata: list[Any]) -> core_schema.CoreSchema:
    if (items := _items(annotation)) is not None:
        return core_schema.list_schema(schema(items))
    if NoneType in get_args(annotation):
        # null is left to the model
        annotation = reduce(or_, (one for one in get_args(annotation) if one is not NoneType))
    whole: Any = Annotated[(annotation, *metadata)] if metadata else annotation
    plain = [mark.type for mark in get_args(whole) if isinstance(mark, Plain)]
    if plain:
        whole = Annotated[reduce(or_, (*plain, whole)), Field(union_mode="left_to_right")]
    found = TypeAdapter(whole).core_schema
    return core_schema.no_info_after_validator_function(in_order, found) if get_origin(annotation) is dict else found


def _items(annotation: Any) -> type[BaseModel] | None:
    """Return the model of the items of a list, or None."""
    item = get_args(annotation)[0] if get_origin(annotation) is list else None
    return item if isinstance(item, type) and issubclass(item, BaseModel) else None
