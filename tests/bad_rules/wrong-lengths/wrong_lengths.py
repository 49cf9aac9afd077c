"""A change too many, and a list of terms too few."""

from plain_rule import RULE as PLAIN


def score(n, points, columns, constants, table, change):
    for i in range(n + 1):
        change[i] = 0
    return 0


def explain(n, names, points, columns, params, change):
    return [[] for _ in range(n - 1)]


RULE = PLAIN._replace(name="wrong-lengths", score=score, explain=explain)
