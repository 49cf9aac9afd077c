"""Compile loops and scoring functions with numba, which is loaded only for histories long enough to pay for it.

Compiled code is kept on disk beside the source (numba's own cache), so only the first process on a machine compiles.
It is the same source that is interpreted; with integers only, and no fast-math, the numbers are the same.
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

from ratings_ledger.projections import expected_scores, kit
from ratings_ledger.projections.arrays import as_numpy, np
from ratings_ledger.projections.contract import Rule
from ratings_ledger.projections.rulesets.faults import FAULTS, INTERRUPTIONS, compiles, is_ours, quiet

# a shorter history is finished before numba has loaded; once it is, this part of it is enough
COMPILED_GAMES = 12_000
LOADED_PART = 12

logger = logging.getLogger(__name__)
Options = dict[str, Any]  # of numba's
Parts = tuple[tuple[str, Callable[..., Any]], ...]
_interpreting = ContextVar("_interpreting", default=False)


@cache
def available() -> bool:
    """Return whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


@contextmanager
def interpreting() -> Iterator[None]:
    """Run everything interpreted, to check compiled code against."""
    before = _interpreting.set(True)
    try:
        yield
    finally:
        _interpreting.reset(before)


def is_interpreting() -> bool:
    """Tell whether everything runs interpreted here, to check the rest against."""
    return _interpreting.get()


def allowed() -> bool:
    """Tell whether compiled code may be used here at all."""
    return not is_interpreting() and available()


def is_worthwhile(games: int) -> bool:
    """Return whether a history of this many games is worth compiled loops, if they are available."""
    least = COMPILED_GAMES if "numba" not in sys.modules else max(1, COMPILED_GAMES // LOADED_PART)
    return games >= least and allowed()


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop over arrays, compiled for the types it is called with."""

    def run(*arguments: Any) -> Any:
        return _for_types(function, (), _types(arguments), True)(*arguments)

    return run


@cache
def around(loop: Callable[..., Any], rule: Rule, parts: Parts) -> Callable[..., Any]:
    """Return a loop of `loops` compiled around a rule's functions; it returns None where that cannot be done, or where
    the rule fails.

    parts: what takes the place of functions of `loops`, by name; the first is the rule's
    """
    from numba.core.errors import NumbaError  # loads numba

    def run(*arguments: Any) -> Any:
        if not compiles(rule):
            return None
        try:
            with quiet(rule):
                return _for_types(loop, parts, _types(arguments), is_ours(rule))(*arguments)
        except NumbaError as problem:
            _say_why(parts[0][1], why_not_compiled(str(problem)))
        except INTERRUPTIONS:
            raise
        except FAULTS:  # of the rule, which is then interpreted to say where
            return None
        return None

    return run


_NOISE = re.compile(r"\x1b\[[0-9;]*m|^(Failed in|During:|This error|- |\s*$).*", re.MULTILINE)


def why_not_compiled(problem: str) -> str:
    """Return the reason in numba's message, without the names of its own steps; with the line of the source, if it has
    one.

    >>> why_not_compiled("Failed in nopython mode pipeline (step: nopython frontend)\\nUntyped global name 'x'")
    "Untyped global name 'x'"
    """
    lines = [line.strip() for line in _NOISE.sub("", problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("File ", ">>>"))), "it does not say why")
    where = re.findall(r'File "([^"]+)", line (\d+)', problem)
    own = next(((Path(file).name, line) for file, line in where if "numba" not in file), None)
    return f"{reason} ({own[0]}, line {own[1]})" if own else reason


def read_only(numbers: Any, rule: Rule) -> Any:
    """Return a rule's input, made read-only for rules of packages."""
    if is_ours(rule):
        return numbers
    seen = numbers.view()
    seen.flags.writeable = False
    return seen


def _types(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return what numba distinguishes about the arguments: integers and arrays."""
    return tuple(
        None if isinstance(one, int) else (one.dtype.char, one.ndim, one.flags.writeable, one.flags.c_contiguous)
        for one in arguments
    )


@cache
def _for_types(loop: Callable[..., Any], parts: Parts, types: tuple[Any, ...], trusted: bool) -> Callable[..., Any]:
    """Return a loop compiled for these types, around a rule's functions if there are any; unless they are `trusted`, an
    index past the end of an array raises as it does in Python.

    numba's cache looks only at the file of the loop, so the name covers the rule's own source, too. It also covers the
    types, so that two processes compiling at once never write code for different types into one file.
    """
    rules = dict(parts)
    # what is ours allocates nothing, so nobody has to count the references to arrays: that took half of all time
    options: Options = {"nogil": True, "boundscheck": not trusted, "_nrt": not trusted}
    inlined = "change_states" in rules
    stamp = sha256(
        repr((types, options, inlined, [(one.__module__, one.__qualname__) for one in rules.values()])).encode()
    )
    for one in rules.values():
        source = Path(one.__code__.co_filename)
        stamp.update(source.read_bytes() if source.exists() else one.__code__.co_code)
        for shared in (expected_scores, kit):
            stamp.update(Path(str(shared.__file__)).read_bytes())
    suffix = f"_{stamp.hexdigest()[:16]}"
    return _jit(_standing_alone(loop, {}, options, rules, suffix, inlined), options)  # type: ignore[no-any-return]


@cache
def _say_why(function: Callable[..., int], reason: str) -> None:
    told = f"{function.__module__}.{function.__name__}"
    logger.warning("ratings: %s is interpreted, numba cannot compile it: %s", told, reason)


def _jit(function: Any, options: Options) -> Any:
    from numba import njit

    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep the compiled code: every process compiles it again
        return njit(**options)(function)


def _standing_alone(
    function: Any,
    done: dict[Any, Any],
    options: Options,
    given: Mapping[str, Any] = MappingProxyType({}),
    suffix: str = "",
    inlined: bool = False,
) -> Any:
    """Return a copy of a function that calls compiled copies of its module's own functions, or of the `given` ones
    instead.
    """
    from numba import njit

    space = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = given.get(name, space.get(name))
        own_module = (
            function.__module__,
            "ratings_ledger.projections.contract",
            "ratings_ledger.projections.expected_scores",
            "ratings_ledger.projections.kit",
        )
        if isinstance(helper, FunctionType) and (name in given or helper.__module__ in own_module):
            if helper not in done:
                # a function of a rule calls functions of its own
                own = given if helper.__module__ == function.__module__ else {}
                # a helper's name covers what it was compiled with, too: if a process loads two of one name in
                # compiled code, either may be called
                # a call costs as much as a small game: arrays are passed as numbers, one by one
                helped = njit(forceinline=inlined, **options)
                done[helper] = helped(_standing_alone(helper, done, options, own, suffix, inlined))
            space[name] = done[helper]
    copy = FunctionType(function.__code__, space, function.__name__ + suffix, function.__defaults__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__ + suffix
    return copy


def room_for_a_game(width: int, most: int) -> tuple[Any, Any]:
    """Return what a scoring loop needs for a game of at most `most` players: their states, and how these change."""
    return np.zeros((width, most), dtype=np.int64), np.zeros((width, most), dtype=np.int64)


def constants(numbers: Sequence[int]) -> Any:
    """Return a rule's constants or table as the compiled rule reads them."""
    return np.array(numbers, dtype=np.int64)


def run_loop(loop: Callable[..., Any], *arguments: Any, as_compiled: bool) -> Any:
    """Return what a loop returns for these columns and integers: interpreted, or compiled if requested."""
    if not as_compiled:
        # a column in a file is read as a whole, others are there
        return loop(*(column.whole() if hasattr(column, "whole") else column for column in arguments))
    return compiled(loop)(*map(as_numpy, arguments))
