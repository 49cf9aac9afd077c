"""It never ends, while it is imported."""

from plain_rule import RULE as PLAIN

while PLAIN:
    pass
