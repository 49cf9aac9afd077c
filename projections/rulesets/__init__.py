"""Rulesets: their versions, the rules they name, and the months and years of their zone."""
