"""Check the arguments of queries against the types they declare, before a query runs.

    view.standings("elo-catan/all", players="mira")    # BadArgument: players must be a list, such as ['mira'], not ...

So every mistake raises one exception, which names the argument. Types that are not listed here are left to the query.
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
COUNTS = ("limit", "after", "last")  # numbers of rows or positions; 0 means none or no limit
NUMBER_MAX = 2**63 - 1  # the largest number that a store can query
MODULES = re.compile(r"(?:\w+\.)+")


def check_arguments(query: Callable[P, T]) -> Callable[P, T]:
    """Return the query with a check of its arguments, which raises `BadArgument`."""

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
            explained = explain_mixup(bound.get("self"), query.__name__, bound, error)
            _name_arguments(explained)
            if explained is error:
                raise
            raise explained from None

    return run_query


def _name_arguments(error: LedgerError) -> None:
    """Name arguments instead of options in the message of an error."""
    message = name_arguments(str(error))
    error.args = tuple(message if part == str(error) else part for part in error.args)
    if isinstance(error, Refused):
        error.message = message


class CheckedSnapshot(Snapshot):
    """A view whose queries check their arguments."""


for _name in dir(Snapshot):
    if not _name.startswith("_") and inspect.isfunction(getattr(Snapshot, _name)):
        setattr(CheckedSnapshot, _name, check_arguments(getattr(Snapshot, _name)))


@cache
def _read_signature(query: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[str]]]:
    """Return a query's signature, and the types of each argument if all of them are listed here."""
    signature, types_by_name = inspect.signature(query), {}
    for name, parameter in signature.parameters.items():
        kinds = MODULES.sub("", inspect.formatannotation(parameter.annotation).strip("'")).split(" | ")
        if all(kind in KINDS for kind in kinds):
            types_by_name[name] = kinds
    return signature, types_by_name


def _check_argument(name: str, value: object, kinds: Sequence[str]) -> None:
    """Refuse a value of another type, or one that no ledger can contain. Raises `BadArgument`."""
    if not any(KINDS[kind][0](value) for kind in kinds):
        if isinstance(value, str) and any("[str]" in kind for kind in kinds):
            raise BadArgument(f"{name} must be a list, such as [{value[:80]!r}], not the string {quote(value)}", name)
        expected = " or ".join(KINDS[kind][1] for kind in kinds if kind != "None")
        if isinstance(value, date):
            expected += f", such as {value.isoformat()!r}"
        actual = f"the string {quote(value)}" if isinstance(value, str) else _describe(value)
        raise BadArgument(f"{name} must be {expected}, not {actual}", name)
    if isinstance(value, int) and value < 0 and name in COUNTS:
        raise BadArgument(f"{name} must be 0 or more, not {value}", name)
    if isinstance(value, int) and abs(value) > NUMBER_MAX:
        raise BadArgument(f"{name} is too large; the largest number is {NUMBER_MAX:,}", name)
    for text in (value,) if isinstance(value, str) else value if isinstance(value, Collection) else ():
        if isinstance(text, str) and not is_storable(text):
            raise BadArgument(f"{name} cannot contain a lone surrogate or a null character", name)


def format_date(name: str, moment: T | date) -> T | str:
    """Convert a Python date or time to text; return other values unchanged.

    Raises `BadArgument` for a time without a zone.
    """
    if not isinstance(moment, date):
        return moment
    if isinstance(moment, datetime) and moment.utcoffset() is None:
        raise BadArgument(
            f"{name} has no time zone: {moment}; write it like datetime(2024, 12, 31, 20, tzinfo=UTC)", name
        )
    return moment.isoformat()


def is_storable(text: str) -> bool:
    """Tell whether a store can query a text."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _describe(value: object) -> str:
    """Return the type of a value, and of its items if it is a list."""
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


# by the name of a type: its check, and its description
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
