"""Draw games from a seed, as arrays. Few players play often; some games have ties, and some are recorded late.

    >>> drawn = draw(History(games=3), 0)
    >>> drawn.offsets.tolist(), drawn.players[:4].tolist(), drawn.places[:4].tolist()
    ([0, 4, 10, 13], [2, 24, 29, 11], [3, 1, 2, 4])

The same history gives the same games on every machine.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.histories import CHUNK_GAMES, LADDER_PLAYERS, SPAN_DAYS, History

SIZES = (2, 3, 4, 5, 6)
SIZE_SHARES = (0.10, 0.25, 0.40, 0.15, 0.10)
LATE_SHARE = 0.01
LATE_SECONDS_MAX = 30 * 86_400
FIRST_SECOND = 1_262_304_000  # 2010-01-01
SPAN_SECONDS = SPAN_DAYS * 86_400

Ints = NDArray[np.int64]


class Drawn(NamedTuple):
    """A chunk of games in the order in which they are recorded; `first` is the number of its first game.

    Game `g` has participants `offsets[g]` up to `offsets[g + 1]`; `occurred_at` is in microseconds.
    """

    first: int
    offsets: Ints
    players: Ints
    places: Ints
    occurred_at: Ints

    def ladder(self, game: int, history: History) -> int:
        """Return the number of the ladder of a game in the chunk."""
        return (self.first + game) % history.ladders


def chunks(history: History) -> Iterator[Drawn]:
    """Yield all games of a history, chunk by chunk."""
    return (draw(history, number) for number in range(history.chunks))


def draw(history: History, number: int) -> Drawn:
    """Return one chunk of a history."""
    random = np.random.default_rng([history.seed, number])
    first = number * CHUNK_GAMES
    count = min(CHUNK_GAMES, history.games - first)
    sizes = _draw_sizes(random, history, count)
    players = _draw_players(random, history, first, sizes)
    seated = np.arange(players.shape[1]) < sizes[:, None]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = _draw_places(random, history, players, seated)
    return Drawn(first, offsets, players[seated], places[seated], _draw_times(random, history, first, count))


def _draw_sizes(random: np.random.Generator, history: History, count: int) -> Ints:
    if history.size is not None:
        return np.full(count, history.size, dtype=np.int64)
    return random.choice(np.array(SIZES, dtype=np.int64), size=count, p=SIZE_SHARES)


def _draw_players(random: np.random.Generator, history: History, first: int, sizes: Ints) -> Ints:
    """Return a row of distinct players for each game; players beyond the size of the game do not play."""
    widest = int(sizes.max())
    players = np.empty((len(sizes), widest), dtype=np.int64)
    undrawn = np.arange(len(sizes))
    ladders = (first + undrawn) % history.ladders
    activity = None if history.ladders > 1 else _compute_activity(history)
    while len(undrawn):
        if activity is None:
            drawn = ladders[undrawn, None] * LADDER_PLAYERS + random.integers(0, LADDER_PLAYERS, (len(undrawn), widest))
        else:
            drawn = np.searchsorted(activity, random.random((len(undrawn), widest)))
            drawn = (drawn * history.stride + 7) % history.players
        players[undrawn] = drawn
        inside = np.sort(drawn, axis=1)
        undrawn = undrawn[(inside[:, 1:] == inside[:, :-1]).any(axis=1)]
    return players


def _compute_activity(history: History) -> NDArray[np.float64]:
    """Return the cumulative activity of all players, most active first: Zipf's law, flattened at the top."""
    shares = 1 / (np.arange(history.players) + 100.0) ** 0.9
    cumulated = np.cumsum(shares)
    return np.asarray(cumulated / cumulated[-1], dtype=np.float64)


def _draw_places(random: np.random.Generator, history: History, players: Ints, seated: NDArray[np.bool_]) -> Ints:
    """Return competition places by strength and luck, on a coarse scale, so that one game in three has a tie."""
    strengths = np.random.default_rng([history.seed, 2**31]).standard_normal(history.players)
    shown = np.floor(4 * (strengths[players] + random.standard_normal(players.shape)))
    shown[~seated] = -np.inf
    better: Any = shown[:, None, :] > shown[:, :, None]
    return np.asarray(1 + better.sum(axis=2), dtype=np.int64)


def _draw_times(random: np.random.Generator, history: History, first: int, count: int) -> Ints:
    """Return the times of games in microseconds, ascending except for late games."""
    seconds = FIRST_SECOND + (first + np.arange(count)) * SPAN_SECONDS // max(history.games, 1)
    late = random.random(count) < (LATE_SHARE if history.late else 0)
    seconds[late] -= random.integers(1, LATE_SECONDS_MAX, int(late.sum()))
    return np.asarray(seconds * 1_000_000, dtype=np.int64)
