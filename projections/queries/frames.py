"""Convert rows of results to data frames with a column for each member.

The types of columns depend on the values only for undeclared members of JSON objects.

| member | column |
|---|---|
| points or another fraction | floats; with `exact`, the exact text as in JSON, and `..._decimal` with six places |
| time | timestamps in UTC |
| several values | lists; results in them become structs |
| a player's state | a column of floats for each number; with `exact`, a struct of texts |
| other JSON | its text |

Missing values are null. A member that is absent from all rows has no column.
"""

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
from ratings_ledger.projections.queries.result_members import ABSENT, INSTANTS, Absent, convert_to_time, list_members

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# members of an answer that become columns of its rows, unless the rows have such members
ANSWER_COLUMNS = ("ladder", "player")
# precision and scale of the decimal column beside an exact text
DECIMAL_FORMAT = 38, 6
INT_LIMIT = 2**63  # a column with an integer of at least this absolute value becomes text


class Column(NamedTuple):
    """A column: its values, with None for missing ones, and their type hint, or a dict by key for structs of texts."""

    name: str
    values: Sequence[Any]
    hint: Any


def build_pandas_frame(result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool) -> pd.DataFrame:
    """Return the rows of a result as a pandas data frame with nullable integers and booleans.

    Raises `BadArgument` if pandas or pyarrow is not installed.
    """
    pandas, pa = _require("pandas", "to_pandas"), _require("pyarrow", "to_pandas")
    nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    table = build_arrow_table(result, kind, rows, exact=exact, with_names=True)
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


def build_polars_frame(result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool) -> pl.DataFrame:
    """Return the rows of a result as a polars data frame.

    Raises `BadArgument` if polars or pyarrow is not installed.
    """
    polars = _require("polars", "to_polars")
    frame: pl.DataFrame = polars.from_arrow(build_arrow_table(result, kind, rows, exact=exact, with_names=True))
    return frame


def build_arrow_table(
    result: object, kind: type[Any], rows: Sequence[Any], *, exact: bool, with_names: bool
) -> pa.Table:
    """Return the rows of a result as a `pyarrow.Table`.

    Args:
        result: the result.
        kind: the type of its rows.
        rows: its rows.
        exact: return fractions as exact texts, each with a decimal column beside it, instead of as floats.
        with_names: add columns for the ladder and the player of the result if its rows lack them.

    Raises:
        BadArgument: pyarrow is not installed.
    """
    pa = _require("pyarrow", "a frame")
    columns = [*_build_columns(kind, rows, exact)]
    if with_names:
        row_names = {column.name for column in columns}
        names = [
            name for name in ANSWER_COLUMNS if name not in row_names and isinstance(getattr(result, name, None), str)
        ]
        columns[:0] = [Column(name, [getattr(result, name)] * len(rows), str) for name in names]
    arrays = dict[str, Any]()
    for name, values, hint in columns:
        for suffix, array in _build_arrays(pa, values, hint, exact):
            arrays[name + suffix] = array
    return pa.table(arrays)


def _require(library: str, purpose: str) -> Any:
    """Return a library of the `frames` extra. Raises `BadArgument` if it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        message = f"{purpose} needs {library}, which is not installed: pip install 'ratings-ledger[frames]'"
        raise BadArgument(message) from None


def _build_columns(kind: type[Any], rows: Sequence[Any], exact: bool) -> Iterator[Column]:
    """Yield the members of rows as columns, without members that no row has."""
    hints = get_type_hints(kind)
    inline = {member.name: member.metadata for member in fields(kind) if member.metadata.get("inline")}
    for name, json_name, *_ in list_members(kind):
        values, hint = [getattr(row, name) for row in rows], _find_hint(kind, name, hints)
        choices = _list_choices(hint)
        if Absent in choices and all(value is ABSENT for value in values):
            continue
        values = [None if value is ABSENT else value for value in values]
        if name in inline and choices != [dict[str, Any]]:
            yield from _build_columns(choices[0], values, exact)
        elif name in inline:
            yield from _build_json_columns(values, inline[name].get("columns", {}))
        elif dict[str, str] in choices:
            yield from _build_state_columns(json_name, values, exact)
        else:
            yield Column(json_name, values, datetime if json_name in INSTANTS else hint)


def _find_hint(kind: Any, name: str, hints: Mapping[str, Any]) -> Any:
    """Return the type hint of a member, or of a property that replaces a member in plain data."""
    return hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]


def _build_json_columns(values: Sequence[Mapping[str, Any]], required: Mapping[str, Any]) -> Iterator[Column]:
    """Yield a column for each member of JSON objects. `required` has the types of the members that all objects have."""
    names = dict.fromkeys([*required, *(name for value in values for name in value)])
    for name in names:
        column = [value.get(name) for value in values]
        yield Column(name, column, required[name] if name in required else _find_json_type(column))


def _find_json_type(values: Iterable[Any]) -> Any:
    """Return the scalar type of all JSON values; `Any` for different types or numbers that need more than 64 bits."""
    types = {type(value) for value in values if value is not None}
    if types == {int} and any(abs(value) >= INT_LIMIT for value in values if value is not None):
        return Any
    return types.pop() if len(types) == 1 and types <= {str, int, bool} else Any


def _build_state_columns(name: str, values: Sequence[Mapping[str, str] | None], exact: bool) -> Iterator[Column]:
    """Yield players' states: with `exact` as structs of texts, otherwise as floats computed from `state_exact`."""
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


def _build_arrays(pa: Any, values: Sequence[Any], hint: Any, exact: bool) -> Iterator[tuple[str, Any]]:
    """Yield the Arrow arrays of a column, each with the suffix for its name."""
    if isinstance(hint, dict):
        yield "", pa.array(values, pa.struct([(key, pa.string()) for key in hint]))
        return
    convert = _find_converter(hint, exact)
    arrow_type = _find_arrow_type(pa, hint, exact)
    yield "", pa.array([None if value is None else convert(value) for value in values], arrow_type)
    if exact and Fraction in _list_choices(hint):
        decimals = [None if value is None else Decimal(decimal(value.numerator, value.denominator)) for value in values]
        yield "_decimal", pa.array(decimals, pa.decimal128(*DECIMAL_FORMAT))


def _list_choices(hint: Any) -> list[Any]:
    """Return the alternatives of a union without None, or the only type."""
    choices = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return [choice for choice in choices if choice is not NoneType]


def _find_only_type(hint: Any) -> Any:
    """Return the type of the present values, or `Any` if they can have several types."""
    choices = [choice for choice in _list_choices(hint) if choice is not Absent]
    return choices[0] if len(choices) == 1 else Any


def _find_arrow_type(pa: Any, hint: Any, exact: bool) -> Any:
    """Return the Arrow type for values with a type hint."""
    value_type = _find_only_type(hint)
    scalar_types = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        float: pa.float64(),
        datetime: pa.timestamp("us", tz="UTC"),
        Fraction: pa.string() if exact else pa.float64(),
    }
    if value_type in scalar_types:
        return scalar_types[value_type]
    if get_origin(value_type) is tuple:
        return pa.list_(_find_arrow_type(pa, get_args(value_type)[0], exact))
    if isinstance(value_type, type) and is_dataclass(value_type):
        hints = get_type_hints(value_type)
        return pa.struct(
            [
                (json_name, _find_arrow_type(pa, _find_hint(value_type, name, hints), exact))
                for name, json_name, *_ in list_members(value_type)
            ]
        )
    return pa.string()


def _find_converter(hint: Any, exact: bool) -> Callable[[Any], Any]:
    """Return a function that converts a value with a type hint to a value of its column."""
    value_type = _find_only_type(hint)
    if value_type is Fraction:
        return str if exact else float
    if value_type is datetime:
        return convert_to_time
    if value_type in (str, int, bool, float) or get_origin(value_type) is Literal:
        return lambda value: value
    if get_origin(value_type) is tuple:
        convert_item = _find_converter(get_args(value_type)[0], exact)
        return lambda values: [None if value is None else convert_item(value) for value in values]
    if isinstance(value_type, type) and is_dataclass(value_type):
        hints = get_type_hints(value_type)
        converters = [
            (name, json_name, _find_converter(_find_hint(value_type, name, hints), exact))
            for name, json_name, *_ in list_members(value_type)
        ]
        return lambda value: {
            json_name: _convert_present(getattr(value, name), convert) for name, json_name, convert in converters
        }
    return lambda value: json.dumps(value, ensure_ascii=False, default=str)


def _convert_present(value: Any, convert: Callable[[Any], Any]) -> Any:
    return None if value is None or value is ABSENT else convert(value)
