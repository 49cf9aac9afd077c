"""A list that does not exist."""

from plain_rule import RULE as PLAIN

RULE = PLAIN._replace(name="unknown-list", ranking="tabel")
