"""It ends the program."""

import sys

from plain_rule import RULE as PLAIN


def check(n, columns, params):
    sys.exit("a rule has had enough")


RULE = PLAIN._replace(name="leaves", check=check)
