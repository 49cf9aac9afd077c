"""An exception while it is imported."""

from plain_rule import RULE as PLAIN

RULE = PLAIN._replace(name="raises-at-import", scale=int("one"))
