"""Check the arguments of queries against their declared types before a query runs.

    view.standings("elo-catan/all", players="mira")    # BadArgument: players must be a list, such as ['mira'], not ...

An argument of a wrong type raises `BadArgument`, which names the argument. Types that `KINDS` does not list are left to
the query itself.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from ratings_ledger.argument_names import name_arguments
from ratings_ledger.ledger.errors import BadArgument, LedgerError
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.queries.coordinates import CoordinateSpec
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.swapped_arguments import explain_mixup

P = ParamSpec("P")
T = TypeVar("T")
NON_NEGATIVE = ("limit", "after", "last")  # arguments that count rows or name a position
NUMBER_MAX = 2**63 - 1  # the largest number that can be passed to a store
MODULE_PREFIX = re.compile(r"(?:\w+\.)+")


def check_arguments(query: Callable[P, T]) -> Callable[P, T]:
    """Return a function that checks the arguments of a query, raising `BadArgument`, and then runs the query."""

    @wraps(query)
    def run_query(*arguments: P.args, **options: P.kwargs) -> T:
        signature, types_by_name = _read_signature(query)
        for name, value in signature.bind(*arguments, **options).arguments.items():
            if name in types_by_name:
                _check_argument(name, value, types_by_name[name])
        try:
            return query(*arguments, **options)
        except LedgerError as error:
            bound = signature.bind(*arguments, **options).arguments
            explained = explain_mixup(query.__name__, bound, error)
            _replace_options(explained)
            if explained is error:
                raise
            raise explained from None

    return run_query


def _replace_options(error: LedgerError) -> None:
    """Replace options of the command line with Python arguments in the message of an error."""
    message = name_arguments(str(error))
    error.args = tuple(message if part == str(error) else part for part in error.args)
    if isinstance(error, Refused):
        error.message = message


class CheckedSnapshot(Snapshot):
    """A view that checks the arguments of its queries."""


for _name in dir(Snapshot):
    if not _name.startswith("_") and inspect.isfunction(getattr(Snapshot, _name)):
        setattr(CheckedSnapshot, _name, check_arguments(getattr(Snapshot, _name)))


@cache
def _read_signature(query: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[str]]]:
    """Return a query's signature, and the types of each argument that has only types of `KINDS`."""
    signature, types_by_name = inspect.signature(query), {}
    for name, parameter in signature.parameters.items():
        kinds = MODULE_PREFIX.sub("", inspect.formatannotation(parameter.annotation).strip("'")).split(" | ")
        if all(kind in KINDS for kind in kinds):
            types_by_name[name] = kinds
    return signature, types_by_name


def _check_argument(name: str, value: object, kinds: Sequence[str]) -> None:
    """Raise `BadArgument` for a value of another type, a number out of range, or a text that no ledger can contain."""
    if not any(KINDS[kind][0](value) for kind in kinds):
        if isinstance(value, str) and any("[str]" in kind for kind in kinds):
            raise BadArgument(f"{name} must be a list, such as [{value[:80]!r}], not the string {quote(value)}", name)
        expected = " or ".join(KINDS[kind][1] for kind in kinds if kind != "None")
        if isinstance(value, date) and "str" in kinds:
            expected += f", such as {value.isoformat()!r}"
        actual = f"the string {quote(value)}" if isinstance(value, str) else _describe_type(value)
        raise BadArgument(f"{name} must be {expected}, not {actual}", name)
    if isinstance(value, int) and value < 0 and name in NON_NEGATIVE:
        raise BadArgument(f"{name} must be 0 or more, not {value}", name)
    if isinstance(value, int) and abs(value) > NUMBER_MAX:
        raise BadArgument(f"{name} is out of range; its absolute value can be at most {NUMBER_MAX:,}", name)
    texts = (value,) if isinstance(value, str) else value if isinstance(value, Collection) else ()
    for text in texts:
        if isinstance(text, str) and not is_storable(text):
            raise BadArgument(f"{name} cannot contain a lone surrogate or a null character", name)


def format_date(name: str, value: T | date) -> T | str:
    """Convert the value of an argument from a Python date or time to text; return other values unchanged.

    Raises `BadArgument` for a time without a zone.
    """
    if not isinstance(value, date):
        return value
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise BadArgument(
            f"{name} has no time zone: {value}; pass a zone, as in datetime(2024, 12, 31, 20, tzinfo=UTC)", name
        )
    return value.isoformat()


def is_storable(text: str) -> bool:
    """Tell whether a store can contain a text: it has no null character and no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _describe_type(value: object) -> str:
    """Name the type of a value, and the types of its items if it is a list."""
    items = value if isinstance(value, list | tuple | set | frozenset) else ()
    item_types = sorted({type(item).__name__ for item in items})
    return type(value).__name__ + (f" with {', '.join(item_types)}" if item_types else "")


def _is_list(value: object, is_item: Callable[[object], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes) and all(map(is_item, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, Sequence) and _is_list(value, _is_text) and len(value) == 2 and all(map(is_storable, value))
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# the check of each type, and its description for messages
KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "None": (lambda value: value is None, ""),
    "str": (_is_text, "a string"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_number, "a whole number"),
    "float": (lambda value: isinstance(value, float) or _is_number(value), "a number"),
    "date": (lambda value: isinstance(value, date), "a date"),
    "Collection[str]": (lambda value: _is_list(value, _is_text), "a list of strings"),
    "Collection[tuple[str, str]]": (lambda value: _is_list(value, _is_pair), "a list of pairs of players"),
    "Sequence[str]": (lambda value: isinstance(value, Sequence) and _is_list(value, _is_text), "a list of strings"),
    "Sequence[int]": (
        lambda value: isinstance(value, Sequence) and _is_list(value, _is_number),
        "a list of whole numbers",
    ),
    "Mapping[str, object]": (lambda value: isinstance(value, Mapping), "a dictionary"),
    "Snapshot": (lambda value: isinstance(value, Snapshot), "a view"),
    "CoordinateSpec": (lambda value: isinstance(value, CoordinateSpec), "the result of `published`"),
}
