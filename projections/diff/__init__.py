"""Comparisons of two states of the ladders, and why they differ."""
