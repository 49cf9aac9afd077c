"""Points that grow beyond all bounds."""

from plain_rule import RULE as PLAIN


def score(n, points, columns, constants, table, change):
    minted = 0
    for i in range(n):
        change[i] = (abs(points[i]) + 1) * 10**9
        minted += change[i]
    return minted


RULE = PLAIN._replace(name="overflows", score=score)
