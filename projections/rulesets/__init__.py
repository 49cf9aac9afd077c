"""Rulesets: their versions, the rules that they name, and the months and years of their zone."""
