"""Pairwise Elo with home advantage, margins of victory, a K that depends on games played, seasons, teams and draws.

    change of A against B = K of A * margin factor * weight * (S - E) / (sides - 1)
    gap = rating of A's side + home advantage - rating of B's side
    u = 10^(gap / (2 * scale));  win u, draw kappa, loss 1/u, each over u + 1/u + kappa;  E = win + draw / 2

S is 1, 1/2 or 0. With kappa 0 this is Elo's E = 1 / (1 + 10^(-gap / scale)) (A. Elo, The Rating of Chessplayers, 1978);
draws: R. Davidson, JASA 65 (1970). Every two sides of a game are compared from the ratings before it. m is the winner's
margin in score, lead the gap from the winner's side (N. Silver, FiveThirtyEight, NFL and NBA forecasts):

    margin = "ln":    ln(max(m, 1) + 1) * d / (slope * lead + d), a tie d * ln 2     d 2.2, slope 0.001
    margin = "power": (m + offset)^power / (d + slope * lead), a tie with lead 0     3, 0.8, d 7.5, slope 0.006
    margin = "table": the factor for a margin of 0, 1, 2 ...; the last one also for larger margins

The divisor d + slope * lead is never below d / 10. Every member of a side gets its change, by the member's own K; where
the changes do not sum to zero, the difference is minted or burned. A season may draw ratings to a mean:

    rating = old + reversion * (reversion_to - old)

    1500 at home beats 1500 by 7; K 20, home 65, margin "ln":
    expected 0.592466, factor 2.019767, so +16.462462 and -16.462462
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    decimal,
    exp,
    joined,
    ln,
    needs,
    no_table,
    power,
    real,
    refuse_two_in_a_seat,
    units,
)

SCALE = 1_000_000
LN10 = 2.302585092994046
# Larger ratings and margins count as these limits, and games of larger weight are refused. So no product leaves the
# range of exact arithmetic.
RATING_MAX = 10**12
STATE = (State("rating", SCALE, low=-RATING_MAX, high=RATING_MAX),)
MARGIN_MAX = 100_000
WEIGHT_MAX = 100
# The largest change of a rating by one game.
CHANGE_MAX = 10**9
COLUMNS = ("place", "status", "team", "home", "side_score", "games_before", "numbers.weight")
PLACE, STATUS, TEAM, HOME, SIDE_SCORE, GAMES_BEFORE, WEIGHT = range(len(COLUMNS))
# Offsets of the constants. A fraction takes two entries; K and the table of factors come last.
SPAN, HOME_POINTS, KAPPA, DIVISOR, SLOPE, OFFSET, EXPONENT, REVERSION, MEAN = range(0, 18, 2)
MARGIN, MARGIN_UNIT, WEIGHT_ONE, BY_SUM, K_FORMULA, FACTORS, K = range(18, 25)
MARGINS = ("none", "ln", "power", "table")


class StrictModel(BaseModel):
    """A strict model of a table within the parameters."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KStep(StrictModel):
    """K for players with fewer than `below` games. The last step has no `below` and is for all other players."""

    k: PositiveFraction
    below: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class KFormula(StrictModel):
    """K = numerator / (games + offset)^power."""

    numerator: PositiveFraction
    offset: PositiveFraction
    power: PositiveFraction


K_FORMS = "a number such as 20, steps such as [{below = 30, k = 40}, {k = 20}], or {numerator, offset, power}"
KOfGames = Annotated[PositiveFraction | KFormula | list[KStep], needs(K_FORMS)]


class PairwiseElo2Params(Params):
    """Parameters. `home` is in points. With `kappa` above 0, the rule expects draws.

    `k` is a number, a list of steps by games played such as `[{below = 30, k = 40}, {k = 20}]`, or
    `{numerator = 250, offset = 5, power = "0.4"}`: numerator / (games + offset)^power.

    `margin_divisor` (d) and `margin_slope` default to the constants of their margin; `margin_unit` is the number of
    units of the score in a margin of 1. `weight_one` is the value of `numbers.weight` that counts as one game; a game
    without a weight counts as one game. With `teams`, the rating of a side is the mean or the sum of its members'
    ratings. With fewer than `provisional_games` games, a rating is provisional.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1500
    k: KOfGames = 20
    scale: Annotated[int, Field(ge=1, le=100_000)] = 400
    home: FractionOrZero = 0
    kappa: FractionOrZero = 0
    margin: Literal["none", "ln", "power", "table"] = "none"
    margin_divisor: PositiveFraction | None = None
    margin_slope: FractionOrZero | None = None
    margin_offset: PositiveFraction = 3
    margin_power: PositiveFraction = "0.8"
    margin_factors: Annotated[list[PositiveFraction], Field(max_length=100)] = []
    margin_unit: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    weight_one: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    teams: Literal["mean", "sum"] = "mean"
    reversion: FractionOrZero = 0
    reversion_to: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1500
    provisional_games: Annotated[int, Field(ge=0, le=1_000_000)] = 0


def steps_of(params: PairwiseElo2Params) -> list[tuple[int, Fraction]]:
    """Return K by games played, as (limit, K): K is for players with fewer games than the limit."""
    if isinstance(params.k, KFormula):
        return []
    if isinstance(params.k, list):
        return [(step.below or -MISSING, Fraction(step.k)) for step in params.k]
    return [(-MISSING, Fraction(params.k))]


def refuse_params(params: PairwiseElo2Params, players_max: int) -> str | None:
    """Return the problem with the parameters, or None."""
    bounds = [below for below, _ in steps_of(params)]
    if not isinstance(params.k, KFormula) and (bounds[-1:] != [-MISSING] or sorted({*bounds}) != bounds):
        return (
            "params.k: each step but the last must have a larger `below` than the step before, and the last step none, "
            "such as [{below = 30, k = 40}, {k = 20}]"
        )
    if Fraction(params.reversion) > 1:
        return f"params.reversion: must be at most 1, the whole way to the mean, not {params.reversion}"
    if (params.margin == "table") != bool(params.margin_factors):
        return 'params.margin_factors: factors must be given with margin = "table", and only then'
    for name, limit in (("home", 100_000), ("kappa", 1_000)):
        if Fraction(getattr(params, name)) > limit:
            return f"params.{name}: must be at most {limit}, not {getattr(params, name)}"
    constants = prepare(params)
    try:
        # A tie and a large upset have the largest factors.
        cases = ((0, 0, 0.0), (1, 0, -1e9), (1, MARGIN_MAX * params.margin_unit, -1e9))
        factors = [margin_factor(*case, constants) for case in cases]
        factors += [float(Fraction(factor)) for factor in params.margin_factors]
        largest_change = max([k_of(0, constants), *(float(k) for _, k in steps_of(params))]) * max(factors) * WEIGHT_MAX
    except (OverflowError, ValueError):
        largest_change = inf
    if largest_change > CHANGE_MAX:
        return f"params: K and the margin could move a rating by more than {CHANGE_MAX:,} points in a game"
    return None


def prepare(params: PairwiseElo2Params) -> tuple[int, ...]:
    """Return the constants in the order of the names above."""
    defaults = ("7.5", "0.006") if params.margin == "power" else ("2.2", "0.001")
    slope = defaults[1] if params.margin_slope is None else params.margin_slope
    fractions = [
        params.scale,
        params.home,
        params.kappa,
        params.margin_divisor or defaults[0],
        slope,
        params.margin_offset,
        params.margin_power,
        params.reversion,
        params.reversion_to,
    ]
    pairs = [part for value in fractions for part in Fraction(value).as_integer_ratio()]
    k = [part for below, value in steps_of(params) for part in (below, *value.as_integer_ratio())]
    if isinstance(params.k, KFormula):
        formula = (params.k.numerator, params.k.offset, params.k.power)
        k = [part for value in formula for part in Fraction(value).as_integer_ratio()]
    factors = [part for value in params.margin_factors for part in Fraction(value).as_integer_ratio()]
    flags = (MARGINS.index(params.margin), params.margin_unit, params.weight_one, int(params.teams == "sum"))
    return (*pairs, *flags, int(isinstance(params.k, KFormula)), K + len(k), *k, *factors)


def start(params: PairwiseElo2Params) -> StateValues:
    """Return the state of a new player."""
    return (params.start * SCALE,)


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    """Return the rating, moved towards the mean."""
    if constants[REVERSION] == 0:
        return state
    old = real(clamp_rating(state[0]), SCALE)
    return (state[0] + units(fraction(constants, REVERSION) * (fraction(constants, MEAN) - old), SCALE),)


def fraction(constants: Numbers, at: int) -> float:
    """Return the fraction at an offset of the constants."""
    return real(constants[at], constants[at + 1])


def clamp_rating(rating: int) -> int:
    """Limit a rating to the range of exact arithmetic."""
    return max(min(rating, RATING_MAX), -RATING_MAX)


def is_same_side(i: int, j: int, team: Numbers) -> bool:
    """Tell whether two participants are on one side."""
    return i == j or (team[i] != MISSING and team[i] == team[j])


def is_first(i: int, team: Numbers) -> bool:
    """Tell whether a participant is the first of their side. The first participant represents the side."""
    if team[i] != MISSING:
        for j in range(i):
            if team[j] == team[i]:
                return False
    return True


def count_sides(n: int, team: Numbers) -> int:
    """Count the sides of a game."""
    sides = 0
    for i in range(n):
        if is_first(i, team):
            sides += 1
    return sides


def side_rating(i: int, n: int, before: Any, team: Numbers, constants: Numbers) -> float:
    """Return the rating of a participant's side, in points."""
    total, members = clamp_rating(before[0][i]), 1
    if team[i] != MISSING:
        for j in range(n):
            if j != i and team[j] == team[i]:
                total += clamp_rating(before[0][j])
                members += 1
    return real(total, SCALE) if constants[BY_SUM] else real(total, SCALE) / real(members, 1)


def side_gap(a: int, b: int, n: int, before: Any, columns: Columns, constants: Numbers) -> float:
    """Return the lead of a's side over b's side, in points, including home advantage."""
    gap = side_rating(a, n, before, columns[TEAM], constants) - side_rating(b, n, before, columns[TEAM], constants)
    if columns[HOME][a] == 1:
        gap = gap + fraction(constants, HOME_POINTS)
    if columns[HOME][b] == 1:
        gap = gap - fraction(constants, HOME_POINTS)
    return gap


def expect(gap: float, constants: Numbers) -> tuple[float, float]:
    """Return the expected score of a side, and the probability of a draw."""
    # Beyond e^200 the result is certain within the precision of a double.
    exponent = max(min(gap * LN10 / (2.0 * fraction(constants, SPAN)), 200.0), -200.0)
    win, kappa = exp(exponent), fraction(constants, KAPPA)
    whole = win + 1.0 / win + kappa
    return (win + 0.5 * kappa) / whole, kappa / whole


def margin_factor(ahead: int, margin: int, gap: float, constants: Numbers) -> float:
    """Return the factor for a margin in units of the score.

    `ahead` is 1 if the side that `gap` belongs to won, -1 if it lost, and 0 for a tie.
    """
    unit, kind = constants[MARGIN_UNIT], constants[MARGIN]
    margin = max(min(margin, MARGIN_MAX * unit), 0)
    if kind == 0:
        return 1.0
    if kind == 3:
        last = (len(constants) - constants[FACTORS]) // 2 - 1
        return fraction(constants, constants[FACTORS] + 2 * min(margin // unit, last))
    size, divisor, lead = real(margin, unit), fraction(constants, DIVISOR), 0.0
    if ahead > 0:
        lead = gap
    elif ahead < 0:
        lead = -gap
    below = max(divisor + fraction(constants, SLOPE) * lead, divisor / 10.0)
    if kind == 1:
        return ln(max(size, 1.0) + 1.0) * (divisor if ahead == 0 else divisor / below)
    return power(size + fraction(constants, OFFSET), fraction(constants, EXPONENT)) / below


def weight_of(weight: int, constants: Numbers) -> float:
    """Return the weight of a game as a factor; 1 if it has no weight."""
    return 1.0 if weight == MISSING else real(weight, constants[WEIGHT_ONE])


def k_of(games: int, constants: Numbers) -> float:
    """Return K for a player with this number of counted games."""
    if constants[K_FORMULA]:
        size = power(real(games, 1) + fraction(constants, K + 2), fraction(constants, K + 4))
        return fraction(constants, K) / size
    at = K
    while games >= constants[at]:
        at += 3
    return fraction(constants, at + 1)


def compare(a: int, b: int, n: int, before: Any, columns: Columns, constants: Numbers) -> tuple[float, float, float]:
    """Return the score and the expected score of a's side against b's side, and the margin factor."""
    place, score = columns[PLACE], columns[SIDE_SCORE]
    gap = side_gap(a, b, n, before, columns, constants)
    scored, ahead = 0.5, 0
    if place[a] < place[b]:
        scored, ahead = 1.0, 1
    elif place[a] > place[b]:
        scored, ahead = 0.0, -1
    factor = margin_factor(ahead, ahead * (score[a] - score[b]), gap, constants)
    return scored, expect(gap, constants)[0], factor


def side_gain(a: int, b: int, n: int, before: Any, columns: Columns, constants: Numbers) -> float:
    """Return the gain of a's side from b's side, for a K of 1 in a game of two sides."""
    scored, expected, factor = compare(a, b, n, before, columns, constants)
    return (scored - expected) * factor * weight_of(columns[WEIGHT][a], constants)


def score(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Fill in the ratings after the game. Return the points that different K minted."""
    team = columns[TEAM]
    opponent_count = real(max(count_sides(n, team) - 1, 1), 1)
    total = 0
    for a in range(n):
        if not is_first(a, team):
            continue
        for b in range(a + 1, n):
            if is_same_side(a, b, team) or not is_first(b, team):
                continue
            gain = side_gain(a, b, n, before, columns, constants) / opponent_count
            total += pay(a, n, gain, columns, constants, after) + pay(b, n, -gain, columns, constants, after)
    return max(total, 0)


def pay(side: int, n: int, gain: float, columns: Columns, constants: Numbers, after: Any) -> int:
    """Add a gain times K to the ratings of a side, given by its first member. Return the sum of the changes."""
    team, total = columns[TEAM], 0
    for i in range(side, n if team[side] != MISSING else side + 1):
        if is_same_side(i, side, team):
            amount = units(k_of(columns[GAMES_BEFORE][i], constants) * gain, SCALE)
            after[0][i] += amount
            total += amount
    return total


def chance(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of a participant's side against another's, in units of 2^-32."""
    # The two chances of a pair sum to exactly one.
    a, b = min(i, j), max(i, j)
    expected = expect(side_gap(a, b, len(columns[TEAM]), before, columns, constants), constants)[0]
    own = min(max(units(expected, ONE), 1), ONE - 1)
    return own if i == a else ONE - own


def draw(i: int, j: int, before: Any, columns: Columns, constants: Numbers, table: Numbers) -> int:
    """Return the probability of a draw, in units of 2^-32; a win and a loss keep at least one unit each."""
    expected = chance(i, j, before, columns, constants, table)
    gap = side_gap(min(i, j), max(i, j), len(columns[TEAM]), before, columns, constants)
    return min(units(expect(gap, constants)[1], ONE), 2 * min(expected, ONE - expected) - 2)


def check(n: int, columns: Columns, params: PairwiseElo2Params) -> str | None:
    """Return the reason why a game cannot be scored, or None."""
    place, team, weights = columns[PLACE], columns[TEAM], columns[WEIGHT]
    if place[0] == 0:
        return "the game has no places"
    if count_sides(n, team) < 2:
        return "all players are on one side"
    if params.margin != "none" and MISSING in columns[SIDE_SCORE]:
        return f'a score is missing; margin = "{params.margin}" needs the scores of all sides'
    if any(weight != weights[0] for weight in weights):
        return "the participants of a game have different weights"
    if weights[0] != MISSING and not 0 <= weights[0] <= WEIGHT_MAX * params.weight_one:
        return f"numbers.weight is {weights[0]}; it must be from 0 to {WEIGHT_MAX * params.weight_one}"
    return None if team[0] != MISSING else refuse_two_in_a_seat(place, columns[STATUS])


def explain(
    n: int, names: Sequence[str], before: Any, columns: Columns, params: PairwiseElo2Params, after: Any
) -> list[list[Term]]:
    """Return for every participant a term per opposing side."""
    team, weight, constants = columns[TEAM], columns[WEIGHT][0], prepare(params)
    firsts = [i for i in range(n) if is_first(i, team)]
    divisor_note = f" / {len(firsts) - 1}" if len(firsts) > 2 else ""
    weight_note = f" x weight {_format(weight_of(weight, constants))}" if weight != MISSING else ""
    assumes = ("k", *(("home",) if params.home else ()), *(("margin",) if params.margin != "none" else ()))
    rating_texts = [_format(side_rating(i, n, before, team, constants)) for i in range(n)]
    rating_texts = [
        f"{rating_texts[i]} + {params.home} at home" if columns[HOME][i] == 1 and params.home else rating_texts[i]
        for i in range(n)
    ]
    terms: list[list[Term]] = [[] for _ in range(n)]
    for i, opponent in ((i, first) for i in range(n) for first in firsts if not is_same_side(i, first, team)):
        own = next(first for first in firsts if is_same_side(i, first, team))
        a, b = min(own, opponent), max(own, opponent)
        scored, expected, factor = compare(a, b, n, before, columns, constants)
        gain = side_gain(a, b, n, before, columns, constants) / real(len(firsts) - 1, 1)
        k = k_of(columns[GAMES_BEFORE][i], constants)
        if own != a:
            scored, expected, gain = 1.0 - scored, 1.0 - expected, -gain
        factor_notes = (f" x margin {_format(factor)}" if params.margin != "none" else "") + weight_note
        detail = f"K {_format(k)}{divisor_note}{factor_notes}, expected {_format(expected)}, scored {_format(scored)}"
        members = joined([names[j] for j in range(n) if is_same_side(j, opponent, team)])
        note = f"rated {rating_texts[own]} against {rating_texts[opponent]}"
        values: tuple[tuple[str, Fraction | int], ...] = ()
        if not (divisor_note or factor_notes):
            values = (("k", _fraction(k)), ("expected", _fraction(expected)), ("scored", _fraction(scored)))
        terms[i].append(Term(f"vs {members}", units(k * gain, SCALE), detail, note, assumes, values))
    return terms


def _format(value: float) -> str:
    return decimal(units(value, SCALE), SCALE)


def _fraction(value: float) -> Fraction:
    """Return the number that `_format` prints."""
    return Fraction(units(value, SCALE), SCALE)


def provisional(state: StateValues, games: int, params: PairwiseElo2Params) -> bool:
    """Tell whether a player has played too few games."""
    return games < params.provisional_games


def sample(n: int, random: Any, params: PairwiseElo2Params) -> Columns:
    """Return the columns of a game that can be scored: sometimes of two teams, sometimes with a side at home."""
    sides = 2 if n > 2 and random.random() < 0.5 else n
    side = [i % sides for i in range(n)]
    scores = [random.randint(0, 9) for _ in range(sides)]
    home = random.choice([None, *range(sides)])
    weight = random.choice([MISSING, params.weight_one, 2 * params.weight_one])
    return [
        [1 + sum(score > scores[own] for score in scores) for own in side],
        [0] * n,
        side if sides < n else [MISSING] * n,
        [0 if home is None else 1 if own == home else -1 for own in side],
        [scores[own] for own in side],
        [random.randint(0, 60) for _ in range(n)],
        [weight] * n,
    ]


RULE = Rule(
    name="pairwise-elo",
    number=2,
    scale=SCALE,
    params=PairwiseElo2Params,
    columns=COLUMNS,
    prepare=prepare,
    table=no_table,
    refuse_params=refuse_params,
    check=check,
    score=score,
    explain=explain,
    chance=chance,
    draw=draw,
    state=STATE,
    start=start,
    new_season=new_season,
    provisional=provisional,
    sample=sample,
)
