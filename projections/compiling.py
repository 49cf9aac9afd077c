"""Compiling loops and scoring functions with numba, which is loaded only for histories long enough to pay for it.

Compiled code is kept on disk beside the source (numba's own cache), so only the first process on a machine compiles.
It is the same source that is interpreted; with integers only, and no fast-math, the numbers are the same.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from ratings_ledger.projections import expected_scores
from ratings_ledger.projections.contract import Rule
from ratings_ledger.projections.rulesets.faults import FAULTS, INTERRUPTIONS, compiles, is_ours, quiet

# a shorter history is finished before numba has loaded; once it is, this part of it is enough
COMPILED_GAMES = 12_000
LOADED_PART = 12
# once numpy is there, it looks up so many numbers sooner
LOOKED_UP = 100

logger = logging.getLogger(__name__)
Options = dict[str, Any]  # of numba's
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
    """Whether everything runs interpreted here, to check the rest against."""
    return _interpreting.get()


def allowed() -> bool:
    """Whether compiled code may be used here at all."""
    return not is_interpreting() and available()


def pays(games: int) -> bool:
    """Whether a history of this many games is worth compiled loops, if they are available."""
    least = COMPILED_GAMES if "numba" not in sys.modules else max(1, COMPILED_GAMES // LOADED_PART)
    return games >= least and allowed()


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop over arrays, compiled for the types it is called with."""

    def run(*arguments: Any) -> Any:
        return _for_types(function, None, _types(arguments), True)(*arguments)

    return run


@cache
def around(loop: Callable[..., Any], rule: Rule, name: str = "score") -> Callable[..., Any]:
    """A loop of `loops` compiled around a rule's function of this name; it returns None where that cannot be done, or
    where the rule fails."""
    from numba.core.errors import NumbaError

    function = getattr(rule, name)

    def run(*arguments: Any) -> Any:
        if not compiles(rule):
            return None
        try:
            with quiet(rule):
                return _for_types(loop, (name, function), _types(arguments), is_ours(rule))(*arguments)
        except NumbaError as problem:
            _say_why(function, why_not_compiled(str(problem)))
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
    loop: Callable[..., Any], given: tuple[str, Callable[..., int]] | None, types: tuple[Any, ...], trusted: bool
) -> Callable[..., Any]:
    """A loop compiled for these types, around a rule's function if one is given; unless that is `trusted`, an index
    past the end of an array raises as it does in Python.

    numba's cache looks only at the file of the loop, so the name covers the rule's own source, too. It also covers the
    types, so that two processes compiling at once never write code for different types into one file.
    """
    rules = dict([given]) if given else {}
    # what is ours allocates nothing, so nobody has to count the references to arrays: that took half of all time
    options: Options = {"nogil": True, "boundscheck": not trusted, "_nrt": not trusted}
    stamp = sha256(repr((types, options, [(one.__module__, one.__qualname__) for one in rules.values()])).encode())
    for one in rules.values():
        source = Path(one.__code__.co_filename)
        stamp.update(source.read_bytes() if source.exists() else one.__code__.co_code)
        stamp.update(Path(expected_scores.__file__).read_bytes())
    return _jit(_standing_alone(loop, {}, options, rules, f"_{stamp.hexdigest()[:16]}"), options)  # type: ignore[no-any-return]


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
) -> Any:
    """A copy of a function that calls compiled copies of its module's own functions, or of the `given` ones instead."""
    from numba import njit

    space = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = given.get(name, space.get(name))
        own_module = (
            function.__module__,
            "ratings_ledger.projections.contract",
            "ratings_ledger.projections.expected_scores",
        )
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


def in_memory(column: Any) -> Any:
    """An array or memoryview of a column, which may be one that is checked as it is read."""
    return column if isinstance(column, array | memoryview) or not hasattr(column, "whole") else column.whole()


def as_numpy(column: Any) -> Any:
    """A column as a numpy array over the same memory."""
    import numpy as np

    column = in_memory(column)
    kind = np.dtype(memoryview(column).format)
    return np.frombuffer(column, dtype=kind) if len(column) else np.empty(0, dtype=kind)


def as_column(numbers: Any) -> Any:
    """A numpy array as a column of Python integers over the same memory."""
    return memoryview(numbers)


def largest(column: Any) -> int:
    """The largest number of a column; -1 for an empty one."""
    if pays(len(column)):
        return int(as_numpy(column).max())
    return max(column, default=-1)


def total(column: Any) -> int:
    """The sum of a column."""
    return int(as_numpy(column).sum()) if pays(len(column)) else sum(column)


def set_back(points: Any, games: Any, start: Any, end: Any, order: Any, before: Any, slot: int) -> Any:
    """Set everybody's points and games back to those before a slot; returns where their slots go on from there.

    The slots of player p are `order[start[p]:end[p]]`, ascending; they lead to the points `before` them.
    """
    if not pays(len(order)):
        following = array("q", [bisect_left(order, slot, low, high) for low, high in zip(start, end, strict=True)])
        for player, (at, last) in enumerate(zip(following, end, strict=True)):
            if at < last:
                points[player], games[player] = before[order[at]], games[player] - (last - at)
        return following
    import numpy as np

    slots, low, high = as_numpy(order), as_numpy(start).copy(), as_numpy(end).copy()
    wide = np.flatnonzero(low < high)
    while len(wide):
        middle = (low[wide] + high[wide]) // 2
        below = slots[middle] < slot
        low[wide[below]], high[wide[~below]] = middle[below] + 1, middle[~below]
        wide = wide[low[wide] < high[wide]]
    left = as_numpy(end) - low
    later = np.flatnonzero(left)
    leading = slots[low[later]]
    if hasattr(order, "let_go"):
        order.let_go()
    as_numpy(points)[later] = as_numpy(taken(before, leading))
    as_numpy(games)[:] -= left
    return as_column(low)


def concatenated(code: str, columns: Sequence[Any]) -> Any:
    """Several columns as one, of integers of a type."""
    if pays(sum(map(len, columns))):
        import numpy as np

        return as_column(np.concatenate([as_numpy(column) for column in columns]).astype(code, copy=False))
    return array(code, [number for column in columns for number in column])


def shifted(column: Any, by: int) -> Any:
    """A column of 64-bit integers with the same added to all."""
    if pays(len(column)):
        return as_column(as_numpy(column) + by)
    return array("q", [number + by for number in column])


def looks_up(count: int) -> bool:
    """Whether so many numbers are looked up sooner all at once."""
    return pays(count) or (count >= LOOKED_UP and "numpy" in sys.modules and allowed())


def taken(numbers: Any, column: Any) -> Any:
    """The numbers at the indices in a column."""
    if looks_up(len(column)):
        indices = as_numpy(column)
        return as_column(numbers.taken(indices) if hasattr(numbers, "taken") else as_numpy(numbers)[indices])
    return array(getattr(numbers, "typecode", None) or numbers.format, [numbers[index] for index in column])


def spans_of(starts: Any, numbers: Any) -> Any:
    """For each of some numbers, the index of the last of the ascending `starts` that is not above it."""
    if not looks_up(len(numbers)):
        return array("q", [bisect_right(starts, number) - 1 for number in numbers])
    import numpy as np

    # all of them by bisection at once: of a column in a file no more is read than that looks at
    wanted, low = as_numpy(numbers), np.zeros(len(numbers), dtype=np.int64)
    high = np.full(len(numbers), len(starts), dtype=np.int64)
    while (high - low).max() > 1:
        middle = (low + high) // 2
        above = as_numpy(taken(starts, as_column(middle))) > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return as_column(low)


def change_indices(column: Any) -> list[int]:
    """Where a column has another number than before, of one that is worth numpy; its beginning is one."""
    import numpy as np

    numbers = as_numpy(column)
    found: list[int] = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    return [0, *found] if len(numbers) else []


def distinct(column: Any) -> Any:
    """The different numbers of a column, in ascending order."""
    if not pays(len(column)):
        return array("q", sorted({*column}))
    import numpy as np

    return as_column(np.unique(np.array(column, dtype=np.int64)))


def span_indices(start: Any, count: Any) -> Any:
    """The indices in spans, one span after another."""
    if not pays(len(start)):
        return array("q", [at for first, size in zip(start, count, strict=True) for at in range(first, first + size)])
    import numpy as np

    first, size = as_numpy(start), as_numpy(count).astype(np.int64)
    return as_column(np.arange(int(size.sum())) + np.repeat(first - (np.cumsum(size) - size), size))


def before_each(count: Any) -> Any:
    """For every number of a column the sum of those before it."""
    if not pays(len(count)):
        return array("q", [0, *accumulate(count)][:-1])
    import numpy as np

    size = as_numpy(count).astype(np.int64)
    return as_column(np.cumsum(size) - size)


def equal(one: Any, other: Any) -> bool:
    """Whether two columns hold the same numbers."""
    if not pays(len(one)):
        return [*one] == [*other]
    return len(one) == len(other) and bool((as_numpy(one) == as_numpy(other)).all())


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
            return loop(*(argument if isinstance(argument, int) else in_memory(argument) for argument in arguments))
        seen = [argument if isinstance(argument, int) else as_numpy(argument) for argument in arguments]
        return compiled(loop)(*seen)
