"""It ends the process, without a word."""

from os import _exit

from plain_rule import RULE as PLAIN


def score(n, points, columns, constants, table, change):
    _exit(0)


RULE = PLAIN._replace(name="exits", score=score)
