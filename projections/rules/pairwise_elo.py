"""Pairwise Elo: each pair of players in a game is compared as if they had played a game of two.

    change(A against B) = K * (S - E),  E = 1 / (1 + 10^((R_B - R_A) / scale)),  S = 1 better placed, 1/2 tied, 0 worse

(A. Elo, The Rating of Chessplayers, 1978, with base 10.) Ratings are in micropoints. E comes from an integer table with
linear interpolation in units of 2^-32, so every machine gets the same ratings: its error is below 1.2e-9, and with K at
most 400 each pair's change is within one micropoint of the exact value. E(A) + E(B) is exactly 1.

Parameters allow departures from the textbook: `rounding` to whole points per pair or in total, and `update =
sequential`, where a player's own rating moves after each opponent, in the order of their ids (opponents have their
ratings before the game). Then the changes need not sum to zero, and the difference is minted or burned. A seat that
changed hands counts as one seat where K is divided, and both its players are compared. Rounding in total uses E from
the table.

    1000 against 1000, the first wins, K 8: expected 0.5, so +4 and -4
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from ratings_ledger.projections.contract import (
    EXPECTED_SCALES,
    INT64_MAX,
    INVERSE,
    ONE,
    Changes,
    Columns,
    Numbers,
    Params,
    PositiveFraction,
    Rule,
    Term,
    decimal,
    expected,
    expected_scores,
    rounded,
)

SCALE = 1_000_000
K_MAX = 400


class PairwiseEloParams(Params):
    """Parameters. `k_per_pair` is K; with `k_total` instead, K = k_total / (seats - 1). `scale` is in points.

    `rounding` rounds each pair's change (`pair`) or a player's sum (`total`) to whole points. With `update =
    "sequential"`, a player's own rating moves after each opponent, in the order of the opponents' ids; then the changes
    need not sum to zero.
    """

    start: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 1000
    k_per_pair: PositiveFraction | None = None
    k_total: PositiveFraction | None = None
    scale: Annotated[int, Field(ge=1, le=100_000)] = 400
    rounding: Literal["none", "pair", "total"] = "none"
    update: Literal["simultaneous", "sequential"] = "simultaneous"


def refuse_params(params: PairwiseEloParams, players_max: int) -> str | None:
    """Return the problem with the parameters, or None. Products must fit a signed 64-bit integer."""
    if (params.k_per_pair is None) == (params.k_total is None):
        return "params: give either k_per_pair (K of every pair) or k_total (K is k_total / (seats - 1))"
    if params.update == "sequential" and params.rounding == "total":
        return 'params.rounding: must be "none" or "pair" with update = "sequential", which rounds each step'
    k = Fraction(params.k_per_pair or params.k_total or 0)
    if k > K_MAX:
        return f"params: K must be at most {K_MAX}, not {k}, so that changes are exact to 0.000001 point"
    pairs = players_max if params.rounding == "total" else 1
    unit = SCALE if params.rounding == "none" else 1
    numerator = 2 * k.numerator * unit * ONE * pairs
    divisor = 2 * k.denominator * (players_max - 1) * ONE
    if numerator + divisor > INT64_MAX:
        return f"params: K {k} has too long a numerator or denominator for exact 64-bit arithmetic"
    return None


def prepare(params: PairwiseEloParams) -> tuple[int, ...]:
    """Return the constants.

    They are the numerator and denominator of K, whether K is divided by seats - 1, the scale in micropoints, the
    rounding (0, 1 or 2), whether the update is sequential, and 2^59 / scale.
    """
    k = Fraction(params.k_per_pair or params.k_total or 0)
    scale = params.scale * SCALE
    return (
        k.numerator,
        k.denominator,
        int(params.k_total is not None),
        scale,
        ("none", "pair", "total").index(params.rounding),
        int(params.update == "sequential"),
        INVERSE // scale,
    )


def chance(points: int, opponent_points: int, constants: Numbers, table: Numbers) -> int:
    """Return the expected score of a player with `points` micropoints against `opponent_points`, in units of 2^-32."""
    return expected(points - opponent_points, constants[3], constants[6], table)


def compare_with_expected(
    gap: int, twice_scored: int, scale: int, inverse: int, rounding: int, table: Numbers
) -> tuple[int, int]:
    """Return the score minus the expected score, and a score of 1 in the same unit; `twice_scored` is 0, 1 or 2."""
    whole, chance = ONE, expected(gap, scale, inverse, table)
    if rounding == 1 and gap % scale == 0 and abs(gap) < EXPECTED_SCALES * scale:
        # E is rational here. The last bit of the table must not decide how an exact half is rounded.
        whole = 2 + 2 * 10 ** (abs(gap) // scale)
        chance = whole - 2 if gap > 0 else 2
    return twice_scored * whole // 2 - chance, whole


def score(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Changes) -> int:
    """Fill in the changes. Return the points that the sequential update or the rounding in total minted."""
    place, seats = columns[0], columns[1]
    k, k_denominator, is_divided = constants[0], constants[1], constants[2]
    scale, rounding, sequential, inverse = constants[3], constants[4], constants[5], constants[6]
    divisor = k_denominator * (seats[0] - 1 if is_divided else 1)
    for i in range(n):
        change[i] = 0
    for i in range(n):
        for j in range(0 if sequential else i + 1, n):
            if j == i:
                continue
            gap = points[i] - points[j] + (change[i] if sequential else 0)
            scored = 2 if place[i] < place[j] else 0 if place[i] > place[j] else 1
            # Two branches, because compiled code takes 1.5 x as long with the exact halves in the same expression.
            if rounding == 0:
                ahead = scored * (ONE // 2) - expected(gap, scale, inverse, table)
                amount = rounded(ahead * k * SCALE, divisor, ONE)
            else:
                ahead, whole = compare_with_expected(gap, scored, scale, inverse, rounding, table)
                amount = ahead if rounding == 2 else rounded(ahead * k, divisor, whole) * SCALE
            change[i] += amount
            if not sequential:
                change[j] -= amount
    total = 0
    for i in range(n):
        if rounding == 2:
            change[i] = rounded(change[i] * k, divisor, ONE) * SCALE
        total += change[i]
    return max(total, 0)


def explain(
    n: int, names: Sequence[str], points: Numbers, columns: Columns, params: PairwiseEloParams, change: Numbers
) -> list[list[Term]]:
    """Return for every player a term per opponent, in the order of the update; with rounding in total, one more."""
    place, seats = columns[0], columns[1]
    k, k_denominator, is_divided, scale, rounding, sequential, inverse = prepare(params)
    divisor = k_denominator * (seats[0] - 1 if is_divided else 1)
    step = SCALE if rounding == 1 else 1
    k_exact = Fraction(k, divisor)
    terms: list[list[Term]] = []
    for i in range(n):
        own, player_terms = points[i], []
        for j in (*range(i), *range(i + 1, n)):
            scored = 2 if place[i] < place[j] else 0 if place[i] > place[j] else 1
            ahead, whole = compare_with_expected(own - points[j], scored, scale, inverse, rounding, expected_scores())
            amount = rounded(ahead * k * (SCALE // step), divisor, whole) * step
            chance = scored * whole // 2 - ahead
            note = f"rated {decimal(own, SCALE)} against {decimal(points[j], SCALE)}"
            note += ", rounded to whole points" if rounding == 1 else ""
            detail = f"K {k_exact}, expected {decimal(chance, whole)}, scored {decimal(scored, 2)}"
            values = (("k", k_exact), ("expected", Fraction(chance, whole)), ("scored", Fraction(scored, 2)))
            assumes = ("k_total", "k_per_pair", "scale", "rounding", *(("rule",) if scored == 1 else ()))
            player_terms.append(Term(f"vs {names[j]}", amount, detail, note, assumes, values))
            own += amount if sequential else 0
        if rounding == 2:
            rest = change[i] - sum(term.amount for term in player_terms)
            player_terms.append(Term("rounding", rest, "the sum, to whole points"))
        terms.append(player_terms)
    return terms


RULE = Rule(
    name="pairwise-elo",
    number=1,
    scale=SCALE,
    params=PairwiseEloParams,
    columns=("place", "seats"),
    prepare=prepare,
    table=expected_scores,
    refuse_params=refuse_params,
    check=None,
    score=score,
    explain=explain,
    chance=chance,
)
