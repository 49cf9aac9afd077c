"""Integers that notice what a compiled rule would not: a result that does not fit 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ratings_ledger.rules import INT64_MAX


def _checked(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def operation(self: int, *others: int) -> Any:
        result = plain(self, *others)
        if result is NotImplemented:
            return result
        assert abs(result) <= INT64_MAX, f"{self} {name} {others} leaves 64 bits"
        return Int64(result)

    return operation


class Int64(int):
    """An integer whose sums, products and quotients must fit 64 bits; what is computed with it is checked, too."""


for _operation in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or"):
    setattr(Int64, f"__{_operation}__", _checked(f"__{_operation}__"))
    setattr(Int64, f"__r{_operation}__", _checked(f"__r{_operation}__"))
for _operation in ("neg", "abs"):
    setattr(Int64, f"__{_operation}__", _checked(f"__{_operation}__"))


def checked(numbers: Any) -> Any:
    """The same numbers, lists in lists too, as checked ones."""
    return Int64(numbers) if isinstance(numbers, int) else [checked(number) for number in numbers]
