"""Glicko: each player has a rating and a deviation (its uncertainty), updated after each game or rating period.

    q = ln 10 / 400;  g(RD) = 1 / sqrt(1 + 3 q^2 RD^2 / pi^2);  E = 1 / (1 + 10^(-g(RD_j) (r - r_j) / 400))
    1 / d^2 = q^2 * sum of g(RD_j)^2 E (1 - E)
    RD'^2 = 1 / (1 / RD^2 + 1 / d^2);  r' = r + q RD'^2 * sum of g(RD_j) (s - E)
    first, after t days (or, by period, t periods): RD = min(sqrt(RD^2 + c^2 t), deviation of a new player)

(M. Glickman, The Glicko system, 1999.) s is 1, 1/2 or 0; the sums run over the results of a game or of a period. Each
pair of players in a game has one result, computed from the states before the game or period. A deviation does not
fall below the floor. Rating and deviation are kept in millionths, rounded half away from zero. Where the changes of a
game or period do not sum to zero, the difference is minted or burned. The rule rates persons and refuses teams.

    1500 ± 200 beats 1400 ± 30, loses to 1550 ± 100 and 1700 ± 300: 1464.106463 ± 151.398902
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from ratings_ledger.projections.contract import (
    ONE,
    Columns,
    FractionOrZero,
    Numbers,
    Params,
    PositiveFraction,
    Rule,
    State,
    StateValues,
    Term,
    Weighing,
    check_single_players,
    explain_results,
    logistic,
    no_table,
    real,
    results_of_game,
    root,
    sample_single_players,
    units,
)

SCALE = 1_000_000
# The kernels compute in units, because converting each number would take longer than the formulas.
Q = 0.0057564627324851142 / 1_000_000
THREE_OVER_PI_SQUARED = 0.30396355092701331
# Larger leads count as this one, which already gives an expected score of 1.
LEAD_MAX = 10**15
DEVIATION_MAX = 10_000


class Glicko1Params(Params):
    """Parameters, with at most six decimals.

    `start_deviation` is the deviation of a new player, and the limit to which inactivity can raise a deviation. `c` is
    how fast a deviation grows without games: its square grows by c^2 in a day, or in a rating period. With the default
    and days, 50 grows to 350 in five years. `deviation_floor` is the smallest deviation. Above
    `provisional_deviation`, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1500
    start_deviation: PositiveFraction = 350
    c: FractionOrZero = "8.1"
    deviation_floor: FractionOrZero = 30
    provisional_deviation: PositiveFraction = 110


def refuse_params(params: Glicko1Params, players_max: int) -> str | None:
    """Return the problem with the parameters, or None."""
    for name in ("start_deviation", "c", "deviation_floor", "provisional_deviation"):
        value = Fraction(getattr(params, name))
        if value > DEVIATION_MAX or (value * SCALE).denominator > 1:
            return (
                f"params.{name}: must be at most {DEVIATION_MAX:,}, with at most six decimals, not "
                f"{getattr(params, name)}"
            )
    if Fraction(params.deviation_floor) > Fraction(params.start_deviation):
        return (
            f"params.deviation_floor: must not exceed start_deviation, {params.start_deviation}, "
            f"but it is {params.deviation_floor}"
        )
    return None


def prepare(params: Glicko1Params) -> tuple[int, ...]:
    """Return the deviation of a new player, its growth and its floor, in units."""
    return tuple(int(Fraction(value) * SCALE) for value in (params.start_deviation, params.c, params.deviation_floor))


def start(params: Glicko1Params) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE, prepare(params)[0])


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    """Return the state after `elapsed` days or periods, with a deviation of at most `start_deviation`."""
    deviation, growth = real(state[1], 1), real(constants[1], 1)
    grown = root(deviation * deviation + growth * growth * real(elapsed, 1))
    return (state[0], min(units(grown, 1), constants[0]))


def weaken(deviation: float) -> float:
    """Return g, the weight of a result against an opponent; `deviation` is the opponent's, in units."""
    return 1.0 / root(1.0 + THREE_OVER_PI_SQUARED * (Q * deviation) * (Q * deviation))


def compare(gap: int, deviation: int, place: int, opponents_place: int) -> tuple[float, float]:
    """Return the surprise g (s - E) and the information g^2 E (1 - E) of a result; `gap` is the lead in units."""
    weight = weaken(real(deviation, 1))
    lead = Q * real(max(min(gap, LEAD_MAX), -LEAD_MAX), 1) * weight
    upset = logistic(-abs(lead))
    win, loss = (1.0 - upset, upset) if lead >= 0.0 else (upset, 1.0 - upset)
    scored = 1.0 if place < opponents_place else 0.0 if place > opponents_place else 0.5
    return weight * (scored * loss - (1.0 - scored) * win), weight * weight * win * loss


def update(deviation: int, surprise: float, information: float) -> tuple[float, float]:
    """Return q RD'^2, the units that a rating moves for a surprise of 1, and RD' in units."""
    square = real(deviation, 1) * real(deviation, 1)
    square = square / (1.0 + Q * Q * square * information)
    return Q * square, root(square)


def settle(i: int, before: Any, surprise: float, information: float, constants: Numbers, after: Any) -> int:
    """Fill in a player's state from the sums over their results. Return the change in rating."""
    step, deviation = update(before[1][i], surprise, information)
    change = units(step * surprise, 1)
    after[0][i] = before[0][i] + change
    after[1][i] = max(units(deviation, 1), constants[2])
    return change


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the states after a game. Return the minted points."""
    place, total = columns[0], 0
    for i in range(n):
        surprise, information = 0.0, 0.0
        for j in range(n):
            if i != j:
                result_surprise, result_information = compare(
                    before[0][i] - before[0][j], before[1][j], place[i], place[j]
                )
                surprise, information = surprise + result_surprise, information + result_information
        total += settle(i, before, surprise, information, constants, after)
    return max(total, 0)


def score_period(
    players: int, before: Any, offsets: Numbers, rows: Columns, constants: Numbers, table: Numbers, after: Any
) -> int:
    """Fill in the states after a period. Return the minted points."""
    opponent, place, opponents_place, total = rows[0], rows[2], rows[5], 0
    for p in range(players):
        surprise, information = 0.0, 0.0
        for row in range(offsets[p], offsets[p + 1]):
            j = opponent[row]
            result_surprise, result_information = compare(
                before[0][p] - before[0][j], before[1][j], place[row], opponents_place[row]
            )
            surprise, information = surprise + result_surprise, information + result_information
        total += settle(p, before, surprise, information, constants, after)
    return max(total, 0)


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of i against j with the deviations of both, in units of 2^-32."""
    gap = max(min(before[0][i] - before[0][j], LEAD_MAX), -LEAD_MAX)
    own, theirs = real(before[1][i], 1), real(before[1][j], 1)
    lead = Q * real(gap, 1) * weaken(root(own * own + theirs * theirs))
    upset = max(units(logistic(-abs(lead)), ONE), 1)
    return ONE - upset if gap > 0 else upset


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: Glicko1Params, after: Any
) -> list[list[Term]]:
    """Return, for each player, a term per opponent, and one for rounding unless it is 0."""
    offsets, rows = results_of_game(n, columns)
    return [[term for _, term in explain_period(p, names, before, offsets, rows, params, after)] for p in range(n)]


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, params: Glicko1Params, after: Any
) -> list[tuple[int, Term]]:
    """Return a term for every result of player p in a period, by its row, and one for rounding unless it is 0."""
    weighing = Weighing(
        SCALE,
        compare,
        weaken,
        lambda surprise, information: update(before[1][p], surprise, information)[0],
        ("start_deviation", "c"),
    )
    return explain_results(p, names, before, offsets, rows, after, weighing)


def is_provisional(state: StateValues, games: int, params: Glicko1Params) -> bool:
    """Tell whether the deviation is too large for the rating to be reliable."""
    return state[1] > Fraction(params.provisional_deviation) * SCALE


RULE = Rule(
    name="glicko-1",
    number=1,
    scale=SCALE,
    params=Glicko1Params,
    columns=("place", "team", "status"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check_single_players,
    score=score,
    explain=explain,
    chance=chance,
    state=(State("rating", SCALE), State("deviation", SCALE, low=1, high=DEVIATION_MAX * SCALE)),
    start=start,
    score_period=score_period,
    explain_period=explain_period,
    age=age,
    provisional=is_provisional,
    sample=sample_single_players,
)
