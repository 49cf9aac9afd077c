"""Ratings derived from the log: rules, rulesets, replay, queries, stored standings, and checks of proposed events."""
