"""A sound rule, from which the bad rules are made.

Each first player gains a point for each seat, and every other player loses one.
"""

from ratings_ledger.rules import Params, Rule, Term, no_table


def score(n, points, columns, constants, table, change):
    place, seats = columns[0], columns[1]
    total = 0
    for i in range(n):
        change[i] = (seats[i] if place[i] == 1 else 0) - (1 if place[i] > 1 else 0)
        total += change[i]
    return max(total, 0)


def explain(n, names, points, columns, params, change):
    return [[Term(f"place {columns[0][i]}", change[i], "")] for i in range(n)]


def chance(i, j, points, columns, constants, table):
    return (1 << 31) + (points[i] > points[j]) - (points[i] < points[j])


RULE = Rule(
    name="plain",
    number=1,
    scale=1,
    params=Params,
    columns=("place", "seats"),
    prepare=lambda params: (),
    table=no_table,
    refuse_params=lambda params, players_max: None,
    check=None,
    score=score,
    explain=explain,
    chance=chance,
)
