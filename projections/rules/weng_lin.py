"""Weng and Lin's Bayesian ratings: Plackett-Luce, and Bradley-Terry with all pairs, for sides of any size.

Every player has a rating mu and a deviation sigma. A side's strength is the sum of its players' ratings, its variance
the sum of their variances; sigma^2 + tau^2 takes the place of sigma^2 throughout. (R. C. Weng and C.-J. Lin, A Bayesian
Approximation Method for Online Ranking, Journal of Machine Learning Research 12, 2011, algorithms 1 and 4.)

    Bradley-Terry  for every opposing side q: c^2 = sigma_i^2 + sigma_q^2 + 2 beta^2
                   p = 1 / (1 + e^((mu_q - mu_i) / c)),  s = 1 placed better, 1/2 tied, 0 worse
                   omega += sigma_i^2 / c * (s - p),  delta += (sigma_i / c)^3 * p * (1 - p)
    Plackett-Luce  c^2 = the sum of sigma^2 + beta^2 over all sides
                   for every place from the first down to side i's: p = e^(mu_i / c) / the sum of e^(mu / c) over the
                   sides at this place or a worse one; s = 0, but at side i's place 1 / (the number of sides at it)
                   omega += sigma_i^2 / c * (s - p),  delta += (sigma_i / c)^3 * p * (1 - p)
    each player j  mu_j += sigma_j^2 / sigma_i^2 * omega
                   sigma_j^2 *= max(1 - sigma_j^2 / sigma_i^2 * delta, kappa)

All changes are computed from the states before the game, in doubles; ratings and deviations are stored in millionths.
A side that is more than 300 c weaker than the best counts as 300 c weaker. Changes need not sum to zero; the difference
is minted or burned.

    25 +- 25/3 beats 25 +- 25/3: 27.635389 and 22.364611, both +- 8.065901 (by either rule)
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Annotated, Any

from pydantic import Field

from ratings_ledger.projections.contract import (
    MISSING,
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
    exp,
    no_table,
    real,
    refuse_two_in_a_seat,
    root,
    units,
)

SCALE = 1_000_000
GAP_MAX = 300.0  # in units of c; e^300 squared still fits in a double
PARAM_MAX = 1_000_000


class WengLinParams(Params):
    """Parameters. `start` and `sigma` are the rating and the deviation of a new player.

    `beta` is the standard deviation of a single performance. tau^2 is added to the variance before every game, and a
    game shrinks a variance at most by the factor `kappa`. The ladder ranks by mu - `rank_deviations` * sigma. Above
    `provisional_deviation`, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 25
    sigma: PositiveFraction = "25/3"
    beta: PositiveFraction = "25/6"
    kappa: PositiveFraction = "0.0001"
    tau: FractionOrZero = "25/300"
    rank_deviations: Annotated[int, Field(ge=0, le=10)] = 3
    provisional_deviation: PositiveFraction = 5


def refuse_params(params: WengLinParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None."""
    for name in ("sigma", "beta", "kappa", "tau", "provisional_deviation"):
        value = Fraction(getattr(params, name))
        if value > PARAM_MAX:
            return f"params.{name}: must be at most {PARAM_MAX:,}, not {value}"
        if max(value.numerator, value.denominator) >= 2**53:
            return f"params.{name}: {value} has too long a numerator or denominator; use fewer digits"
    if Fraction(params.kappa) > 1:
        return f"params.kappa: must be at most 1, not {params.kappa}; it limits how far a game shrinks a variance"
    return None


def prepare(params: WengLinParams) -> tuple[int, ...]:
    """Return the numerators and denominators of beta, tau and kappa."""
    parts = (Fraction(params.beta), Fraction(params.tau), Fraction(params.kappa))
    return tuple(number for part in parts for number in part.as_integer_ratio())


def start(params: WengLinParams) -> StateValues:
    """Return the rating and the deviation of a new player."""
    return params.start * SCALE, max(1, round(Fraction(params.sigma) * SCALE))


def check(n: int, columns: Columns, params: WengLinParams) -> str | None:
    """Return the reason why a game cannot be scored, or None."""
    place, team, status = columns
    if 0 in [place[i] for i in range(n)]:
        return "the game has no places"
    if team[0] != MISSING and all(team[i] == team[0] for i in range(n)):
        return "all counted players are on one side"
    return refuse_two_in_a_seat(place, status)


def is_first(i: int, team: Numbers) -> bool:
    """Tell whether a player is the first of their side. The first player represents the side."""
    if team[i] != MISSING:
        for j in range(i):
            if team[j] == team[i]:
                return False
    return True


def is_mate(j: int, i: int, team: Numbers) -> bool:
    """Tell whether two players are on one side, or the same player."""
    return j == i or (team[i] != MISSING and team[j] == team[i])


def player_variance(i: int, before: Any, constants: Numbers) -> float:
    """Return sigma^2 + tau^2 of a player."""
    sigma, tau = real(max(before[1][i], 1), SCALE), real(constants[2], constants[3])
    return sigma * sigma + tau * tau


def side_mean(i: int, before: Any, team: Numbers) -> float:
    """Return the sum of the ratings on a player's side."""
    total = before[0][i]
    if team[i] != MISSING:
        for j in range(len(team)):
            if j != i and team[j] == team[i]:
                total += before[0][j]
    return real(total, SCALE)


def side_variance(i: int, before: Any, team: Numbers, constants: Numbers) -> float:
    """Return the sum of the variances on a player's side."""
    if team[i] == MISSING:
        return player_variance(i, before, constants)
    total = 0.0
    for j in range(len(team)):
        if team[j] == team[i]:
            total += player_variance(j, before, constants)
    return total


def win_chance(gap: float) -> float:
    """Return the probability that a side wins if it is stronger by `gap`, in units of c."""
    return 1.0 / (1.0 + exp(min(max(-gap, -GAP_MAX), GAP_MAX)))


def strength(gap: float) -> float:
    """Return e^gap, where `gap` is a side's mean minus the best side's, in units of c; it is at most 0."""
    return exp(max(gap, -GAP_MAX))


def lead(i: int, q: int, before: Any, team: Numbers, constants: Numbers) -> tuple[float, float]:
    """Return c for the sides of two players by Bradley-Terry, and the probability that i's side wins."""
    beta = real(constants[0], constants[1])
    both = side_variance(i, before, team, constants) + side_variance(q, before, team, constants)
    c = root(both + 2.0 * beta * beta)
    return c, win_chance((side_mean(i, before, team) - side_mean(q, before, team)) / c)


def result(i: int, q: int, place: Numbers) -> float:
    """Return the score of i's side against q's side."""
    return 1.0 if place[i] < place[q] else 0.0 if place[i] > place[q] else 0.5


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the probability by Bradley-Terry that i's side beats j's side, in units of 2^-32.

    With two sides, Plackett-Luce gives the same. The two probabilities of a pair sum to exactly one.
    """
    team = columns[1]
    is_better = side_mean(i, before, team) >= side_mean(j, before, team)
    better, worse = (i, j) if is_better else (j, i)
    wins = min(units(lead(better, worse, before, team, constants)[1], ONE), ONE - 1)
    return wins if is_better else ONE - wins


def move_side(i: int, omega: float, delta: float, before: Any, columns: Columns, constants: Numbers, after: Any) -> int:
    """Fill in the states of a side's players. Return the sum of their rating changes."""
    team, total = columns[1], 0
    variance, kappa = side_variance(i, before, team, constants), real(constants[4], constants[5])
    for j in range(i, len(team)):
        if is_mate(j, i, team):
            own = player_variance(j, before, constants)
            share = own / variance
            change = units(share * omega, SCALE)
            after[0][j] = before[0][j] + change
            after[1][j] = max(units(root(own * max(1.0 - share * delta, kappa)), SCALE), 1)
            total += change
    return total


def score_btf(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the states by Bradley-Terry with all pairs. Return the sum of the rating changes, at least 0."""
    team, total = columns[1], 0
    for i in range(n):
        if not is_first(i, team):
            continue
        omega, delta, variance = 0.0, 0.0, side_variance(i, before, team, constants)
        for q in range(n):
            if is_mate(q, i, team) or not is_first(q, team):
                continue
            c, p = lead(i, q, before, team, constants)
            part = root(variance) / c
            omega += variance / c * (result(i, q, columns[0]) - p)
            delta += part * part * part * p * (1.0 - p)
        total += move_side(i, omega, delta, before, columns, constants, after)
    return max(total, 0)


def common_scale(n: int, before: Any, columns: Columns, constants: Numbers) -> tuple[float, float]:
    """Return c of Plackett-Luce, and the mean of the best side."""
    team, beta = columns[1], real(constants[0], constants[1])
    total, best = 0.0, side_mean(0, before, team)
    for i in range(n):
        if is_first(i, team):
            total += side_variance(i, before, team, constants) + beta * beta
            best = max(best, side_mean(i, before, team))
    return root(total), best


def next_place(n: int, last: int, place: Numbers) -> int:
    """Return the best place worse than `last`; `last` if no place is worse."""
    following = last
    for i in range(n):
        if place[i] > last and (following == last or place[i] < following):
            following = place[i]
    return following


def stage(at: int, c: float, best: float, before: Any, columns: Columns) -> tuple[int, float]:
    """Return the number of sides at place `at`, and the sum of the strengths of these and all sides placed worse."""
    place, team, tied, total = columns[0], columns[1], 0, 0.0
    for i in range(len(place)):
        if place[i] >= at and is_first(i, team):
            total += strength((side_mean(i, before, team) - best) / c)
            tied += 1 if place[i] == at else 0
    return tied, total


def score_pl(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the states by Plackett-Luce. Return the sum of the rating changes, at least 0."""
    place, team, total, at = columns[0], columns[1], 0, 0
    c, best = common_scale(n, before, columns, constants)
    inverse, inverse_square = 0.0, 0.0  # sums over the places from the first down to `at`
    for _ in range(n):
        following = next_place(n, at, place)
        if following == at:
            break
        at = following
        tied, below = stage(at, c, best, before, columns)
        inverse += 1.0 / below
        inverse_square += 1.0 / (below * below)
        for i in range(n):
            if place[i] == at and is_first(i, team):
                own = strength((side_mean(i, before, team) - best) / c)
                variance = side_variance(i, before, team, constants)
                part = root(variance) / c
                omega = variance / c * (1.0 / float(tied) - own * inverse)
                delta = part * part * part * (own * inverse - own * own * inverse_square)
                total += move_side(i, omega, delta, before, columns, constants, after)
    return max(total, 0)


def explain_btf(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: WengLinParams, after: Any
) -> list[list[Term]]:
    """Return for every player a term per opposing side."""
    constants, (place, team) = prepare(params), columns[:2]
    terms = []
    for i in range(n):
        side = next(j for j in range(n) if is_mate(j, i, team))
        variance, omega, parts = side_variance(side, before, team, constants), 0.0, []
        for q in range(n):
            if not is_mate(q, i, team) and is_first(q, team):
                c, p = lead(side, q, before, team, constants)
                omega += variance / c * (result(i, q, place) - p)
                detail = f"expected {p:.6f}, scored {result(i, q, place):g}"
                own, rival = (describe_side(member, before, team, constants) for member in (side, q))
                note = f"{own} against {rival}"
                assumes = ("beta", "tau", *(("rule",) if place[i] == place[q] else ()))
                parts.append((omega, Term(f"vs {name_side(q, names, team)}", 0, detail, note, assumes)))
        terms.append(split_change(parts, i, variance, before, team, constants))
    return terms


def explain_pl(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: WengLinParams, after: Any
) -> list[list[Term]]:
    """Return for every player a term per place from the first down to their own.

    A last place with a single side has no term.
    """
    constants, (place, team) = prepare(params), columns[:2]
    c, best = common_scale(n, before, columns, constants)
    terms = []
    for i in range(n):
        side = next(j for j in range(n) if is_mate(j, i, team))
        variance, inverse = side_variance(side, before, team, constants), 0.0
        parts: list[tuple[float, Term]] = []
        own = strength((side_mean(side, before, team) - best) / c)
        for at in sorted({place[j] for j in range(n) if place[j] <= place[i]}):
            tied, below = stage(at, c, best, before, columns)
            inverse += 1.0 / below
            scored = 1.0 / float(tied) if at == place[i] else 0.0
            sides = sum(place[q] >= at and is_first(q, team) for q in range(n))
            detail = f"expected {own / below:.6f} as first of {sides}, scored {scored:.6g}"
            assumes = ("beta", "tau", *(("rule",) if scored and tied > 1 else ()))
            term = Term(f"place {at}", 0, detail, describe_side(side, before, team, constants), assumes)
            if sides == 1 and parts:  # the last side has no rival left, so this adds nothing
                term = parts.pop()[1]
            parts.append((variance / c * (scored - own * inverse), term))
        terms.append(split_change(parts, i, variance, before, team, constants))
    return terms


def split_change(
    parts: Sequence[tuple[float, Term]], i: int, variance: float, before: Any, team: Numbers, constants: Numbers
) -> list[Term]:
    """Return a player's terms with amounts that sum to the rounded change of the rating.

    `parts` has the running omega at each term; the amounts are differences of the rounded running values.
    """
    share = player_variance(i, before, constants) / variance
    has_mates = sum(is_mate(j, i, team) for j in range(len(team))) > 1
    note = f"; {share:.6f} of the side's change" if has_mates else ""
    sums = [0, *(units(share * omega, SCALE) for omega, _ in parts)]
    return [
        term._replace(amount=high - low, note=term.note + note)
        for (low, high), (_, term) in zip(pairwise(sums), parts, strict=True)
    ]


def name_side(i: int, names: Sequence[str], team: Numbers) -> str:
    """Return the names of a player's side."""
    return " + ".join(names[j] for j in range(len(team)) if is_mate(j, i, team))


def describe_side(i: int, before: Any, team: Numbers, constants: Numbers) -> str:
    """Describe the rating and the deviation of a player's side before the game."""
    deviation = root(side_variance(i, before, team, constants))
    return f"{side_mean(i, before, team):.6f} ± {deviation:.6f}"


def rank_by(state: StateValues, params: WengLinParams) -> int:
    """Return mu minus `rank_deviations` deviations."""
    return state[0] - params.rank_deviations * state[1]


def is_provisional(state: StateValues, games: int, params: WengLinParams) -> bool:
    """Tell whether the deviation is too large for the rating to be reliable."""
    return state[1] > Fraction(params.provisional_deviation) * SCALE


def sample(n: int, random: Random, params: WengLinParams) -> Columns:
    """Return the columns of a game of n players, each for themselves or on sides, with ties."""
    is_team_game = n > 2 and random.random() < 0.5
    sides = list(range(n))
    if is_team_game:
        count = random.randint(2, n - 1)
        sides = [*range(count), *(random.randrange(count) for _ in range(n - count))]
        random.shuffle(sides)
    ranks = [random.randint(1, n) for _ in range(n)]
    place = [1 + sum(ranks[rival] < ranks[side] for rival in sides) for side in sides]
    return [place, sides if is_team_game else [MISSING] * n, [0] * n]


PLACKETT_LUCE = Rule(
    name="weng-lin-pl",
    number=1,
    scale=SCALE,
    params=WengLinParams,
    columns=("place", "team", "status"),
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score_pl,
    explain=explain_pl,
    chance=chance,
    state=(
        State("rating", SCALE, 2, low=-PARAM_MAX * SCALE, high=PARAM_MAX * SCALE),
        State("deviation", SCALE, 2, low=1, high=PARAM_MAX * SCALE),
    ),
    start=start,
    rank_by=rank_by,
    ranked_by="the rating minus {rank_deviations} deviations",
    provisional=is_provisional,
    sample=sample,
)
BRADLEY_TERRY = PLACKETT_LUCE._replace(name="weng-lin-btf", score=score_btf, explain=explain_btf)
