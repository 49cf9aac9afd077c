"""Rules with state for tests: Elo whose K is the player's own second number, by game and by period."""

from collections.abc import Sequence
from typing import Any

from ratings_ledger.rules import (
    INVERSE,
    ONE,
    Columns,
    Numbers,
    Params,
    Rule,
    State,
    StateValues,
    Term,
    expected,
    expected_scores,
    rounded,
)

SCALE = 1_000_000
SPAN = 400 * SCALE


class OwnKParams(Params):
    """`k` is the K of a new player; it shrinks by a tenth with every game or period, down to `k_min`.

    In the time without games, it grows back by `back` per day or period, up to `k`.
    """

    start: int = 1500
    k: int = 40
    k_min: int = 10
    back: int = 1


def start(params: Any) -> StateValues:
    return (params.start * SCALE, params.k * SCALE)


def prepare(params: Any) -> tuple[int, ...]:
    return (params.start * SCALE, params.k * SCALE, params.k_min * SCALE, params.back * SCALE)


def rate_result(gap: int, k: int, twice_scored: int, table: Numbers) -> int:
    surplus = twice_scored * (ONE // 2) - expected(gap, SPAN, INVERSE // SPAN, table)
    return rounded(surplus * k, 1, ONE)


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    place = columns[0]
    for i in range(n):
        for j in range(n):
            scored = 2 if place[i] < place[j] else 0 if place[i] > place[j] else 1
            if i != j:
                after[0][i] += rate_result(before[0][i] - before[0][j], before[1][i], scored, table)
        after[1][i] = max(constants[2], before[1][i] - before[1][i] // 10)
    total = 0
    for i in range(n):
        total += after[0][i] - before[0][i]
    return max(total, 0)


def explain(n: int, names: Sequence[str], before: Any, columns: Columns, params: Any, after: Any) -> list[list[Term]]:
    return [[Term("games", after[0][i] - before[0][i], f"K {before[1][i] // SCALE}")] for i in range(n)]


def score_period(
    players: int, before: Any, offsets: Numbers, rows: Columns, constants: Numbers, table: Numbers, after: Any
) -> int:
    total = 0
    for p in range(players):
        for row in range(offsets[p], offsets[p + 1]):
            place, opponent_place = rows[2][row], rows[3][row]
            scored = 2 if place < opponent_place else 0 if place > opponent_place else 1
            after[0][p] += rate_result(before[0][p] - before[0][rows[0][row]], before[1][p], scored, table)
        after[1][p] = max(constants[2], before[1][p] - before[1][p] // 10)
        total += after[0][p] - before[0][p]
    return max(total, 0)


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, params: Any, after: Any
) -> list[tuple[int, Term]]:
    terms = []
    for row in range(offsets[p], offsets[p + 1]):
        opponent = rows[0][row]
        scored = 2 if rows[2][row] < rows[3][row] else 0 if rows[2][row] > rows[3][row] else 1
        amount = rate_result(before[0][p] - before[0][opponent], before[1][p], scored, expected_scores())
        terms.append((row, Term(f"vs {names[opponent]}", amount, "")))
    return terms


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    return (state[0], min(constants[1], state[1] + elapsed * constants[3]))


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    return ((state[0] + constants[0]) // 2, state[1])


def enter(state: StateValues, constants: Numbers) -> StateValues:
    return (state[0], constants[1])


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    return expected(before[0][i] - before[0][j], SPAN, INVERSE // SPAN, table)


def draw(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    expected_score = chance(i, j, before, columns, constants, table)
    return min(expected_score, ONE - expected_score) // 2


BY_GAME = Rule(
    name="own-k", number=1, scale=SCALE, params=OwnKParams, columns=("place",), prepare=prepare, table=expected_scores,
    refuse_params=lambda params, players_max: None, check=None, score=score, explain=explain, chance=chance,
    state=(State("rating", SCALE), State("k", SCALE, 1)), start=start, age=age, new_season=new_season, enter=enter,
    rank_by=lambda state, params: state[0] - state[1], provisional=lambda state, games, params: games < 5, draw=draw,
    shown=("rating",),
)  # fmt: skip
BY_PERIOD = BY_GAME._replace(
    name="own-k-period", score_period=score_period, explain_period=explain_period, new_season=None, enter=None
)
