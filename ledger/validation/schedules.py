"""The schedule of a league: a balanced one for its number of players per game, with the players drawn by a seed.

`schedules.json` has the games of the players 0 to 7 for 2 to 8 players per game, found by `scripts/find_schedules.py`:
everybody takes every seat equally often, and everybody meets everybody equally often, or, where that is not whole, one
of the two numbers around it. A league relabels them.
"""

import hashlib
import json
from functools import cache
from importlib import resources

PLAYERS = 8
SIZES = range(2, PLAYERS + 1)


@cache
def league_schedule(size: int) -> list[list[int]]:
    """The games of so many players each, as lists of the players 0 to 7 by seat."""
    text = resources.files("ledger.validation").joinpath("schedules.json").read_text(encoding="utf-8")
    return [list(game) for game in json.loads(text)[str(size)]]


def draw_schedule(players: list[str], size: int, seed: str) -> list[list[str]]:
    """The games of eight players by seat; the same seed draws the same, in whatever order the players come.

    Whoever knows the seed can do it again: players are sorted by SHA-256 of the seed, a zero byte and the id, as UTF-8.
    """
    drawn = sorted(players, key=lambda player: hashlib.sha256(f"{seed}\0{player}".encode()).digest())
    return [[drawn[number] for number in game] for game in league_schedule(size)]
