"""Rating packages over games in memory, each with its fastest function that scores a game of several players.

Every function rates the first `count` games of a history, prepared as lists, and keeps everybody's rating in a
dictionary.
"""

from datetime import datetime
from itertools import pairwise
from math import exp, log, pi, sqrt
from time import perf_counter
from typing import Any

from benchmarks.games import chunks
from benchmarks.histories import History

Found = dict[str, Any]
DAY = 86_400_000_000
Games = list[tuple[list[int], list[int]]]


def _games(history: list[Any], count: int) -> Games:
    """Players and places of the first games."""
    found: Games = []
    for drawn in chunks(History(*history)):
        players, places = drawn.players.tolist(), drawn.places.tolist()
        found += [(players[low:high], places[low:high]) for low, high in pairwise(drawn.offsets.tolist())]
        if len(found) >= count:
            break
    return found[:count]


def multi_elo(history: list[Any], count: int) -> Found:
    """`calc_elo` of a whole game."""
    from multi_elo import EloPlayer, calc_elo

    games = _games(history, count)
    ratings: dict[int, float] = {}
    started = perf_counter()
    for players, places in games:
        seated = [
            EloPlayer(place, ratings.get(player, 1000)) for player, place in zip(players, places, strict=True)
        ]  # fmt: skip
        for player, rating in zip(players, calc_elo(seated, 32), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}


def openskill(history: list[Any], count: int) -> Found:
    """`rate` of its default model, which is also its quickest; the package is compiled."""
    from openskill.models import PlackettLuce

    games = _games(history, count)
    model = PlackettLuce()
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        teams = [[ratings.get(player) or model.rating()] for player in players]
        for player, (rating,) in zip(players, model.rate(teams, ranks=list(map(float, places))), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}


def elote(history: list[Any], count: int) -> Found:
    """`beat` and `tied` of Elo competitors, pair by pair: the package's Elo only knows games of two."""
    from elote import EloCompetitor

    games = _games(history, count)
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        for player in players:
            if player not in ratings:
                ratings[player] = EloCompetitor()
        seated = [ratings[player] for player in players]
        for i, mine in enumerate(seated):
            for j in range(i + 1, len(seated)):
                if places[i] == places[j]:
                    mine.tied(seated[j])
                elif places[i] < places[j]:
                    mine.beat(seated[j])
                else:
                    seated[j].beat(mine)
    return {"seconds": perf_counter() - started, "count": len(games)}


def elote_glicko(history: list[Any], count: int) -> Found:
    """`beat` and `tied` of Glicko competitors in games of two, all at one time."""
    from elote import GlickoCompetitor

    games = _games(history, count)
    at = datetime(2025, 1, 1)
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        for player in players:
            if player not in ratings:
                ratings[player] = GlickoCompetitor(initial_time=at)
        mine, other = ratings[players[0]], ratings[players[1]]
        if places[0] == places[1]:
            mine.tied(other, match_time=at)
        elif places[0] < places[1]:
            mine.beat(other, match_time=at)
        else:
            other.beat(mine, match_time=at)
    return {"seconds": perf_counter() - started, "count": len(games)}


def plain_glicko(history: list[Any], count: int) -> Found:
    """Glicko in a plain loop of Python, with the formulas and parameters that the rule glicko-1/1 has."""
    q, floor, start, growth = log(10) / 400, 30.0, 350.0, 8.1
    ratings: dict[int, tuple[float, float, int]] = {}
    games: list[tuple[list[int], list[int], int]] = []
    for drawn in chunks(History(*history)):
        players, places, days = drawn.players.tolist(), drawn.places.tolist(), (drawn.occurred_at // DAY).tolist()
        games += [
            (players[low:high], places[low:high], day)
            for (low, high), day in zip(pairwise(drawn.offsets.tolist()), days, strict=True)
        ]
        if len(games) >= count:
            break
    games = games[:count]
    started = perf_counter()
    for players, places, day in games:
        states = []
        for player in players:
            rating, deviation, last = ratings.get(player, (1500.0, start, day))
            aged = sqrt(deviation * deviation + growth * growth * (day - last))
            states.append((rating, aged if aged < start else start))
        for i, player in enumerate(players):
            rating, deviation = states[i]
            surprise = information = 0.0
            for j, (other, other_deviation) in enumerate(states):
                if j != i:
                    weight = 1 / sqrt(1 + 3 * (q * other_deviation / pi) ** 2)
                    expected = 1 / (1 + exp(-q * weight * (rating - other)))
                    scored = 1.0 if places[i] < places[j] else 0.0 if places[i] > places[j] else 0.5
                    surprise += weight * (scored - expected)
                    information += weight * weight * expected * (1 - expected)
            square = 1 / (1 / (deviation * deviation) + q * q * information)
            after = sqrt(square)
            ratings[player] = rating + q * square * surprise, after if after > floor else floor, day
    return {"seconds": perf_counter() - started, "count": len(games)}


def trueskill(history: list[Any], count: int) -> Found:
    """`rate` of a whole game, every player a team of one."""
    from trueskill import TrueSkill

    games = _games(history, count)
    model = TrueSkill()
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        teams = [(ratings.get(player) or model.create_rating(),) for player in players]
        for player, (rating,) in zip(players, model.rate(teams, ranks=places), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}
