"""Find the balanced league schedules: the players of each game, and their seats.

A league has eight players.  For every number of players per game (the size, 2 to 8) this script finds a list of
games, each a list of different players, the index being the seat, such that

* every player takes every seat equally often;
* every two players meet equally often, or, if that is not a whole number, one of the two nearest whole numbers;
* every possible set of players meets equally often, or, where there are fewer games than sets, at most once;
* players who are the same set in several games share the seats out evenly;
* after any number of games, no player has played more than MAX_SPREAD games more than another.

The search has two stages, each a constraint problem for OR-Tools CP-SAT: first the set of players of every game, in
the order of play, then their seats.  A fixed seed and a single worker make it repeatable: the same version of
OR-Tools finds the same schedules (written with ortools 9.15).

This is a development tool.  The program itself never runs it; it only reads the file that it writes:

    python scripts/find_schedules.py > ledger/validation/schedules.json
    python scripts/find_schedules.py ledger/validation/schedules.json
"""

import argparse
import json
import sys
import textwrap
import time
from itertools import combinations
from pathlib import Path

from ortools.sat.python import cp_model

PLAYERS = range(8)

# The number of games in all, by the number of players per game.
GAMES = {2: 56, 3: 24, 4: 32, 5: 40, 6: 24, 7: 24, 8: 16}

# The largest allowed difference between the games that two players have played, after any number of games.  With 1
# for size 4, every second game would have just the players who missed the one before it.  Take one 16-vector per
# player, an entry per such two games, +1 for playing the first and -1 for the second: two players who meet 6 or 7
# times have the product -4 or -2.  A vector's products with the other seven must add up to -16, so one of them is -4
# and six are -2, and some three players have only products of -2.  But the three products of any three such vectors
# add up to a multiple of 4, and -6 is not a multiple of 4.
MAX_SPREAD = {2: 1, 3: 1, 4: 2, 5: 1, 6: 1, 7: 1, 8: 0}

SEED = 1
LINE_LENGTH = 120

Game = tuple[int, ...]


def solve(model: cp_model.CpModel) -> cp_model.CpSolver:
    """Return the solver with a solution of the model."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RuntimeError(f"no solution: {solver.status_name(status)}")
    return solver


def split_evenly(total: int, parts: int) -> tuple[int, int]:
    """Return the smallest and the largest part when a total is divided evenly into whole numbers."""
    return total // parts, -(-total // parts)


def choose_sets(size: int) -> list[Game]:
    """Return the players of every game, sorted, in the order of play."""
    n_games = GAMES[size]
    sets = list(combinations(PLAYERS, size))
    pairs = list(combinations(PLAYERS, 2))
    model = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in sets] for _ in range(n_games)]

    for row in chosen:
        model.add_exactly_one(row)
    model.add(chosen[0][0] == 1)  # the players are interchangeable, so any set can come first

    least, most = split_evenly(n_games, len(sets))
    times = [sum(column) for column in zip(*chosen, strict=True)]
    for count in times:
        model.add_linear_constraint(count, least, most)

    least, most = split_evenly(n_games * size * (size - 1) // 2, len(pairs))
    for pair in pairs:
        meetings = sum(count for count, players in zip(times, sets, strict=True) if set(pair) <= set(players))
        model.add_linear_constraint(meetings, least, most)

    limit_spread(model, chosen, sets, size)
    solver = solve(model)
    return [next(players for players, var in zip(sets, row, strict=True) if solver.value(var)) for row in chosen]


def limit_spread(model: cp_model.CpModel, chosen: list[list[cp_model.IntVar]], sets: list[Game], size: int) -> None:
    """Limit the differences between players' numbers of games after every game; require none after the last game."""
    n_games = len(chosen)
    fewest = [model.new_int_var(0, done * size // len(PLAYERS), "") for done in range(1, n_games + 1)]
    played = [[model.new_int_var(0, n_games, "") for _ in PLAYERS] for _ in range(n_games)]
    for done, row in enumerate(chosen):
        for player in PLAYERS:
            plays = sum(var for var, players in zip(row, sets, strict=True) if player in players)
            before = played[done - 1][player] if done else 0
            model.add(played[done][player] == before + plays)
            model.add_linear_constraint(played[done][player] - fewest[done], 0, MAX_SPREAD[size])
    for player in PLAYERS:
        model.add(played[-1][player] == n_games * size // len(PLAYERS))


def choose_seats(sets: list[Game], size: int) -> list[Game]:
    """Return the games with their players in the order of the seats."""
    seats = range(size)
    model = cp_model.CpModel()
    sits = {
        (game, player, seat): model.new_bool_var("")
        for game, players in enumerate(sets)
        for player in players
        for seat in seats
    }
    for game, players in enumerate(sets):
        for player in players:
            model.add_exactly_one(sits[game, player, seat] for seat in seats)
        for seat in seats:
            model.add_exactly_one(sits[game, player, seat] for player in players)
    for player in PLAYERS:
        games = [game for game, players in enumerate(sets) if player in players]
        for seat in seats:
            model.add(sum(sits[game, player, seat] for game in games) == len(sets) // len(PLAYERS))
    for players in sorted(set(sets)):
        games = [game for game, others in enumerate(sets) if others == players]
        for player in players:
            for seat in seats:
                model.add_linear_constraint(
                    sum(sits[game, player, seat] for game in games), *split_evenly(len(games), size)
                )

    solver = solve(model)
    return [
        tuple(next(player for player in players if solver.value(sits[game, player, seat])) for seat in seats)
        for game, players in enumerate(sets)
    ]


def find_schedule(size: int) -> list[Game]:
    """Return the games with `size` players each; report the time on standard error."""
    start = time.perf_counter()
    games = choose_seats(choose_sets(size), size)
    sys.stderr.write(f"{size} players: {len(games)} games, {time.perf_counter() - start:.1f} s\n")
    return games


def format_schedules(schedules: dict[int, list[Game]]) -> str:
    """Return the schedules as JSON, with as many games on a line as fit."""
    parts = []
    for size, games in schedules.items():
        text = ", ".join(json.dumps(game, separators=(",", ":")) for game in games)
        lines = textwrap.fill(text, LINE_LENGTH, initial_indent="    ", subsequent_indent="    ")
        parts.append(f'  "{size}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Find all schedules and write them to the named file, or to standard output."""
    parser = argparse.ArgumentParser(description="Find the balanced league schedules.")
    parser.add_argument("output", nargs="?", type=Path, help="the file to write (default: standard output)")
    output: Path | None = parser.parse_args().output
    text = format_schedules({size: find_schedule(size) for size in GAMES})
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
