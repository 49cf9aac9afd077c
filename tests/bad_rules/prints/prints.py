"""It prints where programs read an answer."""

from plain_rule import RULE as PLAIN

print("the rule is loaded")  # noqa: T201


def score(n, points, columns, constants, table, change):
    print("a game of", n)  # noqa: T201
    return PLAIN.score(n, points, columns, constants, table, change)


RULE = PLAIN._replace(name="prints", score=score)
