"""The members of results: how each is said in plain data, what does not apply, and which are times."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from enum import Enum
from fractions import Fraction
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


# of a member for those who show words: it is no part of the plain data
HIDDEN = {"hidden": True}
# of an exact number that is no number of points: no decimal stands beside it
FRACTION_ONLY = {"decimal": False}
# of a member whose members, in plain data, are members of the whole
SPREAD = {"spread": True}
# of a member that is plain data itself, such as the seconds that something took
AS_IS = {"as_is": True}
# of members whose names in plain data are words of Python
FROM, SET = {"name": "from"}, {"name": "set"}
# of a member from which a property is worked out only when somebody reads it: that is what the plain data have
DIGEST = {"read": "digest"}
# of a course, from which its changes are made only when somebody reads them
COURSE, ROWS, LAST_POINTS = {"read": "course"}, {"read": "rows"}, {"read": "last_points"}
# members that are times, some of them as the log has them: as texts
INSTANTS = frozenset({"occurred_at", "recorded_at"})
# the value of a member that does not apply: it is left out of the plain data
ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT


def as_time(value: datetime | str | None) -> datetime | None:
    """Return a time, which some members have as text; None for text that is none."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


_MEMBERS: dict[type[Any], list[tuple[str, str, bool, bool, bool]]] = {}


def members(kind: type[Any]) -> list[tuple[str, str, bool, bool, bool]]:
    """The members of a result that are plain data: name, name there, is it an exact number, spread, taken as it is?"""
    if kind not in _MEMBERS:
        hints = get_type_hints(kind)
        shown = [(member, member.metadata) for member in fields(kind) if not member.metadata.get("hidden")]
        _MEMBERS[kind] = [
            (
                name := how.get("read", member.name),
                how.get("name", name),
                _is_exact(hints[member.name]) and how.get("decimal", True),
                how.get("spread", False),
                how.get("as_is", False),
            )
            for member, how in shown
        ]
    return _MEMBERS[kind]


def _is_exact(hint: Any) -> bool:
    return hint is Fraction or (get_origin(hint) is UnionType and Fraction in get_args(hint))
