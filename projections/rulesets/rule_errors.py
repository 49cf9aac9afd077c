"""Describe errors of rules in one line with a location: exceptions, wrong results, and inexact numbers."""

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
from ratings_ledger.projections.rulesets.kernel_determinism import find_nondeterminism

# All exceptions that a rule may raise. Code that catches them calls `describe_error`, which re-raises interruptions.
RULE_ERRORS = (BaseException,)
INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
MESSAGE_MAX = 500
BUILT_IN_PREFIX = "ratings_ledger.projections."
# The number of arguments of `chance`: with two players' points, or with two players of a game and its columns.
POINTS_ARGUMENTS, PLAYERS_ARGUMENTS = 4, 6


class ContractError(Exception):
    """An error of a rule that broke the contract."""


def describe_error(error: BaseException, function: Any) -> str:
    """Describe an error in a function of a rule in one line, with the line of its file.

    Raises the error itself if it is an interruption of the program.
    """
    if isinstance(error, INTERRUPTIONS):
        raise error
    code = getattr(function, "__code__", None)
    message = (
        _to_printable(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {_to_printable(error)}"
    )
    if not isinstance(code, CodeType):
        return message
    line = _find_line(error.__traceback__, code.co_filename) or code.co_firstlineno
    return f"{message} ({Path(code.co_filename).name}, line {line})"


def _to_printable(value: Any) -> str:
    """Return a value from a rule as one line of printable characters."""
    try:
        text = str(value)
    except BaseException as error:
        if isinstance(error, INTERRUPTIONS):
            raise
        return f"a {type(value).__name__} that cannot be read"
    return escape_unprintable(text[:MESSAGE_MAX])


def _find_line(traceback: TracebackType | None, file: str) -> int | None:
    """Return the line of the innermost frame of a traceback that is in a file; None if no frame is in the file."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def is_built_in(rule: Rule) -> bool:
    """Tell whether a rule comes with this program."""
    scoring = getattr(rule, "score", None) or rule.score_period  # a rule that scores only periods has no `score`
    return str(getattr(scoring, "__module__", "")).startswith(BUILT_IN_PREFIX)


def redirect_output(*rules: Rule) -> AbstractContextManager[Any]:
    """Let rules of packages print to standard error instead of standard output, which programs read."""
    outside = [rule.id for rule in rules if not is_built_in(rule)]
    return call_packages(*outside) if outside else nullcontext()


@contextmanager
def call_packages(*names: str) -> Iterator[None]:
    """Run code of the packages with these rules: it prints to standard error, and `os._exit` raises `SystemExit`."""
    outer_names = getattr(_calls, "names", ())
    os._exit = _exit  # also for modules that a package has imported
    _calls.names = names
    watch.begin(names)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _calls.names = outer_names
        watch.end(outer_names)


class RuleWatch:
    """An observer of calls into code of packages."""

    def begin(self, names: tuple[str, ...]) -> None:
        """Note that a call into the packages with these rules begins."""

    def end(self, names: tuple[str, ...]) -> None:
        """Note that a call ends; `names` are the rules of the enclosing call, if there is one."""


def _exit(status: int) -> NoReturn:
    if getattr(_calls, "names", ()):
        raise SystemExit(f"os._exit({status}) would end the program")
    _system_exit(status)


watch = RuleWatch()
_calls = threading.local()
_system_exit = os._exit


def read_integer(value: Any, function_name: str) -> int:
    """Return a whole number from a rule. Raises `ContractError` for any other value."""
    if isinstance(value, int):
        return int(value)
    raise ContractError(f"{function_name} returned {describe_value(value)}; a whole number is needed")


def read_state(rule: Rule, values: Any, function_name: str) -> StateValues:
    """Return a player's state from a function of the rule: a number within bounds for every state column.

    Raises `ContractError` for any other value.
    """
    if not isinstance(values, tuple) or len(values) != rule.width:
        names = ", ".join(column.name for column in rule.state)
        raise ContractError(
            f"{function_name} returned {describe_value(values)}; a tuple of {rule.width} whole numbers is needed "
            f"({names})"
        )
    state = tuple(read_integer(value, function_name) for value in values)
    for column, value in zip(rule.state, state, strict=True):
        if abs(value) > UNITS_MAX:
            raise ContractError(
                f"{function_name} returned {column.name} {value:,} units, which is out of bounds ({UNITS_MAX:,})"
            )
    return state


def describe_value(value: Any) -> str:
    """Describe a value from a rule in a few words."""
    return "nothing" if value is None else quote(str(value)) if isinstance(value, str) else _to_printable(value)[:80]


@cache
def count_arguments(function: Callable[..., Any]) -> int:
    """Count the positional arguments that a function takes."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in signature(function).parameters.values())


def rule_table(rule: Rule) -> Numbers:
    """Return the table of a rule. A package's table is read only once, for all games. Raises `ContractError`."""
    return rule.table() if is_built_in(rule) else _read_table(rule.table)


@cache
def _read_table(build: Callable[[], Numbers]) -> Numbers:
    with redirect_stdout(sys.stderr):
        return read_integers(build(), "table")


def read_integers(values: Any, function_name: str) -> tuple[int, ...]:
    """Return the integers in a value from a rule. Raises `ContractError` unless all are integers of 64 bits."""
    try:
        numbers = tuple(values)
    except TypeError:
        raise ContractError(f"{function_name} returned {describe_value(values)}; whole numbers are needed") from None
    if wrong := [value for value in numbers if not isinstance(value, int) or not -INT64_MAX <= value <= INT64_MAX]:
        problem = "a whole number is needed" if not isinstance(wrong[0], int) else "it does not fit in 64 bits"
        raise ContractError(f"{function_name} returned {describe_value(wrong[0])} among its numbers; {problem}")
    return tuple(map(int, numbers))


def can_compile(rule: Rule) -> bool:
    """Tell whether a rule may run as compiled code: any rule but a package's rule with inexact numbers."""
    return is_built_in(rule) or find_inexact_place(rule) is None


def find_inexact_place(rule: Rule) -> str | None:
    """Return the first result of `list_inexact_places`, or None."""
    return next(iter(list_inexact_places(rule)), None)


def list_inexact_places(rule: Rule) -> tuple[str, ...]:
    """Describe the places in a rule's source where its numbers may differ between machines, each with its location.

    The scoring function of a rule of contract 1, and the functions that it calls, may use only integers; only the first
    violation is described. A rule with state may use doubles within the limits of `find_nondeterminism`.
    """
    if rule.state:
        return _find_inexact_kernels(rule)
    place = _find_inexact_number(rule.score)
    return () if place is None else (place,)


@cache
def _find_inexact_kernels(rule: Rule) -> tuple[str, ...]:
    return tuple(map(str, find_nondeterminism(rule)))


@cache
def _find_inexact_number(function: Any) -> str | None:
    return next(_find_floats(function, set()), None) if isinstance(function, FunctionType) else None


def _find_floats(function: FunctionType, visited: set[Any]) -> Iterator[str]:
    visited.add(function)
    file, line = Path(function.__code__.co_filename).name, function.__code__.co_firstlineno
    for step in dis.get_instructions(function):
        line = step.starts_line if isinstance(step.starts_line, int) and step.starts_line > 1 else line
        line = getattr(step, "line_number", None) or line
        where = f"({file}, line {line})"
        value = function.__globals__.get(str(step.argval)) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        if step.opname.startswith("LOAD_CONST") and isinstance(step.argval, (float, complex)):
            yield f"{function.__name__} has the number {step.argval} {where}"
        elif isinstance(value, (float, complex)):
            yield f"{function.__name__} reads {step.argval} = {value} {where}"
        elif step.argval == "float" and step.opname == "LOAD_GLOBAL":
            yield f"{function.__name__} calls float {where}"
        elif step.opname == "BINARY_OP" and step.argrepr in ("/", "/="):
            yield f"{function.__name__} divides with / {where}; // divides whole numbers"
        elif (
            isinstance(value, FunctionType)
            and value.__module__ in (function.__module__, "ratings_ledger.projections.expected_scores")
            and value not in visited
        ):
            yield from _find_floats(value, visited)
