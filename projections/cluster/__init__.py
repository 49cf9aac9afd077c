"""A rebuild on the workers of an engine: sealed segments, packs of ladders, tasks, and who hands them out."""
