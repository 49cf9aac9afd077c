"""What a program asks with, looked at before anything is asked: each argument by the type that its question declares.

    view.standings("elo-catan/all", players="mira")    # BadArgument: players is a list, such as ['mira'], not ...

So whatever is given by mistake is one exception that names the argument. Types that are not listed here are left to the
question.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from ratings_ledger.ledger.errors import BadArgument, LedgerError
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.queries.coordinates import CoordinateSpec
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.swapped_arguments import explain_mixup

P = ParamSpec("P")
T = TypeVar("T")
# numbers of rows or positions; 0 is none before, or no limit
COUNTS = ("limit", "after", "last")
NUMBER_MAX = 2**63 - 1  # the largest that a store can be asked about
MODULES = re.compile(r"(?:\w+\.)+")


def checked(question: Callable[P, T]) -> Callable[P, T]:
    """Return the question with its arguments checked first. Raises `BadArgument` besides what it raises itself."""

    @wraps(question)
    def ask(*arguments: P.args, **options: P.kwargs) -> T:
        signature, wanted = _declared(question)
        for name, value in signature.bind(*arguments, **options).arguments.items():
            if name in wanted:
                _look_at(name, value, wanted[name])
        try:
            return question(*arguments, **options)
        except LedgerError as problem:
            given = signature.bind(*arguments, **options).arguments
            explained = explain_mixup(given.get("self"), question.__name__, given, problem)
            if explained is problem:
                raise
            raise explained from None

    return ask


class CheckedSnapshot(Snapshot):
    """A view whose questions look at their arguments."""


for _name in dir(Snapshot):
    if not _name.startswith("_") and inspect.isfunction(getattr(Snapshot, _name)):
        setattr(CheckedSnapshot, _name, checked(getattr(Snapshot, _name)))


@cache
def _declared(question: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[str]]]:
    """Return a question's signature, and by argument the types that it takes, where all of them are listed here."""
    signature, found = inspect.signature(question), {}
    for name, one in signature.parameters.items():
        kinds = MODULES.sub("", inspect.formatannotation(one.annotation).strip("'")).split(" | ")
        if all(kind in KINDS for kind in kinds):
            found[name] = kinds
    return signature, found


def _look_at(name: str, value: object, kinds: Sequence[str]) -> None:
    """Raises `BadArgument` for a value of none of these types, and for one that nothing in a ledger can be."""
    if not any(KINDS[kind][0](value) for kind in kinds):
        if isinstance(value, str) and any("[str]" in kind for kind in kinds):
            raise BadArgument(f"{name} is a list, such as [{value[:80]!r}], not the text {quote(value)}", name)
        told = " or ".join(KINDS[kind][1] for kind in kinds if kind != "None")
        if isinstance(value, date):
            told += f", such as {value.isoformat()!r}"
        given = f"the text {quote(value)}" if isinstance(value, str) else _named(value)
        raise BadArgument(f"{name} is {told}, not {given}", name)
    if isinstance(value, int) and value < 0 and name in COUNTS:
        raise BadArgument(f"{name} is 0 or more, not {value}", name)
    if isinstance(value, int) and abs(value) > NUMBER_MAX:
        raise BadArgument(f"{name} is beyond every number in a ledger", name)
    for text in (value,) if isinstance(value, str) else value if isinstance(value, Collection) else ():
        if isinstance(text, str) and not is_storable(text):
            raise BadArgument(f"{name}: no text in a ledger holds a lone surrogate or a null character", name)


def in_text(name: str, moment: T | date) -> T | str:
    """Return a date or time of Python's as text; anything else as it is. Raises `BadArgument` for a time without a
    zone.
    """
    if not isinstance(moment, date):
        return moment
    if isinstance(moment, datetime) and moment.utcoffset() is None:
        raise BadArgument(f"{name} has no zone: {moment}; such as datetime(2024, 12, 31, 20, tzinfo=UTC)", name)
    return moment.isoformat()


def is_storable(text: str) -> bool:
    """Tell whether a store can be asked about a text at all."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _named(value: object) -> str:
    """Return what was given instead: of a list also what is in it."""
    inside = sorted({type(one).__name__ for one in value}) if isinstance(value, list | tuple | set | frozenset) else []
    return type(value).__name__ + (f" with {', '.join(inside)}" if inside else "")


def _is_list(value: object, of: Callable[[object], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes) and all(map(of, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, Sequence) and _is_list(value, _is_text) and len(value) == 2 and all(map(is_storable, value))
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# by the name of a type: whether a value is one, and what it is called
KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "None": (lambda value: value is None, ""),
    "str": (_is_text, "text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_number, "a whole number"),
    "float": (lambda value: isinstance(value, float) or _is_number(value), "a number"),
    "date": (lambda value: isinstance(value, date), "a date"),
    "Collection[str]": (lambda value: _is_list(value, _is_text), "a list of texts"),
    "Collection[tuple[str, str]]": (lambda value: _is_list(value, _is_pair), "a list of pairs of players"),
    "Sequence[str]": (lambda value: isinstance(value, Sequence) and _is_list(value, _is_text), "a list of texts"),
    "Sequence[int]": (lambda value: isinstance(value, Sequence) and _is_list(value, _is_number),
                      "a list of whole numbers"),
    "Mapping[str, object]": (lambda value: isinstance(value, Mapping), "a dictionary"),
    "Snapshot": (lambda value: isinstance(value, Snapshot), "a view"),
    "CoordinateSpec": (lambda value: isinstance(value, CoordinateSpec), "what `published` gives"),
}  # fmt: skip
