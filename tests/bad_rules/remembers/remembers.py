"""It keeps something from one game to the next, and writes to what it only reads."""

from plain_rule import RULE as PLAIN

calls = []


def score(n, points, columns, constants, table, change):
    calls.append(n)
    points[0] += 1
    minted = PLAIN.score(n, points, columns, constants, table, change)
    change[0] += len(calls)
    return minted + len(calls)


RULE = PLAIN._replace(name="remembers", score=score)
