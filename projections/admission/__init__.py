"""Checks by ladders and rules before something is appended or published."""
