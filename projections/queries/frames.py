"""Columns as a frame: a `pyarrow.Table`, which pandas and polars take from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.contract import decimal

if TYPE_CHECKING:
    import pyarrow as pa

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
        str: pa.string(), int: pa.int64(), bool: pa.bool_(), datetime: pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
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
