"""An exception where a result is predicted."""

from plain_rule import RULE as PLAIN


def chance(i, j, points, columns, constants, table):
    return [0][i + j]


RULE = PLAIN._replace(name="raises-in-chance", chance=chance)
