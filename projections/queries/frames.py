"""Rows of results as frames: a column for each member of a row, with types that do not depend on what is in the rows.

| a member is | its column has |
|---|---|
| a number of points, or another fraction | floats; where exact numbers are asked for, the exact text, as in JSON, and beside it `..._decimal` with six places |
| a time | timestamps in UTC |
| several values | lists; results in them are structures |
| what a rule keeps about a player | a column of floats for each of its numbers, or exactly a structure of texts |
| any other JSON | the text of it |

What a row does not have is null. Columns that apply to no row are left out.
"""  # noqa: E501 -- a table

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.result_members import ABSENT, INSTANTS, Absent, as_time, members

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# of a row that does not name them, those of the whole answer
NAMES = ("ladder", "player")
# digits, and digits behind the point, of a number beside its exact text
DECIMAL = 38, 6
INT_MAX = 2**63


class Column(NamedTuple):
    """A column: its values, None where there is none, and the type that they have."""

    name: str
    values: Sequence[Any]
    hint: Any


def as_pandas(result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool) -> pd.DataFrame:
    """Return the rows of a result as a frame of pandas, whose whole numbers and truth values may be missing.

    Raises `BadArgument` without pandas or pyarrow.
    """
    pandas, pa = _require("pandas", "to_pandas"), _require("pyarrow", "to_pandas")
    nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    table = as_arrow(result, kind, rows, exact=exact, named=True)
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


def as_polars(result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool) -> pl.DataFrame:
    """Return the rows of a result as a frame of polars. Raises `BadArgument` without polars or pyarrow."""
    polars = _require("polars", "to_polars")
    frame: pl.DataFrame = polars.from_arrow(as_arrow(result, kind, rows, exact=exact, named=True))
    return frame


def as_arrow(result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool, named: bool) -> pa.Table:
    """Return the rows of a result as a `pyarrow.Table`.

    Args:
        result: the result.
        kind: what its rows are.
        rows: its rows.
        exact: numbers as exact texts with their decimals, instead of floats.
        named: with the ladder and the player of the result, if its rows do not say them.

    Raises `BadArgument` without pyarrow.
    """
    pa = _require("pyarrow", "a frame")
    columns = [*_columns(kind, rows, exact)]
    if named:
        own = {column.name for column in columns}
        there = [name for name in NAMES if name not in own and isinstance(getattr(result, name, None), str)]
        columns[:0] = [Column(name, [getattr(result, name)] * len(rows), str) for name in there]
    found = dict[str, Any]()
    for name, values, hint in columns:
        for ending, array in _arrays(pa, values, hint, exact):
            found[name + ending] = array
    return pa.table(found)


def _require(library: str, purpose: str) -> Any:
    """Return a library of the extra. Raises `BadArgument` if it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        message = f"{purpose} needs {library}, which is not installed: pip install 'ratings-ledger[frames]'"
        raise BadArgument(message, "frames") from None


def _columns(kind: type[Any], rows: Sequence[Any], exact: bool) -> Iterator[Column]:
    """Yield the members of rows as columns, but for those that apply to no row."""
    hints = get_type_hints(kind)
    spread = {member.name: member.metadata for member in fields(kind) if member.metadata.get("spread")}
    for name, told, *_ in members(kind):
        values, hint = [getattr(row, name) for row in rows], _hint_of(kind, name, hints)
        choices = _choices(hint)
        if Absent in choices and all(value is ABSENT for value in values):
            continue
        values = [None if value is ABSENT else value for value in values]
        if name in spread and choices != [dict[str, Any]]:
            yield from _columns(choices[0], values, exact)
        elif name in spread:
            yield from _columns_of_json(values, spread[name].get("columns", {}))
        elif choices == [dict[str, str]] or dict[str, str] in choices:
            yield from _columns_of_state(told, values, exact)
        else:
            yield Column(told, values, datetime if told in INSTANTS else hint)


def _hint_of(kind: Any, name: str, hints: Mapping[str, Any]) -> Any:
    """Return the type of a member, or of a property that stands for one in plain data."""
    return hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]


def _columns_of_json(values: Sequence[Mapping[str, Any]], always: Mapping[str, Any]) -> Iterator[Column]:
    """Yield a column for each name in JSON objects: those that are `always` there, and what else some of them have."""
    names = dict.fromkeys([*always, *(name for value in values for name in value)])
    for name in names:
        there = [value.get(name) for value in values]
        yield Column(name, there, always[name] if name in always else _type_of(there))


def _type_of(values: Iterable[Any]) -> Any:
    """Return the one type that JSON values have, or that of any JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and any(abs(value) >= INT_MAX for value in values if value is not None):
        return Any
    return kinds.pop() if len(kinds) == 1 and kinds <= {str, int, bool} else Any


def _columns_of_state(name: str, values: Sequence[Mapping[str, str] | None], exact: bool) -> Iterator[Column]:
    """Yield what a rule keeps about players: as floats, which come from the exact numbers, or as texts."""
    keys = list(dict.fromkeys(key for value in values if value for key in value))
    if exact:
        yield Column(name, [value and dict(value) for value in values], dict.fromkeys(keys, str))
    elif name == "state_exact":
        for key in keys:
            yield Column(
                f"state_{key}",
                [Fraction(value[key]) if value and key in value else None for value in values],
                Fraction,
            )


def _arrays(pa: Any, values: Sequence[Any], hint: Any, exact: bool) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a column, each with the ending of its name."""
    if isinstance(hint, dict):
        yield "", pa.array(values, pa.struct([(key, pa.string()) for key in hint]))
        return
    convert = _converter(hint, exact)
    yield "", pa.array([None if value is None else convert(value) for value in values], _arrow_type(pa, hint, exact))
    if exact and Fraction in _choices(hint):
        rounded = [None if one is None else Decimal(decimal(one.numerator, one.denominator)) for one in values]
        yield "_decimal", pa.array(rounded, pa.decimal128(*DECIMAL))


def _choices(hint: Any) -> list[Any]:
    """Return the types of which a value has one, if there is a value."""
    every = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return [one for one in every if one is not NoneType]


def _only(hint: Any) -> Any:
    """Return the one type that values have; `Any` if there are several."""
    choices = [one for one in _choices(hint) if one is not Absent]
    return choices[0] if len(choices) == 1 else Any


def _arrow_type(pa: Any, hint: Any, exact: bool) -> Any:
    """Return the type of a column whose values have a type."""
    only = _only(hint)
    simple = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64(),
              datetime: pa.timestamp("us", tz="UTC"), Fraction: pa.string() if exact else pa.float64()}  # fmt: skip
    if only in simple:
        return simple[only]
    if get_origin(only) is tuple:
        return pa.list_(_arrow_type(pa, get_args(only)[0], exact))
    if isinstance(only, type) and is_dataclass(only):
        hints = get_type_hints(only)
        inside = [(told, _arrow_type(pa, _hint_of(only, name, hints), exact)) for name, told, *_ in members(only)]
        return pa.struct(inside)
    return pa.string()


def _converter(hint: Any, exact: bool) -> Callable[[Any], Any]:
    """Return a function that makes a value of a type what its column holds."""
    only = _only(hint)
    if only is Fraction:
        return str if exact else float
    if only is datetime:
        return as_time
    if only in (str, int, bool, float) or get_origin(only) is Literal:
        return lambda value: value
    if get_origin(only) is tuple:
        inner = _converter(get_args(only)[0], exact)
        return lambda values: [None if value is None else inner(value) for value in values]
    if isinstance(only, type) and is_dataclass(only):
        hints = get_type_hints(only)
        parts = [(name, told, _converter(_hint_of(only, name, hints), exact)) for name, told, *_ in members(only)]
        return lambda value: {told: _inside(getattr(value, name), part) for name, told, part in parts}
    return lambda value: json.dumps(value, ensure_ascii=False, default=str)


def _inside(value: Any, convert: Callable[[Any], Any]) -> Any:
    return None if value is None or value is ABSENT else convert(value)
