"""Rebuild on the workers of an engine: sealed segments, packs of ladders, tasks, and their coordinator."""
