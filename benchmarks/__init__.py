"""Measure the program against other programs; docs/performance.md has the results.

A row of the table is a function in `benchmarks.rows`. It runs functions of `benchmarks.ours` and functions of
`benchmarks.baselines` in turn, each in a fresh process, on games that `benchmarks.games` draws from a seed.
"""
