"""It never ends."""

from plain_rule import RULE as PLAIN


def score(n, points, columns, constants, table, change):
    while n:
        change[0] = 0
    return 0


RULE = PLAIN._replace(name="never-ends", score=score)
