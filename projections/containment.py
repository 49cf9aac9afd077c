"""The door to rules: whatever a rule does fails its own ladder, by name, with the game and the line of the rule.

A rule of a package is trusted code that may be wrong. It may raise, return nothing, leave changes out, print, or try to
end the program; none of that may reach another ladder. (Who wants to harm can: a package runs with all rights.)
"""

from __future__ import annotations

import dis
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from ledger.rejections import shown
from projections.contract import INT64_MAX, Columns, Numbers, Rule, Term

if TYPE_CHECKING:
    from projections.facts import Facts
    from projections.rulesets import Version

# what a rule may raise that is its own fault; who interrupts the program is no fault of a rule
FAULTS = (Exception, SystemExit)
OURS = "projections.rules."
# the members that `chance` gets: two players' points, or two players among all, with the columns
OF_POINTS, OF_PLAYERS = 4, 6
CHANCES = 1 << 32


class Broken(Exception):
    """A rule did not keep to the contract."""


class RuleFailure(Exception):
    """A ladder that cannot be replayed: its rule raised or broke its contract at a game, or points ran out of bounds.

    `ladder` is its name, or that of its ruleset. `row` is the game's in the facts, or None where `position` names an
    adjustment.
    """

    def __init__(self, ladder: str, message: str, row: int | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.ladder = ladder
        self.row = row
        self.position = position

    def told(self, facts: Facts) -> str:
        """What failed where, in one line."""
        return f"{self.ladder}: the rule failed at position {self.place(facts)}: {self}"

    def place(self, facts: Facts) -> int:
        """The log position of the game or adjustment."""
        return facts.live_position[self.row] if self.row is not None else self.position or 0


def failed(ladder: str, rule: Rule, error: BaseException, row: int | None, what: str = "score") -> RuleFailure:
    """The failure of a ladder whose rule raised this, or broke its contract, in one of its functions at a game."""
    return RuleFailure(ladder, fault(error, getattr(rule, what)), row)


def fault(error: BaseException, function: Any) -> str:
    """What went wrong in a function of a rule, in one line, and where in its file."""
    code = getattr(function, "__code__", None)
    message = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
    if not isinstance(code, CodeType):
        return message
    line = _line_in(error.__traceback__, code.co_filename) or code.co_firstlineno
    return f"{message} ({Path(code.co_filename).name}, line {line})"


def _line_in(traceback: TracebackType | None, file: str) -> int | None:
    """The innermost line of a file on the way to an error."""
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def is_ours(rule: Rule) -> bool:
    """Whether a rule comes with this program."""
    return str(getattr(rule.score, "__module__", "")).startswith(OURS)


def quiet(*rules: Rule) -> AbstractContextManager[Any]:
    """What rules of packages print goes to standard error: standard output is an answer, which programs read."""
    return nullcontext() if all(map(is_ours, rules)) else redirect_stdout(sys.stderr)


def whole(value: Any, what: str) -> int:
    """A number that a rule returned. Raises `Broken` for anything else."""
    if isinstance(value, int):
        return int(value)
    raise Broken(f"{what} returned {_told(value)}; a whole number is needed")


def _told(value: Any) -> str:
    return "nothing" if value is None else shown(str(value)) if isinstance(value, str) else str(value)[:80]


def check(version: Version, ladder: str, row: int, n: int, columns: Columns) -> str | None:
    """Why the rule cannot score a game, or None. Raises `RuleFailure`."""
    rule = version.rule
    if rule.check is None:
        return None
    try:
        with quiet(rule):
            reason = rule.check(n, columns, version.params)
        if reason is None or isinstance(reason, str):
            return reason
        raise Broken(f"check returned {_told(reason)}; a reason or None is needed")
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "check") from error


def score(version: Version, ladder: str, row: int, points: Numbers, columns: Columns) -> tuple[int, list[int]]:
    """What the rule mints at a game, and the changes of all players. Raises `RuleFailure`."""
    rule, n = version.rule, len(points)
    change = array("q", bytes(8 * n))
    try:
        with quiet(rule):
            minted = whole(rule.score(n, points, columns, version.constants, table(rule), change), "score")
        return minted, balanced(n, minted, change)
    except FAULTS as error:
        raise failed(ladder, rule, error, row) from error


def balanced(n: int, minted: int, change: array[int]) -> list[int]:
    """The changes that a rule filled in. Raises `Broken` where the books do not balance."""
    found = change.tolist()
    if len(found) != n:
        raise Broken(f"score made {len(found)} changes of {n}")
    if minted < 0 or minted < sum(found):
        raise Broken(f"the books do not balance: score minted {minted}, and the changes sum to {sum(found)}")
    return found


def explain(
    version: Version, ladder: str, row: int, names: Sequence[str], points: Numbers, columns: Columns,
    change: Sequence[int],
) -> list[list[Term]]:  # fmt: skip
    """What the rule gives as the reasons of the changes. Raises `RuleFailure`, also where they do not sum to them."""
    rule = version.rule
    try:
        with quiet(rule):
            terms = rule.explain(len(names), names, points, columns, version.params, change)
        _look_at_terms(terms, change)
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "explain") from error
    return terms


def _look_at_terms(terms: Any, change: Sequence[int]) -> None:
    """Raises `Broken` unless these are as many lists of terms as there are changes, and sum to them."""
    if not isinstance(terms, list) or len(terms) != len(change) or not all(isinstance(mine, list) for mine in terms):
        raise Broken(f"explain returned {_told(terms)}; a list of terms for each of {len(change)} players is needed")
    for term in (term for mine in terms for term in mine):
        if not isinstance(term, Term) or not all(map(isinstance, term, (str, int, str, str))):
            raise Broken(f"explain returned {_told(term)}; a Term of texts and a whole number is needed")
    sums = [sum(term.amount for term in mine) for mine in terms]
    if sums != list(change):
        raise Broken(f"explain: the terms sum to {sums}, the changes are {list(change)}")


def remark(version: Version, ladder: str, row: int, names: Sequence[str], columns: Columns) -> str | None:
    """What the rule says of a game as a whole, if anything. Raises `RuleFailure`."""
    rule = version.rule
    if rule.remark is None:
        return None
    try:
        with quiet(rule):
            said = rule.remark(len(names), names, columns, version.params)
        if isinstance(said, str):
            return said
        raise Broken(f"remark returned {_told(said)}; a text is needed")
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "remark") from error


def chance(version: Version, ladder: str, row: int, i: int, j: int, points: Numbers, columns: Columns) -> int:
    """The expected score of player i against player j, in units of 2^-32, of a rule that has one. Raises
    `RuleFailure`, also for what is not between 0 and 1."""
    rule = version.rule
    assert rule.chance is not None
    try:
        given: tuple[Any, ...] = (points[i], points[j])
        if members(rule.chance) == OF_PLAYERS:
            given = (i, j, points, columns)
        with quiet(rule):
            found = whole(rule.chance(*given, version.constants, table(rule)), "chance")
        if not 0 < found < CHANCES:
            raise Broken(f"chance returned {found}; it lies between 0 and 2^32 = {CHANCES}, and is neither")
        return found
    except FAULTS as error:
        raise failed(ladder, rule, error, row, "chance") from error


@cache
def members(function: Callable[..., Any]) -> int:
    """How many arguments a function takes one after the other."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional for one in signature(function).parameters.values())


def table(rule: Rule) -> Numbers:
    """The table of a rule; that of a package is read once, and is the same at every game. Raises `Broken`."""
    return rule.table() if is_ours(rule) else _table(rule.table)


@cache
def _table(made: Callable[[], Numbers]) -> Numbers:
    with redirect_stdout(sys.stderr):
        return integers(made(), "table")


def integers(values: Any, what: str) -> tuple[int, ...]:
    """Constants of a rule. Raises `Broken` unless they are integers of 64 bits."""
    try:
        found = tuple(values)
    except TypeError:
        raise Broken(f"{what} returned {_told(values)}; whole numbers are needed") from None
    if wrong := [value for value in found if not isinstance(value, int) or not -INT64_MAX <= value <= INT64_MAX]:
        kind = "a whole number is needed" if not isinstance(wrong[0], int) else "it does not fit 64 bits"
        raise Broken(f"{what}: {_told(wrong[0])}; {kind}")
    return tuple(map(int, found))


def compiles(rule: Rule) -> bool:
    """Whether compiled code may stand for a rule: not for one of a package that has other numbers than integers."""
    return is_ours(rule) or inexact(rule) is None


def inexact(rule: Rule) -> str | None:
    """Where the scoring function of a rule, or a function that it calls, uses another number than integers, or None."""
    return _inexact(rule.score)


@cache
def _inexact(function: Any) -> str | None:
    return next(_floats(function, set()), None) if isinstance(function, FunctionType) else None


def _floats(function: FunctionType, seen: set[Any]) -> Iterator[str]:
    seen.add(function)
    file, line = Path(function.__code__.co_filename).name, function.__code__.co_firstlineno
    for step in dis.get_instructions(function):
        line = step.starts_line if isinstance(step.starts_line, int) and step.starts_line > 1 else line
        line = getattr(step, "line_number", None) or line
        where = f"({file}, line {line})"
        known = function.__globals__.get(str(step.argval)) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        if step.opname.startswith("LOAD_CONST") and isinstance(step.argval, (float, complex)):
            yield f"{function.__name__} has the number {step.argval} {where}"
        elif isinstance(known, (float, complex)):
            yield f"{function.__name__} reads {step.argval} = {known} {where}"
        elif step.argval == "float" and step.opname == "LOAD_GLOBAL":
            yield f"{function.__name__} calls float {where}"
        elif step.opname == "BINARY_OP" and step.argrepr in ("/", "/="):
            yield f"{function.__name__} divides with / {where}; // divides whole numbers"
        elif (
            isinstance(known, FunctionType)
            and known.__module__ in (function.__module__, "projections.expected")
            and known not in seen
        ):
            yield from _floats(known, seen)
