"""Define the results of queries: frozen dataclasses with exact numbers, which convert to plain data and data frames.

Points are fractions, times are in UTC, and a member that does not apply is `ABSENT`. `model_dump()` returns the data
that `--format json` prints: exact numbers as strings, each followed by its decimal, floats with six decimals, and
coordinates as separate members.

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
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat
from ratings_ledger.projections.queries.result_members import (
    ABSENT,
    AS_COURSE,
    AS_DIGEST,
    AS_IS,
    AS_LAST_POINTS,
    AS_ROWS,
    FRACTION_ONLY,
    HIDDEN,
    INLINE,
    INSTANTS,
    NAMED_FROM,
    NAMED_SET,
    Absent,
    convert_to_time,
    list_members,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# with the names of `result_members`, so that queries import everything about results from here
__all__ = [
    "ABSENT",
    "AS_COURSE",
    "AS_DIGEST",
    "AS_IS",
    "AS_LAST_POINTS",
    "AS_ROWS",
    "FRACTION_ONLY",
    "HIDDEN",
    "INLINE",
    "INSTANTS",
    "NAMED_FROM",
    "NAMED_SET",
    "Absent",
    "Answer",
    "LadderAnswer",
    "LastEvent",
    "ReplayFailure",
    "Result",
    "RowSequence",
    "Rows",
    "convert_to_time",
    "list_members",
    "to_plain_data",
]


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, or a part of an answer."""

    _rows_member: ClassVar[str] = "rows"  # the name of the member with the rows

    def model_dump(self, mode: Literal["json"] = "json") -> dict[str, Any]:
        """Return the result as JSON-compatible data."""
        plain: dict[str, Any] = {}
        for name, key, is_exact, is_inline, is_plain in list_members(type(self)):
            value = getattr(self, name)
            if value is ABSENT:
                continue
            if is_exact:
                plain[key] = None if value is None else str(value)
                plain[f"{key}_decimal"] = None if value is None else decimal(value.numerator, value.denominator)
            elif is_inline:
                plain |= value.model_dump() if isinstance(value, Result) else value
            elif is_plain or type(value) in _PLAIN:
                plain[key] = value
            elif isinstance(value, Coordinates):
                plain |= value.to_members()
            else:
                plain[key] = to_plain_data(value)
        return plain

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every subclass the short `repr`; otherwise `dataclass` would add one that lists every member."""
        # not plain `super()`, because `slots=True` creates the class a second time
        super(Result, cls).__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the result in one line with rounded numbers."""
        from ratings_ledger.projections.queries.display import describe

        return describe(self, self._sequence())

    def _repr_html_(self) -> str:
        """Return the result as an HTML table for notebooks."""
        from ratings_ledger.projections.queries.display import build_notebook_table

        return build_notebook_table(self, self._sequence())

    def _sequence(self) -> Sequence[Result] | None:
        """Return the rows if the result is a sequence of rows, else None."""
        return None

    def arrow(self) -> pa.Table:
        """Return the rows of an answer as a `pyarrow.Table` with the columns of their plain data.

        Points become two columns: the exact text, and `..._decimal` rounded to six decimals. Raises `BadArgument` for a
        result without rows, or if the extra `frames` is not installed.
        """
        from ratings_ledger.projections.queries.frames import build_arrow_table

        kind = self.row_kind()
        return build_arrow_table(self, kind, getattr(self, self._rows_member) or (), exact=True, with_names=False)

    @classmethod
    def row_kind(cls) -> type[Result]:
        """Return the type of the rows. Raises `BadArgument` for a result without rows."""
        member = cls.__dict__.get(cls._rows_member)
        hints = get_type_hints(member.fget if isinstance(member, property) else cls)
        hint = hints.get("return" if isinstance(member, property) else cls._rows_member)
        for choice in get_args(hint) if get_origin(hint) is UnionType else (hint,):
            kind: type[Any] = next(iter(get_args(choice)), object)
            if issubclass(kind, Result):
                return kind
        raise BadArgument(f"{cls.__name__} has no rows", "rows")


Row = TypeVar("Row", bound=Result, covariant=True)


class RowSequence(Result, Reversible[Row], Collection[Row]):
    """An answer that behaves like a sequence of its rows: `len`, iteration, indexing, slices, `in`.

    It is not a `collections.abc.Sequence`: polars would build a column for each member of the rows of a sequence,
    instead of reading the Arrow stream.
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
        """Return the index of a row. Raises `ValueError` if it is missing."""
        return self._sequence().index(row)

    def count(self, row: object) -> int:
        """Return the number of rows equal to `row`."""
        return self._sequence().count(row)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        rows = self._sequence()
        return tuple(rows[index]) if isinstance(index, slice) else rows[index]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream, for `pyarrow.table`, polars, duckdb and others.

        It has the columns of `to_polars`. Raises `BadArgument` if the extra `frames` is not installed.
        """
        from ratings_ledger.projections.queries.frames import build_arrow_table

        table = build_arrow_table(self, self.row_kind(), self._sequence(), exact=False, with_names=True)
        return table.__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, exact: bool = False) -> pd.DataFrame:
        """Return the rows as a `pandas.DataFrame`, with the answer's ladder and player as columns.

        Args:
            exact: return exact numbers as texts that `Fraction` parses, each with a decimal column, instead of floats.

        Raises `BadArgument` if the extra `frames` is not installed.
        """
        from ratings_ledger.projections.queries.frames import build_pandas_frame

        return build_pandas_frame(self, self.row_kind(), self._sequence(), exact=exact)

    def to_polars(self, *, exact: bool = False) -> pl.DataFrame:
        """Return the rows as a `polars.DataFrame`, with the answer's ladder and player as columns.

        Args:
            exact: as for `to_pandas`.

        Raises `BadArgument` if the extra `frames` is not installed.
        """
        from ratings_ledger.projections.queries.frames import build_polars_frame

        return build_polars_frame(self, self.row_kind(), self._sequence(), exact=exact)


@dataclass(frozen=True, slots=True)
class Rows(RowSequence[Row]):
    """An answer that has only rows, so that its plain data is a list."""

    rows: tuple[Row, ...]

    def model_dump(self, mode: Literal["json"] = "json") -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the rows as plain data."""
        return [row.model_dump(mode) for row in self.rows]


# types whose values are already plain data
_PLAIN = frozenset({str, int, bool, type(None)})


def to_plain_data(value: Any) -> Any:
    """Convert the value of a result's member to JSON-compatible data."""
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
        return [to_plain_data(item) for item in value]
    if isinstance(value, dict):
        return {name: to_plain_data(item) for name, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class Answer(Result):
    """An answer with the ledger's time format, `times`. An answer at coordinates states them in `at`."""

    times: TimeFormat = field(default=UTC_TIMES, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderAnswer(Answer):
    """An answer about a whole ladder: the version that ranks it, the coordinates, and the number of counted games."""

    ladder: str
    ruleset: str
    at: Coordinates
    games: int


@dataclass(frozen=True, slots=True)
class LastEvent(Result):
    """The last event of the log that an answer depends on."""

    position: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ReplayFailure(Result):
    """The reason why a ladder cannot be replayed or, if `ladder` is None, why a ruleset cannot run here."""

    ladder: str | None
    reason: str
