"""Results: frozen, exact, with one way to plain data and one to frames.

A result is a dataclass. Numbers of points are fractions, moments are times in UTC, and a member that does not apply is
`ABSENT`. `model_dump()` gives what `--format json` prints: exact numbers as strings, each with its decimal beside it,
floats to six places, and coordinates as members of their own.

    >>> @dataclass(frozen=True, slots=True)
    ... class Seat(Result):
    ...     player: str
    ...     points: Fraction | None
    ...     gold: int | Absent = ABSENT
    >>> Seat("anna", Fraction(20, 3)).model_dump()
    {'player': 'anna', 'points': '20/3', 'points_decimal': '6.666667'}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times

if TYPE_CHECKING:
    import pyarrow as pa


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


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
# the value of a member that does not apply: it is left out of the plain data
ABSENT: Literal[Absent.ABSENT] = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, or a part of one."""

    def model_dump(self, mode: Literal["json"] = "json") -> dict[str, Any]:
        """Return the result as plain data, as JSON states it."""
        found: dict[str, Any] = {}
        for name, told, is_exact, is_spread, as_is in members(type(self)):
            value = getattr(self, name)
            if value is ABSENT:
                continue
            if is_exact:
                found[told] = None if value is None else str(value)
                found[f"{told}_decimal"] = None if value is None else decimal(value.numerator, value.denominator)
            elif is_spread:
                found |= value.model_dump() if isinstance(value, Result) else value
            elif as_is or type(value) in _PLAIN:
                found[told] = value
            elif isinstance(value, Coordinates):
                found |= value.stated()
            else:
                found[told] = plain_data(value)
        return found

    def arrow(self) -> pa.Table:
        """Return the rows of an answer as a `pyarrow.Table`, with the columns that their plain data have.

        Raises `BadArgument` for a result without rows, or without the extra `frames`.
        """

        return frame_of(_columns(self.row_kind(), getattr(self, "rows", None) or ()))

    @classmethod
    def row_kind(cls) -> type[Result]:
        """Return what the rows of such an answer are. Raises `BadArgument` if it has none."""
        there = cls.__dict__.get("rows")
        hint = get_type_hints(there.fget)["return"] if isinstance(there, property) else get_type_hints(cls).get("rows")
        for told in get_args(hint) if get_origin(hint) is UnionType else (hint,):
            kind: type[Any] = next(iter(get_args(told)), object)
            if issubclass(kind, Result):
                return kind
        raise BadArgument(f"{cls.__name__} has no rows", "rows")


@dataclass(frozen=True, slots=True)
class Rows(Result):
    """An answer that is its rows and nothing else: the plain data are a list."""

    rows: tuple[Result, ...]

    def model_dump(self, mode: Literal["json"] = "json") -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the rows as plain data."""
        return [row.model_dump(mode) for row in self.rows]


def _columns(kind: type[Result], rows: Sequence[Result]) -> Iterator[Column]:
    """Yield the members of rows as columns, but for those that apply to no row."""

    hints = get_type_hints(kind)
    for name, told, is_exact, *_ in members(kind):
        hint, values = hints.get(name), [getattr(row, name) for row in rows]
        kinds = frozenset(get_args(hint) if get_origin(hint) is UnionType else (hint,))
        if Absent not in kinds or any(value is not ABSENT for value in values):
            present = [None if value is ABSENT else value for value in values]
            if is_exact or datetime in kinds:
                yield Column(told, present, kinds)
            else:
                kinds = kinds - {Fraction} | {str} if Fraction in kinds else kinds
                yield Column(told, [plain_data(value) for value in present], kinds)


_MEMBERS: dict[type[Result], list[tuple[str, str, bool, bool, bool]]] = {}


def members(kind: type[Result]) -> list[tuple[str, str, bool, bool, bool]]:
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


# what is plain data as it is
_PLAIN = frozenset({str, int, bool, type(None)})


def plain_data(value: Any) -> Any:
    """Any member of a result as plain data."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Result):
        return value.model_dump()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, datetime):
        instant = value if value.tzinfo is UTC else value.astimezone(UTC)
        return f"{instant.isoformat(timespec='microseconds')[:-6]}Z"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    if isinstance(value, dict):
        return {name: plain_data(item) for name, item in value.items()}
    return value


MISSING = "the library pyarrow is not installed: pip install 'ratings-ledger[frames]'"
# digits, and digits behind the point, of a number beside its exact text
DECIMAL = 38, 6


class Column(NamedTuple):
    """A column: its values, None where there is none, and the types that they have."""

    name: str
    values: Sequence[Any]
    kinds: frozenset[Any]


def frame_of(columns: Iterable[Column]) -> pa.Table:
    """Columns as a frame. A number of points is two of them: the exact text, and `..._decimal` with six places,
    rounded. Moments are timestamps in UTC. Raises `BadArgument` without the extra `frames`.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise BadArgument(MISSING, "frames") from None
    types: dict[Any, Any] = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", tz="UTC"),
    }
    found = dict[str, Any]()
    for name, values, kinds in columns:
        if Fraction in kinds:
            rounded = [None if one is None else Decimal(decimal(one.numerator, one.denominator)) for one in values]
            values = [None if one is None else str(one) for one in values]
            found[name] = pa.array(values, pa.string())
            found[f"{name}_decimal"] = pa.array(rounded, pa.decimal128(*DECIMAL))
        else:
            told = next((types[kind] for kind in kinds if kind in types), None)
            found[name] = pa.array(values, told)
    return pa.table(found)


@dataclass(frozen=True, slots=True)
class Answer(Result):
    """An answer with its coordinates, `at`, and `times`, which knows how this ledger shows times."""

    times: Times = field(default=UTC_TIMES, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderAnswer(Answer):
    """What is said of a whole ladder: the version that ranks it, the coordinates, how many games count."""

    ladder: str
    ruleset: str
    at: Coordinates
    games: int


@dataclass(frozen=True, slots=True)
class LastEvent(Result):
    """The last event of the log that what is said of something depends on."""

    position: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Failed(Result):
    """Why a ladder cannot be replayed or, where `ladder` is None, why a ruleset does not run here."""

    ladder: str | None
    reason: str
