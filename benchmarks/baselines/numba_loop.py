"""Replay arrays in memory in a hand-written numba loop: pairwise Elo in exact integers, for any number of players.

The loop computes the same points as the rule pairwise-elo/1 with the parameters of `bench-elo`, which are constants
here. It computes nothing else: no trial balance, no explanations, no bounds.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

from benchmarks.digests import digest_of_points
from benchmarks.games import Ints
from benchmarks.histories import player_id
from ratings_ledger.projections.expected_scores import expected_scores

K_TOTAL = 32
START = 1_000_000_000  # micropoints
SCALE = 400_000_000
ONE = 1 << 32
STEPS = 8_192
LAST = 10 * SCALE


@njit(cache=True)
def replay(offsets: Any, players: Any, places: Any, expected: Any, points: Any, games: Any) -> None:
    """Update the points and games of all players by all games."""
    change = np.zeros(64, dtype=np.int64)
    for game in range(len(offsets) - 1):
        low = offsets[game]
        n = offsets[game + 1] - low
        divisor = (n - 1) * ONE
        for i in range(n):
            change[i] = 0
        for i in range(n):
            mine, place = points[players[low + i]], places[low + i]
            for j in range(i + 1, n):
                gap = mine - points[players[low + j]]
                size = abs(gap)
                weaker = 1
                if size < LAST:
                    steps = size * STEPS
                    index = steps // SCALE
                    rest = steps - index * SCALE
                    weaker = expected[index] - ((expected[index] - expected[index + 1]) * rest + SCALE // 2) // SCALE
                chance = ONE - weaker if gap > 0 else weaker
                other = places[low + j]
                scored = ONE if place < other else 0 if place > other else ONE // 2
                product = (scored - chance) * K_TOTAL * 1_000_000
                if product < 0:
                    amount = -((2 * -product + divisor) // (2 * divisor))
                else:
                    amount = (2 * product + divisor) // (2 * divisor)
                change[i] += amount
                change[j] -= amount
        for i in range(n):
            points[players[low + i]] += change[i]
            games[players[low + i]] += 1


def run(path: str, players_count: int) -> dict[str, Any]:
    """Replay a file of arrays. The time to compile the loop and to load the file does not count."""
    expected = np.array(expected_scores(), dtype=np.int64)
    with np.load(path) as file:
        offsets, players, places = file["offsets"], file["players"], file["places"]
    replay(offsets[:2], players, places, expected, *_start_players(players_count))
    points, games = _start_players(players_count)
    started = perf_counter()
    replay(offsets, players, places, expected, points, games)
    seconds = perf_counter() - started
    active = np.flatnonzero(games)
    return {
        "seconds": seconds,
        "count": len(offsets) - 1,
        "digest": digest_of_points({player_id(number): int(points[number]) for number in active.tolist()}),
    }


def _start_players(players_count: int) -> tuple[Ints, Ints]:
    """Return the points and games of all players before the first game."""
    return np.full(players_count, START, dtype=np.int64), np.zeros(players_count, dtype=np.int64)
