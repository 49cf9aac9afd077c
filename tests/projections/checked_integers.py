"""Integers that raise where a compiled rule would silently overflow: a result outside 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ratings_ledger.rules import INT64_MAX


def _build_checked_operation(name: str) -> Callable[..., Any]:
    int_operation = getattr(int, name)

    def operation(self: int, *operands: int) -> Any:
        result = int_operation(self, *operands)
        if result is NotImplemented:
            return result
        assert abs(result) <= INT64_MAX, f"{self} {name} {operands} leaves 64 bits"
        return Int64(result)

    return operation


class Int64(int):
    """An integer whose sums, products and quotients must fit 64 bits; its results are checked integers, too."""


for _operation in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or"):
    setattr(Int64, f"__{_operation}__", _build_checked_operation(f"__{_operation}__"))
    setattr(Int64, f"__r{_operation}__", _build_checked_operation(f"__r{_operation}__"))
for _operation in ("neg", "abs"):
    setattr(Int64, f"__{_operation}__", _build_checked_operation(f"__{_operation}__"))


def to_checked(numbers: Any) -> Any:
    """Return the same numbers as checked integers; nested lists are converted as well."""
    return Int64(numbers) if isinstance(numbers, int) else [to_checked(number) for number in numbers]
