"""Direct calls of the functions of a rule with state, interpreted and compiled by the product's own compiler."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, permutations
from typing import Any

import numpy as np
import pytest

from ratings_ledger.projections import compiling
from ratings_ledger.rules import Rule

State = list[list[int]]


def score(n: Any, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def score_period(players: Any, before: Any, offsets: Any, rows: Any, constants: Any, table: Any, after: Any) -> int:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def new_season(state: Any, constants: Any) -> tuple[int, ...]:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def age(state: Any, elapsed: Any, constants: Any) -> tuple[int, ...]:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def chance(i: Any, j: Any, before: Any, columns: Any, constants: Any, table: Any) -> int:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def draw(i: Any, j: Any, before: Any, columns: Any, constants: Any, table: Any) -> int:
    """Stand in for a rule's function; `compiling.compile_with_rule` replaces it."""
    raise NotImplementedError


def run_score(n: Any, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
    """Score one game."""
    return score(n, before, columns, constants, table, after) | 0


def run_period(players: Any, before: Any, offsets: Any, rows: Any, constants: Any, table: Any, after: Any) -> int:
    """Score one period."""
    return score_period(players, before, offsets, rows, constants, table, after) | 0


def run_new_season(rating: int, constants: Any) -> int:
    """Begin a season."""
    return new_season((rating,), constants)[0] | 0


def run_age(elapsed: int, before: Any, constants: Any, after: Any) -> int:
    """Let time pass for a player with two numbers."""
    after[0][0], after[1][0] = age((before[0][0], before[1][0]), elapsed, constants)
    return 0


def run_age_of_three(elapsed: int, before: Any, constants: Any, after: Any) -> int:
    """Let time pass for a player with three numbers."""
    after[0][0], after[1][0], after[2][0] = age((before[0][0], before[1][0], before[2][0]), elapsed, constants)
    return 0


def run_chance(i: Any, j: Any, before: Any, columns: Any, constants: Any, table: Any) -> int:
    """Return an expected score."""
    return chance(i, j, before, columns, constants, table) | 0


def run_draw(i: Any, j: Any, before: Any, columns: Any, constants: Any, table: Any) -> int:
    """Return the probability of a draw."""
    return draw(i, j, before, columns, constants, table) | 0


def compile_function(function: Any) -> Any:
    """Compile a function of a rule, with the functions that it calls, to call it with arrays; bounds are checked."""
    from numba import njit

    return njit(boundscheck=True)(compiling.StandaloneCopier({}).copy(function, {}))


LOOPS = {
    "score": run_score,
    "score_period": run_period,
    "new_season": run_new_season,
    "age": run_age,
    "chance": run_chance,
    "draw": run_draw,
}


def score_game(rule: Rule, params: Any, before: State, columns: Sequence[Sequence[int]]) -> tuple[int, State]:
    """Score one game without compiling it; check its books and its explanation. Return the minted points and the
    states.
    """
    n, after = len(before[0]), [array("q", column) for column in before]
    assert rule.check is None or rule.check(n, columns, params) is None
    minted = rule.score(n, before, columns, rule.prepare(params), rule.table(), after)
    changes = [new - old for new, old in zip(after[0], before[0], strict=True)]
    assert minted == max(sum(changes), 0)
    terms = rule.explain(n, [f"p{i}" for i in range(n)], before, columns, params, after)  # type: ignore[arg-type]
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == changes
    return minted, [list(column) for column in after]


def record_rounding(patch: pytest.MonkeyPatch, rule: Rule) -> list[float]:
    """Return a list that receives every double that the functions of a rule round, when they run interpreted."""
    numbers: list[float] = []
    namespace = rule.score.__globals__  # type: ignore[attr-defined]
    units = namespace["units"]

    def record_and_round(value: float, scale: int) -> int:
        numbers.append(value)
        return int(units(value, scale))

    patch.setitem(namespace, "units", record_and_round)
    return numbers


def build_period(games: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]], players: int) -> tuple[Any, Any]:
    """Return the offsets and rows of a period; each game is (players, columns), and all its players meet each other.

    Each column of a game has one value for each of these players, in their order.
    """
    results: list[list[list[int]]] = [[] for _ in range(players)]
    for number, (seated, columns) in enumerate(games):
        for i, j in permutations(range(len(seated)), 2):
            own_row, opponent_row = ([column[k] for column in columns] for k in (i, j))
            results[seated[i]].append([seated[j], number, *own_row, *opponent_row])
    offsets = [0, *accumulate(map(len, results))]
    rows = [list(column) for column in zip(*chain.from_iterable(results), strict=True)]
    return offsets, rows


def score_period_of_games(
    rule: Rule, params: Any, before: State, games: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]
) -> tuple[int, State]:
    """Score one period without compiling it; check its books and its explanation. Return the minted points and the
    states.
    """
    assert rule.score_period is not None
    assert rule.explain_period is not None
    players, after = len(before[0]), [list(column) for column in before]
    offsets, rows = build_period(games, players)
    minted = rule.score_period(players, before, offsets, rows, rule.prepare(params), rule.table(), after)
    changes = [new - old for new, old in zip(after[0], before[0], strict=True)]
    assert minted == max(sum(changes), 0)
    for p, change in enumerate(changes):
        terms = rule.explain_period(p, [f"p{i}" for i in range(players)], before, offsets, rows, params, after)
        assert sum(term.amount for _, term in terms) == change
        assert {row for row, _ in terms} <= {-1, *range(offsets[p], offsets[p + 1])}
    return minted, after


def check_compiled_period(
    rule: Rule, params: Any, before: State, games: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]
) -> None:
    """Check that a compiled period has exactly the results of the interpreted one."""
    players, (offsets, rows) = len(before[0]), build_period(games, len(before[0]))
    expected = score_period_of_games(rule, params, before, games)
    constants = rule.prepare(params)
    assert (
        call_compiled(rule, "score_period", players, before, offsets, rows, constants, rule.table(), before) == expected
    )


def call_compiled(rule: Rule, name: str, *arguments: Any) -> Any:
    """Compile and call a function of a rule; return its result, and its last argument after the call.

    Lists become arrays, and lists of lists two-dimensional arrays.
    """
    if not compiling.is_available():
        pytest.skip("the extra fast is not installed")
    converted = [
        argument if isinstance(argument, int) else np.array(argument, dtype=np.int64) for argument in arguments
    ]
    loop = run_age_of_three if name == "age" and rule.width == 3 else LOOPS[name]
    result = compiling.compile_with_rule(loop, rule, ((name, getattr(rule, name)),))(*converted)
    assert result is not None, f"{rule.id}: {name} could not be compiled, or failed"
    return result, converted[-1].tolist() if not isinstance(converted[-1], int) else None


def check_compiled_game(rule: Rule, params: Any, before: State, columns: Sequence[Sequence[int]]) -> None:
    """Check that a compiled game, with its predictions, has exactly the results of the interpreted one."""
    n, constants, table = len(before[0]), rule.prepare(params), rule.table()
    expected = score_game(rule, params, before, columns)
    assert call_compiled(rule, "score", n, before, columns, constants, table, before) == expected
    for name in ("chance", "draw"):
        if function := getattr(rule, name):
            result = function(0, n - 1, before, columns, constants, table)
            assert call_compiled(rule, name, 0, n - 1, before, columns, constants, table)[0] == result
