"""Two rules with state that count in whole numbers, one by game and one by period, to compare with `oracle.states`."""

from collections.abc import Sequence
from typing import Any

from ratings_ledger.rules import MISSING, Columns, Numbers, Params, Rule, State, StateValues, Term, no_table

COLUMNS = ("place", "team", "home", "score", "numbers.bonus", "games_before", "days_since", "first_of_season")


class CountingParams(Params):
    """`k` multiplies results, and `weight` is the weight of every player when a version takes effect."""

    k: int = 1
    weight: int = 20


def prepare(params: Any) -> tuple[int, ...]:
    return (params.k, params.weight)


def score_result(own: Sequence[int], opponent: Sequence[int], weight: int, k: int) -> int:
    result = 1 if own[0] < opponent[0] else -1 if own[0] > opponent[0] else 0
    return k * weight * result + 3 * own[2] + own[4] + max(own[3], 0)


def score_past(own: Sequence[int]) -> int:
    return own[5] % 7 + max(own[6], 0) % 5 + 2 * own[7]


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    rows, total = [[column[i] for column in columns] for i in range(n)], 0
    for i in range(n):
        gained = score_past(rows[i])
        for j in range(n):
            if i != j and (rows[i][1] == MISSING or rows[i][1] != rows[j][1]):
                gained += score_result(rows[i], rows[j], before[1][i], constants[0])
        after[0][i], after[1][i] = before[0][i] + gained, max(10, before[1][i] - 1)
        total += gained
    return max(total, 0)


def explain(n: int, names: Sequence[str], before: Any, columns: Columns, params: Any, after: Any) -> list[list[Term]]:
    return [[Term("all", after[0][i] - before[0][i], "")] for i in range(n)]


def score_period(
    players: int, before: Any, offsets: Numbers, rows: Columns, constants: Numbers, table: Numbers, after: Any
) -> int:
    total, width = 0, len(COLUMNS)
    for p in range(players):
        gained = 0
        for row in range(offsets[p], offsets[p + 1]):
            own = [column[row] for column in rows[2 : 2 + width]]
            opponent = [column[row] for column in rows[2 + width :]]
            gained += score_result(own, opponent, before[1][p], constants[0]) + (
                score_past(own) if row == offsets[p] else 0
            )
        after[0][p], after[1][p] = before[0][p] + gained, max(10, before[1][p] - 1)
        total += gained
    return max(total, 0)


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, params: Any, after: Any
) -> list[tuple[int, Term]]:
    return [(-1, Term("all", after[0][p] - before[0][p], ""))]


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    return (state[0], min(40, state[1] + elapsed))


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    return (state[0] - state[0] // 4, state[1])


def enter(state: StateValues, constants: Numbers) -> StateValues:
    return (state[0], constants[1])


BY_GAME = Rule(
    name="counting", number=1, scale=10, params=CountingParams, columns=COLUMNS, prepare=prepare, table=no_table,
    refuse_params=lambda params, players_max: None, check=None, score=score, explain=explain,
    state=(State("rating", 10, 1), State("weight", 1)), start=lambda params: (10_000, 20), age=age,
    new_season=new_season, enter=enter,
)  # fmt: skip
BY_PERIOD = BY_GAME._replace(name="counting-period", score_period=score_period, explain_period=explain_period)
RULES = {rule.id: rule for rule in (BY_GAME, BY_PERIOD)}
