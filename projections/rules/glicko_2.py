"""Glicko-2: each player has a rating, a deviation and a volatility, updated after each game or rating period.

    mu = (r - 1500) / 173.7178;  phi = RD / 173.7178;  g(phi) = 1 / sqrt(1 + 3 phi^2 / pi^2)
    E = 1 / (1 + e^(-g(phi_j) (mu - mu_j)));  V = 1 / v = sum of g(phi_j)^2 E (1 - E);  S = sum of g(phi_j) (s - E)
    sigma' solves  ln(sigma'^2 / sigma^2) = tau^2 sigma'^2 (S^2 - V m) / (2 m^2),  m = 1 + (phi^2 + sigma'^2) V
    phi'^2 = 1 / (1 / (phi^2 + sigma'^2) + V);  mu' = mu + phi'^2 S

(M. Glickman, Example of the Glicko-2 system; the equation is its f(x) = 0, with v and Delta = v S multiplied out.) s is
1, 1/2 or 0; the sums run over the results of a game or of a period. Every two players of a game have one result, all
from the states before the game, or before the period. Rating and deviation are kept in millionths, the volatility in
units of 10^-12, rounded half away from zero. Where the changes of a game or period do not sum to zero, the difference
is minted or burned. The rule rates persons, and refuses teams.

A game or period adds sigma'^2 to phi^2, as above. Each further day or whole period adds `aging` times sigma^2, until
the deviation reaches a new player's. A volatility is at most 100. If improbable results give the equation several
solutions, sigma' is the solution nearest to sigma. `solve_volatility` proves that its fixed number of steps suffices.

    1500 ± 200, 0.06 beats 1400 ± 30, loses to 1550 ± 100 and 1700 ± 300: 1464.050671 ± 151.516524, 0.059995984401
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
    exp,
    explain_results,
    ln,
    logistic,
    no_table,
    real,
    results_of_game,
    root,
    sample_single_players,
    units,
)

SCALE, VOLATILITY_SCALE = 1_000_000, 10**12
# The kernels compute in units, except for mu, phi and sigma. Converting every number would be slower than the formulas.
POINTS = 173.7178 * 1_000_000
TO_PHI, TO_SIGMA = 1.0 / (173.7178 * 1_000_000), 1.0 / 1_000_000_000_000
THREE_OVER_PI_SQUARED = 0.30396355092701331
# Larger leads count as this one, which already gives an expected score of 1.
LEAD_MAX = 10**15
DEVIATION_MAX, VOLATILITY_MAX, TAU_MAX = 10_000, 100.0, 2
HALVINGS = 64


class Glicko2Params(Params):
    """Parameters, with at most six decimals.

    `start_deviation` and `start_volatility` are a new player's. Time without games raises a deviation at most to
    `start_deviation`. `tau` limits how fast volatilities change. Each further day or whole period adds `aging` times
    the square of the volatility to that of the deviation. Above `provisional_deviation`, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1500
    start_deviation: PositiveFraction = 350
    start_volatility: PositiveFraction = "0.06"
    tau: PositiveFraction = "0.5"
    aging: FractionOrZero = 1
    provisional_deviation: PositiveFraction = 110


def refuse_params(params: Glicko2Params, players_max: int) -> str | None:
    """Return the problem with the parameters, or None."""
    limits = {"start_volatility": 1, "tau": TAU_MAX}
    for name in ("start_deviation", "start_volatility", "tau", "aging", "provisional_deviation"):
        value, limit = Fraction(getattr(params, name)), limits.get(name, DEVIATION_MAX)
        if value > limit or (value * SCALE).denominator > 1:
            return f"params.{name}: must be at most {limit:,}, with at most six decimals, not {getattr(params, name)}"
    return None


def prepare(params: Glicko2Params) -> tuple[int, ...]:
    """Return the deviation of a new player, tau and aging, all in millionths."""
    return tuple(int(Fraction(value) * SCALE) for value in (params.start_deviation, params.tau, params.aging))


def start(params: Glicko2Params) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE, prepare(params)[0], int(Fraction(params.start_volatility) * VOLATILITY_SCALE))


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    """Return the state after `elapsed` days or periods. The next game or period accounts for the first of them."""
    deviation, volatility = real(state[1], 1), POINTS * TO_SIGMA * real(state[2], 1)
    further = real(max(elapsed - 1, 0), 1) * real(constants[2], SCALE)
    grown = root(deviation * deviation + further * volatility * volatility)
    return (state[0], min(units(grown, 1), max(constants[0], state[1])), state[2])


def weaken(deviation: float) -> float:
    """Return g, the weight of a result against an opponent with this deviation, in units."""
    return 1.0 / root(1.0 + THREE_OVER_PI_SQUARED * (TO_PHI * deviation) * (TO_PHI * deviation))


def compare(gap: int, deviation: int, place: int, opponents_place: int) -> tuple[float, float]:
    """Return the surprise g (s - E) and the information g^2 E (1 - E) of a result; `gap` is the lead in units."""
    weight = weaken(real(deviation, 1))
    lead = TO_PHI * real(max(min(gap, LEAD_MAX), -LEAD_MAX), 1) * weight
    upset = logistic(-abs(lead))
    win, loss = (1.0 - upset, upset) if lead >= 0.0 else (upset, 1.0 - upset)
    scored = 1.0 if place < opponents_place else 0.0 if place > opponents_place else 0.5
    return weight * (scored * loss - (1.0 - scored) * win), weight * weight * win * loss


def pull(variance: float, square: float, surprise: float, information: float) -> tuple[float, float]:
    """Return w = sigma'^2 (S^2 - V m) / (2 m^2) at a variance sigma'^2, and its derivative by ln(sigma'^2)."""
    settled = 1.0 + square * information
    m = settled + variance * information
    part = variance / (2.0 * m * m)
    squared = surprise * surprise
    slope = squared * (1.0 - 2.0 * variance * information / m) - information * settled
    return part * (squared - information * m), part * slope


def solve_volatility(variance: float, square: float, surprise: float, information: float, tau: float) -> float:
    """Return y = ln(sigma'^2 / sigma^2), the zero of p(y) = y - tau^2 w(y) that is nearest to 0.

    With t = sigma'^2 V / m and rho = S^2 / (V (m - sigma'^2 V)), w = t (rho (1 - t) - 1) / 2. Let T be t at y = 0 and
    L = tau^2 T (rho + 1). For |y| <= ln 2, t <= 2 T, so |tau^2 w'| and |tau^2 w''| are at most L; |p(0)| <= L / 2. If
    L <= 1/16, p' >= 15/16 there, and the only zero is within 1/30 of 0. A step of Newton's method takes an error e to
    at most e^2 / 30: from 1/30 to 4e-5, 5e-11 and 1e-22. So three steps suffice; the first one needs no exponential. If
    L <= 1/256, the zero is within 1/510, and a step takes e to at most e^2 / 510: two lead to 8e-9 and 2e-19.
    """
    tau_square = tau * tau
    settled = 1.0 + square * information
    bound = variance * (information + surprise * surprise / settled) / (settled + variance * information)
    if tau_square * bound > 0.0625:
        return bisect_volatility(variance, square, surprise, information, tau_square)
    w, slope = pull(variance, square, surprise, information)
    y = tau_square * w / (1.0 - tau_square * slope)
    for _ in range(1 if tau_square * bound <= 0.00390625 else 2):
        w, slope = pull(variance * exp(y), square, surprise, information)
        y = y - (y - tau_square * w) / (1.0 - tau_square * slope)
    return y


def bisect_volatility(variance: float, square: float, surprise: float, information: float, tau_square: float) -> float:
    """Return the same zero as `solve_volatility`, for all results; the last of 64 halvings is below 1e-17.

    If p(0) >= 0: w > -1/2, so p(-tau^2 / 2) < 0, and for tau <= 2 p has one zero between: rho (1 - T) <= 1 there, so
    tau^2 w' < tau^2 e^(tau^2 / 2) / 54 < 1. If p(0) < 0: w' grows up to the t of `turn`, then falls, and is negative
    where it grows again. So p grows, may fall around `turn`, and grows again. If it falls after a maximum that is not
    negative, the first zero is before that maximum; else p has one zero.
    """
    low, high = -0.5 * tau_square, 0.0
    if pull(variance, square, surprise, information)[0] > 0.0:
        low, high = 0.0, max(ln(VOLATILITY_MAX * VOLATILITY_MAX / variance), 0.0)
        settled = 1.0 + square * information
        inverse_rho = information * settled / (surprise * surprise)
        turn = (3.0 - inverse_rho - root(3.0 + inverse_rho * inverse_rho)) / 6.0
        odds = settled * turn
        least = information * (1.0 - turn) * variance
        if odds > least:
            top = high
            if odds < least * exp(high):
                top = ln(odds / least)
            left, right = 0.0, top
            for _ in range(HALVINGS):
                middle = 0.5 * (left + right)
                if tau_square * pull(variance * exp(middle), square, surprise, information)[1] < 1.0:
                    left = middle
                else:
                    right = middle
            if left >= tau_square * pull(variance * exp(left), square, surprise, information)[0]:
                high = left
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle < tau_square * pull(variance * exp(middle), square, surprise, information)[0]:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def update(
    deviation: int, volatility: int, surprise: float, information: float, tau: float
) -> tuple[float, float, float]:
    """Return the change of the rating for a surprise of 1, the new deviation and the new volatility, all in units."""
    phi, sigma = TO_PHI * real(deviation, 1), TO_SIGMA * real(volatility, 1)
    ratio = exp(0.5 * solve_volatility(sigma * sigma, phi * phi, surprise, information, tau))
    square = phi * phi + sigma * ratio * (sigma * ratio)
    square = square / (1.0 + square * information)
    return POINTS * square, POINTS * root(square), real(volatility, 1) * ratio


def settle(i: int, before: Any, surprise: float, information: float, constants: Numbers, after: Any) -> int:
    """Fill in a player's state after results with these sums. Return the change of the rating."""
    tau = real(constants[1], SCALE)
    step, deviation, volatility = update(before[1][i], before[2][i], surprise, information, tau)
    change = units(step * surprise, 1)
    after[0][i] = before[0][i] + change
    after[1][i] = units(deviation, 1)
    after[2][i] = units(volatility, 1)
    return change


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the states after a game. Return the minted points."""
    place, total = columns[0], 0
    for i in range(n):
        surprise, information = 0.0, 0.0
        for j in range(n):
            if i != j:
                ahead, known = compare(before[0][i] - before[0][j], before[1][j], place[i], place[j])
                surprise, information = surprise + ahead, information + known
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
            ahead, known = compare(before[0][p] - before[0][j], before[1][j], place[row], opponents_place[row])
            surprise, information = surprise + ahead, information + known
        total += settle(p, before, surprise, information, constants, after)
    return max(total, 0)


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of i against j with the deviations of both, in units of 2^-32."""
    gap = max(min(before[0][i] - before[0][j], LEAD_MAX), -LEAD_MAX)
    own, theirs = real(before[1][i], 1), real(before[1][j], 1)
    lead = TO_PHI * real(gap, 1) * weaken(root(own * own + theirs * theirs))
    upset = max(units(logistic(-abs(lead)), ONE), 1)
    return ONE - upset if gap > 0 else upset


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: Glicko2Params, after: Any
) -> list[list[Term]]:
    """Return for every player a term per opponent, and one for rounding unless it is 0."""
    offsets, rows = results_of_game(n, columns)
    return [[term for _, term in explain_period(p, names, before, offsets, rows, params, after)] for p in range(n)]


def explain_period(
    p: int, names: Sequence[str], before: Any, offsets: Numbers, rows: Columns, params: Glicko2Params, after: Any
) -> list[tuple[int, Term]]:
    """Return a term for every result of player p in a period, by its row, and one for rounding unless it is 0."""
    tau = real(prepare(params)[1], SCALE)
    weighing = Weighing(
        SCALE,
        compare,
        weaken,
        lambda surprise, information: update(before[1][p], before[2][p], surprise, information, tau)[0],
        ("start_deviation", "start_volatility", "tau"),
    )
    return explain_results(p, names, before, offsets, rows, after, weighing)


def is_provisional(state: StateValues, games: int, params: Glicko2Params) -> bool:
    """Tell whether the deviation is too large for the rating to be reliable."""
    return state[1] > Fraction(params.provisional_deviation) * SCALE


RULE = Rule(
    name="glicko-2",
    number=1,
    scale=SCALE,
    params=Glicko2Params,
    columns=("place", "team", "status"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check_single_players,
    score=score,
    explain=explain,
    chance=chance,
    state=(
        State("rating", SCALE),
        State("deviation", SCALE, low=1, high=DEVIATION_MAX * SCALE),
        State("volatility", VOLATILITY_SCALE, 4, low=1, high=100 * VOLATILITY_SCALE),
    ),
    start=start,
    score_period=score_period,
    explain_period=explain_period,
    age=age,
    provisional=is_provisional,
    sample=sample_single_players,
)
