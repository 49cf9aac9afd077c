"""Rate games by Glicko and Glicko-2 in plain Python loops, with the parameters of glicko-1/1 and glicko-2/1.

The loops use doubles, keep a tuple per player in a dictionary, and check no bounds.
"""

from itertools import pairwise
from math import exp, log, pi, sqrt
from time import perf_counter
from typing import Any

from benchmarks.games import chunks
from benchmarks.histories import History, player_id

Measurement = dict[str, Any]
DAY = 86_400_000_000
START, DEVIATION = 1500.0, 350.0


def _games(history: list[Any], count: int) -> list[tuple[list[int], list[int], int]]:
    """Return the players, the places and the day of the first games."""
    drawn_games: list[tuple[list[int], list[int], int]] = []
    for drawn in chunks(History(*history)):
        players, places, days = drawn.players.tolist(), drawn.places.tolist(), (drawn.occurred_at // DAY).tolist()
        drawn_games += [
            (players[low:high], places[low:high], day)
            for (low, high), day in zip(pairwise(drawn.offsets.tolist()), days, strict=True)
        ]
        if len(drawn_games) >= count:
            break
    return drawn_games[:count]


def _build_measurement(seconds: float, count: int, ratings: dict[int, Any]) -> Measurement:
    points = {player_id(player): state[0] for player, state in ratings.items()}
    return {"seconds": seconds, "count": count, "points": points}


def glicko(history: list[Any], count: int) -> Measurement:
    """Rate game by game with Glicko."""
    q, floor, growth = log(10) / 400, 30.0, 8.1
    games = _games(history, count)
    ratings: dict[int, tuple[float, float, int]] = {}
    started = perf_counter()
    for players, places, day in games:
        states = []
        for player in players:
            rating, deviation, last = ratings.get(player, (START, DEVIATION, day))
            aged = sqrt(deviation * deviation + growth * growth * (day - last))
            states.append((rating, aged if aged < DEVIATION else DEVIATION))
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
    return _build_measurement(perf_counter() - started, len(games), ratings)


def glicko_2(history: list[Any], count: int) -> Measurement:
    """Rate game by game with Glicko-2. Two steps of Newton's method suffice for the volatility in single games."""
    points, tau_square = 173.7178, 0.25
    games = _games(history, count)
    ratings: dict[int, tuple[float, float, float, int]] = {}
    started = perf_counter()
    for players, places, day in games:
        states = []
        for player in players:
            rating, deviation, sigma, last = ratings.get(player, (START, DEVIATION, 0.06, day))
            aged = sqrt(deviation * deviation + max(day - last - 1, 0) * (points * sigma) ** 2)
            states.append((rating, (aged if aged < DEVIATION else DEVIATION) / points, sigma))
        for i, player in enumerate(players):
            rating, phi, sigma = states[i]
            surprise = information = 0.0
            for j, (other, other_phi, _) in enumerate(states):
                if j != i:
                    weight = 1 / sqrt(1 + 3 * (other_phi / pi) ** 2)
                    expected = 1 / (1 + exp(-weight * (rating - other) / points))
                    scored = 1.0 if places[i] < places[j] else 0.0 if places[i] > places[j] else 0.5
                    surprise += weight * (scored - expected)
                    information += weight * weight * expected * (1 - expected)
            variance, y = sigma * sigma, 0.0
            settled = 1 + phi * phi * information
            for _ in range(2):
                tried = variance * exp(y)
                m = settled + tried * information
                part, squared = tried / (2 * m * m), surprise * surprise
                slope = part * (squared * (1 - 2 * tried * information / m) - information * settled)
                y -= (y - tau_square * part * (squared - information * m)) / (1 - tau_square * slope)
            sigma *= exp(y / 2)
            square = 1 / (1 / (phi * phi + sigma * sigma) + information)
            ratings[player] = rating + points * square * surprise, points * sqrt(square), sigma, day
    return _build_measurement(perf_counter() - started, len(games), ratings)
