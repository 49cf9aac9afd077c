"""A forgotten `return`."""

from plain_rule import RULE as PLAIN


def score(n, points, columns, constants, table, change):
    for i in range(n):
        change[i] = 0


RULE = PLAIN._replace(name="returns-nothing", score=score)
