"""Generate the season of winter-league.csv: an invented club of eight players who meet on Tuesdays to play Catan.

    python examples/draw_league.py > examples/winter-league.csv

Players differ in skill, on the scale of Elo: a player who is 400 points better finishes ahead in ten of eleven games.
In each game, a player's performance is the sum of skill and chance (a Gumbel variable, which gives every pair these
odds). The best performance wins; nearly equal performances are tied. So there is a true skill that ratings can find,
and their predictions can be checked. The seed was chosen before looking at any season, and no game was edited.
"""

import csv
import math
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

SEED = 2024
SKILL = {
    "Ольга": 1280, "Jürgen": 1160, "mira": 1120, "anouk": 1060, "美咲": 1000, "yusuf": 940, "María José": 840,
    "Łukasz": 720,
}  # fmt: skip
FIRST_EVENING, EVENINGS = datetime(2024, 10, 1), 30
# minutes after 19:00 at which the games of an evening end, plus up to an hour; the last may end after midnight
ENDS = (70, 170, 270)
SEATS = (3, 4, 4, 5, 6)
TIE_POINTS = 6  # performances closer than this are tied


def season() -> Iterator[list[str]]:
    """Yield a row per game: its id, its end in local time, and its players by place."""
    chance = random.Random(SEED)
    number = 0
    for evening in range(EVENINGS):
        day = FIRST_EVENING + timedelta(weeks=evening, hours=19)
        for minutes in ENDS:
            number += 1
            ended = day + timedelta(minutes=minutes + int(60 * chance.random()))
            seats = SEATS[int(len(SEATS) * chance.random())]
            players = sorted(SKILL, key=lambda _: chance.random())[:seats]
            yield [f"wl-{number:02d}", f"{ended:%Y-%m-%d %H:%M}", *order_cells(players, chance)]


def order_cells(players: list[str], chance: random.Random) -> list[str]:
    """Return the cells of a game by place: n tied players share a cell, and the next n - 1 cells are empty."""
    gumbel = 400 / math.log(10)
    performances = sorted(
        ((SKILL[name] - gumbel * math.log(-math.log(chance.random())), name) for name in players), reverse=True
    )
    cells: list[str] = []
    for index, (performance, name) in enumerate(performances):
        if index and performances[index - 1][0] - performance < TIE_POINTS:
            last_filled = next(column for column in range(len(cells) - 1, -1, -1) if cells[column])
            cells[last_filled] += f"={name}"
            cells.append("")
        else:
            cells.append(name)
    return cells + [""] * (max(SEATS) - len(cells))


if __name__ == "__main__":
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["game_id", "occurred_at", "1st", "2nd", "3rd", "4th", "5th", "6th"])
    table.writerows(season())
