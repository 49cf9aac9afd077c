"""Draws the season of winter-league.csv: an invented club of eight who meet on Tuesdays and play what Catan can seat.

    python examples/draw_league.py > examples/winter-league.csv

Players differ in skill, on the scale of Elo: of two, the one who is 400 better finishes ahead in ten games of eleven.
In each game everybody performs by skill and chance (a Gumbel variable, so that every pair meets those odds), and the
best performance wins; those who are nearly equal are tied. So the ratings have something to find out, and predictions
from them mean something. The seed was fixed before anybody had looked at a season; nothing was put right afterwards.
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
# minutes after 19:00 at which the games of an evening end, before chance: the last after midnight now and then
ENDS = (70, 170, 270)
SEATS = (3, 4, 4, 5, 6)
TIED = 6


def season() -> Iterator[list[str]]:
    """The rows of the season, each a game: its id, when it ended by the club's clock, and who was where."""
    chance = random.Random(SEED)
    number = 0
    for evening in range(EVENINGS):
        day = FIRST_EVENING + timedelta(weeks=evening, hours=19)
        for ends in ENDS:
            number += 1
            ended = day + timedelta(minutes=ends + int(60 * chance.random()))
            seats = SEATS[int(len(SEATS) * chance.random())]
            sitting = sorted(SKILL, key=lambda _: chance.random())[:seats]
            yield [f"wl-{number:02d}", f"{ended:%Y-%m-%d %H:%M}", *places(sitting, chance)]


def places(players: list[str], chance: random.Random) -> list[str]:
    """The cells of a game in the order of places: tied players share one, and the places behind them are empty."""
    gumbel = 400 / math.log(10)
    performed = sorted(
        ((SKILL[name] - gumbel * math.log(-math.log(chance.random())), name) for name in players), reverse=True
    )
    cells: list[str] = []
    for place, (performance, name) in enumerate(performed):
        if place and performed[place - 1][0] - performance < TIED:
            last = next(index for index in range(len(cells) - 1, -1, -1) if cells[index])
            cells[last] += f"={name}"
            cells.append("")
        else:
            cells.append(name)
    return cells + [""] * (max(SEATS) - len(cells))


if __name__ == "__main__":
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["game_id", "occurred_at", "1st", "2nd", "3rd", "4th", "5th", "6th"])
    table.writerows(season())
