"""What rules do wrong: what they raise and return, and what numbers they use; described in a line, with the place."""

import dis
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, NoReturn

from ratings_ledger.ledger.rejections import escape_unprintable, quote
from ratings_ledger.projections.contract import INT64_MAX, UNITS_MAX, Numbers, Rule, StateValues
from ratings_ledger.projections.rulesets.arithmetic import find_inexact

# what a rule may raise; whoever catches it calls `fault`, or re-raises an interruption of the program themselves
FAULTS = (BaseException,)
INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
MESSAGE_MAX = 500
OURS = "ratings_ledger.projections."
# how many arguments `chance` takes: for two players' points, or for two players among all, with the columns
OF_POINTS, OF_PLAYERS = 4, 6


class Broken(Exception):
    """A rule broke the contract."""


def fault(error: BaseException, function: Any) -> str:
    """Return what went wrong in a function of a rule, in one line, and where in its file.

    Raises the error itself if somebody interrupted the program.
    """
    if isinstance(error, INTERRUPTIONS):
        raise error
    code = getattr(function, "__code__", None)
    message = _text(error) if isinstance(error, Broken) else f"{type(error).__name__}: {_text(error)}"
    if not isinstance(code, CodeType):
        return message
    line = _line_in(error.__traceback__, code.co_filename) or code.co_firstlineno
    return f"{message} ({Path(code.co_filename).name}, line {line})"


def _text(value: Any) -> str:
    """Return a rule's text, in one line of printable characters, whatever it is."""
    try:
        text = str(value)
    except BaseException as error:
        if isinstance(error, INTERRUPTIONS):
            raise
        return f"a {type(value).__name__} that cannot be read"
    return escape_unprintable(text[:MESSAGE_MAX])


def _line_in(traceback: TracebackType | None, file: str) -> int | None:
    """Return the innermost line of a file on the way to an error."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def is_ours(rule: Rule) -> bool:
    """Tell whether a rule comes with this program."""
    scoring = getattr(rule, "score", None) or rule.score_period  # a rule that scores periods alone has no score
    return str(getattr(scoring, "__module__", "")).startswith(OURS)


def quiet(*rules: Rule) -> AbstractContextManager[Any]:
    """Send what rules of packages print to standard error: standard output is an answer, which programs read."""
    outside = [rule.id for rule in rules if not is_ours(rule)]
    return calling(*outside) if outside else nullcontext()


@contextmanager
def calling(*names: str) -> Iterator[None]:
    """Run code of packages with these rules: it prints to standard error, and `os._exit` raises `SystemExit`."""
    before = getattr(_calls, "names", ())
    os._exit = _exit  # for whatever a package has imported, too
    _calls.names = names
    watch.begin(names)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _calls.names = before
        watch.end(before)


class RuleWatch:
    """Notified of every call into code of packages; `names` are the rules of the call, or of the one around it."""

    def begin(self, names: tuple[str, ...]) -> None:
        """Note that a call begins."""

    def end(self, names: tuple[str, ...]) -> None:
        """Note that a call ends; `names` are empty unless another is around it."""


def _exit(status: int) -> NoReturn:
    if getattr(_calls, "names", ()):
        raise SystemExit(f"os._exit({status}) would end the program")
    _true_exit(status)


watch = RuleWatch()
_calls = threading.local()
_true_exit = os._exit


def whole(value: Any, what: str) -> int:
    """Return a number that a rule returned. Raises `Broken` for anything else."""
    if isinstance(value, int):
        return int(value)
    raise Broken(f"{what} returned {told_value(value)}; a whole number is needed")


def read_state(rule: Rule, values: Any, what: str) -> StateValues:
    """Return a player's state as a function of the rule returned it: a number within bounds for every column.

    Raises `Broken` for anything else.
    """
    if not isinstance(values, tuple) or len(values) != rule.width:
        names = ", ".join(column.name for column in rule.state)
        raise Broken(f"{what} returned {told_value(values)}; a tuple of {rule.width} whole numbers is needed ({names})")
    state = tuple(whole(value, what) for value in values)
    for column, value in zip(rule.state, state, strict=True):
        if abs(value) > UNITS_MAX:
            raise Broken(f"{what} returned {column.name} {value:,} units, which is out of bounds ({UNITS_MAX:,})")
    return state


def told_value(value: Any) -> str:
    """Return a value that a rule returned, in a few words."""
    return "nothing" if value is None else quote(str(value)) if isinstance(value, str) else _text(value)[:80]


@cache
def argument_count(function: Callable[..., Any]) -> int:
    """Return how many positional arguments a function takes."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in signature(function).parameters.values())


def rule_table(rule: Rule) -> Numbers:
    """Return the table of a rule; a package's is read once, and is the same at every game. Raises `Broken`."""
    return rule.table() if is_ours(rule) else _table(rule.table)


@cache
def _table(build: Callable[[], Numbers]) -> Numbers:
    with redirect_stdout(sys.stderr):
        return integers(build(), "table")


def integers(values: Any, what: str) -> tuple[int, ...]:
    """Constants of a rule. Raises `Broken` unless they are integers of 64 bits."""
    try:
        numbers = tuple(values)
    except TypeError:
        raise Broken(f"{what} returned {told_value(values)}; whole numbers are needed") from None
    if wrong := [value for value in numbers if not isinstance(value, int) or not -INT64_MAX <= value <= INT64_MAX]:
        kind = "a whole number is needed" if not isinstance(wrong[0], int) else "it does not fit 64 bits"
        raise Broken(f"{what}: {told_value(wrong[0])}; {kind}")
    return tuple(map(int, numbers))


def compiles(rule: Rule) -> bool:
    """Tell whether compiled code may stand in for a rule: not for a package's rule whose numbers may differ."""
    return is_ours(rule) or inexact(rule) is None


def inexact(rule: Rule) -> str | None:
    """Return the first of what `inexact_places` returns, or None."""
    return next(iter(inexact_places(rule)), None)


def inexact_places(rule: Rule) -> tuple[str, ...]:
    """Return where a rule's numbers may differ between machines.

    A rule of contract 1 may use no numbers but integers in its scoring function and what that calls. One with state may
    use doubles, as `find_inexact` allows.
    """
    if rule.state:
        return _inexact_kernels(rule)
    why = _inexact(rule.score)
    return () if why is None else (why,)


@cache
def _inexact_kernels(rule: Rule) -> tuple[str, ...]:
    return tuple(map(str, find_inexact(rule)))


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
            and known.__module__ in (function.__module__, "ratings_ledger.projections.expected_scores")
            and known not in seen
        ):
            yield from _floats(known, seen)
