"""It keeps something from one game to the next, and writes to what it only reads."""

from plain_rule import RULE as PLAIN

seen = []


def score(n, points, columns, constants, table, change):
    seen.append(n)
    points[0] += 1
    minted = PLAIN.score(n, points, columns, constants, table, change)
    change[0] += len(seen)
    return minted + len(seen)


RULE = PLAIN._replace(name="remembers", score=score)
