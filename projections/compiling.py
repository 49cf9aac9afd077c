"""Compiling loops and scoring functions with numba, which is loaded only for histories long enough to pay for it.

Compiled code is kept on disk beside the source (numba's own cache), so only the first process on a machine compiles.
It is the same source that is interpreted; with integers only, and no fast-math, the numbers are the same.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from projections import expected_scores
from projections.contract import Rule, Score
from projections.rulesets.faults import FAULTS, INTERRUPTIONS, compiles, is_ours, quiet

# a shorter history is finished before numba has loaded
COMPILED_GAMES = 20_000

logger = logging.getLogger(__name__)
Options = dict[str, Any]  # of numba's
_interpreting = ContextVar("_interpreting", default=False)


@cache
def available() -> bool:
    """Whether numba and numpy are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "numpy"))


@contextmanager
def interpreting() -> Iterator[None]:
    """Run everything interpreted, to check compiled code against."""
    before = _interpreting.set(True)
    try:
        yield
    finally:
        _interpreting.reset(before)


def allowed() -> bool:
    """Whether compiled code may be used here at all."""
    return not _interpreting.get() and available()


def pays(games: int) -> bool:
    """Whether a history of this many games is worth compiled loops, if they are available."""
    return games >= COMPILED_GAMES and allowed()


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop over arrays, compiled for the types it is called with."""

    def run(*arguments: Any) -> Any:
        return _for_types(function, None, _types(arguments), True)(*arguments)

    return run


@cache
def scoring(loop: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    """`loops.run_ladder` or `loops.run_ladders` compiled around a rule's scoring function; it returns None where that
    cannot be done, or where the rule fails."""
    from numba.core.errors import NumbaError

    def run(*arguments: Any) -> Any:
        if not compiles(rule):
            return None
        try:
            with quiet(rule):
                return _for_types(loop, rule.score, _types(arguments), is_ours(rule))(*arguments)
        except NumbaError as problem:
            _say_why(rule.score, why_not_compiled(str(problem)))
        except INTERRUPTIONS:
            raise
        except FAULTS:  # of the rule, which is then interpreted to say where
            return None
        return None

    return run


_NOISE = re.compile(r"\x1b\[[0-9;]*m|^(Failed in|During:|This error|- |\s*$).*", re.MULTILINE)


def why_not_compiled(problem: str) -> str:
    """The reason in numba's message, without the names of its own steps; with the line of the source, if it has one.

    >>> why_not_compiled("Failed in nopython mode pipeline (step: nopython frontend)\\nUntyped global name 'x'")
    "Untyped global name 'x'"
    """
    lines = [line.strip() for line in _NOISE.sub("", problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("File ", ">>>"))), "it does not say why")
    where = re.findall(r'File "([^"]+)", line (\d+)', problem)
    own = next(((Path(file).name, line) for file, line in where if "numba" not in file), None)
    return f"{reason} ({own[0]}, line {own[1]})" if own else reason


def read_only(numbers: Any, rule: Rule) -> Any:
    """A rule's input, made read-only for rules of packages."""
    if is_ours(rule):
        return numbers
    seen = numbers.view()
    seen.flags.writeable = False
    return seen


def _types(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What numba distinguishes about the arguments: integers and arrays."""
    return tuple(
        None if isinstance(one, int) else (one.dtype.char, one.ndim, one.flags.writeable, one.flags.c_contiguous)
        for one in arguments
    )


@cache
def _for_types(
    loop: Callable[..., Any], score: Score | None, types: tuple[Any, ...], trusted: bool
) -> Callable[..., Any]:
    """A loop compiled for these types, around a scoring function if there is one; unless that is `trusted`, an index
    past the end of an array raises as it does in Python.

    numba's cache looks only at the file of the loop, so the name covers the rule's own source, too. It also covers the
    types, so that two processes compiling at once never write code for different types into one file.
    """
    stamp = sha256(repr((types, trusted, score and (score.__module__, score.__qualname__))).encode())
    if score is not None:
        source = Path(score.__code__.co_filename)
        stamp.update(source.read_bytes() if source.exists() else score.__code__.co_code)
        stamp.update(Path(expected_scores.__file__).read_bytes())
    given = {} if score is None else {"score": score}
    options: Options = {"nogil": True, "boundscheck": not trusted}
    return _jit(_standing_alone(loop, {}, options, given, f"_{stamp.hexdigest()[:16]}"), options)  # type: ignore[no-any-return]


@cache
def _say_why(score: Score, reason: str) -> None:
    logger.warning("ratings: %s.score is interpreted, numba cannot compile it: %s", score.__module__, reason)


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
) -> Any:
    """A copy of a function that calls compiled copies of its module's own functions, or of the `given` ones instead."""
    from numba import njit

    space = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = given.get(name, space.get(name))
        own_module = (function.__module__, "projections.contract", "projections.expected_scores")
        if isinstance(helper, FunctionType) and (name in given or helper.__module__ in own_module):
            if helper not in done:
                own = {} if name in given else given
                # a helper's name covers what it was compiled with, too: if a process loads two of one name in
                # compiled code, either may be called
                done[helper] = njit(**options)(_standing_alone(helper, done, options, own, suffix))
            space[name] = done[helper]
    copy = FunctionType(function.__code__, space, function.__name__ + suffix, function.__defaults__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__ + suffix
    return copy


def zeros(code: str, length: int) -> Any:
    """Room for `length` integers, zeroed: what the loops fill."""
    if pays(length):
        import numpy as np

        return as_column(np.zeros(length, dtype=code))  # the system zeroes pages when they are first touched
    return array(code, bytes(array(code).itemsize * length))


def as_numpy(column: Any) -> Any:
    """An array or memoryview as a numpy array over the same memory."""
    import numpy as np

    kind = np.dtype(memoryview(column).format)
    return np.frombuffer(column, dtype=kind) if len(column) else np.empty(0, dtype=kind)


def as_column(numbers: Any) -> Any:
    """A numpy array as a column of Python integers over the same memory."""
    return memoryview(numbers)


def lengths_between(offsets: Any) -> Any:
    """The distance from every offset to the next."""
    if not pays(len(offsets)):
        return array("i", [last - first for first, last in pairwise(offsets)])
    import numpy as np

    return as_column(np.diff(as_numpy(offsets)).astype(np.int32))


def side_by_side(columns: Sequence[Any]) -> Any:
    """Columns of one type as the rows of one array, which they may already be."""
    import numpy as np

    return columns if isinstance(columns, np.ndarray) else np.stack([as_numpy(column) for column in columns])


def room_for_a_game(most: int) -> tuple[Any, Any]:
    """What a scoring loop needs for one game of at most `most` players: the points before it, and the changes."""
    import numpy as np

    return np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)


def constants(numbers: Sequence[int]) -> Any:
    """A rule's constants or table as the compiled rule reads them."""
    import numpy as np

    return np.array(numbers, dtype=np.int64)


class Arrays(NamedTuple):
    """How the loops run: interpreted over arrays, or compiled over numpy's."""

    compiled: bool

    def run(self, loop: Callable[..., Any], *arguments: Any) -> Any:
        """What the loop returns for these columns and integers."""
        if not self.compiled:
            return loop(*arguments)
        seen = [argument if isinstance(argument, int) else as_numpy(argument) for argument in arguments]
        return compiled(loop)(*seen)
