"""Describe the members of results: `ABSENT`, and markers that define how a member becomes plain data.

A marker is the `metadata` of a dataclass field, as in `field(metadata=HIDDEN)`.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from enum import Enum
from fractions import Fraction
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


# the member is not part of the plain data, but used in text for people
HIDDEN = {"hidden": True}
# the exact number has no decimal beside it, because it is not a number of points
FRACTION_ONLY = {"decimal": False}
# the members of this member become members of the whole result
INLINE = {"inline": True}
# the value is already plain data
AS_IS = {"as_is": True}
# the member has another JSON name, which is a Python keyword or builtin
NAMED_FROM, NAMED_SET = {"name": "from"}, {"name": "set"}
# in the plain data, the property of this name replaces the member; it is computed from the member on demand
AS_DIGEST, AS_COURSE, AS_ROWS, AS_LAST_POINTS = (
    {"read": "digest"},
    {"read": "course"},
    {"read": "rows"},
    {"read": "last_points"},
)
# the names of members that are times; in some results, they are texts as recorded in the log
INSTANTS = frozenset({"occurred_at", "recorded_at"})
# the value of a member that does not apply: it is omitted from the plain data
ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT


def convert_to_time(value: datetime | str | None) -> datetime | None:
    """Convert a time that may be text to a `datetime`; return None for a text that is not a time."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


class ResultMember(NamedTuple):
    """A member of a result, and how its value becomes plain data.

    name:      the name of the attribute or property with the value
    json_name: the name in the plain data
    is_exact:  the value is a fraction, and a decimal follows it
    is_inline: the members of the value become members of the whole result
    is_plain:  the value is already plain data
    """

    name: str
    json_name: str
    is_exact: bool
    is_inline: bool
    is_plain: bool


_MEMBERS: dict[type[Any], list[ResultMember]] = {}


def list_members(result_type: type[Any]) -> list[ResultMember]:
    """Return the members of a result type that are part of its plain data."""
    if result_type not in _MEMBERS:
        hints = get_type_hints(result_type)
        visible = [(member, member.metadata) for member in fields(result_type) if not member.metadata.get("hidden")]
        _MEMBERS[result_type] = [
            ResultMember(
                name=(name := marker.get("read", member.name)),
                json_name=marker.get("name", name),
                is_exact=_is_fraction(hints[member.name]) and marker.get("decimal", True),
                is_inline=marker.get("inline", False),
                is_plain=marker.get("as_is", False),
            )
            for member, marker in visible
        ]
    return _MEMBERS[result_type]


def _is_fraction(hint: Any) -> bool:
    """Tell whether a type hint is `Fraction`, or a union with it."""
    return hint is Fraction or (get_origin(hint) is UnionType and Fraction in get_args(hint))
