"""List the public names of the library by kind, in the order of its reference."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from types import FunctionType

import ratings_ledger
from ratings_ledger import LedgerError

KINDS = {
    "Functions": "Each returns an open ledger.",
    "The ledger": "The open ledger, its views, and proposals of changes.",
    "Exceptions": "All of them are a `LedgerError`.",
    "Answers": "Answers and their rows are frozen. A member that does not apply is `ABSENT`.",
}


def names_by_kind() -> dict[str, list[str]]:
    """Return the public names by kind, without the second names of objects."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in ratings_ledger.__all__:
        if (kind := _kind(getattr(ratings_ledger, name))) and name == _own_name(name):
            names[kind].append(name)
    return names


def other_names(name: str) -> list[str]:
    """Return the further public names of an object."""
    return [other for other in ratings_ledger.__all__ if other != name and _own_name(other) == name]


def public_members(name: str) -> Iterator[str]:
    """Yield the documented methods and properties of a class itself, in the order of the code."""
    for member, value in vars(getattr(ratings_ledger, name)).items():
        if not member.startswith("_") and isinstance(value, property | FunctionType) and value.__doc__:
            yield member


def first_sentence(text: str | None) -> str:
    """Return the first sentence of a docstring."""
    paragraph = " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + stop.rstrip()


def returned_names() -> set[str]:
    """Return the names of the answers that methods and properties of the ledger return; others are parts of these."""
    kinds = names_by_kind()
    types = [_return_type(name, member) for name in kinds["The ledger"] for member in public_members(name)]
    return {name for name in kinds["Answers"] if any(re.search(rf"\b{name}\b", text) for text in types)}


def _return_type(name: str, member: str) -> str:
    value = vars(getattr(ratings_ledger, name))[member]
    function = value.fget if isinstance(value, property) else inspect.unwrap(value)
    return inspect.formatannotation(inspect.signature(function).return_annotation)


def _own_name(name: str) -> str:
    return getattr(getattr(ratings_ledger, name), "__name__", name)


def _kind(value: object) -> str:
    if inspect.isroutine(value):
        return "Functions"
    if not isinstance(value, type):
        return ""
    if issubclass(value, LedgerError):
        return "Exceptions"
    is_row = hasattr(value, "__dataclass_fields__") or issubclass(value, tuple | Enum | Fraction)
    return "Answers" if is_row else "The ledger"
