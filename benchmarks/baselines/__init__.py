"""Baselines of the benchmarks: other packages at their fastest, and hand-written loops and statements."""
