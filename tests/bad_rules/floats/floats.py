"""Numbers that are no integers."""

from plain_rule import RULE as PLAIN

BONUS = 0.5


def score(n, points, columns, constants, table, change):
    for i in range(n):
        change[i] = BONUS * (n - columns[0][i])
    return n * BONUS


RULE = PLAIN._replace(name="floats", score=score)
