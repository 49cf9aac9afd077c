"""Describe the members of results: markers (metadata) that define how a member becomes plain data, and `ABSENT`.

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


# not part of the plain data, but used in text for people
HIDDEN = {"hidden": True}
# an exact number without a decimal beside it, because it does not count points
FRACTION_ONLY = {"decimal": False}
# the members of this member become members of the whole result
INLINE = {"inline": True}
# a value that is plain data already, such as a number of seconds
AS_IS = {"as_is": True}
# the member's JSON name is a Python keyword or builtin
NAMED_FROM, NAMED_SET = {"name": "from"}, {"name": "set"}
# instead of the member, the plain data have the property of this name, which is computed from the member on demand
AS_DIGEST, AS_COURSE, AS_ROWS, AS_LAST_POINTS = (
    {"read": "digest"},
    {"read": "course"},
    {"read": "rows"},
    {"read": "last_points"},
)
# names of members that are times; some results have them as text, as recorded in the log
INSTANTS = frozenset({"occurred_at", "recorded_at"})
# the value of a member that does not apply: it is omitted from the plain data
ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT


def convert_to_time(value: datetime | str | None) -> datetime | None:
    """Return a time that may be given as text; None for text that is not a time."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


class ResultMember(NamedTuple):
    """A member of a result: its attribute, its JSON name, and how its value becomes plain data."""

    name: str
    json_name: str
    is_exact: bool
    is_inline: bool
    is_plain: bool


_MEMBERS: dict[type[Any], list[ResultMember]] = {}


def members(kind: type[Any]) -> list[ResultMember]:
    """Return the members of a result type that are part of its plain data."""
    if kind not in _MEMBERS:
        hints = get_type_hints(kind)
        visible = [(member, member.metadata) for member in fields(kind) if not member.metadata.get("hidden")]
        _MEMBERS[kind] = [
            ResultMember(
                name := marker.get("read", member.name),
                marker.get("name", name),
                _is_exact(hints[member.name]) and marker.get("decimal", True),
                marker.get("inline", False),
                marker.get("as_is", False),
            )
            for member, marker in visible
        ]
    return _MEMBERS[kind]


def _is_exact(hint: Any) -> bool:
    return hint is Fraction or (get_origin(hint) is UnionType and Fraction in get_args(hint))
