"""What one game does to points: each rule once, with any parameters. The rules of points that run on are given points
before the game and places, by player, the participants, the number of seats and the parameters; they return the changes
and how much is minted. The rule of the lists is given a game alone.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

from oracle.log import Event, Seat, places, seats

Points = dict[str, Fraction]
Params = dict[str, Any]
Score = Callable[[Points, dict[str, int], dict[str, Event], int, Params], tuple[Points, Fraction]]


def contribution_pool(
    before: Points, place: dict[str, int], told: dict[str, Event], n: int, params: Params
) -> tuple[Points, Fraction]:
    """Everybody contributes a part of their points to those placed better, who get equal shares, all rounded down."""
    change = dict.fromkeys(before, Fraction(0))
    for giver, points in before.items():
        hundredths = points * params["contributions"][str(n)][place[giver] - 1]
        takers = [player for player in before if place[player] < place[giver]]
        change[giver] -= floor(hundredths / 100)
        for taker in takers:
            change[taker] += floor(hundredths / (100 * len(takers)))
    winners = [player for player in before if place[player] == 1]
    if params["dust"] == "winner" and len(winners) == 1:
        change[winners[0]] -= sum(change.values())
    lasting = [player for player in before if (told[player].get("seconds_played") or 0) > params["bonus_seconds"]]
    for player in lasting:
        change[player] += params["bonus"]
    return change, Fraction(len(lasting) * params["bonus"])


def ante_pool(
    before: Points, place: dict[str, int], told: dict[str, Event], n: int, params: Params
) -> tuple[Points, Fraction]:
    """Everybody antes a part; those tied share alike what the pot gives to their places, all rounded down."""
    divisor, shares = params["ante_divisor"], shares_of_pot(n, params)
    ante = {player: points // divisor if points >= divisor else 0 for player, points in before.items()}
    pot = sum(ante.values())
    victory_points = {player: told[player].get("vp") or 0 for player in before}
    change = {}
    if params.get("winners") == "share":
        place = share_places(place, told)
    for player in before:
        tied = list(place.values()).count(place[player])
        share = sum(shares[place[player] - 1 : place[player] - 1 + tied])
        change[player] = Fraction(pot * share // (100 * tied) - ante[player] + victory_points[player])
    return change, Fraction(sum(victory_points.values()))


def share_places(place: dict[str, int], told: dict[str, Event]) -> dict[str, int]:
    """The places if all who won alike share the best place among them."""
    won = {player: told[player].get("victory") for player in place}
    return {
        player: min(place[other] for other in place if won[other] == won[player]) if won[player] else own
        for player, own in place.items()
    }


def shares_of_pot(n: int, params: Params) -> list[int]:
    """The percentages of the pot by place; the largest row serves larger games, too."""
    found: list[int] = params["shares"].get(str(n)) or params["shares"][max(params["shares"], key=int)]
    return found


def pairwise_elo(
    before: Points, place: dict[str, int], told: dict[str, Event], n: int, params: Params
) -> tuple[Points, Fraction]:
    """Every two players are compared; each pair's change is rounded to whole points."""
    assert params["rounding"] == "pair", "other roundings depend on a table, which the book does not know"
    k = Fraction(params["k_per_pair"]) if "k_per_pair" in params else Fraction(params["k_total"]) / (n - 1)
    change = dict.fromkeys(before, Fraction(0))
    for player in before:
        for other in before.keys() - {player}:
            outcome = (place[player] < place[other]) - (place[player] > place[other])
            change[player] += pair(before[player] - before[other], outcome, k, params["scale"])
    assert sum(change.values()) == 0, "each pair is zero-sum"
    return change, Fraction(0)


@cache
def pair(gap: Fraction, outcome: int, k: Fraction, scale: int) -> Fraction:
    """Whole points for a player so far above the opponent who won (1), tied (0) or lost (-1), half away from zero."""
    scored = Fraction(outcome + 1, 2)
    if (gap / scale).denominator == 1:
        power = Fraction(10) ** int(-gap / scale)
    else:
        with localcontext() as context:
            context.prec = 60
            power = Fraction(Decimal(10) ** (-Decimal(gap.numerator) / (gap.denominator * scale)))
    change = k * (scored - 1 / (1 + power))
    size = floor(abs(change) + Fraction(1, 2))
    return Fraction(size if change > 0 else -size)


def catan_points(game: Event, params: Params) -> list[tuple[str, Fraction]]:
    """What the players of a game get: tied seats put together the points of their places and share them."""
    placed, seated = places(game), seats(game)
    row = params["points"][str(len(seated))]
    ranks = [placed[seat.first["player"]] for seat in seated]
    found = []
    for seat, place in zip(seated, ranks, strict=True):
        tied = ranks.count(place)
        share = Fraction(sum(row[place - 1 : place - 1 + tied]), tied)
        found += [(player, share) for player in scored_on(seat, params["substitution"])]
    return found


def scored_on(seat: Seat, substitution: str) -> list[str]:
    """Who of a seat gets its points."""
    first, last = seat.first["player"], seat.last["player"]
    if not seat.changed_hands:
        return [first]
    return {"none": [], "leaver": [first], "substitute": [last], "both": [first, last]}[substitution]


SCORES: dict[str, Score] = {
    "contribution-pool/1": contribution_pool, "ante-pool/1": ante_pool, "pairwise-elo/1": pairwise_elo,
}  # fmt: skip
# how many units a rule counts a point in
UNITS = {"contribution-pool/1": 1, "ante-pool/1": 1, "pairwise-elo/1": 1_000_000}
