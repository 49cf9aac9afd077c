"""What a game does to running points, by the book, with any parameters: the contribution pool and the pairwise Elo."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

Points = dict[str, Fraction]
Told = dict[str, dict[str, Any]]


def contribution_pool(before: Points, place: dict[str, int], told: Told, n: int, params: dict[str, Any]) -> Points:
    """Everybody contributes a part of his points to those placed better, who get equal shares, all rounded down."""
    change = dict.fromkeys(before, Fraction(0))
    rest = Fraction(0)
    for giver, points in before.items():
        hundredths = points * params["contributions"][str(n)][place[giver] - 1]
        takers = [player for player in before if place[player] < place[giver]]
        change[giver] -= floor(hundredths / 100)
        rest += floor(hundredths / 100)
        for taker in takers:
            change[taker] += floor(hundredths / (100 * len(takers)))
            rest -= floor(hundredths / (100 * len(takers)))
    winners = [player for player in before if place[player] == 1]
    if params.get("dust") == "winner" and len(winners) == 1:
        change[winners[0]] += rest
    for player in before:
        if (told[player].get("seconds_played") or 0) > params.get("bonus_seconds", 600):
            change[player] += params.get("bonus", 100)
    return change


def pairwise_elo(before: Points, place: dict[str, int], told: Told, n: int, params: dict[str, Any]) -> Points:
    """Every two players are compared; each pair's change is rounded to whole points."""
    assert params["rounding"] == "pair", "other roundings depend on a table, which the book does not know"
    k = Fraction(params["k_per_pair"]) if "k_per_pair" in params else Fraction(params["k_total"]) / (n - 1)
    return {
        player: sum(
            (pair(before[player] - before[other], (place[player] < place[other]) - (place[player] > place[other]), k,
                  params.get("scale", 400))
             for other in before if other != player), Fraction(0),
        )
        for player in before
    }  # fmt: skip


@cache
def pair(gap: Fraction, outcome: int, k: Fraction, scale: int) -> Fraction:
    """Whole points for a player so far above his opponent who won (1), tied (0) or lost (-1), half away from zero."""
    scored = Fraction(outcome + 1, 2)
    if (gap / scale).denominator == 1:
        expected = 1 / (1 + Fraction(10) ** int(-gap / scale))
    else:
        with localcontext() as context:
            context.prec = 60
            power = Decimal(10) ** (-Decimal(gap.numerator) / (gap.denominator * scale))
        expected = 1 / (1 + Fraction(power))
    change = k * (scored - expected)
    size = floor(abs(change) + Fraction(1, 2))
    return Fraction(size if change > 0 else -size)


SCORES: dict[str, Callable[[Points, dict[str, int], Told, int, dict[str, Any]], Points]] = {
    "contribution-pool/1": contribution_pool,
    "pairwise-elo/1": pairwise_elo,
}
