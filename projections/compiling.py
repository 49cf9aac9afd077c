"""Compile loops and scoring functions with numba, which is loaded only for histories long enough to pay for it.

Compiled code is kept on disk beside the source (numba's own cache), so only the first process on a machine compiles.
The same source is interpreted and compiled; with integers only, and no fast-math, the results are the same.
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
from types import FunctionType, MappingProxyType
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

# A shorter history is replayed before numba has loaded. Once it is loaded, 1/LOADED_PART of this length is enough.
COMPILED_GAMES = 12_000
LOADED_PART = 12

logger = logging.getLogger(__name__)
Options = dict[str, Any]  # of numba's
Parts = tuple[tuple[str, Callable[..., Any]], ...]
_interpreting = ContextVar("_interpreting", default=False)


@cache
def is_available() -> bool:
    """Tell whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


@contextmanager
def interpreting() -> Iterator[None]:
    """Run all loops interpreted, to compare compiled code with them."""
    before = _interpreting.set(True)
    try:
        yield
    finally:
        _interpreting.reset(before)


def is_interpreting() -> bool:
    """Tell whether all loops run interpreted here."""
    return _interpreting.get()


def is_allowed() -> bool:
    """Tell whether compiled code may be used here."""
    return not is_interpreting() and is_available()


def is_worthwhile(games: int) -> bool:
    """Tell whether a history of this many games is worth compiled loops, if they are available."""
    least = COMPILED_GAMES if "numba" not in sys.modules else max(1, COMPILED_GAMES // LOADED_PART)
    return games >= least and is_allowed()


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop over arrays, compiled for the types it is called with."""

    def run(*arguments: Any) -> Any:
        return _compile_for_types(function, (), _describe_types(arguments), True)(*arguments)

    return run


@cache
def around(loop: Callable[..., Any], rule: Rule, parts: Parts) -> Callable[..., Any]:
    """Return a loop of `loops` compiled with a rule's functions. It returns None if numba cannot compile it, or if the
    rule fails.

    parts: by name, the functions that replace functions of `loops`; the first is the rule's
    """
    from numba.core.errors import NumbaError  # loads numba

    def run(*arguments: Any) -> Any:
        if not can_compile(rule):
            return None
        try:
            with redirect_output(rule):
                return _compile_for_types(loop, parts, _describe_types(arguments), is_built_in(rule))(*arguments)
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
    """Extract the reason from numba's message, without the names of numba's own steps, with the line of the source.

    >>> extract_reason("Failed in nopython mode pipeline (step: nopython frontend)\\nUntyped global name 'x'")
    "Untyped global name 'x'"
    """
    lines = [line.strip() for line in _NOISE.sub("", problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("File ", ">>>"))), "it does not say why")
    where = re.findall(r'File "([^"]+)", line (\d+)', problem)
    own = next(((Path(file).name, line) for file, line in where if "numba" not in file), None)
    return f"{reason} ({own[0]}, line {own[1]})" if own else reason


def read_only(numbers: Any, rule: Rule) -> Any:
    """Return the input of a rule, read-only for rules of packages."""
    if is_built_in(rule):
        return numbers
    view = numbers.view()
    view.flags.writeable = False
    return view


def _describe_types(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the properties of arguments by which numba chooses code: integer, or type and layout of the array."""
    return tuple(
        None
        if isinstance(value, int)
        else (value.dtype.char, value.ndim, value.flags.writeable, value.flags.c_contiguous)
        for value in arguments
    )


@cache
def _compile_for_types(
    loop: Callable[..., Any], parts: Parts, types: tuple[Any, ...], trusted: bool
) -> Callable[..., Any]:
    """Return a loop compiled for these types, with a rule's functions if there are any.

    Unless these are `trusted`, an index past the end of an array raises as in Python. numba's cache checks only the
    file of the loop, so the compiled name includes a digest of the rule's source. It also includes the types, so that
    two processes that compile at once never write code for different types into one file.
    """
    rules = dict(parts)
    # The program's own code allocates nothing, so arrays need no reference counts, which took half of the time.
    options: Options = {"nogil": True, "boundscheck": not trusted, "_nrt": not trusted}
    inlined = "change_states" in rules
    stamp = sha256(
        repr((types, options, inlined, [(part.__module__, part.__qualname__) for part in rules.values()])).encode()
    )
    for part in rules.values():
        source = Path(part.__code__.co_filename)
        stamp.update(source.read_bytes() if source.exists() else part.__code__.co_code)
        for shared in (expected_scores, deterministic_math):
            stamp.update(Path(str(shared.__file__)).read_bytes())
    suffix = f"_{stamp.hexdigest()[:16]}"
    return _jit(_copy_standalone(loop, {}, options, rules, suffix, inlined), options)  # type: ignore[no-any-return]


@cache
def _log_reason(function: Callable[..., int], reason: str) -> None:
    name = f"{function.__module__}.{function.__name__}"
    logger.warning("ratings: %s is interpreted, numba cannot compile it: %s", name, reason)


def _jit(function: Any, options: Options) -> Any:
    from numba import njit

    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # the cache is not writable, so every process compiles again
        return njit(**options)(function)


def _copy_standalone(
    function: Any,
    compiled_helpers: dict[Any, Any],
    options: Options,
    replacements: Mapping[str, Any] = MappingProxyType({}),
    suffix: str = "",
    inlined: bool = False,
) -> Any:
    """Copy a function so that it calls compiled copies of its module's functions, or of the `replacements` by name."""
    from numba import njit

    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = replacements.get(name, namespace.get(name))
        own_module = (
            function.__module__,
            "ratings_ledger.projections.contract",
            "ratings_ledger.projections.expected_scores",
            "ratings_ledger.projections.deterministic_math",
        )
        if isinstance(helper, FunctionType) and (name in replacements or helper.__module__ in own_module):
            if helper not in compiled_helpers:
                # A function of a rule calls functions of its own module.
                own = replacements if helper.__module__ == function.__module__ else {}
                # The suffix makes a helper's name unique: if compiled code has two functions of one name, a process
                # may call either. They are inlined, because a call costs as much as a small game.
                helped = njit(forceinline=inlined, **options)
                compiled_helpers[helper] = helped(
                    _copy_standalone(helper, compiled_helpers, options, own, suffix, inlined)
                )
            namespace[name] = compiled_helpers[helper]
    copy = FunctionType(function.__code__, namespace, function.__name__ + suffix, function.__defaults__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__ + suffix
    return copy


def allocate_game_room(width: int, most: int) -> tuple[Any, Any]:
    """Allocate room for a game of at most `most` players: their states, and the changes of these."""
    return np.zeros((width, most), dtype=np.int64), np.zeros((width, most), dtype=np.int64)


def to_constants(numbers: Sequence[int]) -> Any:
    """Return a rule's constants or table as the compiled rule reads them."""
    return np.array(numbers, dtype=np.int64)


def run_loop(loop: Callable[..., Any], *arguments: Any, as_compiled: bool) -> Any:
    """Run a loop over columns and integers, interpreted or compiled, and return its result."""
    if not as_compiled:
        # Interpreted loops need a column of a file in memory.
        return loop(*(column.whole() if hasattr(column, "whole") else column for column in arguments))
    return compiled(loop)(*map(as_numpy, arguments))
