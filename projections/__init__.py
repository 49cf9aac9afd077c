"""Meaning: rules, rulesets, replay, standings, generations. Reads facts and never writes them."""
