"""The schedule of a league: a balanced one for its number of players per game, with the players drawn by a seed.

`schedules.json` has the games of the players 0 to 7 for 2 to 8 players per game, found by `scripts/find_schedules.py`:
everybody takes every seat equally often and meets everybody else equally often or, where that is not a whole number of
times, one of the two nearest whole numbers. A league relabels them.
"""

import hashlib
import json
from functools import cache
from importlib import resources

PLAYERS = 8
SIZES = range(2, PLAYERS + 1)


@cache
def league_schedule(size: int) -> list[list[int]]:
    """The games of `size` players each, as lists of the players 0 to 7 by seat."""
    text = resources.files("ledger.validation").joinpath("schedules.json").read_text(encoding="utf-8")
    return [list(game) for game in json.loads(text)[str(size)]]


def draw_schedule(players: list[str], size: int, seed: str) -> list[list[str]]:
    """The games of eight players by seat; the same seed draws the same, whatever order the players come in.

    Anybody with the seed can repeat it: players are sorted by SHA-256 of the seed, a zero byte and the id, as UTF-8.
    """
    drawn = sorted(players, key=lambda player: hashlib.sha256(f"{seed}\0{player}".encode()).digest())
    return [[drawn[number] for number in game] for game in league_schedule(size)]
