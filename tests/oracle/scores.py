"""Score one game by each rule, with any parameters.

A rule of running points has the points before the game, the places and the participants by player, the number of seats
and the parameters; it returns the changes and the minted points. The rule of lists has only the game.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

from oracle.log import Event, Seat, compute_places, list_seats

Points = dict[str, Fraction]
Params = dict[str, Any]
Score = Callable[[Points, dict[str, int], dict[str, Event], int, Params], tuple[Points, Fraction]]


def score_contribution_pool(
    before: Points, place: dict[str, int], participants: dict[str, Event], seat_count: int, params: Params
) -> tuple[Points, Fraction]:
    """Score a game: each player gives a part of their points to those placed better, in equal shares, rounded down."""
    changes = dict.fromkeys(before, Fraction(0))
    for giver, points in before.items():
        hundredths = points * params["contributions"][str(seat_count)][place[giver] - 1]
        takers = [player for player in before if place[player] < place[giver]]
        changes[giver] -= floor(hundredths / 100)
        for taker in takers:
            changes[taker] += floor(hundredths / (100 * len(takers)))
    winners = [player for player in before if place[player] == 1]
    if params["dust"] == "winner" and len(winners) == 1:
        changes[winners[0]] -= sum(changes.values())
    lasting = [
        player for player in before if (participants[player].get("seconds_played") or 0) > params["bonus_seconds"]
    ]
    for player in lasting:
        changes[player] += params["bonus"]
    return changes, Fraction(len(lasting) * params["bonus"])


def score_ante_pool(
    before: Points, place: dict[str, int], participants: dict[str, Event], seat_count: int, params: Params
) -> tuple[Points, Fraction]:
    """Score a game: each player antes a part, and tied players share the pot's part for their places, rounded down."""
    divisor, shares = params["ante_divisor"], list_pot_shares(seat_count, params)
    ante = {player: points // divisor if points >= divisor else 0 for player, points in before.items()}
    pot = sum(ante.values())
    victory_points = {player: participants[player].get("vp") or 0 for player in before}
    change = {}
    if params.get("winners") == "share":
        place = share_winners_places(place, participants)
    for player in before:
        tied = list(place.values()).count(place[player])
        share = sum(shares[place[player] - 1 : place[player] - 1 + tied])
        change[player] = Fraction(pot * share // (100 * tied) - ante[player] + victory_points[player])
    return change, Fraction(sum(victory_points.values()))


def share_winners_places(place: dict[str, int], participants: dict[str, Event]) -> dict[str, int]:
    """Return the places if all players with the same victory share the best of their places."""
    victories = {player: participants[player].get("victory") for player in place}
    return {
        player: min(place[other_player] for other_player in place if victories[other_player] == victories[player])
        if victories[player]
        else own_place
        for player, own_place in place.items()
    }


def list_pot_shares(seat_count: int, params: Params) -> list[int]:
    """Return the percentages of the pot by place; larger games have the largest row."""
    shares: list[int] = params["shares"].get(str(seat_count)) or params["shares"][max(params["shares"], key=int)]
    return shares


def score_pairwise_elo(
    before: Points, place: dict[str, int], participants: dict[str, Event], seat_count: int, params: Params
) -> tuple[Points, Fraction]:
    """Score a game by Elo for each pair of players, with changes rounded to whole points per pair."""
    assert params["rounding"] == "pair", "other roundings depend on a table, which the book does not know"
    k = Fraction(params["k_per_pair"]) if "k_per_pair" in params else Fraction(params["k_total"]) / (seat_count - 1)
    change = dict.fromkeys(before, Fraction(0))
    for player in before:
        for opponent in before.keys() - {player}:
            outcome = (place[player] < place[opponent]) - (place[player] > place[opponent])
            change[player] += score_pair(before[player] - before[opponent], outcome, k, params["scale"])
    assert sum(change.values()) == 0, "each pair is zero-sum"
    return change, Fraction(0)


@cache
def score_pair(gap: Fraction, outcome: int, k: Fraction, scale: int) -> Fraction:
    """Return the change of a player with this lead who won (1), tied (0) or lost (-1), rounded half away from zero."""
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


def score_catan(game: Event, params: Params) -> list[tuple[str, Fraction]]:
    """Return the players' points of a game: tied seats share the sum of the points of their places."""
    placed, seated = compute_places(game), list_seats(game)
    row = params["points"][str(len(seated))]
    ranks = [placed[seat.first["player"]] for seat in seated]
    points = []
    for seat, place in zip(seated, ranks, strict=True):
        tied = ranks.count(place)
        share = Fraction(sum(row[place - 1 : place - 1 + tied]), tied)
        points += [(player, share) for player in list_scored_players(seat, params["substitution"])]
    return points


def list_scored_players(seat: Seat, substitution: str) -> list[str]:
    """Return the players of a seat who get its points."""
    first, last = seat.first["player"], seat.last["player"]
    if not seat.changed_hands:
        return [first]
    return {"none": [], "leaver": [first], "substitute": [last], "both": [first, last]}[substitution]


SCORES: dict[str, Score] = {
    "contribution-pool/1": score_contribution_pool,
    "ante-pool/1": score_ante_pool,
    "pairwise-elo/1": score_pairwise_elo,
}
# the units per point of each rule
UNITS = {"contribution-pool/1": 1, "ante-pool/1": 1, "pairwise-elo/1": 1_000_000}
