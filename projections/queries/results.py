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

from collections.abc import Collection, Iterator, Reversible, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints, overload

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times
from ratings_ledger.projections.queries.result_members import (
    ABSENT,
    AS_IS,
    COURSE,
    DIGEST,
    FRACTION_ONLY,
    FROM,
    HIDDEN,
    INSTANTS,
    LAST_POINTS,
    ROWS,
    SET,
    SPREAD,
    Absent,
    as_time,
    members,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# how members are said in plain data stands in a file of its own, which tables and frames read, too
__all__ = [
    "ABSENT",
    "AS_IS",
    "COURSE",
    "DIGEST",
    "FRACTION_ONLY",
    "FROM",
    "HIDDEN",
    "INSTANTS",
    "LAST_POINTS",
    "ROWS",
    "SET",
    "SPREAD",
    "Absent",
    "Answer",
    "Failed",
    "LadderAnswer",
    "LastEvent",
    "Result",
    "RowSequence",
    "Rows",
    "as_time",
    "members",
    "plain_data",
]


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, or a part of one."""

    _rows_member: ClassVar[str] = "rows"  # the name of what its rows are

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

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a kind of result the short text of all of them, which `dataclass` would replace by every member."""
        super(Result, cls).__init_subclass__(**options)  # a dataclass with slots is made a second time
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the result in one line, rounded: for people, not for programs."""
        from ratings_ledger.projections.queries.display import describe

        return describe(self, self._sequence())

    def _repr_html_(self) -> str:
        """Return the result as a table, which notebooks show."""
        from ratings_ledger.projections.queries.display import notebook_table

        return notebook_table(self, self._sequence())

    def _sequence(self) -> Sequence[Result] | None:
        """Return the rows of a result that consists of them, else None."""
        return None

    def arrow(self) -> pa.Table:
        """Return the rows of an answer as a `pyarrow.Table`, with the columns that their plain data have.

        A number of points is two columns: the exact text, and `..._decimal` with six places, rounded. Raises
        `BadArgument` for a result without rows, or without the extra `frames`.
        """
        from ratings_ledger.projections.queries.frames import as_arrow

        kind = self.row_kind()
        return as_arrow(self, kind, getattr(self, self._rows_member) or (), exact=True, named=False)

    @classmethod
    def row_kind(cls) -> type[Result]:
        """Return what the rows of such an answer are. Raises `BadArgument` if it has none."""
        there = cls.__dict__.get(cls._rows_member)
        hints = get_type_hints(there.fget if isinstance(there, property) else cls)
        hint = hints.get("return" if isinstance(there, property) else cls._rows_member)
        for told in get_args(hint) if get_origin(hint) is UnionType else (hint,):
            kind: type[Any] = next(iter(get_args(told)), object)
            if issubclass(kind, Result):
                return kind
        raise BadArgument(f"{cls.__name__} has no rows", "rows")


Row = TypeVar("Row", bound=Result, covariant=True)


class RowSequence(Result, Reversible[Row], Collection[Row]):
    """An answer that consists of rows, and does what a sequence of them does: `len`, iteration, index, slices, `in`.

    It is no `collections.abc.Sequence`: polars would make a column of every member of the rows then, and not ask for
    the stream of Arrow.
    """

    __slots__ = ()

    def _sequence(self) -> Sequence[Row]:
        """Return the rows."""
        rows: Sequence[Row] | None = getattr(self, self._rows_member)
        return rows or ()

    def __len__(self) -> int:
        return len(self._sequence())

    def __iter__(self) -> Iterator[Row]:
        return iter(self._sequence())

    def __reversed__(self) -> Iterator[Row]:
        return reversed(self._sequence())

    def __contains__(self, row: object) -> bool:
        return row in self._sequence()

    def index(self, row: object) -> int:
        """Return the place of a row, counted from 0. Raises `ValueError` if it is not there."""
        return self._sequence().index(row)

    def count(self, row: object) -> int:
        """Return how many rows are equal to one."""
        return self._sequence().count(row)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        rows = self._sequence()
        return tuple(rows[index]) if isinstance(index, slice) else rows[index]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows for whatever takes the stream of Arrow, such as `pyarrow.table`, polars and duckdb.

        The columns are those of `to_polars`. Raises `BadArgument` without the extra `frames`.
        """
        from ratings_ledger.projections.queries.frames import as_arrow

        table = as_arrow(self, self.row_kind(), self._sequence(), exact=False, named=True)
        return table.__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, exact: bool = False) -> pd.DataFrame:
        """Return the rows as a `pandas.DataFrame`, with the ladder and the player of the answer.

        Args:
            exact: numbers as exact texts, which `Fraction` takes, each with a decimal beside it; otherwise as floats.

        Raises `BadArgument` without the extra `frames`.
        """
        from ratings_ledger.projections.queries.frames import as_pandas

        return as_pandas(self, self.row_kind(), self._sequence(), exact=exact)

    def to_polars(self, *, exact: bool = False) -> pl.DataFrame:
        """Return the rows as a `polars.DataFrame`, with the ladder and the player of the answer.

        Args:
            exact: as for `to_pandas`.

        Raises `BadArgument` without the extra `frames`.
        """
        from ratings_ledger.projections.queries.frames import as_polars

        return as_polars(self, self.row_kind(), self._sequence(), exact=exact)


@dataclass(frozen=True, slots=True)
class Rows(RowSequence[Row]):
    """An answer that is its rows and nothing else: the plain data are a list."""

    rows: tuple[Row, ...]

    def model_dump(self, mode: Literal["json"] = "json") -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the rows as plain data."""
        return [row.model_dump(mode) for row in self.rows]


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
