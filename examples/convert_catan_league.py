"""Convert the games of a real Catan club to CSV with a row per player, which `ratings import` reads.

    python convert_catan_league.py games.csv > club.csv
    ratings import club.csv --zone UTC

The source (acodcha/catan-leaderboard) has a row per player: game_number, date, target_points, player, place_dense,
victory_points. `game_number` is the order of the games, also within a day.
"""

import csv
import sys
from itertools import groupby

COLUMNS = ("game_id", "occurred_at", "game", "player", "place", "score")


def convert(lines, out) -> int:
    """Write the converted rows; return the number of games."""
    rows = sorted(csv.DictReader(lines), key=lambda row: int(row["game_number"]))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    games = 0
    for number, players in groupby(rows, key=lambda row: int(row["game_number"])):
        games += 1
        for row in players:
            game_id = f"catan-{number:04d}"
            writer.writerow(
                (game_id, row["date"], "club-catan", row["player"], row["place_dense"], row["victory_points"])
            )
    return games


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", newline="") as source:
        convert(source, sys.stdout)
