"""Compile loops and scoring functions with numba, which is loaded only for histories that are long enough.

Compiled code is kept on disk beside the source (numba's own cache), so only the first process on a machine compiles.
The same source is interpreted or compiled. The results are the same, because it uses only integers or the operations
of `deterministic_math`, and no fast-math.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

from ratings_ledger.projections import deterministic_math, expected_scores
from ratings_ledger.projections.arrays import as_numpy, np
from ratings_ledger.projections.contract import Rule
from ratings_ledger.projections.rulesets.rule_errors import (
    INTERRUPTIONS,
    RULE_ERRORS,
    can_compile,
    is_built_in,
    redirect_output,
)

# Replaying fewer games takes less time than loading numba. If numba is already loaded, the limit is divided by
# LOADED_DIVISOR.
COMPILED_GAMES = 12_000
LOADED_DIVISOR = 12

logger = logging.getLogger(__name__)
Options = dict[str, Any]  # keyword arguments of numba's `njit`
Parts = tuple[tuple[str, Callable[..., Any]], ...]
_interpreted_forced = ContextVar("_interpreted_forced", default=False)


@cache
def is_available() -> bool:
    """Tell whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


@contextmanager
def force_interpreted() -> Iterator[None]:
    """Run all loops interpreted within this context, to compare compiled results with interpreted ones."""
    token = _interpreted_forced.set(True)
    try:
        yield
    finally:
        _interpreted_forced.reset(token)


def is_interpreted_forced() -> bool:
    """Tell whether the current context forces all loops to run interpreted."""
    return _interpreted_forced.get()


def is_allowed() -> bool:
    """Tell whether compiled code may be used: numba is installed, and the context does not force interpretation."""
    return not is_interpreted_forced() and is_available()


def is_worthwhile(games: int) -> bool:
    """Tell whether compiled loops are allowed and pay off for this number of games."""
    games_min = COMPILED_GAMES if "numba" not in sys.modules else max(1, COMPILED_GAMES // LOADED_DIVISOR)
    return games >= games_min and is_allowed()


@cache
def compile_loop(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled version of a loop over arrays. A call with new argument types compiles the loop for them."""

    def run(*arguments: Any) -> Any:
        return _compile_for_types(loop, (), _describe_types(arguments), trusted=True)(*arguments)

    return run


@cache
def compile_with_rule(loop: Callable[..., Any], rule: Rule, parts: Parts) -> Callable[..., Any]:
    """Return a loop of `loops` compiled together with a rule's functions.

    Args:
        parts: (name, function) pairs: each function replaces the function of this name in `loops`. The first pair has
            the rule's own scoring function.

    Returns:
        A function that returns the loop's result. It returns None if the rule must be interpreted, if numba cannot
        compile the loop, or if the rule fails.
    """
    from numba.core.errors import NumbaError  # loads numba

    def run(*arguments: Any) -> Any:
        if not can_compile(rule):
            return None
        try:
            with redirect_output(rule):
                run_compiled = _compile_for_types(loop, parts, _describe_types(arguments), trusted=is_built_in(rule))
                return run_compiled(*arguments)
        except NumbaError as problem:
            _log_reason(parts[0][1], extract_reason(str(problem)))
        except INTERRUPTIONS:
            raise
        except RULE_ERRORS:  # the caller interprets the rule again, which locates the error
            return None
        return None

    return run


_NOISE = re.compile(r"\x1b\[[0-9;]*m|^(Failed in|During:|This error|- |\s*$).*", re.MULTILINE)


def extract_reason(problem: str) -> str:
    """Extract the reason from numba's message, with the line of the source but without numba's internal steps.

    >>> extract_reason("Failed in nopython mode pipeline (step: nopython frontend)\\nUntyped global name 'x'")
    "Untyped global name 'x'"
    """
    lines = [line.strip() for line in _NOISE.sub("", problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("File ", ">>>"))), "no reason given")
    locations = re.findall(r'File "([^"]+)", line (\d+)', problem)
    location = next((f"{Path(file).name}, line {line}" for file, line in locations if "numba" not in file), None)
    return f"{reason} ({location})" if location else reason


def protect_from_rule(numbers: Any, rule: Rule) -> Any:
    """Return an array in the form that a rule gets: for rules of packages a read-only view, else the array itself."""
    if is_built_in(rule):
        return numbers
    view = numbers.view()
    view.flags.writeable = False
    return view


def _describe_types(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return, for each argument, what decides which code numba generates: None for an integer, else type and layout."""
    return tuple(
        None
        if isinstance(value, int)
        else (value.dtype.char, value.ndim, value.flags.writeable, value.flags.c_contiguous)
        for value in arguments
    )


@cache
def _compile_for_types(
    loop: Callable[..., Any], parts: Parts, types: tuple[Any, ...], *, trusted: bool
) -> Callable[..., Any]:
    """Return a loop compiled for these types, together with a rule's functions if there are any.

    Unless these functions are `trusted`, an index past the end of an array raises as in Python. numba's cache checks
    only the file of the loop, so the compiled name includes a digest of the rule's source. The name also includes the
    types, so that two processes that compile at once never write code for different types into one file.
    """
    replacements = dict(parts)
    # The program's own code allocates nothing, so arrays need no reference counts, which took half of the time.
    options: Options = {"nogil": True, "boundscheck": not trusted, "_nrt": not trusted}
    inlined = "change_states" in replacements
    functions = replacements.values()
    names = [(function.__module__, function.__qualname__) for function in functions]
    digest = sha256(repr((types, options, inlined, names)).encode())
    for function in functions:
        source = Path(function.__code__.co_filename)
        digest.update(source.read_bytes() if source.exists() else function.__code__.co_code)
        for shared in (expected_scores, deterministic_math):
            digest.update(Path(str(shared.__file__)).read_bytes())
    copier = StandaloneCopier(options, f"_{digest.hexdigest()[:16]}", inlined)
    return _compile(copier.copy(loop, replacements), options)  # type: ignore[no-any-return]


@cache
def _log_reason(function: Callable[..., int], reason: str) -> None:
    """Log why a function is interpreted, once per function and reason."""
    name = f"{function.__module__}.{function.__name__}"
    logger.warning("ratings: %s is interpreted, because numba cannot compile it: %s", name, reason)


def _compile(function: Any, options: Options) -> Any:
    """Compile a function with numba, and cache the code on disk if possible."""
    from numba import njit

    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # the cache is not writable, so every process compiles again
        return njit(**options)(function)


class StandaloneCopier:
    """Copies a function together with the functions that it calls, so that numba compiles all of them as one unit.

    The suffix makes the name of every copy unique: if compiled code has two functions of one name, a process may call
    either. Helpers may be `inlined`, because a call costs as much as a small game.
    """

    def __init__(self, options: Options, suffix: str = "", inlined: bool = False) -> None:
        self.options, self.suffix, self.inlined = options, suffix, inlined
        self.compiled_helpers: dict[Any, Any] = {}

    def copy(self, function: Any, replacements: Mapping[str, Any]) -> Any:
        """Copy a function so that it calls compiled copies of `replacements`, by name, and of other functions.

        The others are functions of its own module, the contract, `expected_scores` or `deterministic_math`.
        """
        namespace = dict(function.__globals__)
        for name in function.__code__.co_names:
            helper = replacements.get(name, namespace.get(name))
            compilable_modules = (
                function.__module__,
                "ratings_ledger.projections.contract",
                expected_scores.__name__,
                deterministic_math.__name__,
            )
            if isinstance(helper, FunctionType) and (name in replacements or helper.__module__ in compilable_modules):
                # a function of a rule calls functions of its own module
                is_own = helper.__module__ == function.__module__
                namespace[name] = self._compile_helper(helper, replacements if is_own else {})
        copy = FunctionType(function.__code__, namespace, function.__name__ + self.suffix, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__ + self.suffix
        return copy

    def _compile_helper(self, helper: Any, replacements: Mapping[str, Any]) -> Any:
        """Return the compiled copy of a function that is called by another."""
        from numba import njit

        if helper not in self.compiled_helpers:
            compile_copy = njit(forceinline=self.inlined, **self.options)
            self.compiled_helpers[helper] = compile_copy(self.copy(helper, replacements))
        return self.compiled_helpers[helper]


def allocate_game_arrays(width: int, players_max: int) -> tuple[Any, Any]:
    """Allocate arrays for the states in one game before and after it, each of shape (width, players_max)."""
    return np.zeros((width, players_max), dtype=np.int64), np.zeros((width, players_max), dtype=np.int64)


def to_constants(numbers: Sequence[int]) -> Any:
    """Return a rule's constants or table as an array of 64-bit integers, which compiled rules read."""
    return np.array(numbers, dtype=np.int64)


def run_loop(loop: Callable[..., Any], *arguments: Any, as_compiled: bool) -> Any:
    """Run a loop over columns and integers, interpreted or compiled. Return the loop's result."""
    if not as_compiled:
        # interpreted loops read a column of a file many times faster from memory
        return loop(*(column.read_whole() if hasattr(column, "read_whole") else column for column in arguments))
    return compile_loop(loop)(*map(as_numpy, arguments))
